"""A floor plan as a picture: what stands where, where a robot can drive, and its way."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from manikin.homes.free_space import CELL, FreeSpace

__all__ = ["floor_plan"]

_TAKEN, _TIGHT, _FREE, _APART = (70, 74, 82), (190, 194, 200), (245, 246, 242), (224, 214, 190)
_WAY, _END = (214, 69, 49), (32, 96, 180)


def floor_plan(free: FreeSpace, *, path: np.ndarray | None = None, scale: int = 2) -> np.ndarray:
    """The plan seen from above, x to the right and y up.

    Dark is what stands in the way, grey where the robot would touch it, white where the robot can drive, yellow where
    it fits and cannot get to.

    Args:
        free: the map.
        path: (k, 2) corners of a way [m], drawn in red with blue ends.
        scale: pixels per cell, each way.

    Returns:
        (H, W, 3) uint8.
    """
    image = np.empty((*free.clearance.shape, 3), np.uint8)
    image[:] = _TAKEN
    for where, colour in ((free.clearance > 0, _TIGHT), (free.clearance >= free.radius, _APART), (free.inside, _FREE)):
        image[where] = colour
    image = image.repeat(scale, 0).repeat(scale, 1)
    if path is not None:
        for a, b in itertools.pairwise(path):
            count = int(np.linalg.norm(b - a) / CELL * scale * 2) + 2
            for point in np.linspace(a, b, count):
                _dot(image, free, point, scale, 1.0, _WAY)
        for end in (path[0], path[-1]):
            _dot(image, free, end, scale, 4.0, _END)
    return np.ascontiguousarray(image.swapaxes(0, 1)[::-1])


def _dot(
    image: np.ndarray, free: FreeSpace, point: Sequence[float], scale: int, radius: float, colour: Sequence[int]
) -> None:
    x, y = (np.subtract(point, free.origin) / CELL + 0.5) * scale
    reach = int(radius * scale / 2)
    image[max(0, int(x) - reach) : int(x) + reach + 1, max(0, int(y) - reach) : int(y) + reach + 1] = colour
