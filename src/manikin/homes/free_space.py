"""Where a robot can drive in an apartment: clearance, distances along the floor, paths, places to start from."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np

from manikin.errors import ConfigError, SceneError, UnknownNameError
from manikin.homes.apartment import Apartment
from manikin.homes.footprints import footprints
from manikin.homes.furnish import furnish
from manikin.scene.builder import SceneBuilder
from manikin.spec.physics import Physics

__all__ = ["CELL", "FreeSpace", "cover", "free_space"]

CELL = 0.025  # [m]
_MARGIN = 0.5  # [m] of grid around the walls
_FLOOR = 0.01  # [m] what is lower, a robot drives over
_STEPS = ((0, 1), (1, 0), (1, 1), (1, -1), (1, 2), (2, 1), (1, -2), (2, -1))  # and back: 16 directions
_CACHED_GOALS = 64


@dataclass(eq=False)
class FreeSpace:
    """The map of one apartment for one robot, a disc that drives on the floor.

    The answers err on the safe side: what is called free is free. Clearance is too small by about one cell.

    Attributes:
        radius: of the disc [m].
        origin: (2,) middle of the first cell [m].
        clearance: (nx, ny) at least so far is each cell's middle from anything that stands in the way [m].
        inside: (nx, ny) bool, cells that belong to the largest region in which the disc can drive.
    """

    radius: float
    origin: np.ndarray
    clearance: np.ndarray
    inside: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        from scipy import ndimage

        free = self.clearance >= self._needs(math.hypot(2, 1) * CELL)
        parts, count = ndimage.label(free, structure=np.ones((3, 3)))
        if count == 0:
            raise SceneError(f"a robot of radius {self.radius:g} m has no room in this apartment")
        self.inside = parts == 1 + int(np.argmax(np.bincount(parts.ravel())[1:]))
        self._fields: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def _needs(self, length: float) -> float:
        """Clearance of both ends of a straight line of this length that keeps all of it free."""
        return math.hypot(self.radius, length / 2)

    def _cells(self, points: np.ndarray) -> np.ndarray:
        """(n, 2) cells whose middles are next to points (n, 2)."""
        cells = np.rint((np.asarray(points, float) - self.origin) / CELL).astype(int)
        return np.clip(cells, 0, np.array(self.clearance.shape) - 1)

    def _middles(self, cells: np.ndarray) -> np.ndarray:
        return self.origin + cells * CELL

    # ---- questions about places --------------------------------------------------------------------------------------

    def clearance_at(self, points: np.ndarray) -> np.ndarray:
        """(n,) at least so far are points (n, 2) from anything that stands in the way [m]; 0 there and outside.

        The square of a distance to the nearest of many points, less the square of the own place, is concave: between
        cells it is at least what linear interpolation says.
        """
        place = (np.asarray(points, float) - self.origin) / CELL
        place = np.clip(place, 0, np.array(self.clearance.shape) - 1.001)
        cell = np.floor(place).astype(int)
        (x, y), (u, v) = cell.T, (place - cell).T
        square = self._square
        low = square[x, y] * (1 - u) + square[x + 1, y] * u
        high = square[x, y + 1] * (1 - u) + square[x + 1, y + 1] * u
        spread = CELL**2 * (u * (1 - u) + v * (1 - v))
        return np.sqrt(np.maximum(low * (1 - v) + high * v - spread, 0.0))

    @functools.cached_property
    def _square(self) -> np.ndarray:
        """(nx, ny) [m^2] of the clearance, 0 where nothing is free."""
        return np.asarray(np.maximum(self.clearance, 0.0) ** 2)

    def is_free(self, points: np.ndarray) -> np.ndarray:
        """(n,) bool, whether the disc has room with its middle at points (n, 2) [m]."""
        return self.clearance_at(points) >= self.radius

    def reachable(self, points: np.ndarray) -> np.ndarray:
        """(n,) bool, whether points (n, 2) [m] are free and belong to the region where the robot can drive."""
        cells = self._cells(points)
        return self.is_free(points) & self.inside[cells[:, 0], cells[:, 1]]

    def closest(self, points: np.ndarray) -> np.ndarray:
        """(n, 2) [m] of the places where the robot can drive those that are closest to points (n, 2) [m]."""
        middles = self._middles(np.argwhere(self.inside))
        each = [np.linalg.norm(middles - point, axis=1).argmin() for point in np.asarray(points, float)]
        return middles[each]

    # ---- ways --------------------------------------------------------------------------------------------------------

    @functools.cached_property
    def _nodes(self) -> np.ndarray:
        """(nx, ny) number of each cell of the region, -1 elsewhere."""
        nodes = np.full(self.inside.shape, -1)
        nodes[self.inside] = np.arange(int(self.inside.sum()))
        return nodes

    @functools.cached_property
    def _graph(self) -> Any:
        from scipy import sparse

        nodes, (nx, ny) = self._nodes, self.inside.shape
        rows, columns, lengths = [], [], []
        for dx, dy in _STEPS:
            a = nodes[: nx - dx, max(0, -dy) : ny - max(0, dy)]
            b = nodes[dx:, max(0, dy) : ny - max(0, -dy)]
            both = (a >= 0) & (b >= 0)
            rows.append(a[both])
            columns.append(b[both])
            lengths.append(np.full(int(both.sum()), math.hypot(dx, dy) * CELL))
        size = int(self.inside.sum())
        where = (np.concatenate(rows), np.concatenate(columns))
        return sparse.csr_matrix((np.concatenate(lengths), where), shape=(size, size))

    def _node(self, point: np.ndarray, word: str) -> int:
        """The node next to a point, which must be within reach."""
        node = int(self._nodes[tuple(self._cells(point))])
        if node < 0:
            near = self._middles(np.argwhere(self.inside))
            gap = np.linalg.norm(near - point, axis=1)
            best = near[gap.argmin()]
            if gap.min() > 2 * CELL:
                raise SceneError(
                    f"the {word} ({point[0]:.2f}, {point[1]:.2f}) m is not where a robot of radius {self.radius:g} m "
                    f"can drive; the nearest such place is ({best[0]:.2f}, {best[1]:.2f}) m"
                )
            node = int(gap.argmin())
        return node

    def _field(self, goal: int) -> tuple[np.ndarray, np.ndarray]:
        """Length of the way to a goal from every node, and each node's next one."""
        if goal not in self._fields:
            from scipy.sparse.csgraph import dijkstra

            if len(self._fields) >= _CACHED_GOALS:
                self._fields.pop(next(iter(self._fields)))
            self._fields[goal] = dijkstra(self._graph, directed=False, indices=goal, return_predecessors=True)
        return self._fields[goal]

    def distances(self, starts: np.ndarray, goals: np.ndarray) -> np.ndarray:
        """(n,) length [m] of the shortest way for the disc from starts (n, 2) to goals (n, 2) or (2,) [m].

        Ways go in 16 directions, which makes them at most 2.8 % too long, plus half a cell at each end.

        Raises:
            SceneError: a start or a goal is not within reach; names the nearest place that is.
        """
        starts = np.asarray(starts, float)
        goals = np.broadcast_to(np.asarray(goals, float), starts.shape)
        out = np.empty(len(starts))
        for i, (start, goal) in enumerate(zip(starts, goals, strict=True)):
            out[i] = self._field(self._node(goal, "goal"))[0][self._node(start, "start")]
        return out

    def ways(self, goal: np.ndarray) -> np.ndarray:
        """(nx, ny) [m] length of the shortest way from the middle of each cell to a goal (2,); infinite where there is
        none. Raises as :meth:`distances`."""
        out = np.full(self.inside.shape, np.inf)
        out[self.inside] = self._field(self._node(np.asarray(goal, float), "goal"))[0]
        return out

    def nearest(self, goals: np.ndarray) -> np.ndarray:
        """(nx, ny) [m] length of the shortest way from the middle of each cell to the nearest of goals (k, 2); infinite
        where there is none. Raises as :meth:`distances`."""
        from scipy.sparse.csgraph import dijkstra

        nodes = [self._node(goal, "goal") for goal in np.asarray(goals, float)]
        out = np.full(self.inside.shape, np.inf)
        out[self.inside] = dijkstra(self._graph, directed=False, indices=nodes, min_only=True)
        return out

    def sees(self, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """(n,) bool, whether the disc can go straight from starts (n, 2) to ends (n, 2) [m]."""
        starts, ends = np.asarray(starts, float), np.asarray(ends, float)
        longest = float(np.linalg.norm(ends - starts, axis=1).max(initial=0.0))
        count = max(2, int(longest / (2 * CELL)) + 2)
        share = np.linspace(0.0, 1.0, count)[:, None, None]
        points = starts + share * (ends - starts)
        clear = self.clearance_at(points.reshape(-1, 2)).reshape(count, -1)
        return np.asarray((clear >= self._needs(longest / (count - 1))).all(0))

    def path(self, start: np.ndarray, goal: np.ndarray) -> np.ndarray:
        """(k, 2) corners [m] of a short way from start (2,) to goal (2,): pieces of it are straight and free.

        Raises:
            SceneError: as for :meth:`distances`.
        """
        begin, end = self._node(start, "start"), self._node(goal, "goal")
        after, nodes = self._field(end)[1], [begin]
        while nodes[-1] != end:
            nodes.append(int(after[nodes[-1]]))
        points = self._middles(np.argwhere(self.inside)[nodes])
        corners, at = [0], 0
        while at < len(points) - 1:
            low, high = at + 1, len(points) - 1  # a farther corner that is seen; what is next on the way always is
            while low < high:
                middle = (low + high + 1) // 2
                low, high = (middle, high) if self._sees(points[at], points[middle]) else (low, middle - 1)
            at = low
            corners.append(at)
        return np.concatenate([[start], points[corners[1:-1]], [goal]])

    def _sees(self, a: np.ndarray, b: np.ndarray) -> bool:
        """Whether the disc can go straight from a to b."""
        step = CELL / 2
        count = max(2, int(np.linalg.norm(b - a) / step) + 2)
        return bool((self.clearance_at(np.linspace(a, b, count)) >= self._needs(step)).all())

    # ---- places ------------------------------------------------------------------------------------------------------

    def sample(
        self,
        numbers: np.ndarray,
        *,
        near: np.ndarray | None = None,
        within: float = 2.0,
        facing: np.ndarray | None = None,
    ) -> np.ndarray:
        """Poses in the region where the robot can drive.

        Args:
            numbers: (n, 3) uniform in [0, 1), one row for each pose: cell, place within it, yaw.
            near: (n, 2) or (2,) [m]; only places so near to it as ``within``.
            within: [m], as the crow flies.
            facing: (n, 2) or (2,) [m] that poses look at; None for any yaw.

        Returns:
            (n, 3) x, y [m] and yaw [rad].

        Raises:
            SceneError: no such place; names the point.
        """
        numbers = np.asarray(numbers, float)
        whole = self.inside & (self.clearance >= self.radius + CELL * math.sqrt(0.5))
        cells = np.argwhere(whole)
        middles, n = self._middles(cells), len(numbers)
        out = np.empty((n, 3))
        for i in range(n):
            choice = middles
            if near is not None:
                point = np.broadcast_to(np.asarray(near, float), (n, 2))[i]
                choice = middles[np.linalg.norm(middles - point, axis=1) < within - CELL]
            if not len(choice):
                raise SceneError(
                    f"a robot of radius {self.radius:g} m has no place within {within:g} m of ({point[0]:.2f}, "
                    f"{point[1]:.2f}) m"
                )
            share = numbers[i, 1] * 256.0
            off = np.array([np.floor(share) / 256.0, share % 1.0]) - 0.5
            out[i, :2] = choice[int(numbers[i, 0] * len(choice))] + off * CELL
        if facing is None:
            out[:, 2] = (2 * numbers[:, 2] - 1) * np.pi
        else:
            away = np.broadcast_to(np.asarray(facing, float), (n, 2)) - out[:, :2]
            out[:, 2] = np.arctan2(away[:, 1], away[:, 0])
        return out


def free_space(
    apartment: Apartment,
    *,
    radius: float,
    height: float = 1.5,
    arm: tuple[float, float] | None = None,
    joints: Mapping[str, Mapping[str, float]] | None = None,
) -> FreeSpace:
    """The map of an apartment for a robot that is not larger than an upright cylinder on the floor.

    Args:
        apartment: which.
        radius: of the cylinder [m].
        height: of the cylinder [m].
        arm: how far an arm reaches from the middle of the robot, and above which height it is [m]: what is higher keeps
            as far away, so that the robot can turn anywhere. None for none.
        joints: positions of joints that are not at 0, by mechanism and joint [m or rad].

    Raises:
        ConfigError: the cylinder or the arm is empty, or scipy is not installed.
        UnknownNameError: no such mechanism or joint.
        SceneError: there is no room anywhere.
    """
    if not (radius > 0 and height > _FLOOR):
        raise ConfigError(f"a robot has a radius above 0 m and a height above {_FLOOR} m, not {radius} and {height}")
    if arm is not None and not (arm[0] >= radius and 0 < arm[1] < height):
        raise ConfigError(f"an arm reaches {radius} m or more and is between 0 and {height} m high, not {arm}")
    try:
        from scipy import ndimage
    except ImportError as error:
        raise ConfigError("maps of apartments need scipy: pip install 'manikin[meshes]'") from error
    b = SceneBuilder([], Physics())
    furnish(b, apartment)
    model = b.compile().model
    data = mujoco.MjData(model)
    known = {one.name: one.joints for one in apartment.mechanisms}
    for mechanism, positions in (joints or {}).items():
        if mechanism not in known:
            raise UnknownNameError(f"mechanism of {apartment.name}", mechanism, known)
        for joint, value in positions.items():
            if joint not in known[mechanism]:
                raise UnknownNameError(f"joint of {mechanism}", joint, known[mechanism])
            data.joint(f"{mechanism}/{joint}").qpos = value
    mujoco.mj_kinematics(model, data)
    origin = np.array(apartment.low) - _MARGIN
    shape = np.ceil((np.array(apartment.high) + _MARGIN - origin) / CELL).astype(int) + 1
    outside = np.ones(shape, bool)
    first, last = (np.rint((np.array(v) - origin) / CELL).astype(int) for v in (apartment.low, apartment.high))
    outside[first[0] : last[0] + 1, first[1] : last[1] + 1] = False
    distance = np.full(shape, np.inf)
    for wide, low in ((radius, _FLOOR), *(() if arm is None else (arm,))):
        taken = np.zeros(shape, bool)
        for polygon in footprints(model, data, low=low, high=height):
            cover(taken, polygon, origin, CELL)
        taken[[0, -1], :] = taken[:, [0, -1]] = True
        away = ndimage.distance_transform_edt(~taken) * CELL - CELL * math.sqrt(0.5)  # to the cell, not its middle
        distance = np.minimum(distance, away - (wide - radius))
    distance[outside] = -1.0
    return FreeSpace(radius, origin, distance)


def cover(taken: np.ndarray, polygon: np.ndarray, origin: np.ndarray, cell: float) -> None:
    """Mark every cell that a convex polygon touches: those for which no side of cell or polygon separates the two.

    Args:
        taken: (nx, ny) bool, written to.
        polygon: (k, 2) corners [m], counter-clockwise.
        origin: (2,) middle of the first cell [m].
        cell: side of a cell [m].
    """
    half = cell / 2
    low = np.floor((polygon.min(0) - half - origin) / cell).astype(int)
    high = np.ceil((polygon.max(0) + half - origin) / cell).astype(int) + 1
    low, high = np.maximum(low, 0), np.minimum(high, taken.shape)
    if (low >= high).any():
        return
    axes = [np.arange(a, b) * cell + o for a, b, o in zip(low, high, origin, strict=True)]
    x, y = np.meshgrid(*axes, indexing="ij")
    touched = np.ones(x.shape, bool)
    for axis, grid in ((0, x), (1, y)):
        touched &= (grid + half >= polygon[:, axis].min()) & (grid - half <= polygon[:, axis].max())
    for a, b in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        nx, ny = b[1] - a[1], a[0] - b[0]  # outwards of a polygon that goes counter-clockwise
        reach = half * (abs(nx) + abs(ny))
        touched &= nx * (x - a[0]) + ny * (y - a[1]) <= reach + 1e-12
    taken[low[0] : high[0], low[1] : high[1]] |= touched
