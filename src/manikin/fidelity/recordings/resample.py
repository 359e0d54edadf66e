"""Recordings at another rate, by interpolation between neighbouring rows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from manikin.errors import ConfigError
from manikin.fidelity.recordings.layout import Repeat

__all__ = ["resampled"]

_APART = 1.5  # periods between two rows that nothing is interpolated between


def resampled(one: Repeat, to: float, hz: float) -> Repeat:
    """Rows at k / ``to`` [s], up to the last time; numbers on straight lines, quaternions on great circles.

    There is no row where the two around it are more than one and a half periods apart, or one of them is missing: it is
    NaN. Actions, which hold until the next, are left out.

    Args:
        one: a repeat with ascending times.
        to: rows per second.
        hz: what it says of itself.

    Raises:
        ConfigError: more rows per second than it has, or no rate.
    """
    if not (math.isfinite(to) and to > 0):
        raise ConfigError(f"a rate in rows per second is above 0, not {to!r}")
    if to > hz * (1 + 1e-9):
        raise ConfigError(f"{one.place} is at {hz:g} Hz; {to:g} Hz would make rows up")
    time = one.arrays["time"]
    wanted = np.arange(math.floor((time[-1] - time[0]) * to + 1e-6) + 1) / to + time[0]
    after = np.clip(np.searchsorted(time, wanted - 1e-9), 1, len(time) - 1)
    before = after - 1
    share = np.clip((wanted - time[before]) / (time[after] - time[before]), 0, 1)
    gap = (time[after] - time[before] > _APART / hz) & (share > 1e-6) & (share < 1 - 1e-6)
    arrays = {"time": np.arange(len(wanted)) / to}
    for name, values in one.arrays.items():
        if name in ("time", "actions"):
            continue
        turned = name.rpartition(".")[2] == "quat"
        between = (_turned if turned else _straight)(values[before], values[after], share[:, None])
        exact = np.where(share[:, None] < 0.5, values[before], values[after])
        found = np.where(((share < 1e-6) | (share > 1 - 1e-6))[:, None], exact, between)
        arrays[name] = np.where(gap[:, None], np.nan, found)
    return replace(one, arrays=arrays, first=0)


def _straight(a: np.ndarray, b: np.ndarray, share: np.ndarray) -> np.ndarray:
    return np.asarray(a + (b - a) * share)


def _turned(a: np.ndarray, b: np.ndarray, share: np.ndarray) -> np.ndarray:
    """(n, 4) between quaternions (n, 4), the shorter way."""
    b = np.where((a * b).sum(-1, keepdims=True) < 0, -b, b)
    half = np.arccos(
        np.clip(
            (a * b).sum(-1, keepdims=True)
            / np.linalg.norm(a, axis=-1, keepdims=True)
            / np.linalg.norm(b, axis=-1, keepdims=True),
            -1,
            1,
        )
    )
    sine = np.sin(half)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = (np.sin((1 - share) * half) * a + np.sin(share * half) * b) / sine
    return np.asarray(np.where(sine < 1e-6, _straight(a, b, share), found))
