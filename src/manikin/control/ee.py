"""Controllers of the end effector. A commanded pose in the robot's base frame becomes joint positions by inverse
kinematics from where the arm is; a pose out of reach brings the arm as near as it can get.

Rotations are mathematically positive rotation vectors about the base frame's axes: +x turns y towards z.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from manikin.control.base import Reading
from manikin.control.ik import Chain, IkSolver
from manikin.control.joint import GripperMap
from manikin.errors import UnknownNameError
from manikin.math import quat_conj, quat_from_rotvec, quat_mul, quat_to_rotvec
from manikin.scene.handles import Robot
from manikin.spec.action import ActionCard, ActionDim

__all__ = ["EndEffectorController"]

_AXES, _TURNS = ("x", "y", "z"), ("rx", "ry", "rz")


class EndEffectorController:
    """``ee_delta_pos`` (x, y, z), ``ee_delta_pose`` (x, y, z, rotation vector) relative to the measured TCP pose, and
    ``ee_pose`` absolute: position in a cube around the base, rotation relative to the TCP's in the rest pose."""

    reach = 1.0  # [m] half width of the cube that ee_pose spans

    def __init__(self, name: str, robot: Robot, chain: Chain) -> None:
        arm = robot.arm
        self.name, self._chain, self._n = name, chain, len(arm.joints)
        if name not in ("ee_delta_pos", "ee_delta_pose", "ee_pose"):
            raise UnknownNameError("end-effector controller", name, arm.controllers)
        self._rotates, self._absolute = name != "ee_delta_pos", name == "ee_pose"
        full = self._n >= 6
        self._solver = IkSolver(chain, rotation_weight=0.2 if full else 0.0)
        self._gripper = GripperMap(robot)
        _, rest = chain.fk(chain.rest[None])
        self._rest_quat = rest  # (1, 4)
        pos = self.reach if self._absolute else arm.ee_delta_pos
        rot = math.pi if self._absolute else arm.ee_delta_rot
        self._pos_scale, self._rot_scale = pos, rot
        reference = "absolute" if self._absolute else "measured"
        dims = [ActionDim(name=a, unit="m", frame="base", reference=reference, scale=pos) for a in _AXES]
        if self._rotates:
            dims += [ActionDim(name=a, unit="rad", frame="base", reference=reference, scale=rot) for a in _TURNS]
        notes = "" if full else f"{self._n} joints: the gripper's orientation follows from its position"
        self.card = ActionCard(controller=name, robot=arm.name, dims=(*dims, *self._gripper.dims()), notes=notes)

    def start(self, reading: Reading) -> Tensor:
        return reading.ctrl.new_zeros(len(reading.ctrl), 0)

    def goal(self, reading: Reading, action: Tensor) -> tuple[Tensor, Tensor]:
        """Commanded TCP position (n, 3) and quaternion (n, 4) in the base frame, float64, before any limit."""
        move = action.double()
        pos, quat = self._chain.fk(reading.qpos[:, : self._n])
        if self._absolute:
            pos = move[:, :3] * self._pos_scale
            return pos, quat_mul(quat_from_rotvec(move[:, 3:6] * self._rot_scale), self._rest_quat.expand(len(move), 4))
        pos = pos + move[:, :3] * self._pos_scale
        if self._rotates:
            quat = quat_mul(quat_from_rotvec(move[:, 3:6] * self._rot_scale), quat)
        return pos, quat

    def __call__(self, carry: Tensor, reading: Reading, action: Tensor) -> tuple[Tensor, Tensor]:
        pos, quat = self.goal(reading, action)
        start = reading.qpos[:, : self._n]
        found = self._solver.solve(pos, quat, start, iterations=30, pos_tolerance=1e-5, rot_tolerance=1e-4, posture=0.0)
        arm = found.q.float()
        return torch.cat([arm, self._gripper(action)], 1) if self._gripper.size else arm, carry

    def towards(self, carry: Tensor, reading: Reading, qpos: Tensor) -> Tensor:
        pos, quat = self._chain.fk(qpos)
        if self._absolute:
            move = [pos / self._pos_scale]
            turn = quat_mul(quat, quat_conj(self._rest_quat.expand(len(quat), 4)))
        else:
            here, rot = self._chain.fk(reading.qpos[:, : self._n])
            move = [(pos - here) / self._pos_scale]
            turn = quat_mul(quat, quat_conj(rot))
        if self._rotates:
            move.append(quat_to_rotvec(turn) / self._rot_scale)
        action = torch.cat(move, 1)
        # one factor for all dimensions, so that a long way is a straight way
        action = (action / action.abs().amax(1, keepdim=True).clamp_min(1.0)).float()
        return torch.cat([action, action.new_zeros(len(action), self._gripper.size)], 1)
