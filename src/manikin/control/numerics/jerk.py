"""The fastest motion to rest within limits of velocity, acceleration and jerk, from any velocity, for many rows.

One source for NumPy (the CPU) and torch (a device), of fixed shape and without a branch on values.

A motion changes from its velocity v to a velocity x, cruises, and changes from x to rest; each change is jerk-limited.
With the way d still to go and s(v) the way of the fastest stop, it is fastest in the direction of d - s(v), with the
largest x whose way fits. Joints that arrive together take the duration of the slowest one. For a given duration the way
grows with x, so x is found by halving its range. A way that no such motion has is a weighted mean of the two nearest
ones; that keeps the limits, because they are convex. As the goal is at rest, every duration above the shortest one is
possible.

Ruckig (Berscheid and Kroeger 2021) solves the same problem by polynomials, one row after the other; tests compare.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manikin.control.numerics.law import Array

__all__ = ["Rest", "change", "to_rest"]

_ROUNDS, _HALVINGS = 16, 3  # of a range of speeds: each round halves it so often at once; 4e-15 of it is left
_NONE = 1e-12  # [rad/s] a slower cruise counts as none


def _xp(value: Array) -> Any:
    return torch if isinstance(value, Tensor) else np


def change(one: Array, two: Array, a: Array, j: Array) -> tuple[Array, Array, Array]:
    """Change from one speed to another, no acceleration before and after: time of acceleration to rise (and to fall),
    time it is held, way."""
    xp, by = _xp(one), abs(two - one)
    product = by * j
    peak = xp.where(product < a * a, xp.sqrt(product), a)
    rise = peak / j
    held = by / xp.where(peak > 0, peak, 1.0) - rise
    held = xp.where(held > 0, held, 0.0)
    return rise, held, (one + two) / 2 * (2 * rise + held)


def _last(fits: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """(n, m) the last x on the way from ``low`` to ``high`` that fits; what comes before it fits, too. Several x are
    tried at once, (k, n, m): for few rows a call costs more than its numbers."""
    xp, parts = _xp(low), 2**_HALVINGS
    places = xp.arange(1, parts, **({"device": low.device} if xp is torch else {}))[:, None, None]
    for _ in range(_ROUNDS):
        step = (high - low) / parts
        low = low + step * fits(low + step * places).sum(0)
        high = low + step
    return low


class _Limited:
    """What the ways of motions over x are, with limits (m,) or (n, m)."""

    def __init__(self, velocity: Array, acceleration: Array, jerk: Array) -> None:
        self.velocity, self.a, self.j = velocity, acceleration, jerk

    def both(self, v: Array, x: Array) -> tuple[Array, Array]:
        """Way and duration of the changes from ``v`` to ``x`` and from there to rest."""
        xp = _xp(v)
        v = v + xp.zeros_like(x)
        rise, held, way = change(xp.stack([v, x]), xp.stack([x, xp.zeros_like(x)]), self.a, self.j)
        lasts = 2 * rise + held
        return way[0] + way[1], lasts[0] + lasts[1]

    def shortest(self, v: Array, d: Array) -> Array:
        """(n, m) [s] the shortest duration."""
        xp = _xp(v)
        stop = self.both(v, xp.zeros_like(v))[0]
        side = xp.where(d >= stop, 1.0, -1.0)
        v, d = side * v, side * d
        top = self.velocity + xp.zeros_like(v)
        found = _last(lambda x: self.both(v, x)[0] <= d, xp.where(v > 0, v, 0.0), top)
        x = xp.where(self.both(v, top)[0] <= d, top, found)
        way, lasts = self.both(v, x)
        return lasts + xp.where(x > _NONE, (d - way) / xp.where(x > _NONE, x, 1.0), 0.0)

    def within(self, v: Array, d: Array, t: Array) -> tuple[Array, Array, Array]:
        """Two cruising speeds (n, m) and the weight of the second, of motions that last ``t`` (n, m) [s]; ``v`` is not
        negative."""
        xp = _xp(v)
        # Between 0 and v a cruise costs time for a second change: most in the middle, alike on both sides.
        middle = v / 2
        below, free = middle, self.both(v, middle)[1] <= t
        if xp is torch or not free.all():
            below = xp.where(free, middle, _last(lambda x: self.both(v, x)[1] <= t, xp.zeros_like(v), middle))
        above = v - below

        def goes(x: Array) -> tuple[Array, Array]:
            way, lasts = self.both(v, x)
            left = t - lasts
            return way + x * xp.where(left > 0, left, 0.0), left >= 0

        least, most = goes(below)[0], goes(above)[0]
        side = xp.where(d >= most, 1.0, -1.0)

        def fits(x: Array) -> Array:
            way, possible = goes(x)
            return possible & (side * (way - d) <= 0)

        found = _last(fits, xp.where(d >= most, above, below), side * self.velocity)
        between = (d > least) & (d < most)
        share = (d - least) / xp.where(most > least, most - least, 1.0)
        return xp.where(between, below, found), above, xp.where(between, share, 0.0)


class Rest:
    """Motions of n rows and m joints that arrive, each group of joints together, and stay.

    Attributes:
        duration: (n, m) [s].
    """

    def __init__(
        self, q: Array, v: Array, goal: Array, limits: tuple[Array, Array, Array], groups: Sequence[slice]
    ) -> None:
        xp = _xp(q)
        limited = _Limited(*limits)
        top = limited.velocity + xp.zeros_like(v)
        v = xp.where(v > top, top, xp.where(v < -top, -top, v))
        self._q, self._goal, way = q, goal, goal - q
        shortest = limited.shortest(v, way)
        self.duration = xp.zeros_like(shortest)
        for group in groups:
            own = shortest[:, group]
            self.duration[:, group] = (own.amax(1) if xp is torch else own.max(1))[:, None]
        side = xp.where(v < 0, -1.0, 1.0)
        one, two, share = limited.within(side * v, side * way, self.duration)
        self._parts = [
            (1.0 - share, self._phases(v, side * one, limited)),
            (share, self._phases(v, side * two, limited)),
        ]
        self._v = v

    def _phases(self, v: Array, x: Array, limited: _Limited) -> list[tuple[Array, Array]]:
        """Duration and jerk (n, m) of each of seven phases."""
        xp, found = _xp(v), []
        cruise = self.duration
        for one, two in ((v, x), (x, xp.zeros_like(x))):
            rise, held, _ = change(one, two, limited.a, limited.j)
            jerk = xp.where(two > one, limited.j, -limited.j)
            found.append([(rise, jerk), (held, 0.0 * jerk), (rise, -jerk)])
            cruise = cruise - 2 * rise - held
        return [*found[0], (xp.where(cruise > 0, cruise, 0.0), xp.zeros_like(x)), *found[1]]

    def sample(self, times: Array) -> tuple[Array, Array]:
        """Position [rad] and velocity [rad/s], each (n, k, m), at times (k,) [s] from the start."""
        xp = _xp(self._q)
        t = times[None, :, None]
        way, speed = xp.zeros_like(self._q[:, None] + t), xp.zeros_like(self._q[:, None] + t)
        for share, phases in self._parts:
            q, v, a = xp.zeros_like(way), self._v[:, None] + xp.zeros_like(way), xp.zeros_like(way)
            begins = xp.zeros_like(self._q)
            for lasts, jerk in phases:
                s = t - begins[:, None]
                s = xp.where(s > 0, s, 0.0)
                s = xp.where(s < lasts[:, None], s, lasts[:, None])
                j = jerk[:, None]
                q = q + s * (v + s * (a / 2 + s * j / 6))
                v, a = v + s * (a + s * j / 2), a + s * j
                begins = begins + lasts
            way, speed = way + share[:, None] * q, speed + share[:, None] * v
        over = t >= self.duration[:, None]
        goal = self._goal[:, None] + xp.zeros_like(way)
        return xp.where(over, goal, self._q[:, None] + way), xp.where(over, 0.0, speed)


def to_rest(
    q: Array,
    v: Array,
    goal: Array,
    *,
    velocity: Array,
    acceleration: Array,
    jerk: Array,
    groups: Sequence[slice] = (slice(None),),
) -> Rest:
    """The fastest motions from ``q`` (n, m) [rad] with velocity ``v`` (n, m) [rad/s] and no acceleration to rest at
    ``goal`` (n, m). The joints of each group arrive together; by default all do.

    Limits are (m,), positive: velocity [rad/s], acceleration [rad/s^2], jerk [rad/s^3]. A velocity above its limit
    counts as the limit. Arrays are float64, of NumPy or of torch.
    """
    return Rest(q, v, goal, (velocity, acceleration, jerk), groups)
