"""TwoArmHandover-v2."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from manikin import Episode, Grasp, Handles, Robot, SceneBuilder, Uniform, VariantPart, Waypoint
from manikin.arenas.square_table import small_table
from manikin.math import (
    atan2,
    norm,
    pose,
    quat_conj,
    quat_from_matrix,
    quat_from_yaw,
    quat_mul,
    quat_rotate,
    quat_to_matrix,
)
from manikin.props.hammer import HANDLE_SHAPES, hammers
from manikin.tasks.robosuite.common import OFFSET, POSE, StagedTask, ready
from manikin.toolkit import ZERO, above, all_fingers_touch, closeness, constant, per_step, tilted, two_robots

__all__ = ["TwoArmHandover"]

_KINDS = 64  # hammers to draw from


@dataclass
class HandoverHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot  # the first
    robots: tuple[Robot, Robot]
    hammer: VariantPart
    whole: Grasp  # of the first robot, anywhere on the hammer
    handle: Grasp  # of the second robot, on the handle


class TwoArmHandover(StagedTask):
    """Pick up a hammer with the first arm and hand it to the second, by the handle.

    Randomization: the hammer's sizes, density and friction, one of 64 sets spread evenly over the published ranges; its
    place in a rectangle; it lies on one of its sides and points anywhere; the arms' joints, a little noise.
    Success: the second gripper holds the handle, the first one does not touch the hammer with both fingers, and the
    hammer is more than ``lift_height`` above the table.

    Numbers: robosuite 1.0. As published, a hammer's height is that of its handle's middle, less half the handle's width
    and less what the hammer reaches down when its head points up; one whose head points down is higher than it looks.
    At the start the head touches the table; robosuite's handle does, and the wider head begins up to 4 mm inside. The
    table is a strip that only the first arm can reach.
    """

    id = "TwoArmHandover-v2"
    family = "two-arms"
    instruction = "hand the hammer from one arm to the other"
    robot_count = 2
    robots = ("panda,panda", "baxter")
    reward_max = 2.0
    observations = {
        "robot0_tcp_pose": POSE,
        "robot1_tcp_pose": POSE,
        "hammer_pose": POSE,
        "robot0_tcp_to_handle": OFFSET,
        "robot1_tcp_to_handle": OFFSET,
    }
    reward_terms = {
        "reach": "on the table, not held: 0.25 (1 - tanh(d)), d from the first TCP to the handle",
        "grasp": "0.5 on the table while both fingers of the first gripper touch the hammer",
        "lift": "1 while lifted and the second gripper does not hold the handle",
        "hover": "then also 0.25 (1 - tanh(d)), d from the second TCP to the handle",
        "both": "1.5 while lifted and held by both",
        "success": "2 in success",
    }

    @dataclass(frozen=True)
    class Config:
        arrangement: str = "opposed"  # or parallel: how the robots stand
        spawn_half_size: tuple[float, float] = (0.1, 0.05)  # [m]
        lift_height: float = 0.1  # [m]

    def scene(self, b: SceneBuilder) -> HandoverHandles:
        small_table(
            b,
            size=(0.8, 0.3),
            centre=(0.0, -0.45),
            base_camera=((1.0, 0, 0.95), (0, 0, 0.2)),
            human_camera=((1.5, 0.3, 0.9), (0, -0.05, 0.2)),
        )
        arrangement = self.config.arrangement
        away = 0.81 if arrangement == "opposed" else 0.56
        robots = two_robots(b, arrangement=arrangement, away=away, height=0.113, level=0.0, floor=-0.8, aside=0.6)
        kinds = hammers(_KINDS)
        tool = b.mesh("hammer", choice=[kind.prop(f"hammer{k}") for k, kind in enumerate(kinds)])
        whole, handle = b.grasp(robots[0], tool), b.grasp(robots[1], tool, shapes=HANDLE_SHAPES)
        self.hammer_sizes = torch.tensor([[k.radius, k.length, k.head] for k in kinds])
        self._z = torch.tensor([[0.0, 0.0, 1.0]])
        # lying with its handle along x, its face along y and against it
        self._sides = torch.tensor([[0.5, 0.5, 0.5, 0.5], [0.5, -0.5, 0.5, -0.5]])
        return HandoverHandles(robot=robots[0], robots=robots, hammer=tool, whole=whole, handle=handle)

    def start(self, h: HandoverHandles, ep: Episode) -> None:
        for robot in h.robots:
            ready(robot, ep)
        rx, ry = self.config.spawn_half_size
        xy = ep.draw("hammer/xy", Uniform((-rx, -0.45 - ry), (rx, -0.45 + ry)))
        heading = ep.draw("hammer/turn", Uniform(-math.pi, math.pi))
        side = self._sides[ep.rng.integers("hammer/side", 0, 2)]
        height = self.hammer_sizes[h.hammer.choice, 2:]
        h.hammer.set_pose(torch.cat([xy, height], 1), quat_mul(quat_from_yaw(heading), side))

    @per_step
    def _geometry(self, h: HandoverHandles) -> tuple[Tensor, Tensor]:
        """Distances (n, 2) of the TCPs from the handle's middle, and the hammer's height (n,) [m]."""
        pos, sizes = h.hammer.pos, self.hammer_sizes[h.hammer.choice]
        away = norm(torch.stack([pos - r.tcp_pos for r in h.robots], 1))
        rise = quat_rotate(h.hammer.quat, self._z.expand_as(pos))[:, 2]
        reach = sizes[:, 1] * constant(0.5) + constant(2.0) * sizes[:, 2]
        height = pos[:, 2] - sizes[:, 0] - reach * rise
        return away, height

    def evaluate(self, h: HandoverHandles) -> dict[str, Tensor]:
        _, height = self._geometry(h)
        first, second = all_fingers_touch([h.whole])[:, 0], all_fingers_touch([h.handle])[:, 0]
        lifted = height > constant(self.config.lift_height)
        return {
            "success": lifted & second & ~first,
            "is_lifted": lifted,
            "first_holds": first,
            "second_holds": second,
        }

    def observe(self, h: HandoverHandles) -> dict[str, dict[str, Tensor]]:
        one, two = h.robots
        return {
            "policy": {"robot0_tcp_pose": one.tcp_pose, "robot1_tcp_pose": two.tcp_pose},
            "privileged": {
                "hammer_pose": h.hammer.pose,
                "robot0_tcp_to_handle": h.hammer.pos - one.tcp_pos,
                "robot1_tcp_to_handle": h.hammer.pos - two.tcp_pos,
            },
        }

    def reward(self, h: HandoverHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        away, _ = self._geometry(h)
        close = constant(0.25) * closeness(away, 1.0)
        lifted, first, second = ev["is_lifted"], ev["first_holds"], ev["second_holds"]
        coming = lifted & ~second
        return {
            "reach": torch.where(lifted | first, ZERO, close[:, 0]),
            "grasp": (~lifted & first) * constant(0.5),
            "lift": coming.float(),
            "hover": torch.where(coming, close[:, 1], ZERO),
            "both": (lifted & second & first) * constant(1.5),
            "success": ev["success"] * constant(2.0),
        }

    # ---- expert ----------------------------------------------------------------------------------------------------

    def expert(self, h: HandoverHandles) -> list[tuple[Waypoint, ...]]:
        one, two = h.robots
        sizes, pos, axes = self.hammer_sizes[h.hammer.choice], h.hammer.pos, quat_to_matrix(h.hammer.quat)
        along = axes[..., 2]  # of the handle, towards the head
        tcp, quat = one.tcp_pos, one.tcp_quat
        # the first arm takes the handle beside the head, turned by less than a quarter from where it will hold it
        take = pos + along * (sizes[:, 1:2] / 2 - 0.015)
        take[:, 2] = take[:, 2].clamp_min(0.012)
        lies = atan2(along[:, 1], along[:, 0])
        lies = lies - math.pi * torch.round(lies / math.pi)
        down = tilted(one, 0.0, roll=math.pi / 2 + lies)
        # both gripper axes end up at half a right angle, so that the second takes the handle by its other two sides
        held_at = tilted(one, math.pi / 4, roll=math.pi / 2)
        meet = torch.tensor([0.0, 0.0, 0.45]) + quat_rotate(quat_mul(held_at, quat_conj(quat)), tcp - pos)
        wait = tilted(two, math.pi / 4, roll=math.pi / 2)
        wants = quat_to_matrix(wait)
        tool = _nearest(torch.stack([axes[..., 0], -axes[..., 0], axes[..., 1], -axes[..., 1]], 1), wants[..., 2])
        opening = torch.linalg.cross(along, tool)
        opening = _nearest(torch.stack([opening, -opening], 1), wants[..., 1])
        turned = quat_from_matrix(torch.stack([torch.linalg.cross(opening, tool), opening, tool], -1))
        grip = pos - along * (sizes[:, 1:2] / 2 - 0.012)  # hands need 7 cm between them
        away = two.base_pose[:2] * 0.3
        aside = pose(torch.cat([away, torch.tensor([0.5])]).expand(h.n, 3), wait)
        back = tcp - quat_to_matrix(quat)[..., 2] * 0.15

        def first(name: str, to: Tensor, gripper: float, **options: Any) -> Waypoint:
            return Waypoint(name=name, pose=to, gripper=gripper, **{"pos_tol": 0.02, "rot_tol": 0.1, **options})

        here, there = pose(tcp, quat), pose(two.tcp_pos, two.tcp_quat)
        waits = first("wait", aside, 1, pos_tol=0.05, rot_tol=0.3, speed=0.4)
        holds = first("hold", here, -1, timeout_s=0.1)
        keeps = first("keep", there, -1, timeout_s=0.1)
        return [
            (first("above", pose(above(take, 0.1), down), 1, timeout_s=5.0), waits),
            (first("down", pose(take, down), 1, pos_tol=0.005, speed=0.3), waits),
            (first("close", pose(take, down), -1, dwell_s=0.3), waits),
            (first("lift", pose(above(tcp, 0.15), quat), -1, speed=0.3), waits),
            (first("carry", pose(meet, held_at), -1, speed=0.3, turn=1.0, timeout_s=6.0), waits),
            (holds, first("before", pose(grip - tool * 0.12, turned), 1, speed=0.4, timeout_s=6.0)),
            (holds, first("reach", pose(grip, turned), 1, pos_tol=0.006, speed=0.15, timeout_s=3.0)),
            (holds, first("take", pose(grip, turned), -1, dwell_s=0.4)),
            (first("open", here, 1, dwell_s=0.3), keeps),
            (first("back", pose(back, quat), 1, speed=0.2, timeout_s=1e9, pos_tol=0.0), keeps),
        ]


def _nearest(candidates: Tensor, to: Tensor) -> Tensor:
    """(n, 3) of the directions (n, k, 3) the nearest to ``to`` (n, 3)."""
    best = (candidates * to[:, None]).sum(-1).argmax(1)
    return candidates[torch.arange(len(to), device=to.device), best]
