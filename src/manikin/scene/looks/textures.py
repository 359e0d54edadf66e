"""Textures for visual variation: procedural ones, and PNG files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from manikin.assets.pictures import read_picture
from manikin.errors import UnknownNameError

__all__ = ["pixels"]

_SIZE = 128  # pixels each way of a procedural texture
_LARGEST = 512  # of an image: larger ones are averaged down


def pixels(word: str) -> np.ndarray:
    """(h, w, 3) uint8 of a procedural texture, or of a PNG file.

    Raises:
        UnknownNameError: no such procedural texture.
        AssetError: there is no such file.
        DataError: the file does not decode; names it.
    """
    if "." in word:
        return _image(Path(word))
    if word not in _KINDS:
        raise UnknownNameError("texture", word, _KINDS)
    grey = np.clip(_KINDS[word](), 0, 1)[..., None]
    return np.repeat((grey * 255 + 0.5).astype(np.uint8), 3, 2)


def _image(path: Path) -> np.ndarray:
    image = read_picture(path, what="texture", only_png=True)
    step = -(-max(image.shape[:2]) // _LARGEST)
    if step > 1:
        h, w = (n // step for n in image.shape[:2])
        blocks = image[: h * step, : w * step].reshape(h, step, w, step, 3)
        image = (blocks.mean((1, 3)) + 0.5).astype(np.uint8)
    return np.ascontiguousarray(image)


# ---- procedural: grey (h, w) in 0..1, paler than dark, seamless where they repeat -----------------------------------


def _grid() -> tuple[np.ndarray, np.ndarray]:
    """X and y in [0, 1)."""
    at = (np.arange(_SIZE) + 0.5) / _SIZE
    return np.meshgrid(at, at)


def _hashed(x: np.ndarray, y: np.ndarray, salt: int) -> np.ndarray:
    """A number in 0..1 for each pair of whole numbers; the same on every machine."""
    with np.errstate(over="ignore"):
        z = x.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + y.astype(np.uint64) * np.uint64(0xD1342543DE82EF95)
        z += np.uint64(salt) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z >> np.uint64(40)).astype(np.float64) / (1 << 24)


def _smooth(x: np.ndarray, y: np.ndarray, cells: int, salt: int) -> np.ndarray:
    """Value noise with ``cells`` lattice cells each way, repeating after 1."""
    gx, gy = x * cells, y * cells
    i, j = np.floor(gx).astype(int), np.floor(gy).astype(int)
    a, b = gx - i, gy - j
    a, b = a * a * (3 - 2 * a), b * b * (3 - 2 * b)
    corner = [_hashed((i + p) % cells, (j + q) % cells, salt) for q in (0, 1) for p in (0, 1)]
    upper, lower = corner[0] + a * (corner[1] - corner[0]), corner[2] + a * (corner[3] - corner[2])
    return upper + b * (lower - upper)


def _noise() -> np.ndarray:
    x, y = _grid()
    octaves = [_smooth(x, y, 4 << k, k) / 2**k for k in range(5)]
    return 0.3 + 0.7 * sum(octaves) / 1.9375


def _blotches() -> np.ndarray:
    x, y = _grid()
    field = _smooth(x, y, 5, 11) + 0.5 * _smooth(x, y, 10, 12)
    return np.where(field > 0.8, 1.0, np.where(field > 0.6, 0.75, 0.5))


def _checker() -> np.ndarray:
    x, y = _grid()
    return np.where((x < 0.5) == (y < 0.5), 1.0, 0.55)


def _tiles() -> np.ndarray:
    x, y = _grid()
    i, j = np.floor(x * 2).astype(int), np.floor(y * 2).astype(int)
    joint = (np.abs(x * 2 % 1 - 0.5) > 0.46) | (np.abs(y * 2 % 1 - 0.5) > 0.46)
    return np.where(joint, 0.5, 0.8 + 0.2 * _hashed(i, j, 5))


def _dots() -> np.ndarray:
    x, y = _grid()
    centre = np.stack([(x * 4) % 1 - 0.5, (y * 4) % 1 - 0.5])
    return np.where((centre * centre).sum(0) < 0.08, 0.45, 1.0)


def _stripes() -> np.ndarray:
    x, _ = _grid()
    return np.where((x * 4) % 1 < 0.5, 1.0, 0.6)


def _gradient() -> np.ndarray:
    x, y = _grid()
    return 0.75 + 0.125 * (np.cos(2 * np.pi * x) + np.cos(2 * np.pi * y))


def _wood() -> np.ndarray:
    x, y = _grid()
    ring = np.sin(2 * np.pi * (6 * y + 0.8 * _smooth(x, y, 2, 21)))
    grain = _smooth(x, y * 8 % 1, 16, 22)
    return 0.72 + 0.14 * ring + 0.14 * grain


_KINDS: dict[str, Callable[[], np.ndarray]] = {
    "blotches": _blotches,
    "checker": _checker,
    "dots": _dots,
    "gradient": _gradient,
    "noise": _noise,
    "stripes": _stripes,
    "tiles": _tiles,
    "wood": _wood,
}
