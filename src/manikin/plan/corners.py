"""Rounds the corners of a path, so that the arm does not have to stop there.

A corner is left ``reach`` before it and the path joined again ``reach`` after it, both measured in the joint that moves
most. In between the velocity turns from one direction to the other while acceleration rises, holds and falls: three
phases of constant jerk in every joint. The curve does not depend on how long it takes, so it can be checked for
collisions before it is known how fast the arm may be.
"""

from __future__ import annotations

import numpy as np

from manikin.plan.batched import DENSE
from manikin.plan.collision import CollisionChecker

__all__ = ["MOST", "RAMP", "WHOLE", "curve", "cuts", "round_corners"]

RAMP = 0.3  # share of a corner's time in which acceleration rises, and in which it falls
MOST = 0.4  # of a straight piece that the corner at one of its ends may take
WHOLE = 1.0 / (1.0 - RAMP)  # the acceleration held, where the change of velocity and the time are 1
_AWAY = 2 * WHOLE * (RAMP**2 / 6 + (0.5 - RAMP) * RAMP / 2 + (0.5 - RAMP) ** 2 / 2)  # deviation of a cut of size 1
_HALVED = 5  # times, before the arm stops at a corner


def cuts(points: np.ndarray, reach: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From where a corner is left to the corner, and from there to where the path is joined again; each (points,
    joints). Zero at both ends and where ``reach`` (points,) is."""
    into, out = np.zeros_like(points), np.zeros_like(points)
    pieces = np.diff(points, axis=0)
    unit = pieces / np.maximum(np.abs(pieces).max(1, keepdims=True), 1e-12)
    into[1:-1], out[1:-1] = (reach[1:-1, None] * u for u in (unit[:-1], unit[1:]))
    return into, out


def curve(corner: np.ndarray, into: np.ndarray, out: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Places (k, joints) on a rounded corner at shares ``u`` (k,) of its time."""
    rise, hold = np.minimum(u, RAMP), np.clip(u - RAMP, 0.0, 1.0 - 2 * RAMP)
    fall = np.clip(u - (1.0 - RAMP), 0.0, RAMP)
    # the integral of the share of the change of velocity that is done
    way = rise**3 / (6 * RAMP) + hold * (RAMP + hold) / 2 + fall * (1.0 - 1.5 * RAMP + fall / 2) - fall**3 / (6 * RAMP)
    way = WHOLE * way[:, None]
    return corner - into + 2 * into * u[:, None] + 2 * (out - into) * way


def round_corners(
    checker: CollisionChecker, paths: dict[int, np.ndarray], deviation: float, step: float
) -> dict[int, np.ndarray]:
    """Of each path (points, joints), by its row of the checker, how far before and after its corners the arm may leave
    it: (points,) [rad], 0 where it has to stop.

    Args:
        checker: has looked at the rows.
        paths: free of collisions.
        deviation: [rad] that any joint may be away from the path.
        step: [rad] between the places of a finished path that are looked at, see :class:`Search`.
    """
    reach = {row: longest_cuts(path, deviation) for row, path in paths.items()}
    left = {(row, int(k)) for row, cut in reach.items() for k in np.flatnonzero(cut)}
    for attempt in range(_HALVED):
        for k in sorted({k for _, k in left}):
            rows = sorted(row for row, other in left if other == k)
            clear = _clear(checker, paths, reach, rows, k, step / DENSE)
            for row, good in zip(rows, clear, strict=True):
                if good:
                    left.remove((row, k))
                else:
                    reach[row][k] *= 0.5 if attempt < _HALVED - 1 else 0.0
    return reach


def longest_cuts(path: np.ndarray, deviation: float) -> np.ndarray:
    """(points,) [rad] as far as the deviation and the pieces beside a corner let it be cut."""
    reach = np.zeros(len(path))
    if len(path) > 2:
        length = np.abs(np.diff(path, axis=0)).max(1)
        reach[1:-1] = MOST * np.minimum(length[:-1], length[1:])
        into, out = cuts(path, reach)
        away = _AWAY * np.abs(out - into).max(1)
        reach *= np.minimum(1.0, deviation / np.maximum(away, 1e-12))
    return reach


def _clear(
    checker: CollisionChecker,
    paths: dict[int, np.ndarray],
    reach: dict[int, np.ndarray],
    rows: list[int],
    k: int,
    step: float,
) -> np.ndarray:
    """(rows,) bool: nothing is in the way of corner k of these paths."""
    count = [max(2, int(np.ceil(2 * reach[row][k] / step))) for row in rows]
    places = np.zeros((len(rows), max(count), next(iter(paths.values())).shape[1]))
    for i, row in enumerate(rows):
        into, out = cuts(paths[row], reach[row])
        share = np.arange(1, count[i]) / count[i]
        places[i, : count[i] - 1] = curve(paths[row][k], into[k], out[k], share)
    asked = np.arange(max(count)) < np.array(count)[:, None] - 1
    return np.asarray(checker.free(places, np.array(rows, np.int64), asked).all(1))
