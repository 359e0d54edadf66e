"""What the drawing tasks share: a canvas, a stick that draws on it, an outline to follow.

Sizes are those of ManiSkill3 3.0.1. There a step takes one of the dots even while the stick is up; here only drawing
does.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from manikin import CameraSpec, Dots, Episode, Handles, Quantity, Robot, SceneBuilder, Shape, Task, Variable, Waypoint
from manikin.arenas.table import table
from manikin.errors import ConfigError
from manikin.math import norm, pose, yaw_rotate
from manikin.toolkit import ONE, ZERO, above, bonus, closeness, constant, facing_down, noisy_rest, per_step

__all__ = ["DOWN", "HALF", "MIDDLE", "TOP", "UP", "Drawing", "DrawingHandles", "Outlined", "OutlinedHandles"]

TOP = 0.02  # [m] height of the canvas
HALF, MIDDLE = (0.4, 0.6), (-0.1, 0.0)  # [m] of the canvas
_CAMERA = CameraSpec(name="base_camera", pos=(0.3, 0, 0.8), target=(0, 0, 0.1), fovy=1.2, width=320, height=240)
UP, DOWN = 0.06, 0.024  # [m] height at which the expert's stick travels, and draws
PACE = 0.15  # [m/s] of the expert's stick
_TRACED = 0.01  # [m] the expert has been where a dot is this near
_APART = 0.03  # [m] the expert lifts the stick for a longer way
log = logging.getLogger("manikin")


@dataclass
class DrawingHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    ink: Dots
    used: Variable  # dots drawn so far


class Drawing(Task):
    """A canvas on the table, and a stick that leaves a dot in every control step in which its tip is near it."""

    robots = ("panda+stick",)
    robot_needs = ("stick",)  # with fingers nothing is drawn: their tips are lower than the TCP

    @dataclass(frozen=True)
    class Config:
        dots: int = 300  # how many there are to draw with
        dot_radius: float = 0.01  # [m]
        reach: float = 0.008  # [m] the stick draws when its tip is lower than this above the canvas

    def scene(self, b: SceneBuilder) -> DrawingHandles:
        c = self.config
        table(b)
        b.camera(_CAMERA, replace=True)
        canvas = Shape(type="box", size=(*HALF, TOP / 2), pos=(*MIDDLE, TOP / 2), rgba=(0.95, 0.95, 0.93, 1))
        b.fixture("canvas", canvas)
        self._low = torch.tensor([m - half for m, half in zip(MIDDLE, HALF, strict=True)])
        self._high = torch.tensor([m + half for m, half in zip(MIDDLE, HALF, strict=True)])
        return DrawingHandles(
            robot=b.robot(),
            ink=b.dots("ink", count=c.dots, radius=c.dot_radius, height=0.002, rgba=(0.1, 0.15, 0.6, 1)),
            used=b.variable("used"),
        )

    def start(self, h: Any, ep: Episode) -> None:
        noisy_rest(h.robot, ep)

    @per_step
    def is_down(self, h: Any) -> Tensor:
        """(n,) bool: the tip is low enough to draw, over the canvas."""
        tip = h.robot.tcp_pos
        inside = ((tip[:, :2] >= self._low) & (tip[:, :2] <= self._high)).all(1)
        return inside & (tip[:, 2] < constant(TOP + self.config.reach))

    def draw(self, h: Any) -> tuple[Tensor, Tensor]:
        """Leave a dot; returns where it would be (n, 3) [m] and in which rows it is (n,)."""
        c = self.config
        place = torch.cat([h.robot.tcp_pos[:, :2], torch.full((h.n, 1), TOP)], 1)
        drawn = self.is_down(h) & (h.used.value < constant(c.dots))
        h.ink.put(h.used.value.clamp_max(c.dots - 1), place, drawn)
        h.used.set(h.used.value + drawn)
        return place, drawn

    def advance(self, h: Any) -> None:
        self.draw(h)


@dataclass
class OutlinedHandles(DrawingHandles):
    """What the scene consists of, and ``h`` in the methods below."""

    outline: Dots
    nearest: Variable  # (points,) [m] from each point of the outline to the nearest dot
    strayed: Variable  # 1 once a dot is too far from all of them


class Outlined(Drawing):
    """Draw along an outline: every point of it within ``threshold`` of a dot, and every dot of a point."""

    reward_max = 3.0
    sized_by: ClassVar[str] = "size"  # the option that makes the drawing larger
    observations: ClassVar[dict[str, Quantity]] = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "outline_pos": Quantity("m", "world", "of every point to draw through"),
        "outline_drawn": Quantity("0 or 1", note="a dot is within the threshold"),
        "has_strayed": Quantity("0 or 1", note="a dot is too far from the outline"),
    }
    reward_terms: ClassVar[dict[str, str]] = {
        "reach": "1 - tanh(5 d), d from the tip to the nearest point of the outline not yet drawn; 1 when none is left",
        "drawn": "share of the outline that is drawn",
        "clean": "1 while no dot is too far from the outline",
        "success": "what is missing to 3, in success",
    }

    @dataclass(frozen=True)
    class Config(Drawing.Config):
        threshold: float = 0.025  # [m]
        low: float = -0.1  # [m] the drawing's middle is uniform between these, in x and y
        high: float = -0.08  # [m]

    def strokes(self) -> list[np.ndarray]:
        """Points (k, 2) of the lines to draw, in order, in the drawing's own frame [m]."""
        raise NotImplementedError

    def scene(self, b: SceneBuilder) -> OutlinedHandles:
        strokes = self.strokes()
        points = np.concatenate(strokes)
        self._check_room(float(np.linalg.norm(points, axis=1).max()))
        self._check_time(sum(float(np.linalg.norm(np.diff(stroke, axis=0), axis=1).sum()) for stroke in strokes))
        self._points = torch.tensor(points, dtype=torch.float32)
        ends = torch.tensor([len(stroke) for stroke in strokes]).cumsum(0) - 1
        count = len(self._points)
        last = ends[torch.searchsorted(ends, torch.arange(count))]
        self._next = torch.minimum(torch.arange(count) + 1, last)  # the point after each, in its stroke
        return OutlinedHandles(
            outline=b.dots("outline", count=count, radius=0.004, height=0.002, rgba=(0.95, 0.45, 0.4, 1)),
            nearest=b.variable("nearest", (count,), initial=1.0),
            strayed=b.variable("strayed"),
            **super().scene(b),
        )

    def _check_room(self, far: float) -> None:
        """Raise :class:`ConfigError` where a turn of the drawing leaves the canvas; ``far`` [m] it reaches."""
        c, size = self.config, getattr(self.config, self.sized_by)
        room = min(
            half - abs(end - middle) for half, middle in zip(HALF, MIDDLE, strict=True) for end in (c.low, c.high)
        )
        if far > room:
            room = max(room, 0.0)
            raise ConfigError(
                f"option {self.sized_by!r} of {self.id} is {size} m, with which the drawing reaches {far:.2f} m from "
                f"its middle, and the canvas, {2 * HALF[0]:g} x {2 * HALF[1]:g} m, has room for {room:.2f} m there. "
                f"A {self.sized_by} of {room / far * size:.2f} m fits"
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

    def place(self, h: OutlinedHandles, middle: Tensor, yaw: Tensor) -> None:
        """Lay the outline on the canvas, its origin at ``middle`` (n, 2) [m], turned by ``yaw`` (n,) [rad]."""
        flat = yaw_rotate(self._points, yaw[:, None]) + middle[:, None]
        h.outline.set_places(torch.cat([flat, torch.full((h.n, len(self._points), 1), TOP)], 2))

    def advance(self, h: OutlinedHandles) -> None:
        place, drawn = self.draw(h)
        away = norm(h.outline.pos - place[:, None])  # (n, points)
        h.nearest.set(torch.where(drawn[:, None], torch.minimum(h.nearest.value, away), h.nearest.value))
        strays = drawn & (away.amin(1) > constant(self.config.threshold))
        h.strayed.set(torch.where(strays, ONE, h.strayed.value))

    def _is_drawn(self, h: OutlinedHandles) -> Tensor:
        """(n, points) bool."""
        return h.nearest.value <= constant(self.config.threshold)

    def evaluate(self, h: OutlinedHandles) -> dict[str, Tensor]:
        is_complete, has_strayed = self._is_drawn(h).all(1), h.strayed.value > ZERO
        return {
            "success": is_complete & ~has_strayed,
            "is_complete": is_complete,
            "has_strayed": has_strayed,
            "is_down": self.is_down(h),
        }

    def observe(self, h: OutlinedHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose},
            "privileged": {
                "outline_pos": h.outline.pos,
                "outline_drawn": self._is_drawn(h).float(),
                "has_strayed": h.strayed.value,
            },
        }

    def reward(self, h: OutlinedHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        drawn = self._is_drawn(h)
        away = torch.where(drawn, constant(10.0), norm(h.outline.pos - h.robot.tcp_pos[:, None])).amin(1)
        reach = torch.where(ev["is_complete"], ONE, closeness(away, 5.0))
        terms = {"reach": reach, "drawn": drawn.float().mean(1), "clean": ONE - h.strayed.value}
        return bonus(terms, ev["success"], self.reward_max)

    def expert(self, h: OutlinedHandles) -> list[Waypoint]:
        down, tip, row = facing_down(h.robot), h.robot.tcp_pos, torch.arange(h.n)
        left = h.nearest.value > constant(_TRACED)
        first = left.to(torch.uint8).argmax(1)  # in the order of the strokes
        near = norm(h.outline.pos[row, first, :2] - tip[:, :2]) < constant(_APART)
        goal = h.outline.pos[row, torch.where(near, self._next[first], first)]
        lifted = (~near | ~left.any(1))[:, None]
        goal = torch.where(~left.any(1)[:, None], tip, goal)
        high, low = above(goal, 0.0), above(goal, 0.0)
        high[:, 2], low[:, 2] = UP, DOWN
        start = above(h.outline.pos[:, 0], UP - TOP)
        return [
            Waypoint(name="above", pose=pose(start, down), gripper=1, pos_tol=0.01, timeout_s=3.0),
            Waypoint(name="draw", pose=pose(torch.where(lifted, high, low), down), gripper=1, speed=PACE,
                     track=True).hold(),
        ]  # fmt: skip
