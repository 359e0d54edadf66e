"""RotateInHand-v1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import (
    Episode,
    Event,
    Handles,
    Labels,
    Mode,
    Normal,
    Part,
    Quantity,
    Robot,
    SceneBuilder,
    Task,
    Variable,
    VariantPart,
)
from manikin.arenas.table import table
from manikin.errors import ConfigError, UnknownNameError
from manikin.math import atan2, dot, norm, quat_rotate
from manikin.props.ycb import NAMES, ycb
from manikin.toolkit import constant, per_step

__all__ = ["RotateInHand"]

H = 0.5**0.5
HEIGHT = 0.25  # [m] of the hand, where its fingers begin
LEVELS = range(4)
TIPS = ("ff", "mf", "rf", "th")
MOST = math.pi / 20  # [rad] that count in one step


@dataclass
class RotateInHandHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    thing: Part
    axis: Variable  # (3,) unit vector in the world
    mark: Variable  # (3,) unit vector in the thing's frame, across the axis at the start
    before: Variable  # (3,) where the mark pointed one step ago, across the axis
    step: Variable  # [rad] turned about the axis in this step
    turned: Variable  # [rad] in this episode


class RotateInHand(Task):
    """Turn what lies in the hand about an axis, two whole turns.

    ``level`` says how hard it is: 0 has a cube of 8 cm; 1 one whose size varies; 2 objects of the YCB set, another one
    in every episode; 3 also another axis, x, y or z. Below 3 it is the vertical, anticlockwise seen from above.

    Randomization: where the thing is above the palm, normal; and what the level draws.
    Success: the thing has turned about the axis by more than ``turns`` whole turns, in its positive direction. At most
    9 degrees count in one step.
    Failure: its middle is 5 cm below the hand.

    Numbers: ManiSkill3 3.0.1, with the numbers of its RotateSingleObjectInHand. That adds the turn of each step without
    its sign, so a thing that is turned to and fro succeeds; ``published_angle`` does so, too. It begins with the cube
    2 cm inside the palm, because it takes 3 cm for half the size of the cube of 8 cm; here things begin above the palm.
    Its objects are scans; here they are those of :mod:`manikin.props.ycb`, or primitives of their size and mass.
    """

    id = "RotateInHand-v1"
    horizon_s = 15.0
    instruction = "turn what lies in the hand, anticlockwise seen from the tip of the axis"
    robots = ("allegro",)
    robot_needs = ("palm", "ff", "rf", "th")
    robots_named = ("allegro", "allegro_left")  # that it knows how to hold
    labels = Labels(
        events=(Event("turned", "is_turned"), Event("dropped", "fail"), Event("success", "success")),
        success=(Mode("success", "not dropped"), Mode("success_then_dropped", "otherwise")),
        failure=(
            Mode("dropped", "dropped and not turned"),
            Mode("dropped_turned", "dropped", "it had turned before"),
            Mode("not_turned", "not turned", "it lay in the hand and did not turn"),
            Mode("not_far", "otherwise", "it turned, and not far enough"),
        ),
        source="tasks of things in a hand; flags is_turned and fail",
    )
    reward_max = 1.0 + 20.0 * MOST
    reward_norm = 4.0
    observations = {
        "axis": Quantity("1", "world", "unit vector about which the thing is to be turned"),
        "touch": Quantity("log(1 + N)", "", "on each body of the hand that feels touch"),
        "turned": Quantity("rad", "", "about the axis since the start"),
        "thing_pose": Quantity("m, quaternion wxyz", "world"),
        "thing_velocity": Quantity("m/s", "world"),
        "thing_rates": Quantity("rad/s", "world"),
        "thing_to_tips": Quantity("m", "world", "to the tips of first, middle and ring finger and thumb"),
    }
    reward_terms = {
        "turn": "20 a, a the turn about the axis in this step [rad]",
        "speed": "-0.1 times the thing's speed [m/s]",
        "dropped": "-50 where it is dropped",
        "power": "-0.0003 |p|, p what the servos do: the sum of torque times rate [W]",
        "torque": "-0.0003 times the norm of the servos' torques [N m]",
        "reach": "the mean over the tips of 0.1 / (0.02 + 4 d), at most 1, d from tip to thing [m]",
    }

    @dataclass(frozen=True)
    class Config:
        level: int = 0  # 0 to 3
        half_size: float = 0.04  # [m] of the cube
        scale_std: float = 0.1  # [1] of its size, in level 1
        spread: float = 0.02  # [m] standard deviation of the place, in each direction
        clearance: float = 0.013  # [m] the palm is so far above the hand's frame, and the thing at least so far
        objects: tuple[str, ...] = NAMES  # of the YCB set, from level 2
        turns: float = 2.0  # [1] whole turns
        depth: float = 0.05  # [m] dropped: so far below the hand
        turned: float = 0.2  # [rad] it counts as turned beyond this
        published_angle: bool = False  # turns count without their sign, as in ManiSkill3

    def __init__(self, config: object = None, *, arm: str = "", layout: str | None = None) -> None:
        super().__init__(config, arm=arm, layout=layout)
        if self.config.level not in LEVELS:
            raise UnknownNameError(f"level of {self.id}", self.config.level, map(str, LEVELS))

    def scene(self, b: SceneBuilder) -> RotateInHandHandles:
        c = self.config
        table(b, base_camera=((0.15, 0, 0.45), (-0.1, 0, HEIGHT)), human_camera=((0.2, 0.4, 0.5), (0, 0, 0.25)))
        name = b.robots[0][0].name
        if not name.startswith("allegro"):
            raise ConfigError(f"{self.id} does not know how to hold {name!r}; it takes allegro, allegro_left")
        robot = b.robot(pos=(0.095, 0, HEIGHT), quat=(H, 0, -H, 0))  # the palm looks up, its fingers towards -x
        thing: Part
        if c.level >= 2:
            thing = b.mesh("thing", choice=ycb(tuple(c.objects)))
        else:
            middle, std = c.half_size, c.half_size * c.scale_std
            size = Normal(middle, std, middle - 3 * std, middle + 3 * std) if c.level else (middle,) * 3
            thing = b.box("thing", half_size=size, rgba=(0.95, 0.95, 0.95, 1))
        gains = robot.arm.gains
        self._kp, self._kd, self._most = (torch.tensor(v) for v in (gains.kp, gains.kd, gains.force))
        return RotateInHandHandles(
            robot=robot,
            thing=thing,
            axis=b.variable("axis", (3,)),
            mark=b.variable("mark", (3,)),
            before=b.variable("before", (3,)),
            step=b.variable("step"),
            turned=b.variable("turned"),
        )

    def start(self, h: RotateInHandHandles, ep: Episode) -> None:
        c, n = self.config, h.n
        h.robot.set_qpos(torch.zeros(16))
        place = ep.rng.normal("thing/place", 0.0, c.spread, (3,))
        place = torch.cat([place[:, :2], place[:, 2:].abs() + HEIGHT + c.clearance + self.half_height(h)], 1)
        h.thing.set_pose(place)
        which = ep.rng.integers("axis", 0, 3) if c.level == 3 else torch.full((n,), 2)
        number = torch.arange(3)
        h.axis.set((number == which[:, None]).float())
        across = (number == ((which + 1) % 3)[:, None]).float()  # the thing begins unturned, so this is in its frame
        h.mark.set(across)
        h.before.set(across)

    def half_height(self, h: RotateInHandHandles) -> Tensor:
        """(n, 1) [m] from the thing's middle to its lowest point, as it begins."""
        if isinstance(h.thing, VariantPart):
            return h.thing.extents[:, 2:]
        return h.thing.size[:, 2:] if self.config.level else torch.full((h.n, 1), self.config.half_size)

    def advance(self, h: RotateInHandHandles) -> None:
        axis, before = h.axis.value, h.before.value
        now = quat_rotate(h.thing.quat, h.mark.value)
        now = now - dot(now, axis)[:, None] * axis
        now = now / norm(now, keepdim=True).clamp_min(1e-6)  # along the axis itself it says nothing, and counts nothing
        angle = atan2(dot(torch.linalg.cross(before, now), axis), dot(before, now)).clamp(-MOST, MOST)
        if self.config.published_angle:
            angle = angle.abs()
        h.step.set(angle)
        h.turned.set(h.turned.value + angle)
        h.before.set(now)

    @per_step
    def to_tips(self, h: RotateInHandHandles) -> Tensor:
        """(n, 4, 3) [m] from the thing to the tips."""
        return torch.stack([h.robot.tools[tip].tcp_pos for tip in TIPS], 1) - h.thing.pos[:, None]

    def evaluate(self, h: RotateInHandHandles) -> dict[str, Tensor]:
        turned = h.turned.value
        return {
            "success": turned > constant(2 * math.pi * self.config.turns),
            "fail": h.thing.pos[:, 2] < constant(HEIGHT - self.config.depth),
            "is_turned": turned > constant(self.config.turned),
        }

    def observe(self, h: RotateInHandHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"axis": h.axis.value, "touch": torch.log1p(h.robot.touch_forces)},
            "privileged": {
                "turned": h.turned.value[:, None],
                "thing_pose": h.thing.pose,
                "thing_velocity": h.thing.linvel,
                "thing_rates": h.thing.angvel,
                "thing_to_tips": self.to_tips(h),
            },
        }

    def reward(self, h: RotateInHandHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        rates = h.robot.arm_qvel
        torque = self._kp * (h.robot.ctrl - h.robot.arm_qpos) - self._kd * rates
        torque = torch.minimum(torch.maximum(torque, -self._most), self._most)
        near = (0.1 / (0.02 + 4.0 * norm(self.to_tips(h)))).clamp_max(1.0)
        return {
            "turn": 20.0 * h.step.value,
            "speed": -0.1 * norm(h.thing.linvel),
            "dropped": -50.0 * ev["fail"].float(),
            "power": -0.0003 * dot(torque, rates).abs(),
            "torque": -0.0003 * norm(torque),
            "reach": near.mean(1),
        }
