"""The tolerance functions of dm_control's rewards (Tassa et al., 2018, arXiv:1801.00690, section 4.1)."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from manikin.errors import ConfigError, UnknownNameError

__all__ = ["TOLERANCES", "tolerance"]


def _until_zero(fall: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda x: torch.where(x < 1, fall(x.clamp(max=1.0)), 0.0)


_SHAPES: dict[str, Callable[[Tensor, float], Tensor]] = {
    "gaussian": lambda d, v: torch.exp(math.log(v) * d**2),
    "hyperbolic": lambda d, v: 1 / torch.cosh(math.acosh(1 / v) * d),
    "long_tail": lambda d, v: 1 / (1 + (1 / v - 1) * d**2),
    "reciprocal": lambda d, v: 1 / (1 + (1 / v - 1) * d),
    "tanh_squared": lambda d, v: 1 - torch.tanh(math.atanh(math.sqrt(1 - v)) * d) ** 2,
    "cosine": lambda d, v: _until_zero(lambda x: (1 + torch.cos(math.pi * x)) / 2)(d * math.acos(2 * v - 1) / math.pi),
    "linear": lambda d, v: _until_zero(lambda x: 1 - x)(d * (1 - v)),
    "quadratic": lambda d, v: _until_zero(lambda x: 1 - x**2)(d * math.sqrt(1 - v)),
}
_REACH_ZERO = ("cosine", "linear", "quadratic")  # which may be 0 at the margin

TOLERANCES = tuple(_SHAPES)
"""How a tolerance may fall outside its bounds."""


def tolerance(
    value: Tensor,
    *,
    low: float = 0.0,
    high: float = 0.0,
    margin: float = 0.0,
    shape: str = "gaussian",
    at_margin: float = 0.1,
) -> Tensor:
    """1 where a value is within its bounds, falling to 0 beyond them.

    Args:
        value: of any shape.
        low: the lower bound, which belongs to the inside; it may be infinite, as may the other.
        high: the upper bound.
        margin: so far outside the answer is ``at_margin``, in the unit of the value; 0 makes it 0 at once.
        shape: one of ``TOLERANCES``.
        at_margin: between 0 and 1; also 0 for cosine, linear and quadratic.

    Returns:
        Like ``value``.

    Raises:
        ConfigError: bounds in the wrong order, or a margin or ``at_margin`` that cannot be.
        UnknownNameError: another shape.
    """
    if low > high or margin < 0:
        raise ConfigError(f"a tolerance needs low <= high and margin >= 0, got {low}, {high} and {margin}")
    if shape not in _SHAPES:
        raise UnknownNameError("shape of a tolerance", shape, TOLERANCES)
    if not (0 < at_margin < 1 or (at_margin == 0 and shape in _REACH_ZERO)):
        raise ConfigError(
            f"at_margin must be between 0 and 1, for {', '.join(_REACH_ZERO)} also 0; got {at_margin} for {shape}"
        )
    outside = torch.clamp(torch.maximum(low - value, value - high), min=0.0)
    if margin == 0:
        return (outside == 0).to(value.dtype)
    return torch.where(outside > 0, _SHAPES[shape](outside / margin, at_margin), 1.0)
