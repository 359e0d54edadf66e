"""Standing by feedback: the regulator beside costs of plain rollouts, and robots that are pushed."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import manikin
from manikin.math import pose, quat_from_yaw, quat_mul, quat_rotate
from manikin.plan.balance import riccati


def cost(a: np.ndarray, b: np.ndarray, q: np.ndarray, r: np.ndarray, gain: np.ndarray, x: np.ndarray) -> float:
    """What a rollout with u = -gain x costs."""
    total = 0.0
    for _ in range(3000):
        u = -gain @ x
        total += float(x @ q @ x + u @ r @ u)
        x = a @ x + b @ u
    return total


def test_no_other_gain_costs_less() -> None:
    """Of a cart with a pole, pushed 50 times per second."""
    a = np.array([[1, 0.02, 0, 0], [0, 1, -0.014, 0], [0, 0, 1.003, 0.02], [0, 0, 0.32, 1.003]])
    b = np.array([[0.0002], [0.02], [-0.0003], [-0.03]])
    q, r = np.diag([1.0, 0.1, 10.0, 0.1]), np.eye(1) * 0.3
    gain = riccati(a, b, q, r)
    assert np.abs(np.linalg.eigvals(a - b @ gain)).max() < 1
    x, rng = np.array([0.3, 0.0, 0.1, -0.2]), np.random.default_rng(0)
    least = cost(a, b, q, r, gain, x)
    for _ in range(20):
        assert cost(a, b, q, r, gain * (1 + 0.05 * rng.standard_normal(gain.shape)), x) > least


def test_of_one_number_it_is_the_root_of_a_quadratic() -> None:
    """p = q + a^2 p r / (r + b^2 p)."""
    a, b, q, r = 1.2, 0.5, 2.0, 0.7
    c = r - a * a * r - q * b * b
    p = (-c + math.sqrt(c * c + 4 * b * b * q * r)) / (2 * b * b)
    found = riccati(*(np.array([[value]]) for value in (a, b, q, r)))
    assert found.item() == pytest.approx(a * b * p / (r + b * b * p), rel=1e-6)


def standing(num_envs: int, robot: str) -> manikin.Env:
    env = manikin.make(
        "LeggedStand-v1", num_envs, robot=robot, autoreset="disabled", terminate=False, reward="none",
        config={"joints_std": 0.0},
    )  # fmt: skip
    env.reset(seed=0)
    return env


@pytest.mark.parametrize("robot", ["h1", "g1"])
def test_a_push_dies_out_and_without_feedback_the_robot_falls(robot: str) -> None:
    """Forwards, backwards and to both sides, with a thirtieth of its weight for a fifth of a second; a fifth row is not
    pushed and gets the commands that would hold it."""
    env = standing(5, robot)
    mass = sum(link.mass for link in env.robot.arm.links)
    way = torch.tensor([[1.0, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 0]])
    facing = env.robot.root_pose[:, 3:]
    still = env.task.expert(env.h)[4:].clone()
    for k in range(300):
        if k in (50, 60):
            env.robot.push(quat_rotate(facing, way) * (mass * 9.81 / 30) * (k == 50))
        action = env.task.expert(env.h)
        action[4:] = still
        env.step(action.clamp(-1, 1))
    assert env.task.evaluate(env.h)["fail"].tolist() == [False] * 4 + [True]
    assert env.robot.root_velocity[:4, :3].abs().max() < 0.05
    env.close()


def test_place_and_heading_do_not_matter() -> None:
    env = standing(2, "h1")
    start = env.robot.root_pose[:1].clone()
    turn = quat_from_yaw(torch.tensor([2.0]))
    there = pose(quat_rotate(turn, start[:, :3]) + torch.tensor([3.0, -1.0, 0.0]), quat_mul(turn, start[:, 3:]))
    speed = torch.tensor([[0.1, -0.05, 0.02, 0.1, 0.2, -0.1]])
    turned = torch.cat([quat_rotate(turn, speed[:, :3]), speed[:, 3:]], 1)
    env.robot.set_qpos(env.robot.keyframe() + 0.02, qvel=0.1)
    env.robot.set_root(torch.cat([start, there]), torch.cat([speed, turned]))
    env.world.forward()
    one, other = env.task.expert(env.h)
    assert one == pytest.approx(other, abs=1e-4) and one.abs().max() > 0.1
    env.close()
