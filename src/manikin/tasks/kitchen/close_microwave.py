"""KitchenCloseMicrowave-v1."""

from __future__ import annotations

import math

from torch import Tensor

from manikin import Waypoint
from manikin.homes import Mechanism
from manikin.tasks.kitchen.common import KitchenHandles, moving
from manikin.tasks.kitchen.open_cabinet import KitchenOpenCabinet
from manikin.toolkit import constant

__all__ = ["KitchenCloseMicrowave"]

CLOSED = 0.005
"""Share of its range up to which the door counts as closed."""


class KitchenCloseMicrowave(KitchenOpenCabinet):
    """Close the door of the microwave.

    Randomization: which of the built-in kitchens (by the episode's seed, see ``layouts``); how far the door is open, 75
    to 85 degrees; where the robot stands before it, sideways by 0.15 m and forwards by 0.05 m; the arm's joints, a
    little noise.
    Success: the door is open by at most 0.5 % of its range.

    After RoboCasa's CloseMicrowave, with its rule; there the door begins at 90 to 100 % of a right angle.
    """

    id = "KitchenCloseMicrowave-v1"
    instruction = "close the door of the microwave"
    labels = moving("door")
    kinds = ("microwave",)
    opened = (math.radians(75) / 1.9, math.radians(85) / 1.9)
    backs = 0.3

    def joints(self, one: Mechanism) -> list[str]:
        return ["door"]

    def done(self, h: KitchenHandles) -> Tensor:
        return self.joint(h) <= constant(CLOSED) * self.limit(h)

    def share(self, h: KitchenHandles) -> Tensor:
        return 1.0 - (self.joint(h) * (1.0 / math.radians(85))).clamp(0.0, 1.0)

    def expert(self, h: KitchenHandles) -> list[Waypoint]:
        return self.swing(h, math.radians(80), -0.03)
