"""The sources that look through cameras: pictures, point clouds, voxels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from manikin.sense.kinds import built_in
from manikin.sense.pointcloud import PointCloudSpec, from_cameras
from manikin.sense.source import Sight, Source
from manikin.sense.voxel import VoxelSpec, voxelize

__all__ = ["CAMERA_WORDS", "TABLE_CLOUD", "TABLE_GRID", "Cloud", "Pictures", "Voxels"]

CAMERA_WORDS = ("rgb", "depth", "segmentation", "normals")
# Without a crop, evenly spread points would nearly all lie on the floor, which goes on for metres.
TABLE_CLOUD = PointCloudSpec(low=(-0.5, -0.6, -0.02), high=(0.5, 0.6, 0.8))
TABLE_GRID = VoxelSpec(low=(-0.3, -0.4, -0.02), high=(0.3, 0.4, 0.5))
_CLOUD_NEEDS = ("rgb", "depth", "segmentation")


@built_in
@dataclass(frozen=True, kw_only=True)
class Pictures(Source):
    """Per camera its pictures, with ``K`` and ``T``."""

    name: str = "cameras"
    outputs: tuple[str, ...] = ("rgb",)
    owned: ClassVar[bool] = True

    @property
    def needs(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.outputs

    def observe(self, sight: Sight) -> Any:
        wanted = {*self.outputs, "K", "T"}
        return {name: {k: v for k, v in seen.items() if k in wanted} for name, seen in sight.pictures.items()}


@built_in
@dataclass(frozen=True, kw_only=True)
class Cloud(Source):
    """Points in the world, merged over the cameras."""

    name: str = "pointcloud"
    spec: PointCloudSpec = TABLE_CLOUD
    needs: ClassVar[tuple[str, ...]] = _CLOUD_NEEDS
    owned: ClassVar[bool] = True

    def observe(self, sight: Sight) -> Mapping[str, Tensor]:
        return from_cameras(sight.pictures, self.spec, sight.step).as_dict()


@built_in
@dataclass(frozen=True, kw_only=True)
class Voxels(Source):
    """A grid in the world, counted from every point: a fixed count or a crop would leave seen cells empty."""

    name: str = "voxel"
    spec: VoxelSpec = TABLE_GRID
    cameras: tuple[str, ...] | None = None
    needs: ClassVar[tuple[str, ...]] = _CLOUD_NEEDS
    owned: ClassVar[bool] = True

    def observe(self, sight: Sight) -> Mapping[str, Tensor]:
        every = from_cameras(sight.pictures, PointCloudSpec(count=None, cameras=self.cameras))
        return voxelize(every, self.spec).as_dict()
