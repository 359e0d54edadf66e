"""A surface that is not flat: a height field on a table."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.errors import SceneError
from manikin.scene.builder import SceneBuilder

__all__ = ["Relief", "mounds"]

_BASE = 0.01  # [m] how far the field reaches below its lowest point


class Relief:
    """A square height field that everything collides with.

    Args:
        b: the scene.
        name: of the field and its geom.
        heights: (k, k) [m], rows along y; the lowest is level with ``middle``.
        side: [m].
        middle: (3,) where the middle of the square is, in the world [m].
        rgba: colour.
        friction: sliding, whatever touches it.
    """

    def __init__(
        self,
        b: SceneBuilder,
        name: str,
        heights: np.ndarray,
        side: float,
        *,
        middle: Sequence[float] = (0.0, 0.0, 0.0),
        rgba: Sequence[float] = (0.93, 0.92, 0.88, 1.0),
        friction: float = 1.0,
    ) -> None:
        if heights.ndim != 2 or heights.shape[0] != heights.shape[1] or len(heights) < 2:
            raise SceneError(f"heights of {name} must be a square map, not {heights.shape}")
        heights = heights - heights.min()
        top = max(float(heights.max()), 1e-6)
        b.spec.add_hfield(
            name=name,
            size=[side / 2, side / 2, top, _BASE],
            nrow=len(heights),
            ncol=len(heights),
            userdata=(heights / top).astype(np.float32).ravel(),
        )
        b.spec.worldbody.add_geom(
            name=name,
            type=mujoco.mjtGeom.mjGEOM_HFIELD,
            hfieldname=name,
            pos=middle,
            rgba=rgba,
            friction=(friction, 0.005, 0.0001),
            priority=2,  # its friction counts, whatever touches it
        )
        self.side, self.top = side, top
        self._heights = torch.tensor(heights, dtype=torch.float32)
        self._middle = torch.tensor(middle, dtype=torch.float32)

    def height(self, xy: Tensor) -> Tensor:
        """Height in the world [m] of the surface at ``xy`` (..., 2) [m]; beside the square, that of its edge."""
        k = len(self._heights) - 1
        at = ((xy - self._middle[:2]) / self.side + 0.5).clamp(0.0, 1.0) * k
        low = at.floor().clamp_max(k - 1)
        u, v = (at - low).unbind(-1)
        column, row = low.long().unbind(-1)
        h = self._heights
        near = h[row, column] * (1 - u) + h[row, column + 1] * u
        far = h[row + 1, column] * (1 - u) + h[row + 1, column + 1] * u
        return near * (1 - v) + far * v + self._middle[2]


def mounds(cells: int) -> np.ndarray:
    """Heights (cells, cells) [m] of a smooth landscape: a hill, a hollow and a ridge, at most 6 cm high."""
    x, y = np.meshgrid(*[np.linspace(-1.0, 1.0, cells)] * 2)

    def bump(mx: float, my: float, sx: float, sy: float) -> np.ndarray:
        return np.exp(-(((x - mx) / sx) ** 2) - ((y - my) / sy) ** 2)

    heights = (
        0.045 * bump(-0.3, 0.35, 0.5, 0.45) - 0.02 * bump(0.45, 0.3, 0.35, 0.4) + 0.03 * bump(0.1, -0.55, 0.9, 0.25)
    )
    return heights - heights.min()
