"""Controllers of the end effector. A commanded pose in the robot's base frame becomes joint positions by inverse
kinematics from where the arm is; a pose out of reach brings the arm as near as it can get.

Rotations are mathematically positive rotation vectors about the axes on the card: +x turns y towards z.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from manikin.control.base import Limb, OncePerStep, Reading
from manikin.control.drive import Carried
from manikin.control.goal import PoseGoal
from manikin.control.group import GroupChain
from manikin.control.ik import Chain
from manikin.control.joint import GripperMap, servo_rate, straight, tool_between
from manikin.errors import ConfigError
from manikin.spec.action import ActionCard
from manikin.spec.control import Control
from manikin.spec.robot import FULL_POSE

__all__ = ["EndEffectorController"]

_POSTURE = 0.02  # share of the way to rest that an arm goes at each iteration, where its base makes up for it

_ITERATIONS = 12  # the same on every device; with more, targets that are never reached magnify last bits


class EndEffectorController(OncePerStep):
    """``ee_delta_pos`` (x, y, z), ``ee_delta_pose`` and ``ik_pose`` (x, y, z, rotation vector) relative to the measured
    TCP pose, and ``ee_pose`` absolute: position in a cube around the base, rotation relative to the TCP's in the rest
    pose."""

    reach = 1.0  # [m] half width of the cube that absolute poses span

    def __init__(self, control: Control, robot: Limb, chain: Chain | GroupChain) -> None:
        arm = robot.arm
        self.name, self._chain, self._n = control.word, chain, len(arm.joints)
        absolute = control.name == "ee_pose"
        if absolute and control.frame == "tcp":
            raise ConfigError(
                "ee_pose: an absolute goal cannot be in the frame it moves; use frame=base or frame=world"
            )
        full = len(arm.ik_joints) >= FULL_POSE
        self._solver = chain.solver(0.2 if full else 0.0)
        whole_body = arm.base.drives and set(arm.base.joints) <= set(arm.ik_joints)
        self._posture = _POSTURE if whole_body else 0.0
        self._carried = Carried(robot) if whole_body else None
        self._gripper, self.rate = GripperMap(robot), servo_rate(arm)
        self._pose = PoseGoal(
            frame=control.frame,
            poses="base",
            reference="absolute" if absolute else "measured",
            pos=self.reach if absolute else control.pos or arm.ee_delta_pos,
            rot=math.pi if absolute else control.rot or arm.ee_delta_rot,
            turns=control.name != "ee_delta_pos",
            base=robot.base_pose,
            straight=robot.stands_straight,
            rest=chain.rest_pose[1],
        )
        notes = "" if full else f"{len(arm.ik_joints)} joints: the gripper's orientation follows from its position"
        dims = (*self._pose.dims(), *self._gripper.dims())
        self.card = ActionCard(controller=self.name, robot=arm.name, dims=dims, notes=notes)

    def start(self, reading: Reading) -> Tensor:
        return reading.ctrl.new_zeros(len(reading.ctrl), 0)

    def goal(self, reading: Reading, action: Tensor) -> tuple[Tensor, Tensor]:
        """Commanded TCP position (n, 3) and quaternion (n, 4) in the base frame, float64, before any limit."""
        pos, quat = self._chain.fk(reading.qpos[:, : self._n])
        return self._pose(pos, quat, action.double())

    def __call__(self, carry: Tensor, reading: Reading, action: Tensor) -> tuple[Tensor, Tensor]:
        pos, quat = self.goal(reading, action)
        start = reading.qpos[:, : self._n]
        found = self._solver.solve(
            pos, quat, start, iterations=_ITERATIONS, pos_tolerance=1e-5, rot_tolerance=1e-4, posture=self._posture
        )
        arm = (found.q if self._carried is None else self._carried(start.double(), found.q)).float()
        return torch.cat([arm, self._gripper(action)], 1) if self._gripper.size else arm, carry

    def towards(self, carry: Tensor, reading: Reading, qpos: Tensor, *, within: float | None = None) -> Tensor:
        now, to = reading.qpos[:, : self._n], qpos[:, : self._n]
        pos, quat, to_pos, to_quat = tool_between(self._chain, now, to, self.rate, within)
        action = self._pose.inverse(pos, quat, to_pos, to_quat)
        return straight(action, self._gripper.size)
