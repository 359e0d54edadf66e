"""Walls of an apartment whose own are missing, from where a robot may drive and what stands there."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from manikin.homes.free_space import cover
from manikin.spec.prop import Shape

__all__ = ["walls_around"]

_CELL = 0.05  # [m]
_THICK, _HEIGHT = 0.05, 2.4  # [m] half thickness, height
_SMOOTH = 0.4  # [m] notches and bumps that are narrower disappear


def walls_around(
    driven: Iterable[np.ndarray], radius: float, standing: Iterable[np.ndarray]
) -> tuple[tuple[Shape, ...], tuple[float, float], tuple[float, float]]:
    """Walls around all that is driven on, widened by the robot's radius, and all that stands there.

    Args:
        driven: corners (k, 2) of convex polygons where the robot's middle may be [m], counter-clockwise.
        radius: of the robot [m].
        standing: corners of what stands there, likewise.

    Returns:
        Boxes along x and y, and the corners of the floor plan.
    """
    from scipy import ndimage

    driven, standing = list(driven), list(standing)
    points = np.concatenate([*driven, *standing])
    margin = radius + 1.0
    origin = points.min(0) - margin
    size = np.ceil((points.max(0) + margin - origin) / _CELL).astype(int)
    floor = np.zeros(size, bool)
    for polygon in driven:
        cover(floor, polygon, origin, _CELL)
    floor = ndimage.distance_transform_edt(~floor) * _CELL <= radius
    for polygon in standing:
        cover(floor, polygon, origin, _CELL)
    square = np.ones((round(_SMOOTH / _CELL),) * 2, bool)
    floor = ndimage.binary_fill_holes(ndimage.binary_closing(floor, square))
    where = np.argwhere(floor)
    low, high = origin + (where.min(0) - 0.5) * _CELL, origin + (where.max(0) + 0.5) * _CELL
    walls = [_wall(axis, side, *run, origin) for axis in (0, 1) for side in (-1, 1) for run in _runs(floor, axis, side)]
    return tuple(walls), (float(low[0]), float(low[1])), (float(high[0]), float(high[1]))


def _runs(floor: np.ndarray, axis: int, side: int) -> list[tuple[int, int, int]]:
    """Straight pieces of the boundary that face ``side`` along ``axis``: line, first and last cell along it."""
    beyond = np.roll(floor, -side, axis)
    edge = floor & ~beyond
    out = []
    for line in range(floor.shape[axis]):
        row = np.concatenate([[False], np.take(edge, line, axis), [False]])
        starts, ends = np.flatnonzero(row[1:] & ~row[:-1]), np.flatnonzero(row[:-1] & ~row[1:])
        out += [(line, int(a), int(b) - 1) for a, b in zip(starts, ends, strict=True)]
    return out


def _wall(axis: int, side: int, line: int, first: int, last: int, origin: np.ndarray) -> Shape:
    across = origin[axis] + (line + side * 0.5) * _CELL + side * _THICK
    along = origin[1 - axis] + (first + last) / 2 * _CELL
    reach = (last - first + 1) / 2 * _CELL
    pos = (across, along, _HEIGHT / 2) if axis == 0 else (along, across, _HEIGHT / 2)
    half = (_THICK, reach, _HEIGHT / 2) if axis == 0 else (reach, _THICK, _HEIGHT / 2)
    return Shape(type="box", size=half, pos=tuple(map(float, pos)), rgba=(0.93, 0.92, 0.88, 1))  # type: ignore[arg-type]
