"""HomeNavigate: where it starts, what counts as arrived, its reward beside the formula, its expert, both devices."""

from __future__ import annotations

import math
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch

import manikin
from manikin.errors import ConfigError, UnknownNameError
from manikin.math import quat_to_yaw
from manikin.plan.executor import WaypointExecutor
from manikin.tasks.home.scene import LAYOUTS, spots

pytest.importorskip("scipy", reason="maps of apartments need pip install 'manikin[meshes]'")

WARP = find_spec("mujoco_warp") is not None


def made(num_envs: int = 8, **options: Any) -> Any:
    options = {"autoreset": "disabled", "terminate": False, "reward": "dense", "observe": "state_dict", **options}
    return manikin.make("HomeNavigate-v1", num_envs, **options)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_goal_can_be_reached_and_no_start_is_near_it(layout: str) -> None:
    found = spots(layout)
    assert len(found.names) >= 5
    assert found.space.reachable(found.stands[:, :2]).all()
    to = (found.goals - found.stands)[:, :2]
    away = np.linalg.norm(to, axis=1)
    assert (away <= 1.5 + 1e-5).all() and (away >= 0.75 - 1e-5).all()
    assert np.stack([np.cos(found.stands[:, 2]), np.sin(found.stands[:, 2])], 1) == pytest.approx(
        to / away[:, None], abs=1e-5
    )
    assert (np.linalg.norm(found.starts - found.goals[:, None, :2], axis=2) > 2).all()


def test_the_way_is_that_of_the_map() -> None:
    """And at least as long as the straight line."""
    env = made(8)
    env.reset(seed=list(range(8)))
    rows = 0
    for part in env.parts():
        h, task = part.env.h, part.env.task
        found = spots(task.layout)
        base, goal = task.seen(h).base[:, :2].numpy(), h.target.value.long().numpy()
        there = found.space.distances(base, found.stands[goal, :2])
        assert task.way(h).numpy() == pytest.approx(there, abs=1e-3)
        assert (there + 0.05 >= np.linalg.norm(base - found.stands[goal, :2], axis=1)).all()
        rows += len(goal)
    assert rows == 8
    env.close()


def test_the_robot_touches_nothing_at_the_start() -> None:
    env = made(16)
    env.reset(seed=list(range(16)))
    env.step(torch.zeros(16, env.single_action_space.shape[0]))
    info = env.step(torch.zeros(16, env.single_action_space.shape[0]))[-1]
    assert (info["robot_force"] == 0).all()
    assert not info["success"].any() and not info["is_near"].any()
    env.close()


@pytest.mark.parametrize("before", ["pick", "place"])
def test_it_starts_before_a_previous_goal(before: str) -> None:
    """Within 2 m of another surface and facing it to half a radian, as in MS-HAB's PrepareGroceries."""
    env = made(32, config={"starts": "previous", "before": before})
    env.reset(seed=list(range(32)))
    rows = 0
    for part in env.parts():
        h, task = part.env.h, part.env.task
        base, goal, surfaces = task.seen(h).base, task.goal(h), torch.tensor(spots(task.layout).goals)
        to = surfaces[None, :, :2] - base[:, None, :2]
        away = torch.linalg.vector_norm(to, dim=2)
        off = torch.remainder(torch.atan2(to[..., 1], to[..., 0]) - base[:, 2:] + math.pi, 2 * math.pi) - math.pi
        is_goal = (surfaces[None] == goal[:, None]).all(2)
        assert ((away <= 2.0 + 1e-5) & (off.abs() <= 0.5 + 1e-4) & ~is_goal).any(1).all()
        rows += len(base)
    assert rows == 32
    *_, info = env.step(torch.zeros(32, env.single_action_space.shape[0]))
    assert (info["robot_force"] == 0).all()
    env.close()


def test_it_starts_anywhere() -> None:
    """As in MS-HAB's TidyHouse: near the goal, too, and facing anywhere."""
    env = made(64, config={"starts": "anywhere"})
    _, info = env.reset(seed=list(range(64)))
    assert 0 < int(info["is_near"].sum()) < 48
    yaw = torch.cat([part.env.task.seen(part.env.h).base[part.rows, 2] for part in env.parts()])
    assert yaw.min() < -2 and yaw.max() > 2
    *_, info = env.step(torch.zeros(64, env.single_action_space.shape[0]))
    assert (info["robot_force"] == 0).all()
    env.close()


def test_a_start_that_is_none() -> None:
    with pytest.raises(UnknownNameError, match=r"starts of HomeNavigate-v1 'near'. Valid: anywhere, far, previous"):
        made(1, config={"starts": "near"})


def test_what_counts_as_arrived() -> None:
    """In one apartment: 1.9 m before a goal and 2.1 m, facing it to 0.45 rad and to 0.55."""
    env = made(1)
    env.reset(seed=0)
    (part,) = env.parts()
    inner = part.env
    h, task = inner.h, inner.task
    goal = task.goal(h)[0]
    for away, turn, near, facing in ((1.9, 0.45, True, True), (2.1, 0.0, False, True), (1.9, 0.55, True, False)):
        base = torch.tensor([[goal[0] - away, goal[1], turn]])
        h.robot.set_qpos(torch.cat([h.robot.base_joints(base), h.robot.keyframe("rest")[None, 3:]], 1))
        inner.world.forward()
        ev = task.evaluate(h)
        assert (ev["is_near"].item(), ev["is_facing"].item()) == (near, facing)
        assert ev["success"].item() is (near and facing)
        seen = task.observe(h)["policy"]["goal_from_base"][0]
        expected = [away * math.cos(turn), -away * math.sin(turn), float(goal[2])]
        assert seen.tolist() == pytest.approx(expected, abs=1e-4)
    env.close()


def test_an_arm_that_does_not_rest_counts_only_where_asked() -> None:
    for asked in (False, True):
        env = made(1, config={"arm_counts": asked})
        env.reset(seed=0)
        inner = env.parts()[0].env
        h, goal = inner.h, inner.task.goal(inner.h)[0]
        joints = h.robot.keyframe("rest")[None].clone()
        joints[:, :3] = h.robot.base_joints(torch.tensor([[goal[0] - 1.5, goal[1], 0.0]]))
        for lift, done in ((0.0, True), (0.3, not asked)):
            changed = joints.clone()
            changed[:, -4] += lift
            h.robot.set_qpos(changed)
            inner.world.forward()
            assert inner.task.evaluate(h)["success"].item() is done
        env.close()


def test_the_reward_is_its_formula_far_from_the_goal() -> None:
    env = made(4)
    env.reset(seed=list(range(4)))
    env.step(torch.zeros(4, env.single_action_space.shape[0]))
    rows = 0
    for part in env.parts():
        h, task = part.env.h, part.env.task
        terms = task.reward(h, task.evaluate(h), torch.zeros(h.n, 13))
        root, speed = h.robot.root_pose, h.robot.arm_qvel[:, :2]
        yaw, ways = quat_to_yaw(root[:, 3:]), task.way(h)
        forward = speed[:, 0] * torch.cos(yaw) + speed[:, 1] * torch.sin(yaw)
        for row in range(h.n):
            expected = 8 * (1 - math.tanh(float(ways[row]) / 10)) + 2 * math.tanh(2 * max(float(forward[row]), 0.0))
            assert terms["drive"][row].item() == pytest.approx(expected, abs=1e-4)
            assert terms["face"][row].item() == 0 and terms["hold"][row].item() == 2
            rows += 1
    assert rows == 4
    env.close()


def test_the_expert_arrives_and_touches_nothing() -> None:
    env = made(8, terminate=True)
    env.reset(seed=list(range(8)))
    expert, done = WaypointExecutor(env), torch.zeros(8, dtype=torch.bool)
    arrived, force = done.clone(), torch.zeros(8)
    while not done.all():
        _, _, terminated, truncated, info = env.step(expert.act(), active=~done)
        arrived |= info["success"] & ~done
        force = torch.maximum(force, info["robot_force"])
        done |= terminated | truncated
    assert arrived.all() and (force < 5000).all() and not info["health"].any()
    env.close()


@pytest.mark.skipif(not WARP, reason="needs pip install 'manikin[gpu]'")
def test_both_devices_agree() -> None:
    envs = [made(2, device=device) for device in ("cpu", "warp:cpu")]
    for env in envs:
        env.reset(seed=[0, 8])
    random = torch.rand(5, 2, 13, generator=torch.Generator().manual_seed(1)) * 2 - 1
    for action in random:
        (one, here, *_), (other, there, *_) = (env.step(action) for env in envs)
        assert torch.allclose(here, there.cpu(), atol=2e-3)
        for group in one:
            for name, value in one[group].items():
                assert torch.allclose(value, other[group][name].cpu(), atol=3e-3), name


def test_a_robot_without_a_base_is_refused() -> None:
    with pytest.raises(ConfigError, match="fetch_mshab"):
        manikin.make("HomeNavigate-v1", robot="panda")
