"""Where objects lie in the built-in apartments so that Fetch can take them from above, and from where it starts.

An object is a free body that is another one of :mod:`manikin.homes.objects` in every row. It lies on an open surface,
at a place before which the robot can stand with the object ahead and within reach.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from manikin.homes import VARIATIONS, Apartment, FreeSpace, apartment, free_space
from manikin.homes.free_space import CELL
from manikin.homes.objects import HomeObject
from manikin.math import pose, pose_inv, pose_mul, quat_from_yaw, quat_mul, quat_rotate, quat_to_yaw
from manikin.scene.handles import Robot
from manikin.tasks.home.predicates import COMMON
from manikin.tasks.home.scene import FETCH_RADIUS, surfaces
from manikin.tasks.home.ways import quick_way
from manikin.toolkit import facing_down

__all__ = ["Grips", "ObjectPlaces", "places", "way_to"]

_LOW, _HIGH = 1.0, 1.6  # [m] between these heights is the arm at rest, with an object in hand
_SIDE, _AHEAD = 0.56, 0.7  # [m] how far it reaches to the sides and ahead
_SEAT = "/seat"
_PLACES = ("top", "seat", "left", "right", "worktop")  # on open surfaces
_EDGE, _APART = 0.06, 0.35  # [m] from the edge of a receptacle, and between places on it, about
_ARMREST = 0.12  # [m] likewise from the sides of a seat, where there is something that a hand may touch
_BEFORE = 0.6  # cosine of how far aside of a seat's front a stand may be: the forearm does not go over its sides
_NEAR, _FAR, _BEST = 0.5, 0.78, 0.62  # [m] from a stand to the object
_DIRECTIONS = 12  # in which stands are looked for, around a place
_WAY = 2.5  # [m] that a start is at most from a stand
_ROOM = 0.12  # [m] more than the radius where it starts: the arm's joints vary there
_STRIDE = 4  # a start every so many cells
_PRESSED = 0.0005  # [m] by which a pad is pressed into an object that is held at the start


@dataclass(frozen=True, eq=False)
class ObjectPlaces:
    """Places for objects in one apartment.

    Attributes:
        space: where the robot can drive with its arm at rest.
        turns: (nx, ny) bool, cells in which it can turn, too.
        points: (P, 3) [m] on surfaces.
        corners: (P, 4, 2) [m] of the surface on which each is, in order.
        names: P names of receptacles.
        stands: (P, K, 3) x, y [m] and yaw [rad] from where each is within reach; some more than once.
        starts: (P, S, 2) [m] where the robot can start, within 2 m of the place; some more than once.
        roomy: (nx, ny) bool, cells in which a start has room.
    """

    space: FreeSpace
    turns: np.ndarray
    points: np.ndarray
    corners: np.ndarray
    names: tuple[str, ...]
    stands: np.ndarray
    starts: np.ndarray
    roomy: np.ndarray


@functools.lru_cache(maxsize=2 * VARIATIONS)
def places(layout: str) -> ObjectPlaces:
    """Places of a built-in apartment for Fetch. Raises ValueError where the name is none of one."""
    home = apartment(int(layout.removeprefix("apartment")))
    space, wide = (free_space(home, radius=FETCH_RADIUS, height=_HIGH, arm=(r, _LOW)) for r in (_SIDE, _AHEAD))
    turns = space.inside & (wide.clearance >= FETCH_RADIUS)
    middles = space.origin + np.argwhere(turns) * CELL
    roomy = space.inside & (wide.clearance >= FETCH_RADIUS + _ROOM)
    points, corners, names, stands, starts = [], [], [], [], []
    for name, point, around in _grid(home):
        stand = _stands(middles, point[:2])
        if name.endswith(_SEAT):
            out = (around[1] - around[0]) / np.linalg.norm(around[1] - around[0])
            to = stand[:, :2] - point[:2]
            stand = stand[to @ out >= _BEFORE * np.linalg.norm(to, axis=1)]
        if not len(stand):
            continue
        ways = space.nearest(stand[:, :2])
        grid = np.zeros_like(roomy)
        grid[::_STRIDE, ::_STRIDE] = True
        begin = np.argwhere(roomy & grid & (ways <= _WAY))
        begin = space.origin + begin * CELL
        begin = begin[np.linalg.norm(begin - point[:2], axis=1) < COMMON.spawn]
        if not len(begin):
            continue
        points.append(point)
        corners.append(around)
        names.append(name)
        stands.append(stand)
        starts.append(begin)
    most = max(map(len, starts))
    return ObjectPlaces(
        space=space,
        turns=turns,
        points=np.array(points, np.float32),
        corners=np.array(corners, np.float32),
        names=tuple(names),
        stands=np.stack([np.resize(one, (_DIRECTIONS, 3)) for one in stands]).astype(np.float32),
        starts=np.stack([np.resize(one, (most, 2)) for one in starts]).astype(np.float32),
        roomy=roomy,
    )


@functools.lru_cache(maxsize=4096)
def way_to(layout: str, place: int, x: float, y: float, yaw: float) -> np.ndarray:
    """(k, 3) x, y [m] and yaw [rad] of a quick way from a base to a stand before a place of an apartment."""
    found = places(layout)
    return quick_way(
        found.space, found.turns, np.array([x, y, yaw]), np.unique(found.stands[place].astype(float), axis=0)
    )


def _grid(home: Apartment) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Places on the open surfaces of an apartment: name of the receptacle, (3,) place, (4, 2) corners around it [m]."""
    found = []
    for one in surfaces(home, _PLACES):
        corners = one.at(np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]) * one.half)
        edges = (_EDGE, _ARMREST if one.name.endswith(_SEAT) else _EDGE)
        x, y = (_along(half - edge) for half, edge in zip(one.half, edges, strict=True))
        local = np.stack(np.meshgrid(x, y, indexing="ij"), -1).reshape(-1, 2)
        found += [(one.name, np.array([*point, one.level]), corners) for point in one.at(local)]
    return found


def _along(half: float) -> np.ndarray:
    """Places along a side of half this length [m]."""
    half = max(half, 0.0)
    return np.linspace(-half, half, 1 + round(2 * half / _APART)) if half > _APART / 2 else np.zeros(1)


def _stands(middles: np.ndarray, point: np.ndarray) -> np.ndarray:
    """(k, 3) stands before a point (2,), among the middles (m, 2) of free cells, one in each direction that has any."""
    to = point - middles
    away, angle = np.linalg.norm(to, axis=1), np.arctan2(to[:, 1], to[:, 0])
    sector = np.floor((angle + math.pi) / (2 * math.pi) * _DIRECTIONS).astype(int) % _DIRECTIONS
    out = []
    for k in range(_DIRECTIONS):
        mine = np.flatnonzero((sector == k) & (away >= _NEAR) & (away <= _FAR))
        if len(mine):
            best = mine[np.abs(away[mine] - _BEST).argmin()]
            out.append((*middles[best], angle[best]))
    return np.array(out).reshape(-1, 3)


class Grips:
    """Where a gripper takes objects from above, of each of several objects.

    Args:
        objects: that a part may be, in the order of its ``choice``.
    """

    def __init__(self, objects: list[HomeObject]) -> None:
        self._grip = torch.tensor([one.grip for one in objects])
        self._yaw = torch.tensor([one.yaw for one in objects])
        self._period = torch.tensor([2 * math.pi / one.turns for one in objects])
        self._width = torch.tensor([one.width for one in objects])
        self._height = torch.tensor([one.height for one in objects])

    def height(self, choice: Tensor) -> Tensor:
        """(n,) [m] of the middle of objects ``choice`` (n,) above what they lie on."""
        return self._height[choice]

    def of(self, robot: Robot, choice: Tensor, thing: Tensor, facing: Tensor) -> Tensor:
        """(n, 7) poses of the tool that take upright objects.

        Args:
            robot: whose tool.
            choice: (n,) which of the objects.
            thing: (n, 7) their poses.
            facing: (n,) [rad] of the equal grasps the one that is nearest to this turn is taken.
        """
        period, own = self._period[choice], self._yaw[choice]
        turn = quat_to_yaw(thing[:, 3:]) + own - facing
        turn = turn - torch.round(turn / period) * period + facing
        place = thing[:, :3] + quat_rotate(quat_from_yaw(turn - own), self._grip[choice])
        return pose(place, quat_mul(quat_from_yaw(turn), facing_down(robot)))

    def held(self, robot: Robot, choice: Tensor, tool: Tensor) -> Tensor:
        """(n, 7) poses of objects ``choice`` (n,) that a tool at ``tool`` (n, 7) holds."""
        own = pose(self._grip[choice], quat_mul(quat_from_yaw(self._yaw[choice]), facing_down(robot)))
        return pose_mul(tool, pose_inv(own))

    def own(self, choice: Tensor) -> Tensor:
        """(n,) [rad] turn of the gripper about the vertical when an object that is not turned is taken."""
        return self._yaw[choice]

    def opening(self, robot: Robot, choice: Tensor) -> Tensor:
        """(n,) how far the gripper is open when its pads lie on objects ``choice`` (n,), pressed in by half a
        millimetre each; 1 is fully open."""
        spec, low = robot.gripper, float(robot.ranges[robot.joints.index(robot.drivers[0]), 0])  # where the pads meet
        less = (spec.max_width - self._width[choice]) / 2 + _PRESSED
        return 1.0 - less / (spec.open_q[0] - low)
