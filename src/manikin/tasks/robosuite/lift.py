"""Lift-v2."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import Episode, Grasp, Handles, Part, Quantity, Robot, SceneBuilder, Uniform, Waypoint
from manikin.arenas.square_table import square_table
from manikin.env.placement import Place
from manikin.math import norm, pose
from manikin.tasks.robosuite.common import DROP, TCP, StagedTask, ready
from manikin.toolkit import all_fingers_touch, bonus, closeness, constant, pick, top_down

__all__ = ["Lift"]


@dataclass
class LiftHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    cube: Part
    grasp: Grasp


class Lift(StagedTask):
    """Lift a cube off the table.

    Randomization: the cube's three sides, its place in a small square, its turn about the vertical; the arm's joints, a
    little noise.
    Success: the cube's centre is more than ``lift_height`` above the table.

    Numbers: robosuite 1.0.
    """

    id = "Lift-v2"
    instruction = "lift the red cube"
    reward_max = 2.25
    observations = {
        **TCP,
        "cube_pose": Quantity("m, quaternion wxyz", "world"),
        "tcp_to_cube": Quantity("m", "world"),
    }
    reward_terms = {
        "reach": "1 - tanh(10 d), d from TCP to cube",
        "grasp": "0.25 while both fingers touch the cube",
        "success": "what is missing to 2.25, in success",
    }

    @dataclass(frozen=True)
    class Config:
        half_size: tuple[float, float] = (0.020, 0.022)  # [m] of each side, uniform in this range
        spawn_half_size: float = 0.03  # [m]
        lift_height: float = 0.04  # [m]

    def scene(self, b: SceneBuilder) -> LiftHandles:
        robot = square_table(b)
        low, high = self.config.half_size
        cube = b.box("cube", half_size=Uniform((low,) * 3, (high,) * 3), rgba=(0.85, 0.1, 0.1, 1))
        return LiftHandles(robot=robot, cube=cube, grasp=b.grasp(robot, cube))

    def start(self, h: LiftHandles, ep: Episode) -> None:
        ready(h.robot, ep)
        r = self.config.spawn_half_size
        height = h.cube.size[:, 2] + DROP
        spot = ep.scatter([Place(low=(-r, -r), high=(r, r), z=height)], name="cube")[:, 0]
        h.cube.set_pose(spot[:, :3], spot[:, 3:])

    def evaluate(self, h: LiftHandles) -> dict[str, Tensor]:
        return {
            "success": h.cube.pos[:, 2] > constant(self.config.lift_height),
            "is_grasped": all_fingers_touch([h.grasp])[:, 0],
        }

    def observe(self, h: LiftHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose},
            "privileged": {"cube_pose": h.cube.pose, "tcp_to_cube": h.cube.pos - h.robot.tcp_pos},
        }

    def reward(self, h: LiftHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        terms = {
            "reach": closeness(norm(h.cube.pos - h.robot.tcp_pos), 10.0),
            "grasp": ev["is_grasped"] * constant(0.25),
        }
        return bonus(terms, ev["success"], self.reward_max)

    def expert(self, h: LiftHandles) -> list[Waypoint]:
        goal = torch.cat([h.robot.tcp_pos[:, :2], torch.full((h.n, 1), 0.12)], 1)
        return [
            *pick(h.cube.pos, top_down(h.cube.quat, h.robot), h.robot, clear=0.08),
            Waypoint(name="hold", pose=pose(goal, h.robot.tcp_quat), gripper=-1).hold(),
        ]
