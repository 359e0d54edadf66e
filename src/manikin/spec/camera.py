"""A camera as data: where it is, where it looks, how wide. Optical frames follow OpenCV: x right, y down, z forward."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

__all__ = ["CameraSpec", "look_at"]


def look_at(
    pos: tuple[float, float, float], target: tuple[float, float, float], up: tuple[float, float, float] = (0, 0, 1)
) -> np.ndarray:
    """Rotation (3, 3) of the OpenCV optical frame in the world: columns are right, down, forward."""
    forward = np.subtract(target, pos).astype(float)
    forward /= np.linalg.norm(forward)
    right = np.cross(forward, up)
    if np.linalg.norm(right) < 1e-6:  # looking straight up or down: x to the world's -y
        right = np.array([0.0, -1.0, 0.0])
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(forward, right), forward], 1)


@dataclass(frozen=True, kw_only=True)
class CameraSpec:
    """A fixed camera.

    Attributes:
        pos, target: [m] in the world; the camera looks from one to the other, the world's z up in the image.
        fovy: vertical field of view [rad].
        width, height: [pixels].
    """

    name: str
    pos: tuple[float, float, float]
    target: tuple[float, float, float]
    fovy: float = math.pi / 2
    width: int = 128
    height: int = 128

    @property
    def rotation(self) -> np.ndarray:
        """(3, 3) OpenCV optical frame in the world."""
        return look_at(self.pos, self.target)
