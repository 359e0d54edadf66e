"""LiftPegUpright-v2."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import Episode, Grasp, Handles, Part, Physics, Quantity, Robot, SceneBuilder, Task, Waypoint
from manikin.arenas.table import table
from manikin.math import dot, norm, pose
from manikin.toolkit import GRASP, ONE, above, along_x, bonus, closeness, facing_down, noisy_rest, per_step

__all__ = ["LiftPegUpright"]

_ROLLED = (math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0)  # about its length by a quarter turn, as ManiSkill3 lays it


@dataclass
class LiftPegUprightHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    peg: Part
    grasp: Grasp


class LiftPegUpright(Task):
    """Stand a lying peg on its end.

    Randomization: the peg's place, uniform in a square on the table, always pointing away from the robot; the arm's
    joints, a little noise about rest.
    Success: the peg is upright and at the height of a standing peg. It may still be held.

    Numbers: ManiSkill3 3.0.1. It tests an Euler angle, which other turns change too; here the angle between the peg's
    length and the vertical has the same bound, which is the same test for a peg that has not rolled. Friction is 1.
    """

    id = "LiftPegUpright-v2"
    horizon_s = 2.5
    labels = GRASP
    instruction = "stand the peg upright"
    robots = ("panda",)
    physics = Physics(hz=200)  # at 100 Hz the peg, turning in a light grip, falls out of it in one of eight episodes
    reward_max = 3.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "is_grasped": Quantity("0 or 1"),
        "peg_pose": Quantity("m, quaternion wxyz", "world", "x along its length"),
        "tcp_to_peg": Quantity("m", "world"),
    }
    reward_terms = {
        "upright": "cosine of the angle between the peg's length and the vertical",
        "height": "1 - tanh(5 d), d from the peg's centre to its height when standing",
        "reach": "a fifth of 1 - tanh(5 d), d from TCP to peg; 0.2 while grasped",
        "success": "what is missing to 3, in success",
    }

    @dataclass(frozen=True)
    class Config:
        half_length: float = 0.12  # [m]
        half_width: float = 0.025  # [m]
        spawn_half_size: float = 0.1  # [m]
        tilt_tol: float = 0.08  # [rad]
        height_tol: float = 0.005  # [m]

    def scene(self, b: SceneBuilder) -> LiftPegUprightHandles:
        c = self.config
        table(b)
        self._upright = math.cos(c.tilt_tol)
        robot = b.robot()
        size = (c.half_length, c.half_width, c.half_width)
        peg = b.box("peg", half_size=size, rgba=(0.69, 0.05, 0.05, 1))
        return LiftPegUprightHandles(robot=robot, peg=peg, grasp=b.grasp(robot, peg))

    def start(self, h: LiftPegUprightHandles, ep: Episode) -> None:
        c = self.config
        noisy_rest(h.robot, ep)
        spot = ep.rng.uniform("peg/xy", -c.spawn_half_size, c.spawn_half_size, (2,))
        h.peg.set_pose(torch.cat([spot, torch.full((h.n, 1), c.half_width)], 1), _ROLLED)

    @per_step
    def uprightness(self, h: LiftPegUprightHandles) -> Tensor:
        """(n,) height of the peg's axis, 1 where it stands."""
        return along_x(h.peg.quat)[:, 2].abs()

    def evaluate(self, h: LiftPegUprightHandles) -> dict[str, Tensor]:
        c = self.config
        upright = self.uprightness(h) > self._upright
        standing = (h.peg.pos[:, 2] - c.half_length).abs() < c.height_tol
        return {"success": upright & standing, "is_upright": upright, "is_grasped": h.grasp.value}

    def observe(self, h: LiftPegUprightHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose, "is_grasped": h.grasp.value},
            "privileged": {"peg_pose": h.peg.pose, "tcp_to_peg": h.peg.pos - h.robot.tcp_pos},
        }

    def reward(self, h: LiftPegUprightHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        peg = h.peg.pos
        near = closeness(norm(peg - h.robot.tcp_pos), 5.0)
        terms = {
            "upright": self.uprightness(h),
            "height": closeness((peg[:, 2] - self.config.half_length).abs(), 5.0),
            "reach": 0.2 * torch.where(ev["is_grasped"], ONE, near),
        }
        return bonus(terms, ev["success"], self.reward_max)

    def expert(self, h: LiftPegUprightHandles) -> list[Waypoint]:
        # Lift one end in a light grip: the peg turns between the fingers while its foot slides on the table. Then bring
        # the fingers over the foot, pressing it down a little so that it stays where it is.
        c, peg, tcp, down = self.config, h.peg.pos, h.robot.tcp_pos, facing_down(h.robot)
        axis = along_x(h.peg.quat)
        up = torch.where(dot(tcp - peg, axis) > 0, ONE, -ONE)[:, None] * axis  # towards the end nearer to the fingers
        end, foot = peg + (c.half_length - 0.02) * up, peg - c.half_length * up
        arm = norm(tcp - foot)
        hover = foot[:, 2] - c.half_width * (1.0 - up[:, 2] * up[:, 2]).clamp_min(0.0).sqrt()
        height = (arm - 3.0 * hover - 0.015).clamp_max(2 * c.half_length)
        over = torch.cat([tcp[:, :2] - 1.5 * arm[:, None] * up[:, :2], height[:, None]], 1)
        light = 0.115
        return [
            Waypoint(name="above", pose=pose(above(end, 0.05), down), gripper=1, pos_tol=0.02, speed=1.0),
            Waypoint(name="down", pose=pose(end, down), gripper=1, pos_tol=0.015),
            Waypoint(name="close", pose=pose(end, down), gripper=light, pos_tol=0.01),
            Waypoint(name="lift", pose=pose(above(tcp, 0.18), down), gripper=light, pos_tol=0.02),
            Waypoint(name="over", pose=pose(over, down), gripper=light, track=True, speed=1.0).hold(),
        ]
