"""KitchenTurnOnSinkFaucet-v1."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from manikin import Waypoint
from manikin.math import quat_from_yaw, quat_mul, quat_rotate
from manikin.tasks.kitchen.common import KitchenHandles, KitchenTask, across, moving
from manikin.toolkit import constant

__all__ = ["KitchenTurnOnSinkFaucet"]

ON = 0.4
"""[rad] a lever that is turned by more, and by less than pi, lets water run."""
_ARM = 0.1  # [m] from the lever's axis to where it is pushed
_FACING, _AWAY = across(0.7), 0.82  # how the tool points; [m] from the middle of the base to it


class KitchenTurnOnSinkFaucet(KitchenTask):
    """Push the lever of the tap back, so that water runs.

    Randomization: which of the built-in kitchens (by the episode's seed, see ``layouts``); where the robot stands
    before the lever, sideways by 0.15 m and forwards by 0.05 m; the arm's joints, a little noise.
    Success: the lever is turned by more than 0.4 rad and less than pi.

    After RoboCasa's TurnOnSinkFaucet, with its rule. The tap is parametric, its lever lies beside it; nothing is in the
    basin and on the counter.
    """

    id = "KitchenTurnOnSinkFaucet-v1"
    instruction = "turn the tap on"
    labels = moving("lever")
    kinds = ("sink",)

    def done(self, h: KitchenHandles) -> Tensor:
        q = self.joint(h)
        return (q > constant(ON)) & (q < constant(math.pi))

    def share(self, h: KitchenHandles) -> Tensor:
        return (self.joint(h) * (1.0 / ON)).clamp(0.0, 1.0)

    def expert(self, h: KitchenHandles) -> list[Waypoint]:
        front, handle = self.front(h), self._first[h.target.value.long()]
        lever = torch.tensor([[0.0, _ARM, 0.0]]).expand(h.n, 3)
        axis = handle - quat_rotate(front, lever)

        def at(angle: float, back: float = 0.0) -> Tensor:
            swung = quat_mul(front, quat_from_yaw(torch.full((h.n,), angle)))
            return self.tool(h, axis + quat_rotate(swung, lever), _FACING, back=back)

        pushes = [
            Waypoint(name=f"push {k}", pose=at(0.15 * k, 0.012), gripper=-1, pos_tol=0.02, rot_tol=0.2, speed=0.15,
                     timeout_s=1.0) for k in range(1, 6)
        ]  # fmt: skip
        return [
            self.stand(h, at(0.0), _AWAY),
            Waypoint(name="before", pose=at(0.0, 0.1), gripper=-1, pos_tol=0.015, timeout_s=5.0),
            Waypoint(name="touch", pose=at(0.0, 0.02), gripper=-1, pos_tol=0.01, speed=0.2),
            *pushes,
            Waypoint(name="end", pose=at(0.8, 0.012), gripper=-1).hold(),
        ]
