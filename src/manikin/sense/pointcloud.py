"""Point clouds from depth images: world frame, merged over cameras, cropped, brought to a fixed count.

Torch only, on any device, one batched call for all rows. Everything is elementwise or integer arithmetic in a fixed
order, so a row's cloud has the same bits alone and in any batch. Points that do not exist (background, outside the
crop box, fewer seen than asked for) stay in the tensors and are marked in ``valid``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from manikin.errors import ConfigError, UnknownNameError
from manikin.rng import EpisodeRng
from manikin.sense.kinds import built_in

__all__ = [
    "PointCloud",
    "PointCloudSpec",
    "crop",
    "deproject",
    "farthest",
    "from_cameras",
    "from_depth",
    "merge",
    "random_subset",
]

Vec3 = tuple[float, float, float]
SAMPLING = ("farthest", "random")


@dataclass(frozen=True)
class PointCloud:
    """Points of n rows, P each.

    Attributes:
        xyz: (n, P, 3) float32 in the world [m].
        valid: (n, P) bool; what the other tensors hold where it is False has no meaning.
        rgb: (n, P, 3) uint8, or None.
        segmentation: (n, P) int32 as in segmentation images (geom id + 1), or None.
    """

    xyz: Tensor
    valid: Tensor
    rgb: Tensor | None = None
    segmentation: Tensor | None = None

    def as_dict(self) -> dict[str, Tensor]:
        """The tensors by name, those that are None left out, with zeros where not valid."""
        wide = ~self.valid.unsqueeze(-1)
        out = {"xyz": self.xyz.masked_fill(wide, 0), "valid": self.valid}
        if self.rgb is not None:
            out["rgb"] = self.rgb.masked_fill(wide, 0)
        if self.segmentation is not None:
            out["segmentation"] = self.segmentation.masked_fill(~self.valid, 0)
        return out

    def take(self, index: Tensor, valid: Tensor) -> PointCloud:
        """The points ``index`` (n, k) of each row, as valid as ``valid`` (n, k) says."""
        wide = index.unsqueeze(-1).expand(-1, -1, 3)
        rgb = None if self.rgb is None else self.rgb.gather(1, wide)
        segmentation = None if self.segmentation is None else self.segmentation.gather(1, index)
        return PointCloud(self.xyz.gather(1, wide), valid, rgb, segmentation)


@built_in
@dataclass(frozen=True, kw_only=True)
class PointCloudSpec:
    """What cloud an observation has.

    Attributes:
        count: points per row; None keeps one per pixel.
        sampling: ``farthest`` (even coverage, about 10 ms per row for 1024 points) or ``random`` (cheap).
        low, high: opposite corners of the crop box in the world [m]; None does not crop.
        cameras: names of those to merge; None for all.
    """

    count: int | None = 1024
    sampling: str = "farthest"
    low: Vec3 | None = None
    high: Vec3 | None = None
    cameras: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.sampling not in SAMPLING:
            raise UnknownNameError("point sampling", self.sampling, SAMPLING)
        if self.count is not None and self.count < 1:
            raise ConfigError(f"a point cloud needs at least one point, not {self.count}")
        if (self.low is None) != (self.high is None):
            raise ConfigError("a crop box needs both low and high")
        if self.low is not None and self.high is not None and not all(np.less(self.low, self.high)):
            raise ConfigError(f"the crop box from {self.low} to {self.high} is empty")


def deproject(depth: Tensor, K: Tensor, T: Tensor) -> tuple[Tensor, Tensor]:
    """World points of depth images.

    Args:
        depth: (n, H, W) metres along the optical axis, 0 where nothing was hit.
        K: (n, 3, 3) or (3, 3) intrinsics [pixels], pixel centres at integers.
        T: (n, 4, 4) or (4, 4) camera to world, OpenCV frame.

    Returns:
        Points (n, H * W, 3) float32 row by row of the image, and (n, H * W) bool: depth is finite and positive.

    Raises:
        ConfigError: if a shape does not fit.
    """
    if depth.dim() != 3 or K.shape[-2:] != (3, 3) or T.shape[-2:] != (4, 4):
        raise ConfigError(
            "deproject needs depth (n, H, W), K (n, 3, 3), T (n, 4, 4); got "
            f"{tuple(depth.shape)}, {tuple(K.shape)}, {tuple(T.shape)}"
        )
    n, h, w = depth.shape
    K, T = K.float().expand(n, 3, 3), T.float().expand(n, 4, 4)
    valid = torch.isfinite(depth) & (depth > 0)
    z = torch.where(valid, depth, torch.zeros_like(depth)).float()
    u = torch.arange(w, dtype=torch.float32, device=depth.device).view(1, 1, w)
    v = torch.arange(h, dtype=torch.float32, device=depth.device).view(1, h, 1)
    fx, fy, cx, cy, skew = (K[:, i, j].view(n, 1, 1) for i, j in ((0, 0), (1, 1), (0, 2), (1, 2), (0, 1)))
    y_over_z = (v - cy) / fy
    y = y_over_z * z
    x = (u - cx - skew * y_over_z) / fx * z
    # Written out: a matrix product may sum in an order that depends on the batch.
    axes = [
        T[:, i, 0].view(n, 1, 1) * x + T[:, i, 1].view(n, 1, 1) * y + T[:, i, 2].view(n, 1, 1) * z for i in range(3)
    ]
    xyz = torch.stack([axes[i] + T[:, i, 3].view(n, 1, 1) for i in range(3)], -1)
    return xyz.reshape(n, h * w, 3), valid.reshape(n, h * w)


def from_depth(
    depth: Tensor, K: Tensor, T: Tensor, *, rgb: Tensor | None = None, segmentation: Tensor | None = None
) -> PointCloud:
    """One camera's cloud, a point per pixel; ``rgb`` (n, H, W, 3) and ``segmentation`` (n, H, W) come along."""
    xyz, valid = deproject(depth, K, T)
    n, points = valid.shape
    return PointCloud(
        xyz,
        valid,
        None if rgb is None else rgb.reshape(n, points, 3),
        None if segmentation is None else segmentation.reshape(n, points),
    )


def merge(clouds: Sequence[PointCloud]) -> PointCloud:
    """Clouds of the same rows as one, in order. Colour and segmentation stay if all have them."""
    if not clouds:
        raise ConfigError("no point clouds to merge")
    rgb = [c.rgb for c in clouds if c.rgb is not None]
    segmentation = [c.segmentation for c in clouds if c.segmentation is not None]
    return PointCloud(
        torch.cat([c.xyz for c in clouds], 1),
        torch.cat([c.valid for c in clouds], 1),
        torch.cat(rgb, 1) if len(rgb) == len(clouds) else None,
        torch.cat(segmentation, 1) if len(segmentation) == len(clouds) else None,
    )


def crop(cloud: PointCloud, low: Tensor | Vec3, high: Tensor | Vec3) -> PointCloud:
    """Points outside the box from ``low`` to ``high``, (3,) or (n, 3) [m], become invalid; its faces are inside."""
    corners = [torch.as_tensor(c, dtype=torch.float32, device=cloud.xyz.device) for c in (low, high)]
    corners = [c.unsqueeze(1) if c.dim() == 2 else c for c in corners]
    inside = ((cloud.xyz >= corners[0]) & (cloud.xyz <= corners[1])).all(-1)
    return replace(cloud, valid=cloud.valid & inside)


def farthest(cloud: PointCloud, count: int) -> PointCloud:
    """Farthest-point sampling: the first valid point, then again and again the one farthest from all taken so far.

    Of equally far points the first in order is taken, and none twice. Where a row has fewer than ``count`` valid
    points, all of them come and the rest is invalid. Cost grows with count times valid points: crop first.

    Returns:
        A cloud of ``count`` points, in the order taken, so any beginning of it is such a sample as well.
    """
    n = len(cloud.valid)
    if cloud.xyz.device.type == "cpu":
        index = torch.zeros(n, count, dtype=torch.int64)
        for row in range(n):
            seen = cloud.valid[row].nonzero().squeeze(1)
            taken = _farthest_row(cloud.xyz[row][seen].numpy(), count)
            index[row, : len(taken)] = seen[torch.from_numpy(taken)]
    else:
        index = farthest_batched(cloud.xyz, cloud.valid, count)
    return cloud.take(index, _first(cloud.valid.sum(1), count))


def _first(number: Tensor, count: int) -> Tensor:
    """(n, count) bool: the first ``number`` (n,) of each row."""
    return torch.arange(count, device=number.device) < number.unsqueeze(1)


def _farthest_row(xyz: np.ndarray, count: int) -> np.ndarray:
    """Indices of the sample of points (m, 3); NumPy, because each of its many small calls costs a third of torch's."""
    count = min(count, len(xyz))
    taken = np.zeros(count, np.int64)
    x, y, z = np.ascontiguousarray(xyz.T)
    nearest = np.full(len(xyz), np.inf, np.float32)
    d, e = np.empty_like(x), np.empty_like(x)
    for k in range(1, count):
        i = taken[k - 1]
        nearest[i] = -1
        np.subtract(x, x[i], out=d)
        np.multiply(d, d, out=d)
        for axis in (y, z):
            np.subtract(axis, axis[i], out=e)
            np.multiply(e, e, out=e)
            np.add(d, e, out=d)
        np.minimum(nearest, d, out=nearest)
        taken[k] = nearest.argmax()
    return taken


def farthest_batched(xyz: Tensor, valid: Tensor, count: int) -> Tensor:
    """The same (n, count) for all rows at once, the same arithmetic in the same order; for accelerators."""
    rows = torch.arange(len(xyz), device=xyz.device)
    x, y, z = xyz.unbind(-1)
    nearest = torch.where(valid, torch.inf, -1.0)
    index = torch.zeros(len(xyz), count, dtype=torch.int64, device=xyz.device)
    for k in range(count):
        i = nearest.argmax(1)  # the first of equals
        index[:, k] = i
        p = xyz[rows, i]
        dx, dy, dz = x - p[:, :1], y - p[:, 1:2], z - p[:, 2:]
        nearest = torch.minimum(nearest, dx * dx + dy * dy + dz * dz)
        nearest[rows, i] = -1
    return index


def random_subset(cloud: PointCloud, count: int, rng: EpisodeRng, *, name: str = "points") -> PointCloud:
    """``count`` valid points of each row, without replacement, every choice and order equally likely.

    Numbers come from stream ``name`` of ``rng`` (n rows), so give ``rng.derive(step)`` for a new choice every step.
    Where a row has fewer valid points, all of them come and the rest is invalid.
    """
    n, points = cloud.valid.shape
    # The place in the low digits makes keys unique, so that every device sorts alike.
    place = torch.arange(points, device=cloud.valid.device)
    key = rng.integers(name, 0, 1 << 31, (points,)) * points + place
    key = torch.where(cloud.valid, key, torch.iinfo(torch.int64).max - points + place)
    kept = min(count, points)
    index = key.topk(kept, dim=1, largest=False).indices
    if kept < count:
        index = torch.cat([index, index.new_zeros(n, count - kept)], 1)
    return cloud.take(index, _first(cloud.valid.sum(1), count))


def from_cameras(
    images: Mapping[str, Mapping[str, Tensor]], spec: PointCloudSpec, rng: EpisodeRng | None = None
) -> PointCloud:
    """The cloud that a spec asks for, from what :class:`~manikin.render.rig.CameraRig` gives.

    Args:
        images: camera name -> depth (n, H, W), K (n, 3, 3), T (n, 4, 4) and where wanted rgb and segmentation.
        spec: crop, count, cameras.
        rng: of the n rows at the present step (``rng.derive(elapsed)``), for random sampling.

    Raises:
        UnknownNameError: a camera that is not among the images.
        ConfigError: a camera without depth, or random sampling without ``rng``.
    """
    names = tuple(images) if spec.cameras is None else spec.cameras
    clouds = []
    for name in names:
        if name not in images:
            raise UnknownNameError("camera", name, images)
        seen = images[name]
        if "depth" not in seen:
            raise ConfigError(f"a point cloud needs depth of camera {name!r}; it has {', '.join(sorted(seen))}")
        clouds.append(
            from_depth(seen["depth"], seen["K"], seen["T"], rgb=seen.get("rgb"), segmentation=seen.get("segmentation"))
        )
    cloud = merge(clouds)
    if spec.low is not None and spec.high is not None:
        cloud = crop(cloud, spec.low, spec.high)
    if spec.count is None:
        return cloud
    if spec.sampling == "farthest":
        return farthest(cloud, spec.count)
    if rng is None:
        raise ConfigError("random sampling of points needs rng")
    return random_subset(cloud, spec.count, rng)
