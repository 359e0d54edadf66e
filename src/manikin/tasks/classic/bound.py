"""How the ant bounds: the legs in front swing together, then those behind, in closed form.

Each joint has a wave over the round, and its motor is a spring and a damper about that. Which way the ant looks, rolls
and drifts changes the waves of its left and right legs. The numbers were found by a search for the fastest gait that
stays on its course (CMA-ES, some thousand gaits of 5 s, on other starts than those that are counted).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from manikin.math import atan2

__all__ = ["bound"]


class Wave(NamedTuple):
    """``middle + first sin(p + first_at) + second sin(2 p + second_at)`` [rad], p the phase."""

    middle: float
    first: float
    first_at: float
    second: float
    second_at: float

    def at(self, phase: Tensor, size: Tensor) -> Tensor:
        """(n,) [rad] at phases (n,) [rad], with waves times ``size`` (n,)."""
        first = self.first * torch.sin(phase + self.first_at)
        return self.middle + size * (first + self.second * torch.sin(2.0 * phase + self.second_at))


HZ = 5.4  # rounds in a second
STIFF, DAMPED = 12.5, 0.5  # [N m/rad, N m s/rad] of a joint about its wave
HIPS = {  # in front and behind; positive is backward
    True: Wave(-0.5, 0.08, 1.49, -0.23, 1.72),
    False: Wave(-0.44, 1.05, 0.0, 0.0, 0.0),
}
ANKLES = {  # positive is down
    True: Wave(1.17, -0.17, -0.91, -0.23, -2.02),
    False: Wave(0.77, 0.16, 0.15, 0.04, 3.6),
}
HIP_MOST, ANKLE = 0.75, (0.45, 1.8)  # [rad] what is asked for is within that
TURNS = -0.026  # [s] hips in front turn by that times the turn rate, those behind the other way
DRIFTS = 0.053  # [rad s/m] all hips turn by that times the drift
STEERS, ROLLS = 0.72, 0.75  # [1] hips swing further on the side that the ant has turned to; ankles make up for a roll
LEGS = ((True, 1.0), (False, 1.0), (False, -1.0), (True, -1.0))  # of each: whether in front, 1 left and -1 right


def bound(
    time: Tensor, joints: Tensor, rates: Tensor, up: Tensor, ahead: Tensor, turns: Tensor, drift: Tensor
) -> Tensor:
    """(n, 8) [N m] with which the ant bounds along x.

    Args:
        time: (n,) [s] since it stood; its waves grow in the first second.
        joints: (n, 8) [rad] hip and ankle of each leg.
        rates: (n, 8) [rad/s] their speeds.
        up: (n, 3) the world's z axis in the torso's frame.
        ahead: (n, 3) the world's x axis there.
        turns: (n,) [rad/s] turn rate about the torso's z axis.
        drift: (n,) [m/s] of the centre of mass along y.
    """
    phase, grown = 2.0 * math.pi * HZ * time, time.clamp_max(1.0)
    heading = -atan2(ahead[:, 1], ahead[:, 0])
    wanted = []
    for front, side in LEGS:
        way = 1.0 if front else -1.0
        hip = side * HIPS[front].at(phase, grown * (1.0 + (side * STEERS) * heading))
        hip = hip + (way * TURNS) * turns + DRIFTS * drift
        ankle = ANKLES[front].at(phase, grown) + (side * ROLLS) * up[:, 1]
        wanted += [hip.clamp(-HIP_MOST, HIP_MOST), way * ankle.clamp(*ANKLE)]
    return STIFF * (torch.stack(wanted, 1) - joints) - DAMPED * rates
