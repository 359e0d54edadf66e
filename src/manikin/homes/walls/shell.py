"""Outer walls of an apartment whose own are missing, from where a robot may drive and what stands there.

They follow the outline of the floor. Notches and bumps narrower than 0.4 m are straightened, and so are the slits that
inner walls leave (see :mod:`manikin.homes.walls.partitions`). Furniture that reaches out of a straight outline gets a
rectangular niche, so that no wall cuts it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from manikin.errors import DataError
from manikin.homes.free_space import cover
from manikin.spec.prop import Shape

__all__ = ["HEIGHT", "Shell", "shell_around"]

_CELL = 0.05  # [m]
HEIGHT = 2.4  # [m]
_THICK = 0.05  # [m] half thickness
_SQUARE = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
_SMOOTH, _NOTCH = 0.4, 0.2  # [m] narrower notches and bumps disappear; narrower notches beside furniture do


@dataclass(frozen=True, eq=False)
class Shell:
    """A floor plan with walls around it.

    Attributes:
        walls: boxes along x and y.
        floor: (nx, ny) bool, cells within the walls.
        origin: (2,) middle of the first cell [m].
    """

    walls: tuple[Shape, ...]
    floor: np.ndarray
    origin: np.ndarray

    @property
    def corners(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Lowest and highest x and y of the floor [m]."""
        where = np.argwhere(self.floor)
        (x0, y0), (x1, y1) = self.origin + (where.min(0) - 0.5) * _CELL, self.origin + (where.max(0) + 0.5) * _CELL
        return (float(x0), float(y0)), (float(x1), float(y1))

    @property
    def outlines(self) -> list[np.ndarray]:
        """Corners (4, 2) [m] of each wall, counter-clockwise."""
        return [np.add(wall.pos[:2], np.multiply(wall.size[:2], _SQUARE)) for wall in self.walls]

    def contains(self, points: np.ndarray) -> np.ndarray:
        """(n,) bool, whether points (n, 2) [m] are within the walls."""
        cells = np.rint((np.asarray(points, float) - self.origin) / _CELL).astype(int)
        cells = np.clip(cells, 0, np.array(self.floor.shape) - 1)  # a margin of the grid is not floor
        return self.floor[cells[:, 0], cells[:, 1]]

    def meets(self, polygon: np.ndarray) -> bool:
        """Whether a convex polygon is within the walls or reaches in; corners (k, 2) [m], counter-clockwise."""
        touched = np.zeros_like(self.floor)
        cover(touched, polygon, self.origin, _CELL)
        return bool((touched & self.floor).any())


def shell_around(driven: Iterable[np.ndarray], radius: float, standing: Iterable[np.ndarray]) -> Shell:
    """Walls around what is driven on, widened by the robot's radius, and what stands there; what is apart is left out.

    Args:
        driven: corners (k, 2) of convex polygons where the robot's middle may be [m], counter-clockwise.
        radius: of the robot [m].
        standing: corners of what stands there, likewise.

    Raises:
        DataError: no polygon is driven on.
    """
    from scipy import ndimage

    driven, standing = list(driven), list(standing)
    if not driven:
        raise DataError("walls need polygons on which a robot may drive; there is none")
    points = np.concatenate([*driven, *standing])
    margin = radius + 1.0
    origin = points.min(0) - margin
    size = np.ceil((points.max(0) + margin - origin) / _CELL).astype(int)
    floor = np.zeros(size, bool)
    for polygon in driven:
        cover(floor, polygon, origin, _CELL)
    floor = ndimage.distance_transform_cdt(~floor, "chessboard") * _CELL <= radius  # which keeps corners square
    square, notch = (np.ones((round(width / _CELL),) * 2, bool) for width in (_SMOOTH, _NOTCH))
    taken = np.zeros(size, bool)
    for polygon in standing:
        cover(taken, polygon, origin, _CELL)
    floor = ndimage.binary_fill_holes(ndimage.binary_closing(floor | taken, square))
    floor = ndimage.binary_opening(floor, square)
    for where in ndimage.find_objects(ndimage.label(taken & ~floor)[0]):  # walls go around what would stand in them
        floor[where] = True
    floor = ndimage.binary_fill_holes(ndimage.binary_closing(floor, notch))
    parts, _ = ndimage.label(floor)
    floor = parts == 1 + int(np.argmax(np.bincount(parts.ravel())[1:]))
    walls = [_wall(axis, side, *run, origin) for axis in (0, 1) for side in (-1, 1) for run in _runs(floor, axis, side)]
    return Shell(tuple(walls), floor, origin)


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
    pos = (across, along, HEIGHT / 2) if axis == 0 else (along, across, HEIGHT / 2)
    half = (_THICK, reach, HEIGHT / 2) if axis == 0 else (reach, _THICK, HEIGHT / 2)
    return Shape(type="box", size=half, pos=tuple(map(float, pos)), rgba=(0.93, 0.92, 0.88, 1))  # type: ignore[arg-type]
