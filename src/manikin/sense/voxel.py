"""Voxel grids from point clouds: which cells of a box hold points, how many, and of what colour."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from manikin.errors import ConfigError
from manikin.sense.kinds import built_in
from manikin.sense.pointcloud import PointCloud

__all__ = ["VoxelGrid", "VoxelSpec", "voxelize"]

Vec3 = tuple[float, float, float]


@built_in
@dataclass(frozen=True, kw_only=True)
class VoxelSpec:
    """A box of the world cut into cells.

    Attributes:
        low, high: opposite corners [m]; a cell contains its lower faces, not its upper ones.
        resolution: cells along x, y, z.
    """

    low: Vec3
    high: Vec3
    resolution: tuple[int, int, int] = (64, 64, 64)

    def __post_init__(self) -> None:
        if not all(a < b for a, b in zip(self.low, self.high, strict=True)):
            raise ConfigError(f"the voxel box from {self.low} to {self.high} is empty")
        if len(self.resolution) != 3 or min(self.resolution) < 1:
            raise ConfigError(f"a voxel grid needs at least one cell along x, y and z, not {self.resolution}")

    @property
    def cell(self) -> Vec3:
        """Size of a cell [m]."""
        x, y, z = ((b - a) / r for a, b, r in zip(self.low, self.high, self.resolution, strict=True))
        return x, y, z

    def centres(self, device: torch.device | str = "cpu") -> Tensor:
        """(X, Y, Z, 3) middle of every cell in the world [m]."""
        axes = [
            a + (torch.arange(r, dtype=torch.float32, device=device) + 0.5) * c
            for a, c, r in zip(self.low, self.cell, self.resolution, strict=True)
        ]
        return torch.stack(torch.meshgrid(*axes, indexing="ij"), -1)


@dataclass(frozen=True)
class VoxelGrid:
    """Grids of n rows.

    Attributes:
        count: (n, X, Y, Z) int32 points in each cell.
        rgb: (n, X, Y, Z, 3) uint8 mean colour, 0 where empty; None for a cloud without colour.
    """

    count: Tensor
    rgb: Tensor | None = None

    @property
    def occupancy(self) -> Tensor:
        """(n, X, Y, Z) bool."""
        return self.count > 0

    def as_dict(self) -> dict[str, Tensor]:
        """``occupancy``, ``count`` and, where there is colour, ``rgb``."""
        out = {"occupancy": self.occupancy, "count": self.count}
        return out if self.rgb is None else {**out, "rgb": self.rgb}


def voxelize(cloud: PointCloud, spec: VoxelSpec) -> VoxelGrid:
    """Sort the valid points of a cloud into cells. Sums are of integers, so neither order nor batch changes a bit."""
    n = len(cloud.valid)
    device = cloud.xyz.device
    low, cell = (torch.tensor(v, dtype=torch.float32, device=device) for v in (spec.low, spec.cell))
    size = torch.tensor(spec.resolution, device=device)
    place = torch.where(cloud.valid.unsqueeze(-1), (cloud.xyz - low) / cell, -1.0).floor()
    inside = ((place >= 0) & (place < size)).all(-1)
    i, j, k = torch.where(inside.unsqueeze(-1), place, 0.0).long().unbind(-1)
    cells = spec.resolution[0] * spec.resolution[1] * spec.resolution[2]
    row = torch.arange(n, device=device).unsqueeze(1)
    flat = (((row * spec.resolution[0] + i) * spec.resolution[1] + j) * spec.resolution[2] + k).reshape(-1)
    weight = inside.reshape(-1).to(torch.int32)
    count = torch.zeros(n * cells, dtype=torch.int32, device=device).index_add_(0, flat, weight)
    rgb = None
    if cloud.rgb is not None:
        total = torch.zeros(n * cells, 3, dtype=torch.int32, device=device)
        total.index_add_(0, flat, cloud.rgb.reshape(-1, 3).to(torch.int32) * weight.unsqueeze(1))
        number = count.clamp(min=1).unsqueeze(1)
        rgb = ((2 * total + number) // (2 * number)).to(torch.uint8).view(n, *spec.resolution, 3)
    return VoxelGrid(count.view(n, *spec.resolution), rgb)
