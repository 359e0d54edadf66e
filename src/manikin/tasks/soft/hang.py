"""Hang-v1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import Episode, Grasp, Handles, Part, Quantity, Robot, SceneBuilder, Shape, Task, Waypoint
from manikin.arenas.table import table
from manikin.math import atan2, norm, pose, quat_from_yaw, quat_mul
from manikin.props.soft.rope import Rope, rope
from manikin.toolkit import GRASP, above, bonus, closeness, constant, facing_down, noisy_rest, per_step

__all__ = ["Hang"]

_POST = 0.2  # [m] half the height of the posts that carry the rod; they go on below the table


@dataclass
class HangHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    rope: Rope
    rod: Part
    grasp: Grasp


def _rod(half: float, radius: float) -> list[Shape]:
    """A rod along x and the two posts at its ends [m]."""
    flat = (math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0)
    posts = [Shape(type="box", size=(0.006, 0.006, _POST), pos=(sign * half, 0, -_POST)) for sign in (-1, 1)]
    return [Shape(type="cylinder", size=(radius, half), quat=flat), *posts]


class Hang(Task):
    """Hang a rope over a rod and let go of it.

    Randomization: the rod's place in a sector of a ring, and its height; the rope's place beside it, and its direction;
    the arm's joints, a little noise about rest.
    Success: the rope's ends are on opposite sides of the rod and below it; its highest point is no more than ``top``
    above the rod's axis and not below it; its lowest is more than ``bottom`` above the table; the gripper has let go,
    and no joint of the rope moves faster than ``calm_speed``.

    Model: ``links`` capsules with ball joints between them, which bend with a little stiffness and damping, cannot
    stretch, and do not touch one another; 100 physics steps per second. ManiSkill2's rope is of material points, which
    stretch and squash. Its rules are those above but for the last two conditions, which were not read. The rod there
    hangs in the air; here it stands on posts, and the rod is along x.
    """

    id = "Hang-v1"
    horizon_s = 9.0
    labels = GRASP
    instruction = "hang the rope over the rod"
    robots = ("panda",)
    reward_max = 8.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "is_grasped": Quantity("0 or 1", "", "whether the gripper holds the rope"),
        "rod_pose": Quantity("m, quaternion wxyz", "world", "x along the rod, origin in its middle"),
        "rope_points": Quantity("m", "world", "both ends and all joints of the rope, one after the other"),
    }
    reward_terms = {
        "reach": "1 - tanh(5 d), d from TCP to the rope's end nearer the rod",
        "grasp": "1 while grasped",
        "lift": "1 - tanh(5 d), d from the rope's highest point to 2 cm above the rod's axis, in height",
        "across": "2 min(a, b), a and b the lengths on the two sides of the rod as shares of half the rope, at least 0",
        "success": "what is missing to 8, in success",
    }

    @dataclass(frozen=True)
    class Config:
        length: float = 0.3  # [m] of the rope
        rope_radius: float = 0.006  # [m]
        links: int = 15  # pieces of the rope
        rod_half: float = 0.14  # [m]
        rod_radius: float = 0.01  # [m]
        rod_ring: tuple[float, float] = (0.2, 0.23)  # [m] from the middle of the table
        rod_angle: tuple[float, float] = (math.pi / 4, math.pi * 3 / 4)  # [rad]
        rod_height: tuple[float, float] = (0.2, 0.3)  # [m]
        rope_aside: float = 0.03  # [m] the rope starts so far to either side of the rod's middle
        rope_turn: float = 0.3  # [rad] either way from square to the rod
        rope_gap: tuple[float, float] = (0.08, 0.12)  # [m] from the rod to the rope's nearer end, along the table
        top: float = 0.05  # [m]
        bottom: float = 0.03  # [m]
        calm_speed: float = 0.5  # [rad/s]

    def scene(self, b: SceneBuilder) -> HangHandles:
        c = self.config
        table(b, human_camera=((0.6, -0.25, 0.5), (-0.08, 0.12, 0.12)))
        robot = b.robot()
        line = rope(b, "rope", length=c.length, radius=c.rope_radius, links=c.links)
        rod = b.part("rod", _rod(c.rod_half, c.rod_radius), kind="kinematic", friction=0.7, rgba=(0.55, 0.57, 0.6, 1))
        return HangHandles(robot=robot, rope=line, rod=rod, grasp=b.grasp(robot, line.part))

    def start(self, h: HangHandles, ep: Episode) -> None:
        c, rng = self.config, ep.rng
        noisy_rest(h.robot, ep)
        away, turn = rng.uniform("rod/ring", *c.rod_ring), rng.uniform("rod/angle", *c.rod_angle)
        rod = torch.stack([away * torch.cos(turn), away * torch.sin(turn), rng.uniform("rod/height", *c.rod_height)], 1)
        h.rod.set_pose(rod)
        aside = rng.uniform("rope/aside", -c.rope_aside, c.rope_aside)
        end = torch.stack([rod[:, 0] + aside, rod[:, 1] - rng.uniform("rope/gap", *c.rope_gap)], 1)
        yaw = rng.uniform("rope/yaw", -c.rope_turn, c.rope_turn) - math.pi / 2  # away from the rod
        h.rope.lay(torch.cat([end, torch.full((h.n, 1), c.rope_radius)], 1), quat_from_yaw(yaw))

    @per_step
    def sides(self, h: HangHandles) -> Tensor:
        """(n, 2) [m] how long the rope is on the nearer and on the further side of the rod."""
        across = h.rope.points[:, :, 1] - h.rod.pos[:, None, 1]
        beyond = ((across[:, 1:] + across[:, :-1]) > 0).float().sum(1) * (h.rope.length / h.rope.links)
        return torch.stack([h.rope.length - beyond, beyond], 1)

    def evaluate(self, h: HangHandles) -> dict[str, Tensor]:
        c, points, rod = self.config, h.rope.points, h.rod.pos
        ends = torch.stack([points[:, 0], points[:, -1]], 1) - rod[:, None]
        hangs = (ends[:, 0, 1] * ends[:, 1, 1] < 0) & (ends[:, :, 2] < 0).all(1)
        top, low = points[:, :, 2].amax(1) - rod[:, 2], points[:, :, 2].amin(1)
        hangs = hangs & (top >= 0) & (top <= constant(c.top)) & (low > constant(c.bottom))
        free = ~h.grasp.touches & (h.rope.speed < constant(c.calm_speed))
        return {"success": hangs & free, "is_hung": hangs, "is_grasped": h.grasp.value}

    def observe(self, h: HangHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose, "is_grasped": h.grasp.value},
            "privileged": {"rod_pose": h.rod.pose, "rope_points": h.rope.points.flatten(1)},
        }

    def reward(self, h: HangHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        points, grasped = h.rope.points, ev["is_grasped"].float()
        away = norm(points[:, 0] - h.robot.tcp_pos)
        short = (h.rod.pos[:, 2] + constant(0.02) - points[:, :, 2].amax(1)).abs()
        reach, lift = closeness((away, short), 5.0)
        across = self.sides(h).amin(1) * constant(2.0 / h.rope.length)
        return bonus(
            {"reach": reach, "grasp": grasped, "lift": lift, "across": constant(2.0) * across},
            ev["success"],
            self.reward_max,
        )

    def expert(self, h: HangHandles) -> list[Waypoint]:
        points, rod, half = h.rope.points, h.rod.pos, h.rope.length / 2
        ahead = points[:, 0] - points[:, 2]
        yaw = atan2(ahead[:, 1], ahead[:, 0])
        first, over = (quat_mul(quat_from_yaw(turn), facing_down(h.robot)) for turn in (yaw, yaw * 0 + math.pi / 2))
        held = above(points[:, 0] - 0.015 * ahead / norm(ahead)[:, None], 0.004)  # the fingers clear of the table
        lifted = torch.stack([points[:, 0, 0], rod[:, 1] - 0.06, rod[:, 2] + 0.08], 1)

        def beyond(y: float, z: float) -> Tensor:  # TCP pose so far across the rod and above it
            return pose(rod + torch.tensor([0.0, y, z]), over)

        return [
            Waypoint(name="above", pose=pose(above(held, 0.08), first), gripper=1, pos_tol=0.02, rot_tol=0.1),
            Waypoint(name="down", pose=pose(held, first), gripper=1, pos_tol=0.004),
            Waypoint(name="close", pose=pose(held, first), gripper=-1, pos_tol=0.02, dwell_s=0.5),
            Waypoint(name="lift", pose=pose(lifted, first), gripper=-1, pos_tol=0.02, rot_tol=0.2, speed=0.4),
            Waypoint(name="across", pose=beyond(0.1, 0.06), gripper=-1, pos_tol=0.02, rot_tol=0.2, speed=0.3),
            Waypoint(name="lower", pose=beyond(0.085, 0.08 - half), gripper=-1, pos_tol=0.01, rot_tol=0.1, speed=0.2),
            Waypoint(name="open", pose=beyond(0.085, 0.08 - half), gripper=1, pos_tol=0.02, rot_tol=0.2, dwell_s=0.5),
            Waypoint(name="away", pose=beyond(0.2, 0.08 - half), gripper=1, pos_tol=0.02, speed=0.2).hold(),
        ]
