"""DrawSVG-v1."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from manikin import Episode
from manikin.assets.svg import read_svg, resampled
from manikin.errors import ConfigError
from manikin.tasks.drawing.common import HALF, MIDDLE, Outlined, OutlinedHandles

__all__ = ["DrawSVG"]

PACE = 0.15  # [m/s] of the expert's stick
log = logging.getLogger("manikin")


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
        low: float = -0.1  # [m] the drawing's middle is uniform between these, in x and y
        high: float = -0.08  # [m]

    def strokes(self) -> list[Tensor]:
        c = self.config
        for option in ("size", "spacing"):
            if getattr(c, option) <= 0:
                raise ConfigError(f"option {option!r} of {self.id} must be positive, but it is {getattr(c, option)}")
        lines = resampled(read_svg(c.file or Path(__file__).with_name("leaf.svg")), c.size, c.spacing)
        self._check_room(max(float(np.linalg.norm(line, axis=1).max()) for line in lines))
        self._check_time(sum(float(np.linalg.norm(np.diff(line, axis=0), axis=1).sum()) for line in lines))
        return [torch.tensor(line, dtype=torch.float32) for line in lines]

    def _check_room(self, far: float) -> None:
        """Raise :class:`ConfigError` where a turn of the drawing leaves the canvas; ``far`` [m] it reaches."""
        c = self.config
        room = min(
            half - abs(end - middle) for half, middle in zip(HALF, MIDDLE, strict=True) for end in (c.low, c.high)
        )
        if far > room:
            room = max(room, 0.0)
            raise ConfigError(
                f"option 'size' of {self.id} is {c.size} m, with which the drawing reaches {far:.2f} m from its "
                f"middle, and the canvas, {2 * HALF[0]:g} x {2 * HALF[1]:g} m, has room for {room:.2f} m there. "
                f"A size of {room / far * c.size:.2f} m fits"
            )

    def _check_time(self, length: float) -> None:
        """Warn where the expert would not draw lines of this length [m]. No error: another horizon may be asked for,
        and lines so near to one another that one dot serves several."""
        c, time = self.config, length / PACE
        dots = round(time * self.control_hz)
        if dots > c.dots or time > self.horizon_s:
            log.warning(
                "%s: the lines are %.1f m long. Drawn at %g m/s, as the expert does, they take %.0f s and %d dots; an "
                "episode has %g s unless horizon= says otherwise, and the option 'dots' is %d",
                self.id, length, PACE, time, dots, self.horizon_s, c.dots,
            )  # fmt: skip

    def start(self, h: OutlinedHandles, ep: Episode) -> None:
        super().start(h, ep)
        c = self.config
        self.place(
            h, ep.rng.uniform("drawing/xy", c.low, c.high, (2,)), ep.rng.uniform("drawing/yaw", -math.pi, math.pi)
        )
