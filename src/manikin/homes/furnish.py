"""Put an apartment into a scene, and ask where its receptacles are."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from manikin.arenas.ground import HUMAN_FOVY, View, ground
from manikin.errors import UnknownNameError
from manikin.homes.apartment import Apartment, Mechanism
from manikin.math import quat_mul, quat_rotate
from manikin.scene.builder import SceneBuilder
from manikin.scene.handles import Part
from manikin.scene.handles.articulation import Articulation
from manikin.scene.shapes import SURFACE
from manikin.spec.camera import look_at
from manikin.spec.links import Vec3

__all__ = ["Home", "furnish"]

_ABOVE: Vec3 = (0.0, -0.25, 1.05)  # from the middle of an apartment to the camera that shows it
_ROOM = 1.03  # times as far as it has to be


@dataclass(frozen=True)
class Home:
    """An apartment in a scene.

    Attributes:
        apartment: which.
        fixtures: handles of what does not move, by name.
        mechanisms: handles of what has joints, by name.
    """

    apartment: Apartment
    fixtures: dict[str, Part]
    mechanisms: dict[str, Articulation]

    def mechanism(self, name: str) -> Articulation:
        """The handle of a mechanism.

        Raises:
            UnknownNameError: there is none; lists the mechanisms.
        """
        if name not in self.mechanisms:
            raise UnknownNameError(f"mechanism of {self.apartment.name}", name, self.mechanisms)
        return self.mechanisms[name]

    def receptacle(self, name: str) -> Tensor:
        """(n, 7) position [m] and quaternion wxyz of the middle of a receptacle in the world; a drawer's moves along.

        Raises:
            UnknownNameError: there is none; lists the receptacles.
        """
        owner, receptacle = self.apartment.receptacle(name)
        if isinstance(owner, Mechanism):
            base = self.mechanisms[owner.name].link_pose(receptacle.link)
        else:
            part = self.fixtures[owner.name]
            base = torch.cat([part.pos, part.quat], -1)
        pos, quat = (base.new_tensor(v).expand(len(base), -1) for v in (receptacle.pos, receptacle.quat))
        turn = base[:, 3:]
        return torch.cat([base[:, :3] + quat_rotate(turn, pos), quat_mul(turn, quat)], -1)


def furnish(b: SceneBuilder, apartment: Apartment) -> Home:
    """Add floor, light, two cameras, walls, fixtures and mechanisms.

    Nothing of an apartment collides with anything else of it, so a drawer passes through a chair that stands in its
    way. Robots and objects collide with all of it.
    """
    (x0, y0), (x1, y1) = apartment.low, apartment.high
    x, y = (x0 + x1) / 2, (y0 + y1) / 2
    ground(
        b,
        height=0.0,
        base_camera=((x0 + 0.3, y0 + 0.3, 2.2), (x, y, 0.5)),
        human_camera=apartment.view or _overview(apartment),
    )
    for direction in ((0.3, 0.2, -0.93), (-0.2, -0.3, -0.93)):
        b.spec.worldbody.add_light(
            pos=(x, y, 4.0), dir=direction, type=1, diffuse=(0.3, 0.3, 0.3), specular=(0, 0, 0), castshadow=False
        )
    for i, wall in enumerate(apartment.walls):  # a body each: what is far from one wall is not compared with all
        part = b.part(f"{apartment.name}/wall{i}", [wall], kind="fixed", rgba=(0.93, 0.92, 0.88, 1))
        _surface(b.spec.geom(part.geom_names[0]))
    fixtures = {}
    for fixture in apartment.fixtures:
        part = b.part(
            fixture.name, fixture.shapes, kind="fixed", pos=fixture.pos, quat=fixture.quat, looks=fixture.looks
        )
        for name in part.geom_names:
            _surface(b.spec.geom(name))
        fixtures[fixture.name] = part
    mechanisms = {}
    for one in apartment.mechanisms:
        model = one.model.copy()
        for geom in model.geoms:
            if geom.contype or geom.conaffinity:
                _surface(geom)
        mechanisms[one.name] = b.articulation(one.name, model, pos=one.pos, quat=one.quat)
    return Home(apartment, fixtures, mechanisms)


def _overview(apartment: Apartment) -> View:
    """A view from above, from the side of small y, near enough for all corners of the walls' box to be just in it."""
    top = max((wall.pos[2] + wall.size[2] for wall in apartment.walls), default=0.0)
    low, high = np.array([*apartment.low, 0.0]), np.array([*apartment.high, top])
    middle = (low + high) / 2
    corners = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * (high - low) / 2
    right, down, ahead = (corners @ look_at(_ABOVE, (0, 0, 0))).T
    distance = (np.maximum(np.abs(right), np.abs(down)) / math.tan(HUMAN_FOVY / 2) - ahead).max() * _ROOM
    return _vec(middle + distance * np.array(_ABOVE) / np.linalg.norm(_ABOVE)), _vec(middle)


def _vec(values: np.ndarray) -> Vec3:
    x, y, z = map(float, values)
    return x, y, z


def _surface(geom: object) -> None:
    """Let a geom collide with everything but the apartment."""
    geom.contype, geom.conaffinity = SURFACE  # type: ignore[attr-defined]
