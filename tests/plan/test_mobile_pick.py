"""A whole errand of a mobile manipulator: drive, turn, raise the torso, grasp, carry, rest."""

from __future__ import annotations

import math
from itertools import pairwise

import torch

from fetching import AWAY, BACK, FAR, FetchCube
from manikin.env.env import Env
from manikin.math import pose_inv, pose_mul, quat_to_yaw
from manikin.plan.executor import WaypointExecutor
from manikin.spec.plan import Waypoint


def errand(rows: int, steps: int, **options) -> tuple[Env, WaypointExecutor, dict[str, list[torch.Tensor]]]:
    env = Env(FetchCube, num_envs=rows, robot="fetch_mshab", autoreset="disabled", terminate=False, **options)
    env.reset(seed=0)
    expert = WaypointExecutor(env)
    seen: dict[str, list[torch.Tensor]] = {"root": [], "force": [], "tool": []}
    for _ in range(steps):
        env.step(expert.act())
        seen["root"].append(env.robot.root_pose.clone())
        seen["force"].append(env.robot.forces.total.clone())
        seen["tool"].append(env.robot.tcp_pose.clone())
    return env, expert, seen


def test_a_robot_fetches_a_cube_from_a_table() -> None:
    env, expert, seen = errand(2, 460, reward="none")
    found = env.task.evaluate(env.h)
    assert found["success"].all() and found["is_grasped"].all()
    assert expert.timeouts == [(), ()]

    root = torch.stack(seen["root"])  # (steps, rows, 7)
    there = root[:, 0, :2]
    assert (there - torch.tensor([FAR, 0.0])).norm(dim=1).min() < 0.02  # it was at the table
    assert (env.h.cube.pos[:, :2] - root[-1, :, :2]).norm(dim=1).max() < AWAY
    assert torch.allclose(root[-1, :, :2], torch.tensor(BACK[:2]).expand(2, 2), atol=0.03)
    assert quat_to_yaw(root[-1, :, 3:]).abs().max() < 0.05

    # two driven wheels: from step to step the base moves along where it looks, forward or back
    step, yaw = root[1:, :, :2] - root[:-1, :, :2], quat_to_yaw(root[:-1].flatten(0, 1)[:, 3:]).unflatten(0, (-1, 2))
    sideways = step[..., 1] * torch.cos(yaw) - step[..., 0] * torch.sin(yaw)
    assert sideways.abs().max() * env.control_hz < 0.06  # [m/s]

    # what was pressed is the sum of the forces of all control steps
    assert torch.allclose(env.h.pressed.value, torch.stack(seen["force"]).sum(0), rtol=1e-5, atol=1e-4)
    assert env.h.pressed.value.max() < 5000.0


def test_while_only_the_base_drives_the_tool_keeps_its_place_on_it() -> None:
    _, _, seen = errand(1, 70, reward="none")  # the base is there after 55 steps
    root, tool = torch.cat(seen["root"]), torch.cat(seen["tool"])
    local = pose_mul(pose_inv(root), tool)[:, :3]
    assert root[-1, 0] > 1.2 and (local - local[0]).norm(dim=1).max() < 0.03


def test_rows_drive_alone_as_they_drive_together() -> None:
    one, two = errand(1, 100, reward="none")[2], errand(2, 100, reward="none")[2]
    assert all(torch.equal(a[0], b[0]) for key in one for a, b in zip(one[key], two[key], strict=True))


class Through(FetchCube):
    """Drive through three places, the last of them with a turn.

    Randomization: none.
    Success: never.
    """

    id = "Through-v0"
    path = ((0.8, 0.0, 0.0), (0.8, 0.7, 0.0), (0.2, 0.7, -math.pi / 2))

    def expert(self, h):
        path = torch.tensor([self.path]).expand(h.n, -1, -1)
        return [Waypoint(name="path", base=path, gripper=1, pos_tol=0.01, rot_tol=0.01).hold()]


def test_a_base_goes_through_the_places_of_a_path() -> None:
    env = Env(Through, robot="fetch_mshab", autoreset="disabled", terminate=False, reward="none")
    env.reset(seed=0)
    expert, places = WaypointExecutor(env), []
    for _ in range(420):
        env.step(expert.act())
        places.append(env.robot.root_pose[0, :2].clone())
    way = torch.stack(places)
    for x, y, _ in Through.path:
        assert (way - torch.tensor([x, y])).norm(dim=1).min() < 0.03
    # it keeps to the lines between them
    corners = [torch.tensor(p[:2]) for p in ((0.0, 0.0), *Through.path)]
    off = []
    for a, b in pairwise(corners):
        along = ((way - a) @ (b - a) / (b - a).square().sum()).clamp(0, 1)
        off.append((way - a - along[:, None] * (b - a)).norm(dim=1))
    assert torch.stack(off).amin(0).max() < 0.03
    assert abs(float(quat_to_yaw(env.robot.root_pose[:, 3:])) + math.pi / 2) < 0.02
