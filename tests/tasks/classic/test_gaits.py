"""Walkers of the control suite: rewards beside dm_control's formulas on plain MuJoCo, success, and both devices."""

from __future__ import annotations

import math
from copy import copy

import mujoco
import numpy as np
import pytest
import torch

import manikin
from dm_control import tolerance
from manikin.errors import ConfigError, SceneError
from manikin.plan.executor import WaypointExecutor
from manikin.tasks.classic import stride

TASKS = ("AntWalk-v1", "AntRun-v1", "HumanoidStand-v1", "HumanoidWalk-v1", "HumanoidRun-v1")
SPEED = {"AntWalk-v1": 0.5, "AntRun-v1": 4.0, "HumanoidWalk-v1": 1.0, "HumanoidRun-v1": 10.0}


def gait(task: str, num_envs: int = 2, **options) -> manikin.Env:
    env = manikin.make(
        task, num_envs, **{"autoreset": "disabled", "reward": "dense", "observe": "state_dict", **options}
    )
    env.reset(seed=0)
    return env


def small(action: np.ndarray) -> float:
    return (4 + float(np.mean([tolerance(a, 0, 0, 1, "quadratic", 0.0) for a in action]))) / 5


def published(task: str, height: float, up: float, speed: np.ndarray, action: np.ndarray) -> float:
    """ManiSkill3's ant, and dm_control's humanoid, from the torso's height and the z of its z axis."""
    inf = math.inf
    if task.startswith("Ant"):
        wanted = SPEED[task]
        moves = tolerance(speed[0], wanted, inf, wanted, "linear", 0.0)
        return moves * tolerance(height, 0.55, inf, 0.55 / 4, "gaussian", 0.1) * small(action)
    stands = tolerance(height + 0.19 * up, 1.4, inf, 0.35, "gaussian", 0.1)
    stands *= tolerance(up, 0.9, inf, 1.9, "linear", 0.0) * small(action)
    if task == "HumanoidStand-v1":
        return stands * sum(tolerance(v, 0, 0, 2, "gaussian", 0.1) for v in speed[:2]) / 2
    moves = tolerance(math.hypot(*speed[:2]), SPEED[task], inf, SPEED[task], "linear", 0.0)
    return stands * (5 * moves + 1) / 6


def maniskill(task: str, height: float, up: float, speed: np.ndarray, action: np.ndarray) -> float:
    """ManiSkill3's humanoid that walks or runs."""
    if task == "HumanoidRun-v1":
        return 0.1 * (5 + 1.25 * speed[0] - 0.1 * float(np.dot(action, action)))
    paid = tolerance(height + 0.19 * up, 1.4, math.inf, 0.35, "gaussian", 0.1) * small(action)
    paid *= tolerance(up, 0.9, math.inf, 1.9, "linear", 0.0) * tolerance(speed[0], 1, math.inf, 1, "linear", 0.0)
    return (1 + paid) / 2


@pytest.mark.parametrize(
    ("task", "config"),
    [*((task, {}) for task in TASKS), *((f"Humanoid{w}-v1", {"published_reward": True}) for w in ("Walk", "Run"))],
)
def test_a_walker_moves_and_is_rewarded_as_published(task: str, config: dict[str, bool]) -> None:
    env, formula = gait(task, config=config), maniskill if config else published
    model, data = env.model_data(0)
    limit = np.array([dim.scale for dim in env.controller.card.dims])
    assert limit.tolist() == list(env.robot.arm.effort or env.robot.arm.gains.force)
    generator, rewarded = torch.Generator().manual_seed(1), []
    for _ in range(25):
        action = torch.rand(2, len(limit), generator=generator) * 2 - 1
        seen, reward, *_ = env.step(action)
        data.ctrl[:] = action[0].double().numpy() * limit
        for _ in range(5):
            mujoco.mj_step(model, data)
        now = copy(data)  # whose forces are not found anew
        mujoco.mj_kinematics(model, now)
        mujoco.mj_comPos(model, now)
        mujoco.mj_comVel(model, now)
        mujoco.mj_subtreeVel(model, now)
        speed, torso = now.subtree_linvel[1].copy(), now.body("robot/torso")
        assert env.robot.centre_velocity[0].numpy() == pytest.approx(speed, abs=1e-5)
        wanted = formula(task, torso.xpos[2], torso.xmat[8], speed, action[0].numpy())
        assert reward[0].item() == pytest.approx(wanted, abs=2e-5)
        rewarded.append(wanted)
    assert max(rewarded) > 0.01  # so that the formulas were compared
    frame = torso.xmat.reshape(3, 3)
    assert seen["policy"]["up"][0].numpy() == pytest.approx(frame[2], abs=1e-6)
    assert seen["policy"]["ahead"][0].numpy() == pytest.approx(frame[0], abs=1e-6)
    assert seen["policy"]["centre_velocity"][0].numpy() == pytest.approx(frame.T @ speed, abs=1e-5)
    assert seen["policy"]["height"][0].item() == pytest.approx(torso.xpos[2], abs=1e-6)


@pytest.mark.parametrize("task", ["AntRun-v1", "HumanoidWalk-v1"])
def test_the_cameras_go_along_and_do_not_turn(task: str) -> None:
    env = gait(task, 1)
    env.robot.set_root(torch.tensor([7.0, -2.0, 1.2, 0.8, 0, 0, 0.6]))
    env.step(torch.zeros(1, env.single_action_space.shape[0]))
    env.step(torch.zeros(1, env.single_action_space.shape[0]))  # a camera is one step behind
    model, data = env.model_data(0)
    mujoco.mj_forward(model, data)
    at = data.body("view")
    assert at.xpos[:2] == pytest.approx([7.0, -2.0], abs=0.05) and at.xpos[2] == 0
    assert at.xquat.tolist() == [1, 0, 0, 0]
    for camera in ("base_camera", "human_camera"):
        away = data.camera(camera).xpos - at.xpos
        assert away == pytest.approx(env.task.eye, abs=1e-6)


def test_standing_counts_once_it_lasted() -> None:
    """Without torques the humanoid stands for half a second, then falls."""
    env = gait("HumanoidStand-v1", config={"hold_steps": 10})
    still = torch.zeros(2, 21)
    said = [env.step(still)[-1] for _ in range(60)]
    success = torch.stack([info["success"] for info in said])[:, 0].tolist()
    assert success[:11] == [False] * 9 + [True] * 2 and not success[-1]
    upright = torch.stack([info["upright"] for info in said])[:, 0].tolist()
    fell = upright.index(False)
    assert success[fell] is False and not any(upright[fell:])
    for _ in range(60):
        env.step(still)
    assert env.task.evaluate(env.h)["fail"].all()  # the torso is below 0.7 m


def test_walking_counts_by_its_mean_speed() -> None:
    env = gait("AntWalk-v1", 4, config={"hold_steps": 1})
    env.h.pace.set(torch.tensor([0.44, 0.46, 0.46, 5.0]))
    assert env.task.well(env.h).tolist() == [False, True, True, True]  # 0.9 of 0.5 m/s
    env.h.robot.set_root(torch.tensor([0, 0, 0.38, 1, 0, 0, 0.0]))
    env.world.forward()
    assert not env.task.upright(env.h).any()  # below 0.7 of 0.55 m
    env.h.robot.set_root(torch.tensor([0, 0, 0.6, 0, 1, 0, 0.0]))  # on its back
    env.world.forward()
    assert not env.task.upright(env.h).any()


def test_the_mean_speed_follows_with_the_time_constant() -> None:
    env = gait("AntWalk-v1", 1, config={"pace_s": 0.5})
    pace = 0.0
    for _ in range(20):
        env.step(torch.ones(1, 8))
        pace += (float(env.robot.centre_velocity[0, 0]) - pace) / (0.5 * 40)
        assert env.h.pace.value.item() == pytest.approx(pace, abs=1e-5)


def test_starts_differ_by_no_more_than_the_noise() -> None:
    env = gait("AntWalk-v1", 256)
    away = env.robot.qpos - env.robot.keyframe()
    for value in (away, env.robot.qvel, env.robot.root_velocity):
        assert 0.0095 < value.max() <= 0.01 and -0.01 <= value.min() < -0.0095


@pytest.mark.parametrize("task", ["AntRun-v1", "HumanoidWalk-v1", "CartpoleSwingUp-v1"])
def test_warp_agrees(task: str) -> None:
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    envs = [gait(task, 2, device=device) for device in ("cpu", "warp:cpu")]
    generator = torch.Generator().manual_seed(2)
    for _ in range(5):
        action = torch.rand(2, envs[0].single_action_space.shape[0], generator=generator) * 2 - 1
        (one, here, *_), (other, there, *_) = (env.step(action) for env in envs)
        assert torch.allclose(here, there.cpu(), atol=2e-3)
        for name, value in one["policy"].items():
            assert torch.allclose(value, other["policy"][name].cpu(), atol=2e-3, rtol=1e-3), name


def test_swinging_up_is_held_at_the_top() -> None:
    env = gait("CartpoleSwingUp-v1", 8)
    assert (env.h.pole.qpos[:, 0] - math.pi).abs().max() < 0.05
    expert, steady = WaypointExecutor(env), torch.zeros(8)
    for _ in range(env.horizon):
        action = expert.act()
        assert action.abs().max() <= 1
        info = env.step(action)[-1]
        angle, place = env.h.pole.qpos[:, 0], env.robot.qpos[:, 0]
        steady = (steady + 1) * ((torch.cos(angle) >= 0.995) & (place.abs() <= 0.25))
        assert info["success"].tolist() == (steady >= 200).tolist()
    assert info["success"].all()


def test_the_humanoid_stands_by_feedback() -> None:
    """For all of its time, with nearly the whole reward; without torques it falls, see above."""
    env = gait("HumanoidStand-v1", 4)
    expert, paid = WaypointExecutor(env), torch.zeros(4)
    for _ in range(env.horizon):
        _, reward, *_, info = env.step(expert.act())
        paid += reward
    assert info["success"].all() and info["upright"].all() and paid.min() > 0.98 * env.horizon


def test_the_ant_bounds_and_stays_on_its_course() -> None:
    """For ten seconds, at about the speed that is asked for, and where a row tumbles it goes on."""
    env = gait("AntRun-v1", 6)
    env.reset(seed=100)
    expert, before, won = WaypointExecutor(env), env.robot.root_pose[:, :2].clone(), torch.zeros(6, dtype=torch.bool)
    for _ in range(400):
        action = expert.act()
        assert action.shape == (6, 8) and action.abs().max() <= 1
        won |= env.step(action)[-1]["success"]
    assert won.sum() >= 5
    ahead, aside = (env.robot.root_pose[:, :2] - before).unbind(1)
    assert (ahead / (400 / 40)).median() > 0.8 * SPEED["AntRun-v1"]
    assert (aside.abs() < 0.25 * ahead).sum() >= 5


def test_the_humanoid_walks_on() -> None:
    """At the speed that is asked for, and each row as it would alone."""
    env, alone = gait("HumanoidWalk-v1", 6), gait("HumanoidWalk-v1", 1)
    env.reset(seed=100), alone.reset(seed=102)
    expert, other, before = WaypointExecutor(env), WaypointExecutor(alone), env.robot.root_pose[:, :2].clone()
    won = torch.zeros(6, dtype=torch.bool)
    for k in range(320):
        action = expert.act()
        assert action.shape == (6, 21) and action.abs().max() <= 1
        if k < 40:
            one = other.act()
            assert torch.equal(action[2:3], one)
            alone.step(one)
        won |= env.step(action)[-1]["success"]
    assert won.all()
    assert (env.robot.root_pose[:, :2] - before).norm(dim=1).min() > 0.8 * 320 / 40


@pytest.mark.parametrize("part", ["FORWARD_PLACE", "OUTWARD_PLACE"])
def test_the_place_of_each_step_is_what_keeps_the_humanoid_up(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stride, part, 0.0)
    env = gait("HumanoidWalk-v1", 2)
    expert = WaypointExecutor(env)
    for _ in range(160):
        info = env.step(expert.act())[-1]
    assert not info["upright"].any()


def test_the_stride_is_the_same_in_a_mirror() -> None:
    """Half a round later, with the left and the right leg exchanged, in the plane that parts them."""
    n, generator = 32, torch.Generator().manual_seed(3)
    joints, rates, velocity, turns = (torch.rand(n, k, generator=generator) - 0.5 for k in (21, 21, 3, 3))
    up = torch.nn.functional.normalize(velocity * 0.4 + torch.tensor([0, 0, 1.0]), dim=1)
    time = torch.rand(n, generator=generator)
    order = [*range(3), *range(9, 15), *range(3, 9), *range(18, 21), *range(15, 18)]
    leg, arm = [1, 1, 1, 1, 1, -1], [-1, -1, 1]
    sign = torch.tensor([-1, 1, -1, *leg, *leg, *arm, *arm], dtype=torch.float32)
    aside, about = torch.tensor([1, -1, 1.0]), torch.tensor([-1, 1, -1.0])

    def mirror(values: torch.Tensor) -> torch.Tensor:
        return values[:, order] * sign

    here = stride.stride(time, joints, rates, up, velocity, turns)
    there = stride.stride(
        time + stride.STEP, mirror(joints), mirror(rates), up * aside, velocity * aside, turns * about
    )
    assert torch.allclose(mirror(here), there, atol=1e-3) and here.abs().max() > 10


def test_a_step_knows_how_far_the_middle_is_beyond_the_foot() -> None:
    """Beside MuJoCo's centre of mass and ankles, while the humanoid walks."""
    env = gait("HumanoidWalk-v1", 1)
    model, data = env.model_data(0)
    expert, missed, spread = WaypointExecutor(env), [], []
    for k in range(80):
        env.step(expert.act())
        if k % 4:
            continue
        data.qpos[:] = env.model_data(0)[1].qpos
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        frame = data.body("robot/torso").xmat.reshape(3, 3)
        ahead = np.array([frame[0, 0], frame[1, 0]]) / math.hypot(frame[0, 0], frame[1, 0])
        pitch, roll = (torch.tensor([math.atan2(*pair)]) for pair in ((-frame[2, 0], frame[2, 2]), frame[2, 1:]))
        joints = env.robot.arm_qpos
        for side, name in ((1.0, "right"), (-1.0, "left")):
            _, stand = stride.legs(torch.tensor([side > 0]), joints)
            told = stride.beyond(torch.tensor([side]), pitch, roll, pitch + joints[:, 1], roll + joints[:, 2], stand)
            away = (data.body("robot/torso").subtree_com - data.body(f"robot/{name}_foot").xpos)[:2]
            true = np.array([ahead @ away, np.array([-ahead[1], ahead[0]]) @ away])
            missed.append(np.array([float(value) for value in told]) - true)
            spread.append(true)
    assert np.abs(missed).max() < 0.08 and np.ptp(spread, axis=0).min() > 0.15


def test_what_a_walker_needs_is_said() -> None:
    with pytest.raises(ConfigError, match="AntWalk-v1 needs a robot with feet"):
        manikin.make("AntWalk-v1", robot="panda")
    env = manikin.make("PickCube-v2", reward="none")
    env.reset(seed=0)
    with pytest.raises(SceneError, match="measures_centre=True"):
        _ = env.robot.centre_velocity
