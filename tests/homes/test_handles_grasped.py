"""Fetch takes handles of the built-in furniture and drives back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch

from manikin.assets.paths import data_root
from manikin.env.env import Env
from manikin.env.task import Quantity, Task
from manikin.homes import Home, apartment, furnish, replicacad
from manikin.math import pose as joined
from manikin.math import quat_from_matrix
from manikin.scene.handles import Robot

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
    into: ClassVar = [0.0, 1.0, 0.0]  # the furniture

    def apartment(self):
        return apartment(0)

    def scene(self, b):
        return Handles(home=furnish(b, self.apartment()), robot=b.robot(pos=(0, 0, 0)))

    def start(self, h, ep):
        handle = h.home.mechanism(self.piece).handle_of(self.joint)
        into = self.into
        opens = [into[1], -into[0], 0.0] if "fridge" in self.piece else [0.0, 0.0, 1.0]  # across the bar
        axes = torch.tensor(np.stack([np.cross(opens, into), opens, into], -1)[None], dtype=torch.float32)
        rest = h.robot.keyframe("carry").expand(h.n, -1).clone()
        rest[:, :2] = handle[:, :2] - AWAY * torch.tensor(into[:2])
        rest[:, 2] = math.atan2(into[1], into[0])
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


class TakeScannedHandle(TakeHandle):
    """The same in ReplicaCAD.

    Randomization: none.
    Success: never.
    """

    id = "TakeScannedHandle-v0"
    piece, joint = "fridge:0000", "top_door_hinge"
    into: ClassVar = [-1.0, 0.0, 0.0]

    def apartment(self):
        return replicacad.load("v3_sc0_staging_00")


class TakeScannedDrawer(TakeScannedHandle):
    """The same of a drawer.

    Randomization: none.
    Success: never.
    """

    id = "TakeScannedDrawer-v0"
    piece, joint = "kitchen_counter:0000", "right_slide_top"


DATA = data_root()
SCANNED = pytest.mark.skipif(DATA is None or not (DATA / "replicacad").is_dir(), reason="needs MANIKIN_DATA/replicacad")


@pytest.mark.parametrize(
    ("task", "enough"),
    [
        pytest.param(TakeDrawer, 0.2, id="drawer"),
        pytest.param(TakeHandle, 0.3, id="fridge"),
        pytest.param(TakeScannedDrawer, 0.2, id="scanned-drawer", marks=SCANNED),
        pytest.param(TakeScannedHandle, 0.3, id="scanned-fridge", marks=SCANNED),
    ],
)
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
