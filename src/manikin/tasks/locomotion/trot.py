"""How a quadruped of three joints per leg trots: where its feet go, and joints that take them there, in closed form.

Diagonal legs stand and swing together. What a leg carries is added to what its servos are asked for, so that soft ones
do not sink. Everything follows from the time and the robot's state: there is no memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from manikin.errors import ConfigError
from manikin.math import atan2
from manikin.spec.robot import RobotSpec

__all__ = ["Gait", "Trot"]

_STARTS = (0.0, 0.5, 0.5, 0.0)  # [1] of a round, when legs begin to stand: front left, front right, back left, right


@dataclass(frozen=True)
class Gait:
    """How to trot.

    Attributes:
        height: [m] of the hips over the feet's middles.
        inward: [m] by which feet in front stand behind their hips, and those behind in front of theirs.
        aside: [m] by which feet stand outside their hips' axes.
        lift: [m] of a foot that swings.
        period_s: of a round.
        duty: [1] share of it in which a foot stands.
        level: [1] of the tilt that the feet make up for.
    """

    height: float
    inward: float
    aside: float
    lift: float
    period_s: float
    duty: float = 0.55
    level: float = 0.5


class Trot:
    """The legs of a quadruped, in the order of its joints: front left, front right, back left, back right."""

    def __init__(self, arm: RobotSpec, gait: Gait) -> None:
        links = {link.name: link for link in arm.links}
        hips, sides, sizes, knees = [], [], [], []
        for name in arm.feet:
            link = links[name]
            point = next(geom.pos for geom in link.geoms if geom.type == "sphere")
            while not link.joints:
                point = tuple(a + b for a, b in zip(point, link.pos, strict=True))
                assert link.parent is not None
                link = links[link.parent]
            thigh = links[str(link.parent)]
            hip = links[str(thigh.parent)]
            if len(hip.joints) + len(thigh.joints) + len(link.joints) != 3 or hip.parent != arm.links[0].name:
                raise ConfigError(f"{arm.name} has no legs of hip, thigh and shank")
            hips.append((hip.pos[0] + thigh.pos[0], hip.pos[1], hip.pos[2]))
            sides.append(thigh.pos[1] + link.pos[1] + point[1])
            sizes.append((-link.pos[2], math.hypot(point[0], point[2])))
            knees.append(math.atan2(-point[0], -point[2]))
        self.gait, self._rest = gait, torch.tensor(arm.keyframes["rest"])
        self._hips, self._sides = torch.tensor(hips), torch.tensor(sides)
        self._upper, self._lower = torch.tensor(sizes).unbind(1)
        self._knees = torch.tensor(knees)  # [rad] of the shank from foot to knee, where its joint is at 0
        self._bends = torch.sign(self._rest.reshape(4, 3)[:, 2] + self._knees)
        ahead, left = torch.sign(self._hips[:, 0]), torch.sign(self._hips[:, 1])
        self._feet = self._hips + torch.stack(
            [-gait.inward * ahead, gait.aside * left, torch.full((4,), -gait.height)], 1
        )
        self._weight = 9.81 * sum(link.mass for link in arm.links)
        self._kp = torch.tensor(arm.gains.kp)

    def joints(self, feet: Tensor) -> Tensor:
        """(n, 12) [rad] for feet (n, 4, 3) [m] in the base's frame; what is out of reach is approached."""
        x, y, z = (feet - self._hips).unbind(2)
        side, upper, lower = self._sides, self._upper, self._lower
        down = torch.sqrt((y * y + z * z - side * side).clamp_min(1e-6))
        roll = atan2(y, -z) - atan2(side.expand_as(down), down)
        far = (x * x + down * down).clamp_max((0.999 * (upper + lower)).square())
        cosine = ((far - upper * upper - lower * lower) / (2 * upper * lower)).clamp(-0.9999, 0.9999)
        sine = self._bends * torch.sqrt(1.0 - cosine * cosine)
        bend = atan2(sine, cosine)
        lean = atan2(-x, down) - atan2(lower * sine, upper + lower * cosine)
        return torch.stack([roll, lean, bend - self._knees], 2).flatten(1)

    def asked(self, time: Tensor, twist: Tensor, gravity: Tensor) -> Tensor:
        """(n, 12) [rad] to ask the servos for.

        Args:
            time: (n,) [s] since the start.
            twist: (n, 3) [m/s, m/s, rad/s] to move with, along x and y of the base and about z.
            gravity: (n, 3) its direction in the base's frame.
        """
        g = self.gait
        phase = torch.remainder(time[:, None] / g.period_s + torch.tensor(_STARTS), 1.0)
        stands = phase < g.duty
        swing = ((phase - g.duty) / (1.0 - g.duty)).clamp(0.0, 1.0)
        wave = 2.0 * math.pi * swing
        share = torch.where(stands, 0.5 - phase / g.duty, swing - torch.sin(wave) / (2.0 * math.pi) - 0.5)
        lift = g.lift * (1.0 - torch.cos(wave)) / 2.0
        base = self._feet
        speed = torch.stack(
            [twist[:, :1] - twist[:, 2:] * base[:, 1], twist[:, 1:2] + twist[:, 2:] * base[:, 0]], 2
        )  # (n, 4, 2) [m/s] of the ground under the feet, backwards
        flat = base[:, :2] + share[..., None] * speed * (g.period_s * g.duty)
        level = g.level * (base[:, 0] * gravity[:, :1] + base[:, 1] * gravity[:, 1:2])
        feet = torch.cat([flat, (base[:, 2] + lift - level)[..., None]], 2)
        return self.joints(feet) + self.carried(feet, stands)

    def carried(self, feet: Tensor, stands: Tensor) -> Tensor:
        """(n, 12) [rad] by which soft servos are to be asked for more, so that feet (n, 4, 3) carry the robot where
        they stand (n, 4)."""
        q = self.joints(feet).reshape(-1, 4, 3)
        away = feet - self._hips
        knee = -self._upper * torch.sin(q[..., 1])  # [m] ahead of the hip
        stands = stands.float()
        force = self._weight * stands / stands.sum(1, keepdim=True).clamp_min(1.0)  # [N] upward
        torque = torch.stack([away[..., 1] * force, -away[..., 0] * force, (knee - away[..., 0]) * force], 2)
        return -torque.flatten(1) / self._kp
