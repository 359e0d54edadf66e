"""TwoArmLift-v3."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from manikin import Episode, Grasp, Handles, Part, Robot, SceneBuilder, Waypoint
from manikin.arenas.square_table import small_table
from manikin.env.placement import Place
from manikin.math import norm, pose, quat_rotate
from manikin.props import pot
from manikin.tasks.robosuite.common import OFFSET, POSE, StagedTask, ready
from manikin.toolkit import (
    ZERO,
    above,
    all_fingers_touch,
    base_yaw,
    closeness,
    constant,
    per_step,
    top_down,
    two_robots,
)

__all__ = ["TwoArmLift"]


@dataclass
class PotHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot  # the first
    robots: tuple[Robot, Robot]
    pot: Part
    grasps: list[Grasp]  # of each robot, on its handle


class TwoArmLift(StagedTask):
    """Lift a pot by its two handles, one arm at each.

    Randomization: the pot's place in a small square, its turn about the vertical; the arms' joints, a little noise.
    Success: the pot's bottom is more than ``lift_height`` above the table.

    Numbers: robosuite 1.0. The first robot has the green handle, the second the blue one.
    """

    id = "TwoArmLift-v3"
    family = "two-arms"
    instruction = "lift the pot by its two handles"
    robot_count = 2
    robots = ("panda,panda", "baxter")
    rests: ClassVar[bool] = True  # the pot touches the table with its hull: a fifth of the contacts while it stands
    reward_max = 3.0
    observations = {
        "robot0_tcp_pose": POSE,
        "robot1_tcp_pose": POSE,
        "pot_pose": POSE,
        "robot0_tcp_to_handle": OFFSET,
        "robot1_tcp_to_handle": OFFSET,
    }
    reward_terms = {
        "reach": "per arm 0.5 (1 - tanh(10 d)), d from TCP to its handle",
        "grasp": "per arm 0.25 while both fingers touch its handle",
        "lift": "10 (h - 0.05), h the height of the pot's bottom, at most 1.5, while tilted by less than 30 degrees",
        "success": "what is missing to 3 in success; to 0 where the pot is tilted by 30 degrees or more",
    }

    @dataclass(frozen=True)
    class Config:
        arrangement: str = "opposed"  # or parallel: how the robots stand
        spawn_half_size: float = 0.03  # [m]
        turn: float = math.pi / 3  # [rad] the pot is turned at most, either way
        lift_height: float = 0.1  # [m]

    def scene(self, b: SceneBuilder) -> PotHandles:
        base, human = ((0.75, 0, 0.7), (0, 0, 0.1)), ((1.15, 0.45, 0.75), (0, 0, 0.15))
        small_table(b, surface=self.rests, base_camera=base, human_camera=human)
        robots = two_robots(b, arrangement=self.config.arrangement, away=0.56, height=0.113, level=0.0, floor=-0.8)
        vessel = b.part("pot", pot.pot(), rests_on=pot.pot_rests() if self.rests else ())
        grasps = [b.grasp(r, vessel, shapes=s) for r, s in zip(robots, pot.HANDLE_SHAPES, strict=True)]
        self._handles = torch.tensor(pot.HANDLES)
        self._up = torch.tensor([[0.0, 0.0, 1.0]])
        return PotHandles(robot=robots[0], robots=robots, pot=vessel, grasps=grasps)

    def start(self, h: PotHandles, ep: Episode) -> None:
        for robot in h.robots:
            ready(robot, ep)
        r, turn = self.config.spawn_half_size, self.config.turn
        spot = ep.scatter([Place(low=(-r, -r), high=(r, r), z=pot.HALF, turn=(-turn, turn))], name="pot")[:, 0]
        h.pot.set_pose(spot[:, :3], spot[:, 3:])

    @per_step
    def _geometry(self, h: PotHandles) -> tuple[Tensor, Tensor]:
        """Offsets (n, 2, 3) from each TCP to its handle, and their lengths."""
        pos, quat = h.pot.pos[:, None].expand(-1, 2, 3), h.pot.quat[:, None].expand(-1, 2, 4)
        tcp = torch.stack([r.tcp_pos for r in h.robots], 1)
        reach = pos + quat_rotate(quat, self._handles.expand_as(pos)) - tcp
        return reach, norm(reach)

    def evaluate(self, h: PotHandles) -> dict[str, Tensor]:
        upright = quat_rotate(h.pot.quat, self._up.expand_as(h.pot.pos))[:, 2]
        return {
            "success": h.pot.pos[:, 2] - constant(pot.HALF) > constant(self.config.lift_height),
            "is_grasped": all_fingers_touch(h.grasps).all(1),
            "is_upright": upright >= constant(math.cos(math.pi / 6)),
        }

    def observe(self, h: PotHandles) -> dict[str, dict[str, Tensor]]:
        reach, _ = self._geometry(h)
        one, two = h.robots
        return {
            "policy": {"robot0_tcp_pose": one.tcp_pose, "robot1_tcp_pose": two.tcp_pose},
            "privileged": {
                "pot_pose": h.pot.pose,
                "robot0_tcp_to_handle": reach[:, 0],
                "robot1_tcp_to_handle": reach[:, 1],
            },
        }

    def reward(self, h: PotHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        _, away = self._geometry(h)
        rise = h.pot.pos[:, 2] - constant(pot.HALF + 0.05)
        terms = {
            "reach": constant(0.5) * closeness(away, 10.0).sum(1),
            "grasp": constant(0.25) * all_fingers_touch(h.grasps).sum(1),
            "lift": constant(10.0) * rise.clamp(0.0, 0.15) * ev["is_upright"],
        }
        missing = constant(3.0) * ev["is_upright"] - torch.stack(list(terms.values()), -1).sum(-1)
        return {**terms, "success": torch.where(ev["success"], missing, ZERO)}

    def expert(self, h: PotHandles) -> list[tuple[Waypoint, ...]]:
        reach, _ = self._geometry(h)
        stages = []
        for k, robot in enumerate(h.robots):
            handle, tcp, quat = robot.tcp_pos + reach[:, k], robot.tcp_pos, robot.tcp_quat
            down = top_down(h.pot.quat, robot, symmetry=2, around=base_yaw(robot) + 0.5)
            over, at = pose(above(handle, 0.1), down), pose(handle, down)
            up = pose(above(tcp, 0.2), quat)
            stages.append(
                [
                    Waypoint(name="above", pose=over, gripper=1, pos_tol=0.015, rot_tol=0.1, timeout_s=4.0),
                    Waypoint(name="down", pose=at, gripper=1, pos_tol=0.006, speed=0.3, timeout_s=2.0),
                    Waypoint(name="close", pose=at, gripper=-1, pos_tol=0.02, rot_tol=0.1, dwell_s=0.3),
                    Waypoint(name="lift", pose=up, gripper=-1, pos_tol=0.0, speed=0.12, timeout_s=1e9),
                ]
            )
        return list(zip(*stages, strict=True))
