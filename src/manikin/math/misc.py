"""Functions that torch has too, here with one bit pattern whatever the batch size and the strides."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from manikin.math._constants import Constant

__all__ = ["atan2", "dot", "lerp", "norm", "tolerance", "wrap_to_pi"]


_PI, _TURN, _TINY = Constant(math.pi), Constant(2 * math.pi), Constant(1e-300)


def dot(a: Tensor, b: Tensor) -> Tensor:
    """Inner product over the last dimension: (..., k), (..., k) -> (...)."""
    # torch sums in an order that depends on the strides, so the products are laid out afresh first.
    return (a * b).contiguous().sum(-1)


def norm(v: Tensor, keepdim: bool = False) -> Tensor:
    """Euclidean length over the last dimension: (..., k) -> (...), or (..., 1) with ``keepdim``.

    The gradient at the zero vector is zero.
    """
    return torch.linalg.vector_norm(v.contiguous(), dim=-1, keepdim=keepdim)


def _atan2(y: Tensor, x: Tensor) -> Tensor:
    # torch.atan2 takes another code path for the remainder of a vector register; torch.atan does not.
    y, x = y.double(), x.double()
    away = x + torch.copysign(_TINY.like(x), x)  # never zero, and with the sign of a zero
    return (y / away).atan() + x.signbit() * torch.copysign(_PI.like(y), y)


class _Atan2(torch.autograd.Function):
    """The quotient inside _atan2 has no finite derivative at x = 0, the function has."""

    @staticmethod
    def forward(y: Tensor, x: Tensor) -> Tensor:
        return _atan2(y, x).to(y.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        y, x = (v.double() for v in ctx.saved_tensors)
        g = grads[0].double() / (y * y + x * x).clamp_min(1e-300)
        return (g * x).to(grads[0].dtype), (-g * y).to(grads[0].dtype)


def atan2(y: Tensor, x: Tensor) -> Tensor:
    """Angle of the vector (x, y) in [-pi, pi] [rad]; same shapes (or broadcastable), dtype of ``y``.

    Computed in float64, for finite arguments. Signed zeros as in C: atan2(0, 0) = 0, atan2(0, -0.0) = pi. The gradient
    at (0, 0) is zero.
    """
    if torch.is_grad_enabled() and (y.requires_grad or x.requires_grad):
        y, x = torch.broadcast_tensors(y, x)
        return _Atan2.apply(y, x)
    return _atan2(y, x).to(y.dtype)


def wrap_to_pi(angle: Tensor) -> Tensor:
    """The same angle in [-pi, pi] [rad], any shape."""
    turn = _TURN.like(angle)
    return angle - turn * (angle / turn).round()


def lerp(a: Tensor, b: Tensor, t: Tensor | float) -> Tensor:
    """Straight line from ``a`` (t = 0) to ``b`` (t = 1), both ends exact; ``t`` a number or broadcastable to (...)."""
    return torch.lerp(a, b, t)


def tolerance(
    x: Tensor,
    low: float = 0.0,
    high: float = 0.0,
    *,
    margin: float = 0.0,
    value_at_margin: float = 0.1,
    shape: str = "gaussian",
) -> Tensor:
    """1 where ``low <= x <= high``, falling to ``value_at_margin`` at a distance of ``margin`` outside; any shape.

    ``margin`` 0 is a step. ``shape`` is one of ``gaussian`` exp(-a d^2), ``exponential`` exp(-a d), ``long_tail``
    1/(1 + a d^2) and ``linear`` max(0, 1 - a d), where d is the distance in margins and a follows from
    ``value_at_margin`` (0 is allowed for ``linear`` only). ValueError when an argument cannot work.
    """
    if not low <= high:
        raise ValueError(f"tolerance: low {low} must not exceed high {high}")
    if margin < 0:
        raise ValueError(f"tolerance: margin {margin} must not be negative")
    if shape not in _SHAPES:
        raise ValueError(f"tolerance: unknown shape {shape!r}; valid: {', '.join(_SHAPES)}")
    if not (0 < value_at_margin < 1 or (shape == "linear" and value_at_margin == 0)):
        raise ValueError(f"tolerance: value_at_margin {value_at_margin} must lie between 0 and 1")
    outside = (x - x.clamp(low, high)).abs()
    if margin == 0:
        return (outside == 0).to(x.dtype)
    return _SHAPES[shape](outside / margin, value_at_margin)


def _gaussian(d: Tensor, v: float) -> Tensor:
    return (d * d * math.log(v)).exp()


def _exponential(d: Tensor, v: float) -> Tensor:
    return (d * math.log(v)).exp()


def _long_tail(d: Tensor, v: float) -> Tensor:
    return 1 / (1 + d * d * (1 / v - 1))


def _linear(d: Tensor, v: float) -> Tensor:
    return (1 - d * (1 - v)).clamp_min(0)


_SHAPES: dict[str, Callable[[Tensor, float], Tensor]] = {
    "gaussian": _gaussian,
    "exponential": _exponential,
    "long_tail": _long_tail,
    "linear": _linear,
}
