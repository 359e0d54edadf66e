"""Fetch takes handles of the built-in furniture and drives back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch

from manikin.env.env import Env
from manikin.env.task import Quantity, Task
from manikin.homes import Home, apartment, furnish
from manikin.math import pose as joined
from manikin.math import quat_from_matrix
from manikin.scene.handles import Robot

PIECES = ("counter", "fridge")
AWAY = 0.95  # [m] from the handle to the middle of the base


@dataclass
class Handles:
    robot: Robot
    home: Home


class TakeHandle(Task):
    """Hold a handle of a drawer or a door.

    Randomization: none.
    Success: never.
    """

    id = "TakeHandle-v0"
    horizon_s = 10.0
    instruction = "take the handle"
    robots = ("fetch",)
    robot_control: ClassVar = {"fetch": "base: base_vel, torso: joint_delta_pos, arm: joint_delta_pos"}
    observations = {"tcp_pose": Quantity("m, quaternion wxyz", "world")}
    piece, joint = "fridge", "top_door"

    def scene(self, b):
        return Handles(home=furnish(b, apartment(0)), robot=b.robot(pos=(0, 0, 0)))

    def start(self, h, ep):
        handle = h.home.mechanism(self.piece).handle_of(self.joint)
        opens = [1.0, 0.0, 0.0] if self.piece == "fridge" else [0.0, 0.0, 1.0]  # across the bar
        into = [0.0, 1.0, 0.0]
        axes = torch.tensor(np.stack([np.cross(opens, into), opens, into], -1)[None], dtype=torch.float32)
        rest = h.robot.keyframe("carry").expand(h.n, -1).clone()
        rest[:, :2] = handle[:, :2] - torch.tensor([0.0, AWAY])
        rest[:, 2] = math.pi / 2
        h.robot.set_qpos(rest)
        found = h.robot.ik(joined(handle, quat_from_matrix(axes).expand(h.n, 4)), rest)
        assert bool(found.reached.all())
        h.robot.set_qpos(found.q.float())

    def evaluate(self, h):
        return {"success": torch.zeros(h.n, dtype=torch.bool)}

    def observe(self, h):
        return {"policy": {"tcp_pose": h.robot.tcp_pose}, "privileged": {}}


class TakeDrawer(TakeHandle):
    """The same of a drawer.

    Randomization: none.
    Success: never.
    """

    id = "TakeDrawer-v0"
    piece, joint = "counter", "drawer3"


@pytest.mark.parametrize(("task", "enough"), [(TakeDrawer, 0.2), (TakeHandle, 0.3)], ids=PIECES)
def test_a_handle_is_grasped_and_what_it_belongs_to_opens(task: type[TakeHandle], enough: float) -> None:
    """Both fingers press on the bar, and the drawer [m] or the door [rad] follows the base."""
    env = Env(task(), num_envs=1, reward="none", autoreset="disabled")
    env.reset(seed=0)
    model, data = env.world.data(0)
    assert not [c for c in data.contact if c.dist < 0]  # the robot touches nothing at the start
    action = torch.zeros(1, env.controller.card.size)
    action[0, -1] = -1.0  # close
    for _ in range(20):
        env.step(action)
    model, data = env.world.data(0)
    bar = model.geom(f"{task.piece}/handle/{task.joint}/bar").id
    pressing = {model.body(model.geom_bodyid[g]).name for c in data.contact if bar in c.geom for g in c.geom}
    assert {f"robot/{side}_gripper_finger_link" for side in "lr"} <= pressing
    action[0, 0] = -0.3
    for _ in range(60):
        env.step(action)
    assert float(env.h.home.mechanism(task.piece).joint(task.joint)[0]) > enough
    env.close()
