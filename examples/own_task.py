"""A task of your own: one class. Touch a ball with the gripper.

python examples/own_task.py
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

import manikin
from manikin import ContactForce, Episode, Handles, Part, Quantity, Robot, SceneBuilder, Task, Waypoint
from manikin.arenas.table import table
from manikin.math import norm, pose
from manikin.policy.expert import ExpertPolicy


@dataclass
class TouchBallHandles(Handles):
    robot: Robot
    ball: Part
    press: ContactForce


@manikin.register
class TouchBall(Task):
    """Touch a ball that lies on the table.

    Randomization: the ball's place, uniform in a square.
    Success: the robot presses on the ball with at least ``min_force``.
    """

    id = "TouchBall-v1"
    horizon_s = 3.0
    instruction = "touch the ball"
    reward_max = 2.0
    observations = {"tcp_to_ball": Quantity("m", "world")}
    reward_terms = {"reach": "1 - tanh(5 d), d from TCP to ball", "touch": "1 in success"}

    @dataclass(frozen=True)
    class Config:
        radius: float = 0.03  # [m]
        spread: float = 0.1  # [m] half size of the square in which the ball lies
        min_force: float = 0.2  # [N]

    def scene(self, b: SceneBuilder) -> TouchBallHandles:
        table(b)
        robot = b.robot()
        ball = b.sphere("ball", radius=self.config.radius, rgba=(0.9, 0.5, 0.1, 1))
        return TouchBallHandles(robot=robot, ball=ball, press=b.contact_force(robot, ball))

    def start(self, h: TouchBallHandles, ep: Episode) -> None:
        h.robot.set_qpos(h.robot.keyframe())
        spot = ep.rng.uniform("ball", -self.config.spread, self.config.spread, (2,))
        h.ball.set_pose(torch.cat([spot, torch.full((h.n, 1), self.config.radius)], 1))

    def evaluate(self, h: TouchBallHandles) -> dict[str, Tensor]:
        return {"success": norm(h.press.value) >= self.config.min_force}

    def observe(self, h: TouchBallHandles) -> dict[str, dict[str, Tensor]]:
        return {"policy": {"tcp_to_ball": h.ball.pos - h.robot.tcp_pos}, "privileged": {}}

    def reward(self, h: TouchBallHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        near = 1 - torch.tanh(5 * norm(h.ball.pos - h.robot.tcp_pos))
        return {"reach": near, "touch": ev["success"].float()}

    def expert(self, h: TouchBallHandles) -> list[Waypoint]:
        down = torch.tensor([0.0, 1.0, 0.0, 0.0]).expand(h.n, 4)
        return [Waypoint(name="touch", pose=pose(h.ball.pos, down), gripper=-1, speed=0.5).hold()]


env = manikin.make("TouchBall-v1", num_envs=8, autoreset="disabled")
obs, info = env.reset(seed=0)
expert = ExpertPolicy(env)
expert.reset(torch.arange(env.num_envs))
done = torch.zeros(env.num_envs, dtype=torch.bool)
touched = done.clone()
while not done.all():
    action = expert.act(obs, env.instruction)[:, 0]
    obs, reward, terminated, truncated, info = env.step(action, active=~done)
    touched |= info["success"] & ~done
    done |= terminated | truncated
print(f"touched in {int(touched.sum())} of {env.num_envs} episodes")
assert touched.all()
env.close()
