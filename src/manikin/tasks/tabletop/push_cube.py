"""PushCube-v2."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import Episode, Handles, Marker, Part, Quantity, Robot, SceneBuilder, Task, Variable, Waypoint
from manikin.arenas.table import table
from manikin.math import norm, pose
from manikin.toolkit import above, bonus, closeness, facing_down, noisy_rest, per_step

__all__ = ["PushCube"]


@dataclass
class PushCubeHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    cube: Part
    goal: Variable  # (3,) [m]
    marker: Marker


class PushCube(Task):
    """Push a cube forward into a disc on the table.

    Randomization: the cube's place, uniform in a square on the table; the disc lies ``goal_ahead`` in front of it; the
    arm's joints, a little noise about rest.
    Success: the cube's centre is over the disc and not lifted.

    Numbers: ManiSkill3 3.0.1. The cube's friction is 1.
    """

    id = "PushCube-v2"
    family = "pushing"
    horizon_s = 2.5
    instruction = "push the cube forward into the red disc"
    robots = ("panda",)
    robot_needs = ("arm", "tool", "held base")
    reward_max = 4.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "goal_pos": Quantity("m", "world"),
        "cube_pose": Quantity("m, quaternion wxyz", "world"),
    }
    reward_terms = {
        "reach": "1 - tanh(5 d), d from TCP to a point behind the cube",
        "push": "1 - tanh(5 d) while the TCP is at that point, d from cube to goal along the table",
        "level": "the term push times 1 - tanh(5 |z|), z how far the cube is off its resting height",
        "success": "what is missing to 4, in success",
    }

    @dataclass(frozen=True)
    class Config:
        cube_half_size: float = 0.02  # [m]
        spawn_half_size: float = 0.1  # [m]
        goal_ahead: float = 0.2  # [m] from cube to goal at the start
        goal_radius: float = 0.1  # [m]
        contact_gap: float = 0.005  # [m] the TCP pushes this far behind the cube's face
        contact_tol: float = 0.01  # [m] and counts as there within this
        lift_tol: float = 0.005  # [m] the cube may be this far above its resting height

    def scene(self, b: SceneBuilder) -> PushCubeHandles:
        c = self.config
        table(b)
        self._behind = torch.tensor([-c.cube_half_size - c.contact_gap, 0.0, 0.0])
        return PushCubeHandles(
            robot=b.robot(),
            cube=b.box("cube", half_size=(c.cube_half_size,) * 3, rgba=(0.05, 0.16, 0.63, 1)),
            goal=b.variable("goal", (3,)),
            marker=b.marker("goal_marker", shape="cylinder", size=(c.goal_radius, 0.001), rgba=(0.8, 0.1, 0.1, 0.6)),
        )

    def start(self, h: PushCubeHandles, ep: Episode) -> None:
        c = self.config
        noisy_rest(h.robot, ep)
        spot = ep.rng.uniform("cube/xy", -c.spawn_half_size, c.spawn_half_size, (2,))
        h.cube.set_pose(torch.cat([spot, torch.full((h.n, 1), c.cube_half_size)], 1))
        goal = torch.cat([spot[:, :1] + c.goal_ahead, spot[:, 1:], torch.zeros(h.n, 1)], 1)
        h.goal.set(goal)
        h.marker.set_pose(goal)

    @per_step
    def distance_to_goal(self, h: PushCubeHandles) -> Tensor:
        """(n,) [m] along the table."""
        return norm((h.goal.value - h.cube.pos)[:, :2])

    def evaluate(self, h: PushCubeHandles) -> dict[str, Tensor]:
        c = self.config
        inside = self.distance_to_goal(h) < c.goal_radius
        low = h.cube.pos[:, 2] < c.cube_half_size + c.lift_tol
        return {"success": inside & low}

    def observe(self, h: PushCubeHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose, "goal_pos": h.goal.value},
            "privileged": {"cube_pose": h.cube.pose},
        }

    def reward(self, h: PushCubeHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        c, cube = self.config, h.cube.pos
        away = norm(cube + self._behind - h.robot.tcp_pos)
        lift = (cube[:, 2] - c.cube_half_size).abs()
        reach, near, level = closeness((away, self.distance_to_goal(h), lift), 5.0)
        push = (away < c.contact_tol) * near
        return bonus({"reach": reach, "push": push, "level": push * level}, ev["success"], self.reward_max)

    def expert(self, h: PushCubeHandles) -> list[Waypoint]:
        down, cube = facing_down(h.robot), h.cube.pos
        behind = cube + torch.tensor([-0.05, 0.0, 0.0])
        at_goal = torch.stack([h.goal.value[:, 0] - 0.03, cube[:, 1], cube[:, 2]], 1)
        return [
            Waypoint(name="over", pose=pose(above(behind, 0.08), down), gripper=-0.3, pos_tol=0.02, speed=1.0),
            Waypoint(name="behind", pose=pose(behind, down), gripper=-0.3, pos_tol=0.01),
            Waypoint(name="push", pose=pose(at_goal, down), gripper=-0.3, speed=0.3).hold(),
        ]
