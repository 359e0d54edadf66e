"""DrawTriangle-v1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from manikin import Episode
from manikin.tasks.drawing.common import Outlined, OutlinedHandles

__all__ = ["DrawTriangle"]


class DrawTriangle(Outlined):
    """Draw a triangle with equal sides along its outline.

    Randomization: the triangle's place, a little, and its turn about the vertical; the arm's joints, a little noise.
    Success: every point of the outline is within ``threshold`` of a dot, and every dot within it of a point.

    Numbers: ManiSkill3 3.0.1, whose code has the threshold 0.025 m and whose docstring has 0.05 m. There a dot is used
    up in every step, drawn or not; here only by drawing. ManiSkill3 has no dense reward: this one is our own.
    """

    id = "DrawTriangle-v1"
    horizon_s = 15.0
    instruction = "draw the triangle along its outline"
    sized_by = "side"

    @dataclass(frozen=True)
    class Config(Outlined.Config):
        side: float = 0.3  # [m]
        side_points: int = 51  # of the outline, on each side, one of its ends included

    def strokes(self) -> list[np.ndarray]:
        c = self.config
        turn = torch.arange(4, device="cpu") * (2 * math.pi / 3)
        corners = torch.stack([torch.cos(turn), torch.sin(turn)], 1) * (c.side / math.sqrt(3))
        share = torch.arange(c.side_points, device="cpu")[:, None] / c.side_points
        sides = [torch.lerp(corners[k], corners[k + 1], share) for k in range(3)]
        return [torch.cat(sides).numpy()]

    def start(self, h: OutlinedHandles, ep: Episode) -> None:
        super().start(h, ep)
        c = self.config
        self.place(
            h, ep.rng.uniform("triangle/xy", c.low, c.high, (2,)), ep.rng.uniform("triangle/yaw", -math.pi, math.pi)
        )
