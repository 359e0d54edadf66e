"""InsertFlower-v1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import (
    ContactForce,
    Episode,
    Event,
    Handles,
    Labels,
    Mode,
    Part,
    Quantity,
    Robot,
    SceneBuilder,
    Task,
    Waypoint,
)
from manikin.arenas.table import table
from manikin.errors import ConfigError
from manikin.math import (
    atan2,
    norm,
    pose,
    pose_inv,
    pose_mul,
    quat_from_axis_angle,
    quat_from_yaw,
    quat_mul,
    quat_rotate,
)
from manikin.props.hands.flower import INNER, RIM, STEM, flower, vase
from manikin.toolkit import above, bonus, closeness, noisy_rest, per_step

__all__ = ["InsertFlower"]

VASE = (-0.2509, -0.2027)  # [m] where it stands
LYING = (0.5**0.5, 0.5**0.5, 0.0, 0.0)  # the stem along the table, its end away from the vase
_PINCH = (0.045, 0.0, 0.052)  # [m] in the palm's frame, where the tips of fingers and thumb meet
_TILT = math.radians(25)  # the palm looks down and so far aside when all tips point down, so that they reach the table
_ALONG = 0.085  # [m] from the bloom to where the hand takes the stem: between vase and bloom there is just room for it
_LOWEST = 0.018  # [m] height of the place between the tips when they nearly touch the table
_CLEAR, _OVER, _INTO = 0.1, 0.53, 0.33  # [m] height above the stem, and of the origin over the vase and in it
_FINGER_OPEN, _THUMB_OPEN = (0.0, 0.9, 1.33, -0.22), (1.39, 0.7, 0.26, 0.09)  # [rad] tips 8 cm apart
_FINGER_SHUT, _THUMB_SHUT = (0.0, 1.382, 0.851, -0.22), (1.287, 0.62, 0.717, -0.16)  # and 7 mm less than they touch at
_BEFORE = (0.06, 0.43, 0.08, -2.22, 0.1, 1.51, 0.88)  # [rad] the arm about where it takes the stem ...
_UPRIGHT = (0.12, 0.07, -0.08, -2.1, -0.65, 0.7, 1.83)  # ... and where it holds it upright over the vase


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
        self._over, self._into = (torch.tensor([*VASE, height]) for height in (_OVER, _INTO))
        self._up, self._pinch = torch.tensor([0.0, 0.0, 1.0]), torch.tensor(_PINCH)
        half, root = _TILT / 2, 0.5**0.5
        down = quat_mul(
            torch.tensor([[0.0, root, root, 0.0]]), torch.tensor([[math.cos(half), 0.0, math.sin(half), 0.0]])
        )
        self._tips_down = down  # of the palm, the first three fingers one after the other along x
        self._open = torch.tensor([*_FINGER_OPEN * 3, *_THUMB_OPEN])
        self._shut = torch.tensor([*_FINGER_SHUT * 3, *_THUMB_SHUT])
        self._before, self._upright = (torch.tensor([*arm, *[0.0] * 16]) for arm in (_BEFORE, _UPRIGHT))
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

    def expert(self, h: InsertFlowerHandles) -> list[Waypoint]:
        """Three fingers on one side and the thumb on the other take the stem below the bloom, from above. The hand then
        turns the flower the short way upright, wherever in the hand it is by then."""
        robot, n = h.robot, h.n
        if robot.arm.name != "panda+allegro":
            raise ConfigError(f"the expert of {self.id} has joints of panda+allegro, not of {robot.arm.name}")
        up = self._up.expand(n, 3)
        stem = quat_rotate(h.flower.quat, up)
        place = h.flower.pos - _ALONG * stem
        place = torch.cat([place[:, :2], place[:, 2:].clamp_min(_LOWEST)], 1)
        turn = quat_mul(quat_from_yaw(atan2(stem[:, 1], stem[:, 0])), self._tips_down.expand(n, 4))
        palm = place - quat_rotate(turn, self._pinch.expand(n, 3))
        onto = self._joints(h, palm, turn, self._before.expand(n, -1))
        high = self._joints(h, above(palm, _CLEAR), turn, onto)
        axis = torch.linalg.cross(stem, up)
        sine = norm(axis)
        raised = quat_from_axis_angle(axis / sine.clamp_min(1e-6)[:, None], atan2(sine, stem[:, 2]))
        held, turned = quat_rotate(raised, robot.tcp_pos - h.flower.pos), quat_mul(raised, robot.tcp_quat)
        over = self._joints(h, self._over + held, turned, self._upright.expand(n, -1))
        into = self._joints(h, self._into + held, turned, over)

        def go(name: str, joints: Tensor, hand: Tensor, turn: float, *, tol: float = 0.05) -> Waypoint:
            joints = torch.cat([joints[:, :7], hand.expand(n, -1)], 1)
            return Waypoint(name=name, joints=joints, gripper=1, rot_tol=tol, turn=turn, timeout_s=3.0)

        return [
            go("above", high, self._open, 1.5, tol=0.08),
            go("down", onto, self._open, 0.8, tol=0.015),
            go("close", onto, self._shut, 0.8).hold(0.8),
            go("lift", high, self._shut, 0.6),
            go("over", over, self._shut, 0.8),
            go("upright", over, self._shut, 0.8, tol=0.03),  # once more, as it may have turned between the tips
            go("into", into, self._shut, 0.5, tol=0.04),
            go("open", into, self._open, 0.5).hold(),
        ]

    def _joints(self, h: InsertFlowerHandles, place: Tensor, turn: Tensor, start: Tensor) -> Tensor:
        """(n, joints) [rad] with which the palm is at ``place`` (n, 3) [m] and turned as ``turn`` (n, 4)."""
        goal = pose_mul(pose_inv(h.robot.base_pose).expand(h.n, 7), pose(place, turn))
        return h.robot.solver.solve(goal[:, :3], goal[:, 3:], start).q.float()
