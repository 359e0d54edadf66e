"""TwoRobotPickCube-v2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from manikin import Episode, Grasp, Handles, Marker, Part, Quantity, Robot, SceneBuilder, Task, Variable, Waypoint
from manikin.arenas.table import table
from manikin.math import norm, pose, quat_to_matrix
from manikin.toolkit import (
    ZERO,
    above,
    aside,
    closeness,
    constant,
    finger_gap,
    full_turn,
    is_still,
    noisy_rest,
    per_step,
    top_down,
    transport,
    two_robots,
)

__all__ = ["TwoRobotPickCube"]

_WIDE = 0.08  # [m] between the open fingers of the gripper that the reward was published for
_LEAVE = -0.2  # [m] the line that the first arm goes back to


@dataclass
class TwoRobotPickCubeHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot  # the first
    robots: tuple[Robot, Robot]
    cube: Part
    grasps: list[Grasp]  # one per robot
    goal: Variable  # (3,) [m]
    marker: Marker


class TwoRobotPickCube(Task):
    """Bring a cube to a goal in the air that only the second arm reaches, from where only the first arm reaches it.

    Randomization: the cube's place, uniform in a square before the first arm, and its turn about the vertical; the
    goal's place over a square before the second arm and its height; the arms' joints, a little noise about rest.
    Success: the cube's centre is within ``goal_radius`` of the goal and the second arm stands still.

    Numbers: ManiSkill3 3.0.1, but 200 control steps instead of 100: one arm hands over by putting the cube down in the
    middle, where the other takes it.
    """

    id = "TwoRobotPickCube-v2"
    horizon_s = 10.0
    labels = transport(grasps=2)
    instruction = "bring the red cube to the green goal, from one arm to the other"
    robot_count = 2
    robots = ("panda,panda",)
    robot_needs = ("arm", "gripper")
    reward_max = 21.0
    observations = {
        "robot0_tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "robot1_tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "goal_pos": Quantity("m", "world"),
        "robot0_is_grasped": Quantity("0 or 1"),
        "robot1_is_grasped": Quantity("0 or 1"),
        "cube_pose": Quantity("m, quaternion wxyz", "world"),
        "robot0_tcp_to_cube": Quantity("m", "world"),
        "robot1_tcp_to_cube": Quantity("m", "world"),
        "cube_to_goal": Quantity("m", "world"),
    }
    reward_terms = {
        "push": "until the cube is past the middle: half of (1 - tanh(5 d)) + (1 - tanh(5 w)), d from the first TCP to "
        "the cube, w what the cube lacks to 5 cm past the middle",
        "take": "past the middle, until the second arm holds it: 2 + (1 - tanh(5 d)), d from the second TCP to the "
        "cube, + half of (1 - tanh(5 t)) + (1 - tanh(5 o)), t the difference of its fingers' heights and o what its "
        "opening differs from 7 cm, + (1 - tanh(5 y)), y from the first TCP to its line of retreat",
        "bring": "held by the second arm: 8 + b, within 25 cm of the goal 12 + 2 b, with b = 2 (1 - tanh(5 d)) + "
        "(1 - tanh(q)), d from the second TCP to the goal, q the first arm's distance from its rest [rad]",
        "settle": "at the goal: 19 + the mean over both arms of 1 - tanh(5 s), s the norm of the joint speeds",
        "success": "21 in success",
    }

    @dataclass(frozen=True)
    class Config:
        cube_half_size: float = 0.02  # [m]
        spawn_half_size: float = 0.05  # [m] of the squares in which cube and goal are
        spawn_away: float = 0.15  # [m] of the squares' centres from the middle
        goal_height: float = 0.3  # [m] the goal's centre is up to this far above the cube's resting height
        goal_radius: float = 0.025  # [m]
        still_speed: float = 0.2  # [rad/s]

    def scene(self, b: SceneBuilder) -> TwoRobotPickCubeHandles:
        table(b, base_camera=((1.0, 0, 0.75), (0, 0, 0.25)), human_camera=((1.4, 0.8, 0.75), (0, 0.1, 0.1)))
        c = self.config
        robots = two_robots(b, arrangement="opposed", away=0.75, height=0.0, level=0.0)
        cube = b.box("cube", half_size=(c.cube_half_size,) * 3, rgba=(0.85, 0.1, 0.1, 1))
        return TwoRobotPickCubeHandles(
            robot=robots[0],
            robots=robots,
            cube=cube,
            grasps=[b.grasp(robot, cube) for robot in robots],
            goal=b.variable("goal", (3,)),
            marker=b.marker("goal_marker", size=(c.goal_radius,), rgba=(0.1, 0.8, 0.2, 0.5)),
        )

    def start(self, h: TwoRobotPickCubeHandles, ep: Episode) -> None:
        c = self.config
        for robot in h.robots:
            noisy_rest(robot, ep)
        r, y, z = c.spawn_half_size, c.spawn_away, c.cube_half_size
        spot = ep.rng.uniform("cube/xy", torch.tensor([-r, -y - r]), torch.tensor([r, -y + r]), (2,))
        h.cube.set_pose(torch.cat([spot, torch.full((h.n, 1), z)], 1), full_turn(ep, "cube/yaw"))
        goal = ep.rng.uniform("goal", torch.tensor([-r, y - r, z]), torch.tensor([r, y + r, z + c.goal_height]), (3,))
        h.goal.set(goal)
        h.marker.set_pose(goal)

    @per_step
    def _geometry(self, h: TwoRobotPickCubeHandles) -> tuple[Tensor, Tensor]:
        """Offsets from the TCPs to the cube and from the cube to the goal (n, 3, 3) [m], and their lengths."""
        cube = h.cube.pos
        offsets = torch.stack([cube - h.robots[0].tcp_pos, cube - h.robots[1].tcp_pos, h.goal.value - cube], 1)
        return offsets, norm(offsets)

    def evaluate(self, h: TwoRobotPickCubeHandles) -> dict[str, Tensor]:
        placed = self._geometry(h)[1][:, 2] <= constant(self.config.goal_radius)
        first, second = (grasp.value for grasp in h.grasps)
        return {
            "success": placed & is_still(h.robots[1], self.config.still_speed),
            "is_placed": placed,
            "is_grasped": first | second,
            "is_handed_over": second,
        }

    def observe(self, h: TwoRobotPickCubeHandles) -> dict[str, dict[str, Tensor]]:
        offsets, _ = self._geometry(h)
        one, two = h.robots
        return {
            "policy": {
                "robot0_tcp_pose": one.tcp_pose,
                "robot1_tcp_pose": two.tcp_pose,
                "goal_pos": h.goal.value,
                "robot0_is_grasped": h.grasps[0].value,
                "robot1_is_grasped": h.grasps[1].value,
            },
            "privileged": {
                "cube_pose": h.cube.pose,
                "robot0_tcp_to_cube": offsets[:, 0],
                "robot1_tcp_to_cube": offsets[:, 1],
                "cube_to_goal": offsets[:, 2],
            },
        }

    def reward(self, h: TwoRobotPickCubeHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        one, two = h.robots
        held, placed, across = ev["is_handed_over"], ev["is_placed"], h.cube.pos[:, 1] >= ZERO
        near = closeness(self._geometry(h)[1], 5.0)
        lack = torch.relu(constant(0.05) - h.cube.pos[:, 1])
        gap = finger_gap(two) * constant(_WIDE)
        tips = (gap * quat_to_matrix(two.tcp_quat)[:, 2, 1]).abs()
        opening = (gap - constant(0.07)).abs()
        leave = (one.tcp_pos[:, 1] - constant(_LEAVE)).abs()
        away = norm(h.goal.value - two.tcp_pos)
        lack, tips, opening, leave, goal = closeness(torch.stack([lack, tips, opening, leave, away], 1), 5.0).unbind(1)
        rest = closeness(norm(one.arm_qpos - one.keyframe("rest")), 1.0)
        bring = goal + goal + rest
        bring = torch.where(away < constant(0.25), bring + bring + constant(12.0), bring + constant(8.0))
        still = closeness(torch.stack([norm(r.arm_qvel) for r in h.robots], 1), 5.0).mean(1)
        half = constant(0.5)
        return {
            "push": torch.where(across | held | placed, ZERO, half * (near[:, 0] + lack)),
            "take": torch.where(
                across & ~held & ~placed, constant(2.0) + near[:, 1] + half * (tips + opening) + leave, ZERO
            ),
            "bring": torch.where(held & ~placed, bring, ZERO),
            "settle": torch.where(placed & ~ev["success"], constant(19.0) + still, ZERO),
            "success": ev["success"] * constant(21.0),
        }

    # ---- expert ----------------------------------------------------------------------------------------------------

    def expert(self, h: TwoRobotPickCubeHandles) -> list[tuple[Waypoint, ...]]:
        one, two = h.robots
        cube, tcp, quat = h.cube.pos, one.tcp_pos, one.tcp_quat
        down, take = top_down(h.cube.quat, one), top_down(h.cube.quat, two)
        middle = tcp - cube + torch.stack([cube[:, 0] * 0.5, torch.full((h.n,), 0.01), torch.ones(h.n)], 1)
        middle[:, 2] += self.config.cube_half_size - 1.0
        away, ready = (aside(robot) for robot in h.robots)
        goal = h.goal.value + two.tcp_pos - cube  # where the TCP is when the held cube is at the goal

        def stage(name: str, to: Tensor, gripper: float, **options: Any) -> Waypoint:
            return Waypoint(name=name, pose=to, gripper=gripper, **{"pos_tol": 0.01, **options})

        waits = stage("wait", ready, 1, pos_tol=0.1, rot_tol=0.5)
        gone = stage("gone", away, 1, pos_tol=0.1, rot_tol=0.5)
        return [
            (stage("above", pose(above(cube, 0.06), down), 1, pos_tol=0.02, speed=1.0), waits),
            (stage("down", pose(cube, down), 1, pos_tol=0.006), waits),
            (stage("close", pose(cube, down), -1), waits),
            (stage("lift", pose(above(tcp, 0.05), quat), -1, pos_tol=0.02), waits),
            (stage("over", pose(above(middle, 0.04), quat), -1, pos_tol=0.015), waits),
            (stage("lower", pose(middle, quat), -1, pos_tol=0.006, speed=0.3, timeout_s=1.0), waits),
            (stage("open", pose(tcp, quat), 1, dwell_s=0.2), waits),
            (stage("up", pose(above(tcp, 0.06), quat), 1, pos_tol=0.02), waits),
            (gone, stage("above2", pose(above(cube, 0.06), take), 1, pos_tol=0.02, speed=1.0)),
            (gone, stage("down2", pose(cube, take), 1, pos_tol=0.006)),
            (gone, stage("close2", pose(cube, take), -1)),
            (gone, stage("lift2", pose(above(two.tcp_pos, 0.03), two.tcp_quat), -1, pos_tol=0.02)),
            (gone, stage("goal", pose(goal, two.tcp_quat), -1).hold()),
        ]
