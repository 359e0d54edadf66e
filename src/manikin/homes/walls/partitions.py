"""Walls between rooms, from where a robot may drive on both sides of them.

A navigation mesh keeps a robot's radius away from a wall. Widened by the radius, it leaves a slit where the wall is, as
wide as the wall is thick. What is in a slit narrower than 0.4 m, 3 cm and more away from furniture, becomes upright
boxes: the largest first, along x and y, then those of slanted walls along their slit. What no box of 0.01 m^2 fits
into is left open: corners that the radius has rounded, cracks beside furniture. Where there is a mesh of the rooms
without furniture, its slits are the walls; the gaps between furniture in the scene's own mesh are none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from manikin.homes.free_space import cover
from manikin.spec.prop import Shape

__all__ = ["partitions"]

_CELL = 0.02  # [m]
_WIDEST = 0.4  # [m] a wider slit is no wall
_APART = 0.03  # [m] from furniture
_VAGUE = 0.05  # [m] by so much two meshes of one place may differ: the side of Recast's cells
_JOINED = 0.3  # [m] a narrower gap before another wall is closed
_LONG = 0.2  # [m] what is shorter is no wall
_STRAIGHT, _SLANTED, _LEAST = 0.03, 0.015, 0.01  # [m^2] boxes at least: along x and y, slanted, then the rest
_THIN = 4.0  # times as long as wide is what may be slanted


def partitions(
    driven: Iterable[np.ndarray],
    radius: float,
    standing: Iterable[np.ndarray],
    *,
    height: float,
    plan: Iterable[np.ndarray] = (),
    outer: Iterable[np.ndarray] = (),
) -> tuple[Shape, ...]:
    """Thin walls between what is driven on.

    Args:
        driven: corners (k, 2) of convex polygons where the robot's middle may be [m], counter-clockwise.
        radius: of the robot [m].
        standing: corners of what stands there and is no wall, likewise.
        height: of the walls [m].
        plan: polygons like ``driven`` of the same rooms without furniture, which then say where the slits are.
        outer: corners of other walls, likewise; what ends less than 0.3 m before one is made longer.

    Returns:
        Boxes that stand on the floor, turned about z at most. None touches ``standing``. To a cell of 2 cm,
        each is ``radius`` or more away from ``plan``, and from ``driven`` less 5 cm at most.
    """
    from scipy import ndimage

    driven, plan, standing, outer = list(driven), list(plan), list(standing), list(outer)
    plan = plan or driven
    if not plan:
        return ()
    points, margin = np.concatenate([*plan, *driven]), radius + _WIDEST
    origin = points.min(0) - margin
    size = np.ceil((points.max(0) + margin - origin) / _CELL).astype(int) + 1
    away, apart, clear = (
        ndimage.distance_transform_edt(~_grid(size, polygons, origin)) * _CELL if polygons else np.full(size, np.inf)
        for polygons in (plan, standing, driven)
    )
    room = (away > radius) & (clear > radius - _VAGUE) & (apart > _APART)
    slit = _closed(away <= radius, _WIDEST) & room
    others = _grid(size, outer, origin)
    slit |= _closed(slit | others, _JOINED) & ~others & room & ndimage.maximum_filter(slit, _cells(2 * _JOINED))
    slit = ndimage.binary_opening(slit, np.ones((2, 2), bool))
    parts, _ = ndimage.label(slit, np.ones((3, 3)))
    walls = []
    for number, where in enumerate(ndimage.find_objects(parts), 1):
        if max(s.stop - s.start for s in where) * _CELL >= _LONG:
            corner = origin + np.array([s.start for s in where]) * _CELL
            walls += [_wall(*box, height) for box in _boxes(parts[where] == number, corner)]
    return tuple(walls)


def _cells(length: float) -> int:
    return 2 * round(length / _CELL / 2) + 1  # odd, so that a filter's window has a middle


def _closed(grid: np.ndarray, width: float) -> np.ndarray:
    """A grid without the gaps that are narrower than a width [m]."""
    from scipy import ndimage

    return np.asarray(ndimage.minimum_filter(ndimage.maximum_filter(grid, _cells(width)), _cells(width)))


def _grid(size: np.ndarray, polygons: list[np.ndarray], origin: np.ndarray) -> np.ndarray:
    grid = np.zeros(size, bool)
    for polygon in polygons:
        cover(grid, polygon, origin, _CELL)
    return grid


def _boxes(slit: np.ndarray, corner: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
    """Middles (2,), half sides (2,) [m] and angles [rad] of boxes in a slit (nx, ny), whose first cell is at corner."""
    slit = slit.copy()
    for slanted, least in ((False, _STRAIGHT), (True, _SLANTED), (False, _LEAST)):
        while slit.any():
            angles = _slants(slit) if slanted else [0.0]
            middle, half, angle = max((_box(slit, angle) for angle in angles), key=lambda box: float(box[1].prod()))
            if 4 * half.prod() * _CELL**2 < least:
                break
            cells = np.argwhere(slit)
            inside = (np.abs((cells - middle) @ _turn(angle)) <= half + 0.5).all(1)
            slit[tuple(cells[inside].T)] = False
            yield corner + middle * _CELL, half * _CELL, angle


def _box(slit: np.ndarray, angle: float) -> tuple[np.ndarray, np.ndarray, float]:
    """The largest box in a slit at an angle [rad]: its middle (2,) and half sides (2,) [cells], and the angle."""
    turn = _turn(angle)
    ends = np.array([(x, y) for x in (0, slit.shape[0] - 1) for y in (0, slit.shape[1] - 1)]) @ turn
    low, high = np.floor(ends.min(0)), np.ceil(ends.max(0))
    u, v = np.meshgrid(*(np.arange(a, b + 1) for a, b in zip(low, high, strict=True)), indexing="ij")
    cells = np.rint(np.stack([u, v], -1) @ turn.T).astype(int)
    known = ((cells >= 0) & (cells < slit.shape)).all(-1)
    grid = np.zeros(u.shape, bool)
    grid[known] = slit[tuple(cells[known].T)]
    first, after = _largest(grid)
    return turn @ (low + (first + after - 1) / 2), (after - first) / 2, angle


def _turn(angle: float) -> np.ndarray:
    return np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])


def _slants(slit: np.ndarray) -> list[float]:
    """Angles [rad] about which the largest piece of a slit goes; 0 where it is not long and thin."""
    from scipy import ndimage

    parts, _ = ndimage.label(slit)
    cells = np.argwhere(parts == 1 + int(np.argmax(np.bincount(parts.ravel())[1:])))
    spread, axes = np.linalg.eigh(np.cov(cells.T) if len(cells) > 2 else np.eye(2))
    if spread[1] < _THIN**2 * spread[0]:
        return [0.0]
    return [float(math.atan2(axes[1, 1], axes[0, 1]) + math.radians(degrees)) for degrees in range(-6, 7, 2)]


def _largest(grid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First cell (2,), and the one after the last, of the largest rectangle of true cells."""
    best, found = 0, ((0, 0), (0, 0))
    depth = np.zeros(grid.shape[1] + 1, int)  # how many cells up to this row; the last column ends every run
    for row, line in enumerate(grid):
        depth[:-1] = np.where(line, depth[:-1] + 1, 0)
        columns = np.flatnonzero(line)
        columns = np.union1d(columns, columns + 1)  # with the one that ends each run
        open_: list[tuple[int, int]] = []  # columns where a rectangle begins, and its depth, which grows
        for column, value in zip(columns.tolist(), depth[columns].tolist(), strict=True):
            start = column
            while open_ and open_[-1][1] >= value:
                start, deep = open_.pop()
                if deep * (column - start) > best:
                    best, found = deep * (column - start), ((row + 1 - deep, start), (row + 1, column))
            open_.append((start, value))
    return np.array(found[0]), np.array(found[1])


def _wall(middle: np.ndarray, half: np.ndarray, angle: float, height: float) -> Shape:
    (x, y), (u, v), z = map(float, middle), map(float, half), height / 2
    quat = (math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2))
    return Shape(type="box", size=(u, v, z), pos=(x, y, z), quat=quat, rgba=(0.93, 0.92, 0.88, 1))
