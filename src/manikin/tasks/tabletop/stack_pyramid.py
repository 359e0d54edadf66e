"""StackPyramid-v1."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import torch
from torch import Tensor

from manikin import Episode, Grasp, Handles, Part, Physics, Quantity, Robot, SceneBuilder, Task, Waypoint
from manikin.arenas.table import table
from manikin.math import norm, pose, quat_from_yaw, quat_mul, quat_rotate_inv
from manikin.toolkit import (
    ONE,
    above,
    along_x,
    bearing,
    bonus,
    closeness,
    constant,
    full_turn,
    lies_on,
    noisy_rest,
    per_step,
    top_down,
    transport,
)

__all__ = ["StackPyramid"]


@dataclass
class StackPyramidHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    red: Part
    green: Part
    blue: Part
    grasps: list[Grasp]  # of red, green and blue


class StackPyramid(Task):
    """Put the red cube beside the green cube, the blue cube on both, and let go.

    Randomization: the places of the cubes, uniform in a rectangle and never overlapping; the cubes' turn about the
    vertical; the arm's joints, a little noise about rest.
    Success: red and green lie beside each other at one height, blue lies on both, all three are at rest, and the
    gripper holds none.

    Numbers: ManiSkill3 3.0.1, whose reward is sparse; the dense one is manikin's own. ManiSkill3 tests how far the
    cubes are apart sideways, and in height only that blue is more than 2 cm above or below the others. A tower of three
    or a blue cube under the others passes there, and the green cube may move or be held. ``published_success`` tests
    that. The cubes' friction is 1.
    """

    id = "StackPyramid-v1"
    horizon_s = 12.5
    labels = transport("is_stacked", grasps=2)
    instruction = "put the red cube next to the green cube and stack the blue cube on top of both"
    robots = ("panda",)
    physics = Physics(impratio=100)  # as StackCube
    reward_max = 10.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "is_grasped": Quantity("0 or 1", "", "whether the gripper holds a cube"),
        "red_pose": Quantity("m, quaternion wxyz", "world"),
        "green_pose": Quantity("m, quaternion wxyz", "world"),
        "blue_pose": Quantity("m, quaternion wxyz", "world"),
        "tcp_to_red": Quantity("m", "world"),
        "tcp_to_green": Quantity("m", "world"),
        "tcp_to_blue": Quantity("m", "world"),
        "red_to_green": Quantity("m", "world"),
        "green_to_blue": Quantity("m", "world"),
        "red_to_blue": Quantity("m", "world"),
    }
    reward_terms = {
        "red": "1 - tanh(5 d), d from TCP to red cube; while it is grasped 2 + 2 (1 - tanh(5 e)), e how much farther "
        "than a cube's side red and green are apart; 4 once they are beside each other and red is free",
        "blue": "then 1 - tanh(5 d), d from TCP to blue cube; while it is grasped 2 + 2 (1 - tanh(5 e)), e from it to "
        "its place on the others; 4 once it lies there",
        "release": "1 - tanh(10 v + w) once blue lies there and is free, v and w its speeds",
        "success": "what is missing to 10, in success",
    }

    @dataclass(frozen=True)
    class Config:
        cube_half_size: float = 0.02  # [m]
        spawn_half_size: tuple[float, float] = (0.1, 0.2)  # [m] of the rectangle that holds the cubes
        beside_tol: float = 0.005  # [m] between red and green, beyond a cube's diagonal
        stack_tol: float = 0.005  # [m] beyond half a cube's diagonal sideways, and in height
        still_linear: float = 0.01  # [m/s]
        still_angular: float = 0.5  # [rad/s]
        published_success: bool = False  # whether success is tested as ManiSkill3 does

    def scene(self, b: SceneBuilder) -> StackPyramidHandles:
        table(b, base_camera=((0.3, 0, 0.4), (-0.05, 0, 0.1)))
        half = (self.config.cube_half_size,) * 3
        self._up = torch.tensor([0.0, 0.0, 2 * self.config.cube_half_size])
        self._quarter = torch.tensor([sqrt(0.5), 0.0, 0.0, sqrt(0.5)])
        robot = b.robot()
        red = b.box("red", half_size=half, rgba=(0.85, 0.1, 0.1, 1))
        green = b.box("green", half_size=half, rgba=(0.1, 0.65, 0.15, 1))
        blue = b.box("blue", half_size=half, rgba=(0.1, 0.2, 0.8, 1))
        grasps = [b.grasp(robot, cube) for cube in (red, green, blue)]
        return StackPyramidHandles(robot=robot, red=red, green=green, blue=blue, grasps=grasps)

    def start(self, h: StackPyramidHandles, ep: Episode) -> None:
        c = self.config
        noisy_rest(h.robot, ep)
        x, y = c.spawn_half_size
        spots = ep.place(3, low=(-x, -y), high=(x, y), gap=2 * sqrt(2) * c.cube_half_size, name="cubes/xy")
        height = torch.full((h.n, 1), c.cube_half_size)
        for k, cube in enumerate((h.red, h.green, h.blue)):
            cube.set_pose(torch.cat([spots[:, k], height], 1), full_turn(ep, f"{cube.name}/yaw"))

    @per_step
    def apart(self, h: StackPyramidHandles) -> Tensor:
        """(n,) [m] from red to green, along the table."""
        return norm((h.red.pos - h.green.pos)[:, :2])

    @per_step
    def top(self, h: StackPyramidHandles) -> Tensor:
        """(n, 3) [m] the blue cube's place in the middle of the others."""
        return 0.5 * (h.red.pos + h.green.pos) + self._up

    def _still(self, cube: Part) -> Tensor:
        c = self.config
        return (norm(cube.linvel) <= c.still_linear) & (norm(cube.angvel_body) <= c.still_angular)

    def evaluate(self, h: StackPyramidHandles) -> dict[str, Tensor]:
        c, red, green, blue = self.config, h.red.pos, h.green.pos, h.blue.pos
        red_held, green_held, blue_held = (grasp.value for grasp in h.grasps)
        still = self._still(h.red) & self._still(h.blue)
        reach = 2 * sqrt(2) * c.cube_half_size + c.beside_tol
        beside = self.apart(h) <= constant(reach)
        if c.published_success:
            offsets = torch.stack([blue - red, blue - green], 1)
            over = (norm(offsets[:, :, :2]) <= reach) & (offsets[:, :, 2].abs() > c.cube_half_size)
            stacked = beside & over.all(1)
            held = red_held | blue_held
        else:
            beside = beside & ((red - green)[:, 2].abs() <= constant(c.stack_tol))
            on_red, on_green = (lies_on(blue, one, c.cube_half_size, c.stack_tol) for one in (red, green))
            stacked = beside & on_red & on_green
            still = still & self._still(h.green)
            held = red_held | green_held | blue_held
        return {
            "success": stacked & still & ~held,
            "is_beside": beside,
            "is_stacked": stacked,
            "is_still": still,
            "is_red_grasped": red_held,
            "is_blue_grasped": blue_held,
            "is_grasped": red_held | green_held | blue_held,
        }

    def observe(self, h: StackPyramidHandles) -> dict[str, dict[str, Tensor]]:
        red, green, blue, tcp = h.red.pos, h.green.pos, h.blue.pos, h.robot.tcp_pos
        held = h.grasps[0].value | h.grasps[1].value | h.grasps[2].value
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose, "is_grasped": held},
            "privileged": {
                "red_pose": h.red.pose,
                "green_pose": h.green.pose,
                "blue_pose": h.blue.pose,
                "tcp_to_red": red - tcp,
                "tcp_to_green": green - tcp,
                "tcp_to_blue": blue - tcp,
                "red_to_green": green - red,
                "green_to_blue": blue - green,
                "red_to_blue": blue - red,
            },
        }

    def reward(self, h: StackPyramidHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        red_held, blue_held, stacked, tcp = (
            ev["is_red_grasped"],
            ev["is_blue_grasped"],
            ev["is_stacked"],
            h.robot.tcp_pos,
        )
        done = stacked | (ev["is_beside"] & ~red_held)
        farther = (self.apart(h) - 2 * self.config.cube_half_size).clamp_min(0.0)
        distances = (norm(h.red.pos - tcp), farther, norm(h.blue.pos - tcp), norm(self.top(h) - h.blue.pos))
        to_red, to_green, to_blue, to_top = closeness(distances, 5.0)
        two, four = constant(2.0), constant(4.0)
        red = torch.where(red_held, two + two * to_green, to_red)
        blue = torch.where(blue_held, two + two * to_top, to_blue)
        speed = torch.add(norm(h.blue.angvel_body), norm(h.blue.linvel), alpha=10)
        terms = {
            "red": torch.where(done, four, red),
            "blue": torch.where(stacked, four, done * blue),
            "release": (stacked & ~blue_held) * (ONE - torch.tanh(speed)),
        }
        return bonus(terms, ev["success"], self.reward_max)

    def expert(self, h: StackPyramidHandles) -> list[Waypoint]:
        red, blue, tcp, quat = h.red.pos, h.blue.pos, h.robot.tcp_pos, h.robot.tcp_quat
        side = 2 * self.config.cube_half_size
        # beside green on the face that is farthest from blue; the fingers open along green's other faces
        turn, spots = self._beside(h, side + 0.006)
        along = bearing(h.robot, spots)
        placed = spots + (tcp - red)
        across = top_down(turn, h.robot, symmetry=2, around=along)
        over_green = pose(above(placed, 0.05), across)
        onto = self.top(h) + (tcp - blue)
        swung = quat_mul(quat_from_yaw(bearing(h.robot, onto) - bearing(h.robot, tcp)), quat)
        take, take_blue = self._grasp(h, h.red, (h.green, h.blue)), self._grasp(h, h.blue, (h.red, h.green))
        over_both, done = above(onto, 0.03), above(tcp, 0.08)
        return [
            *_pick(red, take, tcp, quat, "red"),
            Waypoint(name="over green", pose=over_green, gripper=-1, pos_tol=0.02, rot_tol=0.2, timeout_s=3.0),
            Waypoint(name="align", pose=over_green, gripper=-1, pos_tol=0.003, rot_tol=0.03, dwell_s=0.1),
            Waypoint(name="lower", pose=pose(placed, across), gripper=-1, pos_tol=0.004, rot_tol=0.03, speed=0.3),
            Waypoint(name="open", pose=pose(tcp, quat), gripper=1, pos_tol=0.01, dwell_s=0.3),
            Waypoint(name="up", pose=pose(done, quat), gripper=1, pos_tol=0.03),
            *_pick(blue, take_blue, tcp, quat, "blue"),
            Waypoint(name="over both", pose=pose(over_both, swung), gripper=-1, pos_tol=0.02, rot_tol=0.2),
            Waypoint(name="align again", pose=pose(over_both, quat), gripper=-1, pos_tol=0.003, dwell_s=0.1),
            Waypoint(name="set down", pose=pose(onto, quat), gripper=-1, pos_tol=0.004, speed=0.3, timeout_s=1.0),
            Waypoint(name="let go", pose=pose(tcp, quat), gripper=1, pos_tol=0.01, dwell_s=0.3),
            Waypoint(name="leave", pose=pose(done, quat), gripper=1).hold(),
        ]

    def _beside(self, h: StackPyramidHandles, away: float) -> tuple[Tensor, Tensor]:
        """(n, 4) turn and (n, 3) place of the red cube beside that face of the green one that is farthest from blue."""
        turns = [h.green.quat]
        for _ in range(3):
            turns.append(quat_mul(turns[-1], self._quarter))
        spots = torch.stack([h.green.pos + away * along_x(turn) for turn in turns], 1)
        free = norm(spots - h.blue.pos[:, None])
        best = free.argmax(1)[:, None, None]
        chosen = torch.stack(turns, 1).gather(1, best.expand(-1, 1, 4))[:, 0]
        return chosen, spots.gather(1, best.expand(-1, 1, 3))[:, 0]

    def _grasp(self, h: StackPyramidHandles, cube: Part, others: tuple[Part, Part]) -> Tensor:
        """The grasp that turns the gripper least, or the next where an open finger would meet another cube."""
        around = bearing(h.robot, cube.pos)
        first = top_down(cube.quat, h.robot, around=around)
        second = top_down(quat_mul(cube.quat, self._quarter), h.robot, around=around)

        def room(quat: Tensor) -> Tensor:
            """(n,) [m] from the fingers' way to the nearer of the others."""
            local = [quat_rotate_inv(quat, other.pos - cube.pos).abs() for other in others]
            free = [torch.maximum(one[:, 0] - 0.045, one[:, 1] - 0.1) for one in local]
            return torch.minimum(*free).clamp_max(0.0)

        return torch.where((room(second) > room(first))[:, None], second, first)


def _pick(cube: Tensor, turn: Tensor, tcp: Tensor, quat: Tensor, name: str) -> list[Waypoint]:
    return [
        Waypoint(
            name=f"above {name}", pose=pose(above(cube, 0.07), turn), gripper=0.6, pos_tol=0.01, rot_tol=0.1, speed=1.0
        ),
        Waypoint(
            name=f"down to {name}", pose=pose(cube, turn), gripper=0.6, pos_tol=0.006, rot_tol=0.05, timeout_s=1.5
        ),
        Waypoint(name=f"close on {name}", pose=pose(cube, turn), gripper=-1, pos_tol=0.01, rot_tol=0.1, dwell_s=0.2),
        Waypoint(name=f"lift {name}", pose=pose(above(tcp, 0.08), quat), gripper=-1, pos_tol=0.03),
    ]
