"""Noise of actions that lasts for some steps."""

from __future__ import annotations

import math

from torch import Tensor

from manikin.errors import ConfigError

__all__ = ["check_memory", "lasting"]


def lasting(before: Tensor, new: Tensor, memory: float) -> Tensor:
    """The next of an AR(1) process: the share ``memory`` of the one ``before`` and the rest new, as wide as both."""
    return memory * before + math.sqrt(1 - memory**2) * new


def check_memory(algorithm: str, memory: float) -> None:
    """Refuse a ``noise_memory`` whose noise would grow or never change.

    Raises:
        ConfigError: it is below 0, or 1 or more.
    """
    if not 0 <= memory < 1:
        raise ConfigError(f"{algorithm}'s noise_memory must be 0 or more and below 1, got {memory}")
