"""Between which places long tasks bring objects, and how the base drives to them while something is open."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from manikin.homes import FreeSpace, free_space
from manikin.homes.episodes import home_of
from manikin.homes.free_space import CELL
from manikin.tasks.home.doors.fronts import KINDS
from manikin.tasks.home.doors.inside import REACH, WAY, inside, joints_of, one_front
from manikin.tasks.home.objects_at import ObjectPlaces, Room, nearest_stands, places
from manikin.tasks.home.scene import FETCH_RADIUS, LAYOUTS
from manikin.tasks.home.ways import quick_way, stacked

__all__ = ["LongPlaces", "from_front", "long_places", "without_arm"]

_THERE = (0.06, 0.15)  # [m], [rad] from a stand it need not drive
_FROM_FRONT = (REACH - 0.1, REACH, REACH + 0.15)  # [m] from a stand to what is taken from the front
_MORE = 0.05  # [m] of room around the base at its end, where the shoulder leans
_SKEW = 0.5  # [rad] from straight ahead at most, of a stand before the counter
_APART = 0.2  # [m] between two things that lie somewhere
_CORNERS = ("counter/left", "counter/right", "counter/worktop")


@dataclass(frozen=True, eq=False)
class LongPlaces:
    """Places of one apartment; of ``G`` places in ``O`` states, which differ in what is open.

    Attributes:
        names: G words: names of receptacles, ``drawer``, ``fridge``, ``handle/drawer`` and ``handle/fridge``.
        points: (G, 3) [m].
        corners: (G, 4, 2) [m] of the surface on which each is, in order; all 0 before a handle.
        rooms: O times where the robot can drive.
        stands: O times, of each place (k, 3) x, y [m] and yaw [rad] where it is in reach from above, and likewise from
            the front; none where the state leaves none.
        starts: (O, G, S, 2) [m] where the robot can start, some more than once.
        ahead: [rad] heading of a robot straight before counter and fridge.
    """

    names: tuple[str, ...]
    points: np.ndarray
    corners: np.ndarray
    rooms: tuple[ObjectPlaces | Room, ...]
    stands: tuple[tuple[tuple[np.ndarray, np.ndarray], ...], ...]
    starts: np.ndarray
    ahead: float

    def of_kind(self, kind: str) -> Tensor:
        """(G,) bool: places of a kind, as :class:`manikin.tasks.home.long.steps.Errand` has them."""
        return torch.tensor([_is(name, kind) for name in self.names])

    def handle(self, door: str, state: int) -> int:
        """Number of the place before the handle of the ``drawer`` or the ``fridge`` in a state."""
        name = f"handle/{door}"
        return next(k for k, one in enumerate(self.names) if one == name and len(self.stands[state][k][0]))

    @property
    def close_by(self) -> Tensor:
        """(G, G) bool: two things cannot lie at both."""
        return torch.tensor(np.linalg.norm(self.points[:, None] - self.points, axis=2) < _APART)

    def paths(self, state: Sequence[int], place: Tensor, front: Sequence[bool], base: Tensor) -> tuple[Tensor, Tensor]:
        """Ways from bases to stands before places.

        Args:
            state: n numbers of states.
            place: (n,) int64.
            front: of n, whether things are to be in reach from the front.
            base: (n, 3) x, y [m] and yaw [rad] where they begin.

        Returns:
            (n, 16, 3) places of the bases one after the other, the last one repeated; (n,) [rad] how they face there.
        """
        rows = zip(state, place.tolist(), front, base.tolist(), strict=True)
        return stacked([_way(self, *some, *one) for *some, one in rows])


def _is(name: str, kind: str) -> bool:
    if kind in ("drawer", "fridge"):
        return name == kind
    if name in KINDS or name.startswith("handle/"):
        return False
    return {"open": True, "table": name == "table/top", "counter": name in _CORNERS}[kind]


@functools.lru_cache(maxsize=3 * len(LAYOUTS))
def long_places(layout: str, states: tuple[str, ...], kinds: tuple[str, ...]) -> LongPlaces:
    """Places in an apartment.

    Args:
        layout: its name.
        states: what is open: ``drawer``, ``fridge``, or an empty word for nothing.
        kinds: of places that are needed besides handles.
    """
    each: list[dict[tuple[str, float, float, float], tuple[ObjectPlaces, int]]] = []
    rooms, doors = [], any(kind in KINDS for kind in kinds)
    for state in states:
        rooms.append(_open(layout, state, kinds))
        sources = [rooms[-1], *([inside(layout, state)] if doors else [])]
        each.append({_key(one, k): (one, k) for one in sources for k in range(len(one.names))})
    shared = [key for key in each[0] if _inner(key[0]) or all(key in one for one in each)]
    keys = list(dict.fromkeys([*shared, *(key for one in each for key in one if _inner(key[0]))]))
    most = max(one.starts.shape[1] for found in each for one, _ in found.values())
    starts = np.full((len(states), len(keys), most, 2), np.nan, np.float32)
    ahead = one_front(layout, "fridge").yaw + math.pi
    stands: list[tuple[tuple[np.ndarray, np.ndarray], ...]] = []
    for o, found in enumerate(each):
        here = []
        for g, key in enumerate(keys):
            if key not in found:
                here.append((np.zeros((0, 3)), np.zeros((0, 3))))
                continue
            one, k = found[key]
            starts[o, g] = np.resize(one.starts[k], (most, 2))
            near = np.unique(one.stands[k].astype(float), axis=0)
            here.append(
                (
                    near,
                    near
                    if _inner(key[0])
                    else from_front(rooms[o], without_arm(layout, states[o]), key[0], one.points[k, :2], ahead),
                )
            )
        stands.append(tuple(here))
    first = [next(found[key] for found in each if key in found) for key in keys]
    return LongPlaces(
        names=tuple(key[0] for key in keys),
        points=np.array([one.points[k] for one, k in first]),
        corners=np.array([one.corners[k] for one, k in first]),
        rooms=tuple(rooms),
        stands=tuple(stands),
        starts=starts,
        ahead=ahead,
    )


def _inner(name: str) -> bool:
    return name in KINDS or name.startswith("handle/")


def _key(one: ObjectPlaces, k: int) -> tuple[str, float, float, float]:
    x, y, z = one.points[k].tolist()
    return one.names[k], round(x, 4), round(y, 4), round(z, 4)


def _open(layout: str, state: str, kinds: tuple[str, ...]) -> ObjectPlaces:
    """Places on open surfaces of these kinds."""
    if not state:
        return places(layout)
    room = Room(layout, joints_of(layout, state), WAY)
    return room.with_places(room.open_spots(lambda name: any(_is(name, kind) for kind in kinds)))


@functools.lru_cache(maxsize=2 * len(LAYOUTS))
def without_arm(layout: str, state: str) -> FreeSpace:
    """Where the base can be in an apartment in which the ``drawer``, the ``fridge`` or nothing is open, wherever its
    arm is."""
    return free_space(home_of(layout), radius=FETCH_RADIUS, joints=joints_of(layout, state))


def from_front(room: ObjectPlaces | Room, bare: FreeSpace, name: str, point: np.ndarray, ahead: float) -> np.ndarray:
    """(k, 3) stands from which things at a point (2,) are taken from the front; before the counter straight ahead,
    about. From there the base, which is free in ``bare``, can go straight on until the point is in reach, to where it
    has some room, if there are such stands."""
    turning = room.space.origin + np.argwhere(room.turns) * CELL
    found = nearest_stands(turning, point, _FROM_FRONT)
    if name in _CORNERS:
        found = found[np.abs((found[:, 2] - ahead + math.pi) % (2 * math.pi) - math.pi) < _SKEW]
    ends = point - REACH * np.stack([np.cos(found[:, 2]), np.sin(found[:, 2])], 1)
    clear = bare.sees(found[:, :2], ends)
    roomy = clear & (bare.clearance_at(ends) >= FETCH_RADIUS + _MORE)
    return found[roomy if roomy.any() else clear if clear.any() else slice(None)]


@functools.lru_cache(maxsize=4096)
def _way(found: LongPlaces, state: int, place: int, front: bool, x: float, y: float, yaw: float) -> np.ndarray:
    """(k, 3) x, y [m] and yaw [rad] from a base to one of the stands before a place."""
    room, stands, base = found.rooms[state], found.stands[state][place][front], np.array([x, y, yaw])
    if not len(stands):  # of another subtask, which asks for the row's way, too
        return base[None]
    away = np.linalg.norm(stands[:, :2] - base[:2], axis=1)
    askew = np.abs((stands[:, 2] - yaw + math.pi) % (2 * math.pi) - math.pi)
    if ((away < _THERE[0]) & (askew < _THERE[1])).any():
        return base[None]
    cell = np.rint((base[:2] - room.space.origin) / CELL).astype(int)
    if not room.space.inside[tuple(np.clip(cell, 0, np.array(room.space.inside.shape) - 1))]:
        base[:2] = room.space.closest(base[None, :2])[0]  # where the map has it, it was pushed
    return quick_way(room.space, room.turns, base, stands)
