"""PullCube-v2."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import Episode, Handles, Marker, Part, Quantity, Robot, SceneBuilder, Task, Variable, Waypoint
from manikin.arenas.table import table
from manikin.math import norm, pose
from manikin.toolkit import above, bonus, closeness, facing_down, noisy_rest, per_step

__all__ = ["PullCube"]


@dataclass
class PullCubeHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    cube: Part
    goal: Variable  # (3,) [m]
    marker: Marker


class PullCube(Task):
    """Pull a cube towards the robot into a disc on the table.

    Randomization: the cube's place, uniform in a square on the table; the disc lies ``goal_back`` nearer to the robot;
    the arm's joints, a little noise about rest.
    Success: the cube's centre is over the disc.

    Numbers: ManiSkill3 3.0.1. The cube's friction is 1.
    """

    id = "PullCube-v2"
    family = "pushing"
    horizon_s = 2.5
    instruction = "pull the cube back into the red disc"
    robots = ("panda", "ur5e", "xarm7")
    robot_needs = ("arm", "tool", "held base")
    reward_max = 3.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "goal_pos": Quantity("m", "world"),
        "cube_pose": Quantity("m, quaternion wxyz", "world"),
    }
    reward_terms = {
        "reach": "1 - tanh(5 d), d from TCP to a point beyond the cube",
        "pull": "1 - tanh(5 d) while the TCP is at that point, d from cube to goal along the table",
        "success": "what is missing to 3, in success",
    }

    @dataclass(frozen=True)
    class Config:
        cube_half_size: float = 0.02  # [m]
        spawn_half_size: float = 0.1  # [m]
        goal_back: float = 0.2  # [m] from cube to goal at the start
        goal_radius: float = 0.1  # [m]
        contact_gap: float = 0.01  # [m] the TCP pulls this far beyond the cube's face
        contact_tol: float = 0.01  # [m] and counts as there within this

    def scene(self, b: SceneBuilder) -> PullCubeHandles:
        c = self.config
        table(b, base_camera=((-0.5, 0, 0.25), (0.2, 0, -0.5)))
        self._beyond = torch.tensor([c.cube_half_size + c.contact_gap, 0.0, 0.0])
        return PullCubeHandles(
            robot=b.robot(),
            cube=b.box("cube", half_size=(c.cube_half_size,) * 3, rgba=(0.05, 0.16, 0.63, 1)),
            goal=b.variable("goal", (3,)),
            marker=b.marker("goal_marker", shape="cylinder", size=(c.goal_radius, 0.001), rgba=(0.8, 0.1, 0.1, 0.6)),
        )

    def start(self, h: PullCubeHandles, ep: Episode) -> None:
        c = self.config
        noisy_rest(h.robot, ep)
        spot = ep.rng.uniform("cube/xy", -c.spawn_half_size, c.spawn_half_size, (2,))
        h.cube.set_pose(torch.cat([spot, torch.full((h.n, 1), c.cube_half_size)], 1))
        goal = torch.cat([spot[:, :1] - c.goal_back, spot[:, 1:], torch.zeros(h.n, 1)], 1)
        h.goal.set(goal)
        h.marker.set_pose(goal)

    @per_step
    def distance_to_goal(self, h: PullCubeHandles) -> Tensor:
        """(n,) [m] along the table."""
        return norm((h.goal.value - h.cube.pos)[:, :2])

    def evaluate(self, h: PullCubeHandles) -> dict[str, Tensor]:
        return {"success": self.distance_to_goal(h) < self.config.goal_radius}

    def observe(self, h: PullCubeHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose, "goal_pos": h.goal.value},
            "privileged": {"cube_pose": h.cube.pose},
        }

    def reward(self, h: PullCubeHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        away = norm(h.cube.pos + self._beyond - h.robot.tcp_pos)
        reach, near = closeness((away, self.distance_to_goal(h)), 5.0)
        pull = (away < self.config.contact_tol) * near
        return bonus({"reach": reach, "pull": pull}, ev["success"], self.reward_max)

    def expert(self, h: PullCubeHandles) -> list[Waypoint]:
        down, cube = facing_down(h.robot), h.cube.pos
        beyond = cube + torch.tensor([0.05, 0.0, 0.0])
        at_goal = torch.stack([h.goal.value[:, 0] + 0.03, cube[:, 1], cube[:, 2]], 1)
        return [
            Waypoint(name="over", pose=pose(above(beyond, 0.07), down), gripper=-1, pos_tol=0.03, speed=1.0),
            Waypoint(name="beyond", pose=pose(beyond, down), gripper=-1, pos_tol=0.01),
            Waypoint(name="pull", pose=pose(at_goal, down), gripper=-1, speed=0.3).hold(),
        ]
