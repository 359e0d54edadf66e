"""RollBall-v1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import Episode, Handles, Marker, Part, Quantity, Robot, SceneBuilder, Task, Variable, Waypoint
from manikin.arenas.table import table
from manikin.math import atan2, norm, pose
from manikin.toolkit import ONE, base_yaw, bonus, closeness, constant, noisy_rest, per_step, tilted

__all__ = ["RollBall"]


@dataclass
class RollBallHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    ball: Part
    goal: Variable  # (3,) [m]
    reached: Variable  # 1 once the TCP has been behind the ball
    marker: Marker


class RollBall(Task):
    """Push a ball so that it rolls over a disc at the other end of the table.

    Randomization: the ball's place, uniform in a rectangle before the robot; the disc's place, uniform in another one
    at the far end; the arm's joints, a little noise about rest.
    Success: the ball's centre is over the disc; it may roll on.

    Numbers: ManiSkill3 3.0.1, whose documentation names other places than its code uses; these are the code's. It has
    80 control steps; here it is 140, as a ball that is pushed at 0.1 rad per step rolls at 0.3 m/s. There the reward
    notices that the TCP has been behind the ball, here each step does, with or without a reward. Nothing but contact
    slows the ball.
    """

    id = "RollBall-v1"
    horizon_s = 7.0
    instruction = "roll the blue ball into the green disc at the other end of the table"
    robots = ("panda",)
    robot_needs = ("arm", "tool", "held base")
    reward_max = 30.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "goal_pos": Quantity("m", "world"),
        "ball_pose": Quantity("m, quaternion wxyz", "world"),
        "ball_vel": Quantity("m/s", "world"),
        "tcp_to_ball": Quantity("m", "world"),
        "ball_to_goal": Quantity("m", "world"),
        "reached": Quantity("0 or 1", "", "whether the TCP has been behind the ball"),
    }
    reward_terms = {
        "reach": "1 - tanh(2 d), d from TCP to a point behind the ball as seen from the disc; 1 once it was there",
        "roll": "once it was there, 20 (1 - tanh(d)), d from ball to disc along the table",
        "success": "what is missing to 30, in success",
    }

    @dataclass(frozen=True)
    class Config:
        ball_radius: float = 0.035  # [m]
        ball_friction: float = 0.3  # sliding, on the table; with more a ball jams between table and fingers
        goal_radius: float = 0.1  # [m]
        middle_x: float = -0.1  # [m] of both rectangles and of the robot
        half_x: float = 0.3  # [m] of both rectangles
        ball_y: tuple[float, float] = (0.5, 0.7)  # [m]
        goal_y: tuple[float, float] = (-0.9, -0.7)  # [m]
        base_y: float = 1.0  # [m] of the robot, which faces the disc
        behind: float = 0.05  # [m] from the ball's surface to the point behind it
        behind_tol: float = 0.04  # [m] the TCP counts as there within this

    def scene(self, b: SceneBuilder) -> RollBallHandles:
        c = self.config
        table(b, base_camera=((-0.1, 0.9, 0.3), (0, 0, 0)), human_camera=((-1.1, 1.2, 0.9), (-0.1, 0.1, 0.0)))
        half = math.sqrt(0.5)
        return RollBallHandles(
            robot=b.robot(pos=(c.middle_x, c.base_y, 0.0), quat=(half, 0.0, 0.0, -half)),
            ball=b.sphere("ball", radius=c.ball_radius, friction=c.ball_friction, rgba=(0.05, 0.2, 0.8, 1)),
            goal=b.variable("goal", (3,)),
            reached=b.variable("reached"),
            marker=b.marker("goal_marker", shape="cylinder", size=(c.goal_radius, 0.001), rgba=(0.1, 0.8, 0.2, 0.6)),
        )

    def start(self, h: RollBallHandles, ep: Episode) -> None:
        c = self.config
        noisy_rest(h.robot, ep)
        low, high = c.middle_x - c.half_x, c.middle_x + c.half_x
        ball = ep.rng.uniform("ball/xy", torch.tensor([low, c.ball_y[0]]), torch.tensor([high, c.ball_y[1]]), (2,))
        h.ball.set_pose(torch.cat([ball, torch.full((h.n, 1), c.ball_radius)], 1))
        spot = ep.rng.uniform("goal/xy", torch.tensor([low, c.goal_y[0]]), torch.tensor([high, c.goal_y[1]]), (2,))
        goal = torch.cat([spot, torch.full((h.n, 1), 0.001)], 1)
        h.goal.set(goal)
        h.marker.set_pose(goal)

    @per_step
    def ball_to_goal(self, h: RollBallHandles) -> Tensor:
        return h.goal.value - h.ball.pos

    @per_step
    def distance_to_goal(self, h: RollBallHandles) -> Tensor:
        """(n,) [m] along the table."""
        return norm(self.ball_to_goal(h)[:, :2])

    @per_step
    def distance_behind(self, h: RollBallHandles) -> Tensor:
        """(n,) [m] from the TCP to the point behind the ball."""
        c, away = self.config, self.ball_to_goal(h)
        point = h.ball.pos - away * (constant(c.ball_radius + c.behind) / norm(away))[:, None]
        return norm(point - h.robot.tcp_pos)

    def advance(self, h: RollBallHandles) -> None:
        there = self.distance_behind(h) < constant(self.config.behind_tol)
        h.reached.set(torch.where(there, ONE, h.reached.value))

    def evaluate(self, h: RollBallHandles) -> dict[str, Tensor]:
        return {"success": self.distance_to_goal(h) < constant(self.config.goal_radius)}

    def observe(self, h: RollBallHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose, "goal_pos": h.goal.value},
            "privileged": {
                "ball_pose": h.ball.pose,
                "ball_vel": h.ball.linvel,
                "tcp_to_ball": h.ball.pos - h.robot.tcp_pos,
                "ball_to_goal": self.ball_to_goal(h),
                "reached": h.reached.value,
            },
        }

    def reward(self, h: RollBallHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        reached = h.reached.value
        near = closeness(self.distance_behind(h), 2.0)
        terms = {
            "reach": torch.maximum(near, reached),
            "roll": reached * constant(20.0) * closeness(self.distance_to_goal(h), 1.0),
        }
        return bonus(terms, ev["success"], self.reward_max)

    def expert(self, h: RollBallHandles) -> list[Waypoint]:
        # the wrist turns while the arm pushes, which is faster than to push alone
        ball, away = h.ball.pos, self.ball_to_goal(h)
        ahead = away / norm(away)[:, None]
        heading = atan2(ahead[:, 1], ahead[:, 0]) - base_yaw(h.robot)

        def along(distance: float, height: float, tilt: float) -> Tensor:  # TCP pose so far beyond the ball's middle
            point = ball + distance * ahead
            point[:, 2] = height
            return pose(point, tilted(h.robot, tilt, roll=heading))

        over, behind, pushed = along(-0.085, 0.14, -0.4), along(-0.075, 0.03, -0.4), along(0.3, 0.03, 0.4)
        return [
            Waypoint(name="over", pose=over, gripper=-1, pos_tol=0.03, rot_tol=0.2, speed=1.0),
            Waypoint(name="behind", pose=behind, gripper=-1, pos_tol=0.01, rot_tol=0.1),
            Waypoint(name="push", pose=pushed, gripper=-1, speed=0.8, timeout_s=1.2),
            Waypoint(name="stop", pose=h.robot.tcp_pose, gripper=-1).hold(),
        ]
