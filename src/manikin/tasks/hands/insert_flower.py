"""InsertFlower-v1."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import ContactForce, Episode, Event, Handles, Labels, Mode, Part, Quantity, Robot, SceneBuilder, Task
from manikin.arenas.table import table
from manikin.math import norm, quat_from_yaw, quat_mul, quat_rotate
from manikin.props.hands.flower import INNER, RIM, STEM, flower, vase
from manikin.toolkit import bonus, closeness, noisy_rest, per_step

__all__ = ["InsertFlower"]

VASE = (-0.2509, -0.2027)  # [m] where it stands
LYING = (0.5**0.5, 0.5**0.5, 0.0, 0.0)  # the stem along the table, its end away from the vase


@dataclass
class InsertFlowerHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    flower: Part
    vase: Part
    press: ContactForce


class InsertFlower(Task):
    """Put a flower into a vase with a hand on an arm.

    Randomization: the flower's place, uniform, and its turn on the table, a little; the arm's joints, a little noise.
    Success: the flower's origin, where the bloom begins, is in a box above the vase, and the end of its stem inside the
    vase, at least ``inside`` below its rim.

    Numbers: ManiSkill3 3.0.1 for the box, the places, the flower's density and the time; its hand floats, here an arm
    carries it. Its flower and vase are scans; here they are primitives, such that a flower that stands in the vase has
    its origin in the box. ManiSkill3 asks only for the box, which a flower that is held above the vase fulfils;
    ``published_success`` does so, too. Its reward takes one norm over all rows, here each row has its own; the term
    that brings the hand to the flower is our own.
    """

    id = "InsertFlower-v1"
    horizon_s = 15.0
    instruction = "put the flower into the vase"
    robots = ("panda+allegro",)
    robot_needs = ("ff", "mf", "rf", "th", "arm")
    settle_s = 0.4
    labels = Labels(
        events=(Event("touched", "is_touched"), Event("lifted", "is_lifted"), Event("success", "success")),
        success=(Mode("success", "otherwise"),),
        failure=(
            Mode("never_touched", "not touched and not lifted", "the hand never touched the flower"),
            Mode("not_lifted", "not lifted", "it was touched, and stayed on the table"),
            Mode("not_there", "otherwise", "it was lifted, and never stood in the vase"),
        ),
        source="tasks that put a thing into another; flags is_touched and is_lifted",
    )
    reward_max = 3.0
    observations = {
        "palm_pose": Quantity("m, quaternion wxyz", "world", "before the palm"),
        "flower_pose": Quantity("m, quaternion wxyz", "world", "where the bloom begins, z towards it"),
        "palm_to_flower": Quantity("m", "world", "to the middle of the stem"),
        "stem_end_to_vase": Quantity("m", "world", "to the middle of the vase's rim"),
    }
    reward_terms = {
        "reach": "1 - tanh(5 d), d from before the palm to the middle of the stem",
        "place": "exp(-5 d), d from the flower's origin to the box above the vase",
        "success": "what is missing to 3, in success",
    }

    @dataclass(frozen=True)
    class Config:
        box_low: tuple[float, float, float] = (-0.3, -0.25, 0.25)  # [m] the flower's origin is to be between these
        box_high: tuple[float, float, float] = (-0.2, -0.15, 0.35)  # [m]
        flower_xy: tuple[float, float] = (-0.242, 0.0)  # [m] where its origin begins
        spread: float = 0.05  # [m] it varies by this, both ways
        yaw: float = 0.3  # [rad] and the stem's direction by this
        inside: float = 0.05  # [m] the stem's end is so far below the rim
        lifted: float = 0.05  # [m] it counts as lifted above this
        published_success: bool = False  # the box alone, as in ManiSkill3

    def scene(self, b: SceneBuilder) -> InsertFlowerHandles:
        c = self.config
        table(b, base_camera=((0.15, 0, 0.45), (-0.1, 0, 0.25)), human_camera=((0.35, 0.45, 0.6), (-0.25, -0.05, 0.2)))
        robot = b.robot()
        rose = b.part("flower", flower(), density=200.0)
        stand = b.part("vase", vase(), kind="fixed", pos=(*VASE, 0.0))
        self._rim = torch.tensor([*VASE, RIM])
        self._low, self._high = torch.tensor(c.box_low), torch.tensor(c.box_high)
        self._end, self._middle = torch.tensor([[0.0, 0.0, -STEM]]), torch.tensor([[0.0, 0.0, -STEM / 2]])
        return InsertFlowerHandles(robot=robot, flower=rose, vase=stand, press=b.contact_force(robot, rose))

    def start(self, h: InsertFlowerHandles, ep: Episode) -> None:
        c, n = self.config, h.n
        noisy_rest(h.robot, ep)
        spot = torch.tensor(c.flower_xy) + ep.rng.uniform("flower/xy", -c.spread, c.spread, (2,))
        turn = quat_from_yaw(ep.rng.uniform("flower/yaw", -c.yaw, c.yaw))
        quat = quat_mul(turn, torch.tensor([LYING]).expand(n, 4))
        h.flower.set_pose(torch.cat([spot, torch.full((n, 1), 0.037)], 1), quat)

    def _at(self, h: InsertFlowerHandles, place: Tensor) -> Tensor:
        return h.flower.pos + quat_rotate(h.flower.quat, place.expand(h.n, 3))

    @per_step
    def stem_end(self, h: InsertFlowerHandles) -> Tensor:
        """(n, 3) [m] from the stem's end to the middle of the vase's rim."""
        return self._rim - self._at(h, self._end)

    @per_step
    def stem_middle(self, h: InsertFlowerHandles) -> Tensor:
        """(n, 3) [m] from before the palm to the middle of the stem."""
        return self._at(h, self._middle) - h.robot.tcp_pos

    @per_step
    def outside(self, h: InsertFlowerHandles) -> Tensor:
        """(n,) [m] from the flower's origin to the box; 0 inside."""
        place = h.flower.pos
        return norm(torch.maximum(torch.maximum(self._low - place, place - self._high), torch.zeros_like(place)))

    def evaluate(self, h: InsertFlowerHandles) -> dict[str, Tensor]:
        end, success = self.stem_end(h), self.outside(h) == 0
        if not self.config.published_success:
            success = success & (end[:, 2] > self.config.inside) & (norm(end[:, :2]) < INNER)
        return {
            "success": success,
            "is_touched": norm(h.press.value) > 0,
            "is_lifted": self._at(h, self._middle)[:, 2] > self.config.lifted,
        }

    def observe(self, h: InsertFlowerHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"palm_pose": h.robot.tcp_pose},
            "privileged": {
                "flower_pose": h.flower.pose,
                "palm_to_flower": self.stem_middle(h),
                "stem_end_to_vase": self.stem_end(h),
            },
        }

    def reward(self, h: InsertFlowerHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        terms = {
            "reach": closeness(norm(self.stem_middle(h)), 5.0),
            "place": torch.exp(-5.0 * self.outside(h)),
        }
        return bonus(terms, ev["success"], self.reward_max)
