"""CartpoleSwingUp-v1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import Episode, Event, Labels, Mode
from manikin.tasks.classic.cartpole_balance import CartpoleBalance, CartpoleHandles

__all__ = ["CartpoleSwingUp"]

MASS, LENGTH, GRAVITY = 0.1, 0.5, 9.81  # of the pole [kg], to its middle [m], [m/s^2]
INERTIA = MASS * LENGTH**2 * 4 / 3  # [kg m^2] about the hinge, of a thin rod


class CartpoleSwingUp(CartpoleBalance):
    """Swing a pole up that hangs from a cart on a rail, and keep it upright.

    Randomization: the cart's place, the pole's angle about straight down, and both velocities, normal.
    Success: for the last ``hold_steps`` (2 s) the cart was within ``centre`` of the middle and the cosine of the pole's
    angle above ``upright_cos``, which is dm_control's sparse reward.

    Numbers: dm_control's cart-pole, task swingup, with CartpoleBalance's reward; the time to hold is chosen here. An
    episode is 10 s of 100 Hz and does not end early.
    """

    id = "CartpoleSwingUp-v1"
    instruction = "swing the pole up and keep it upright"
    labels = Labels(
        events=(Event("steady", "steady"), Event("left", "steady", "fall"), Event("success", "success")),
        success=(
            Mode("success", "not left", "steady from when it first was"),
            Mode("recovered", "otherwise", "it left the top, and was held steady before or after"),
        ),
        failure=(
            Mode("not_held", "steady", "it was up and near the middle, and never for long"),
            Mode("no_success", "otherwise"),
        ),
        source="chosen for this task",
    )

    @dataclass(frozen=True)
    class Config:
        cart_start: float = 0.01  # [m] standard deviation of the cart's place
        angle_start: float = 0.01  # [rad] of the pole's angle from straight down
        velocity_start: float = 0.01  # [m/s, rad/s] of both velocities
        centre: float = 0.25  # [m] steady: the cart this near to the middle ...
        upright_cos: float = 0.995  # [1] ... and the cosine of the pole's angle at least this
        hold_steps: int = 200  # [control steps] success: steady for so long

    def start(self, h: CartpoleHandles, ep: Episode) -> None:
        c = self.config
        spot = ep.rng.normal("cart", 0.0, c.cart_start, (1,))
        angle = math.pi + ep.rng.normal("pole", 0.0, c.angle_start, (1,))
        speed = ep.rng.normal("velocity", 0.0, c.velocity_start, (2,))
        h.robot.set_qpos(spot, qvel=speed[:, :1])
        h.pole.set_qpos(angle, speed[:, 1:])

    def evaluate(self, h: CartpoleHandles) -> dict[str, Tensor]:
        ev = super().evaluate(h)
        del ev["fail"]
        return ev

    def expert(self, h: CartpoleHandles) -> Tensor:
        """Pumps energy until the pole is near the top (Astrom and Furuta, 2000), then balances it."""
        angle = torch.remainder(h.pole.qpos + math.pi, 2 * math.pi) - math.pi
        rate, place, speed = h.pole.qvel, h.robot.qpos, h.robot.qvel
        energy = INERTIA * rate**2 / 2 + MASS * GRAVITY * LENGTH * (torch.cos(angle) - 1)  # [J] above that of the top
        pumped = (40.0 * energy * rate * torch.cos(angle)).clamp(-8.0, 8.0) - 3.0 * place - 1.5 * speed
        near = (angle.abs() < 0.5) & (rate.abs() < 3.0)
        return torch.where(near, self.balanced(place, angle, speed, rate), pumped / 10.0).clamp(-1.0, 1.0)
