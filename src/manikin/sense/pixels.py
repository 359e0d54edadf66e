"""Stages that change pixels: a photograph behind what is drawn, other colours, another size."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from manikin.assets.paths import file_hash
from manikin.assets.pictures import read_picture
from manikin.errors import AssetError, ConfigError, DataError, UnknownNameError
from manikin.render.segmentation import SegmentationTable
from manikin.sense.kinds import built_in
from manikin.sense.stages import Picture, Shot, Stage

__all__ = ["Jitter", "Photograph", "Resize"]

_FITS = ("same", "cover", "stretch")
_GREY = (0.299, 0.587, 0.114)  # ITU-R BT.601 luma


@built_in
@dataclass(frozen=True)
class Photograph(Stage):
    """A photograph behind what is drawn, as in SIMPLER's visual matching (Li et al. 2024): the real camera took it from
    where the simulated one stands, without the things that the simulation draws.

    Attributes:
        files: PNG files, or with PyAV any that it reads; of several each episode has one.
        which: the task's variable that holds the number of an episode's file, from 0. By default it is drawn.
        keep: names of things or bodies that are drawn, such as ``("robot", "cube")``; the photograph takes the place of
            all else. None: it takes the place of the background only, where nothing is.
        fit: ``same`` refuses a photograph of other proportions than the picture, because it cannot fit the camera.
            ``cover`` keeps the photograph's proportions and cuts what is beyond the picture, ``stretch`` does not.
        sha256: of the files, computed where left out; given ones are compared.

    Raises:
        AssetError: there is no such file.
        ConfigError: it has other proportions than the picture, and ``fit`` is ``same``.
        DataError: a file does not decode, or is not the one that was described.
    """

    files: str | tuple[str, ...] = ()
    keep: tuple[str, ...] | None = None
    fit: str = "same"
    sha256: tuple[str, ...] = ()
    which: str = ""
    needs: ClassVar[tuple[str, ...]] = ("segmentation",)
    unhashed: ClassVar[tuple[str, ...]] = ("files",)

    def __post_init__(self) -> None:
        files = (self.files,) if isinstance(self.files, str | Path) else self.files
        if not files:
            raise ConfigError('a Photograph needs a file: Photograph("kitchen.png")')
        if self.fit not in _FITS:
            raise UnknownNameError("fit of a photograph", self.fit, _FITS)
        if isinstance(self.keep, str):
            object.__setattr__(self, "keep", (self.keep,))
        object.__setattr__(self, "files", tuple(str(file) for file in files))
        found = tuple(_sha256(file) for file in self.files)
        if self.sha256 and tuple(self.sha256) != found:
            changed = [file for file, *both in zip(self.files, self.sha256, found, strict=False) if both[0] != both[1]]
            raise DataError(
                f"the photographs have changed since they were described: {', '.join(changed) or self.files}"
            )
        object.__setattr__(self, "sha256", found)

    def apply(self, picture: Picture, shot: Shot) -> Picture:
        rgb = picture.get("rgb")
        if rgb is None:
            return picture
        height, width = rgb.shape[1:3]
        photographs = _fitted(tuple(self.files), self.sha256, height, width, self.fit, rgb.device, shot.camera.name)
        which = shot.episode.integers(f"{shot.name}/photograph", 0, len(photographs))
        if self.which:
            which = shot.variable(self.which).long()
        drawn = _keep_mask(shot.table, self.keep, rgb.device)[picture["segmentation"].long()]
        return {**picture, "rgb": torch.where(drawn.unsqueeze(-1), rgb, photographs[which])}


@built_in
@dataclass(frozen=True, kw_only=True)
class Jitter(Stage):
    """Other brightness, contrast and saturation: factors from 1 - x to 1 + x, applied in that order.

    Attributes:
        brightness, contrast, saturation: x of each, 0 to 1. Contrast is about the picture's mean luma.
        per: ``episode``, the same factors all along, or ``step``.
    """

    brightness: float = 0.0
    contrast: float = 0.0
    saturation: float = 0.0
    per: str = "episode"

    def __post_init__(self) -> None:
        for name in ("brightness", "contrast", "saturation"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise ConfigError(f"Jitter: {name} must be a number from 0 to 1, not {value!r:.40}")
        if self.per not in ("episode", "step"):
            raise UnknownNameError("rate of a Jitter", self.per, ("episode", "step"))

    def apply(self, picture: Picture, shot: Shot) -> Picture:
        if "rgb" not in picture:
            return picture
        rng, colour = shot.episode if self.per == "episode" else shot.step, picture["rgb"].float()

        def factor(name: str) -> Tensor:
            wide = getattr(self, name)
            return rng.uniform(f"{shot.name}/{name}", 1.0 - wide, 1.0 + wide).view(-1, 1, 1, 1)

        if self.brightness:
            colour = (colour * factor("brightness")).clamp(0, 255)
        if self.contrast:
            mean = luma(colour).mean((1, 2, 3), keepdim=True)
            colour = (mean + (colour - mean) * factor("contrast")).clamp(0, 255)
        if self.saturation:
            grey = luma(colour)
            colour = (grey + (colour - grey) * factor("saturation")).clamp(0, 255)
        return {**picture, "rgb": colour.round().to(torch.uint8)}


@built_in
@dataclass(frozen=True)
class Resize(Stage):
    """Another number of pixels: colours are averaged (bilinear, antialiased), all else is that of the nearest pixel,
    and ``K`` follows."""

    width: int = 0
    height: int = 0

    def __post_init__(self) -> None:
        for side in (self.width, self.height):
            if isinstance(side, bool) or not isinstance(side, int) or not 1 <= side <= 8192:
                raise ConfigError(f"Resize takes width and height in whole pixels, not {side!r:.40}")

    def apply(self, picture: Picture, shot: Shot) -> Picture:
        out: Picture = {}
        for name, value in picture.items():
            if name in ("K", "T"):
                continue
            high, wide = value.shape[1:3]
            if name == "rgb":
                out[name] = _resized(value, self.height, self.width)
            else:
                out[name] = value[:, _nearest(high, self.height, value)][:, :, _nearest(wide, self.width, value)]
        scale = torch.tensor([self.width / wide, self.height / high], device=picture["K"].device)
        K = picture["K"].clone()
        K[:, 0, 0] *= scale[0]
        K[:, 1, 1] *= scale[1]
        K[:, :2, 2] = (K[:, :2, 2] + 0.5) * scale - 0.5
        return {**{k: out.get(k, v) for k, v in picture.items()}, "K": K}


def luma(colour: Tensor) -> Tensor:
    """(..., 1) how bright colours (..., 3) are to the eye, in their unit (ITU-R BT.601)."""
    red, green, blue = (colour[..., k : k + 1] * weight for k, weight in enumerate(_GREY))
    return red + green + blue


def _resized(rgb: Tensor, height: int, width: int) -> Tensor:
    """(n, H, W, 3) uint8 to (n, height, width, 3)."""
    moved = interpolate(rgb.permute(0, 3, 1, 2).float(), (height, width), mode="bilinear", antialias=True)
    return moved.permute(0, 2, 3, 1).round().clamp(0, 255).to(torch.uint8).contiguous()


def _nearest(size: int, wanted: int, like: Tensor) -> Tensor:
    """For each of the wanted pixels, the one of ``size`` under its centre."""
    return (((torch.arange(wanted, device=like.device) + 0.5) * (size / wanted)).long()).clamp(max=size - 1)


@functools.lru_cache(maxsize=16)
def _keep_mask(table: SegmentationTable, names: tuple[str, ...] | None, device: torch.device) -> Tensor:
    """(numbers,) bool: of which numbers in a segmentation the drawn picture stays."""
    if names is None:
        return torch.arange(len(table.geoms), device=device) > 0
    keep = np.zeros(len(table.geoms), bool)
    for name in names:
        found = np.array([name in (thing, body) for thing, body in zip(table.things, table.bodies, strict=True)])
        if not found.any():
            raise UnknownNameError("thing in the scene", name, sorted({*table.things} - {"background", ""}))
        keep |= found
    return torch.from_numpy(keep).to(device)


def _sha256(file: str) -> str:
    path = Path(file).expanduser()
    if not path.is_file():
        raise AssetError(f"photograph {file!r}: there is no such file")
    return file_hash(path)


@functools.lru_cache(maxsize=16)
def _fitted(
    files: tuple[str, ...], sha256: tuple[str, ...], height: int, width: int, fit: str, device: torch.device, name: str
) -> Tensor:
    """(files, height, width, 3) uint8; the hashes are there so that a file that changes is read again."""
    return torch.stack([_one_fitted(file, height, width, fit, name) for file in files]).to(device)


def _one_fitted(file: str, height: int, width: int, fit: str, camera: str) -> Tensor:
    image = torch.from_numpy(read_picture(file, what="photograph")).unsqueeze(0)
    high, wide = image.shape[1:3]
    if fit == "same" and round(height * wide / high) != width and round(width * high / wide) != height:
        raise ConfigError(
            f"the photograph {file} has {wide} x {high} pixels and so other proportions than the picture of {camera}, "
            f"{width} x {height}: it cannot fit the camera. Give the camera the photograph's proportions, and "
            "Resize(width, height) behind the photograph where a policy needs others; or say that it may be cut "
            "(fit='cover') or distorted (fit='stretch')"
        )
    if fit == "cover":
        scale = min(high / height, wide / width)
        h, w = max(1, round(height * scale)), max(1, round(width * scale))
        top, left = (high - h) // 2, (wide - w) // 2
        image = image[:, top : top + h, left : left + w]
    return _resized(image, height, width)[0]
