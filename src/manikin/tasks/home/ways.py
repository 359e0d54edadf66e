"""A quick way for a base with two driven wheels. It stops and turns at every corner, so it takes few corners."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from manikin.homes import FreeSpace
from manikin.homes.free_space import CELL

__all__ = ["quick_way", "stacked"]

_SPEED, _TURN, _LEG = 1.0, 2.0, 0.8  # [m/s], [rad/s], and [s] more for a leg with its turn
_GRIDS = (6, 2)  # a corner may be at every so many cells, the second where there is no such way ...
_TRIED, _SHORTEST = 4000, 200  # the shortest pairs of corners that are tried, and ways with two that are compared
_FAR = 2.5  # ... so far from the start at most [m]
_TIGHT = 10.0  # [s] that a way is worse for a place where it cannot turn
_BACK = 1.0  # [m] that it backs at most
_CORNERS = 16  # of a path, or as many as the longest has


def quick_way(space: FreeSpace, turns: np.ndarray, base: np.ndarray, stands: np.ndarray) -> np.ndarray:
    """(k, 3) x, y [m] and yaw [rad] of places one after the other, the last of them one of the stands.

    Of straight ways, of those with one corner, or where there is none with two, and of the shortest to each stand it is
    the one that takes least time.

    Args:
        space: where it can drive.
        turns: (nx, ny) bool, cells in which it can turn; without a way that turns only there it takes another.
        base: (3,) where it is, x, y [m] and yaw [rad].
        stands: (m, 3) where it may go.
    """
    start = base[:2]
    seen = space.sees(np.broadcast_to(start, (len(stands), 2)), stands[:, :2])
    ways = [(stand[None, :2], stand[2]) for stand in stands[seen]]
    for grid in _GRIDS:
        corners = _corners(space, turns, start, grid)
        for stand in stands:
            sees = space.sees(corners, np.broadcast_to(stand[:2], corners.shape))
            ways += [(np.stack([corner, stand[:2]]), stand[2]) for corner in corners[sees]]
        if ways:
            break
    else:
        ways = [(places, stand[2]) for stand in stands for places in _two_corners(space, turns, start, stand[:2])]
    ways += [(space.path(stand[:2], start)[-2::-1], stand[2]) for stand in stands]
    places, yaw = min(ways, key=lambda way: _time(base, *way) + _TIGHT * _tight(space, turns, way[0]))
    ahead = np.diff(np.concatenate([start[None], places]), axis=0)
    yaws = np.arctan2(ahead[:, 1], ahead[:, 0])
    yaws[-1] = yaw
    return np.concatenate([places, yaws[:, None]], 1)


def stacked(ways: Sequence[np.ndarray]) -> tuple[Tensor, Tensor]:
    """Ways (k, 3) of n rows as one path (n, k, 3), the last place of each repeated; and (n,) [rad] how they end."""
    most = max(_CORNERS, *map(len, ways))
    filled = [np.concatenate([way, way[-1:].repeat(most - len(way), 0)]) for way in ways]
    paths = torch.tensor(np.stack(filled)).float()
    return paths, paths[:, -1, 2]


def _corners(space: FreeSpace, turns: np.ndarray, start: np.ndarray, grid: int) -> np.ndarray:
    """(k, 2) places to which it can go straight from the start."""
    places = space.origin + np.argwhere(turns[::grid, ::grid]) * (grid * CELL)
    places = places[np.linalg.norm(places - start, axis=1) < _FAR]
    return np.asarray(places[space.sees(np.broadcast_to(start, places.shape), places)])


def _two_corners(space: FreeSpace, turns: np.ndarray, start: np.ndarray, stand: np.ndarray) -> list[np.ndarray]:
    """Places (3, 2) of the shortest ways with two corners to a stand (2,)."""
    first, second = (_corners(space, turns, end, _GRIDS[0]) for end in (start, stand))
    one, two = (which.ravel() for which in np.indices((len(first), len(second))))
    ways = np.stack([first[one], second[two], np.broadcast_to(stand, (len(one), 2))], 1)
    legs = np.diff(np.concatenate([np.broadcast_to(start, (len(ways), 1, 2)), ways], 1), axis=1)
    ways = ways[np.argsort(np.linalg.norm(legs, axis=2).sum(1), kind="stable")]
    found = ways[:_TRIED]
    return list(found[space.sees(found[:, 0], found[:, 1])][:_SHORTEST])


def _tight(space: FreeSpace, turns: np.ndarray, places: np.ndarray) -> int:
    """Of places (k, 2), in how many it cannot turn."""
    cells = np.rint((places - space.origin) / CELL).astype(int)
    return int((~turns[cells[:, 0], cells[:, 1]]).sum())


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
