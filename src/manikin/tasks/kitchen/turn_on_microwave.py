"""KitchenTurnOnMicrowave-v1."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import Episode, Quantity, SceneBuilder, Variable, Waypoint
from manikin.homes import Mechanism
from manikin.math import norm
from manikin.tasks.kitchen.common import KitchenHandles, KitchenTask, across, moving
from manikin.toolkit import constant

__all__ = ["KitchenTurnOnMicrowave"]

PRESSED = 0.003
"""[m] a button that is pressed in by more starts the microwave."""
NEAR = 0.05
"""[m] the tool is nearer than this to the button while it is pressed."""
FAR = 0.15
"""[m] the tool is further than this from the button at the end."""
_FACING, _AWAY = across(0.0), 0.72  # how the tool points; [m] from the middle of the base to it


@dataclass
class KitchenTurnOnMicrowaveHandles(KitchenHandles):
    """What the scene consists of, and ``h`` in the methods below."""

    on: Variable  # 1 while the microwave runs


class KitchenTurnOnMicrowave(KitchenTask):
    """Press the start button of the microwave, and take the hand away.

    Randomization: which of the built-in kitchens (by the episode's seed, see ``layouts``); where the robot stands
    before the button, sideways by 0.15 m and forwards by 0.05 m; the arm's joints, a little noise.
    Success: the button has been pressed in by 3 mm with the tool within 5 cm of it, and then the tool is more than
    0.15 m away from it.

    After RoboCasa's TurnOnMicrowave. There a button does not move, and a touch of the gripper is enough; the distance
    is its. Nothing is in the microwave, whose door stays shut.
    """

    id = "KitchenTurnOnMicrowave-v1"
    horizon_s = 10.0
    instruction = "press the green button of the microwave"
    labels = moving("button")
    kinds = ("microwave",)
    keyframe = "forward"
    observations = {**KitchenTask.observations, "is_on": Quantity("1", note="whether the microwave runs")}
    reward_terms = {
        "reach": "1 - tanh(5 d), d from TCP to button; 1 once it is on",
        "move": "1.5 once it is on, and 1.5 min(d / 0.15, 1) then",
        "success": "what is missing to 5, in success",
    }

    def joints(self, one: Mechanism) -> list[str]:
        return ["start_button"]

    def scene(self, b: SceneBuilder) -> KitchenTurnOnMicrowaveHandles:
        found = super().scene(b)
        return KitchenTurnOnMicrowaveHandles(**vars(found), on=b.variable("on"))

    def start(self, h: KitchenTurnOnMicrowaveHandles, ep: Episode) -> None:
        super().start(h, ep)
        h.on.set(torch.zeros(h.n))

    def advance(self, h: KitchenTurnOnMicrowaveHandles) -> None:
        pressed = (self.joint(h) > constant(PRESSED)) & (self.far(h) < constant(NEAR))
        h.on.set(torch.maximum(h.on.value, pressed.float()))

    def far(self, h: KitchenHandles) -> Tensor:
        """(n,) [m] from the tool to the button."""
        return norm(self.handle(h) - h.robot.tcp_pos)

    def done(self, h: KitchenTurnOnMicrowaveHandles) -> Tensor:
        return (h.on.value > 0.5) & (self.far(h) > constant(FAR))

    def share(self, h: KitchenTurnOnMicrowaveHandles) -> Tensor:
        return h.on.value * (0.5 + 0.5 * (self.far(h) * (1.0 / FAR)).clamp_max(1.0))

    def observe(self, h: KitchenTurnOnMicrowaveHandles) -> dict[str, dict[str, Tensor]]:
        seen = super().observe(h)
        return {**seen, "policy": {**seen["policy"], "is_on": h.on.value[:, None]}}

    def reward(self, h: KitchenTurnOnMicrowaveHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        terms = super().reward(h, ev, action)
        return {**terms, "reach": torch.where(h.on.value > 0.5, torch.ones_like(terms["reach"]), terms["reach"])}

    def expert(self, h: KitchenHandles) -> list[Waypoint]:
        at = self._first[h.target.value.long()]
        first = self.tool(h, at, _FACING, back=0.1)
        away = self.tool(h, at, _FACING, back=0.25)
        return [
            self.stand(h, first, _AWAY),
            Waypoint(name="before", pose=first, gripper=-1, pos_tol=0.01, timeout_s=5.0),
            Waypoint(name="press", pose=self.tool(h, at, _FACING, back=-0.004), gripper=-1, pos_tol=0.003, speed=0.15),
            Waypoint(name="away", pose=away, gripper=-1, pos_tol=0.02),
            Waypoint(name="end", pose=away, gripper=-1).hold(),
        ]
