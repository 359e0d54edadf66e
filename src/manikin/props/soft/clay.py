"""A block of clay: points and tetrahedra that keep the shape that they are pressed to, and their volume."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import mujoco
import torch
from torch import Tensor

from manikin.errors import ConfigError
from manikin.math import norm
from manikin.props.soft.points import Place, Points, add_points
from manikin.scene.builder import SceneBuilder
from manikin.scene.handles.base import Scope
from manikin.scene.handles.part import Part

__all__ = ["Clay", "chamfer", "clay"]

_ITERATIONS = 500  # with 50 the stiff material is not solved for, and MuJoCo warns of it in most steps


class Clay(Points):
    """A block of points in ``shape`` columns, rows and layers. Made by :func:`clay`.

    Attributes:
        shape: how many points along x, y and z; the last index varies fastest.
    """

    def __init__(
        self, scope: Scope, part: Part, rest: list[Place], solids: list[tuple[int, ...]], shape: tuple[int, int, int]
    ) -> None:
        super().__init__(scope, part, rest, solids)
        self.shape = shape

    def bind(self, model: mujoco.MjModel) -> None:
        super().bind(model)
        self._corners = self.elements.to(self.scope.device)

    @property
    def volume(self) -> Tensor:
        """(n,) [m^3] of all tetrahedra."""
        a, b, c, d = self.pos[:, self._corners].unbind(2)
        return (torch.linalg.cross(b - a, c - a) * (d - a)).sum((1, 2)) / 6.0

    @property
    def middle(self) -> Tensor:
        """(n, 3) [m] mean of the points."""
        return self.pos.mean(1)

    @property
    def ahead(self) -> Tensor:
        """(n, 3) [m] from the middle of the face at the smallest x of the block's own to that at the largest."""
        grid = self.pos.unflatten(1, self.shape)
        return grid[:, -1].mean((1, 2)) - grid[:, 0].mean((1, 2))


def chamfer(one: Tensor, two: Tensor) -> Tensor:
    """(n,) [m] Chamfer distance of two sets of points, (n, k, 3) [m] each: from every point to the nearest of the other
    set, the mean over both sets."""
    away = norm(one[:, :, None] - two[:, None])
    return (away.amin(2).mean(1) + away.amin(1).mean(1)) / 2.0


def clay(
    b: SceneBuilder,
    name: str,
    *,
    size: tuple[float, float, float],
    shape: tuple[int, int, int] = (4, 4, 4),
    radius: float = 0.004,
    density: float = 1200.0,
    young: float = 2e4,
    poisson: float = 0.45,
    yields: float = 0.02,
    damping: float = 0.2,
    friction: float = 1.0,
    rgba: Sequence[float] = (0.75, 0.45, 0.35, 1.0),
) -> Clay:
    """Add a block of clay to a scene: MuJoCo's elasto-plastic flex with a neo-Hookean material.

    Args:
        b: the scene.
        name: of the block.
        size: from the first points to the last ones along x, y and z [m]; balls stand out by ``radius``.
        shape: points along x, y and z, each at least 2.
        radius: of its points [m].
        density: [kg/m^3].
        young: stiffness [Pa].
        poisson: nearly 0.5 keeps the volume, and from 0.48 on it is not stable at 100 steps per second.
        yields: strain from which on it stays deformed.
        damping: [s]; at a tenth of this, clay that is pinched fast bursts at 100 steps per second.
        friction: sliding.
        rgba: its colour.

    Raises:
        ConfigError: too few points, no size, or another integrator than ``discrete``.
    """
    if min(shape) < 2 or not (min(size) > 0 and radius > 0):
        raise ConfigError(f"clay needs sizes above 0 and 2 points or more along each side, got {size, radius, shape}")
    spots = list(itertools.product(*(range(k) for k in shape)))
    number = {spot: k for k, spot in enumerate(spots)}
    step = [side / (k - 1) for side, k in zip(size, shape, strict=True)]
    rest = [(i * step[0] - size[0] / 2, j * step[1] - size[1] / 2, k * step[2] + radius) for i, j, k in spots]
    solids = []
    for cell in itertools.product(*(range(k - 1) for k in shape)):
        for order in itertools.permutations(range(3)):  # six tetrahedra share a cell's diagonal
            corners, at = [number[cell]], list(cell)
            for axis in order:
                at[axis] += 1
                corners.append(number[at[0], at[1], at[2]])
            odd = order in ((0, 2, 1), (1, 0, 2), (2, 1, 0))
            solids.append((*corners[:2], *(corners[:1:-1] if odd else corners[2:])))
    option = b.spec.option
    option.iterations = max(option.iterations, _ITERATIONS)
    part = add_points(
        b,
        name,
        rest,
        solids,
        radius=[radius] * len(rest),
        mass=density * math.prod(size),
        friction=friction,
        rgba=rgba,
        young=young,
        poisson=poisson,
        damping=damping,
        stressyield=(yields, 0.0),
        elastic3d=1,  # neo-Hookean
    )
    for spot, k in number.items():
        if all(0 < at < most - 1 for at, most in zip(spot, shape, strict=True)):
            b.spec.geom(f"{name}/{k}").contype = 0  # points inside touch nothing
    handle = Clay(b.scope, part, rest, solids, shape)
    b.handles.append(handle)
    return handle
