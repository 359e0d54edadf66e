"""What the recordings say about the parameters, and what they leave open.

Near the parameters found, a change d of them (in shares of their ranges) changes the residuals by J d, so that the loss
has the Gauss-Newton Hessian H = J' J. Along a right singular vector v of J with singular value s the residuals change
by s. If what is left of them has the standard deviation r, the recordings fix that direction within r / s. A direction
that they fix no better than the declared ranges do is left open. Residuals of neighbouring steps are alike, so the
widths are lower bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Direction", "Identifiability", "identifiability"]

_UNIFORM = 12**-0.5  # standard deviation of what is only known to lie in its range
_WEAK, _NAMED = 0.1, 0.35  # [shares of a range], [share of a direction]


@dataclass(frozen=True)
class Direction:
    """A direction of the parameter space.

    Attributes:
        singular_value: of the residuals' derivative.
        width: standard deviation along it that the recordings leave, in shares of the ranges.
        verdict: ``open``, ``weak`` or ``fixed``.
        shares: (P,) what it is made of; of length 1.
        words: the same for people.
    """

    singular_value: float
    width: float
    verdict: str
    shares: tuple[float, ...]
    words: str


@dataclass(frozen=True)
class Identifiability:
    """Directions with falling singular values, and (P,) standard deviations of single parameters in shares of their
    ranges: at most that of what is only known to lie in its range, 0.29."""

    directions: tuple[Direction, ...]
    deviations: tuple[float, ...]

    @property
    def open(self) -> tuple[Direction, ...]:
        """What the recordings do not determine."""
        return tuple(d for d in self.directions if d.verdict == "open")


def identifiability(slope: np.ndarray, residual: np.ndarray, names: tuple[str, ...]) -> Identifiability:
    """Of the residuals' derivative (R, P) in shares of the ranges, and the residuals (R,) that are left."""
    count, size = slope.shape
    deviation = float(np.sqrt((residual**2).sum() / max(1, count - size)))
    _, values, axes = np.linalg.svd(slope, full_matrices=False)
    prior = 1 / _UNIFORM**2
    found = []
    for value, axis in zip(values, axes, strict=True):
        axis = axis * np.sign(axis[_named(axis)[0]])
        width = deviation / value if value > 0 else np.inf
        verdict = "open" if width > _UNIFORM else "weak" if width > _WEAK else "fixed"
        found.append(Direction(float(value), float(width), verdict, tuple(axis.tolist()), _words(axis, names)))
    information = slope.T @ slope / max(deviation, 1e-300) ** 2 + prior * np.eye(size)
    deviations = np.sqrt(np.diagonal(np.linalg.inv(information)))
    return Identifiability(tuple(found), tuple(deviations.tolist()))


def _named(axis: np.ndarray) -> list[int]:
    """The parameters that make most of a direction, in their own order."""
    return [k for k, share in enumerate(np.abs(axis)) if share >= _NAMED] or [int(np.abs(axis).argmax())]


def _words(axis: np.ndarray, names: tuple[str, ...]) -> str:
    """``kp/waist and kd/waist up together``, ``kd/waist up while damping/waist down``."""
    named = _named(axis)
    if len(named) == 1:
        return f"{names[named[0]]} alone"
    up, down = ([names[k] for k in named if axis[k] * sign > 0] for sign in (1, -1))
    first = f"{' and '.join(up)} up"
    return f"{first} while {' and '.join(down)} down" if down else f"{first} together"
