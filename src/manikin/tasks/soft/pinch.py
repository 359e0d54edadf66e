"""Pinch-v1."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from manikin import Episode, Grasp, Handles, Marker, Quantity, Robot, SceneBuilder, Task, Variable, Waypoint
from manikin.arenas.table import table
from manikin.math import atan2, norm, pose, quat_from_yaw, quat_mul, yaw_rotate
from manikin.props.soft.clay import Clay, chamfer, clay
from manikin.toolkit import above, bonus, closeness, constant, facing_down, noisy_rest, per_step

__all__ = ["Pinch"]

_SQUEEZE = -0.1  # what the expert commands the gripper; the pads stop at 2.5 cm and what the clay adds


@dataclass
class PinchHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    clay: Clay
    axis: Variable  # 0: to be pinched along the block's own x; 1: along y
    target: Variable  # (points, 3) [m] about their middle, turned as the block at the start
    first: Variable  # [m] Chamfer distance at the start
    marks: list[Marker]
    grasp: Grasp


class Pinch(Task):
    """Pinch a block of clay to a shape and let go of it.

    Randomization: the block's place, uniform in a square, and its turn; along which of its two axes it is to be
    pinched; the arm's joints, a little noise about rest.
    Success: the Chamfer distance of the clay to the target shape, both about their middles, is at most ``share`` of
    that at the start; the gripper has let go, and no point moves faster than ``calm_speed``. Clay that is drawn out
    beyond ``longest`` fails, where real clay would tear.

    Model: 4 x 4 x 4 points of three degrees of freedom, tied by tetrahedra of MuJoCo's finite elements (flex), of a
    neo-Hookean material that stays deformed beyond a strain of 2 %; 100 physics steps per second. Its volume stays
    within 5 %. ManiSkill2's clay is of material points, and its success rule is the same as far as known; there targets
    are drawn from many, here they are two, made by pinching this clay: the place does not count, the direction does.
    """

    id = "Pinch-v1"
    horizon_s = 5.0
    instruction = "pinch the clay at the marks to the target shape"
    robots = ("panda",)
    reward_max = 5.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "target": Quantity("m", "world", "points of the target shape, about their middle"),
        "clay_points": Quantity("m", "world", "all points of the clay"),
        "distance": Quantity("1", "", "Chamfer distance to the target, as a share of that at the start"),
    }
    reward_terms = {
        "reach": "1 - tanh(5 d), d from TCP to the middle of the clay",
        "shape": "3 (1 - c / c0), c the Chamfer distance to the target and c0 that at the start, at least 0",
        "success": "what is missing to 5, in success",
    }

    @dataclass(frozen=True)
    class Config:
        spread: float = 0.08  # [m] half size of the square in which the block starts, about (-0.1, 0)
        turn: float = 0.4  # [rad] either way
        share: float = 0.3  # of the Chamfer distance at the start, at most
        calm_speed: float = 0.05  # [m/s]
        longest: float = 0.15  # [m] along an axis of the world, at most

    def scene(self, b: SceneBuilder) -> PinchHandles:
        table(b, human_camera=((0.2, 0.3, 0.3), (-0.1, 0.0, 0.03)))
        robot = b.robot()
        block = clay(b, "clay", size=(0.045, 0.045, 0.045))
        self._shapes = torch.tensor(json.loads(Path(__file__).with_name("pinched.json").read_text()))
        return PinchHandles(
            robot=robot,
            clay=block,
            axis=b.variable("axis"),
            target=b.variable("target", (block.count, 3)),
            first=b.variable("first"),
            marks=[b.marker(f"mark/{k}", size=(0.005,), rgba=(0.1, 0.8, 0.2, 0.5)) for k in range(2)],
            grasp=b.grasp(robot, block.part),
        )

    def start(self, h: PinchHandles, ep: Episode) -> None:
        c, rng = self.config, ep.rng
        noisy_rest(h.robot, ep)
        spot = rng.uniform("clay/xy", -c.spread, c.spread, (2,)) + torch.tensor([-0.1, 0.0])
        place = torch.cat([spot, torch.zeros(h.n, 1)], 1)
        yaw, axis = rng.uniform("clay/yaw", -c.turn, c.turn), rng.integers("axis", 0, 2)
        h.clay.place(place, yaw)
        h.axis.set(axis.float())
        target = yaw_rotate(self._shapes[axis.long()], yaw[:, None])
        h.target.set(target)
        rest = h.clay.rest - h.clay.rest.mean(0)
        h.first.set(chamfer(yaw_rotate(rest.expand(h.n, -1, 3), yaw[:, None]), target))
        along = yaw + axis.float() * (math.pi / 2)
        aside = torch.stack([torch.cos(along), torch.sin(along), torch.zeros(h.n)], 1)
        for sign, mark in zip((-1, 1), h.marks, strict=True):
            mark.set_pose(above(place, 0.026) + sign * 0.035 * aside)

    @per_step
    def distance(self, h: PinchHandles) -> Tensor:
        """(n,) Chamfer distance to the target, as a share of that at the start."""
        points = h.clay.pos
        return chamfer(points - points.mean(1, keepdim=True), h.target.value) / h.first.value.clamp_min(1e-6)

    def evaluate(self, h: PinchHandles) -> dict[str, Tensor]:
        c = self.config
        shaped = self.distance(h) <= constant(c.share)
        free = ~h.grasp.touches & (h.clay.speed <= constant(c.calm_speed))
        points = h.clay.pos
        torn = (points.amax(1) - points.amin(1)).amax(1) > constant(c.longest)
        return {"success": shaped & free & ~torn, "fail": torn, "is_shaped": shaped}

    def observe(self, h: PinchHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose, "target": h.target.value.flatten(1)},
            "privileged": {"clay_points": h.clay.pos.flatten(1), "distance": self.distance(h)},
        }

    def reward(self, h: PinchHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        terms = {
            "reach": closeness(norm(h.clay.middle - h.robot.tcp_pos), 5.0),
            "shape": constant(3.0) * (1.0 - self.distance(h)).clamp_min(0.0),
        }
        return bonus(terms, ev["success"], self.reward_max)

    def expert(self, h: PinchHandles) -> list[Waypoint]:
        middle, ahead = h.clay.middle, h.clay.ahead
        # the gripper opens along y: turned by a quarter it pinches along x
        yaw = atan2(ahead[:, 1], ahead[:, 0]) + (1.0 - h.axis.value) * (math.pi / 2)
        down = quat_mul(quat_from_yaw(yaw), facing_down(h.robot))
        spot = pose(middle, down)
        return [
            Waypoint(name="above", pose=pose(above(middle, 0.1), down), gripper=1, pos_tol=0.02, rot_tol=0.1),
            Waypoint(name="down", pose=spot, gripper=1, pos_tol=0.0015, rot_tol=0.02, speed=0.3),
            Waypoint(name="touch", pose=spot, gripper=0.4, pos_tol=0.01),
            Waypoint(name="press", pose=spot, gripper=0.15, pos_tol=0.01),
            Waypoint(name="pinch", pose=spot, gripper=_SQUEEZE, pos_tol=0.01, dwell_s=0.6),
            Waypoint(name="open", pose=spot, gripper=1, pos_tol=0.01, dwell_s=0.3),
            Waypoint(name="away", pose=pose(above(middle, 0.12), down), gripper=1, pos_tol=0.02, speed=0.2).hold(),
        ]
