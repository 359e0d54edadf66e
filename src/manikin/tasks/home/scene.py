"""What the tasks in a home share: an apartment with a mobile robot in it, goals in reach, and what is seen of them."""

from __future__ import annotations

import fnmatch
import functools
import inspect
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manikin import Episode, Task
from manikin.errors import AssetError, ConfigError, SceneError, UnknownNameError
from manikin.homes import VARIATIONS, Apartment, FreeSpace, free_space, replicacad
from manikin.homes.episodes import home_of
from manikin.homes.free_space import CELL
from manikin.math import atan2, quat_to_yaw
from manikin.robots import fetch_mshab
from manikin.scene.handles import Robot
from manikin.tasks.home.predicates import COMMON, Seen
from manikin.toolkit import LOOSE, TIGHT, Still, from_keyframe, is_static, rests, tool_rests

__all__ = [
    "FETCH_ARM",
    "FETCH_RADIUS",
    "LAYOUTS",
    "Spots",
    "Surface",
    "about_rest",
    "facing",
    "filled",
    "in_apartments",
    "made_by_caller",
    "needs_mobile",
    "see",
    "spots",
    "surface_of",
    "surfaces",
    "within",
    "yaw_of",
]

LAYOUTS = tuple(f"apartment{k}" for k in range(VARIATIONS))
"""The built-in apartments."""
FETCH_RADIUS = 0.32  # [m] of Fetch's base, and a few centimetres
FETCH_ARM = (0.56, 0.8)  # [m] how far its arm reaches at rest, and above which height
_SURFACES = ("table", "low_table", "sofa", "tv_stand", "counter", "chest")
_REPLICACAD = (
    *("*_Tbl1_Top1_*", "*_Tbl2_Top1_*", "*_TvStnd1_Top1_*", "*_aabb_Sofa_*"),
    *("*_counter_left_*", "*_counter_right_*"),
)  # receptacles on which MS-HAB's objects lie, but for chairs
_GOALS = ("top", "seat", "left", "right")  # on them, of Navigate
_STAND = 0.75  # [m] from a goal at least, where a robot stands before it
_ROOM = 0.15  # [m] more where it starts and stands: joints vary about rest there
_REACH = 1.5  # [m] from a goal at most; MS-HAB counts 2 m as near


@dataclass(frozen=True, eq=False)
class Spots:
    """Places of one apartment.

    Attributes:
        space: where the robot can drive.
        places: (P, 2) [m] that the robot can start from.
        starts: (G, S, 2) [m] those that are not near each goal, some more than once.
        goals: (G, 3) [m] places on tables and counters that it can stand before.
        stands: (G, 3) x, y [m] and yaw [rad] where it stands before each.
        ways: (G, nx, ny) [m] how far it is to drive from each cell to each stand.
        names: G names of receptacles.
    """

    space: FreeSpace
    places: np.ndarray
    starts: np.ndarray
    goals: np.ndarray
    stands: np.ndarray
    ways: np.ndarray
    names: tuple[str, ...]

    def path(self, number: int, base: np.ndarray) -> np.ndarray:
        """(k, 3) x, y [m] and yaw [rad] of the shortest way from a base (3,) to where it stands before a goal."""
        stand = self.stands[number]
        corners = torch.tensor(self.space.path(base[:2], stand[:2]), dtype=torch.float32)[1:]
        ahead = corners - torch.cat([torch.tensor(base[None, :2]), corners[:-1]])
        yaws = atan2(ahead[:, 1], ahead[:, 0])
        yaws[-1] = float(stand[2])
        return torch.cat([corners, yaws[:, None]], 1).numpy(force=True)


@functools.lru_cache(maxsize=2 * VARIATIONS)
def spots(layout: str) -> Spots:
    """Places of an apartment for Fetch. Raises as :func:`~manikin.homes.episodes.home_of`, and SceneError where there
    is none."""
    home = home_of(layout)
    space = free_space(home, radius=FETCH_RADIUS, arm=FETCH_ARM)
    cells = np.argwhere(space.inside)
    middles = space.origin + cells * CELL
    roomy = space.clearance[space.inside] >= FETCH_RADIUS + _ROOM
    goals, stands, names = [], [], []
    for surface in surfaces(home, _GOALS):
        place = np.array([*surface.at(np.zeros(2)), surface.level])
        away = np.linalg.norm(middles - place[:2], axis=1)
        away = np.where(roomy & (away >= _STAND), away, math.inf)
        best = int(away.argmin())
        if away[best] > _REACH:
            continue
        to = place[:2] - middles[best]
        goals.append(place)
        stands.append((*middles[best], math.atan2(to[1], to[0])))
        names.append(surface.name)
    if not goals:
        raise SceneError(f"in {home.name} there is no place before any surface where the robot could stand")
    ways = np.stack([filled(space.ways(np.array(stand[:2]))) for stand in stands])
    room = middles[roomy]
    return Spots(
        space=space,
        places=room.astype(np.float32),
        starts=within(room, np.array(goals), least=COMMON.near + 2 * CELL),
        goals=np.array(goals, np.float32),
        stands=np.array(stands, np.float32),
        ways=ways.astype(np.float32),
        names=tuple(names),
    )


def within(places: np.ndarray, goals: np.ndarray, least: float = 0.0, most: float = math.inf) -> np.ndarray:
    """(G, S, 2) [m] for each of the goals (G, 3) [m] those of the places (P, 2) [m] that are more than ``least`` and up
    to ``most`` [m] from it, some more than once. Raises SceneError where a goal has none."""
    away = np.linalg.norm(places - goals[:, None, :2], axis=2)
    found = [places[mine] for mine in (away > least) & (away <= most)]
    if not min(map(len, found)):
        raise SceneError(f"there is no place to start from that is {least:g} to {most:g} m from a goal")
    count = max(map(len, found))
    return np.stack([np.resize(one, (count, 2)) for one in found]).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Surface:
    """An open surface of a piece of furniture that stands upright.

    Attributes:
        name: of the receptacle.
        pos: (2,) [m] where the furniture stands; turn: (2, 2) how the surface is turned.
        middle: (2,) [m] of the surface from there, turned back; half: (2,) [m] its half sizes.
        level: [m] height above the floor.
    """

    name: str
    pos: np.ndarray
    turn: np.ndarray
    middle: np.ndarray
    half: np.ndarray
    level: float

    def at(self, local: np.ndarray) -> np.ndarray:
        """(..., 2) [m] in the world, of places (..., 2) from the middle of the surface."""
        return np.asarray(self.pos + (local + self.middle) @ self.turn.T)

    @property
    def corners(self) -> np.ndarray:
        """(4, 2) [m] in the world, in order."""
        return self.at(np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]) * self.half)


def surfaces(home: Apartment, places: tuple[str, ...]) -> list[Surface]:
    """The open surfaces of an apartment whose receptacles are of these kinds: ``top``, ``seat``, ...; those of
    ReplicaCAD on which MS-HAB's objects lie are of every kind."""
    found = []
    for name in home.receptacles:
        thing, one = home.receptacle(name)
        built_in = thing.kind in _SURFACES and one.link in ("", "body") and name.rpartition("/")[2] in places
        if not built_in and not any(fnmatch.fnmatchcase(name, pattern) for pattern in _REPLICACAD):
            continue
        if not built_in:  # furniture of others need not stand upright in its own frame
            found.append(surface_of(home, name))
            continue
        yaw = 2 * math.atan2(thing.quat[3], thing.quat[0])
        pos, middle = np.array(thing.pos[:2]), np.array(one.pos[:2])
        found.append(Surface(name, pos, _turn(yaw), middle, np.array(one.half[:2]), _level(home, name)))
    return found


def surface_of(home: Apartment, name: str) -> Surface:
    """The lower face of any receptacle that is level."""
    x, y, _, *quat = home.middle(name).tolist()
    half = np.array(home.receptacle(name)[1].half[:2])
    return Surface(name, np.array([x, y]), _turn(yaw_of(quat)), np.zeros(2), half, _level(home, name))


def _turn(yaw: float) -> np.ndarray:
    return np.array([[math.cos(yaw), -math.sin(yaw)], [math.sin(yaw), math.cos(yaw)]])


def _level(home: Apartment, name: str) -> float:
    """[m] height of a receptacle's lower face above the floor."""
    return float(home.middle(name)[2]) - float(home.receptacle(name)[1].half[2])


def yaw_of(quat: Sequence[float]) -> float:
    """[rad] by which a quaternion wxyz turns about the vertical. In plain numbers, as scenes are built on the host
    whatever the world's device."""
    w, x, y, z = quat
    return math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


def filled(ways: np.ndarray) -> np.ndarray:
    """(nx, ny) [m] lengths of ways; from where none leads, what it is from the nearest cell."""
    from scipy import ndimage

    near = ndimage.distance_transform_edt(~np.isfinite(ways), return_distances=False, return_indices=True)
    return np.asarray(ways[tuple(near)])


def needs_mobile(task: str, robot: Robot, *, fingers: bool = False) -> None:
    """Raise ConfigError unless a robot drives and has a torso, a head and an arm with Fetch's joints; with ``fingers``
    those of its gripper, too, which are observed where something is handled."""
    lacks = [name for name in ("base", "torso", "head", "arm") if name not in robot.groups]
    if lacks:
        raise ConfigError(
            f"{task} takes the robot fetch_mshab: it needs one that drives and has a torso, a head and an arm with "
            f"Fetch's joints; {robot.arm.name} has no {lacks[0]}"
        )
    needed = fetch_mshab.QPOS[3:] if fingers else fetch_mshab.QPOS[3:-2]
    lacks = [name for name in needed if name not in robot.joints]
    if lacks:  # where the tool rests, the room around it and the experts' postures are Fetch's alone
        raise ConfigError(
            f"{task} takes the robot fetch_mshab: it needs Fetch's joints, and a tool that rests {fetch_mshab.REST} m "
            f"from its base; {robot.arm.name} has no {', '.join(lacks)}"
        )


def about_rest(robot: Robot, ep: Episode, base: Tensor) -> Tensor:
    """(n, joints) of robots whose bases are at (n, 3) x, y [m] and yaw [rad]: at rest, but for a little noise of the
    arm's seven joints."""
    cut = COMMON.arm_noise_cut
    arm = ep.rng.normal("arm", 0.0, COMMON.arm_noise, (7,)).clamp(-cut, cut)
    rest = robot.keyframe("rest")[3:].expand(len(base), -1)
    return torch.cat([robot.base_joints(base), rest[:, :-7], rest[:, -7:] + arm], 1)


def facing(ep: Episode, spot: Tensor, point: Tensor) -> Tensor:
    """(n,) [rad] how bases at spots (n, 2) face points (n, 2 or more), but for a little noise."""
    to, cut = point[:, :2] - spot, COMMON.yaw_noise_cut
    return atan2(to[:, 1], to[:, 0]) + ep.rng.normal("base/yaw", 0.0, COMMON.yaw_noise).clamp(-cut, cut)


def see(robot: Robot, obj: Tensor, grasped: Tensor, pressed: Tensor, *, both_ways: bool = False) -> Seen:
    """What the conditions and rewards of subtasks ask of a mobile robot and an object (n, 3). With ``both_ways``
    negative velocities count, too; as published they do not."""
    groups = [robot.groups[name] for name in ("torso", "head", "arm")]
    joints, speeds, root = from_keyframe(robot, "rest"), robot.arm_qvel, robot.root_pose
    return Seen(
        base=torch.cat([root[:, :2], quat_to_yaw(root[:, 3:])[:, None]], 1),
        tcp=robot.tcp_pos,
        joints=torch.cat([joints[:, group] for group in groups], 1),
        joint_speeds=torch.cat([speeds[:, group] for group in groups], 1),
        base_speeds=speeds[:, robot.groups["base"]],
        grasped=grasped,
        force=robot.forces.total,
        pressed=pressed,
        obj=obj,
        still=is_static(robot, Still(one_sided=not both_ways)),
        tool_rests=tool_rests(robot, COMMON.rest, COMMON.ee_rest),
        loose=rests(robot, LOOSE),
        tight=rests(robot, TIGHT),
    )


def in_apartments(task: type[Task], *names: str) -> type[Task]:
    """A task of this family in other apartments.

    Args:
        task: such as ``HomePick``.
        names: built-in apartments of any seed (``apartment11``), scenes of ReplicaCAD (``v3_sc0_staging_00``). The
            episode's seed modulo their number says which it is.

    The class belongs to the file or module that calls this, so that commands take it from there (``my_tasks.py``).

    Raises:
        ConfigError: the task is not one of a home, or no apartment is named.
        AssetError: ReplicaCAD is not there.
        UnknownNameError: it has no such scene.
    """
    if task.layouts != LAYOUTS:
        raise ConfigError(f"{task.id} is no task in a home: those have the apartments {', '.join(LAYOUTS)}")
    if not names:
        raise ConfigError(f"name an apartment for {task.id}: apartment0, apartment1, ..., or a scene of ReplicaCAD")
    if others := [name for name in names if not re.fullmatch(r"apartment\d+", name)]:
        try:
            known = replicacad.scenes()
        except AssetError as error:
            said = f"{others[0]} is no built-in apartment, as apartment0 or apartment1 is"
            raise AssetError(f"{said}, and {error}") from None
        for name in others:
            if name not in known:
                raise UnknownNameError("apartment", name, (*LAYOUTS, *known))
    return made_by_caller((task,), {"layouts": names})


def made_by_caller(bases: tuple[type[Task], ...], about: dict[str, Any]) -> type[Task]:
    """A kind of the last of these tasks that belongs to whoever called the function that calls this, so that commands
    find it there, by its name."""
    task, frame = bases[-1], inspect.currentframe()
    inner = frame and frame.f_back
    caller = inner and inner.f_back
    assert caller is not None
    within = "" if caller.f_code.co_name == "<module>" else f"{caller.f_code.co_name}.<locals>."
    whose = {
        "__doc__": task.__doc__,
        "__module__": caller.f_globals.get("__name__", "__main__"),
        "__qualname__": within + task.__name__,
    }
    return type(task.__name__, bases, {**about, **whose})
