"""Words and lines drawn into pictures, with a small built-in bitmap font (printable ASCII)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from manikin.errors import ConfigError

__all__ = ["caption", "draw_arrow", "draw_text", "text_size"]

Colour = tuple[int, int, int]

# Glyphs of 5 x 7 pixels, nineteen side by side, in the order of ASCII from the space to the tilde.
SHEET = """
..... ..#.. .#.#. .#.#. ..#.. ##..# .##.. ..#.. ...#. .#... ..... ..... ..... ..... ..... ..... .###. ..#.. .###.
..... ..#.. .#.#. .#.#. .#### ##.#. #..#. ..#.. ..#.. ..#.. ..#.. ..#.. ..... ..... ..... ....# #...# .##.. #...#
..... ..#.. ..... ##### #.... ...#. .##.. ..... ..#.. ..#.. #.#.# ..#.. ..... ..... ..... ....# #..## ..#.. ....#
..... ..#.. ..... .#.#. .###. ..#.. .##.. ..... ..#.. ..#.. .###. ##### ..... ##### ..... ...#. #.#.# ..#.. ...#.
..... ..#.. ..... ##### ....# .#... #..## ..... ..#.. ..#.. #.#.# ..#.. ..##. ..... ..... ..#.. ##..# ..#.. ..#..
..... ..... ..... .#.#. ####. .#.## #..#. ..... ..#.. ..#.. ..#.. ..#.. ..##. ..... .##.. .#... #...# ..#.. .#...
..... ..#.. ..... .#.#. ..#.. #..## .##.# ..... ...#. .#... ..... ..... .#... ..... .##.. #.... .###. .###. #####

.###. ...#. ##### .###. ##### .###. .###. ..... ..... ...#. ..... .#... .###. .###. .###. ####. .#### ####. #####
#...# ..##. #.... #.... ....# #...# #...# ..##. ..##. ..#.. ..... ..#.. #...# #...# #...# #...# #.... #...# #....
....# .#.#. ####. #.... ...#. #...# #...# ..##. ..##. .#... ##### ...#. ....# #.### #...# #...# #.... #...# #....
..##. #..#. ....# ####. ...#. .###. .#### ..... ..... #.... ..... ....# ..##. #.#.# ##### ####. #.... #...# ####.
....# ##### ....# #...# ..#.. #...# ....# ..##. ..##. .#... ##### ...#. ..#.. #.### #...# #...# #.... #...# #....
#...# ...#. #...# #...# ..#.. #...# ....# ..##. ..##. ..#.. ..... ..#.. ..... #.... #...# #...# #.... #...# #....
.###. ...#. .###. .###. ..#.. .###. .###. ..... .#... ...#. ..... .#... ..#.. .###. #...# ####. .#### ####. #####

##### .#### #...# .###. ..### #...# #.... #...# #...# .###. ####. .###. ####. .#### ##### #...# #...# #...# #...#
#.... #.... #...# ..#.. ...#. #..#. #.... ##.## ##..# #...# #...# #...# #...# #.... ..#.. #...# #...# #...# #...#
#.... #.... #...# ..#.. ...#. #.#.. #.... #.#.# ##..# #...# #...# #...# #...# #.... ..#.. #...# #...# #...# .#.#.
####. #..## ##### ..#.. ...#. ##... #.... #.#.# #.#.# #...# ####. #...# ####. .###. ..#.. #...# #...# #.#.# ..#..
#.... #...# #...# ..#.. ...#. #.#.. #.... #...# #..## #...# #.... #.#.# #.#.. ....# ..#.. #...# .#.#. #.#.# .#.#.
#.... #...# #...# ..#.. #..#. #..#. #.... #...# #..## #...# #.... #..#. #..#. ....# ..#.. #...# .#.#. ##.## #...#
#.... .#### #...# .###. .##.. #...# ##### #...# #...# .###. #.... .##.# #...# ####. ..#.. .###. ..#.. #...# #...#

#...# ##### .###. #.... .###. ..#.. ..... .#... ..... #.... ..... ....# ..... ..##. ..... #.... ..#.. ...#. #....
#...# ....# .#... .#... ...#. .#.#. ..... ..#.. ..... #.... ..... ....# ..... .#... .#### #.... ..... ..... #....
.#.#. ...#. .#... .#... ...#. #...# ..... ..... .###. #.##. .###. .##.# .###. ####. #...# #.##. .##.. ..##. #..#.
..#.. ..#.. .#... ..#.. ...#. ..... ..... ..... ....# ##..# #.... #..## #...# .#... #...# ##..# ..#.. ...#. #.#..
..#.. .#... .#... ...#. ...#. ..... ..... ..... .#### #...# #.... #...# ##### .#... .#### #...# ..#.. ...#. ##...
..#.. #.... .#... ...#. ...#. ..... ..... ..... #...# #...# #.... #...# #.... .#... ....# #...# ..#.. #..#. #.#..
..#.. ##### .###. ....# .###. ..... ##### ..... .#### ####. .###. .#### .###. .#... .###. #...# .###. .##.. #..#.

.##.. ..... ..... ..... ..... ..... ..... ..... .#... ..... ..... ..... ..... ..... ..... ...## ..#.. ##... .....
..#.. ..... ..... ..... ..... ..... ..... ..... .#... ..... ..... ..... ..... ..... ..... ..#.. ..#.. ..#.. .....
..#.. ##.#. #.##. .###. ####. .#### #.##. .#### ####. #...# #...# #...# #...# #...# ##### ..#.. ..#.. ..#.. .#...
..#.. #.#.# ##..# #...# #...# #...# ##..# #.... .#... #...# #...# #...# .#.#. #...# ...#. .#... ..#.. ...#. #.#.#
..#.. #.#.# #...# #...# #...# #...# #.... .###. .#... #...# #...# #.#.# ..#.. .#### ..#.. ..#.. ..#.. ..#.. ...#.
..#.. #...# #...# #...# ####. .#### #.... ....# .#... #..## .#.#. #.#.# .#.#. ....# .#... ..#.. ..#.. ..#.. .....
.###. #...# #...# .###. #.... ....# #.... ####. ..##. .##.# ..#.. .#.#. #...# .###. ##### ...## ..#.. ##... .....
"""
WIDTH, HEIGHT = 6, 10  # of a character with the room around it [pixels]


@cache
def _glyphs() -> np.ndarray:
    """(95, 10, 6) bool, each glyph with blank lines above and below and a blank column to its right."""
    bands = [band.splitlines() for band in SHEET.strip().split("\n\n")]
    shapes = np.zeros((95, HEIGHT, WIDTH), bool)
    for number in range(95):
        band, at = bands[number // 19], number % 19 * 6
        shapes[number, 1:8, :5] = [[c == "#" for c in row[at : at + 5]] for row in band]
    return shapes


def text_size(text: str, scale: int = 1) -> tuple[int, int]:
    """Width and height [pixels] that a line of text takes."""
    return WIDTH * scale * len(text), HEIGHT * scale


def draw_text(
    image: np.ndarray, text: str, x: int, y: int, *, scale: int = 1, colour: Colour = (255, 255, 255)
) -> None:
    """Write one line into a picture (height, width, 3) uint8, in place; what lies outside is cut off.

    Args:
        image: the picture.
        text: printable ASCII; other characters become question marks.
        x: of its left edge [pixels].
        y: of its upper edge [pixels].
        scale: pixels per dot of the font.
        colour: red, green, blue.

    Raises:
        ConfigError: if scale is not positive.
    """
    if scale < 1:
        raise ConfigError(f"the scale of text must be at least 1 pixel per dot; got {scale}")
    numbers = [ord(c) - 32 if 32 <= ord(c) < 127 else ord("?") - 32 for c in text]
    if not numbers:
        return
    dots = np.concatenate(_glyphs()[numbers], axis=1).repeat(scale, 0).repeat(scale, 1)
    top, left = max(y, 0), max(x, 0)
    dots = dots[top - y : image.shape[0] - y, left - x : image.shape[1] - x]
    if dots.size:
        image[top : top + dots.shape[0], left : left + dots.shape[1]][dots] = colour


def caption(
    image: np.ndarray,
    lines: Sequence[str],
    *,
    scale: int | None = None,
    colours: Sequence[Colour] = (),
    bottom: bool = False,
) -> np.ndarray:
    """A copy of a picture (height, width, 3) uint8 with lines of text on a darkened strip at its top or bottom.

    Args:
        image: the picture.
        lines: what to write; a line that is too long is cut and ends in two dots.
        scale: pixels per dot of the font; by default chosen by the picture's width.
        colours: one per line; those that are missing are white.
        bottom: at the bottom instead of the top.
    """
    image = image.copy()
    if not lines:
        return image
    if scale is None:
        scale = max(1, round(image.shape[1] / 420))
    margin, fits = 3 * scale, max(1, (image.shape[1] - 6 * scale) // (WIDTH * scale))
    strip = HEIGHT * scale * len(lines) + 2 * margin
    y = max(0, image.shape[0] - strip) if bottom else 0
    image[y : y + strip] = image[y : y + strip] * 0.35
    for number, line in enumerate(lines):
        cut = line if len(line) <= fits else line[: max(0, fits - 2)] + ".."
        colour = colours[number] if number < len(colours) else (255, 255, 255)
        draw_text(image, cut, margin, y + margin + HEIGHT * scale * number, scale=scale, colour=colour)
    return image


def draw_arrow(
    image: np.ndarray, start: Sequence[float], end: Sequence[float], *, width: float = 2.0, colour: Colour = (255, 0, 0)
) -> None:
    """Draw an arrow into a picture (height, width, 3) uint8, in place, from ``start`` to ``end`` (x, y) [pixels].

    Smooth at its edges; parts outside the picture are left out, and nothing is drawn for points that are not finite.
    """
    a, b = np.asarray(start, float), np.asarray(end, float)
    if not np.isfinite([a, b]).all() or np.abs([a, b]).max() > 1e5:
        return
    _draw_line(image, a, b, width, colour)
    length = float(np.hypot(*(b - a)))
    if length < 1.0:
        return
    along, head = (b - a) / length, min(length / 2, 4 * width)
    for side in (0.5, -0.5):
        turn = np.array([[math.cos(side), -math.sin(side)], [math.sin(side), math.cos(side)]])
        _draw_line(image, b, b - head * (turn @ along), width, colour)


def _draw_line(image: np.ndarray, a: np.ndarray, b: np.ndarray, width: float, colour: Colour) -> None:
    """Blend by how far a pixel's centre is from the segment."""
    low = np.maximum(np.floor(np.minimum(a, b) - width), 0).astype(int)
    high = np.minimum(np.ceil(np.maximum(a, b) + width) + 1, image.shape[1::-1]).astype(int)
    if (high <= low).any():
        return
    y, x = np.mgrid[low[1] : high[1], low[0] : high[0]]
    along = b - a
    t = ((x - a[0]) * along[0] + (y - a[1]) * along[1]) / max(float(along @ along), 1e-9)
    t = np.clip(t, 0, 1)
    distance = np.hypot(x - a[0] - t * along[0], y - a[1] - t * along[1])
    cover = np.clip(width / 2 + 0.5 - distance, 0, 1)[..., None]
    part = image[low[1] : high[1], low[0] : high[0]]
    part[...] = (part * (1 - cover) + np.array(colour) * cover + 0.5).astype(np.uint8)
