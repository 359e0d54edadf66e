"""Where objects lie in the built-in apartments so that Fetch can take them from above, and from where it starts.

An object is a free body that is another one of :mod:`manikin.homes.objects` in every row. It lies on an open surface,
at a place before which the robot can stand with the object ahead and within reach.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from manikin.errors import SceneError
from manikin.homes import VARIATIONS, FreeSpace, free_space
from manikin.homes.episodes import home_of
from manikin.homes.free_space import CELL
from manikin.homes.objects import HomeObject
from manikin.math import (
    Constant,
    pose,
    pose_inv,
    pose_mul,
    quat_conj,
    quat_from_yaw,
    quat_mul,
    quat_rotate,
    quat_to_yaw,
)
from manikin.scene.handles import Robot
from manikin.tasks.home.predicates import COMMON
from manikin.tasks.home.scene import FETCH_RADIUS, surfaces
from manikin.tasks.home.ways import quick_way
from manikin.toolkit import facing_down

__all__ = ["TILTED", "Grips", "ObjectPlaces", "Room", "Spot", "nearest_stands", "places", "way_to"]

TILTED = Constant(((0.0, math.cos(math.pi / 6), 0.0, 0.5),))  # a tool that points along x and 30 degrees down
_LOW, _HIGH = 1.0, 1.6  # [m] between these heights is the arm at rest, with an object in hand
_SIDE, _AHEAD = 0.56, 0.7  # [m] how far it reaches to the sides and ahead
_PLACES = ("top", "seat", "left", "right", "worktop")  # on open surfaces
_SEAT = "/seat"
_EDGE, _APART = 0.06, 0.35  # [m] from the edge of a receptacle, and between places on it, about
_ARMREST = 0.12  # [m] likewise from the sides of a seat, where there is something that a hand may touch
_BEFORE = 0.6  # cosine of how far aside of a seat's front a stand may be: the forearm does not go over its sides
_NEAR, _FAR, _BEST = 0.5, 0.78, 0.62  # [m] from a stand to the object
_DIRECTIONS = 12  # in which stands are looked for, around a place
_WAY = 2.5  # [m] that a start is at most from a stand
_ROOM = 0.12  # [m] more than the radius where it starts: the arm's joints vary there
_STRIDE = 4  # a start every so many cells
_FORTH = Constant(((0.0, 0.0, 1.0),))  # where a tool points
_WIDE = 0.08  # [m] of the 0.1 that the hand opens
_FURTHER, _DOWN = 2.5, 0.02  # such an object is drawn along for half of the way; pressed down [m], it stays
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

    def only(self, name: str) -> ObjectPlaces:
        """Those of a name."""
        mine = [one == name for one in self.names]
        return replace(
            self,
            points=self.points[mine],
            corners=self.corners[mine],
            names=(name,) * sum(mine),
            stands=self.stands[mine],
            starts=self.starts[mine],
        )


@functools.lru_cache(maxsize=2 * VARIATIONS)
def places(layout: str) -> ObjectPlaces:
    """Places of an apartment for Fetch. Raises as :func:`~manikin.homes.episodes.home_of`."""
    room = Room(layout)
    return room.with_places(room.open_spots())


@dataclass(frozen=True, eq=False)
class Spot:
    """A place before which the robot may be able to stand: its name, (3,) where it is, (4, 2) corners of its surface,
    (k, 3) stands, and (m, 2) where the robot can start [m, rad]."""

    name: str
    point: np.ndarray
    corners: np.ndarray
    stands: np.ndarray
    starts: np.ndarray


class Room:
    """An apartment in which the robot drives with its arm at rest.

    Args:
        layout: its name.
        joints: positions of joints that are not at 0, by mechanism and joint [m or rad].
        way: [m] that a start is at most from a stand.

    Attributes:
        layout: the apartment's name.
        home: the apartment.
        space, turns, roomy: see :class:`ObjectPlaces`.
        turning: (m, 2) [m] middles of the cells in which the robot can turn.
    """

    def __init__(self, layout: str, joints: Mapping[str, Mapping[str, float]] | None = None, way: float = _WAY) -> None:
        self._way, self.layout = way, layout
        self.home = home = home_of(layout)
        self.space, wide = (
            free_space(home, radius=FETCH_RADIUS, height=_HIGH, arm=(r, _LOW), joints=joints) for r in (_SIDE, _AHEAD)
        )
        self.turns = self.space.inside & (wide.clearance >= FETCH_RADIUS)
        self.roomy = self.space.inside & (wide.clearance >= FETCH_RADIUS + _ROOM)
        self.turning = self.space.origin + np.argwhere(self.turns) * CELL

    def spot(self, name: str, point: np.ndarray, corners: np.ndarray, stands: np.ndarray) -> Spot:
        """A place with all starts within 2 m of it that are not far from its stands."""
        if not len(stands):
            return Spot(name, point, corners, stands, np.zeros((0, 2)))
        ways = self.space.nearest(stands[:, :2])
        grid = np.zeros_like(self.roomy)
        grid[::_STRIDE, ::_STRIDE] = True
        begin = self.space.origin + np.argwhere(self.roomy & grid & (ways <= self._way)) * CELL
        return Spot(name, point, corners, stands, begin[np.linalg.norm(begin - point[:2], axis=1) < COMMON.spawn])

    def open_spots(self, wanted: Callable[[str], bool] = lambda name: True) -> list[Spot]:
        """Places on the open surfaces of the apartment whose names are ``wanted``."""
        found: list[Spot] = []
        for one in (one for one in surfaces(self.home, _PLACES) if wanted(one.name)):
            edges = (_EDGE, _ARMREST if one.name.endswith(_SEAT) else _EDGE)
            x, y = (_along(half - edge) for half, edge in zip(one.half, edges, strict=True))
            local = np.stack(np.meshgrid(x, y, indexing="ij"), -1).reshape(-1, 2)
            points = [np.array([*point, one.level]) for point in one.at(local)]
            found += [self.surface_spot(one.name, point, one.corners) for point in points]
        return found

    def surface_spot(self, name: str, point: np.ndarray, corners: np.ndarray) -> Spot:
        """A place (3,) on an open surface with these corners (4, 2); before a seat the robot stands at its front."""
        stands = self.stands_before(point[:2])
        if name.endswith(_SEAT):
            out = (corners[1] - corners[0]) / np.linalg.norm(corners[1] - corners[0])
            to = stands[:, :2] - point[:2]
            stands = stands[to @ out >= _BEFORE * np.linalg.norm(to, axis=1)]
        return self.spot(name, point, corners, stands)

    def stands_before(self, point: np.ndarray) -> np.ndarray:
        """(k, 3) x, y [m] and yaw [rad] of stands before a point (2,), one in each direction that has any."""
        return nearest_stands(self.turning, point, (_NEAR, _BEST, _FAR))

    def with_places(self, spots: Iterable[Spot]) -> ObjectPlaces:
        """Those places that have a stand and a start. Raises SceneError where there is none."""
        spots = list(spots)
        each = [one for one in spots if len(one.stands) and len(one.starts)]
        if not each:
            names = ", ".join(dict.fromkeys(one.name for one in spots)) or "any surface"
            raise SceneError(
                f"in {self.home.name} there is no place before {names} where the robot could stand and start"
            )
        most = max(len(one.starts) for one in each)
        return ObjectPlaces(
            space=self.space,
            turns=self.turns,
            points=np.array([one.point for one in each], np.float32),
            corners=np.array([one.corners for one in each], np.float32),
            names=tuple(one.name for one in each),
            stands=np.stack([np.resize(one.stands, (_DIRECTIONS, 3)) for one in each]).astype(np.float32),
            starts=np.stack([np.resize(one.starts, (most, 2)) for one in each]).astype(np.float32),
            roomy=self.roomy,
        )


@functools.lru_cache(maxsize=4096)
def way_to(found: ObjectPlaces, place: int, x: float, y: float, yaw: float) -> np.ndarray:
    """(k, 3) x, y [m] and yaw [rad] of a quick way from a base to a stand before one of the places."""
    return quick_way(
        found.space, found.turns, np.array([x, y, yaw]), np.unique(found.stands[place].astype(float), axis=0)
    )


def _along(half: float) -> np.ndarray:
    """Places along a side of half this length [m]."""
    half = max(half, 0.0)
    return np.linspace(-half, half, 1 + round(2 * half / _APART)) if half > _APART / 2 else np.zeros(1)


def nearest_stands(middles: np.ndarray, point: np.ndarray, away: tuple[float, float, float]) -> np.ndarray:
    """(k, 3) x, y [m] and yaw [rad] of stands that face a point (2,), among the middles (m, 2) of free cells, one in
    each direction that has any: so far ``away`` from it at least, at best, and at most [m]."""
    least, best, most = away
    to = point - middles
    off, angle = np.linalg.norm(to, axis=1), np.arctan2(to[:, 1], to[:, 0])
    sector = np.floor((angle + math.pi) / (2 * math.pi) * _DIRECTIONS).astype(int) % _DIRECTIONS
    out = []
    for k in range(_DIRECTIONS):
        mine = np.flatnonzero((sector == k) & (off >= least) & (off <= most))
        if len(mine):
            one = mine[np.abs(off[mine] - best).argmin()]
            out.append((*middles[one], angle[one]))
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
        self._from_front = torch.tensor([one.front_grip for one in objects])
        self._front_gap = torch.tensor([one.front_gap for one in objects])

    def height(self, choice: Tensor) -> Tensor:
        """(n,) [m] of the middle of objects ``choice`` (n,) above what they lie on."""
        return self._height[choice]

    def from_front(self, choice: Tensor, thing: Tensor, facing: Tensor) -> Tensor:
        """(n, 7) poses of a tool that take upright objects from the front, pointing ahead and 30 degrees down;
        arguments as of :meth:`of`."""
        turn, _ = self._turn(choice, thing, facing)
        place = thing[:, :3] + quat_rotate(quat_from_yaw(turn), self._from_front[choice])
        return pose(place, quat_mul(quat_from_yaw(turn), TILTED.like(turn).expand(len(turn), 4)))

    def held_from_front(self, choice: Tensor, tool: Tensor) -> Tensor:
        """(n, 7) poses of objects ``choice`` (n,) that a tool at ``tool`` (n, 7) holds as it takes them from the
        front."""
        upright = torch.zeros_like(tool)
        upright[:, 3] = 1.0
        grip = self.from_front(choice, upright, self._yaw[choice])
        back = quat_rotate(grip[:, 3:], _FORTH.like(grip).expand(len(grip), 3)) * self._front_gap[choice, None]
        return pose_mul(tool, pose_inv(pose(grip[:, :3] - back, grip[:, 3:])))

    def _turn(self, choice: Tensor, thing: Tensor, facing: Tensor) -> tuple[Tensor, Tensor]:
        """(n,) [rad] how the gripper is turned about the vertical, and that less how the object is."""
        period, own = self._period[choice], self._yaw[choice]
        turn = quat_to_yaw(thing[:, 3:]) + own - facing
        return turn - torch.round(turn / period) * period + facing, own

    def of(self, robot: Robot, choice: Tensor, thing: Tensor, facing: Tensor) -> Tensor:
        """(n, 7) poses of the tool that take upright objects.

        Args:
            robot: whose tool.
            choice: (n,) which of the objects.
            thing: (n, 7) their poses.
            facing: (n,) [rad] of the equal grasps the one that is nearest to this turn is taken.
        """
        turn, own = self._turn(choice, thing, facing)
        place = thing[:, :3] + quat_rotate(quat_from_yaw(turn - own), self._grip[choice])
        return pose(place, quat_mul(quat_from_yaw(turn), facing_down(robot)))

    def held(self, robot: Robot, choice: Tensor, tool: Tensor) -> Tensor:
        """(n, 7) poses of objects ``choice`` (n,) that a tool at ``tool`` (n, 7) holds."""
        own = pose(self._grip[choice], quat_mul(quat_from_yaw(self._yaw[choice]), facing_down(robot)))
        return pose_mul(tool, pose_inv(own))

    def let_go(self, robot: Robot, choice: Tensor, thing: Tensor) -> Tensor:
        """(n, 7) poses of the tool that let go of upright objects ``thing`` (n, 7): where it is, but for a wide object
        that is taken beside its middle. The more it has crept there, the further the tool moves aside and down: it
        would stick in the open hand."""
        now = robot.tcp_pose
        wide = (self._grip[choice, :2] != 0).any(1, keepdim=True) & (self._width[choice, None] > _WIDE)
        turn = quat_to_yaw(quat_mul(now[:, 3:], quat_conj(facing_down(robot))))
        aside = self.of(robot, choice, thing, turn)[:, :2] - thing[:, :2]
        off = now[:, :2] - thing[:, :2]
        crept = 1 - (off * aside).sum(1, keepdim=True) / (aside**2).sum(1, keepdim=True).clamp_min(1e-6)
        crept = crept.clamp(0.0, 1.0) * wide
        place = torch.where(wide, thing[:, :2] + (1 + _FURTHER * crept) * aside, now[:, :2])
        return pose(torch.cat([place, now[:, 2:3] - _DOWN * crept], 1), now[:, 3:])

    def own(self, choice: Tensor) -> Tensor:
        """(n,) [rad] turn of the gripper about the vertical when an object that is not turned is taken."""
        return self._yaw[choice]

    def opening(self, robot: Robot, choice: Tensor) -> Tensor:
        """(n,) how far the gripper is open when its pads lie on objects ``choice`` (n,), pressed in by half a
        millimetre each; 1 is fully open."""
        spec, low = robot.gripper, float(robot.ranges[robot.joints.index(robot.drivers[0]), 0])  # where the pads meet
        less = (spec.max_width - self._width[choice]) / 2 + _PRESSED
        return 1.0 - less / (spec.open_q[0] - low)
