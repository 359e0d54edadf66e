"""ManiSkill3's tasks for two robots: solved by their experts; rewards and success written here a second time, stage by
stage as published, from MuJoCo's own state."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import manikin
from manikin.author.contracts import any_batch_size
from manikin.author.under_test import TaskUnderTest, calls_of_a_step
from manikin.env.registry import task_class
from manikin.errors import ConfigError
from manikin.plan.executor import WaypointExecutor
from manikin.toolkit import base_yaw, top_down

ROWS = 4
TASKS = ("TwoRobotPickCube-v2", "TwoRobotStackCube-v2")


@functools.cache
def _episodes(task: str, policy: str) -> SimpleNamespace:
    env = manikin.make(task, ROWS, autoreset="disabled", terminate=False, reward="dense")
    env.reset(seed=1000)
    expert, rng = WaypointExecutor(env), torch.Generator().manual_seed(1)
    out = SimpleNamespace(env=env, success=[], seen=[])
    for k in range(120 if policy == "expert" else 15):
        random = torch.rand(ROWS, env.single_action_space.shape[0], generator=rng) * 2 - 1
        _, reward, _, _, info = env.step(expert.act() if policy == "expert" else random)
        out.success.append(info["success"])
        held = [grasp.value for grasp in env.h.grasps]
        for row in range(ROWS):
            if k % 2 == row % 2:
                state = _state(env, row, [bool(h[row]) for h in held])
                out.seen.append((state, float(reward[row]), bool(info["success"][row])))
    return out


def _state(env: manikin.Env, row: int, held: list[bool]) -> SimpleNamespace:
    model, data = env.world.data(row)
    arms = []
    for robot in env.robots:
        body = data.body(robot.prefix + robot.model.tcp_body)
        fingers = [data.body(robot.prefix + f.body).xpos.copy() for f in robot.gripper.fingers]
        joints = [model.joint(robot.prefix + j) for j in robot.arm.joints]
        q = np.array([data.qpos[j.qposadr[0]] for j in joints])
        v = np.array([data.qvel[j.dofadr[0]] for j in joints])
        arms.append(SimpleNamespace(tcp=body.xpos.copy(), fingers=fingers, q=q, v=v, rest=robot.arm.keyframes["rest"]))
    pos = {model.body(i).name: data.xpos[i].copy() for i in range(model.nbody)}
    return SimpleNamespace(arms=arms, pos=pos, held=held, goal=env.h.goal.value[row].numpy().astype(float))


def _near(k: float, d: Any) -> float:
    return 1.0 - np.tanh(k * float(np.linalg.norm(d)))


def _pick(s: Any) -> tuple[float, bool]:
    (one, two), cube, goal = s.arms, s.pos["cube"], s.goal
    reward = (_near(5, cube - one.tcp) + _near(5, max(0.05 - cube[1], 0))) / 2
    if cube[1] >= 0:
        a, b = two.fingers
        reward = 2 + _near(5, cube - two.tcp) + (_near(5, a[2] - b[2]) + _near(5, np.linalg.norm(a - b) - 0.07)) / 2
        reward += _near(5, one.tcp[1] + 0.2)
    away = np.linalg.norm(goal - two.tcp)
    bring = 2 * _near(5, away) + _near(1, one.q - one.rest)
    if s.held[1]:
        reward = 12 + 2 * bring if away < 0.25 else 8 + bring
    placed = np.linalg.norm(goal - cube) <= 0.025
    if placed:
        reward = 19 + (_near(5, one.v) + _near(5, two.v)) / 2
    success = bool(placed and np.abs(two.v).max() <= 0.2)
    return (21.0 if success else reward), success


def _stack(s: Any) -> tuple[float, bool]:
    (one, two), a, b, goal = s.arms, s.pos["blue"], s.pos["green"], s.goal
    reward = ((_near(5, a - one.tcp) + _near(5, b + np.array([0, 0.025, 0]) - two.tcp)) / 2 + s.held[0]) / 2
    placed = np.linalg.norm((b - goal)[:2]) < 0.06
    if s.held[0]:
        reward = 2 + (_near(5, (b - goal)[:2]) + 1) / 2
        if placed:
            reward = 4 + 2 * _near(5, b + np.array([0, 0, 0.04]) - a) + _near(5, two.tcp[1] - 0.2)
    offset = a - b
    stacked = np.linalg.norm(offset[:2]) <= np.hypot(0.02, 0.02) + 0.005 and abs(offset[2] - 0.04) <= 0.005
    if stacked and placed:
        widths = [np.linalg.norm(np.subtract(*arm.fingers)) / 0.08 for arm in s.arms]
        reward = 8 + sum(w if held else 1.0 for w, held in zip(widths, s.held, strict=True)) / 2
    success = bool(stacked and placed and not any(s.held))
    return (10.0 if success else reward), success


REFERENCE = {"TwoRobotPickCube-v2": (_pick, 21.0), "TwoRobotStackCube-v2": (_stack, 10.0)}


@pytest.mark.parametrize("task", TASKS)
def test_expert_solves_and_chance_does_not(task: str) -> None:
    assert torch.stack(_episodes(task, "expert").success)[-1].all()
    assert not torch.stack(_episodes(task, "random").success).any()


@pytest.mark.parametrize("policy", ["expert", "random"])
@pytest.mark.parametrize("task", TASKS)
def test_reward_and_success_are_the_published_ones(task: str, policy: str) -> None:
    run, (reference, most) = _episodes(task, policy), REFERENCE[task]
    assert (run.env.horizon, run.env.control_hz, run.env.task.reward_max) == (200, 20.0, most)
    stages = set()
    for state, reward, success in run.seen:
        expected, solved = reference(state)
        assert success == solved
        assert reward == pytest.approx(expected, abs=3e-4)
        stages.add(int(expected))
    if policy == "expert":
        assert len(stages) >= 4 and most in stages


def test_cube_begins_where_only_the_first_arm_reaches_and_its_goal_where_only_the_second_does() -> None:
    env = manikin.make("TwoRobotPickCube-v2", 64)
    env.reset(seed=0)
    cube, goal = env.h.cube.pos, env.h.goal.value
    assert (cube[:, :2] >= torch.tensor([-0.05, -0.2])).all() and (cube[:, :2] <= torch.tensor([0.05, -0.1])).all()
    assert (goal >= torch.tensor([-0.05, 0.1, 0.02])).all() and (goal <= torch.tensor([0.05, 0.2, 0.32])).all()
    assert (goal.std(0) > torch.tensor([0.02, 0.02, 0.06])).all()
    for robot, near, far in zip(env.robots, (cube, goal), (goal, cube), strict=True):
        reach = robot.base_pose[:2]
        assert (torch.linalg.vector_norm(near[:, :2] - reach, dim=1) < 0.68).all()
        assert (torch.linalg.vector_norm(far[:, :2] - reach, dim=1) > 0.85 - 1e-6).all()


@pytest.mark.parametrize("task", TASKS)
def test_arms_are_noisy_each_on_its_own_and_face_each_other(task: str) -> None:
    env = manikin.make(task, 3)
    env.reset(seed=0)
    one, two = env.robots
    assert not torch.allclose(one.arm_qpos, two.arm_qpos, atol=1e-3)
    assert base_yaw(one) == pytest.approx(-base_yaw(two)) == pytest.approx(np.pi / 2)
    # a grasp is turned least from where each arm faces
    for robot in env.robots:
        quat = top_down(torch.tensor([[1.0, 0.0, 0.0, 0.0]]).expand(3, 4), robot)
        dot = (quat * robot.tcp_quat).sum(1).abs()
        assert (dot > 0.99).all()


@pytest.mark.parametrize("task", TASKS)
def test_a_step_is_cheap_and_rows_do_not_depend_on_one_another(task: str) -> None:
    calls = calls_of_a_step(manikin.make(task, num_envs=1, autoreset="disabled"))
    assert calls.count <= 230
    any_batch_size(TaskUnderTest(task_class(task), {}, 3, range(3), None))


def test_each_robot_may_have_a_controller_of_its_own() -> None:
    """The first arm, moved by torques, and the second, by positions, do what each does beside its own kind."""
    mixed = manikin.make(
        "TwoRobotPickCube-v2", 2, control=("osc_pose", "joint_pos"), autoreset="disabled", physics_hz=200
    )
    assert mixed.controller.name == "osc_pose & joint_pos" == mixed.fingerprint()["control"]
    names = [dim.name for dim in mixed.controller.card.dims]
    assert names == [
        *(f"robot0/{n}" for n in ("x", "y", "z", "rx", "ry", "rz", "gripper")),
        *(f"robot1/joint{i}" for i in range(1, 8)),
        "robot1/gripper",
    ]
    again = manikin.make("TwoRobotPickCube-v2", 2, control="osc_pose & joint_pos", autoreset="disabled", physics_hz=200)
    actions = torch.rand(10, 2, len(names), generator=torch.Generator().manual_seed(0)) * 0.4 - 0.2
    seen = []
    for env in (mixed, again):
        env.reset(seed=0)
        for action in actions:
            observation, *_ = env.step(action)
        seen.append(observation)
    assert torch.equal(*seen)
    for control, robot, part in (("osc_pose", 0, slice(0, 7)), ("joint_pos", 1, slice(7, 15))):
        alike = manikin.make("TwoRobotPickCube-v2", 2, control=control, autoreset="disabled", physics_hz=200)
        alike.reset(seed=0)
        for action in actions:
            alike.step(torch.cat([action[:, part]] * 2, 1))
        torch.testing.assert_close(alike.robots[robot].arm_qpos, mixed.robots[robot].arm_qpos, atol=1e-4, rtol=0)


def test_controllers_are_one_for_all_or_one_each() -> None:
    with pytest.raises(ConfigError, match="3 controllers for 2 robots"):
        manikin.make("TwoRobotPickCube-v2", 1, control=("joint_pos",) * 3)
    with pytest.raises(ConfigError, match="2 controllers for 1 robot:"):
        manikin.make("PickCube-v2", 1, control="joint_pos & joint_pos")
