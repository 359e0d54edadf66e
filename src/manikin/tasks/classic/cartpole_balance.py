"""CartpoleBalance-v1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco
import torch
from torch import Tensor

from manikin import (
    Articulation,
    Episode,
    Event,
    Handles,
    Labels,
    Mode,
    Physics,
    Quantity,
    Robot,
    SceneBuilder,
    Shape,
    Task,
    Variable,
)
from manikin.arenas.ground import ground

__all__ = ["CartpoleBalance"]

HEIGHT = 1.0  # [m] of the rail
# force [10 N] per state: cart [m], pole [rad] and their velocities; the linear-quadratic regulator of the model at
# 100 Hz for a cost of x^2 + angle^2 + (velocities^2) / 10 + action^2
FEEDBACK = (0.93173, 6.39049, 1.04218, 1.65040)


@dataclass
class CartpoleHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    pole: Articulation
    steady_for: Variable  # [control steps]


class CartpoleBalance(Task):
    """Keep a pole upright on a cart that is pushed along a rail.

    Randomization: the cart's place, uniform; the pole's angle, uniform about upright; both velocities, normal.
    Success: for the last ``hold_steps`` (5 s) the cart was within ``centre`` of the middle and the cosine of the pole's
    angle above ``upright_cos``, which is dm_control's sparse reward.

    Numbers: dm_control's cart-pole, task balance, also its reward and starts; it has no success of its own. An episode
    is 10 s of 100 Hz and does not end early. dm_control integrates with RK4 and softens the ends of the rail; here the
    integrator is ``implicitfast`` and the ends are as hard as other joints'.
    """

    id = "CartpoleBalance-v1"
    horizon_s = 10.0
    instruction = "keep the pole upright and the cart in the middle"
    robots = ("cart",)
    robot_needs = ("rail",)
    control = "joint_torque:step=10,compensate=false"
    control_hz = 100.0
    physics = Physics(integrator="implicitfast", solref=(0.01, 1.0))
    terminate = False
    observations = {
        "pole": Quantity("1", "", "cosine and sine of the pole's angle; the sine is positive towards +x"),
        "pole_rate": Quantity("rad/s"),
    }
    reward_terms = {
        "balance": "upright x centred x calm x slow: (1 + cos angle) / 2, and dm_control's tolerances of the cart's "
        "place (margin 2 m), the action (1) and the pole's rate (5 rad/s), scaled to at least 1/2, 4/5 and 1/2"
    }
    labels = Labels(
        events=(
            Event("steady", "steady"),
            Event("strayed", "steady", "fall"),
            Event("fell", "fail"),
            Event("success", "success"),
        ),
        success=(
            Mode("success", "not strayed", "steady from when it first was"),
            Mode("recovered", "not fell", "it strayed, and was held steady before or after"),
            Mode("success_and_fall", "otherwise", "held steady, and fallen at some time"),
        ),
        failure=(
            Mode("fell", "fell", "the pole went below the rail"),
            Mode("strayed", "strayed", "it did not fall and was never steady for long"),
            Mode("no_success", "otherwise"),
        ),
        source="chosen for this task",
    )

    @dataclass(frozen=True)
    class Config:
        cart_start: float = 0.1  # [m] the cart starts this far from the middle at most
        angle_start: float = 0.034  # [rad] and the pole this far from upright
        velocity_start: float = 0.01  # [m/s, rad/s] standard deviation of both velocities
        centre: float = 0.25  # [m] steady: the cart this near to the middle ...
        upright_cos: float = 0.995  # [1] ... and the cosine of the pole's angle at least this
        hold_steps: int = 500  # [control steps] success: steady for so long

    def scene(self, b: SceneBuilder) -> CartpoleHandles:
        ground(b, height=0.0, base_camera=((0, -2.6, 1.6), (0, 0, 1.3)), human_camera=((0.9, -3.0, 1.9), (0, 0, 1.2)))
        for side in (-1, 1):
            place, along_x = (0, 0.07 * side, HEIGHT), (0.5**0.5, 0, 0.5**0.5, 0)
            rail = Shape(type="capsule", size=(0.02, 2.0), pos=place, quat=along_x)
            b.fixture(f"rail_{'left' if side > 0 else 'right'}", rail, contype=0, conaffinity=0)
        cart = b.robot(pos=(0, 0, HEIGHT))
        return CartpoleHandles(
            robot=cart,
            pole=b.articulation("pole", _pole(), on=cart),
            steady_for=b.variable("steady_for"),  # [control steps]
        )

    def start(self, h: CartpoleHandles, ep: Episode) -> None:
        c = self.config
        spot = ep.rng.uniform("cart", -c.cart_start, c.cart_start, (1,))
        angle = ep.rng.uniform("pole", -c.angle_start, c.angle_start, (1,))
        speed = ep.rng.normal("velocity", 0.0, c.velocity_start, (2,))
        h.robot.set_qpos(spot, qvel=speed[:, :1])
        h.pole.set_qpos(angle, speed[:, 1:])

    def _steady(self, h: CartpoleHandles) -> Tensor:
        upright = torch.cos(h.pole.qpos[:, 0]) >= self.config.upright_cos
        return upright & (h.robot.qpos[:, 0].abs() <= self.config.centre)

    def advance(self, h: CartpoleHandles) -> None:
        h.steady_for.set((h.steady_for.value + 1.0) * self._steady(h))

    def evaluate(self, h: CartpoleHandles) -> dict[str, Tensor]:
        return {
            "success": h.steady_for.value >= self.config.hold_steps,
            "fail": torch.cos(h.pole.qpos[:, 0]) < 0,
            "steady": self._steady(h),
        }

    def observe(self, h: CartpoleHandles) -> dict[str, dict[str, Tensor]]:
        angle = h.pole.qpos
        return {"policy": {"pole": torch.cat([torch.cos(angle), torch.sin(angle)], 1), "pole_rate": h.pole.qvel}}

    def reward(self, h: CartpoleHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        upright = (1.0 + torch.cos(h.pole.qpos[:, 0])) / 2
        centred = (1.0 + _bell(h.robot.qpos[:, 0], 2.0)) / 2
        calm = (5.0 - action[:, 0] ** 2) / 5
        slow = (1.0 + _bell(h.pole.qvel[:, 0], 5.0)) / 2
        return {"balance": upright * centred * calm * slow}

    def expert(self, h: CartpoleHandles) -> Tensor:
        state = torch.cat([h.robot.qpos, h.pole.qpos, h.robot.qvel, h.pole.qvel], 1)
        return state @ torch.tensor(FEEDBACK)[:, None]


def _bell(value: Tensor, margin: float) -> Tensor:
    """dm_control's tolerance: 1 at zero, 0.1 at the margin, a Gaussian between."""
    return torch.exp(math.log(0.1) * (value / margin) ** 2)


def _pole() -> mujoco.MjSpec:
    """A rod of 1 m and 0.1 kg on a hinge about y."""
    spec = mujoco.MjSpec()
    pole = spec.worldbody.add_body(name="rod")
    pole.add_joint(name="hinge", type=mujoco.mjtJoint.mjJNT_HINGE, axis=(0, 1, 0)).damping[0] = 2e-6
    pole.add_geom(
        type=mujoco.mjtGeom.mjGEOM_CAPSULE,
        size=(0.045, 0, 0),
        fromto=(0, 0, 0, 0, 0, 1),
        mass=0.1,
        contype=0,
        conaffinity=0,
        group=2,
        rgba=(0.85, 0.55, 0.1, 1),
    )
    return spec
