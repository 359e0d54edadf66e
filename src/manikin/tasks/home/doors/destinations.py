"""Where Navigate can lead besides open surfaces with empty hands: to a drawer or a fridge, into it when it is open, and
anywhere with an object in hand."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manikin.errors import SceneError
from manikin.homes import VARIATIONS, FreeSpace
from manikin.homes.free_space import CELL
from manikin.tasks.home.doors.inside import WAY, before_handles, joints_of, places_in
from manikin.tasks.home.objects_at import Room, places
from manikin.tasks.home.predicates import COMMON
from manikin.tasks.home.scene import filled, within
from manikin.tasks.home.ways import quick_way

__all__ = ["Destinations", "destinations", "room_with"]

_FARTHER = 0.1  # [m] than what counts as near, where it starts


@dataclass(frozen=True, eq=False)
class Destinations:
    """Goals of one apartment; see :class:`~manikin.tasks.home.scene.Spots`, which has those on open surfaces.

    Attributes:
        room: where the robot can drive and turn with an object in hand.
        places: (P, 2) [m] that the robot can start from.
        starts: (G, S, 2) [m] those that are not near each goal, some more than once.
        goals: (G, 3) [m].
        stands: of each goal (k, 3) x, y [m] and yaw [rad] where it can stand before it.
        ways: (G, nx, ny) [m] how far it is to drive from each cell to the nearest stand.
    """

    room: Room
    places: np.ndarray
    starts: np.ndarray
    goals: np.ndarray
    stands: tuple[np.ndarray, ...]
    ways: np.ndarray

    @property
    def space(self) -> FreeSpace:
        """Where the robot can drive."""
        return self.room.space

    def path(self, number: int, base: np.ndarray) -> np.ndarray:
        """(k, 3) x, y [m] and yaw [rad] from a base (3,) to a stand before a goal."""
        return quick_way(self.space, self.room.turns, base.astype(float), self.stands[number])

    @classmethod
    def of(cls, room: Room, goals: np.ndarray, stands: Sequence[np.ndarray]) -> Destinations:
        """Goals (G, 3) [m] in a room, each with its stands (k, 3).

        Raises:
            SceneError: there is none; or all places from which the robot could start are near one.
        """
        if not len(goals):
            raise SceneError(f"in {room.home.name} there is no place before any such goal where the robot could stand")
        roomy = room.space.origin + np.argwhere(room.roomy) * CELL
        try:
            far = within(roomy, goals, least=COMMON.near + _FARTHER)
        except SceneError as error:
            raise SceneError(f"in {room.home.name} {error}") from None
        return cls(
            room=room,
            places=roomy.astype(np.float32),
            starts=far,
            goals=np.asarray(goals, np.float32),
            stands=tuple(np.asarray(some, float) for some in stands),
            ways=np.stack([filled(room.space.nearest(some[:, :2])) for some in stands]).astype(np.float32),
        )


@functools.lru_cache(maxsize=2 * VARIATIONS)
def room_with(layout: str, opened: str) -> Room:
    """An apartment in which the ``drawer``, the ``fridge`` or nothing is open."""
    return Room(layout, joints_of(layout, opened), WAY)


@functools.lru_cache(maxsize=2 * VARIATIONS)
def destinations(layout: str, before: str, where: str) -> Destinations:
    """Goals of an apartment for Fetch.

    Args:
        layout: its name.
        before: the subtask that follows: ``pick``, ``place``, ``open`` or ``close``.
        where: what that is about: the ``drawer``, the ``fridge``, or ``open`` surfaces.

    Raises as :meth:`Destinations.of` and :func:`~manikin.tasks.home.doors.inside.one_front`.
    """
    opened = "" if before == "open" or where == "open" else where
    room = room_with(layout, opened)
    if before in ("open", "close"):
        spots = [spot for spot in before_handles(room, opened) if spot.name == f"handle/{where}" and len(spot.stands)]
        return Destinations.of(room, np.array([spot.point for spot in spots]), [spot.stands for spot in spots])
    found = places(layout) if where == "open" else places_in(layout, where)
    return Destinations.of(room, found.points, [np.unique(some.astype(float), axis=0) for some in found.stands])
