"""FreeDraw-v1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import Quantity, Waypoint
from manikin.math import pose
from manikin.tasks.drawing.common import DOWN, UP, Drawing, DrawingHandles
from manikin.toolkit import constant, facing_down

__all__ = ["FreeDraw"]


class FreeDraw(Drawing):
    """Draw whatever you like: a canvas for people at a controller, and for policies that invent.

    Randomization: the arm's joints, a little noise.
    Success: ``enough`` dots are drawn, wherever. It does not end the episode.

    Numbers: TableTopFreeDraw of ManiSkill3 3.0.1, which has neither success nor reward. Here both count dots, so that
    recordings and evaluations can tell a drawing from an empty canvas. The expert draws a rose.
    """

    id = "FreeDraw-v1"
    horizon_s = 50.0
    terminate = False
    instruction = "draw something"
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "is_down": Quantity("0 or 1", note="the stick draws"),
        "dots_drawn": Quantity("dots"),
    }
    reward_terms = {"drawn": "dots drawn, as a share of ``enough``; at most 1"}

    @dataclass(frozen=True)
    class Config(Drawing.Config):
        dots: int = 1010
        enough: int = 400  # dots of a drawing

    def evaluate(self, h: DrawingHandles) -> dict[str, Tensor]:
        return {"success": h.used.value >= constant(self.config.enough), "is_down": self.is_down(h)}

    def observe(self, h: DrawingHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose, "is_down": self.is_down(h)},
            "privileged": {"dots_drawn": h.used.value},
        }

    def reward(self, h: DrawingHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        return {"drawn": (h.used.value / constant(self.config.enough)).clamp_max(1.0)}

    def expert(self, h: DrawingHandles) -> list[Waypoint]:
        down = facing_down(h.robot)

        def at(angle: Tensor, height: float) -> Tensor:
            radius = 0.16 * torch.cos(3 * angle)
            x, y = radius * torch.cos(angle) - 0.12, radius * torch.sin(angle)
            return pose(torch.stack([x, y, torch.full_like(x, height)], 1), down)

        angle = (h.used.value * (math.pi / 500)).clamp_max(math.pi)  # a rose of three leaves closes after half a turn
        begin = torch.zeros(h.n)
        draw = torch.where((angle < math.pi)[:, None], at(angle + 0.02, DOWN), at(angle, UP))
        return [
            Waypoint(name="above", pose=at(begin, UP), gripper=1, pos_tol=0.01, timeout_s=3.0),
            Waypoint(name="down", pose=at(begin, DOWN), gripper=1, pos_tol=0.004, speed=0.2),
            Waypoint(name="draw", pose=draw, gripper=1, speed=0.15, track=True).hold(),
        ]
