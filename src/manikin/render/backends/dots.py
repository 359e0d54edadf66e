"""Dots (:mod:`manikin.sim.dots`) laid over a picture of any renderer, by the depth that it gives.

What lies beneath keeps its light and shadow: a dot takes part of it away, as ink does. Depth and segmentation stay
those of the surface.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from manikin.render.view import View
from manikin.sim.dots import DotGroup

__all__ = ["lay_dots", "with_dots"]

_AT_ONCE = 1 << 21  # pixels looked at together


def with_dots(declared: Sequence[DotGroup], view: View, rgb: np.ndarray, depth: np.ndarray) -> np.ndarray:
    """A picture (h, w, 3) uint8 with the dots of some groups on what is seen at ``depth`` (h, w) [m]."""
    groups = [(group, torch.from_numpy(group.places)[None]) for group in declared]
    arrays = (depth, view.K, view.pos, view.rotation)
    far, K, pos, rotation = (torch.as_tensor(np.array(array, np.float32))[None] for array in arrays)
    given = torch.from_numpy(np.ascontiguousarray(rgb))[None]
    picture: np.ndarray = lay_dots(given, far, K, pos, rotation, groups)[0].numpy()
    return picture


def lay_dots(
    rgb: Tensor, depth: Tensor, K: Tensor, pos: Tensor, rotation: Tensor, groups: Sequence[tuple[DotGroup, Tensor]]
) -> Tensor:
    """Pictures with dots, in the order of the groups.

    Args:
        rgb: (N, h, w, 3) uint8.
        depth: (N, h, w) float32 along the camera's axis, 0 where nothing is [m].
        K: (N, 3, 3) intrinsics [pixels].
        pos: (N, 3) optical centres of the cameras in the world [m].
        rotation: (N, 3, 3) their axes, as of :class:`manikin.render.view.View`.
        groups: each with its dots in the N rows, (N, count, 4).
    """
    colour = rgb.float()
    for group, places in groups:
        share = _cover(depth, K, pos, rotation, group, places.to(depth.dtype)) * group.rgba[3]
        left = 1 - colour.new_tensor(group.rgba[:3])
        colour = colour * (1 - share[..., None] * left)
    return (colour + 0.5).to(torch.uint8)


def _cover(depth: Tensor, K: Tensor, pos: Tensor, rotation: Tensor, group: DotGroup, places: Tensor) -> Tensor:
    """(N, h, w) share of each pixel that dots of a group cover: only pixels round a dot's picture are looked at."""
    n, height, width = depth.shape
    cover, seen, largest = torch.zeros_like(depth).view(-1), depth.reshape(-1), max(group.radius, group.height)
    row, number = torch.nonzero(places[..., 3] > 0, as_tuple=True)
    centre = torch.einsum("mi,mij->mj", places[row, number, :3] - pos[row], rotation[row])  # in the camera's frame
    x, y = (centre[:, :2] / centre[:, 2:]).unbind(1)
    fx, fy, cx, cy = K[row, 0, 0], K[row, 1, 1], K[row, 0, 2], K[row, 1, 2]
    u, v = fx * x + cx, fy * y + cy
    reach = torch.maximum(fx, fy) * largest / (centre[:, 2] - largest) * torch.sqrt(1 + x * x + y * y) + 1
    ahead = centre[:, 2] > largest
    within = (u + reach >= 0) & (u - reach < width) & (v + reach >= 0) & (v - reach < height) & ahead
    chosen = torch.nonzero(within).flatten()
    chosen = chosen[reach[chosen].argsort(descending=True)]
    while len(chosen):
        around = int(reach[chosen[0]].ceil())
        step = torch.arange(-around, around + 1, device=depth.device)
        count = max(1, _AT_ONCE // len(step) ** 2)
        now, chosen = chosen[:count], chosen[count:]
        pixel_u = u[now].round().long()[:, None, None] + step
        pixel_v = v[now].round().long()[:, None, None] + step[:, None]
        inside = (pixel_u >= 0) & (pixel_u < width) & (pixel_v >= 0) & (pixel_v < height)
        pixel = (row[now][:, None, None] * height + pixel_v.clamp(0, height - 1)) * width
        pixel = pixel + pixel_u.clamp(0, width - 1)
        away = seen[pixel]
        lens = [one[now][:, None, None] for one in (fx, fy, cx, cy)]
        point = torch.stack([(pixel_u - lens[2]) / lens[0] * away, (pixel_v - lens[3]) / lens[1] * away, away], -1)
        offset = torch.einsum("mvui,mji->mvuj", point - centre[now][:, None, None], rotation[row[now]])  # in the world
        flat, up = offset[..., 0] ** 2 + offset[..., 1] ** 2, offset[..., 2]
        q = torch.sqrt(flat / group.radius**2 + up * up / group.height**2)  # 1 at the edge
        share = ((1 - q) * group.radius * lens[0] / away.clamp_min(1e-6) + 0.5).clamp(0, 1)  # edges of one pixel
        share = torch.where(inside & (away > 0), share, 0.0)
        cover.scatter_reduce_(0, pixel.reshape(-1), share.reshape(-1), "amax")
    return cover.view(n, height, width)
