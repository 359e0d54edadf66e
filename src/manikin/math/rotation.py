"""Rotations as unit quaternions (w, x, y, z), batched over any leading dimensions, float32 or float64.

A quaternion (..., 4) turns vectors from its own frame into the frame it is written in; ``quat_mul(a, b)`` turns by
``b`` first. q and -q are the same rotation. Angles in radians.

At one environment the number of torch calls is the cost, so products are gathered with constant index tables and summed
instead of being written out. No matrix product is used: its precision is a global switch of torch.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from manikin.math._constants import Constant
from manikin.math.misc import atan2, norm, wrap_to_pi

__all__ = [
    "quat_angle",
    "quat_conj",
    "quat_from_axis_angle",
    "quat_from_euler",
    "quat_from_matrix",
    "quat_from_rotvec",
    "quat_from_yaw",
    "quat_mul",
    "quat_normalize",
    "quat_rotate",
    "quat_rotate_inv",
    "quat_slerp",
    "quat_standardize",
    "quat_to_euler",
    "quat_to_matrix",
    "quat_to_rotvec",
    "quat_to_yaw",
    "yaw_rotate",
]

_HALF, _ONE, _FOUR, _PER_PI = Constant(0.5), Constant(1.0), Constant(4.0), Constant(1 / math.pi)
_X_AXIS = Constant((1, 0, 0))
_CONJ = Constant((1, -1, -1, -1))
_EYE3 = Constant(((1, 0, 0), (0, 1, 0), (0, 0, 1)))
_EYE4 = Constant(((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)))

# (a b)_k = sum_i a_i SIGN[k][i] b_PARTNER[k][i]
_MUL_PARTNER = Constant((0, 1, 2, 3, 1, 0, 3, 2, 2, 3, 0, 1, 3, 2, 1, 0))
_MUL_SIGN = Constant(((1, -1, -1, -1), (1, 1, 1, -1), (1, -1, 1, 1), (1, 1, -1, 1)))

# Entry (row, column) of the rotation matrix is identity + sum over two terms of SIGN q_LEFT q_RIGHT; row by row.
_MAT_LEFT = Constant((2, 3, 1, 3, 1, 2, 1, 3, 1, 3, 2, 1, 1, 2, 2, 1, 1, 2))
_MAT_RIGHT = Constant((2, 3, 2, 0, 3, 0, 2, 0, 1, 3, 3, 0, 3, 0, 3, 0, 1, 2))
_MAT_SIGN = Constant((-2, -2, 2, -2, 2, 2, 2, 2, -2, -2, 2, -2, 2, -2, 2, 2, -2, -2))

# 4 q q^T from the nine entries m of a rotation matrix: entry = OFFSET + sum over three terms of SIGN m_TERM.
_OUTER_TERM = Constant(
    (
        *(0, 4, 8, 7, 5, 0, 2, 6, 0, 3, 1, 0),
        *(7, 5, 0, 0, 4, 8, 1, 3, 0, 2, 6, 0),
        *(2, 6, 0, 1, 3, 0, 0, 4, 8, 5, 7, 0),
        *(3, 1, 0, 2, 6, 0, 5, 7, 0, 0, 4, 8),
    )
)
_OUTER_SIGN = Constant(
    (
        *(1, 1, 1, 1, -1, 0, 1, -1, 0, 1, -1, 0),
        *(1, -1, 0, 1, -1, -1, 1, 1, 0, 1, 1, 0),
        *(1, -1, 0, 1, 1, 0, -1, 1, -1, 1, 1, 0),
        *(1, -1, 0, 1, 1, 0, 1, 1, 0, -1, -1, 1),
    )
)

# Products of (cos r, cos p, cos y, sin r, sin p, sin y) of half the angles; two terms for each of w, x, y, z.
_EULER_A = Constant((0, 3, 3, 0, 0, 3, 0, 3))
_EULER_B = Constant((1, 4, 1, 4, 4, 1, 1, 4))
_EULER_C = Constant((2, 5, 2, 5, 2, 5, 5, 2))
_EULER_SIGN = Constant((1, 1, 1, -1, 1, 1, 1, -1))

# w - y, x + z, w + y, z - x: the first two are cos and sin of (yaw + roll) / 2 times a common factor, the others of
# (yaw - roll) / 2.
_PAIR_FIRST = Constant((0, 1, 0, 3))
_PAIR_SECOND = Constant((2, 3, 2, 1))
_PAIR_SIGN = Constant((-1, 1, 1, -1))


def quat_mul(a: Tensor, b: Tensor) -> Tensor:
    """Product (..., 4): turns by ``b``, then by ``a``. Leading dimensions broadcast."""
    partner = _gather(b, _MUL_PARTNER).unflatten(-1, (4, 4))
    return (a.unsqueeze(-2) * _MUL_SIGN.like(a) * partner).sum(-1)


def _gather(x: Tensor, columns: Constant) -> Tensor:
    return x.index_select(-1, columns.index_for(x))


def quat_conj(q: Tensor) -> Tensor:
    """The inverse of a unit quaternion, (..., 4)."""
    return q * _CONJ.like(q)


def quat_rotate(q: Tensor, v: Tensor) -> Tensor:
    """``v`` (..., 3) turned by the unit quaternion ``q`` (..., 4). Leading dimensions broadcast."""
    w, u = q.narrow(-1, 0, 1), q.narrow(-1, 1, 3)
    half = torch.linalg.cross(u, v)
    return torch.add(v, w * half + torch.linalg.cross(u, half), alpha=2)


def quat_rotate_inv(q: Tensor, v: Tensor) -> Tensor:
    """``v`` (..., 3) turned by the inverse of the unit quaternion ``q`` (..., 4): into the frame of ``q``."""
    w, u = q.narrow(-1, 0, 1), q.narrow(-1, 1, 3)
    half = torch.linalg.cross(v, u)
    return torch.add(v, w * half + torch.linalg.cross(half, u), alpha=2)


def quat_normalize(q: Tensor) -> Tensor:
    """``q`` at unit length, (..., 4). The zero quaternion is no rotation and gives NaN."""
    return q / norm(q, keepdim=True)


def quat_standardize(q: Tensor) -> Tensor:
    """The one of q and -q with w >= 0, (..., 4)."""
    return q * torch.copysign(_ONE.like(q), q.narrow(-1, 0, 1))


def quat_from_axis_angle(axis: Tensor, angle: Tensor) -> Tensor:
    """Turn by ``angle`` (...) [rad] about ``axis`` (..., 3), of any length but zero -> (..., 4)."""
    half = (angle * _HALF.like(angle)).unsqueeze(-1)
    u = axis / norm(axis, keepdim=True) * half.sin()
    return torch.cat((half.cos().expand((*u.shape[:-1], 1)), u), -1)


def quat_from_rotvec(v: Tensor) -> Tensor:
    """Exponential map: axis times angle (..., 3) [rad] -> (..., 4). Smooth everywhere, also at zero."""
    half = v * _HALF.like(v)
    h = norm(half, keepdim=True)
    return torch.cat((h.cos(), half * (h * _PER_PI.like(v)).sinc()), -1)


def quat_to_rotvec(q: Tensor) -> Tensor:
    """Logarithm (..., 4) -> axis times angle (..., 3), the angle in [0, pi] [rad]. Smooth at the identity."""
    w, u = q.narrow(-1, 0, 1), q.narrow(-1, 1, 3)
    n = norm(u, keepdim=True).clamp_min(1e-12)
    # A quarter of the angle has tangent n / (1 + |w|), whose denominator never vanishes.
    quarter = (n / (w.abs() + _ONE.like(q))).atan()
    return u * (torch.copysign(_FOUR.like(q), w) * quarter / n)


def quat_from_euler(rpy: Tensor) -> Tensor:
    """Roll, pitch, yaw (..., 3) [rad] about the fixed axes x, y, z in that order (Rz Ry Rx) -> (..., 4)."""
    half = rpy * _HALF.like(rpy)
    f = torch.cat((half.cos(), half.sin()), -1)
    terms = _gather(f, _EULER_A) * _gather(f, _EULER_B) * _gather(f, _EULER_C) * _EULER_SIGN.like(rpy)
    return terms.unflatten(-1, (4, 2)).sum(-1)


def quat_to_euler(q: Tensor) -> Tensor:
    """Roll, pitch, yaw (..., 3) [rad] about the fixed axes x, y, z, inverse of :func:`quat_from_euler`.

    Roll and yaw in [-pi, pi], pitch in [-pi/2, pi/2]. At pitch +-pi/2 only one combination of roll and yaw is
    determined; the angles returned still recompose to ``q``.
    """
    d = q.double()
    pairs = (_gather(d, _PAIR_FIRST) + _gather(d, _PAIR_SECOND) * _PAIR_SIGN.like(d)).unflatten(-1, (2, 2))
    size = norm(pairs)
    c, s = pairs.unbind(-1)
    angles = atan2(torch.cat((s, size.narrow(-1, 1, 1)), -1), torch.cat((c, size.narrow(-1, 0, 1)), -1))
    plus, minus, pitch = angles.unbind(-1)
    rpy = torch.stack((plus - minus, pitch * 2 - math.pi / 2, plus + minus), -1)
    return wrap_to_pi(rpy).to(q.dtype)


def quat_to_matrix(q: Tensor) -> Tensor:
    """Unit quaternion (..., 4) -> rotation matrix (..., 3, 3)."""
    terms = _gather(q, _MAT_LEFT) * _gather(q, _MAT_RIGHT) * _MAT_SIGN.like(q)
    return terms.unflatten(-1, (3, 3, 2)).sum(-1) + _EYE3.like(q)


def quat_from_matrix(m: Tensor) -> Tensor:
    """Rotation matrix (..., 3, 3) -> unit quaternion (..., 4) with w >= 0."""
    terms = _gather(m.flatten(-2), _OUTER_TERM) * _OUTER_SIGN.like(m)
    outer = terms.unflatten(-1, (4, 4, 3)).sum(-1) + _EYE4.like(m)
    # Every row is a multiple of q; the one with the largest diagonal entry is far from zero.
    largest = outer.diagonal(dim1=-2, dim2=-1).argmax(-1)
    row = outer.gather(-2, largest[..., None, None].expand((*largest.shape, 1, 4))).squeeze(-2)
    return quat_standardize(quat_normalize(row))


def quat_angle(a: Tensor, b: Tensor) -> Tensor:
    """Angle between two rotations (..., 4), (..., 4) -> (...) in [0, pi] [rad]; exact for small angles too."""
    less, more = norm(a - b), norm(a + b)
    return (torch.minimum(less, more) / torch.maximum(less, more)).atan() * _FOUR.like(a)


def quat_slerp(a: Tensor, b: Tensor, t: Tensor | float) -> Tensor:
    """Shortest turn from ``a`` (t = 0) to ``b`` (t = 1) at constant speed; ``t`` a number or (...) -> (..., 4)."""
    step = quat_to_rotvec(quat_mul(quat_conj(a), b))
    return quat_mul(a, quat_from_rotvec(step * (t.unsqueeze(-1) if isinstance(t, Tensor) else t)))


def quat_from_yaw(yaw: Tensor) -> Tensor:
    """Turn about z: (...) [rad] -> (..., 4)."""
    half = yaw * _HALF.like(yaw)
    zero = torch.zeros_like(half)
    return torch.stack((half.cos(), zero, zero, half.sin()), -1)


def yaw_rotate(v: Tensor, yaw: Tensor) -> Tensor:
    """Vectors (..., 2) or (..., 3) turned about z by yaw (...) [rad]; what is broadcast is the first two numbers."""
    cos, sin = torch.cos(yaw), torch.sin(yaw)
    x, y, *up = v.unbind(-1)
    return torch.stack([cos * x - sin * y, sin * x + cos * y, *up], -1)


def quat_to_yaw(q: Tensor) -> Tensor:
    """Heading: angle of the turned x axis in the xy plane, (..., 4) -> (...) in [-pi, pi] [rad]."""
    x_axis = quat_rotate(q, _X_AXIS.like(q).expand((*q.shape[:-1], 3)))
    return atan2(x_axis[..., 1], x_axis[..., 0])
