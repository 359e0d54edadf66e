"""The WidowX controller of SIMPLER (Li et al. 2024, Algorithm 2): an action moves the last target pose of the tool, not
the measured one, and inverse kinematics turns the new target into joint positions, once per control step.

With (x, R) the last target, (a, A) the action's translation and rotation about the axes of the base, and p a pivot, the
new target is

    x' = p + a + A (x - p),  R' = A R

The pivot is the measured place of the tool in the released code (``pivot=measured``), and the last target's place x in
the paper (``pivot=target``), where x' = x + a. The two differ by what the rotation turns the lag of the arm.
"""

from __future__ import annotations

import torch
from torch import Tensor

from manikin.control.base import Limb, OncePerStep, Reading
from manikin.control.group import GroupChain
from manikin.control.ik import Chain
from manikin.control.joint import GripperMap, servo_rate, straight, tool_between
from manikin.math import quat_conj, quat_from_rotvec, quat_mul, quat_normalize, quat_rotate, quat_to_rotvec
from manikin.spec.action import ActionCard, ActionDim
from manikin.spec.control import Control

__all__ = ["TargetDeltaPose"]

_ITERATIONS = 40
_REACHED = 1e-4  # [m, rad] norm of what may be missing to a target, as in the original's inverse kinematics
_TOLERANCE = 1e-7  # [m] and [rad] at which the search ends, so that devices agree


class TargetDeltaPose(OncePerStep):
    """``ee_target_delta_pose``: x, y, z [m] and a rotation vector [rad] in the base frame, relative to the last target.

    The carry is the target pose (n, 7) in the base frame; an episode begins with the pose that the tool has. Where
    inverse kinematics, which begins at the measured joints, does not reach a target, the arm is told to stay where it
    is, and the target moves on all the same.
    """

    def __init__(self, control: Control, robot: Limb, chain: Chain | GroupChain) -> None:
        arm = robot.arm
        self.name, self._chain, self._n = control.word, chain, len(arm.joints)
        self._pos, self._rot, self._measured = control.pos, control.rot, control.pivot == "measured"
        self._solver, self._gripper, self.rate = chain.solver(0.2), GripperMap(robot), servo_rate(arm)
        kinds = [(a, "m", self._pos) for a in ("x", "y", "z")] + [(a, "rad", self._rot) for a in ("rx", "ry", "rz")]
        dims = tuple(
            ActionDim(name=name, unit=unit, frame="base", reference="commanded", scale=scale)
            for name, unit, scale in kinds
        )
        self.card = ActionCard(controller=self.name, robot=arm.name, dims=(*dims, *self._gripper.dims()))

    def start(self, reading: Reading) -> Tensor:
        return torch.cat(self._chain.fk(reading.qpos[:, : self._n]), 1).float()

    def goal(self, carry: Tensor, reading: Reading, action: Tensor) -> tuple[Tensor, Tensor]:
        """New target: position (n, 3) [m] and quaternion (n, 4) in the base frame, float64, before any limit."""
        last, action = carry.double(), action.double()
        pos, quat = last[:, :3], last[:, 3:]
        turn = quat_from_rotvec(action[:, 3:6] * self._rot)
        pivot = self._chain.fk(reading.qpos[:, : self._n])[0] if self._measured else pos
        moved = pivot + action[:, :3] * self._pos + quat_rotate(turn, pos - pivot)
        return moved, quat_normalize(quat_mul(turn, quat))

    def __call__(self, carry: Tensor, reading: Reading, action: Tensor) -> tuple[Tensor, Tensor]:
        pos, quat = self.goal(carry, reading, action)
        measured = reading.qpos[:, : self._n]
        found = self._solver.solve(
            pos,
            quat,
            measured,
            iterations=_ITERATIONS,
            pos_tolerance=_TOLERANCE,
            rot_tolerance=_TOLERANCE,
            posture=0.0,
        )
        missing = (found.pos_error * found.pos_error + found.rot_error * found.rot_error).sqrt()
        arm = torch.where((missing <= _REACHED)[:, None], found.q.float(), measured)
        target = torch.cat([pos, quat], 1).to(carry.dtype)
        return torch.cat([arm, self._gripper(action)], 1) if self._gripper.size else arm, target

    def towards(self, carry: Tensor, reading: Reading, qpos: Tensor, *, within: float | None = None) -> Tensor:
        now, to = reading.qpos[:, : self._n], qpos[:, : self._n]
        pos, _, to_pos, to_quat = tool_between(self._chain, now, to, self.rate, within)
        last = carry.double()
        turn = quat_mul(to_quat, quat_conj(last[:, 3:]))
        pivot = pos if self._measured else last[:, :3]
        shift = to_pos - pivot - quat_rotate(turn, last[:, :3] - pivot)
        action = torch.cat([shift / self._pos, quat_to_rotvec(turn) / self._rot], 1)
        return straight(action, self._gripper.size)
