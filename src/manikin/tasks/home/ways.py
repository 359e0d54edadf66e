"""A quick way for a base with two driven wheels. It stops and turns at every corner, so it takes few corners."""

from __future__ import annotations

import math

import numpy as np

from manikin.homes import FreeSpace
from manikin.homes.free_space import CELL

__all__ = ["quick_way"]

_SPEED, _TURN, _LEG = 1.0, 2.0, 0.8  # [m/s], [rad/s], and [s] more for a leg with its turn
_GRID = 6  # a corner may be at every so many cells ...
_FAR = 2.5  # ... so far from the start at most [m]
_BACK = 1.0  # [m] that it backs at most


def quick_way(space: FreeSpace, base: np.ndarray, stands: np.ndarray) -> np.ndarray:
    """(k, 3) x, y [m] and yaw [rad] of places one after the other, the last of them one of the stands.

    Of straight ways, and of those with one corner, it is the one that takes least time; without any such way it is the
    shortest to the first stand.

    Args:
        space: where it can drive.
        base: (3,) where it is, x, y [m] and yaw [rad].
        stands: (m, 3) where it may go.
    """
    start = base[:2]
    seen = space.sees(np.broadcast_to(start, (len(stands), 2)), stands[:, :2])
    found = [(_time(base, stand[None, :2], stand[2]), stand[None, :2], stand[2]) for stand in stands[seen]]
    corners = _corners(space, start)
    for stand in stands:
        for corner in corners[space.sees(corners, np.broadcast_to(stand[:2], corners.shape))]:
            both = np.stack([corner, stand[:2]])
            found.append((_time(base, both, stand[2]), both, stand[2]))
    if found:
        _, places, yaw = min(found, key=lambda one: one[0])
    else:
        places, yaw = space.path(start, stands[0, :2])[1:], stands[0, 2]
    ahead = np.diff(np.concatenate([start[None], places]), axis=0)
    yaws = np.arctan2(ahead[:, 1], ahead[:, 0])
    yaws[-1] = yaw
    return np.concatenate([places, yaws[:, None]], 1)


def _corners(space: FreeSpace, start: np.ndarray) -> np.ndarray:
    """(k, 2) places to which it can go straight from the start."""
    places = space.origin + np.argwhere(space.inside[::_GRID, ::_GRID]) * (_GRID * CELL)
    places = places[np.linalg.norm(places - start, axis=1) < _FAR]
    return np.asarray(places[space.sees(np.broadcast_to(start, places.shape), places)])


def _time(base: np.ndarray, places: np.ndarray, yaw: float) -> float:
    """[s] about, to drive through places (k, 2) and to end at a yaw."""
    took, heading, at = 0.0, base[2], base[:2]
    for place in places:
        way = float(np.linalg.norm(place - at))
        to = math.atan2(place[1] - at[1], place[0] - at[0]) if way > CELL else heading
        turn = abs(math.remainder(to - heading, 2 * math.pi))
        if turn > math.pi / 2 and len(places) == 1 and way < _BACK:
            turn, to = math.pi - turn, to + math.pi
        took += way / _SPEED + turn / _TURN + _LEG
        heading, at = to, place
    return float(took + abs(math.remainder(yaw - heading, 2 * math.pi)) / _TURN)
