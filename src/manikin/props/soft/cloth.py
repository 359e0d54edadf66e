"""A square cloth of points and triangles, with a bead at one corner for a gripper."""

from __future__ import annotations

import math

import mujoco
import torch
from torch import Tensor

from manikin.errors import ConfigError
from manikin.math import norm
from manikin.props.soft.points import Place, Points, add_points
from manikin.scene.builder import SceneBuilder
from manikin.scene.handles.base import Scope
from manikin.scene.handles.part import Part

__all__ = ["Cloth", "cloth"]


class Cloth(Points):
    """A square of ``across`` by ``across`` points. Point ``i * across + j`` is in column i and row j; the last one is
    the bead, which is at the largest x and y at rest. Made by :func:`cloth`.
    """

    def __init__(self, scope: Scope, part: Part, rest: list[Place], triangles: list[tuple[int, ...]]) -> None:
        super().__init__(scope, part, rest, triangles)
        k = self.across = math.isqrt(len(rest))
        half = [(i, j) for i in range(k) for j in range(k) if i + j < k - 1]  # the half without the bead
        self._half = torch.tensor([i * k + j for i, j in half])
        self._images = torch.tensor([(k - 1 - j) * k + k - 1 - i for i, j in half])
        self._corners = torch.tensor([0, k * k - 1, k - 1, k * (k - 1)])

    def bind(self, model: mujoco.MjModel) -> None:
        super().bind(model)
        device = self.scope.device
        self._half, self._images = self._half.to(device), self._images.to(device)
        self._corners = self._corners.to(device)

    @property
    def corners(self) -> Tensor:
        """(n, 4, 3) [m] where the corners are: the first, the one opposite, which is the bead, and the two others."""
        return self.pos[:, self._corners]

    @property
    def gaps(self) -> Tensor:
        """(n, k) [m] how far the points of one half are from their mirror images in the diagonal between the corners
        without bead, seen from above."""
        flat = self.pos[..., :2]
        return norm(flat[:, self._half] - flat[:, self._images])


def cloth(
    b: SceneBuilder,
    name: str,
    *,
    side: float,
    across: int = 9,
    radius: float = 0.005,
    bead: float = 0.01,
    weight: float = 1.0,
    young: float = 1e5,
    thickness: float = 1.5e-3,
    damping: float = 0.01,
    friction: float = 0.6,
    rgba: tuple[float, float, float, float] = (0.2, 0.45, 0.75, 1.0),
) -> Cloth:
    """Add a cloth to a scene. It touches everything but itself: layers of a folded one lie in one another.

    Args:
        b: the scene.
        name: of the cloth.
        side: [m].
        across: points along a side, at least 2.
        radius: of its points [m].
        bead: radius of the bead [m].
        weight: [kg/m^2].
        young: stiffness against stretching [Pa].
        thickness: [m] with which it stretches and bends; it is drawn thinner.
        damping: [s].
        friction: sliding.
        rgba: its colour.

    Raises:
        ConfigError: too few points, no size, or another integrator than ``discrete``.
    """
    if across < 2 or not (side > 0 and radius > 0 and bead > 0):
        raise ConfigError(
            f"a cloth needs sizes above 0 and 2 points or more along a side, got {side, radius, bead, across}"
        )
    step = side / (across - 1)
    rest = [(i * step - side / 2, j * step - side / 2, 0.0) for i in range(across) for j in range(across)]
    triangles = list[tuple[int, ...]]()
    for i in range(across - 1):
        for j in range(across - 1):
            a, right, both, up = ((i + p) * across + j + q for p, q in ((0, 0), (1, 0), (1, 1), (0, 1)))
            # the diagonals alternate, so that no direction is stiffer than the other
            triangles += [(a, right, both), (a, both, up)] if (i + j) % 2 else [(a, right, up), (right, both, up)]
    part = add_points(
        b,
        name,
        rest,
        triangles,
        radius=[radius] * (across * across - 1) + [bead],
        mass=weight * side * side,
        friction=friction,
        rgba=rgba,
        young=young,
        poisson=0.3,
        thickness=thickness,
        damping=damping,
        elastic2d=3,  # it resists stretching and bending
    )
    b.spec.geom(f"{name}/{across * across - 1}").rgba = (0.9, 0.6, 0.1, 1)
    handle = Cloth(b.scope, part, rest, triangles)
    b.handles.append(handle)
    return handle
