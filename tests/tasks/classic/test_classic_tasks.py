"""Tasks without an arm: physics, starts and rewards are those of the published figures, written here once more."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
import torch

import manikin
from dm_control import tolerance
from manikin.errors import ConfigError, UnknownNameError
from manikin.plan.executor import WaypointExecutor
from manikin.robots import arm, arms, machines, register, robots

# dm_control's cartpole.xml, but for the integrator
CARTPOLE = """
<mujoco><option timestep="0.01" integrator="implicitfast"/><worldbody>
  <body pos="0 0 1">
    <joint name="slider" type="slide" axis="1 0 0" limited="true" range="-1.8 1.8" damping="5e-4"/>
    <geom type="box" size="0.2 0.15 0.1" mass="1" contype="0" conaffinity="0"/>
    <body>
      <joint name="hinge" axis="0 1 0" damping="2e-6"/>
      <geom type="capsule" fromto="0 0 0 0 0 1" size="0.045" mass=".1" contype="0" conaffinity="0"/>
    </body>
  </body></worldbody>
  <actuator><motor joint="slider" gear="10" ctrllimited="true" ctrlrange="-1 1"/></actuator>
</mujoco>"""


def cartpole(num_envs: int = 4, **options) -> manikin.Env:
    options = {"autoreset": "disabled", "reward": "dense", "observe": "state_dict", **options}
    env = manikin.make("CartpoleBalance-v1", num_envs, **options)
    env.reset(seed=0)
    return env


def published(x: float, angle: float, rate: float, action: float) -> float:
    upright = (math.cos(angle) + 1) / 2
    centred = (1 + tolerance(x, 0, 0, 2, "gaussian", 0.1)) / 2
    calm = (4 + tolerance(action, 0, 0, 1, "quadratic", 0)) / 5
    slow = (1 + tolerance(rate, 0, 0, 5, "gaussian", 0.1)) / 2
    return upright * calm * slow * centred


def test_cartpole_moves_and_is_rewarded_as_published():
    env = cartpole()
    model = mujoco.MjModel.from_xml_string(CARTPOLE)
    plain = [mujoco.MjData(model) for _ in range(4)]
    start = torch.cat([env.robot.qpos, env.h.pole.qpos, env.robot.qvel, env.h.pole.qvel], 1)
    assert (start[:, 0].abs() < 0.1).all() and (start[:, 1].abs() < 0.034).all()
    for data, row in zip(plain, env.world.save().state, strict=True):  # time, positions, velocities; exact
        data.qpos[:], data.qvel[:] = row[1:3], row[3:5]
    moves = torch.rand(130, 4, 1, generator=torch.Generator().manual_seed(0)) * 2 - 1
    moves[40:, :2] = 1.0  # two carts run into the end of the rail
    for action in moves:
        seen, reward, *_ = env.step(action)
        for i, data in enumerate(plain):
            data.ctrl[0] = action[i, 0]
            mujoco.mj_step(model, data)
            wanted = published(*data.qpos, data.qvel[1], float(action[i, 0]))
            assert reward[i].item() == pytest.approx(wanted, abs=1e-5)
    state = env.world.save().state
    assert np.abs(state[:, 1:3] - [data.qpos for data in plain]).max() < 1e-6
    assert np.abs(state[:, 3:5] - [data.qvel for data in plain]).max() < 1e-6
    turned = [[math.cos(data.qpos[1]), math.sin(data.qpos[1])] for data in plain]
    assert torch.allclose(seen["policy"]["pole"], torch.tensor(turned), atol=1e-6)
    assert torch.allclose(seen["policy"]["pole_rate"][:, 0], torch.tensor([data.qvel[1] for data in plain]).float())
    assert max(data.qpos[0] for data in plain) > 1.8  # beyond it by the give of its end


def test_the_start_has_velocities_of_a_hundredth():
    env = cartpole(512)
    speed = torch.cat([env.robot.qvel, env.h.pole.qvel], 1)
    assert speed.std(0).tolist() == pytest.approx([0.01, 0.01], rel=0.15)


def test_cartpole_is_balanced_only_while_it_stays_so():
    env = cartpole(2, config={"hold_steps": 20})
    expert = WaypointExecutor(env)
    for k in range(20):
        info = env.step(expert.act())[-1]
        assert info["success"].tolist() == [k == 19] * 2
    push = torch.tensor([[1.0], [0.0]])
    for _ in range(30):
        info = env.step(torch.where(push > 0, push, expert.act()))[-1]
    assert info["success"].tolist() == info["steady"].tolist() == [False, True]
    for _ in range(120):
        env.step(torch.where(push > 0, push, expert.act()))
        if bool(env.task.evaluate(env.h)["fail"][0]):
            return
    raise AssertionError("the pole never fell")


def test_an_expert_of_actions_acts_through_its_own_controller_alone():
    env = cartpole(1, control="joint_torque:step=5,compensate=false")
    with pytest.raises(ConfigError, match=r"actions of 'joint_torque:step=10,compensate=false'.*step=5"):
        WaypointExecutor(env).act()
    env = manikin.make("PickCube-v2", control="joint_torque", reward="none")
    env.reset(seed=0)
    with pytest.raises(ConfigError, match="no target position, so a move needs a duration"):
        env.towards(env.arm_qpos)


def test_torques_without_compensation_are_the_action():
    env = manikin.make("PickCube-v2", control="joint_torque:step=2,compensate=false", reward="none")
    env.reset(seed=0)
    action = torch.linspace(-1, 1, 8)[None]
    env.step(action)
    assert torch.allclose(env.robot.ctrl[0, :7], 2 * action[0, :7])
    assert env.controller.card.dims[0].unit == "N m" and env.controller.name == "joint_torque:step=2,compensate=false"


def test_machines_are_robots_without_being_arms():
    assert "cart" in machines() and "cart" not in arms() and robots() == (*arms(), *machines())
    assert arm("cart").gripper is None and arm("cart").controllers == ("joint_torque",)
    env = cartpole(1)
    assert env.controller.card.dims[0].unit == "N" and env.controller.card.dims[0].range == (-10.0, 10.0)
    with pytest.raises(ConfigError, match="cannot be called 'cart'"):
        register(arm("cart"))
    with pytest.raises(UnknownNameError, match=r"Did you mean 'cart'\?"):
        arm("carts")
