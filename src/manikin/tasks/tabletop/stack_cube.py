"""StackCube-v2."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import torch
from torch import Tensor

from manikin import Episode, Grasp, Handles, Part, Physics, Quantity, Robot, SceneBuilder, Segment, Task, Waypoint
from manikin.arenas.table import table
from manikin.math import norm, pose, quat_from_yaw, quat_mul, quat_rotate_inv
from manikin.toolkit import (
    ONE,
    above,
    bearing,
    bonus,
    closeness,
    constant,
    finger_gap,
    full_turn,
    lies_on,
    noisy_rest,
    per_step,
    top_down,
    transport,
)

__all__ = ["StackCube"]


@dataclass
class StackCubeHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    red: Part
    green: Part
    grasp: Grasp


class StackCube(Task):
    """Put the red cube on the green cube and let go.

    Randomization: the places of both cubes, uniform in a rectangle and never touching, the rectangle itself shifted at
    random; both cubes' turn about the vertical; the arm's joints, a little noise about rest.
    Success: the red cube lies on the green one, at rest, and the gripper does not hold it.

    Numbers: ManiSkill3 3.0.1, but 100 control steps instead of 50: at 0.1 rad per step the arm needs up to 75 when the
    cubes lie far apart. The cubes' friction is 1.
    """

    id = "StackCube-v2"
    horizon_s = 5.0
    labels = transport("is_stacked")
    segments = (Segment("red", until="is_grasped", after_s=0.4), Segment("green", moves="red"))
    instruction = "stack the red cube on the green cube"
    robots = ("panda",)
    robot_needs = ("arm", "gripper")
    physics = Physics(impratio=100)  # 20 line searches are too few and the cubes sink into the table
    reward_max = 8.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "is_grasped": Quantity("0 or 1"),
        "red_pose": Quantity("m, quaternion wxyz", "world"),
        "green_pose": Quantity("m, quaternion wxyz", "world"),
        "tcp_to_red": Quantity("m", "world"),
        "tcp_to_green": Quantity("m", "world"),
        "red_to_green": Quantity("m", "world"),
    }
    reward_terms = {
        "reach": "2 (1 - tanh(5 d)), d from TCP to red cube; 2 once grasped or stacked",
        "grasp": "2 while grasped or stacked",
        "place": "1 - tanh(5 d) while grasped, d from red cube to its place on the green one; 2 once stacked",
        "release": "while stacked: half of how far the gripper is open (1 when it does not hold the cube) plus half of "
        "1 - tanh(10 v + w), v and w the red cube's speeds",
        "success": "what is missing to 8, in success",
    }

    @dataclass(frozen=True)
    class Config:
        cube_half_size: float = 0.02  # [m]
        spawn_half_size: tuple[float, float] = (0.1, 0.2)  # [m] of the rectangle that holds both cubes
        spawn_shift: float = 0.1  # [m] the rectangle's centre is up to this far from the origin, in x and in y
        spawn_margin: float = 0.001  # [m] between the circles around the cubes
        stack_tol: float = 0.005  # [m] beyond half a cube's diagonal sideways, and in height
        still_linear: float = 0.01  # [m/s]
        still_angular: float = 0.5  # [rad/s]

    def scene(self, b: SceneBuilder) -> StackCubeHandles:
        table(b)
        half = (self.config.cube_half_size,) * 3
        self._up = torch.tensor([0.0, 0.0, 2 * self.config.cube_half_size])
        self._quarter = torch.tensor([sqrt(0.5), 0.0, 0.0, sqrt(0.5)])
        robot = b.robot()
        red = b.box("red", half_size=half, rgba=(0.85, 0.1, 0.1, 1))
        green = b.box("green", half_size=half, rgba=(0.1, 0.65, 0.15, 1))
        return StackCubeHandles(robot=robot, red=red, green=green, grasp=b.grasp(robot, red))

    def start(self, h: StackCubeHandles, ep: Episode) -> None:
        c = self.config
        noisy_rest(h.robot, ep)
        x, y = c.spawn_half_size
        gap = 2 * (sqrt(2) * c.cube_half_size + c.spawn_margin)
        spots = ep.place(2, low=(-x, -y), high=(x, y), gap=gap, name="cubes/xy")
        spots = spots + ep.rng.uniform("cubes/shift", -c.spawn_shift, c.spawn_shift, (1, 2))
        height = torch.full((h.n, 1), c.cube_half_size)
        h.red.set_pose(torch.cat([spots[:, 0], height], 1), full_turn(ep, "red/yaw"))
        h.green.set_pose(torch.cat([spots[:, 1], height], 1), full_turn(ep, "green/yaw"))

    @per_step
    def speeds(self, h: StackCubeHandles) -> tuple[Tensor, Tensor]:
        """(n,) [m/s] and (n,) [rad/s] of the red cube."""
        return norm(h.red.linvel), norm(h.red.angvel_body)

    def evaluate(self, h: StackCubeHandles) -> dict[str, Tensor]:
        c = self.config
        stacked = lies_on(h.red.pos, h.green.pos, c.cube_half_size, c.stack_tol)
        linear, angular = self.speeds(h)
        still = (linear <= c.still_linear) & (angular <= c.still_angular)
        grasped = h.grasp.value
        return {"success": stacked & still & ~grasped, "is_stacked": stacked, "is_still": still, "is_grasped": grasped}

    def observe(self, h: StackCubeHandles) -> dict[str, dict[str, Tensor]]:
        red, green, tcp = h.red.pos, h.green.pos, h.robot.tcp_pos
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose, "is_grasped": h.grasp.value},
            "privileged": {
                "red_pose": h.red.pose,
                "green_pose": h.green.pose,
                "tcp_to_red": red - tcp,
                "tcp_to_green": green - tcp,
                "red_to_green": green - red,
            },
        }

    def reward(self, h: StackCubeHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        grasped, stacked, red = ev["is_grasped"], ev["is_stacked"], h.red.pos
        held = grasped | stacked
        place = grasped * closeness(norm(h.green.pos + self._up - red), 5.0)
        opened = torch.where(grasped, finger_gap(h.robot), ONE)
        linear, angular = self.speeds(h)
        still = ONE - torch.tanh(torch.add(angular, linear, alpha=10))
        two = constant(2.0)
        terms = {
            "reach": two * torch.where(held, ONE, closeness(norm(red - h.robot.tcp_pos), 5.0)),
            "grasp": two * held,
            "place": torch.where(stacked, two, place),
            "release": stacked * (opened + still) * 0.5,
        }
        return bonus(terms, ev["success"], self.reward_max)

    def expert(self, h: StackCubeHandles) -> list[Waypoint]:
        red, tcp, quat = h.red.pos, h.robot.tcp_pos, h.robot.tcp_quat
        down = self._grasp(h)
        top = h.green.pos + self._up + (tcp - red)  # where the TCP is when the red cube lies on the green one
        # the hand turns with the arm's base joint, which is quicker than turning against it
        swung = quat_mul(quat_from_yaw(bearing(h.robot, top) - bearing(h.robot, tcp)), quat)
        return [
            Waypoint(name="above", pose=pose(above(red, 0.04), down), gripper=1, pos_tol=0.02, rot_tol=0.3, speed=1.0),
            Waypoint(name="down", pose=pose(red, down), gripper=1, pos_tol=0.015, rot_tol=0.1, timeout_s=0.5),
            Waypoint(name="close", pose=pose(red, down), gripper=-1, pos_tol=0.01, rot_tol=0.1, timeout_s=0.3),
            Waypoint(name="lift", pose=pose(above(tcp, 0.07), quat), gripper=-1, pos_tol=0.035, timeout_s=0.5),
            Waypoint(name="over", pose=pose(above(top, 0.015), swung), gripper=-1, pos_tol=0.01, speed=1.0),
            Waypoint(name="lower", pose=pose(top, quat), gripper=-1, pos_tol=0.006, speed=0.4, timeout_s=0.6),
            Waypoint(name="open", pose=pose(tcp, quat), gripper=1, pos_tol=0.01, dwell_s=0.3),
            Waypoint(name="up", pose=pose(above(tcp, 0.06), quat), gripper=1).hold(),
        ]

    def _grasp(self, h: StackCubeHandles) -> Tensor:
        """The grasp that turns the gripper least, or the next where an open finger would meet the green cube."""
        red = h.red.pos
        around = bearing(h.robot, red)
        first = top_down(h.red.quat, h.robot, around=around)
        second = top_down(quat_mul(h.red.quat, self._quarter), h.robot, around=around)

        def blocked(quat: Tensor) -> Tensor:
            local = quat_rotate_inv(quat, h.green.pos - red).abs()
            return (local[:, 0] < 0.045) & (local[:, 1] < 0.1)

        return torch.where((blocked(first) & ~blocked(second))[:, None], second, first)
