"""DrawSVG-v1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from manikin import Episode
from manikin.assets.svg import read_svg, resampled
from manikin.errors import ConfigError
from manikin.tasks.drawing.common import Outlined, OutlinedHandles

__all__ = ["DrawSVG"]


class DrawSVG(Outlined):
    """Draw the lines of an SVG file.

    Randomization: the drawing's place, a little, and its turn about the vertical; the arm's joints, a little noise.
    Success: every point of the lines is within ``threshold`` of a dot, and every dot within it of a point.

    Numbers: ManiSkill3 3.0.1, but for ``threshold``. That is 0.1 m there, with which four dots are as good as a drawing
    0.25 m large; here it is the triangle's 0.025 m. ``config={"threshold": 0.1}`` is the published rule. The dense
    reward is our own. ``config={"file": "my.svg"}`` draws another file: paths, the basic shapes and transforms.
    """

    id = "DrawSVG-v1"
    horizon_s = 25.0
    instruction = "draw the picture along its lines"

    @dataclass(frozen=True)
    class Config(Outlined.Config):
        file: str = ""  # an SVG file; "" is a leaf
        size: float = 0.25  # [m] of the larger side
        spacing: float = 0.006  # [m] between points of the lines
        dots: int = 1000

    def strokes(self) -> list[np.ndarray]:
        c = self.config
        for option in ("size", "spacing"):
            if getattr(c, option) <= 0:
                raise ConfigError(f"option {option!r} of {self.id} must be positive, but it is {getattr(c, option)}")
        return resampled(read_svg(c.file or Path(__file__).with_name("leaf.svg")), c.size, c.spacing)

    def start(self, h: OutlinedHandles, ep: Episode) -> None:
        super().start(h, ep)
        c = self.config
        self.place(
            h, ep.rng.uniform("drawing/xy", c.low, c.high, (2,)), ep.rng.uniform("drawing/yaw", -math.pi, math.pi)
        )
