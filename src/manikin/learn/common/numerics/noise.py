"""Noise of actions that lasts for some steps."""

from __future__ import annotations

import math

from torch import Tensor

__all__ = ["lasting"]


def lasting(before: Tensor, new: Tensor, memory: float) -> Tensor:
    """The next of an AR(1) process: the share ``memory`` of the one ``before`` and the rest new, as wide as both."""
    return memory * before + math.sqrt(1 - memory**2) * new
