"""KitchenTurnOnStove-v1."""

from __future__ import annotations

import math

from torch import Tensor

from manikin import Waypoint
from manikin.homes import Mechanism
from manikin.tasks.kitchen.common import KitchenHandles, KitchenTask, across, moving
from manikin.toolkit import constant

__all__ = ["KitchenTurnOnStove"]

ON = 0.35
"""[rad] a knob that is turned by more, and by less than a whole turn minus this, lets gas through."""
_FACING, _AWAY = across(1.0), 0.85  # how the tool points; [m] from the middle of the base to it


class KitchenTurnOnStove(KitchenTask):
    """Turn a knob of the stove so that its burner is on.

    Randomization: which of the built-in kitchens (by the episode's seed, see ``layouts``) and which knob; where the
    robot stands before it, sideways by 0.15 m and forwards by 0.05 m; the arm's joints, a little noise.
    Success: the knob is turned by 0.35 rad to 2 pi - 0.35 rad.

    After RoboCasa's TurnOnStove, with its rule. The stove is parametric; no cookware stands on it.
    """

    id = "KitchenTurnOnStove-v1"
    instruction = "turn the marked knob of the stove on"
    labels = moving("knob")
    kinds = ("stove",)

    def joints(self, one: Mechanism) -> list[str]:
        return [joint for joint in one.joints if joint.startswith("knob_")]

    def done(self, h: KitchenHandles) -> Tensor:
        q = self.joint(h)
        return (q >= constant(ON)) & (q <= constant(2 * math.pi - ON))

    def share(self, h: KitchenHandles) -> Tensor:
        return (self.joint(h) * (1.0 / ON)).clamp_max(1.0)

    def expert(self, h: KitchenHandles) -> list[Waypoint]:
        at = self.handle(h)
        grip = self.tool(h, at, _FACING)
        turns = [
            Waypoint(name=f"turn {k}", pose=self.tool(h, at, _FACING, roll=0.2 * k), gripper=-1, pos_tol=0.02,
                     rot_tol=0.1, turn=1.0, timeout_s=1.0) for k in range(1, 5)
        ]  # fmt: skip
        return [
            self.stand(h, grip, _AWAY),
            Waypoint(name="before", pose=self.tool(h, at, _FACING, back=0.12), gripper=1, pos_tol=0.01, timeout_s=5.0),
            Waypoint(name="around", pose=grip, gripper=1, pos_tol=0.005, speed=0.2),
            Waypoint(name="close", pose=grip, gripper=-1, pos_tol=0.02),
            *turns,
            Waypoint(name="end", pose=self.tool(h, at, _FACING, roll=1.0), gripper=-1).hold(),
        ]
