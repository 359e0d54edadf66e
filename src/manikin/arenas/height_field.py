"""Ground and surfaces that are not flat, as height fields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.errors import SceneError
from manikin.scene.builder import SceneBuilder

__all__ = ["HeightField", "lay", "mounds"]

_BASE = 0.05  # [m] how far a field reaches below its lowest point


@dataclass(frozen=True)
class HeightField:
    """Heights on a square around the origin.

    Attributes:
        heights: (rows, columns) [m], none below 0. Rows follow y, columns x, from the lowest to the highest.
        cell: [m] between neighbours.
    """

    heights: np.ndarray
    cell: float

    @property
    def half(self) -> float:
        """[m] from the middle to the rim."""
        return (self.heights.shape[0] - 1) * self.cell / 2

    def tensor(self) -> Tensor:
        """(rows * columns,) float32 the heights, as :func:`at` takes them."""
        return torch.tensor(self.heights.ravel().tolist())

    def at(self, heights: Tensor, points: Tensor) -> Tensor:
        """(...) [m] height of the surface at ``points`` (..., 2) [m], bilinear between the heights of :meth:`tensor`;
        beyond the rim that at the rim."""
        count = self.heights.shape[0]
        place = ((points + self.half) * (1.0 / self.cell)).clamp(0.0, count - 1.001)
        corner = place.floor()
        (x, y), (u, v) = corner.long().unbind(-1), (place - corner).unbind(-1)
        first = y * count + x
        low = torch.lerp(heights[first], heights[first + 1], u)
        high = torch.lerp(heights[first + count], heights[first + count + 1], u)
        return torch.lerp(low, high, v)


def lay(
    b: SceneBuilder,
    field: HeightField,
    *,
    name: str,
    pos: Sequence[float] = (0.0, 0.0, 0.0),
    rgba: Sequence[float] = (0.62, 0.6, 0.56, 1.0),
    friction: float | None = None,
) -> None:
    """Add a height field to a scene.

    Args:
        b: the scene.
        field: which.
        name: of the field and its geom.
        pos: where height 0 of its middle is [m].
        rgba: colour.
        friction: sliding, whatever touches it; None where what touches it brings the friction, as on a floor.

    Raises:
        SceneError: the heights are no square, or one is below 0.
    """
    heights = field.heights
    if heights.ndim != 2 or heights.shape[0] != heights.shape[1] or len(heights) < 2 or heights.min() < 0:
        raise SceneError(
            f"{name} needs a square of heights, none below 0, not {heights.shape} from {heights.min():g} m"
        )
    top, count = float(max(heights.max(), 1e-3)), len(heights)
    b.spec.add_hfield(
        name=name,
        nrow=count,
        ncol=count,
        size=(field.half, field.half, top, _BASE),
        userdata=(heights / top).ravel().tolist(),
    )
    geom = b.spec.worldbody.add_geom(name=name, type=mujoco.mjtGeom.mjGEOM_HFIELD, hfieldname=name, pos=pos, rgba=rgba)
    if friction is None:
        geom.priority = -1
    else:
        geom.priority, geom.friction = 2, (friction, 0.005, 0.0001)


def mounds(side: float, cells: int) -> HeightField:
    """A smooth landscape on a square with ``side`` [m], of ``cells`` heights each way: a hill, a hollow and a ridge, at
    most 6 cm high."""
    x, y = np.meshgrid(*[np.linspace(-1.0, 1.0, cells)] * 2)

    def bump(mx: float, my: float, sx: float, sy: float) -> np.ndarray:
        return np.exp(-(((x - mx) / sx) ** 2) - ((y - my) / sy) ** 2)

    hill, hollow, ridge = bump(-0.3, 0.35, 0.5, 0.45), bump(0.45, 0.3, 0.35, 0.4), bump(0.1, -0.55, 0.9, 0.25)
    heights = 0.045 * hill - 0.02 * hollow + 0.03 * ridge
    return HeightField(heights - heights.min(), side / (cells - 1))
