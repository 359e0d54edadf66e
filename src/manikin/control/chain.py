"""Kinematics of an arm in torch, on any device and without waiting for results: what :class:`~manikin.control.ik.Chain`
gives on the CPU through MuJoCo. Tests hold one to the other."""

from __future__ import annotations

import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.math import quat_from_axis_angle, quat_mul, quat_rotate

__all__ = ["TorchKinematics"]


class TorchKinematics:
    """Forward kinematics of the bodies from a model's world to one body, in float64.

    Args:
        model: of the robot alone.
        joints: ids of the joints that move; others on the way stay at their reference.
        body: whose pose is wanted.
        device: where to compute.
    """

    def __init__(self, model: mujoco.MjModel, joints: list[int], body: int, device: torch.device) -> None:
        def made(value: np.ndarray) -> Tensor:
            return torch.tensor(value.tolist(), dtype=torch.float64, device=device)[None]

        self._joints = len(joints)
        self._steps: list[tuple[Tensor, Tensor, list[tuple[int, bool, Tensor, Tensor, float]]]] = []
        path = []
        while body:
            path.append(body)
            body = int(model.body_parentid[body])
        for b in reversed(path):
            start, count = int(model.body_jntadr[b]), int(model.body_jntnum[b])
            moved = [
                (
                    joints.index(j),
                    int(model.jnt_type[j]) == int(mujoco.mjtJoint.mjJNT_SLIDE),
                    made(model.jnt_axis[j]),
                    made(model.jnt_pos[j]),
                    float(model.qpos0[model.jnt_qposadr[j]]),
                )
                for j in range(start, start + count)
                if j in joints
            ]
            self._steps.append((made(model.body_pos[b]), made(model.body_quat[b]), moved))

    def __call__(self, q: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Position (n, 3), quaternion (n, 4), and each joint's anchor and axis (n, joints, 3), in the base frame, for q
        (n, joints)."""
        n = len(q)
        pos, quat = q.new_zeros(n, 3), torch.zeros_like(q[:, :1]).repeat(1, 4)
        quat[:, 0] = 1.0
        anchors, axes = [pos] * self._joints, [pos] * self._joints
        for offset, turn, moved in self._steps:
            pos = pos + quat_rotate(quat, offset.expand(n, 3))
            quat = quat_mul(quat, turn.expand(n, 4))
            for k, slide, axis, anchor, zero in moved:
                at = pos + quat_rotate(quat, anchor.expand(n, 3))
                along, by = quat_rotate(quat, axis.expand(n, 3)), q[:, k] - zero
                anchors[k], axes[k] = at, along
                if slide:
                    pos = pos + along * by[:, None]
                else:
                    quat = quat_mul(quat, quat_from_axis_angle(axis.expand(n, 3), by))
                    pos = at - quat_rotate(quat, anchor.expand(n, 3))
        return pos, quat, torch.stack(anchors, 1), torch.stack(axes, 1)
