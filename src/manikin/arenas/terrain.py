"""Uneven ground: a patchwork of noise, slopes and stairs as one height field."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from manikin.arenas.height_field import HeightField
from manikin.errors import ConfigError
from manikin.rng import EpisodeRng

__all__ = ["KINDS", "Terrain", "patchwork"]

KINDS = ("noise", "slope", "stairs")
_RISE, _TREAD, _TOP = 0.12, 0.4, 1.2  # [m] of the highest stairs; of all stairs; width of the flat tops
_NOISE, _SLOPE = 0.08, 0.3  # [m] of the roughest noise; of the steepest slope


@dataclass(frozen=True)
class Terrain(HeightField):
    """A height field of patches, with flat ground at height 0 beyond it.

    Attributes:
        tile: [m] side of a patch.
    """

    tile: float


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
    with torch.device("cpu"):  # the scene is made there, whatever it is simulated on
        seeds, count = torch.tensor([seed]), tiles * side + 1
        rng = EpisodeRng(seeds, torch.zeros_like(seeds))
        firsts = rng.integers("terrain/kinds", 0, len(KINDS), (tiles,))[0].tolist()
        noise = rng.integers("terrain/noise", 0, 9, (tiles, tiles, side + 1, side + 1))[0].numpy() / 8
    heights = np.zeros((count, count))
    along = (np.arange(side + 1) - side / 2) * cell
    outside = np.maximum(np.abs(along)[:, None], np.abs(along)[None, :])  # [m] from the middle of a patch
    inward = np.clip(tile / 2 - outside, 0.0, tile / 2 - _TOP / 2)
    for row in range(tiles):
        level = (row + 1) / tiles
        for column in range(tiles):
            kind = KINDS[(firsts[row] + column) % len(KINDS)]
            if kind == "noise":
                patch = noise[row, column] * (_NOISE * level)
                patch[outside > tile / 2 - cell / 2] = 0.0
            elif kind == "slope":
                patch = inward * (_SLOPE * level)
            else:
                patch = np.floor(inward / _TREAD + 1e-9) * (_RISE * level)
            heights[row * side : (row + 1) * side + 1, column * side : (column + 1) * side + 1] = patch
    return Terrain(np.round(heights, 4), cell, tile)
