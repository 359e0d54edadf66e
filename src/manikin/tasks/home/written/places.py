"""Where written episodes have their objects and goals, and from where a robot like Fetch reaches them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from manikin.homes.objects import HOME_OBJECTS
from manikin.tasks.home.doors.fronts import behind
from manikin.tasks.home.doors.inside import WAY, before_handles, drawn_out, joints_of, one_front, spots_in
from manikin.tasks.home.long.places import LongPlaces, from_front, without_arm
from manikin.tasks.home.objects_at import ObjectPlaces, Room, Spot
from manikin.tasks.home.scene import surface_of
from manikin.tasks.home.written.told import Part

__all__ = ["Place", "goals_of", "handled_places", "layout_of", "long_written", "starts_of"]


@dataclass(frozen=True)
class Place:
    """Where an object lies or is brought.

    Attributes:
        receptacle: its name.
        behind: ``drawer``, ``fridge`` or nothing.
        point: (3,) [m] of what it stands on, where that is open.
    """

    receptacle: str
    behind: str
    point: tuple[float, float, float]


def layout_of(scene: str, receptacles: Iterable[str]) -> str:
    """The scene, and of these receptacles the drawer, if one is."""
    drawer = next((name for name in receptacles if behind(scene, name) == "drawer"), "")
    return f"{scene}/{drawer}" if drawer else scene


def starts_of(layout: str, part: Part) -> list[Place]:
    """Where the targets lie."""
    return [_place(layout, (one := part.lying(k)).name, one.receptacle, one.pose) for k in range(len(part.targets))]


def goals_of(layout: str, part: Part) -> list[Place]:
    """Where they are brought."""
    return [
        _place(layout, part.lying(k).name, (goal := part.episode.targets[number]).receptacle, goal.goal)
        for k, number in enumerate(part.targets)
    ]


def _place(layout: str, name: str, receptacle: str, pose: Sequence[float]) -> Place:
    kind = behind(layout, receptacle)
    point = np.array(pose[:3]) - (0.0, 0.0, HOME_OBJECTS[name].height)
    if kind == "drawer":
        point = point + drawn_out(layout).numpy(force=True)
    x, y, z = point.tolist()
    return Place(receptacle, kind, (x, y, z))


def _spots(room: Room, opened: str, places: Sequence[Place]) -> list[Spot | None]:
    """Those of places that can be reached with ``drawer``, ``fridge`` or nothing open; None of the others."""
    found: list[Spot | None] = []
    for place in places:
        point = np.array(place.point)
        if place.behind:
            found.append(_reached(room, spots_in(room, opened, point[None])[0]) if place.behind == opened else None)
            continue
        corners = surface_of(room.home, place.receptacle).corners
        found.append(_reached(room, room.surface_spot(place.receptacle, point, corners)))
    return found


def _reached(room: Room, spot: Spot) -> Spot:
    """With a stand and a start in any case: where no stand is near enough, the nearest place to turn."""
    stands = spot.stands
    if not len(stands):
        to = spot.point[:2] - room.turning
        best = int(np.linalg.norm(to, axis=1).argmin())
        stands = np.array([[*room.turning[best], math.atan2(to[best, 1], to[best, 0])]])
        spot = room.spot(spot.name, spot.point, spot.corners, stands)
    return spot if len(spot.starts) else replace(spot, starts=stands[:, :2])


def handled_places(layout: str, opened: str, places: Sequence[Place]) -> ObjectPlaces:
    """Of places that are all reached with ``drawer``, ``fridge`` or nothing open, in their order."""
    room = Room(layout, joints_of(layout, opened), WAY) if opened else Room(layout)
    return room.with_places([spot for spot in _spots(room, opened, places) if spot is not None])


def long_written(layout: str, states: tuple[str, ...], places: Sequence[Place]) -> LongPlaces:
    """Places in their order, and then those before handles; see :func:`manikin.tasks.home.long.places.long_places`."""
    rooms = tuple(Room(layout, joints_of(layout, state), WAY) if state else Room(layout) for state in states)
    spots = [_spots(room, state, places) for room, state in zip(rooms, states, strict=True)]
    # a handle is elsewhere when its door is open: a place before it for each state
    handles = [
        (o, _reached(room, spot))
        for o, (room, state) in enumerate(zip(rooms, states, strict=True))
        for spot in (before_handles(room, state) if any(states) else ())
    ]
    for o, some in enumerate(spots):
        some += [spot if of == o else None for of, spot in handles]
    count, most = len(places) + len(handles), max(len(spot.starts) for some in spots for spot in some if spot)
    ahead = one_front(layout, "fridge").yaw + math.pi
    starts = np.full((len(states), count, most, 2), np.nan, np.float32)
    none = (np.zeros((0, 3)), np.zeros((0, 3)))
    stands, corners = [[none] * count for _ in states], np.zeros((count, 4, 2), np.float32)
    for o, room in enumerate(rooms):
        for g, spot in enumerate(spots[o]):
            if spot is None:
                continue
            starts[o, g], corners[g] = np.resize(spot.starts, (most, 2)), spot.corners
            near = np.unique(spot.stands, axis=0)
            opens = g >= len(places) or places[g].behind
            bare = without_arm(layout, states[o])
            stands[o][g] = near, near if opens else from_front(room, bare, spot.name, spot.point[:2], ahead)
    return LongPlaces(
        names=(*(place.behind or place.receptacle for place in places), *(spot.name for _, spot in handles)),
        points=np.array([*(place.point for place in places), *(spot.point for _, spot in handles)], np.float32),
        corners=corners,
        rooms=rooms,
        stands=tuple(map(tuple, stands)),
        starts=starts,
        ahead=ahead,
    )
