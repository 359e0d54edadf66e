"""Uneven ground: a patchwork of noise, slopes and stairs as one height field."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.errors import ConfigError
from manikin.scene.builder import SceneBuilder

__all__ = ["KINDS", "Terrain", "lay", "patchwork"]

KINDS = ("noise", "slope", "stairs")
_RISE, _TREAD, _TOP = 0.12, 0.4, 1.2  # [m] of the highest stairs; of all stairs; width of the flat tops
_NOISE, _SLOPE = 0.08, 0.3  # [m] of the roughest noise; of the steepest slope


@dataclass(frozen=True)
class Terrain:
    """A square height field around the origin, flat ground at height 0 beyond it.

    Attributes:
        heights: (rows, columns) [m], none below 0. Rows follow y, columns x, from the lowest to the highest.
        cell: [m] between neighbours.
        tile: [m] side of a patch.
    """

    heights: np.ndarray
    cell: float
    tile: float

    @property
    def half(self) -> float:
        """[m] from the middle to the rim."""
        return (self.heights.shape[0] - 1) * self.cell / 2

    def tensor(self) -> Tensor:
        """(rows * columns,) float32 the heights, as :func:`at` takes them."""
        return torch.tensor(self.heights.ravel().tolist())

    def at(self, heights: Tensor, points: Tensor) -> Tensor:
        """(...) [m] height of the ground at ``points`` (..., 2) [m], bilinear between the heights of :meth:`tensor`;
        beyond the rim that at the rim."""
        count = self.heights.shape[0]
        place = ((points + self.half) * (1.0 / self.cell)).clamp(0.0, count - 1.001)
        corner = place.floor()
        (x, y), (u, v) = corner.long().unbind(-1), (place - corner).unbind(-1)
        first = y * count + x
        low = torch.lerp(heights[first], heights[first + 1], u)
        high = torch.lerp(heights[first + count], heights[first + count + 1], u)
        return torch.lerp(low, high, v)


def patchwork(seed: int, *, tiles: int = 8, tile: float = 4.0, cell: float = 0.1) -> Terrain:
    """Patches of :data:`KINDS` side by side, along y from easy to hard; the same seed gives the same ground.

    Args:
        seed: of the noise, and of which kind of patch is where.
        tiles: patches along each side.
        tile: [m] side of a patch.
        cell: [m] between heights.

    Raises:
        ConfigError: no patch, or one that is not so many cells wide.
    """
    side = round(tile / cell)
    if tiles < 1 or side < 4 or abs(side * cell - tile) > 1e-6:
        raise ConfigError(f"patches need at least 1 of at least 4 whole cells, not {tiles} of {tile} m and {cell} m")
    rng, count = np.random.default_rng(seed), tiles * side + 1
    heights = np.zeros((count, count))
    along = (np.arange(side + 1) - side / 2) * cell
    outside = np.maximum(np.abs(along)[:, None], np.abs(along)[None, :])  # [m] from the middle of a patch
    inward = np.clip(tile / 2 - outside, 0.0, tile / 2 - _TOP / 2)
    for row in range(tiles):
        level = (row + 1) / tiles
        first = int(rng.integers(len(KINDS)))
        for column in range(tiles):
            kind = KINDS[(first + column) % len(KINDS)]
            if kind == "noise":
                patch = rng.integers(0, 9, (side + 1, side + 1)) / 8 * _NOISE * level
                patch[outside > tile / 2 - cell / 2] = 0.0
            elif kind == "slope":
                patch = inward * (_SLOPE * level)
            else:
                patch = np.floor(inward / _TREAD + 1e-9) * (_RISE * level)
            heights[row * side : (row + 1) * side + 1, column * side : (column + 1) * side + 1] = patch
    return Terrain(np.round(heights, 4), cell, tile)


def lay(b: SceneBuilder, terrain: Terrain, *, name: str = "terrain") -> None:
    """Add the height field to a scene that has a floor at height 0 (:func:`manikin.arenas.ground.ground`)."""
    top = float(max(terrain.heights.max(), 1e-3))
    count = terrain.heights.shape[0]
    b.spec.add_hfield(
        name=name,
        nrow=count,
        ncol=count,
        size=(terrain.half, terrain.half, top, 0.05),
        userdata=(terrain.heights / top).ravel().tolist(),
    )
    geom = b.spec.worldbody.add_geom(name=name, type=mujoco.mjtGeom.mjGEOM_HFIELD, hfieldname=name)
    geom.rgba, geom.priority = (0.62, 0.6, 0.56, 1.0), -1  # what touches it brings the friction, as on the floor
