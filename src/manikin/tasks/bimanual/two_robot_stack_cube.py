"""TwoRobotStackCube-v2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from manikin import (
    Episode,
    Grasp,
    Handles,
    Marker,
    Part,
    Physics,
    Quantity,
    Robot,
    SceneBuilder,
    Task,
    Variable,
    Waypoint,
)
from manikin.arenas.table import table
from manikin.math import atan2, norm, pose
from manikin.toolkit import (
    ONE,
    ZERO,
    above,
    aside,
    base_yaw,
    closeness,
    constant,
    finger_gap,
    full_turn,
    lies_on,
    noisy_rest,
    tilted,
    top_down,
    transport,
    two_robots,
)

__all__ = ["TwoRobotStackCube"]

_LEAVE = 0.2  # [m] the line that the second arm goes back to
_LEAN = 0.45  # [rad] the expert's pushing hand is raised by this much, to reach further


@dataclass
class TwoRobotStackCubeHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot  # the first
    robots: tuple[Robot, Robot]
    blue: Part
    green: Part
    grasps: list[Grasp]  # of the first robot on blue, of the second on green
    goal: Variable  # (3,) [m]
    disc: Marker


class TwoRobotStackCube(Task):
    """The second arm brings the green cube to a disc, the first puts the blue cube on it.

    Randomization: the places of the cubes, each uniform in a square before its arm, and their turn about the vertical;
    where the disc is, along the table; the arms' joints, a little noise about rest.
    Success: the blue cube lies on the green one, the green one's centre is in the disc, and neither is held.

    Numbers: ManiSkill3 3.0.1, its code (its description has the disc in the middle), but 200 control steps instead of
    100. The disc is at the edge of what the second arm reaches, so its expert pushes.
    """

    id = "TwoRobotStackCube-v2"
    horizon_s = 10.0
    labels = transport("is_stacked")
    instruction = "push the green cube onto the disc with one arm and stack the blue cube on it with the other"
    robot_count = 2
    robots = ("panda,panda",)
    robot_needs = ("arm", "gripper")
    # at 100 Hz one stack of six falls, and with stiffer contacts one of twenty
    physics = Physics(hz=200, impratio=100, solref=(0.01, 1.0))
    reward_max = 10.0
    observations = {
        "robot0_tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "robot1_tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "goal_pos": Quantity("m", "world"),
        "blue_pose": Quantity("m, quaternion wxyz", "world"),
        "green_pose": Quantity("m, quaternion wxyz", "world"),
        "robot0_tcp_to_blue": Quantity("m", "world"),
        "robot1_tcp_to_green": Quantity("m", "world"),
        "blue_to_green": Quantity("m", "world"),
    }
    reward_terms = {
        "reach": "while the blue cube is not held: a quarter of (1 - tanh(5 d)) + (1 - tanh(5 e)), d from the first "
        "TCP to the blue cube, e from the second TCP to 2.5 cm behind the green cube",
        "push": "held, the green cube not in the disc: 2.5 + half of 1 - tanh(5 d), d from the green cube to the disc",
        "place": "held, the green cube in the disc: 4 + 2 (1 - tanh(5 d)) + (1 - tanh(5 y)), d from the blue cube to "
        "its place on the green one, y from the second TCP to its line of retreat",
        "release": "stacked in the disc: 8 + the mean over both grippers of how far they are open (1 where they hold "
        "nothing)",
        "success": "10 in success",
    }

    @dataclass(frozen=True)
    class Config:
        cube_half_size: float = 0.02  # [m]
        spawn_half_size: float = 0.05  # [m] of the squares in which the cubes are, and of the disc's range along x
        spawn_away: float = 0.15  # [m] of the squares' centres from the middle
        goal_y: float = -0.1  # [m]
        goal_radius: float = 0.06  # [m]
        stack_tol: float = 0.005  # [m] beyond half a cube's diagonal sideways, and in height

    def scene(self, b: SceneBuilder) -> TwoRobotStackCubeHandles:
        table(b, human_camera=((0.9, 0.5, 0.6), (-0.1, 0, 0.1)))
        c = self.config
        half = (c.cube_half_size,) * 3
        robots = two_robots(b, arrangement="opposed", away=0.75, height=0.0, level=0.0)
        blue = b.box("blue", half_size=half, rgba=(0.05, 0.16, 0.63, 1))
        green = b.box("green", half_size=half, rgba=(0.1, 0.65, 0.15, 1))
        self._up = torch.tensor([0.0, 0.0, 2 * c.cube_half_size])
        self._behind = torch.tensor([0.0, c.cube_half_size + 0.005, 0.0])
        return TwoRobotStackCubeHandles(
            robot=robots[0],
            robots=robots,
            blue=blue,
            green=green,
            grasps=[b.grasp(robots[0], blue), b.grasp(robots[1], green)],
            goal=b.variable("goal", (3,)),
            disc=b.marker("disc", shape="cylinder", size=(c.goal_radius, 0.001), rgba=(0.8, 0.1, 0.1, 0.6)),
        )

    def start(self, h: TwoRobotStackCubeHandles, ep: Episode) -> None:
        c = self.config
        for robot in h.robots:
            noisy_rest(robot, ep)
        r, y = c.spawn_half_size, c.spawn_away
        height = torch.full((h.n, 1), c.cube_half_size)
        for cube, side in ((h.blue, -1), (h.green, 1)):
            low, high = torch.tensor([-r, side * y - r]), torch.tensor([r, side * y + r])
            spot = ep.rng.uniform(f"{cube.name}/xy", low, high, (2,))
            cube.set_pose(torch.cat([spot, height], 1), full_turn(ep, f"{cube.name}/yaw"))
        x = ep.rng.uniform("goal", -r, r, (1,))
        goal = torch.cat([x, torch.full((h.n, 1), c.goal_y), torch.full((h.n, 1), 0.001)], 1)
        h.goal.set(goal)
        h.disc.set_pose(goal)

    def evaluate(self, h: TwoRobotStackCubeHandles) -> dict[str, Tensor]:
        c = self.config
        stacked = lies_on(h.blue.pos, h.green.pos, c.cube_half_size, c.stack_tol)
        placed = norm((h.green.pos - h.goal.value)[:, :2]) < constant(c.goal_radius)
        first, second = (grasp.value for grasp in h.grasps)
        return {
            "success": stacked & placed & ~first & ~second,
            "is_stacked": stacked,
            "is_placed": placed,
            "is_grasped": first,
            "green_is_grasped": second,
        }

    def observe(self, h: TwoRobotStackCubeHandles) -> dict[str, dict[str, Tensor]]:
        one, two = h.robots
        return {
            "policy": {"robot0_tcp_pose": one.tcp_pose, "robot1_tcp_pose": two.tcp_pose, "goal_pos": h.goal.value},
            "privileged": {
                "blue_pose": h.blue.pose,
                "green_pose": h.green.pose,
                "robot0_tcp_to_blue": h.blue.pos - one.tcp_pos,
                "robot1_tcp_to_green": h.green.pos - two.tcp_pos,
                "blue_to_green": h.green.pos - h.blue.pos,
            },
        }

    def reward(self, h: TwoRobotStackCubeHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        one, two = h.robots
        blue, green = h.blue.pos, h.green.pos
        held, done = ev["is_grasped"], ev["is_stacked"] & ev["is_placed"]
        ways = [blue - one.tcp_pos, green + self._behind - two.tcp_pos, green + self._up - blue]
        disc = norm((green - h.goal.value)[:, :2])
        leave = (two.tcp_pos[:, 1] - constant(_LEAVE)).abs()
        lengths = torch.cat([norm(torch.stack(ways, 1)), torch.stack([disc, leave], 1)], 1)
        one_near, two_near, top, disc, leave = closeness(lengths, 5.0).unbind(1)
        opened = [
            torch.where(g, finger_gap(r), ONE) for g, r in zip((held, ev["green_is_grasped"]), h.robots, strict=True)
        ]
        pushing, placing = held & ~done & ~ev["is_placed"], held & ~done & ev["is_placed"]
        half = constant(0.5)
        return {
            "reach": torch.where(held | done, ZERO, constant(0.25) * (one_near + two_near)),
            "push": torch.where(pushing, constant(2.5) + half * disc, ZERO),
            "place": torch.where(placing, constant(4.0) + top + top + leave, ZERO),
            "release": torch.where(done & ~ev["success"], constant(8.0) + half * (opened[0] + opened[1]), ZERO),
            "success": ev["success"] * constant(10.0),
        }

    # ---- expert ----------------------------------------------------------------------------------------------------

    def expert(self, h: TwoRobotStackCubeHandles) -> list[tuple[Waypoint, ...]]:
        one, two = h.robots
        blue, green, tcp, quat = h.blue.pos, h.green.pos, one.tcp_pos, one.tcp_quat
        down = top_down(h.blue.quat, one)
        top = green + self._up + (tcp - blue)  # where the TCP is when the blue cube lies on the green one
        way = (h.goal.value - green) * torch.tensor([1.0, 1.0, 0.0])
        way = way / norm(way, keepdim=True)
        lean = tilted(two, _LEAN, roll=atan2(way[:, 1], way[:, 0]) - base_yaw(two))
        behind = green - way * 0.07
        end = h.goal.value * torch.tensor([1.0, 1.0, 0.0]) - way * 0.065
        end[:, 2] = behind[:, 2]
        back = two.tcp_pos - way * 0.05
        away = aside(two)

        def stage(name: str, to: Tensor, gripper: float, **options: Any) -> Waypoint:
            return Waypoint(name=name, pose=to, gripper=gripper, **{"pos_tol": 0.01, "rot_tol": 0.1, **options})

        up = stage("hold", pose(torch.cat([blue[:, :2], torch.full((h.n, 1), 0.2)], 1), quat), -1, timeout_s=0.0)
        narrow = -0.3  # the cube does not pass between the fingers, and cannot slip off them
        gone = stage("gone", away, 1, pos_tol=0.12, rot_tol=0.5)
        return [
            (
                stage("above", pose(above(blue, 0.05), down), 1, pos_tol=0.02, rot_tol=0.3, speed=1.0),
                stage("behind", pose(above(behind, 0.08), lean), narrow, pos_tol=0.03, rot_tol=0.3, speed=1.0),
            ),
            (
                stage("down", pose(blue, down), 1, pos_tol=0.006),
                stage("lower", pose(behind, lean), narrow, pos_tol=0.01),
            ),
            (stage("close", pose(blue, down), -1), stage("set", pose(behind, lean), narrow)),
            (
                stage("lift", pose(above(tcp, 0.12), quat), -1, pos_tol=0.03),
                stage("push", pose(end, lean), narrow, speed=0.2, timeout_s=4.0),
            ),
            (up, stage("back", pose(back, two.tcp_quat), narrow, pos_tol=0.02)),
            (up, gone),
            (stage("over", pose(above(top, 0.02), quat), -1, pos_tol=0.01, speed=0.6), gone),
            (stage("lay", pose(top, quat), -1, pos_tol=0.005, speed=0.3, timeout_s=1.0), gone),
            (stage("open", pose(tcp, quat), 1, dwell_s=0.3), gone),
            (stage("up", pose(above(tcp, 0.08), quat), 1).hold(), gone),
        ]
