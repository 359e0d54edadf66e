"""LeggedStand-v1."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import Episode, SceneBuilder
from manikin.plan.balance import balance
from manikin.tasks.locomotion.legged import STEP, LeggedHandles, LeggedTask
from manikin.toolkit import per_step

__all__ = ["LeggedStand"]

EFFORT = 1.0  # [rad] of a command that costs as much as leaning by 3 cm


class LeggedStand(LeggedTask):
    """Stay on two legs for 20 s.

    Randomization: joints, normal about rest; heading.
    Success: at the end of the 20 s the base was never lower than ``low`` or higher than ``high``, and the robot has not
    fallen.

    Numbers: ManiSkill3 3.0.1 (UnitreeH1Stand, UnitreeG1Stand): heights, noise, 1000 steps, and the reward, which is 1
    in a step in which the robot stands. There every such step is a success. Its robots are held by servos of 1000
    N m/rad, or of 50 on G1, and their actions move the joints' targets at 20 Hz. Here an action is a pose of the legs
    about rest at 50 Hz, and servos are as soft as those that walking is learned with.
    """

    id = "LeggedStand-v1"
    instruction = "keep standing"
    robots = ("h1", "g1")
    robot_needs = (*LeggedTask.robot_needs, "2 feet")
    robot_config = {"h1": {"low": 0.8, "high": 1.2}, "g1": {"low": 0.5, "high": 1.0}}
    horizon_s = 20.0
    reward_terms = {"stand": "1 while it stands"}

    @dataclass(frozen=True)
    class Config(LeggedTask.Config):
        start_noise: float = 0.0  # [rad/s, m/s] of the base, to either side
        joints_std: float = 0.05  # [rad] of the joints at the start
        low: float = 0.5  # [m] the base is not lower
        high: float = 1.2  # [m] nor higher

    def scene(self, b: SceneBuilder) -> LeggedHandles:
        made = super().scene(b)
        legs = made.robot.groups["legs"]
        self._balance = balance(b, made.robot, control_hz=self.control_hz, effort=EFFORT, acts=legs)
        return made

    def posture(self, ep: Episode) -> Tensor:
        return ep.rng.normal("joints", 0.0, self.config.joints_std, self._rest.shape)

    @per_step
    def stands(self, h: LeggedHandles) -> Tensor:
        """(n,) bool."""
        height = self.clearance(h)
        return (height >= self.config.low) & (height <= self.config.high) & ~self.fallen(h)

    def advance(self, h: LeggedHandles) -> None:
        super().advance(h)
        h.fell.set(torch.maximum(h.fell.value, (~self.stands(h)).float()))

    def evaluate(self, h: LeggedHandles) -> dict[str, Tensor]:
        fail = ~self.stands(h) | (h.fell.value > 0)
        over = self.step_number(h) >= round(self.horizon_s * self.control_hz)
        return {"success": over & ~fail, "fail": fail}

    def reward(self, h: LeggedHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        return {"stand": (~ev["fail"]).float()}

    def expert(self, h: LeggedHandles) -> Tensor:
        """Feedback from the whole state, such that small pushes die out; see ``manikin.plan.balance``."""
        return (self._balance.commands() - self._rest[self._legs]) / STEP
