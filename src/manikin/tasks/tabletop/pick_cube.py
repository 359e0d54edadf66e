"""PickCube-v1."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from manikin.arenas.table import table
from manikin.env.task import Quantity, Task
from manikin.math import norm, pose
from manikin.spec.plan import Waypoint
from manikin.tasks.labels import transport
from manikin.tasks.tabletop.common import (
    OncePerStep,
    above,
    bonus,
    closeness,
    constant,
    first_valid,
    full_turn,
    is_still,
    noisy_rest,
    top_down,
)

__all__ = ["PickCube"]


class PickCube(Task):
    """Pick up a cube and hold it at a goal in the air.

    Randomization: the cube's place, uniform in a square on the table, and its turn about the vertical; the goal's place
    over the same square and its height, never where the cube is; the arm's joints, a little noise about rest.
    Success: the cube's centre is within ``goal_radius`` of the goal and the arm stands still.
    """

    id = "PickCube-v1"
    horizon_s = 2.5
    labels = transport()
    instruction = "pick up the red cube and hold it at the green goal"
    robots = ("panda", "ur5e", "xarm7", "so101")
    robot_config = {
        name: {"cube_half_size": 0.0125, "spawn_half_size": 0.05, "goal_height": 0.08, "goal_radius": 0.015625}
        for name in ("koch", "so101")
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

    def scene(self, b):
        table(b)
        half = self.config.cube_half_size
        self._geometry = OncePerStep(self._measure)
        robot = b.robot()
        cube = b.box("cube", half_size=(half,) * 3, rgba=(0.85, 0.1, 0.1, 1))
        return {
            "robot": robot,
            "cube": cube,
            "grasp": b.grasp(robot, cube),
            "goal": b.variable("goal", (3,)),
            "marker": b.marker("goal_marker", size=(self.config.goal_radius,), rgba=(0.1, 0.8, 0.2, 0.5)),
        }

    def start(self, h, ep):
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

    def _measure(self, h):
        """Offsets TCP to cube and cube to goal (n, 3) [m], and lengths of both and of the joint speeds (n, 3)."""
        cube = h.cube.pos
        reach, place = cube - h.robot.tcp_pos, h.goal.value - cube
        lengths = torch.cat([norm(torch.stack([reach, place], 1)), norm(h.robot.arm_qvel, keepdim=True)], 1)
        return reach, place, lengths

    def evaluate(self, h):
        placed = self._geometry(h)[2][:, 1] <= constant(self.config.goal_radius)
        return {
            "success": placed & is_still(h.robot, self.config.still_speed),
            "is_placed": placed,
            "is_grasped": h.grasp.value,
        }

    def observe(self, h):
        reach, place, _ = self._geometry(h)
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose, "goal_pos": h.goal.value, "is_grasped": h.grasp.value},
            "privileged": {
                "cube_pose": h.cube.pose,
                "tcp_to_cube": reach,
                "cube_to_goal": place,
            },
        }

    def reward(self, h, ev, action):
        grasped = ev["is_grasped"].float()
        reach, place, still = closeness(self._geometry(h)[2], 5.0).unbind(1)
        terms = {
            "reach": reach,
            "grasp": grasped,
            "place": grasped * place,
            "still": ev["is_placed"] * still,
        }
        return bonus(terms, ev["success"], self.reward_max)

    def expert(self, h):
        down = top_down(h.cube.quat, h.robot)
        near = 0.006 if h.robot.arm.gravcomp else 0.012  # an arm that sags comes no nearer
        goal = h.goal.value + h.robot.tcp_pos - h.cube.pos  # where the TCP is when the held cube is at the goal
        return [
            Waypoint(name="above", pose=pose(above(h.cube.pos, 0.06), down), gripper=1, pos_tol=0.02, speed=1.0),
            Waypoint(name="down", pose=pose(h.cube.pos, down), gripper=1, pos_tol=near),
            Waypoint(name="close", pose=pose(h.cube.pos, down), gripper=-1, pos_tol=0.01),
            Waypoint(name="lift", pose=pose(above(h.robot.tcp_pos, 0.03), h.robot.tcp_quat), gripper=-1, pos_tol=0.02),
            Waypoint(name="goal", pose=pose(goal, h.robot.tcp_quat), gripper=-1, pos_tol=0.0, timeout_s=1e9),
        ]
