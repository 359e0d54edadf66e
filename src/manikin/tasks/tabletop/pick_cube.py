"""PickCube-v2."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import (
    Episode,
    Grasp,
    Handles,
    Marker,
    Part,
    Quantity,
    Robot,
    SceneBuilder,
    Task,
    Variable,
    Waypoint,
)
from manikin.arenas.table import table
from manikin.math import norm, pose
from manikin.toolkit import (
    above,
    bonus,
    closeness,
    constant,
    first_valid,
    full_turn,
    is_still,
    noisy_rest,
    per_step,
    top_down,
    transport,
)

__all__ = ["PickCube"]


@dataclass
class PickCubeHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    cube: Part
    grasp: Grasp
    goal: Variable  # (3,) [m]
    marker: Marker


class PickCube(Task):
    """Pick up a cube and hold it at a goal in the air.

    Randomization: the cube's place, uniform in a square on the table, and its turn about the vertical; the goal's place
    over the same square and its height, never where the cube is; the arm's joints, a little noise about rest.
    Success: the cube's centre is within ``goal_radius`` of the goal and the arm stands still.
    """

    id = "PickCube-v2"
    horizon_s = 2.5
    labels = transport()
    instruction = "pick up the red cube and hold it at the green goal"
    robots = ("panda", "ur5e", "xarm7", "so101")
    robot_config = {
        name: {"cube_half_size": 0.0125, "spawn_half_size": 0.05, "goal_height": 0.08, "goal_radius": 0.015625}
        for name in ("bi_so101_left", "bi_so101_right", "koch", "so100", "so101")
    }
    reward_max = 5.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "goal_pos": Quantity("m", "world"),
        "is_grasped": Quantity("0 or 1"),
        "cube_pose": Quantity("m, quaternion wxyz", "world"),
        "tcp_to_cube": Quantity("m", "world"),
        "cube_to_goal": Quantity("m", "world"),
    }
    reward_terms = {
        "reach": "1 - tanh(5 d), d from TCP to cube",
        "grasp": "1 while grasped",
        "place": "1 - tanh(5 d) while grasped, d from cube to goal",
        "still": "1 - tanh(5 s) while at the goal, s the norm of the arm's joint speeds",
        "success": "what is missing to 5, in success",
    }

    @dataclass(frozen=True)
    class Config:
        cube_half_size: float = 0.02  # [m]
        spawn_half_size: float = 0.1  # [m]
        goal_height: float = 0.3  # [m] the goal's centre is up to this far above the cube's resting height
        goal_radius: float = 0.025  # [m]
        still_speed: float = 0.2  # [rad/s]

    def scene(self, b: SceneBuilder) -> PickCubeHandles:
        table(b)
        robot = b.robot()
        cube = b.box("cube", half_size=(self.config.cube_half_size,) * 3, rgba=(0.85, 0.1, 0.1, 1))
        return PickCubeHandles(
            robot=robot,
            cube=cube,
            grasp=b.grasp(robot, cube),
            goal=b.variable("goal", (3,)),
            marker=b.marker("goal_marker", size=(self.config.goal_radius,), rgba=(0.1, 0.8, 0.2, 0.5)),
        )

    def start(self, h: PickCubeHandles, ep: Episode) -> None:
        c = self.config
        noisy_rest(h.robot, ep)
        spot = ep.rng.uniform("cube/xy", -c.spawn_half_size, c.spawn_half_size, (2,))
        cube = torch.cat([spot, torch.full((h.n, 1), c.cube_half_size)], 1)
        h.cube.set_pose(cube, full_turn(ep, "cube/yaw"))
        # of a few goals the first that the cube is not at already
        low = torch.tensor([-c.spawn_half_size, -c.spawn_half_size, c.cube_half_size])
        high = torch.tensor([c.spawn_half_size, c.spawn_half_size, c.cube_half_size + c.goal_height])
        goals = ep.rng.uniform("goal", low, high, (8, 3))
        goal = first_valid(goals, norm(goals - cube[:, None]) > 2 * c.goal_radius)
        h.goal.set(goal)
        h.marker.set_pose(goal)

    @per_step
    def tcp_to_cube(self, h: PickCubeHandles) -> Tensor:
        return h.cube.pos - h.robot.tcp_pos

    @per_step
    def cube_to_goal(self, h: PickCubeHandles) -> Tensor:
        return h.goal.value - h.cube.pos

    @per_step
    def distance_to_goal(self, h: PickCubeHandles) -> Tensor:
        return norm(self.cube_to_goal(h))

    def evaluate(self, h: PickCubeHandles) -> dict[str, Tensor]:
        is_placed = self.distance_to_goal(h) <= constant(self.config.goal_radius)
        return {
            "success": is_placed & is_still(h.robot, self.config.still_speed),
            "is_placed": is_placed,
            "is_grasped": h.grasp.value,
        }

    def observe(self, h: PickCubeHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose, "goal_pos": h.goal.value, "is_grasped": h.grasp.value},
            "privileged": {
                "cube_pose": h.cube.pose,
                "tcp_to_cube": self.tcp_to_cube(h),
                "cube_to_goal": self.cube_to_goal(h),
            },
        }

    def reward(self, h: PickCubeHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        distances = norm(self.tcp_to_cube(h)), self.distance_to_goal(h), norm(h.robot.arm_qvel)
        reach, place, still = closeness(distances, 5.0)
        grasp = ev["is_grasped"].float()
        terms = {"reach": reach, "grasp": grasp, "place": grasp * place, "still": ev["is_placed"] * still}
        return bonus(terms, ev["success"], self.reward_max)

    def expert(self, h: PickCubeHandles) -> list[Waypoint]:
        down = top_down(h.cube.quat, h.robot)
        near = 0.006 if h.robot.arm.gravcomp else 0.012  # an arm that sags comes no nearer
        goal = h.goal.value + h.robot.tcp_pos - h.cube.pos  # where the TCP is when the held cube is at the goal
        return [
            Waypoint(name="above", pose=pose(above(h.cube.pos, 0.06), down), gripper=1, pos_tol=0.02, speed=1.0),
            Waypoint(name="down", pose=pose(h.cube.pos, down), gripper=1, pos_tol=near),
            Waypoint(name="close", pose=pose(h.cube.pos, down), gripper=-1, pos_tol=0.01),
            Waypoint(name="lift", pose=pose(above(h.robot.tcp_pos, 0.03), h.robot.tcp_quat), gripper=-1, pos_tol=0.02),
            Waypoint(name="goal", pose=pose(goal, h.robot.tcp_quat), gripper=-1).hold(),
        ]
