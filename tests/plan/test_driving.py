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


def played(kind: type[Task]) -> Env:
    env = Env(kind, num_envs=2, robot="fetch", autoreset="disabled", terminate=False, reward="none")
    env.reset(seed=0)
    expert = WaypointExecutor(env)
    for _ in range(100):
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
