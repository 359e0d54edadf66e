"""TwoArmPegInHole-v2."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import Episode, Handles, Part, Quantity, Robot, SceneBuilder, Uniform, Waypoint
from manikin.arenas.ground import ground
from manikin.math import dot, norm, pose, quat_mul, quat_rotate
from manikin.props.plate import plate
from manikin.tasks.robosuite.common import OFFSET, POSE, StagedTask, ready
from manikin.toolkit import ONE, base_yaw, closeness, constant, per_step, tilted, two_robots

__all__ = ["TwoArmPegInHole"]

_HANG = 0.17  # [m] from the second arm's flange to the middle of the hole
_HALF = 0.13  # [m] half the peg's length
_SLANT = math.radians(60.0)  # of the peg, from the vertical, as the expert holds it
_RULED = 0.1  # [m] along the plate's x, where the published rule has the hole; the hole itself is 1 cm further


@dataclass
class PegInHoleHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot  # the first
    robots: tuple[Robot, Robot]
    peg: Part
    plate: Part


class TwoArmPegInHole(StagedTask):
    """Put the peg on the first arm through the hole in the plate on the second.

    Randomization: the peg's radius; the arms' joints, a little noise.
    Success: the peg's axis passes the hole's middle within ``axis_tol``, less than 18 degrees from its normal, and the
    plate is between ``behind`` and ``ahead`` of the peg's middle.

    Numbers: robosuite 1.0. Peg and plate are fixed to the flanges: grippers are left off.
    """

    id = "TwoArmPegInHole-v2"
    family = "two-arms"
    instruction = "put the peg through the hole in the plate"
    robot_count = 2
    robots = ("panda+none,panda+none", "baxter+none")
    robot_needs = ("arm", "flange", "held base")
    reward_max = 5.0
    observations = {
        "robot0_tcp_pose": POSE,
        "robot1_tcp_pose": POSE,
        "peg_pose": POSE,
        "plate_pose": POSE,
        "peg_to_plate": OFFSET,
        "along": Quantity("m", "peg", "from the peg's middle to the hole"),
        "aside": Quantity("m", "peg", "from the peg's axis to the hole"),
        "alignment": Quantity("1", "", "cosine of the angle between axis and normal"),
    }
    reward_terms = {
        "reach": "1 - tanh(d), d from peg to plate",
        "aside": "1 - tanh(d), d from the peg's axis to the hole",
        "along": "1 - tanh(|d|), d along the peg's axis from its middle to the hole",
        "alignment": "cosine of the angle between the peg's axis and the plate's normal",
        "success": "1 in success",
    }

    @dataclass(frozen=True)
    class Config:
        arrangement: str = "opposed"  # or parallel: how the robots stand
        radius: tuple[float, float] = (0.015, 0.03)  # [m] of the peg, uniform in this range
        axis_tol: float = 0.06  # [m]
        behind: float = -0.12  # [m]
        ahead: float = 0.14  # [m]
        least_cosine: float = 0.95  # of the angle between the axis and the normal

    def scene(self, b: SceneBuilder) -> PegInHoleHandles:
        low, high = self.config.radius
        b.robots = [(arm, None, menagerie) for arm, _, menagerie in b.robots]
        ground(b, height=0.0, base_camera=((1.1, 0, 1.7), (0, 0, 1.2)), human_camera=((1.5, 0.4, 1.6), (0, 0, 1.15)))
        robots = two_robots(b, arrangement=self.config.arrangement, away=0.6, height=0.913, level=0.8, floor=0.0)
        one, two = robots
        green, wood = (0.25, 0.6, 0.3, 1), (0.7, 0.4, 0.25, 1)
        size = Uniform((low, _HALF), (high, _HALF))
        peg = b.cylinder("peg", size=size, pos=(0, 0, _HALF), rgba=green, on=one)
        turn = (0.0, 0.0, math.sqrt(0.5), math.sqrt(0.5))  # the plate's normal along the flange's y
        board = b.part("plate", plate(), pos=(0.11, 0, _HANG), quat=turn, rgba=wood, on=two)
        self._hole = torch.tensor([[_RULED, 0.0, 0.0]])
        self._quarter = torch.tensor([[math.sqrt(0.5), 0.0, 0.0, -math.sqrt(0.5)]])
        self._z = torch.tensor([[0.0, 0.0, 1.0]])
        return PegInHoleHandles(robot=one, robots=robots, peg=peg, plate=board)

    def start(self, h: PegInHoleHandles, ep: Episode) -> None:
        for robot in h.robots:
            ready(robot, ep)

    @per_step
    def _geometry(self, h: PegInHoleHandles) -> tuple[Tensor, Tensor, Tensor]:
        """Each (n,): along the peg's axis to the hole, aside of it, cosine of the angle."""
        peg, at = h.peg.pos, h.plate.pos
        axis = quat_rotate(h.peg.quat, self._z.expand_as(peg))
        normal = quat_rotate(h.plate.quat, self._z.expand_as(peg))
        offset = at + quat_rotate(h.plate.quat, self._hole.expand_as(peg)) - peg
        along = dot(offset, axis)
        aside = norm(torch.linalg.cross(axis, offset))
        return along, aside, dot(axis, normal).abs()

    def evaluate(self, h: PegInHoleHandles) -> dict[str, Tensor]:
        c = self.config
        along, aside, cosine = self._geometry(h)
        inside = (along >= constant(c.behind)) & (along <= constant(c.ahead))
        return {"success": inside & (aside < constant(c.axis_tol)) & (cosine > constant(c.least_cosine))}

    def observe(self, h: PegInHoleHandles) -> dict[str, dict[str, Tensor]]:
        along, aside, cosine = self._geometry(h)
        one, two = h.robots
        return {
            "policy": {"robot0_tcp_pose": one.tcp_pose, "robot1_tcp_pose": two.tcp_pose},
            "privileged": {
                "peg_pose": h.peg.pose,
                "plate_pose": h.plate.pose,
                "peg_to_plate": h.plate.pos - h.peg.pos,
                "along": along,
                "aside": aside,
                "alignment": cosine,
            },
        }

    def reward(self, h: PegInHoleHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        along, aside, cosine = self._geometry(h)
        return {
            "reach": closeness(norm(h.peg.pos - h.plate.pos), 1.0),
            "aside": closeness(aside, 1.0),
            "along": closeness(along.abs(), 1.0),
            "alignment": cosine,
            "success": ev["success"] * ONE,
        }

    def expert(self, h: PegInHoleHandles) -> list[tuple[Waypoint, ...]]:
        one, two = h.robots
        # the peg comes down at a slant; the plate hangs under the second arm, raised by as much
        slant = tilted(one, _SLANT)
        hang = quat_mul(tilted(two, math.pi / 2 - _SLANT), self._quarter.expand(h.n, 4))
        z = self._z.expand(h.n, 3)
        facing = base_yaw(two)
        reach = torch.tensor([0.4 * math.cos(facing), 0.4 * math.sin(facing), 0.36])
        hole = (two.base_pose[:3] + reach).expand(h.n, 3)
        flange = pose(hole - quat_rotate(hang, z) * _HANG, hang)
        before, inside = (pose(hole - quat_rotate(slant, z) * (_HALF + gap), slant) for gap in (0.2, 0.03))
        hold = Waypoint(name="hold", pose=flange, gripper=1, pos_tol=0.01, rot_tol=0.05, speed=0.4, timeout_s=4.0)
        near = Waypoint(name="before", pose=before, gripper=1, pos_tol=0.01, rot_tol=0.05, speed=0.4, timeout_s=6.0)
        through = Waypoint(name="through", pose=inside, gripper=1, pos_tol=0.0, speed=0.15, timeout_s=1e9)
        return [(near, hold), (through, hold)]
