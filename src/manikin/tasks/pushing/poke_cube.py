"""PokeCube-v1."""

from __future__ import annotations

import math
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
from manikin.math import norm, pose, pose_inv, pose_mul, quat_from_yaw, quat_to_yaw
from manikin.toolkit import (
    GRASP,
    above,
    along_x,
    bonus,
    closeness,
    constant,
    is_still,
    noisy_rest,
    per_step,
    tilted,
)

__all__ = ["PokeCube"]


@dataclass
class PokeCubeHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    peg: Part
    cube: Part
    grasp: Grasp
    goal: Variable  # (3,) [m]
    marker: Marker


class PokeCube(Task):
    """Push a cube into a disc on the table with the head of a peg.

    Randomization: the peg's place, uniform in a square on the table, always pointing away from the robot; the cube's
    place, so far ahead of the peg's head and anywhere across, and its turn about the vertical; the disc lies
    ``goal_ahead`` in front of the cube; the arm's joints, a little noise about rest.
    Success: the cube's centre is over the disc and the arm stands still. What pushed it there does not count.

    Numbers: ManiSkill3 3.0.1, but 100 control steps instead of 50: pointing straight down the arm does not reach the
    farthest discs, and to tilt the gripper takes time. ManiSkill3's observation ``goal_pos`` holds the peg's place;
    here it is that of the disc. Its peg's head is ahead of the peg along the world's x axis, wherever the peg points;
    here it is the peg's end, and ``published_head`` gives the other. Friction is 1.
    """

    id = "PokeCube-v1"
    horizon_s = 5.0
    labels = GRASP
    instruction = "push the red cube into the disc with the blue peg"
    robots = ("panda",)
    reward_max = 10.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "is_grasped": Quantity("0 or 1", "", "whether the gripper holds the peg"),
        "goal_pos": Quantity("m", "world"),
        "peg_pose": Quantity("m, quaternion wxyz", "world", "x from tail to head"),
        "cube_pose": Quantity("m, quaternion wxyz", "world"),
        "tcp_to_peg": Quantity("m", "world"),
        "peg_to_cube": Quantity("m", "world"),
        "head_to_cube": Quantity("m", "world", "from the peg's head"),
        "cube_to_goal": Quantity("m", "world"),
    }
    reward_terms = {
        "reach": "2 (1 - tanh(5 d)), d from TCP to peg; 4 while the peg is held at its middle",
        "align": "while held there, (1 - tanh(5 e)) + (1 - tanh(5 a)), e from the peg's head to the cube along the "
        "table, a the angle between both [rad]; 3 once the head fits the cube",
        "push": "while held there and the head fits, 1 - tanh(5 d), d from cube to goal",
        "still": "1 - tanh(5 s) while the cube is over the disc, s the norm of the arm's joint speeds",
        "success": "what is missing to 10, in success",
    }

    @dataclass(frozen=True)
    class Config:
        peg_half_length: float = 0.12  # [m]
        peg_half_width: float = 0.025  # [m]
        cube_half_size: float = 0.02  # [m]
        spawn_half_size: float = 0.1  # [m]
        cube_ahead: float = 0.1  # [m] from the peg's head to the cube at the start
        cube_turn: float = math.pi / 6  # [rad] either way
        goal_ahead: float = 0.1  # [m] from cube to goal at the start
        goal_radius: float = 0.05  # [m]
        hold_tol: float = 0.01  # [m] the peg counts as held at its middle within this
        fit_gap: float = 0.005  # [m] the head fits the cube when it is at most this far from its face ...
        fit_angle: float = 0.05  # [rad] ... and turned at most this much against it
        still_speed: float = 0.2  # [rad/s]
        published_head: bool = False  # whether the peg's head is where ManiSkill3 takes it to be

    def scene(self, b: SceneBuilder) -> PokeCubeHandles:
        c = self.config
        table(b, human_camera=((0.85, 0.65, 0.5), (0.12, 0, 0.05)))
        self._ahead = torch.tensor([c.peg_half_length, 0.0, 0.0])
        robot = b.robot()
        size = (c.peg_half_length, c.peg_half_width, c.peg_half_width)
        peg = b.box("peg", half_size=size, rgba=(0.05, 0.16, 0.63, 1))
        return PokeCubeHandles(
            robot=robot,
            peg=peg,
            cube=b.box("cube", half_size=(c.cube_half_size,) * 3, rgba=(0.85, 0.1, 0.1, 1)),
            grasp=b.grasp(robot, peg),
            goal=b.variable("goal", (3,)),
            marker=b.marker("goal_marker", shape="cylinder", size=(c.goal_radius, 0.001), rgba=(0.1, 0.8, 0.2, 0.6)),
        )

    def start(self, h: PokeCubeHandles, ep: Episode) -> None:
        c, rng = self.config, ep.rng
        noisy_rest(h.robot, ep)
        spot = rng.uniform("peg/xy", -c.spawn_half_size, c.spawn_half_size, (2,))
        h.peg.set_pose(torch.cat([spot, torch.full((h.n, 1), c.peg_half_width)], 1))
        x = spot[:, 0] + c.peg_half_length + c.cube_ahead
        y = rng.uniform("cube/y", -c.spawn_half_size, c.spawn_half_size)
        cube = torch.stack([x, y, torch.full((h.n,), c.cube_half_size)], 1)
        h.cube.set_pose(cube, quat_from_yaw(rng.uniform("cube/yaw", -c.cube_turn, c.cube_turn)))
        goal = torch.stack([x + c.goal_ahead, y, torch.zeros(h.n)], 1)
        h.goal.set(goal)
        h.marker.set_pose(goal)

    @per_step
    def head_to_cube(self, h: PokeCubeHandles) -> Tensor:
        """(n, 3) [m]"""
        c, peg = self.config, h.peg
        ahead = self._ahead if c.published_head else c.peg_half_length * along_x(peg.quat)
        return h.cube.pos - (peg.pos + ahead)

    @per_step
    def cube_to_goal(self, h: PokeCubeHandles) -> Tensor:
        return h.goal.value - h.cube.pos

    @per_step
    def gaps(self, h: PokeCubeHandles) -> tuple[Tensor, Tensor]:
        """(n,) [m] from head to cube along the table, and (n,) [rad] between them about the vertical."""
        peg, cube = quat_to_yaw(torch.stack((h.peg.quat, h.cube.quat)))
        return norm(self.head_to_cube(h)[:, :2]), (peg - cube).abs()

    def evaluate(self, h: PokeCubeHandles) -> dict[str, Tensor]:
        c = self.config
        placed = norm(self.cube_to_goal(h)[:, :2]) < constant(c.goal_radius)
        gap, angle = self.gaps(h)
        fits = (angle < constant(c.fit_angle)) & (gap <= constant(c.cube_half_size + c.fit_gap))
        return {
            "success": placed & is_still(h.robot, c.still_speed),
            "is_placed": placed,
            "is_fit": fits,
            "is_grasped": h.grasp.value,
        }

    def observe(self, h: PokeCubeHandles) -> dict[str, dict[str, Tensor]]:
        peg, cube = h.peg.pos, h.cube.pos
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose, "is_grasped": h.grasp.value, "goal_pos": h.goal.value},
            "privileged": {
                "peg_pose": h.peg.pose,
                "cube_pose": h.cube.pose,
                "tcp_to_peg": peg - h.robot.tcp_pos,
                "peg_to_cube": cube - peg,
                "head_to_cube": self.head_to_cube(h),
                "cube_to_goal": self.cube_to_goal(h),
            },
        }

    def reward(self, h: PokeCubeHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        away = norm(h.peg.pos - h.robot.tcp_pos)
        gap, angle = self.gaps(h)
        speed = norm(h.robot.arm_qvel)
        reach, near, aligned, push, still = closeness((away, gap, angle, norm(self.cube_to_goal(h)), speed), 5.0)
        held = ev["is_grasped"] & (away < constant(self.config.hold_tol))
        fits = held & ev["is_fit"]
        terms = {
            "reach": torch.where(held, constant(4.0), constant(2.0) * reach),
            "align": torch.where(fits, constant(3.0), held * (near + aligned)),
            "push": fits * push,
            "still": ev["is_placed"] * still,
        }
        return bonus(terms, ev["success"], self.reward_max)

    def expert(self, h: PokeCubeHandles) -> list[Waypoint]:
        c, peg, cube = self.config, h.peg.pos, h.cube.pos
        down = tilted(h.robot, 0.5)  # pointing straight down, the arm does not reach the farthest discs
        in_hand = pose_mul(pose_inv(h.peg.pose), h.robot.tcp_pose)
        # the flat head turns the cube to itself while it pushes it straight ahead
        straight = quat_from_yaw(torch.zeros(h.n))

        def head_at(point: Tensor) -> Tensor:  # TCP pose that brings the head there
            middle = point - self._ahead
            middle[:, 2] = c.peg_half_width + 0.002
            return pose_mul(pose(middle, straight), in_hand)

        back = torch.tensor([c.cube_half_size, 0.0, 0.0])
        before, pushed = head_at(cube - 2.5 * back), head_at(h.goal.value - 1.5 * back)
        return [
            Waypoint(name="above", pose=pose(above(peg, 0.05), down), gripper=1, pos_tol=0.03, rot_tol=0.2, speed=1.0),
            Waypoint(name="down", pose=pose(peg, down), gripper=1, pos_tol=0.006),
            Waypoint(name="close", pose=pose(peg, down), gripper=-1, pos_tol=0.01),
            Waypoint(name="before", pose=before, gripper=-1, pos_tol=0.01, rot_tol=0.1, speed=1.0),
            Waypoint(name="push", pose=pushed, gripper=-1, speed=0.3).hold(),
        ]
