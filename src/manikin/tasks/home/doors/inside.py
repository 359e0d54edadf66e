"""Places that a door or a drawer closes off: in the open drawer of an apartment, in the open fridge, and before
their handles."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from manikin.errors import UnknownNameError
from manikin.homes import VARIATIONS, Apartment, FreeSpace, Home, free_space
from manikin.homes.episodes import home_of
from manikin.homes.free_space import CELL
from manikin.tasks.home.doors.fronts import KINDS, Front, fronts
from manikin.tasks.home.doors.reach_in import REACH, touched
from manikin.tasks.home.objects_at import ObjectPlaces, Room, Spot, nearest_stands
from manikin.tasks.home.predicates import COMMON
from manikin.tasks.home.rules import ARTICULATIONS
from manikin.tasks.home.scene import FETCH_RADIUS, yaw_of

__all__ = [
    "REACH",
    "WAY",
    "before_handles",
    "drawn_out",
    "inside",
    "joints_of",
    "one_front",
    "open_up",
    "places_in",
    "spots_in",
]

WAY = 1.5  # [m] that a start is at most from a stand, where something is open
_OPEN = {"drawer": 0.45, "fridge": 1.5}  # [m, rad] of a joint where maps have it open, at least
_WIDE = 0.78  # of its range a fridge is
_PUSHED = 1.85  # [rad] the fridge's door where the base pushes it on, which it does with ease
_FROM_EDGE = 0.11  # [m] of places from the inner side of a drawer's front
_ASIDE = {"drawer": (-0.1, 0.0, 0.1), "fridge": (-0.13, 0.13)}  # [m] of places from the middle
_DEEP = (0.05, 0.13)  # [m] of places in the fridge, from the middle towards the front
_TURNED = (
    0.0,
    -0.12,
    0.12,
    -0.24,
    0.24,
    -0.36,
    0.36,
)  # [rad] from straight ahead, reaching into the fridge
_TRIED = tuple(0.06 * k for k in range(-7, 8))  # [rad] likewise, with the whole robot
_LINES, _BACK = 4, (0.12, 0.24)  # lines to a place in the fridge at most, and [m] of stands behind the first of each
_SHORT = 0.06  # [m] nearer than what counts as near: a base ends about so far from where it was sent
_IN, _DOORWAY = 0.3, 0.18  # [m] in front of such a place, where the hand is at most so far from the middle
_OUT = np.arange(1.2, 1.95, 0.05)  # [m] from a place in the fridge, where the robot can have its arm at rest
_BEFORE = {
    "drawer": (0.9, 1.15, 1.5),
    "fridge": (0.95, 1.7, 1.8),
}  # [m] of a stand: least, best, most
_CLEAR = 1.5  # [m] from the fridge, where the arm cannot touch its open door
_SHELF = ("/middle", "_aabb_middlefrl_apartment_refrigerator")
_WITHIN = 0.05  # [m] of a stand from the sides of the box in which it has to be


@functools.lru_cache(maxsize=4 * VARIATIONS)
def one_front(layout: str, kind: str) -> Front:
    """The fridge's upper door, or of the counter's upper drawers the one that the layout names; where it names none, as
    in ``apartment3``, the one with most room before it.

    Raises:
        UnknownNameError: another kind; or as :func:`~manikin.tasks.home.doors.fronts.fronts`.
    """
    if kind not in KINDS:
        raise UnknownNameError("mechanism", kind, KINDS)
    each = fronts(layout, (kind,)).each
    if len(each) == 1:
        return each[0]
    space = Room(layout).space

    def room(one: Front) -> float:
        before = np.array(one.handle[:2]) + 0.9 * _out(one)
        return float(space.clearance_at(before[None])[0])

    return max(each, key=room)


@functools.lru_cache(maxsize=3 * VARIATIONS)
def inside(layout: str, opened: str = "") -> ObjectPlaces:
    """Places of an apartment in which the ``drawer``, the ``fridge`` or nothing is open.

    They are called ``drawer`` and ``fridge`` in these, and ``handle/drawer`` and ``handle/fridge`` before them: with
    all shut those before both, else those before and in what is open.

    Raises:
        UnknownNameError: another word for what is open.
    """
    room = Room(layout, joints_of(layout, opened), WAY)
    spots = spots_in(room, opened) if opened else []
    return room.with_places([*spots, *before_handles(room, opened)])


def before_handles(room: Room, opened: str) -> list[Spot]:
    """The place before the handle of what is ``opened``; with nothing open those before both handles."""
    each = [one_front(room.layout, kind) for kind in ((opened,) if opened else KINDS)]
    return [_before(room, one, _opened(one) if opened else 0.0) for one in each]


@functools.lru_cache(maxsize=2 * VARIATIONS)
def places_in(layout: str, kind: str) -> ObjectPlaces:
    """Those of :func:`inside` that are in the open ``drawer`` or ``fridge``."""
    return inside(layout, kind).only(kind)


def open_up(home: Home, layout: str, kind: str) -> None:
    """Open the ``drawer`` or the ``fridge`` of all rows so far as :func:`joints_of` says."""
    for name, positions in joints_of(layout, kind).items():
        piece = home.mechanism(name)
        piece.set_qpos(piece.vector(positions))


def joints_of(layout: str, opened: str) -> dict[str, dict[str, float]]:
    """Positions of joints [m or rad], by mechanism and joint, where a ``drawer``, a ``fridge`` or nothing is open."""
    if not opened:
        return {}
    one = one_front(layout, opened)
    return {one.mechanism: {one.joint: _opened(one)}}


def drawn_out(layout: str) -> Tensor:
    """(3,) [m] by which what lies in the drawer is farther out when that is open."""
    one, (q,) = one_front(layout, "drawer"), joints_of(layout, "drawer").values()
    return q[one.joint] * torch.tensor([math.cos(one.yaw), math.sin(one.yaw), 0.0])


def _opened(one: Front) -> float:
    """[m or rad] of its joint where maps have it open: a fridge counts as open from 0.75 of its range."""
    least = _OPEN[one.kind]
    return least if one.kind == "drawer" else max(least, _WIDE * one.limits[1])


def _out(one: Front) -> np.ndarray:
    """(2,) unit vector of where it faces."""
    return np.array([math.cos(one.yaw), math.sin(one.yaw)])


def _receptacle(home: Apartment, one: Front) -> str:
    """The name of the drawer's receptacle, or of the fridge's shelf that is used."""
    owner = next(piece for piece in home.mechanisms if piece.name == one.mechanism)
    if one.kind == "drawer":
        return next(each.name for each in owner.receptacles if each.link == one.link)
    return next(each.name for each in owner.receptacles if each.name.endswith(_SHELF))


def _floor(home: Apartment, receptacle: str, yaw: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of a receptacle that faces a yaw [rad]: (3,) middle of its lower face, all shut; (2, 2) whose rows point out and
    to the left; (2,) half sizes along them [m]."""
    place, (_, one) = home.middle(receptacle), home.receptacle(receptacle)
    out = np.array([math.cos(yaw), math.sin(yaw)])
    axes = np.stack([out, (-out[1], out[0])])
    turned = yaw_of(place[3:].tolist()) - yaw
    across = abs(math.sin(turned)) > 0.5  # its own x is to the side
    return place[:3] - (0, 0, one.half[2]), axes, np.array(one.half[1::-1] if across else one.half[:2])


def _corners(middle: np.ndarray, axes: np.ndarray, half: np.ndarray) -> np.ndarray:
    """(4, 2) [m] around a middle, in order."""
    return np.asarray(middle[:2] + (np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]) * half) @ axes)


def spots_in(room: Room, kind: str, points: np.ndarray | None = None) -> list[Spot]:
    """Places in what is open in a room, the ``drawer`` or the ``fridge``: those at points (k, 3) [m], or a few."""
    one = one_front(room.layout, kind)
    middle, axes, half = _floor(room.home, _receptacle(room.home, one), one.yaw)
    if kind == "drawer":
        middle[:2] += _OPEN["drawer"] * axes[0]
        own = [(half[0] - _FROM_EDGE, aside) for aside in _ASIDE["drawer"]]
    else:
        own = [(deep, aside) for deep in _DEEP for aside in _ASIDE["fridge"]]
    if points is None:
        at = middle[:2] + np.array(own) @ axes
        points = np.concatenate([at, np.full((len(at), 1), middle[2])], 1)
    corners = _corners(middle, axes, half)
    if kind == "drawer":
        return [room.spot(kind, point, corners, room.stands_before(point[:2])) for point in points]
    return [_in_fridge(room, one, point, corners, float((point - middle)[:2] @ axes[1])) for point in points]


def _in_fridge(room: Room, one: Front, point: np.ndarray, corners: np.ndarray, aside: float) -> Spot:
    """A place (3,) on its shelf, so far ``aside`` [m] from the middle."""
    tight = _pushed_open(room.layout)
    place = point[:2]

    def stands(turns: Sequence[float]) -> np.ndarray:
        each = (_stand(room, tight, place, one.yaw + math.pi + turn) for turn in turns)
        return np.array([stand for stand in each if stand is not None]).reshape(-1, 3)

    near = stands([turn for turn in _TURNED if abs(aside + _IN * math.tan(turn)) < _DOORWAY])
    lines = _roomiest(room, one, point, stands(_TRIED))
    spot = room.spot("fridge", point, corners, near)
    return replace(spot, stands=_farther(room, tight, place, lines))


@functools.lru_cache(maxsize=2 * VARIATIONS)
def _pushed_open(layout: str) -> FreeSpace:
    """Where the base can be while the arm points ahead, with the fridge's door pushed wide open."""
    one = one_front(layout, "fridge")
    joints = {one.mechanism: {one.joint: max(_PUSHED, _opened(one))}}
    return free_space(home_of(layout), radius=FETCH_RADIUS, joints=joints)


def _roomiest(room: Room, one: Front, point: np.ndarray, stands: np.ndarray) -> np.ndarray:
    """(m, 3) of the stands (k, 3) before a place (3,) in the fridge some of those on whose way in the robot touches
    least."""
    if not len(stands):
        return stands
    touching = touched(room.layout, {one.mechanism: {one.joint: _opened(one)}}, point, stands)
    least = np.flatnonzero(touching == touching.min())
    return stands[least[np.linspace(0, len(least) - 1, min(len(least), _LINES)).round().astype(int)]]


def _farther(room: Room, tight: FreeSpace, place: np.ndarray, stands: np.ndarray) -> np.ndarray:
    """(m, 3) stands (k, 3), and others behind them on their lines to a place (2,) where the robot can turn: to one of
    them there may be a way with fewer corners."""
    found = []
    for x, y, yaw in stands.tolist():
        found.append((x, y, yaw))
        ahead = np.array([math.cos(yaw), math.sin(yaw)])
        for back in _BACK:
            at = np.array([x, y]) - back * ahead
            near = np.linalg.norm(place - at) <= COMMON.near - _SHORT  # as Navigate, which ends there, asks for
            if near and _leads(room, tight, room.turns, at, place - REACH * ahead):
                found.append((*at.tolist(), yaw))
    return np.array(found).reshape(-1, 3)


def _stand(room: Room, tight: FreeSpace, place: np.ndarray, yaw: float) -> tuple[float, float, float] | None:
    """x, y [m] and yaw [rad] where the robot can turn with its arm at rest, and go straight on until a place in the
    fridge is in reach."""
    ahead = np.array([math.cos(yaw), math.sin(yaw)])
    for free, away in itertools.product((room.turns, room.space.inside), _OUT):
        at = place - away * ahead
        if _leads(room, tight, free, at, place - REACH * ahead):
            return float(at[0]), float(at[1]), yaw
    return None


def _leads(room: Room, tight: FreeSpace, free: np.ndarray, at: np.ndarray, end: np.ndarray) -> bool:
    """Whether a place (2,) [m] is in a cell that is ``free`` (nx, ny) bool, and the base can go straight on from there
    to another (2,) with its arm ahead."""
    cell = np.rint((at - room.space.origin) / CELL).astype(int)
    within = ((cell >= 0) & (cell < free.shape)).all()
    return bool(within and free[tuple(cell)] and tight.sees(at[None], end[None])[0])


def _before(room: Room, one: Front, q: float) -> Spot:
    """Before a handle, in the box in which Open and Close begin, where the joint is at ``q`` [m or rad]."""
    out, (near, far), (right, left) = _out(one), *ARTICULATIONS[one.kind].front
    frame, handle = np.array(one.frame), np.array(one.handle)
    if one.kind == "drawer":
        frame, handle[:2] = frame + q * out, handle[:2] + q * out
    else:
        handle[:2] = frame
    axes = np.stack([out, (-out[1], out[0])])

    def within(points: np.ndarray, less: float) -> np.ndarray:
        forth, aside = ((points - frame) @ axes.T).T
        return (forth > near + less) & (forth < far - less) & (aside > right + less) & (aside < left - less)

    fitting = room.turning[within(room.turning, _WITHIN)]
    if not len(fitting):  # where it has to back out again
        middles = room.space.origin + np.argwhere(room.space.inside) * CELL
        fitting = middles[within(middles, _WITHIN)]
    stands = nearest_stands(fitting, handle[:2], _BEFORE[one.kind])
    spot = room.spot(f"handle/{one.kind}", handle, np.zeros((4, 2)), stands)
    starts = spot.starts[within(spot.starts, 0.0)]
    if q and one.kind == "fridge":  # where the arm does not touch the open door
        starts = starts[np.linalg.norm(starts - frame, axis=1) > _CLEAR]
    return replace(spot, starts=starts if len(starts) else stands[:, :2])
