"""A camera as data: where it is, where it looks, what its lens is, how many pixels it has.

Optical frames follow OpenCV: x right, y down, z forward. Pixel coordinates are those of pixel centres, (0, 0) at the
upper left.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from manikin.errors import ConfigError

__all__ = ["CameraSpec", "look_at"]

Vec3 = tuple[float, float, float]
MAX_SIZE = 8192  # pixels each way; beyond it no backend can draw


def look_at(pos: Vec3, target: Vec3, up: Vec3 = (0, 0, 1)) -> np.ndarray:
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
    """A camera, fixed in the world or on something that moves.

    Attributes:
        name: what observations and ``env.image`` call it.
        pos: [m] optical centre in the frame of ``on``.
        target: [m] point in that frame that it looks at, the frame's z up in the image; or give ``quat``.
        quat: (w, x, y, z) of the optical frame (x right, y down, z forward) in the frame of ``on``.
        on: what the camera is fixed to: the name of a part, of a robot (its base) or ``robot/link``; "" is the world.
        fovy: vertical field of view [rad] of square pixels with the principal point in the middle.
        intrinsics: (fx, fy, cx, cy) [pixels] at ``width`` x ``height``; where given, ``fovy`` does not count.
        width, height: [pixels].

    Raises:
        ConfigError: for values that cannot make a picture.
    """

    name: str
    pos: Vec3 = (0.0, 0.0, 0.0)
    target: Vec3 | None = None
    quat: tuple[float, float, float, float] | None = None
    on: str = ""
    fovy: float = math.pi / 2
    intrinsics: tuple[float, float, float, float] | None = None
    width: int = 128
    height: int = 128

    def __post_init__(self) -> None:
        who = f"camera {self.name!r}"
        numbers = (*self.pos, *(self.target or ()), *(self.quat or ()), *(self.intrinsics or ()), self.fovy)
        if not np.isfinite(numbers).all():
            raise ConfigError(f"{who}: pose and lens must be finite numbers; got {self}")
        if (self.target is None) == (self.quat is None):
            raise ConfigError(f"{who}: give either target, which it looks at, or quat")
        if self.target is not None and np.linalg.norm(np.subtract(self.target, self.pos)) < 1e-9:
            raise ConfigError(f"{who}: target and pos are the same point {self.pos}; choose another target")
        if self.quat is not None and np.linalg.norm(self.quat) < 1e-9:
            raise ConfigError(f"{who}: quat must not be zero")
        if not 0 < self.fovy < math.pi:
            raise ConfigError(f"{who}: fovy must be within 0 and pi [rad]; got {self.fovy}")
        if self.intrinsics is not None and not min(self.intrinsics[:2]) > 0:
            raise ConfigError(f"{who}: focal lengths must be positive; got {self.intrinsics[:2]}")
        if not 1 <= min(self.width, self.height) <= max(self.width, self.height) <= MAX_SIZE:
            raise ConfigError(
                f"{who}: the size must be 1 to {MAX_SIZE} pixels in each direction, not {self.width} x {self.height}"
            )

    @property
    def rotation(self) -> np.ndarray:
        """(3, 3) OpenCV optical frame in the frame of ``on``."""
        if self.target is not None:
            return look_at(self.pos, self.target)
        w, x, y, z = np.divide(self.quat, np.linalg.norm(self.quat))  # type: ignore[arg-type]
        return np.array(
            [
                [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
            ]
        )

    def K(self, width: int | None = None, height: int | None = None) -> np.ndarray:
        """(3, 3) intrinsics [pixels], at the camera's own size or scaled to another."""
        width, height = self.width if width is None else width, self.height if height is None else height
        if self.intrinsics is None:
            f = height / 2 / math.tan(self.fovy / 2)
            return np.array([[f, 0, (width - 1) / 2], [0, f, (height - 1) / 2], [0, 0, 1]])
        fx, fy, cx, cy = self.intrinsics
        sx, sy = width / self.width, height / self.height
        return np.array([[fx * sx, 0, (cx + 0.5) * sx - 0.5], [0, fy * sy, (cy + 0.5) * sy - 0.5], [0, 0, 1]])

    def resized(self, width: int, height: int) -> CameraSpec:
        """The same camera with another number of pixels: as high a view, as wide as the shape of the picture makes it;
        given intrinsics are scaled."""
        K = self.K(width, height)
        lens = None if self.intrinsics is None else (K[0, 0], K[1, 1], K[0, 2], K[1, 2])
        return dataclasses.replace(self, width=width, height=height, intrinsics=lens)
