"""Whether an episode fits an apartment: what it names is there, and what it asks for can be done."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

import mujoco
import numpy as np

from manikin.data.formats.homes.names import furniture, in_file, joint_at
from manikin.data.formats.rearrange import RearrangeEpisode
from manikin.errors import ConfigError, SceneError, UnknownNameError
from manikin.homes import Apartment, Fixture, FreeSpace, Mechanism, free_space
from manikin.homes.episodes.reach import RADIUS, DriveMap
from manikin.homes.episodes.rules import NEAR
from manikin.homes.free_space import CELL
from manikin.homes.objects import home_objects

__all__ = ["check_episode", "joints_in", "nearest_receptacle"]

_NEAR = NEAR + 2 * CELL  # [m] what lies at the end of the generator's reach is rounded into another cell of the map
_ON = 0.15  # [m] of a target or a goal from the box that it is in or on: files have a middle, or the frame of a scan
_FLOOR = 0.5  # [m] from the floor, at which a robot may start: files have the height of a navigation mesh
_BEYOND = 0.05  # of its range that a joint may be beyond: a file says what is meant of furniture that is scaled here
_Joints = dict[str, dict[str, float]]


def check_episode(episode: RearrangeEpisode, home: Apartment) -> None:
    """Refuse an episode that does not fit an apartment.

    A start of the robot at (0, 0, 0) means none, as generated files have it. Maps need scipy.

    Args:
        episode: of a file, or generated.
        home: the apartment of its scene.

    Raises:
        ConfigError: it is an episode of another scene.
        UnknownNameError: it names an object, a piece of furniture, a link or a receptacle that is not there; lists what
            is.
        DataError: it says where an object lies that it does not have.
        SceneError: a joint is beyond its range; a target or its goal is outside of the apartment, below the floor or
            above the walls, or farther than 1.5 m from where a robot like Fetch can drive; one is not at a receptacle
            of the furniture that it is said to be on; the robot starts in the air, in something, or where nothing
            leads.
    """
    if episode.scene != PurePosixPath(home.name).name:
        raise ConfigError(f"episode {episode.number} is of the scene {episode.scene}, not of {home.name}")
    home_objects(tuple(episode.copies))
    _check_names(episode, home)
    joints = joints_in(episode, home)
    for name, pose in episode.goals.items():
        _check_place(f"the goal of {name}", pose[:3, 3], home, joints)
        _check_place(f"the target {name}", episode.placed(name)[:3, 3], home, joints)
    for name, (handle, _) in zip(episode.goals, episode.start_receptacles, strict=False):  # none in some files
        _check_on(f"the target {name}", episode.placed(name)[:3, 3], home, handle, joints)
    for (name, pose), (handle, _) in zip(episode.goals.items(), episode.goal_receptacles, strict=False):
        _check_on(f"the goal of {name}", pose[:3, 3], home, handle, joints)
    if episode.start.any():
        _check_start(episode.start, home, joints)


def _check_names(episode: RearrangeEpisode, home: Apartment) -> None:
    for handle, link in (*episode.start_receptacles, *episode.goal_receptacles):
        thing = furniture(home, handle)
        if isinstance(thing, Mechanism) and (link is None or not 0 <= link < len(thing.model.bodies) - 1):
            names = [f"{k} ({body.name})" for k, body in enumerate(thing.model.bodies[1:])]
            raise UnknownNameError(f"link of {handle}", str(link), names)
    for name, place in episode.lies_on.items():
        episode.placed(name)
        handle, _, receptacle = place.rpartition("|")  # older files have the receptacle alone
        known = [
            one.rpartition("/")[2]
            for one in (home.receptacles if not handle else [r.name for r in furniture(home, handle).receptacles])
        ]
        if receptacle not in known:
            raise UnknownNameError(f"receptacle of {handle or home.name} for {name}", receptacle, known)
    movable = {in_file(one.name): one for one in home.mechanisms}
    for name, handle, link_name in episode.markers:
        if handle not in movable:
            raise UnknownNameError(f"articulation of {home.name} for the marker {name}", handle, movable)
        links = [body.name for body in movable[handle].model.bodies[1:]]
        if link_name not in links:
            raise UnknownNameError(f"link of {handle} for the marker {name}", link_name, links)


def joints_in(episode: RearrangeEpisode, home: Apartment) -> _Joints:
    """Positions of joints by mechanism and joint, which are within their ranges.

    Raises:
        SceneError: one is not.
    """
    found: _Joints = {}
    for handle, positions in episode.joints.items():
        thing = furniture(home, handle)
        for link, value in positions.items():
            joint = joint_at(thing, link)
            found.setdefault(thing.name, {})[joint] = value
            model = _alone(thing)  # only a mechanism has joints
            one = model.joint(joint)
            low, high = one.range
            over = _BEYOND * (high - low)
            if model.jnt_limited[one.id] and not low - over <= value <= high + over:
                unit = "m" if model.jnt_type[one.id] == mujoco.mjtJoint.mjJNT_SLIDE else "rad"
                raise SceneError(
                    f"link {link} of {handle} is at {value:g} {unit}; its joint {joint} goes from {low:.3f} to "
                    f"{high:.3f} {unit}"
                )
    return found


def _check_place(what: str, place: np.ndarray, home: Apartment, joints: _Joints) -> None:
    """Raise SceneError unless a place (3,) [m] is in the apartment and within reach."""
    top = max((wall.pos[2] + wall.size[2] for wall in home.walls if wall.type == "box"), default=math.inf)
    low, high = (*home.low, 0.0), (*home.high, top)
    where = f"{what} at {_said(place)}"
    if not ((np.array(low) < place) & (place < np.array(high))).all():
        raise SceneError(f"{where} is outside of {home.name}, which goes from {_said(low)} to {_said(high)}")
    away = _reach(home, _key(joints)).away(place)
    if away > _NEAR:
        raise SceneError(
            f"{where} is out of reach: a robot of radius {RADIUS} m drives to within {away:.2f} m of it in "
            f"{home.name}, and {NEAR} m are needed"
        )


def _check_on(what: str, place: np.ndarray, home: Apartment, handle: str, joints: _Joints) -> None:
    """Raise SceneError unless a place (3,) [m] is at one of the receptacles of what it is to be on."""
    gaps = _gaps(place, home, handle, joints)
    if min(gaps.values(), default=math.inf) > _ON:
        nearest = sorted(gaps, key=gaps.__getitem__)
        said = ", ".join(f"{one} ({gaps[one]:.2f} m away)" for one in nearest) or "it has none"
        raise SceneError(f"{what} at {_said(place)} is at no receptacle of {handle}: {said}")


def nearest_receptacle(place: np.ndarray, home: Apartment, handle: str, joints: _Joints) -> str:
    """Name of the receptacle of a piece of furniture that is nearest to a place (3,) [m].

    Raises:
        UnknownNameError: there is no such furniture, or it has no receptacles.
    """
    gaps = _gaps(place, home, handle, joints)
    if not gaps:
        raise UnknownNameError(f"receptacle of {handle}", "any", [])
    return min(gaps, key=gaps.__getitem__)


def _gaps(place: np.ndarray, home: Apartment, handle: str, joints: _Joints) -> dict[str, float]:
    """[m] of a place (3,) from each receptacle of a piece of furniture."""
    thing = furniture(home, handle)
    return {one: _gap(place, *box) for one, box in _boxes(home, thing, joints.get(thing.name, {}))}


def _check_start(start: np.ndarray, home: Apartment, joints: _Joints) -> None:
    """Raise SceneError unless a robot stands free at a start (3,) [m]."""
    where = f"the robot's start at {_said(start)}"
    if abs(start[2]) > _FLOOR:
        raise SceneError(f"{where} is {abs(start[2]):.2f} m from the floor of {home.name}; {_FLOOR} m are the most")
    free = _free(home, _key(joints))
    if not free.reachable(start[None, :2])[0]:
        best = free.closest(start[None, :2])[0]
        raise SceneError(
            f"{where} is not where a robot of radius {RADIUS} m can drive in {home.name}; the nearest such place is "
            f"({best[0]:.2f}, {best[1]:.2f}) m"
        )


def _boxes(
    home: Apartment, thing: Fixture | Mechanism, positions: Mapping[str, float]
) -> Iterator[tuple[str, tuple[np.ndarray, np.ndarray, np.ndarray]]]:
    """Name of each receptacle of a thing whose joints are at ``positions``, and its middle (3,) [m], axes (3, 3) and
    half lengths (3,) [m] in the world."""
    moved = None
    if isinstance(thing, Mechanism) and positions:
        moved = mujoco.MjData(_alone(thing))
        for joint, value in positions.items():
            moved.joint(joint).qpos = value
        mujoco.mj_kinematics(_alone(thing), moved)
    for one in thing.receptacles:
        if moved is None:
            middle = home.middle(one.name)
            yield one.name, (middle[:3], _axes(middle[3:]), np.array(one.half))
            continue
        body, turn = moved.body(one.link), _axes(np.array(thing.quat, float))
        link = turn @ body.xmat.reshape(3, 3)
        at = np.array(thing.pos) + turn @ body.xpos + link @ np.array(one.pos)
        yield one.name, (at, link @ _axes(np.array(one.quat, float)), np.array(one.half))


def _gap(place: np.ndarray, middle: np.ndarray, axes: np.ndarray, half: np.ndarray) -> float:
    """[m] of a place from a box; 0 in it."""
    return float(np.linalg.norm(np.maximum(np.abs(axes.T @ (place - middle)) - half, 0.0)))


def _axes(quat: np.ndarray) -> np.ndarray:
    out = np.empty(9)
    mujoco.mju_quat2Mat(out, quat)
    return out.reshape(3, 3)


def _said(place: np.ndarray | tuple[float, ...]) -> str:
    return f"({', '.join(f'{value:.2f}' for value in place)}) m"


_Key = tuple[tuple[str, tuple[tuple[str, float], ...]], ...]


def _key(joints: _Joints) -> _Key:
    return tuple((name, tuple(sorted(positions.items()))) for name, positions in sorted(joints.items()))


@functools.lru_cache(maxsize=4)
def _reach(home: Apartment, key: _Key) -> DriveMap:
    return DriveMap(home, {name: dict(positions) for name, positions in key})


@functools.lru_cache(maxsize=4)
def _free(home: Apartment, key: _Key) -> FreeSpace:
    return free_space(home, radius=RADIUS, joints={name: dict(positions) for name, positions in key})


@functools.lru_cache(maxsize=16)
def _alone(thing: Mechanism) -> mujoco.MjModel:
    """A mechanism by itself."""
    return thing.model.copy().compile()
