"""PlaceSphere-v2."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import Episode, Grasp, Handles, Part, Quantity, Robot, SceneBuilder, Task, Waypoint
from manikin.arenas.table import table
from manikin.math import norm, pose, quat_from_yaw, quat_mul
from manikin.props.bin import open_bin
from manikin.toolkit import (
    ONE,
    above,
    bearing,
    bonus,
    closeness,
    facing_down,
    finger_gap,
    is_still,
    noisy_rest,
    transport,
)

__all__ = ["PlaceSphere"]


@dataclass
class PlaceSphereHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    ball: Part
    bin: Part
    grasp: Grasp


class PlaceSphere(Task):
    """Put a ball into a shallow bin and let go.

    Randomization: the ball's place, uniform in a strip of the table near the robot; the bin's place, uniform in a field
    farther away; the arm's joints, a little noise about rest.
    Success: the ball lies in the bin, at rest, and the gripper does not hold it.

    Numbers: ManiSkill3 3.0.1; the bin stands fast, as there. The ball's friction is 1 and it resists rolling.
    """

    id = "PlaceSphere-v2"
    horizon_s = 2.5
    labels = transport()
    instruction = "put the blue ball into the bin"
    robots = ("panda",)
    robot_needs = ("arm", "gripper")
    reward_max = 13.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "bin_pos": Quantity("m", "world"),
        "is_grasped": Quantity("0 or 1"),
        "ball_pose": Quantity("m, quaternion wxyz", "world"),
        "tcp_to_ball": Quantity("m", "world"),
    }
    reward_terms = {
        "reach": "2 (1 - tanh(5 d)), d from TCP to ball; 2 once grasped or in the bin",
        "grasp": "2 while grasped or in the bin",
        "place": "1 - tanh(5 d) while grasped, d from the ball to its place in the bin; 2 once there",
        "release": "while in the bin: a third of how far the gripper is open, of 16 when it does not hold the ball",
        "still": "while in the bin: a third of 1 - tanh(10 v + w), v, w the ball's speeds; a third if the arm is still",
        "success": "what is missing to 13, in success",
    }

    @dataclass(frozen=True)
    class Config:
        radius: float = 0.02  # [m] of the ball
        rolling_friction: float = 0.0005  # [m]
        inner_half: float = 0.02  # [m] half the bin's inner side
        wall_half: float = 0.0025  # [m] half the thickness of the bin's walls and floor
        ball_x: tuple[float, float] = (-0.1, -0.05)  # [m]
        bin_x: tuple[float, float] = (0.0, 0.1)  # [m]
        spawn_half_y: float = 0.1  # [m] of both
        place_tol: float = 0.005  # [m] sideways, and in height
        still_linear: float = 0.01  # [m/s] of the ball
        still_angular: float = 0.5  # [rad/s] of the ball
        still_speed: float = 0.2  # [rad/s] of the arm

    def scene(self, b: SceneBuilder) -> PlaceSphereHandles:
        table(b, base_camera=((0.3, 0, 0.2), (-0.1, 0, 0)))
        c = self.config
        self._up = torch.tensor([0.0, 0.0, c.wall_half + c.radius])
        self._two, self._free = torch.tensor(2.0), torch.tensor(16.0)
        robot = b.robot()
        ball = b.sphere("ball", radius=c.radius, rgba=(0.05, 0.16, 0.63, 1))
        rolls = b.spec.geom("ball/0")  # resists rolling, or it would never come to rest
        rolls.condim, rolls.friction[2] = 6, c.rolling_friction
        return PlaceSphereHandles(
            robot=robot,
            ball=ball,
            bin=b.part("bin", open_bin(c.inner_half, c.wall_half), kind="kinematic", rgba=(0.75, 0.7, 0.6, 1)),
            grasp=b.grasp(robot, ball),
        )

    def start(self, h: PlaceSphereHandles, ep: Episode) -> None:
        c = self.config
        noisy_rest(h.robot, ep)
        for part, x, height in ((h.ball, c.ball_x, c.radius), (h.bin, c.bin_x, c.wall_half)):
            low, high = torch.tensor([x[0], -c.spawn_half_y]), torch.tensor([x[1], c.spawn_half_y])
            spot = ep.rng.uniform(f"{part.name}/xy", low, high, (2,))
            part.set_pose(torch.cat([spot, torch.full((h.n, 1), height)], 1))

    def evaluate(self, h: PlaceSphereHandles) -> dict[str, Tensor]:
        c, ball = self.config, h.ball
        away = (ball.pos - h.bin.pos) - self._up
        placed = (norm(away[:, :2]) <= c.place_tol) & (away[:, 2].abs() <= c.place_tol)
        still = (norm(ball.linvel) <= c.still_linear) & (norm(ball.angvel_body) <= c.still_angular)
        grasped = h.grasp.value
        return {"success": placed & still & ~grasped, "is_placed": placed, "is_still": still, "is_grasped": grasped}

    def observe(self, h: PlaceSphereHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose, "bin_pos": h.bin.pos, "is_grasped": h.grasp.value},
            "privileged": {"ball_pose": h.ball.pose, "tcp_to_ball": h.ball.pos - h.robot.tcp_pos},
        }

    def reward(self, h: PlaceSphereHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        grasped, placed, ball = ev["is_grasped"], ev["is_placed"], h.ball.pos
        held = grasped | placed
        still = 1.0 - torch.tanh(torch.add(norm(h.ball.angvel_body), norm(h.ball.linvel), alpha=10))
        third = placed * (1.0 / 3.0)
        terms = {
            "reach": 2.0 * torch.where(held, ONE, closeness(norm(ball - h.robot.tcp_pos), 5.0)),
            "grasp": 2.0 * held,
            "place": torch.where(placed, self._two, grasped * closeness(norm(h.bin.pos + self._up - ball), 5.0)),
            "release": third * torch.where(grasped, finger_gap(h.robot), self._free),
            "still": third * (still + is_still(h.robot, self.config.still_speed)),
        }
        return bonus(terms, ev["success"], self.reward_max)

    def expert(self, h: PlaceSphereHandles) -> list[Waypoint]:
        ball, tcp, quat = h.ball.pos, h.robot.tcp_pos, h.robot.tcp_quat
        down = quat_mul(quat_from_yaw(bearing(h.robot, ball)), facing_down(h.robot))
        top = h.bin.pos + self._up + (tcp - ball)
        swung = quat_mul(quat_from_yaw(bearing(h.robot, top) - bearing(h.robot, tcp)), quat)
        return [
            Waypoint(name="above", pose=pose(above(ball, 0.05), down), gripper=1, pos_tol=0.02, rot_tol=0.2, speed=1.0),
            Waypoint(name="down", pose=pose(ball, down), gripper=1, pos_tol=0.006, rot_tol=0.1, timeout_s=0.5),
            Waypoint(name="close", pose=pose(ball, down), gripper=-1, pos_tol=0.01, rot_tol=0.1, timeout_s=0.3),
            Waypoint(name="lift", pose=pose(above(tcp, 0.05), quat), gripper=-1, pos_tol=0.03, timeout_s=0.5),
            Waypoint(name="over", pose=pose(above(top, 0.018), swung), gripper=-1, pos_tol=0.008, timeout_s=1.0),
            Waypoint(name="lower", pose=pose(above(top, 0.001), quat), gripper=-1, pos_tol=0.008, timeout_s=0.2),
            Waypoint(name="open", pose=pose(tcp, quat), gripper=1).hold(),
        ]
