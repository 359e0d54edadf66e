"""Pictures as RT-1 and Octo were shown them: (N, H, W, 3) uint8 in, (N, height, width, 3) uint8 out.

Sources: ``resize_with_pad`` and ``resize`` of tf.image as SimplerEnv's policy wrappers call them; Lanczos' kernel with
three lobes, Duchon, J. Appl. Meteor. 18 (1979) 1016-1022.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor

__all__ = ["lanczos", "resized_with_pad"]

LOBES = 3


def resized_with_pad(pictures: Tensor, height: int = 256, width: int = 320) -> Tensor:
    """The whole picture, bilinear without antialiasing, between black borders where the shapes differ; cut to whole
    numbers."""
    high, wide = pictures.shape[1:3]
    scale = min(height / high, width / wide)
    inner = (max(1, int(high * scale + 1e-9)), max(1, int(wide * scale + 1e-9)))
    small = torch.nn.functional.interpolate(
        pictures.permute(0, 3, 1, 2).float(), inner, mode="bilinear", align_corners=False, antialias=False
    )
    out = pictures.new_zeros(len(pictures), height, width, 3)
    top, left = (height - inner[0]) // 2, (width - inner[1]) // 2
    out[:, top : top + inner[0], left : left + inner[1]] = small.permute(0, 2, 3, 1).clamp(0, 255).to(torch.uint8)
    return out


def lanczos(pictures: Tensor, height: int = 256, width: int = 256) -> Tensor:
    """Lanczos with three lobes and antialiasing, rounded; the picture's shape may change."""
    rows, columns = _weights(pictures.shape[1], height), _weights(pictures.shape[2], width)
    # one picture at a time: a product's last bits may depend on how many there are
    done = [torch.einsum("yh,hwc,xw->yxc", rows, picture.to(rows), columns) for picture in pictures]
    return torch.stack(done).round().clamp(0, 255).to(torch.uint8)


@functools.lru_cache(maxsize=16)
def _weights(size: int, target: int) -> Tensor:
    """(target, size): what each pixel adds to each new one; every row adds up to 1."""
    scale = size / target
    wide = max(scale, 1.0)  # antialiasing: the kernel covers as many pixels as a new one does
    centre = (torch.arange(target, dtype=torch.float64) + 0.5) * scale - 0.5
    away = (torch.arange(size, dtype=torch.float64) - centre[:, None]) / wide
    weight = torch.where(away.abs() < LOBES, torch.sinc(away) * torch.sinc(away / LOBES), 0.0)
    return (weight / weight.sum(1, keepdim=True)).float()
