"""How a quantity differs between rows and episodes. Declared where the thing is declared, drawn at episode start."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Choice", "Normal", "Uniform", "Vary"]

Value = float | tuple[float, ...]


@dataclass(frozen=True)
class Uniform:
    """Uniform in [low, high), each element on its own."""

    low: Value
    high: Value


@dataclass(frozen=True)
class Normal:
    """Normal with mean and std, clipped to [low, high]."""

    mean: Value
    std: Value
    low: Value = float("-inf")
    high: Value = float("inf")


@dataclass(frozen=True)
class Choice:
    """One of the options, all equally likely."""

    options: tuple[Value, ...]


Vary = Uniform | Normal | Choice
