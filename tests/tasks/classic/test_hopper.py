"""The hopper: its model, rewards beside dm_control's formulas on plain MuJoCo, starts, success, and both devices."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace

import mujoco
import numpy as np
import pytest
import torch

import manikin
from dm_control import tolerance
from manikin.errors import ConfigError
from manikin.math import quat_from_axis_angle
from manikin.robots import arm
from manikin.scene.robot import assemble
from manikin.spec.robot import Base

TASKS = ("HopperStand-v1", "HopperHop-v1")
JOINTS = {  # dm_control's hopper.xml: range [degrees], gear
    "waist": ((-30, 30), 30),
    "hip": ((-170, 10), 40),
    "knee": ((5, 150), 30),
    "ankle": ((-45, 45), 10),
}
CAPSULES = {  # likewise: length and radius [m] of each body's shapes
    "torso": ((0.25, 0.0653), (math.hypot(0.07, 0.01), 0.03)),
    "pelvis": ((0.15, 0.065),),
    "thigh": ((0.33, 0.04),),
    "calf": ((0.32, 0.03),),
    "foot": ((0.25, 0.04),),
}
STANDING = torch.tensor([0.0, -0.3, 0.6, -0.3])


def hopper(task: str, num_envs: int = 2, **options) -> manikin.Env:
    env = manikin.make(
        task, num_envs, **{"autoreset": "disabled", "reward": "dense", "observe": "state_dict", **options}
    )
    env.reset(seed=0)
    return env


def stood(env: manikin.Env, speed: float = 0.0) -> None:
    """Put every row on its foot, moving along x."""
    env.robot.set_qpos(STANDING)
    env.robot.set_root(torch.tensor([0, 0, 0.92, 1, 0, 0, 0.0]), torch.tensor([speed, 0, 0, 0, 0, 0]))
    env.world.forward()


def test_the_robot_is_dm_controls() -> None:
    spec = arm("hopper")
    model = assemble(spec, None).spec.compile()
    assert spec.joints == tuple(JOINTS) and model.nu == 4
    assert spec.effort == tuple(gear for _, gear in JOINTS.values())
    for name, (span, _) in JOINTS.items():
        joint = model.joint(name)
        assert np.allclose(joint.axis, (0, 1, 0)) and np.allclose(np.degrees(joint.range), span, atol=1e-9)
        assert joint.armature == 0.2
    assert all(
        link.joints[0].damping == 0.05 for link in spec.links if link.name in ("pelvis", "thigh", "calf", "foot")
    )
    for name, shapes in CAPSULES.items():
        mass = sum(1000 * math.pi * r**2 * (length + 4 / 3 * r) for length, r in shapes)
        assert float(model.body(name).mass[0]) == pytest.approx(mass, rel=1e-9)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    assert np.allclose(data.body("foot").xpos, (0, 0, -0.05 - 0.2 - 0.33 - 0.32))
    assert model.body("toe").mass[0] == 0
    foot = [data.geom_xpos[g] for g in range(model.ngeom) if model.body(model.geom_bodyid[g]).name in ("foot", "toe")]
    assert len(foot) == 2 and np.allclose(np.sort([p[0] for p in foot]), (0.015, 0.14))  # middles of heel and toe


def test_the_root_stays_in_its_plane_and_nothing_holds_it() -> None:
    env = hopper("HopperStand-v1", 4)
    root = [env.world.scene.model.joint(f"robot/{name}") for name in ("root_x", "root_z", "root_pitch")]
    assert [joint.damping[0] for joint in root] == [0] * 3 and not any(j.limited[0] for j in root)
    place = torch.tensor([0.3, 5.0, 3.0, *quat_from_axis_angle(torch.tensor([0.0, 1, 0]), torch.tensor(0.7)).tolist()])
    env.robot.set_root(place, torch.tensor([1.0, 9, 2, 9, 0.5, 9]))
    env.world.forward()
    pose, velocity = env.robot.root_pose[0], env.robot.root_velocity[0]
    assert torch.allclose(pose, torch.tensor([0.3, 0.0, 3.0, *place[3:].tolist()]), atol=1e-6)
    assert torch.allclose(velocity, torch.tensor([1.0, 0, 2, 0, 0.5, 0]))
    before = env.robot.centre_velocity.clone()
    env.step(torch.zeros(4, 4))
    after = env.robot.centre_velocity
    assert torch.allclose(after[:, 2], before[:, 2] - 9.81 * 0.04, atol=2e-3)  # it flies: no force but its weight's
    assert torch.allclose(after[:, 0], before[:, 0], atol=2e-3)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("maniskill", [False, True])
def test_it_moves_and_is_rewarded_as_published(task: str, maniskill: bool) -> None:
    """By dm_control; by ManiSkill3 with heights of the links' origins and without a share for small actions."""
    env = hopper(task, config={"published_reward": maniskill})
    stood(env, speed=1.4)
    env.step(torch.zeros(2, 4))  # so that plain MuJoCo starts where a step has ended
    model, data = env.model_data(0)
    limit, generator, rewarded = np.array([gear for _, gear in JOINTS.values()]), torch.Generator().manual_seed(1), []
    for _ in range(20):
        action = torch.rand(2, 4, generator=generator) * 2 - 1
        seen, reward, *_ = env.step(action)
        data.ctrl[:] = action[0].double().numpy() * limit
        for _ in range(8):
            mujoco.mj_step(model, data)
        now = copy(data)
        mujoco.mj_kinematics(model, now)
        mujoco.mj_comPos(model, now)
        mujoco.mj_comVel(model, now)
        mujoco.mj_subtreeVel(model, now)
        speed = now.subtree_linvel[1]
        height = now.body("robot/torso").xipos[2] - now.body("robot/foot").xipos[2]
        assert seen["policy"]["height"][0].item() == pytest.approx(height, abs=1e-5)
        assert env.robot.centre_velocity[0].numpy() == pytest.approx(speed, abs=1e-5)
        if maniskill:
            height = now.body("robot/torso").xpos[2] - now.body("robot/foot").xpos[2]
        stands = tolerance(height, 0.6, 2, 0, "gaussian", 0.1)
        if task == "HopperHop-v1":
            wanted = stands * tolerance(speed[0], 2, math.inf, 1, "linear", 0.5)
        else:
            small = np.mean([tolerance(a, 0, 0, 1, "quadratic", 0.0) for a in action[0].numpy()])
            wanted = stands if maniskill else stands * (4 + small) / 5
        assert reward[0].item() == pytest.approx(wanted, abs=2e-5)
        rewarded.append(wanted)
    assert max(rewarded) > 0.1 and len(set(rewarded)) > (1 if maniskill else 3)


def test_a_hopper_may_stand_by_one_rule_and_not_by_the_other() -> None:
    """Half crouched: 0.6 m lies between both heights."""
    paid = []
    for published in (False, True):
        env = hopper("HopperStand-v1", config={"published_reward": published})
        env.robot.set_qpos(torch.tensor([0.0, -1.3, 2.08, -0.5]))
        env.robot.set_root(torch.tensor([0, 0, 1.2, 1, 0, 0, 0.0]))
        env.world.forward()
        assert env.task.evaluate(env.h)["upright"].tolist() == [True, True]
        paid.append(env.task.reward(env.h, {}, torch.zeros(2, 4))["stand"].tolist())
    assert paid == [[1.0, 1.0], [0.0, 0.0]]


def test_starts_are_all_over_the_ranges_and_touch_nothing() -> None:
    env = hopper("HopperStand-v1", 512)
    low, high = (torch.tensor([JOINTS[name][0][k] for name in JOINTS]) * math.pi / 180 for k in (0, 1))
    low[1] = math.radians(-144)
    share = (env.robot.qpos - low) / (high - low)
    assert share.min() >= -1e-6 and share.max() <= 1 + 1e-6
    assert (share.amin(0) < 0.02).all() and (share.amax(0) > 0.98).all()
    turn = env.robot.root_pose
    pitch = 2 * torch.atan2(turn[:, 5], turn[:, 3])
    assert pitch.min() < -3.0 and pitch.max() > 3.0 and (turn[:, 2] == 1.0).all()
    deepest = 0.0
    for row in range(64):
        model, data = env.model_data(row)
        mujoco.mj_forward(model, data)
        deepest = min([deepest, *(c.dist for c in data.contact)])
    assert deepest > -0.03  # the toe may begin a little in the floor
    assert not env.task.evaluate(env.h)["success"].any()


def test_standing_counts_once_it_lasted() -> None:
    env = hopper("HopperStand-v1", 1, config={"hold_steps": 5})
    stood(env)
    said = [env.step(torch.zeros(1, 4))[-1] for _ in range(60)]
    success = [bool(info["success"]) for info in said]
    upright = [bool(info["upright"]) for info in said]
    assert success[:5] == [False] * 4 + [True]
    fell = upright.index(False)  # without torques it falls
    assert not any(success[fell : fell + 5])


def test_hopping_counts_by_its_mean_speed() -> None:
    env = hopper("HopperHop-v1", 3, config={"hold_steps": 1})
    env.h.pace.set(torch.tensor([1.75, 1.85, 1.85]))
    assert env.task.well(env.h).tolist() == [False, True, True]  # 0.9 of 2 m/s
    env.h.well_for.set(torch.tensor([0.0, 5.0, 5.0]))
    stood(env)
    assert env.task.evaluate(env.h)["success"].tolist() == [False, True, True]
    env.robot.set_qpos(torch.tensor([0.0, -2.0, 2.5, 0.0]))  # crouching
    env.world.forward()
    assert not env.task.evaluate(env.h)["success"].any()


def test_hopping_may_be_paid_for_beyond_the_wanted_speed() -> None:
    plain, paid = (hopper("HopperHop-v1", 4, config=c) for c in ({}, {"paid_speed": 3.0}))
    speeds, rewards = torch.tensor([-1.0, 1.5, 2.5, 4.0]), []
    for env in (plain, paid):
        for crouches in (False, True):
            stood(env)
            if crouches:
                env.robot.set_qpos(torch.tensor([0.0, -2.0, 2.5, 0.0]))
            env.robot.set_root(env.robot.root_pose.clone(), speeds[:, None] * torch.tensor([1.0, 0, 0, 0, 0, 0]))
            env.world.forward()
            rewards.append(env.task.reward(env.h, {}, torch.zeros(4, 4))["hop"])
    share = torch.tensor([0.0, 0.5, 2.5 / 3, 1.0])  # of 3 m/s, as all of the hopper moves at the same speed
    assert torch.allclose(rewards[0], (speeds / 2).clamp(0, 1), atol=1e-5) and not rewards[1].any()
    assert torch.allclose(rewards[2], share, atol=1e-5) and not rewards[3].any()
    paid.h.pace.set(torch.tensor([1.75, 1.85, 2.9, 3.1]))
    assert paid.task.well(paid.h).tolist() == [False, True, True, True]  # success asks for what it did


def test_the_cameras_go_along_and_do_not_turn() -> None:
    env = hopper("HopperStand-v1", 1, observe="state_dict")
    place = torch.tensor([7.0, 0, 0.92, 0.8, 0, 0.6, 0])
    env.robot.set_root(place)
    env.step(torch.zeros(1, 4))
    env.step(torch.zeros(1, 4))  # a camera is one step behind
    model, data = env.model_data(0)
    mujoco.mj_forward(model, data)
    at = data.body("view")
    assert at.xpos[0] == pytest.approx(7.0, abs=0.05) and at.xpos[1:].tolist() == [0, 0]
    assert at.xquat.tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("task", TASKS)
def test_warp_agrees(task: str) -> None:
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    envs = [hopper(task, 2, device=device) for device in ("cpu", "warp:cpu")]
    for env in envs:
        stood(env, speed=1.0)
    generator = torch.Generator().manual_seed(2)
    for _ in range(5):
        action = torch.rand(2, 4, generator=generator) * 2 - 1
        (one, here, *_), (other, there, *_) = (env.step(action) for env in envs)
        assert here.min() > 0 and torch.allclose(here, there.cpu(), atol=2e-3)
        for name, value in one["policy"].items():
            assert torch.allclose(value, other["policy"][name].cpu(), atol=2e-3, rtol=1e-3), name


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(ConfigError, match=r"a base that is vertical has three joints, not \('x',\)"):
        Base(kind="vertical", joints=("x",))
    with pytest.raises(ConfigError, match=r"HopperHop-v1 pays for a speed above 0 m/s, but paid_speed is 0\.0"):
        manikin.make("HopperHop-v1", config={"paid_speed": 0.0})
    with pytest.raises(ConfigError, match="HopperStand-v1 needs a robot with feet"):
        manikin.make("HopperStand-v1", robot="panda")
    with pytest.raises(manikin.errors.SceneError, match="the spec says waist, hip, knee, ankle"):
        assemble(replace(arm("hopper"), base=Base()), None)
