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
    the last substep. With ``geoms`` only contacts with these geoms of the part count."""

    def __init__(
        self,
        scope: Scope,
        robot: Gripping,
        part: Part,
        min_force: float,
        max_angle: float,
        geoms: Sequence[str] = (),
    ) -> None:
        super().__init__(scope, "/".join(["grasp", robot.name, geoms[0] if geoms else part.name]))
        self.robot, self.part, self.min_force, self.geoms = robot, part, min_force, tuple(geoms)
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
            return [(f"{self.name}/{i}", finger, self.part.name) for i, finger in enumerate(fingers)]
        pairs = [(i, k) for i in range(len(fingers)) for k in range(len(self.geoms))]
        return [(f"{self.name}/{i}/{k}", fingers[i], self.geoms[k]) for i, k in pairs]

    def bind(self, model: mujoco.MjModel) -> None:
        world, forces, closing = self.scope.world, [], []
        for sensor, *_ in self.sensors():
            adr = int(model.sensor(sensor).adr[0])
            forces.append(("sensordata", adr, adr + 3))
        for site in self.robot.model.finger_sites:
            s = int(model.site(self.robot.prefix + site).id)
            closing += [("site_xmat", 9 * s + k, 9 * s + k + 1) for k in (2, 5, 8)]  # z axis
        fingers = len(self.robot.model.finger_sites)
        shape = (fingers, len(self.geoms), 3) if self.geoms else (fingers, 3)
        self._force, self._closing = world.channel(forces, shape), world.channel(closing, (fingers, 3))

    @property
    def force(self) -> Tensor:
        """(n, fingers, 3) [N] force of each finger on the part, in the world."""
        force = self._get(self._force)
        return force.sum(2) if self.geoms else force

    @property
    def touches(self) -> Tensor:
        """(n,) bool, whether any finger presses on the part, in whatever direction."""
        return _tensor((_length(self._numbers(self.force)) >= self._least).any(-1))

    @property
    def value(self) -> Tensor:
        """(n,) bool."""
        scope = self.scope
        if scope.rows is None and self._seen == scope.world.version:
            return self._value
        force, closing = self._numbers(self.force), self._numbers(self._get(self._closing))
        size, along = _length(force), (force * closing).sum(-1)
        presses = (size >= self._least) & (along >= size * self._cos)
        if self._sides:  # one finger of each is enough
            value = reduce(and_, (reduce(or_, (presses[:, i] for i in side)) for side in self._sides))
        else:
            value = presses.all(-1)
        value = _tensor(value)
        if scope.rows is None:
            self._value, self._seen = value, scope.world.version
        return value


def _tensor(value: Array) -> Tensor:
    return value if isinstance(value, Tensor) else torch.from_numpy(value)


def _length(vectors: Array) -> Array:
    """(..., 3) -> (...)."""
    if isinstance(vectors, Tensor):
        return torch.linalg.vector_norm(vectors, dim=-1)
    return np.sqrt((vectors * vectors).sum(-1))


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
