"""QuadrupedReach, QuadrupedSpin and LeggedStand: rewards, starts and success beside ManiSkill3's figures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

import manikin
from manikin.plan.executor import WaypointExecutor


def made(task: str, num_envs: int = 2, **options: Any) -> manikin.Env:
    options = {"autoreset": "disabled", "terminate": False, "reward": "dense", "observe": "state_dict", **options}
    env = manikin.make(task, num_envs, **options)
    env.reset(seed=0)
    return env


def speeds(env: manikin.Env, row: int, published: bool) -> tuple[np.ndarray, np.ndarray]:
    """(3,) [m/s] and (3,) [rad/s] of the base, along its axes; as published, along the world's."""
    _, data = env.world.data(row)
    turn = data.body(f"{env.robot.prefix}base").xmat.reshape(3, 3)
    if published:
        return data.qvel[:3], turn @ data.qvel[3:6]
    return turn.T @ data.qvel[:3], data.qvel[3:6]


def restless(env: manikin.Env, row: int, knees: bool, published: bool) -> float:
    """ManiSkill3's penalties, from MuJoCo's state."""
    _, data = env.world.data(row)
    (*_, vz), w = speeds(env, row, published)
    away = data.qpos[7:] - np.array(env.robot.arm.keyframes["rest"])
    return 2 * vz**2 + 0.05 * (w[0] ** 2 + w[1] ** 2) + knees + 0.05 * float(np.linalg.norm(away))


@pytest.mark.parametrize("task", ["QuadrupedReach-v1", "QuadrupedSpin-v1"])
@pytest.mark.parametrize("robot", ["anymal_c", "go2"])
@pytest.mark.parametrize("published", [False, True])
def test_the_reward_is_the_published_one(task: str, robot: str, published: bool) -> None:
    """With the option to the letter, but for what must not touch the ground; without it with speeds of the base."""
    env = made(task, robot=robot, config={"published_reward": published, "start_noise": 0.4})
    generator = torch.Generator().manual_seed(0)
    for _ in range(30):
        _, reward, *_, info = env.step((torch.rand(2, 12, generator=generator) * 2 - 1) * 0.5)
        for row in range(2):
            _, data = env.world.data(row)
            if info["fail"][row]:
                wanted = 0.0 if task == "QuadrupedReach-v1" else -100.0
            elif task == "QuadrupedReach-v1":
                far = math.dist(data.qpos[:2], env.h.goal.value[row].tolist())
                wanted = 1 + 2 * (1 - math.tanh(far))
            else:
                rate = speeds(env, row, published)[1][2]
                wanted = 2 * (rate if published else min(rate, 1))
            if not info["fail"][row]:
                knees = bool(env.robot.forces.total[row] - env.robot.foot_forces[row].sum() > 1)
                wanted -= restless(env, row, knees, published)
            assert reward[row].item() == pytest.approx(wanted, abs=2e-3)
        assert published or (reward <= env.task.reward_max).all()
        assert torch.allclose(sum(info["reward_terms"].values()), reward, atol=1e-6)


def test_goals_are_where_maniskill_has_them() -> None:
    env = made("QuadrupedReach-v1", 256)
    goal = env.h.goal.value
    assert goal.amin(0).tolist() == pytest.approx([2, -1], abs=0.05) and goal.amax(0).tolist() == pytest.approx(
        [3, 1], abs=0.05
    )
    assert env.horizon == 500 and env.h.mark.pos[:, :2].tolist() == goal.tolist()


def test_reached_is_within_a_third_of_a_metre_on_its_feet() -> None:
    env = made("QuadrupedReach-v1", 3, robot="go2")
    goal = torch.tensor([[2.5, 0.5], [2.5, 0.5], [2.5, 0.5]])
    env.h.goal.set(goal)
    place = torch.tensor([[2.5, 0.84, 0.29, 1, 0, 0, 0], [2.5, 0.86, 0.29, 1, 0, 0, 0], [2.5, 0.5, 0.4, 0, 1, 0, 0]])
    env.h.robot.set_root(place)
    env.world.forward()
    ev = env.task.evaluate(env.h)
    assert ev["success"].tolist() == [True, False, False] and ev["fail"].tolist() == [False, False, True]
    turned = torch.tensor([2.0, 0.5, 0.29, math.sqrt(0.5), 0, 0, math.sqrt(0.5)])  # which faces along y
    env.h.robot.set_root(turned)
    env.world.forward()
    seen = env.task.observe(env.h)["policy"]["goal"]
    assert seen[0].tolist() == pytest.approx([0.0, -0.5], abs=1e-5)


def test_spinning_counts_once_it_lasted() -> None:
    env = made("QuadrupedSpin-v1", 2, robot="go2", config={"hold_steps": 5, "pace_s": 0.02, "start_noise": 0.0})
    said = []
    for _ in range(6):
        env.h.robot.set_root(torch.tensor([0, 0, 3.0, 1, 0, 0, 0]), torch.tensor([[0, 0, 0, 0, 0, 1.0], [0.0] * 6]))
        info = env.step(torch.zeros(2, 12))[-1]
        said.append(info["success"].tolist())
    assert info["pace"].tolist() == pytest.approx([1.0, 0.0], abs=0.1)
    assert said == [[False, False]] * 4 + [[True, False]] * 2


@pytest.mark.parametrize(("robot", "low", "high"), [("h1", 0.8, 1.2), ("g1", 0.5, 1.0)])
def test_standing_is_between_the_published_heights(robot: str, low: float, high: float) -> None:
    env = made("LeggedStand-v1", 4, robot=robot, config={"joints_std": 0.0})
    assert env.horizon == 1000 and (env.task.config.low, env.task.config.high) == (low, high)
    place = torch.tensor([[0, 0, z, 1, 0, 0, 0] for z in (low - 0.01, low + 0.01, high - 0.01, high + 0.01)])
    env.h.robot.set_root(place)
    env.world.forward()
    assert env.task.evaluate(env.h)["fail"].tolist() == [True, False, False, True]


def test_a_humanoid_has_stood_at_the_end() -> None:
    """Held up where it stands, for a shorter time than in the task."""
    env = made("LeggedStand-v1", 2, config={"joints_std": 0.0})
    place = env.h.robot.root_pose.clone()
    place[1, 2] = 0.5
    said = []
    for _ in range(1000):
        env.h.robot.set_qpos(env.robot.keyframe())
        env.h.robot.set_root(place)
        said.append(env.step(torch.zeros(2, env.single_action_space.shape[0]))[-1]["success"].tolist())
    assert said == [[False, False]] * 999 + [[True, False]]
    noisy = made("LeggedStand-v1", 64)
    beside = noisy.robot.qpos - noisy.robot.keyframe()
    assert beside.std().item() == pytest.approx(0.05, rel=0.1)


@pytest.mark.parametrize("robot", ["h1", "g1"])
def test_the_expert_stands_and_without_it_the_humanoid_falls(robot: str) -> None:
    env = made("LeggedStand-v1", 8, robot=robot)
    expert = WaypointExecutor(env)
    for _ in range(env.horizon):
        info = env.step(expert.act())[-1]
    assert info["success"].sum() >= 7
    env.reset(seed=0)
    for _ in range(150):
        info = env.step(torch.zeros(8, env.single_action_space.shape[0]))[-1]
    assert info["fail"].sum() >= 7
    env.close()
