"""Questions about contact: does the gripper hold a part, and how hard does one thing press on another?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_, or_
from typing import Any, Protocol

import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.scene.handles.articulation import Articulation
from manikin.scene.handles.base import Handle, Scope
from manikin.scene.handles.part import Part

__all__ = ["ContactForce", "Grasp", "Gripping"]

Array = Any
"""np.ndarray or torch.Tensor."""


class Gripping(Protocol):
    """A robot with one gripper, or a tool."""

    name: str
    prefix: str
    gripper: Any
    model: Any


class Grasp(Handle):
    """Does the gripper hold the part? A finger on each side presses with at least ``min_force`` [N], within
    ``max_angle`` [deg] of its closing direction; a gripper with two fingers has one on each side. Forces are those of
    the last substep. With ``geoms`` only contacts with these geoms of the part count; of an articulation ``link`` is
    held."""

    def __init__(
        self,
        scope: Scope,
        robot: Gripping,
        part: Part | Articulation,
        min_force: float,
        max_angle: float,
        geoms: Sequence[str] = (),
        link: str = "",
    ) -> None:
        body = part.prefix + link if isinstance(part, Articulation) else part.name
        super().__init__(scope, "/".join(["grasp", robot.name, geoms[0] if geoms else body]))
        self.robot, self.part, self.min_force, self.geoms, self._body = robot, part, min_force, tuple(geoms), body
        self._cos, self._least = float(np.cos(np.deg2rad(max_angle))), float(min_force)
        self._sides = robot.gripper.sides
        self._seen = -1
        self._value: Tensor

    def _numbers(self, value: Tensor) -> Array:
        """The same as NumPy on the CPU, where a small sum costs half of what it costs in torch."""
        return value.numpy() if self.scope.world.kind == "cpu" else value

    def sensors(self) -> list[tuple[str, str, str]]:
        """(sensor name, finger body, body or geom of the part) of the contact sensors this question needs."""
        fingers = [self.robot.prefix + f.body for f in self.robot.gripper.fingers]
        if not self.geoms:
            return [(f"{self.name}/{i}", finger, self._body) for i, finger in enumerate(fingers)]
        pairs = [(i, k) for i in range(len(fingers)) for k in range(len(self.geoms))]
        return [(f"{self.name}/{i}/{k}", fingers[i], self.geoms[k]) for i, k in pairs]

    def bind(self, model: mujoco.MjModel) -> None:
        world, sites, fingers = self.scope.world, self.robot.model.finger_sites, len(self.robot.model.finger_sites)
        adr = [int(model.sensor(sensor).adr[0]) for sensor, *_ in self.sensors()]
        forces = [("sensordata", a, a + 3) for a in adr]
        self._force = world.channel(forces, (fingers, len(self.geoms), 3) if self.geoms else (fingers, 3))
        ids = [int(model.site(self.robot.prefix + site).id) for site in sites]
        closing = [("site_xmat", 9 * s + k, 9 * s + k + 1) for s in ids for k in (2, 5, 8)]  # z axis
        count = max(len(self.geoms), 1)
        by_geom = [forces[i * count + k] for k in range(count) for i in range(fingers)]
        self._both = world.channel([*closing, *by_geom], (1 + count, fingers, 3))

    @property
    def closing(self) -> Tensor:
        """(n, fingers, 3) the direction in which each finger closes, in the world."""
        return self._get(self._both)[:, 0]

    @property
    def force(self) -> Tensor:
        """(n, fingers, 3) [N] force of each finger on the part, in the world."""
        force = self._get(self._force)
        return force.sum(2) if self.geoms else force

    @property
    def touches(self) -> Tensor:
        """(n,) bool, whether any finger presses on the part, in whatever direction."""
        force = self._numbers(self.force)
        return _tensor((_root((force * force).sum(-1)) >= self._least).any(-1))

    @property
    def value(self) -> Tensor:
        """(n,) bool."""
        scope = self.scope
        if scope.rows is None and self._seen == scope.world.version:
            return self._value
        both = self._get(self._both)  # closing directions, then forces by geom
        if self.geoms:
            both = torch.cat([both[:, :1], both[:, 1:].sum(1, keepdim=True)], 1)
        both = self._numbers(both)
        if isinstance(both, np.ndarray) and self._least > 0 and not np.count_nonzero(both[:, 1]):
            value = torch.from_numpy(np.zeros(len(both), bool))  # nothing touches: so it is in most steps of one row
        else:
            value = _tensor(self.presses(both))
        if scope.rows is None:
            self._value, self._seen = value, scope.world.version
        return value

    def presses(self, both: Array) -> Array:
        """(n,) bool from (n, 2, fingers, 3) closing directions and forces."""
        products = (both[:, 1:] * both).sum(-1)  # of the force with the closing direction, and with itself
        along, size = products[:, 0], _root(products[:, 1])
        presses = (size >= self._least) & (along >= size * self._cos)
        if self._sides:  # one finger of each is enough
            return reduce(and_, (reduce(or_, (presses[:, i] for i in side)) for side in self._sides))
        return presses.all(-1)


def _tensor(value: Array) -> Tensor:
    return value if isinstance(value, Tensor) else torch.from_numpy(value)


def _root(value: Array) -> Array:
    return value.sqrt() if isinstance(value, Tensor) else np.sqrt(value)


class ContactForce(Handle):
    """Net contact force of one body (with what hangs on it) on another, in the world [N]."""

    def __init__(self, scope: Scope, name: str, first: str, second: str) -> None:
        super().__init__(scope, name)
        self.first, self.second = first, second

    def bind(self, model: mujoco.MjModel) -> None:
        adr = int(model.sensor(self.name).adr[0])
        self._force = self.scope.world.channel([("sensordata", adr, adr + 3)])

    @property
    def value(self) -> Tensor:
        """(n, 3) [N]."""
        return self._get(self._force)
