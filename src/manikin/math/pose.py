"""Rigid poses as (..., 7): position (3) [m], then unit quaternion (w, x, y, z). Leading dimensions broadcast.

A pose P of frame B in frame A takes points from B to A; ``pose_mul(A_B, B_C)`` is the pose of C in A.
"""

from __future__ import annotations

import torch
from torch import Tensor

from manikin.math._constants import Constant
from manikin.math.rotation import (
    quat_conj,
    quat_from_matrix,
    quat_mul,
    quat_rotate,
    quat_rotate_inv,
    quat_to_matrix,
)

__all__ = ["pose", "pose_apply", "pose_from_matrix", "pose_inv", "pose_mul", "pose_to_matrix"]

_IDENTITY = Constant((1, 0, 0, 0))
_BOTTOM = Constant(((0, 0, 0, 1),))


def pose(pos: Tensor, quat: Tensor | None = None) -> Tensor:
    """Position (..., 3) [m] and quaternion (..., 4), identity by default -> (..., 7)."""
    if quat is None:
        quat = _IDENTITY.like(pos)
    if pos.shape[:-1] != quat.shape[:-1]:
        lead = torch.broadcast_shapes(pos.shape[:-1], quat.shape[:-1])
        pos, quat = pos.expand((*lead, 3)), quat.expand((*lead, 4))
    return torch.cat((pos, quat), -1)


def pose_mul(a: Tensor, b: Tensor) -> Tensor:
    """Composition (..., 7): ``b`` given in the frame ``a``, seen from where ``a`` is given."""
    pos, quat = a.narrow(-1, 0, 3), a.narrow(-1, 3, 4)
    return torch.cat((pos + quat_rotate(quat, b.narrow(-1, 0, 3)), quat_mul(quat, b.narrow(-1, 3, 4))), -1)


def pose_inv(p: Tensor) -> Tensor:
    """The pose (..., 7) that undoes ``p``."""
    quat = p.narrow(-1, 3, 4)
    return torch.cat((quat_rotate_inv(quat, -p.narrow(-1, 0, 3)), quat_conj(quat)), -1)


def pose_apply(p: Tensor, points: Tensor) -> Tensor:
    """Points (..., 3) [m] of the frame ``p`` (..., 7), seen from where ``p`` is given -> (..., 3) [m].

    For K points per pose give ``p[..., None, :]`` and points (..., K, 3).
    """
    return p.narrow(-1, 0, 3) + quat_rotate(p.narrow(-1, 3, 4), points)


def pose_to_matrix(p: Tensor) -> Tensor:
    """(..., 7) -> homogeneous matrix (..., 4, 4)."""
    top = torch.cat((quat_to_matrix(p.narrow(-1, 3, 4)), p.narrow(-1, 0, 3).unsqueeze(-1)), -1)
    bottom = _BOTTOM.like(p).expand((*top.shape[:-2], 1, 4))
    return torch.cat((top, bottom), -2)


def pose_from_matrix(m: Tensor) -> Tensor:
    """Homogeneous matrix (..., 4, 4), or its upper (..., 3, 4) -> (..., 7) with w >= 0."""
    return torch.cat((m[..., :3, 3], quat_from_matrix(m[..., :3, :3])), -1)
