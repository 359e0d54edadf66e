"""A soft layer that a stylus presses grooves into: columns of material, each with a height, and no physics.

What the stylus presses down rises around it, so the volume stays the same. A column stays as high as it is: nothing
flows back, and slopes may be of any steepness. The layer does not push back on the stylus.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from manikin.errors import ConfigError
from manikin.scene.builder import SceneBuilder
from manikin.scene.handles.base import Variable

__all__ = ["Layer", "layer"]


class Layer:
    """Columns over a square, in rows along y. Made by :func:`layer`.

    Attributes:
        height: (columns,) [m] of each column above the bottom, a variable of the task.
        places: (columns, 2) [m] where they stand in the world.
        cell: [m] side of a column.
    """

    def __init__(self, height: Variable, middle: Sequence[float], cells: int, cell: float, bottom: float) -> None:
        self.height, self.cell, self.bottom, self.thickness = height, cell, bottom, height.initial
        line = (torch.arange(cells) - (cells - 1) / 2) * cell
        x, y = torch.meshgrid(line, line, indexing="ij")
        self.places = torch.stack([x.flatten(), y.flatten()], 1) + torch.tensor(middle)

    @property
    def volume(self) -> Tensor:
        """(n,) [m^3] of the material."""
        return self.height.value.sum(1) * (self.cell * self.cell)

    def press(self, tip: Tensor, radius: float, rim: float) -> None:
        """A flat round stylus is at ``tip`` (n, 3) [m]: columns below it are no higher than it is, and what they lose
        rises evenly on the columns around it.

        Args:
            tip: the middle of its end, in the world.
            radius: of the stylus [m].
            rim: width of the ring that rises [m].
        """
        height = self.height.value
        away = ((self.places - tip[:, None, :2]) ** 2).sum(2)
        under = away <= radius**2
        around = ~under & (away <= (radius + rim) ** 2)
        most = (tip[:, 2:] - self.bottom).clamp_min(0.0)
        lost = torch.where(under, (height - most).clamp_min(0.0), 0.0)
        room = around.sum(1, keepdim=True)
        lost = torch.where(room > 0, lost, 0.0)  # with no column around it nothing can give way
        share = lost.sum(1, keepdim=True) / room.clamp_min(1)
        self.height.set(height - lost + torch.where(around, share, 0.0))

    def pressed(self, depth: float) -> Tensor:
        """(n, columns) bool: which columns are lower by more than ``depth`` [m] than at the start."""
        return self.height.value < self.thickness - depth

    def near(self, start: Tensor, end: Tensor, reach: float) -> Tensor:
        """(n, columns) bool: which columns stand within ``reach`` [m] of lines from ``start`` to ``end``, both
        (n, k, 2) [m]."""
        way = (end - start)[:, None]
        offset = self.places[:, None] - start[:, None]  # (n, columns, k, 2)
        along = (offset * way).sum(3) / (way * way).sum(3)
        nearest = offset - along.clamp(0.0, 1.0)[..., None] * way
        return ((nearest * nearest).sum(3) <= reach**2).any(2)

    def cover(self, mask: Tensor, other: Tensor) -> Tensor:
        """(n,) intersection over union of two sets of columns, (n, columns) bool each."""
        both, either = (mask & other).sum(1), (mask | other).sum(1)
        return torch.where(either > 0, both / either.clamp_min(1), 1.0)


def layer(
    b: SceneBuilder, name: str, *, middle: Sequence[float], cells: int, cell: float, bottom: float, thickness: float
) -> Layer:
    """Add a layer to a scene: a variable of the task, to which nothing is added that could be touched.

    Args:
        b: the scene.
        name: of the variable.
        middle: x and y of its middle in the world [m].
        cells: columns along a side.
        cell: side of a column [m].
        bottom: height of its bottom in the world [m].
        thickness: of the layer at the start [m].

    Raises:
        ConfigError: no columns, or no size.
    """
    if cells < 1 or not (cell > 0 and thickness > 0):
        raise ConfigError(f"a layer needs columns of a size and a thickness above 0, got {cells, cell, thickness}")
    return Layer(b.variable(name, (cells * cells,), initial=thickness), middle, cells, cell, bottom)
