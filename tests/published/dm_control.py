"""dm_control's tolerance functions, once more."""

from __future__ import annotations

import math


def tolerance(x: float, low: float, high: float, margin: float, shape: str, v: float) -> float:
    """dm_control/utils/rewards.py, as its documentation describes it."""
    if low <= x <= high:
        return 1.0
    if margin == 0:
        return 0.0
    d = (low - x if x < low else x - high) / margin
    if shape == "gaussian":
        return math.exp(-0.5 * (d * math.sqrt(-2 * math.log(v))) ** 2)
    if shape == "hyperbolic":
        return 1 / math.cosh(d * math.acosh(1 / v))
    if shape == "long_tail":
        return 1 / ((d * math.sqrt(1 / v - 1)) ** 2 + 1)
    if shape == "reciprocal":
        return 1 / (d * (1 / v - 1) + 1)
    if shape == "tanh_squared":
        return 1 - math.tanh(d * math.atanh(math.sqrt(1 - v))) ** 2
    scale = {"cosine": math.acos(2 * v - 1) / math.pi, "linear": 1 - v, "quadratic": math.sqrt(1 - v)}[shape]
    s = d * scale
    if s >= 1:
        return 0.0
    return {"cosine": (1 + math.cos(math.pi * s)) / 2, "linear": 1 - s, "quadratic": 1 - s**2}[shape]
