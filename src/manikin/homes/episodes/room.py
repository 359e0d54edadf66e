"""An apartment with objects for placing: rays that find surfaces, contacts that say what is in the way."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import mujoco
import numpy as np
import torch

from manikin.errors import UnknownNameError
from manikin.homes.apartment import Apartment, Mechanism
from manikin.homes.episodes.reach import DriveMap
from manikin.homes.episodes.rules import LongTask
from manikin.homes.furnish import furnish
from manikin.homes.objects import HOME_OBJECTS
from manikin.scene.builder import SceneBuilder
from manikin.sim.cpu import CpuWorld
from manikin.spec.physics import Physics

__all__ = ["Row", "Room"]

_BELOW = 0.1  # [m] under a receptacle's box in which its surface is looked for
_ABOVE = 0.001  # [m] over the surface an object is put down
_DEEP = 0.0005  # [m] that two things may overlap
_EDGE = 0.8  # share of an object's footprint under which a surface is looked for
_CHUNK = 0.5  # [s] after which it is asked whether all is still
_STILL = 2e-3  # [m/s, rad/s]


class Room:
    """An apartment, rows of it, and as many objects in each as a task has.

    Args:
        home: which apartment.
        task: whose objects.
        rows: how many episodes are made side by side.

    Attributes:
        home, task: as above.
        joints: positions [m, rad] of joints that are not at 0, by mechanism and joint.
    """

    def __init__(self, home: Apartment, task: LongTask, rows: int) -> None:
        self.home, self.task, self.names = home, task, task.names
        self.joints: Mapping[str, Mapping[str, float]] = _open_fridge(home, task.fridge) if task.fridge else {}
        b = SceneBuilder([], Physics())
        furnish(b, _without_looks(home))
        choice = [HOME_OBJECTS[name].prop for name in self.names]
        self._slots = [b.mesh(f"object{k}", choice=choice, draw=False, pos=_parked(k)) for k in range(task.count)]
        scene = b.compile()
        self.world = CpuWorld(scene, rows, persistent=True)
        b.bind(self.world)
        model = scene.model
        self.bodies = [int(model.body(f"object{k}").id) for k in range(task.count)]
        self.addresses = [int(model.joint(f"object{k}").qposadr[0]) for k in range(task.count)]
        speeds = [int(model.joint(f"object{k}").dofadr[0]) for k in range(task.count)]
        self._speeds = np.concatenate([np.arange(v, v + 6) for v in speeds])
        start = mujoco.MjData(model).qpos.copy()
        for mechanism, positions in self.joints.items():
            for joint, value in positions.items():
                start[model.joint(f"{mechanism}/{joint}").qposadr[0]] = value
        self._start = start
        self._reach = DriveMap(home, self.joints)

    def choose(self, names: list[list[str]]) -> list[Row]:
        """Give each row its objects, all of them put away; fewer lists than rows are repeated."""
        rows = [names[r % len(names)] for r in range(self.world.num_worlds)]
        with self.world.together():
            for k, slot in enumerate(self._slots):
                slot.set_choice(torch.tensor([self.names.index(one[k]) for one in rows]))
        self.world.reset()
        qpos = np.tile(self._start, (len(rows), 1))
        for k, at in enumerate(self.addresses):
            qpos[:, at : at + 7] = (*_parked(k), 1.0, 0.0, 0.0, 0.0)
        self.world.write("qpos", qpos)
        return [Row(self, r, rows[r]) for r in range(len(names))]

    def settle(self, rows: list[Row]) -> np.ndarray:
        """Let the objects of rows lie for the task's time, or until all is still; (n,) bool which rows diverged."""
        world = self.world
        qpos = world.flat("qpos").copy()
        for row in rows:
            qpos[row.number] = row.data.qpos
        world.write("qpos", qpos)
        world.forward()
        active = np.zeros(world.num_worlds, bool)
        active[[row.number for row in rows]] = True
        bad, quiet = np.zeros_like(active), np.zeros_like(active)
        for _ in range(round(self.task.settle / _CHUNK)):
            diverged = world.step(round(_CHUNK / world.timestep), active)
            if diverged is not None:
                bad |= diverged
            still = np.abs(world.flat("qvel")[:, self._speeds]).max(1) < _STILL
            active &= ~(bad | (quiet & still))
            quiet = still
            if not active.any():
                break
        return bad[[row.number for row in rows]]

    def drives_near(self, place: np.ndarray) -> bool:
        """Whether the robot can drive to within the task's distance of a place (3,), as the crow flies."""
        return self._reach.away(place) < self.task.near


class Row:
    """One row while its objects are put down. Rows share a model: :meth:`look` comes before all else of a row."""

    def __init__(self, room: Room, number: int, names: list[str]) -> None:
        self._room, self.number, self.names = room, number, names

    def look(self) -> None:
        """Take the row as it is in the world now."""
        self.model, self.data = self._room.world.data(self.number)

    def pose(self, k: int) -> np.ndarray:
        """(7,) of object ``k``, position [m] and quaternion wxyz."""
        at = self._room.addresses[k]
        return np.array(self.data.qpos[at : at + 7])

    def put(self, k: int, pose: np.ndarray) -> None:
        """Put object ``k`` at a pose (7,)."""
        at = self._room.addresses[k]
        self.data.qpos[at : at + 7] = pose
        mujoco.mj_kinematics(self.model, self.data)

    def lay(self, k: int, receptacle: str, numbers: np.ndarray, *, inner: float = 1.0) -> np.ndarray | None:
        """Where object ``k`` lies in a receptacle: snapped to the surface under it, upright, overlapping nothing.

        Args:
            k: the object; it stays there, or where it was.
            receptacle: name.
            numbers: (tries, 3) uniform in [0, 1): along x and y of the receptacle, and turned; the first that fits.
            inner: share of the receptacle's sides in whose middle the object's own middle is.

        Returns:
            (7,) its pose, or None where no try fits.
        """
        before = self.pose(k)
        size = np.array(HOME_OBJECTS[self.names[k]].size)
        owner, box = self._room.home.receptacle(receptacle)
        base = f"{owner.name}/{box.link}" if isinstance(owner, Mechanism) else owner.name
        body = self.data.body(base)
        turn, matrix = body.xmat.reshape(3, 3), np.empty(9)
        mujoco.mju_quat2Mat(matrix, np.array(box.quat, float))
        frame, half = turn @ matrix.reshape(3, 3), np.array(box.half)
        middle = body.xpos + turn @ np.array(box.pos)
        root = int(self.model.body_rootid[body.id])
        for x, y, angle in numbers:
            over = middle + frame @ (half * (inner * (2 * x - 1), inner * (2 * y - 1), 0.0))
            yaw = 2 * math.pi * angle
            height = self._surface(k, over, size, yaw, float(half[2]) + _BELOW, root)
            if height is None:
                continue
            place = np.array([over[0], over[1], height + size[2] / 2 + _ABOVE])
            if not self._room.drives_near(place):
                continue
            self.put(k, np.array([*place, math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2)]))
            if not self._touches(k):
                return self.pose(k)
        self.put(k, before)
        return None

    def _surface(self, k: int, over: np.ndarray, size: np.ndarray, yaw: float, reach: float, root: int) -> float | None:
        """Height [m] of the furniture below an object, None where it is not below all of its footprint's middle."""
        c, s = math.cos(yaw), math.sin(yaw)
        found, hit, down = [], np.zeros(1, np.int32), np.array([0.0, 0.0, -1.0])
        for dx, dy in ((0, 0), (1, 1), (1, -1), (-1, 1), (-1, -1)):
            u, v = _EDGE * dx * size[0] / 2, _EDGE * dy * size[1] / 2
            start = over + np.array([c * u - s * v, s * u + c * v, 0.0])
            away = mujoco.mj_ray(self.model, self.data, start, down, None, True, self._room.bodies[k], hit)
            if not 0 <= away < reach or self.model.body_rootid[self.model.geom_bodyid[hit[0]]] != root:
                return None
            found.append(over[2] - away)
        return float(max(found))

    def _touches(self, k: int) -> bool:
        """Whether object ``k`` overlaps anything."""
        mujoco.mj_collision(self.model, self.data)
        contact = self.data.contact
        mine = (self.model.geom_bodyid[contact.geom] == self._room.bodies[k]).any(1)
        return bool((contact.dist[mine] < -_DEEP).any())


def _parked(k: int) -> tuple[float, float, float]:
    """Where object ``k`` is until it is put down [m]."""
    return 2.0 * k, 0.0, -20.0


def _open_fridge(home: Apartment, angle: float) -> dict[str, dict[str, float]]:
    """The joint of the fridge's upper door."""
    found = [(one.name, joint) for one in home.mechanisms for joint in one.joints if joint.startswith("top_door")]
    if not found:
        raise UnknownNameError(f"mechanism of {home.name}", "fridge", [one.name for one in home.mechanisms])
    return {found[0][0]: {found[0][1]: angle}}


def _without_looks(home: Apartment) -> Apartment:
    """What collides alone: quick to compile, and rays meet nothing else."""
    mechanisms = []
    for one in home.mechanisms:
        model = one.model.copy()
        for geom in list(model.geoms):
            if not (geom.contype or geom.conaffinity):
                model.delete(geom)
        mechanisms.append(replace(one, model=model))
    fixtures = tuple(replace(one, looks=()) for one in home.fixtures)
    return replace(home, fixtures=fixtures, mechanisms=tuple(mechanisms))
