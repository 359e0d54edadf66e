"""Excavate-v1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from manikin import Episode, Handles, Marker, Part, Quantity, Robot, SceneBuilder, Shape, Task, Variable, Waypoint
from manikin.arenas.table import table
from manikin.math import norm
from manikin.props.soft.grains import Grains, grain_radius, grains, tilt_forward
from manikin.props.soft.ladle import WALL, ladle, raise_ladle, tipped, tool_of
from manikin.toolkit import ONE, above, bonus, closeness, constant, per_step

__all__ = ["Excavate"]

_BELOW = 0.05  # [m] of the box's floor below the table
_THICK = 0.006  # [m] of the box's walls
_DIG = 1.3  # [rad] how far the ladle is tipped while it goes through the grains


@dataclass
class ExcavateHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    ladle: Part
    box: Part
    grains: Grains
    target: Variable  # how many grains to lift
    marker: Marker


def _box(half: tuple[float, float], height: float) -> list[Shape]:
    """An open box on the table, of half sizes inside [m]."""
    x, y = half
    shapes = [Shape(type="box", size=(x + _THICK, y + _THICK, _BELOW / 2), pos=(0, 0, -_BELOW / 2 + 0.002))]
    for sign in (-1, 1):
        shapes += [
            Shape(type="box", size=(_THICK / 2, y + _THICK, height / 2), pos=(sign * (x + _THICK / 2), 0, height / 2)),
            Shape(type="box", size=(x + _THICK, _THICK / 2, height / 2), pos=(0, sign * (y + _THICK / 2), height / 2)),
        ]
    return shapes


class Excavate(Task):
    """Scoop a number of grains out of a box with a ladle, which is fixed to the arm, and hold them up.

    Randomization: how many grains are asked for; the box's place, uniform in a rectangle; how the grains lie; the arm's
    joints, a little noise about where it holds the ladle upright.
    Success: as many grains as asked for, no more than ``fewer`` fewer and ``more`` more, are higher than ``up``; fewer
    than ``spilt`` of all lie outside the box; nearly all velocities of grains along an axis of the world (a share of
    ``calm``) are below ``calm_speed``.

    Model: as in Pour: ``count`` smooth balls of three degrees of freedom each, 100 physics steps per second. The
    original's material points have friction and heap; these heap at about 6 degrees, so a ladle holds no more than it
    is deep. ManiSkill2 allows 100 particles too few, 150 too many and 20 spilt, of some thousands; its box is 0.24 m
    wide.
    """

    id = "Excavate-v1"
    horizon_s = 10.0
    instruction = "scoop the right amount of grains out of the box and hold it up"
    robots = ("panda+stick",)
    robot_needs = ("stick",)
    reward_max = 6.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "target": Quantity("1", "", "how many grains to lift"),
        "box_pos": Quantity("m", "world", "the middle of its bottom"),
        "ladle_pose": Quantity("m, quaternion wxyz", "world", "z along its axis, origin at its bottom"),
        "counts": Quantity("1", "", "numbers of grains: lifted, spilt"),
    }
    reward_terms = {
        "reach": "1 - tanh(5 d), d from the ladle to the middle of the box; 1 once a grain is lifted",
        "lift": "3 (1 - |k - target| / target), k the number of lifted grains, at least 0",
        "clean": "1 less the share of all grains that is spilt",
        "success": "what is missing to 6, in success",
    }

    @dataclass(frozen=True)
    class Config:
        count: int = 200  # grains, 1 to 1000
        bed_radius: float = 0.008  # [m] of a grain where there are 200; others fill as much
        ladle_radius: float = 0.035  # [m] inside
        ladle_height: float = 0.055  # [m]
        box_half: tuple[float, float] = (0.11, 0.055)  # [m] inside, along x and y
        box_height: float = 0.06  # [m]
        box_low: tuple[float, float] = (-0.13, -0.15)  # [m] corner of the rectangle
        box_high: tuple[float, float] = (-0.07, 0.15)  # [m] the other one
        least: float = 0.05  # share of all grains that is asked for, from this ...
        most: float = 0.1  # ... to this
        fewer: float = 0.02  # share of all grains that may be missing to the target
        more: float = 0.03  # share of all grains that may be too many
        spilt: float = 0.03  # share of all grains, outside the box, less than
        up: float = 0.12  # [m] a grain above this is lifted
        calm: float = 0.99  # share of the grains' velocity components that are small, more than
        calm_speed: float = 0.05  # [m/s]

    def scene(self, b: SceneBuilder) -> ExcavateHandles:
        c = self.config
        table(b, human_camera=((0.45, 0.7, 0.5), (-0.1, 0.0, 0.08)))
        self._radius = grain_radius(c.count, c.bed_radius)
        robot = b.robot()
        scoop, self._in_tool = ladle(b, robot, radius=c.ladle_radius, height=c.ladle_height)
        step = 2.1 * self._radius
        across = [max(1, int(2 * (half - 1.1 * self._radius) / step) + 1) for half in c.box_half]
        layer = [
            ((i - (across[0] - 1) / 2) * step, (j - (across[1] - 1) / 2) * step)
            for i in range(across[0])
            for j in range(across[1])
        ]
        high = 1.1 * self._radius + 0.002
        self._bed = torch.tensor([(*layer[k % len(layer)], high + step * (k // len(layer))) for k in range(c.count)])
        return ExcavateHandles(
            robot=robot,
            ladle=scoop,
            box=b.part("box", _box(c.box_half, c.box_height), kind="kinematic", rgba=(0.75, 0.7, 0.6, 1)),
            grains=grains(b, "grains", count=c.count, radius=self._radius),
            target=b.variable("target"),
            marker=b.marker("height", shape="box", size=(*c.box_half, 0.0005), rgba=(0.1, 0.7, 0.2, 0.2)),
        )

    def start(self, h: ExcavateHandles, ep: Episode) -> None:
        c, rng = self.config, ep.rng
        raise_ladle(h.robot, rng)
        spot = rng.uniform("box/xy", torch.tensor(c.box_low), torch.tensor(c.box_high), (2,))
        at = torch.cat([spot, torch.zeros(h.n, 1)], 1)
        h.box.set_pose(at)
        h.marker.set_pose(above(at, c.up))
        h.grains.set_pos(at[:, None] + self._bed + h.grains.shake(rng))
        h.target.set(torch.round(c.count * rng.uniform("target", c.least, c.most)))

    @per_step
    def counts(self, h: ExcavateHandles) -> Tensor:
        """(n, 2) numbers of grains: higher than ``up``, and lying outside the box."""
        c, pos = self.config, h.grains.pos
        up = pos[:, :, 2] > constant(c.up)
        away = (pos[:, :, :2] - h.box.pos[:, None, :2]).abs()
        out = (away > torch.tensor(c.box_half) + _THICK).any(2) & (pos[:, :, 2] < constant(2.0 * self._radius))
        return torch.stack([up, out], 1).float().sum(2)

    def evaluate(self, h: ExcavateHandles) -> dict[str, Tensor]:
        c = self.config
        up, spilt = self.counts(h).unbind(1)
        away = up - h.target.value
        right = (away >= constant(-c.fewer * c.count)) & (away <= constant(c.more * c.count))
        slow = h.grains.calm(c.calm_speed)
        clean = spilt < constant(c.spilt * c.count)
        return {"success": right & clean & (slow > constant(c.calm)), "is_right": right}

    def observe(self, h: ExcavateHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose, "target": h.target.value},
            "privileged": {"box_pos": h.box.pos, "ladle_pose": h.ladle.pose, "counts": self.counts(h)},
        }

    def reward(self, h: ExcavateHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        up, spilt = self.counts(h).unbind(1)
        near = closeness(norm(h.ladle.pos - h.box.pos), 5.0)
        target = h.target.value.clamp_min(1.0)
        terms = {
            "reach": torch.where(up > 0, ONE, near),
            "lift": constant(3.0) * (1.0 - (up - target).abs() / target).clamp_min(0.0),
            "clean": 1.0 - spilt / constant(float(self.config.count)),
        }
        return bonus(terms, ev["success"], self.reward_max)

    def expert(self, h: ExcavateHandles) -> list[Waypoint]:
        c = self.config
        tilt = tilt_forward(h.ladle.quat)
        flat, dig = torch.zeros_like(tilt), torch.full_like(tilt, _DIG)
        near, far = -c.box_half[0] + 0.075, c.box_half[0] - 0.012  # [m] of the lip, from the middle of the box
        floor, high = 0.01, c.up + 0.05
        extra = self.counts(h)[:, 0] - h.target.value - 0.005 * c.count
        shed = torch.where(extra > 0, (tilt + 0.08).clamp(0.3, 1.5), flat)  # too many: some fall back into the box
        return [
            self._at(h, "above", near, c.box_height + 0.1, dig, pos_tol=0.02),
            self._at(h, "into", near, floor, dig, pos_tol=0.02, speed=0.2, timeout_s=1.0),
            self._at(h, "through", far, floor, dig, pos_tol=0.02, speed=0.12, timeout_s=2.0),
            self._at(
                h,
                "turn",
                far - 0.01,
                floor + 0.03,
                0.5 * dig,
                pos_tol=0.03,
                rot_tol=0.2,
                speed=0.15,
                turn=1.0,
                timeout_s=1.2,
            ),
            self._at(h, "lift", far - 0.05, high + 0.06, 0.5 * dig, pos_tol=0.02, speed=0.15, turn=0.8),
            self._at(h, "shed", far - 0.05, high + 0.06, shed, speed=0.15, turn=0.6, track=True).hold(),
        ]

    def _at(self, h: ExcavateHandles, name: str, along: float, height: float, tilt: Tensor, **how: Any) -> Waypoint:
        """The ladle tipped by ``tilt`` (n,) [rad], its lip ``along`` x from the middle of the box and so high [m]."""
        lip = above(h.box.pos, height)
        lip[:, 0] += along
        c = self.config
        at = tipped(lip, tilt, radius=c.ladle_radius + WALL, height=c.ladle_height)
        options: dict[str, Any] = {"pos_tol": 0.01, "rot_tol": 0.1, "speed": 0.3, "turn": 2.0, "timeout_s": 2.5, **how}
        return Waypoint(name=name, pose=tool_of(at, self._in_tool), gripper=1, **options)
