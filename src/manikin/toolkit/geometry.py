"""Where things are to one another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from manikin.math import Constant, norm, quat_rotate
from manikin.toolkit.steps import constant

__all__ = ["above", "along_x", "chosen", "lies_on"]

_X = Constant(((1.0, 0.0, 0.0),))


def above(pos: Tensor, height: Any) -> Tensor:
    """``pos`` (n, 3) raised by ``height`` [m]."""
    out = pos.clone()
    out[:, 2] += height
    return out


def along_x(quat: Tensor) -> Tensor:
    """(n, 3) the x axis of bodies turned by ``quat`` (n, 4), in the world."""
    return quat_rotate(quat, _X.like(quat))


def chosen(each: Sequence[Tensor] | Tensor, number: Tensor) -> Tensor:
    """(n, ...) of several values (n, ...), or of all of them as (n, k, ...), that of the number (n,) int64 in each
    row."""
    values = each if isinstance(each, Tensor) else torch.stack(list(each), 1)
    index = number.view(-1, *(1,) * (values.ndim - 1)).expand(-1, 1, *values.shape[2:])
    return values.gather(1, index).squeeze(1)


def lies_on(top: Tensor, bottom: Tensor, half_size: float, tol: float) -> Tensor:
    """(n,) bool: a cube at ``top`` (n, 3) lies on an equal one at ``bottom``: beside by no more than half its diagonal,
    and as high as it must be, both within ``tol`` [m]."""
    offset = top - bottom
    beside = norm(offset[:, :2]) <= constant(math.sqrt(2) * half_size + tol)
    return beside & ((offset[:, 2] - constant(2 * half_size)).abs() <= constant(tol))
