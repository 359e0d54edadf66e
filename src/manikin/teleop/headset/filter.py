"""The one-euro filter: smooth where a hand rests, quick where it moves.

Casiez, Roussel and Vogel, "1 € Filter: A Simple Speed-based Low-pass Filter for Noisy Input in Interactive Systems",
CHI 2012. A first-order low pass whose cutoff grows with the speed, which is itself low-passed.
"""

from __future__ import annotations

import math

import numpy as np

from manikin.errors import ConfigError
from manikin.teleop.headset.turns import conj, log, mul, slerp

__all__ = ["OneEuro", "PoseFilter", "TurnFilter", "share"]

GAP = 0.25  # [s] after a longer silence it begins anew


def share(cutoff: float, seconds: float) -> float:
    """How much of the way to a new value a low pass of this cutoff [Hz] goes in so many seconds."""
    tau = 1.0 / (2.0 * math.pi * cutoff)
    return 1.0 / (1.0 + tau / seconds)


class OneEuro:
    """Of a vector. All its numbers share one cutoff, so that a straight way stays straight.

    Args:
        cutoff: [Hz] at rest.
        slope: [Hz per unit/s] by how much it grows with the speed.
        speed_cutoff: [Hz] of the low pass of the speed.

    Raises:
        ConfigError: a cutoff that is not positive, or a negative slope.
    """

    def __init__(self, *, cutoff: float = 2.0, slope: float = 30.0, speed_cutoff: float = 1.0) -> None:
        if not (0 < cutoff < math.inf and 0 < speed_cutoff < math.inf and 0 <= slope < math.inf):
            raise ConfigError(
                f"a filter needs positive cutoffs and a slope of at least 0; got {cutoff}, {speed_cutoff} and {slope}"
            )
        self.cutoff, self.slope, self.speed_cutoff = cutoff, slope, speed_cutoff
        self.reset()

    def reset(self) -> None:
        """Forget what came before."""
        self._value: np.ndarray | None = None
        self._speed = np.zeros(0)
        self._raw = np.zeros(0)
        self._at = -math.inf

    def __call__(self, value: np.ndarray, at: float) -> np.ndarray:
        """The filtered value at a time [s]. A value that is not newer than the last changes nothing."""
        seconds = at - self._at
        if self._value is None or seconds > GAP:
            self._value, self._raw, self._speed, self._at = value, value, np.zeros_like(self._way(value, value)), at
        elif seconds > 0:
            speed = self._way(self._raw, value) / seconds
            self._speed = self._speed + share(self.speed_cutoff, seconds) * (speed - self._speed)
            cutoff = self.cutoff + self.slope * float(np.linalg.norm(self._speed))
            self._value = self._between(self._value, value, share(cutoff, seconds))
            self._raw, self._at = value, at
        return self._value

    def _way(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return other - one

    def _between(self, one: np.ndarray, other: np.ndarray, part: float) -> np.ndarray:
        return one + part * (other - one)


class TurnFilter(OneEuro):
    """Of a quaternion (4,) wxyz: speeds are angular [rad/s], and values lie on the shortest turn between two."""

    def __init__(self, *, cutoff: float = 2.0, slope: float = 5.0, speed_cutoff: float = 1.0) -> None:
        super().__init__(cutoff=cutoff, slope=slope, speed_cutoff=speed_cutoff)

    def _way(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return log(mul(other, conj(one)))

    def _between(self, one: np.ndarray, other: np.ndarray, part: float) -> np.ndarray:
        return slerp(one, other, part)


class PoseFilter:
    """Of a place [m] and a turn."""

    def __init__(self) -> None:
        self._pos, self._turn = OneEuro(), TurnFilter()

    def reset(self) -> None:
        """Forget what came before."""
        self._pos.reset()
        self._turn.reset()

    def __call__(self, pos: np.ndarray, quat: np.ndarray, at: float) -> tuple[np.ndarray, np.ndarray]:
        """Place (3,) and quaternion (4,) at a time [s]."""
        return self._pos(pos, at), self._turn(quat, at)
