"""Pictures of a tactile fingertip: the camera's view of a lit gel from behind, from how deep it is pressed.

    image = optics(h.tactile.depth, h.tactile.size)      # (n, H, W, 3) uint8

:class:`Calibrated` colours slopes as a real sensor was measured to (the tables of Taxim: Si and Yuan, RA-L 2022, for a
DIGIT and a GelSight R1.5). :class:`ThreeLights` needs no data: a plain shading with three coloured lights, like the
real thing in kind, measured from no sensor.

Image axes are those of :class:`~manikin.scene.handles.sensors.Tactile`: x right, y down, seen from inside the finger.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from manikin.assets.paths import data_root
from manikin.errors import AssetError, ConfigError, DataError, UnknownNameError
from manikin.math import atan2
from manikin.moved import old_names

__all__ = ["SENSORS", "Calibrated", "GelLight", "ThreeLights", "skin", "slopes"]

SENSORS = {"digit": "tactile/taxim/calibs/digit", "gelsight_r1.5": "tactile/taxim/calibs/gelsight_r1.5"}
_FRAME = (480, 640)  # rows and columns of the frames that the tables were fitted on
_SKIRT = (0.0012, 0.0006, 0.0003)  # [m] widths at which the skin is drawn along, coarse to fine
_ROWS = 240  # of a picture whose size nobody says
_GREY = (99.0, 105.0, 99.0)  # mean colour of an untouched DIGIT (TACTO's background picture)


# ---- the shape of the skin -----------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=64)
def _blur(count: int, sigma: float) -> Tensor:
    """(count, count) normal weights of width ``sigma`` [cells], each row adding up to one."""
    offset = torch.arange(count, dtype=torch.float64)
    weight = torch.exp(-0.5 * ((offset - offset.unsqueeze(1)) / max(sigma, 1e-3)).square())
    return (weight / weight.sum(1, keepdim=True)).float()


@functools.lru_cache(maxsize=64)
def _enlarge(count: int, size: int) -> Tensor:
    """(size, count) weights of a cubic spline, smooth to the second derivative, from cells to pixels."""
    place = (torch.arange(size, dtype=torch.float64) + 0.5) * count / size - 0.5
    first = place.floor()
    t = (place - first).unsqueeze(1)
    s = 1 - t
    basis = torch.cat([s**3, 4 - 6 * t**2 + 3 * t**3, 4 - 6 * s**2 + 3 * s**3, t**3], 1) / 6
    index = (first.unsqueeze(1) + torch.arange(-1, 3)).clamp(0, count - 1).long()
    return torch.zeros(size, count, dtype=torch.float64).scatter_add_(1, index, basis).float()


def _both(images: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """A linear map along the rows and one along the columns of images (n, H, W)."""
    n = len(images)
    rows, columns = rows.to(images.device), columns.to(images.device)
    return torch.bmm(torch.bmm(rows.expand(n, -1, -1), images), columns.T.expand(n, -1, -1))


def skin(depth: Tensor, size: tuple[float, float], resolution: tuple[int, int] | None = None) -> Tensor:
    """How far the gel's skin stands in, also beside the print, where it is drawn along: a smooth skirt.

    The skirt is made by blurring at widths of 1.2, 0.6 and 0.3 mm in turn, never less than the print itself.

    Args:
        depth: (n, H, W) of the print [m], 0 outside.
        size: (height, width) of the image [m].
        resolution: of the result; None for that of ``depth``.

    Returns:
        (n, *resolution) [m].
    """
    h, w = depth.shape[1:]
    pitch = (size[0] / h, size[1] / w)
    out = depth
    for width in _SKIRT:
        out = torch.maximum(_both(out, _blur(h, width / pitch[0]), _blur(w, width / pitch[1])), depth)
    fine = 0.5 * max(pitch)
    out = _both(out, _blur(h, fine / pitch[0]), _blur(w, fine / pitch[1]))
    return out if resolution is None else _both(out, _enlarge(h, resolution[0]), _enlarge(w, resolution[1]))


def slopes(height: Tensor, size: tuple[float, float]) -> tuple[Tensor, Tensor]:
    """Slopes of heights (n, H, W) [m] to the right and down, each (n, H, W), by central differences."""
    dy, dx = torch.gradient(height, dim=(1, 2))
    return dx / (size[1] / height.shape[2]), dy / (size[0] / height.shape[1])


def _pixels(resolution: tuple[int, int] | None, size: tuple[float, float]) -> tuple[int, int]:
    if resolution is not None:
        if min(resolution) < 2:
            raise ConfigError(f"a picture of {resolution[0]} x {resolution[1]} pixels is not possible")
        return resolution
    return _ROWS, max(2, round(_ROWS * size[1] / size[0]))


def _finish(colour: Tensor) -> Tensor:
    return colour.round().clamp(0, 255).to(torch.uint8)


# ---- light ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GelLight:
    """A coloured light beside the gel.

    Attributes:
        angle: where in the image it stands [rad], 0 right, pi / 2 down.
        rgb: how much of each colour it gives to a surface that faces it, of 255.
        elevation: above the gel's plane, on the camera's side [rad].
    """

    angle: float
    rgb: tuple[float, float, float]
    elevation: float = math.radians(25)


@dataclass(frozen=True, kw_only=True)
class ThreeLights:
    """Plain synthetic optics: diffuse and specular shading by lights of three colours. From no real sensor.

    Attributes:
        lights: by default red upper left, green upper right, blue below, as in a DIGIT.
        background: colour of the untouched gel.
        specular, shininess: of the highlights.
        resolution: (H, W) of the picture; None for 240 rows of square pixels.
    """

    lights: Sequence[GelLight] = (
        GelLight(math.radians(210), (190, 20, 20)),
        GelLight(math.radians(330), (20, 190, 20)),
        GelLight(math.radians(90), (20, 20, 190)),
    )
    background: tuple[float, float, float] = _GREY
    specular: float = 0.15
    shininess: int = 12
    resolution: tuple[int, int] | None = None

    def __call__(self, depth: Tensor, size: tuple[float, float]) -> Tensor:
        """Picture (n, H, W, 3) uint8 of a print (n, h, w) [m] on an image of ``size`` (height, width) [m]."""
        dx, dy = slopes(skin(depth, size, _pixels(self.resolution, size)), size)
        length = (dx * dx + dy * dy + 1).sqrt()
        nx, ny, nz = -dx / length, -dy / length, -1 / length  # towards the camera, which looks along z
        total = torch.zeros(*dx.shape, 3, device=depth.device) + torch.tensor(self.background, device=depth.device)
        for light in self.lights:
            c, s = math.cos(light.elevation), math.sin(light.elevation)
            lx, ly, lz = c * math.cos(light.angle), c * math.sin(light.angle), -s
            facing = nx * lx + ny * ly + nz * lz
            # how much of the reflected ray goes to the camera; flat gel reflects the share s
            mirror = (lz - 2 * facing * nz).clamp(min=0)
            gloss, flat_gloss = mirror**self.shininess, s**self.shininess
            change = facing.clamp(min=0) - s + self.specular * (gloss - flat_gloss)
            total = total + change.unsqueeze(-1) * torch.tensor(light.rgb, dtype=torch.float32, device=depth.device)
        return _finish(total)


class Calibrated:
    """Optics of a real sensor: the colour that slopes had in pictures of a ball of known size pressed into it.

    The table has, for every bin of steepness (0 to 90 deg) and direction of the slope, a quadratic polynomial in the
    pixel's column and row for each colour: its difference from the untouched gel. What the polynomials say of flat gel
    is taken away, so that untouched gel is exactly the background.

    Args:
        table: (3, bins, bins, 6) coefficients of x^2, y^2, x y, x, y, 1 of red, green, blue.
        background: (H, W, 3) picture of the untouched gel, or one colour (3,).
        resolution: (H, W) of the picture; None for 240 rows of square pixels.
        smooth: width [bins] over which neighbouring bins are averaged; each is fitted to a few dozen noisy pictures.
    """

    def __init__(
        self,
        table: np.ndarray,
        *,
        background: np.ndarray | Sequence[float] = _GREY,
        resolution: tuple[int, int] | None = None,
        smooth: float = 1.5,
    ) -> None:
        table = np.asarray(table, np.float64)
        if table.ndim != 4 or table.shape[0] != 3 or table.shape[1] != table.shape[2] or table.shape[3] != 6:
            raise DataError(f"a colour table has shape (3, bins, bins, 6), not {table.shape}")
        self.bins, self.resolution = table.shape[1], resolution
        around = self.bins - 1  # the last direction is the first again
        table = table[:, :, :around]
        if smooth > 0:
            table = _smoothed(table, smooth)
        table = table - table[:, :1].mean(2, keepdims=True)
        self._table = torch.from_numpy(table.transpose(1, 2, 3, 0).reshape(-1, 6, 3)).float()  # (bin, term, colour)
        self._background = torch.as_tensor(np.asarray(background, np.float32))
        if self._background.shape[-1] != 3 or self._background.dim() not in (1, 3):
            raise DataError(f"a background is (H, W, 3) or (3,), not {tuple(self._background.shape)}")

    @classmethod
    def load(
        cls,
        sensor: str = "digit",
        *,
        path: str | Path | None = None,
        background: np.ndarray | Sequence[float] = _GREY,
        resolution: tuple[int, int] | None = None,
        smooth: float = 1.5,
    ) -> Calibrated:
        """Read a ``polycalib.npz``: of one of :data:`SENSORS`, from the folder MANIKIN_DATA, or at ``path``.

        Raises:
            UnknownNameError: for another sensor.
            AssetError: if there is no such file.
            DataError: if it is no such table.
        """
        if path is None:
            if sensor not in SENSORS:
                raise UnknownNameError("tactile sensor", sensor, SENSORS)
            root = data_root()
            if root is None:
                raise AssetError(
                    f"the calibration of {sensor!r} is in the real data, and MANIKIN_DATA is not set; give path=... or "
                    "use ThreeLights(), which needs none"
                )
            path = root / SENSORS[sensor] / "polycalib.npz"
        path = Path(path)
        if not path.is_file():
            raise AssetError(f"there is no tactile calibration at {path}")
        try:
            with np.load(path) as file:  # without pickle: a calibration holds numbers only
                table = np.stack([file[f"grad_{colour}"] for colour in "rgb"])
        except (KeyError, ValueError, OSError) as error:
            raise DataError(f"{path} is not a calibration (grad_r, grad_g, grad_b): {error}") from error
        return cls(table, background=background, resolution=resolution, smooth=smooth)

    def change(self, dx: Tensor, dy: Tensor) -> Tensor:
        """Change of colour (n, H, W, 3), of 255, for slopes to the right and down (n, H, W)."""
        n, h, w = dx.shape
        device = dx.device
        around = self.bins - 1
        angle = (dx * dx + dy * dy).sqrt().atan() / (0.5 * math.pi / around)  # in bins
        steep = angle.long().clamp(max=around)
        turn = ((atan2(dy, dx) + math.pi) / (2 * math.pi / around)).long() % around
        x = ((torch.arange(w, device=device) + 0.5) * (_FRAME[1] / w) - 0.5).view(1, w).expand(h, w)
        y = ((torch.arange(h, device=device) + 0.5) * (_FRAME[0] / h) - 0.5).view(h, 1).expand(h, w)
        found = self._table.to(device)[steep * around + turn]  # (n, h, w, term, colour)
        out = torch.zeros(n, h, w, 3, device=device)
        for term, factor in enumerate((x * x, y * y, x * y, x, y, torch.ones_like(x))):
            out += found[..., term, :] * factor.unsqueeze(-1)
        # a slope of less than two bins has no direction to speak of
        return out * (angle / 2).clamp(max=1).unsqueeze(-1)

    def __call__(self, depth: Tensor, size: tuple[float, float]) -> Tensor:
        """Picture (n, H, W, 3) uint8 of a print (n, h, w) [m] on an image of ``size`` (height, width) [m]."""
        dx, dy = slopes(skin(depth, size, _pixels(self.resolution, size)), size)
        return _finish(self._ground(dx.shape[1], dx.shape[2]).to(dx.device) + self.change(dx, dy))

    def _ground(self, h: int, w: int) -> Tensor:
        ground = self._background
        if ground.dim() == 1 or tuple(ground.shape[:2]) == (h, w):
            return ground
        planes = ground.permute(2, 0, 1)
        return _both(planes, _enlarge(planes.shape[1], h), _enlarge(planes.shape[2], w)).permute(1, 2, 0)


def _smoothed(table: np.ndarray, width: float) -> np.ndarray:
    """Average over neighbouring bins (3, steepness, direction, 6): the first ends at its ends, the second is a ring."""
    count = table.shape[2]
    apart = np.abs(np.arange(count)[:, None] - np.arange(count))
    ring = np.exp(-0.5 * (np.minimum(apart, count - apart) / width) ** 2)
    steps = np.arange(table.shape[1])
    line = np.exp(-0.5 * ((steps[:, None] - steps) / width) ** 2)
    ring, line = (m / m.sum(1, keepdims=True) for m in (ring, line))
    out: np.ndarray = np.einsum("is,csdk,jd->cijk", line, table, ring, optimize=True)
    return out


__getattr__ = old_names(__name__)
