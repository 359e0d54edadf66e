"""Waypoints that say where a base that drives goes."""

from __future__ import annotations

import math
from typing import ClassVar

import pytest
import torch

from manikin.arenas.table import table
from manikin.env.env import Env
from manikin.env.task import Quantity, Task
from manikin.errors import ConfigError, SceneError
from manikin.math import quat_to_yaw
from manikin.plan.executor import WaypointExecutor
from manikin.spec.plan import Waypoint

TURN = 0.4  # [rad]
REACH = (-0.55, 0.57, 0.25)  # [m] 0.7 m before the base once that has driven


class Drive(Task):
    """Drive to one place, then reach beside it.

    Randomization: none.
    Success: never.
    """

    id = "Drive-v0"
    horizon_s = 6.0
    instruction = "drive and reach"
    robots = ("fetch",)
    robot_control: ClassVar = {"fetch": "base: base_vel, torso: joint_delta_pos, arm: joint_delta_pos"}
    observations = {"tcp_pose": Quantity("m, quaternion wxyz", "world")}
    place = (-1.2, 0.3, TURN)
    stays = False

    def scene(self, b):
        table(b)
        return {"robot": b.robot()}

    def start(self, h, ep):
        h.robot.set_qpos(h.robot.keyframe("carry"))

    def evaluate(self, h):
        return {"success": torch.zeros(h.n, dtype=torch.bool)}

    def observe(self, h):
        return {"policy": {"tcp_pose": h.robot.tcp_pose}, "privileged": {}}

    def expert(self, h):
        base = None if self.stays else torch.tensor([self.place]).expand(h.n, 3)
        pose = torch.tensor([[*REACH, 0.0, 1.0, 0.0, 0.0]]).expand(h.n, 7)
        return [
            Waypoint(pose=pose, gripper=1, base=base, name="drive"),
            Waypoint(pose=pose, gripper=1, base=base, name="stay").hold(),
        ]


def played(kind: type[Task], steps: int = 100) -> Env:
    env = Env(kind, num_envs=2, robot="fetch", autoreset="disabled", terminate=False, reward="none")
    env.reset(seed=0)
    expert = WaypointExecutor(env)
    for _ in range(steps):
        env.step(expert.act())
    return env


def test_the_base_goes_where_it_is_told_while_the_tool_reaches() -> None:
    env = played(Drive)
    root = env.robot.root_pose
    assert torch.allclose(root[:, :2], torch.tensor([-1.2, 0.3]).expand(2, 2), atol=5e-3)
    assert torch.allclose(quat_to_yaw(root[:, 3:]), torch.full((2,), TURN), atol=5e-3)
    assert torch.allclose(env.robot.tcp_pos, torch.tensor(REACH).expand(2, 3), atol=5e-3)
    told = env.robot.base_joints(torch.tensor([Drive.place]))[0]
    assert torch.allclose(env.robot.arm_qpos[0, :3], told, atol=5e-3)
    assert torch.allclose(told, torch.tensor([-1.2 + 0.7, 0.3, TURN]), atol=1e-6)  # the robot's own place is x = -0.7


def test_a_base_that_has_turned_once_round_does_not_turn_back_while_the_tool_reaches() -> None:
    """Its joint is at another number for the same heading: the base turns by as much as there is between headings."""

    class Wound(Drive):
        """Drive begun after a turn."""

        id = "Wound-v0"
        instruction = "drive and reach after a turn"

        def start(self, h, ep):
            super().start(h, ep)
            joints = h.robot.keyframe("carry").expand(h.n, -1).clone()
            joints[:, 2] = TURN - 2 * math.pi + 0.3
            h.robot.set_qpos(joints)

    env = Env(Wound, num_envs=1, robot="fetch", autoreset="disabled", terminate=False, reward="none")
    env.reset(seed=0)
    expert, before, turned = WaypointExecutor(env), float(env.robot.arm_qpos[0, 2]), 0.0
    for _ in range(100):
        env.step(expert.act())
        turned = max(turned, abs(float(env.robot.arm_qpos[0, 2]) - before))
    assert turned < 0.35
    assert float(quat_to_yaw(env.robot.root_pose[:, 3:])) == pytest.approx(TURN, abs=0.01)
    env.close()


def test_without_a_word_of_it_the_base_stays() -> None:
    env = played(type("Still", (Drive,), {"stays": True, "id": "Still-v0"}))
    assert torch.allclose(env.robot.root_pose[:, :2], torch.tensor([-0.7, 0.0]).expand(2, 2), atol=0.02)
    assert quat_to_yaw(env.robot.root_pose[:, 3:]).abs().max() < math.radians(2)


def test_a_robot_that_does_not_drive_is_named() -> None:
    arm = type(
        "Arm", (Drive,), {"robots": ("panda",), "start": lambda self, h, ep: h.robot.set_qpos(h.robot.keyframe())}
    )
    env = Env(arm, robot="panda", autoreset="disabled", reward="none")
    env.reset(seed=0)
    with pytest.raises(ConfigError, match="a waypoint says where the base goes, and that of robot does not drive"):
        WaypointExecutor(env).act()
    with pytest.raises(SceneError, match="has no base that drives"):
        env.robot.base_joints(torch.zeros(1, 3))


class Wound(Drive):
    """Turn on after a whole turn.

    Randomization: none.
    Success: never.
    """

    id = "Wound-v0"
    horizon_s = 16.0

    def start(self, h, ep):
        joints = h.robot.keyframe("carry").clone()
        joints[2] = 2 * math.pi - 0.2
        h.robot.set_qpos(joints)

    def expert(self, h):
        base = torch.tensor([[-0.7, 0.0, 0.5]]).expand(h.n, 3)
        return [Waypoint(base=base, gripper=1, turn=2.0).hold()]


def test_a_base_at_the_end_of_its_joint_turns_the_other_way_round() -> None:
    """From 0.2 rad before a whole turn to 0.5 rad after it."""
    env = played(Wound, 315)
    assert torch.allclose(quat_to_yaw(env.robot.root_pose[:, 3:]), torch.full((2,), 0.5), atol=0.02)
    assert torch.allclose(env.robot.arm_qpos[:, 2], torch.full((2,), 0.5), atol=0.02)


class TwoParts(Drive):
    """Two ways to drive, of which rows with an odd number take the second.

    Randomization: none.
    Success: never.
    """

    id = "TwoParts-v0"
    places = ((-1.0, 0.3, 0.0), (-1.0, -0.3, 0.0))

    def scene(self, b):
        table(b)
        return {"robot": b.robot(), "part": b.variable("part"), "count": b.variable("count")}

    def start(self, h, ep):
        super().start(h, ep)
        h.part.set(torch.arange(h.n) % 2)

    def advance(self, h):
        h.count.set(h.count.value + 1)
        h.part.set(torch.where(h.count.value == 40, 1 - h.part.value, h.part.value))

    def expert_part(self, h):
        return torch.stack([h.part.value, torch.zeros(h.n)], 1).long()

    def expert(self, h):
        bases = [torch.tensor([place]).expand(h.n, 3) for place in self.places]
        return [Waypoint(base=base, gripper=1, begins=k > 0).hold() for k, base in enumerate(bases)]


def test_a_row_begins_with_the_part_that_it_is_in_and_again_when_that_changes() -> None:
    env = Env(TwoParts, num_envs=2, robot="fetch", autoreset="disabled", terminate=False, reward="none")
    env.reset(seed=0)
    expert, seen = WaypointExecutor(env), []
    for _ in range(110):
        env.step(expert.act())
        seen.append((expert.stage.tolist(), env.robot.root_pose[:, 1].clone()))
    assert seen[39][0] == [0, 1] and seen[41][0] == [1, 0]
    assert seen[39][1][0] > 0.05 and seen[39][1][1] < -0.05
    assert torch.allclose(seen[-1][1], torch.tensor([-0.3, 0.3]), atol=0.03)
    env.close()


class Askew(Drive):
    """A robot whose place is (1, 2) and which looks along y.

    Randomization: none.
    Success: never.
    """

    id = "Askew-v0"
    place = (0.5, 2.6, math.pi)

    def scene(self, b):
        table(b)
        return {"robot": b.robot(pos=(1, 2, 0), quat=(0.5**0.5, 0, 0, 0.5**0.5))}

    def expert(self, h):
        path = torch.tensor([[(1.0, 2.5, math.pi / 2), self.place]]).expand(h.n, 2, 3)
        return [Waypoint(base=path, gripper=1, speed=1.0), Waypoint(pose=h.robot.tcp_pose, gripper=1).hold()]


def test_the_way_ahead_is_in_the_world_and_ends_when_it_is_driven() -> None:
    env = Env(Askew, num_envs=2, robot="fetch", autoreset="disabled", terminate=False, reward="none")
    env.reset(seed=0)
    # one metre ahead of where it is placed is one metre along y, and it has turned by as much as its joint
    ahead = env.robot.base_place(torch.tensor([[1.0, 0.0, 0.3]]))
    assert ahead[0].tolist() == pytest.approx([1.0, 3.0, math.pi / 2 + 0.3], abs=1e-5)
    place = torch.tensor([[0.7, -1.1, 2.0], [1.0, 2.0, -1.0]])
    assert torch.allclose(env.robot.base_place(env.robot.base_joints(place)), place, atol=1e-5)
    expert = WaypointExecutor(env)
    assert len(expert.way(0)) == 0  # nothing has been planned
    left = []
    for _ in range(110):
        env.step(expert.act())
        left.append(len(expert.way(0)))
        if left[-1]:
            assert expert.way(0)[-1, :2] == pytest.approx(Askew.place[:2], abs=1e-5)
    assert set(left) == {2, 1, 0} and left == sorted(left, reverse=True)
    assert env.robot.root_pose[0, :2].tolist() == pytest.approx(Askew.place[:2], abs=0.03)
    expert.reset([0])
    assert len(expert.way(0)) == 0
    env.close()
