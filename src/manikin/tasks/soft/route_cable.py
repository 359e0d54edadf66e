"""RouteCable-v1."""

from __future__ import annotations

import math
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
    Quantity,
    Robot,
    SceneBuilder,
    Shape,
    Task,
    Variable,
    Waypoint,
)
from manikin.arenas.table import table
from manikin.math import atan2, norm, pose, quat_from_yaw, quat_mul
from manikin.props.soft.rope import Rope, rope
from manikin.toolkit import GRASP, ONE, above, bonus, closeness, constant, facing_down, noisy_rest, per_step

__all__ = ["RouteCable"]

_BESIDE = 0.06  # [m] the expert leads the cable's end past a peg so far beside it
_BEYOND = 0.13  # [m] and this far beyond the last one


@dataclass
class RouteCableHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    cable: Rope
    first: Part
    second: Part
    sides: Variable  # (2,) 1: the cable has to pass beyond the peg, seen from the robot; -1: before it
    gates: list[Marker]
    grasp: Grasp


class RouteCable(Task):
    """Lead a cable past two pegs, each on the side that is marked, and let go of it.

    Randomization: the pegs' places; on which side of each the cable has to pass; the place and direction of the cable,
    which lies before the first peg; the arm's joints, a little noise about rest.
    Success: at each peg the cable passes on the marked side, no further from its axis than ``reach`` and not higher
    than the peg, and nowhere on the other side; the gripper has let go, and no joint of the cable moves faster than
    ``calm_speed``.

    Model: Hang's rope with other numbers: ``links`` capsules with ball joints, which do not stretch and do not touch
    one another; 100 physics steps per second. Neither ManiSkill2 nor ManiSkill3 has this task; rule and numbers are our
    own.
    """

    id = "RouteCable-v1"
    horizon_s = 9.0
    labels = GRASP
    instruction = "lead the cable past the pegs on the marked sides"
    robots = ("panda",)
    reward_max = 7.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "is_grasped": Quantity("0 or 1", "", "whether the gripper holds the cable"),
        "sides": Quantity("1 or -1", "", "for each peg: 1 is to pass at larger x, -1 at smaller"),
        "peg_pos": Quantity("m", "world", "both pegs, where they stand on the table"),
        "cable_points": Quantity("m", "world", "both ends and all joints of the cable, one after the other"),
        "is_routed": Quantity("0 or 1", "", "for each peg, whether the cable passes as it should"),
    }
    reward_terms = {
        "reach": "1 - tanh(5 d), d from TCP to the cable's end nearer the pegs",
        "grasp": "1 while grasped",
        "guide": "1 - tanh(5 d), d from that end to the marked side of the next peg; 1 once all are passed",
        "routed": "2 times the share of the pegs that the cable passes as it should",
        "success": "what is missing to 7, in success",
    }

    @dataclass(frozen=True)
    class Config:
        length: float = 0.42  # [m] of the cable
        cable_radius: float = 0.006  # [m]
        links: int = 21  # pieces of the cable
        peg_radius: float = 0.01  # [m]
        peg_height: float = 0.04  # [m]
        peg_x: tuple[float, float] = (-0.1, -0.02)  # [m] of both pegs, each its own
        first_y: tuple[float, float] = (-0.08, -0.04)  # [m]
        second_y: tuple[float, float] = (0.06, 0.1)  # [m]
        cable_x: tuple[float, float] = (-0.1, -0.02)  # [m] of the end nearer the pegs
        cable_gap: tuple[float, float] = (0.08, 0.12)  # [m] from the first peg to that end, along y
        cable_turn: float = 0.3  # [rad] either way from the direction of y
        reach: float = 0.12  # [m]
        calm_speed: float = 0.5  # [rad/s]

    def scene(self, b: SceneBuilder) -> RouteCableHandles:
        c = self.config
        table(b, human_camera=((0.45, -0.35, 0.5), (-0.08, -0.02, 0.0)))
        robot = b.robot()
        line = rope(b, "cable", length=c.length, radius=c.cable_radius, links=c.links, rgba=(0.1, 0.25, 0.6, 1))
        half = c.peg_height / 2
        peg = [
            Shape(type="cylinder", size=(c.peg_radius, half), pos=(0, 0, half)),
            Shape(type="cylinder", size=(1.6 * c.peg_radius, 0.001), pos=(0, 0, 0.001)),
        ]
        return RouteCableHandles(
            robot=robot,
            cable=line,
            first=b.part("first", peg, kind="kinematic", friction=0.3, rgba=(0.85, 0.55, 0.15, 1)),
            second=b.part("second", peg, kind="kinematic", friction=0.3, rgba=(0.85, 0.55, 0.15, 1)),
            sides=b.variable("sides", (2,)),
            gates=[b.marker(name, size=(0.012,), rgba=(0.1, 0.8, 0.2, 0.4)) for name in ("gate/first", "gate/second")],
            grasp=b.grasp(robot, line.part),
        )

    def start(self, h: RouteCableHandles, ep: Episode) -> None:
        c, rng = self.config, ep.rng
        noisy_rest(h.robot, ep)
        sides = rng.integers("sides", 0, 2, (2,)).float() * 2.0 - 1.0
        h.sides.set(sides)
        low, high = c.peg_x
        x = rng.uniform("pegs/x", low, high, (2,))
        y = torch.stack([rng.uniform("first/y", *c.first_y), rng.uniform("second/y", *c.second_y)], 1)
        pegs = torch.stack([x, y, torch.zeros_like(x)], 2)
        for k, peg in enumerate((h.first, h.second)):
            peg.set_pose(pegs[:, k])
            h.gates[k].set_pose(self._gate(pegs[:, k], sides[:, k]))
        end = torch.stack([rng.uniform("cable/x", *c.cable_x), y[:, 0] - rng.uniform("cable/gap", *c.cable_gap)], 1)
        yaw = rng.uniform("cable/yaw", -c.cable_turn, c.cable_turn) - math.pi / 2  # away from the pegs
        h.cable.lay(torch.cat([end, torch.full((h.n, 1), c.cable_radius)], 1), quat_from_yaw(yaw))

    def _gate(self, peg: Tensor, side: Tensor) -> Tensor:
        """(n, 3) [m] beside pegs at (n, 3), on their sides (n,)."""
        out = above(peg, self.config.cable_radius)
        out[:, 0] += _BESIDE * side
        return out

    @per_step
    def routed(self, h: RouteCableHandles) -> Tensor:
        """(n, 2) bool: the cable passes this peg as it should."""
        c, points = self.config, h.cable.points
        pegs = torch.stack([h.first.pos, h.second.pos], 1)[:, :, None]  # (n, pegs, 1, 3)
        away = points[:, None] - pegs
        one, two = away[:, :, :-1], away[:, :, 1:]  # (n, pegs, pieces, 3) a piece's two ends
        crosses = (one[..., 1] > 0) != (two[..., 1] > 0)
        share = one[..., 1] / torch.where(crosses, one[..., 1] - two[..., 1], ONE)
        at = one + share[..., None] * (two - one)  # where the piece passes the peg
        aside = at[..., 0] * h.sides.value[:, :, None]
        right = (aside > 0) & (aside <= constant(c.reach)) & (at[..., 2] <= constant(c.peg_height))
        return (crosses & right).any(2) & ~(crosses & ~right).any(2)

    def evaluate(self, h: RouteCableHandles) -> dict[str, Tensor]:
        routed = self.routed(h).all(1)
        free = ~h.grasp.touches & (h.cable.speed < constant(self.config.calm_speed))
        return {"success": routed & free, "is_routed": routed, "is_grasped": h.grasp.value}

    def observe(self, h: RouteCableHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose, "is_grasped": h.grasp.value, "sides": h.sides.value},
            "privileged": {
                "peg_pos": torch.cat([h.first.pos, h.second.pos], 1),
                "cable_points": h.cable.points.flatten(1),
                "is_routed": self.routed(h).float(),
            },
        }

    def reward(self, h: RouteCableHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        end, routed = h.cable.points[:, 0], self.routed(h)
        past = routed[:, :1]
        peg = torch.where(past, h.second.pos, h.first.pos)
        side = torch.where(past[:, 0], h.sides.value[:, 1], h.sides.value[:, 0])
        reach, guide = closeness((norm(end - h.robot.tcp_pos), norm(end - self._gate(peg, side))), 5.0)
        terms = {
            "reach": reach,
            "grasp": ev["is_grasped"].float(),
            "guide": torch.where(ev["is_routed"], ONE, guide),
            "routed": routed.float().sum(1),
        }
        return bonus(terms, ev["success"], self.reward_max)

    def expert(self, h: RouteCableHandles) -> list[Waypoint]:
        points, sides = h.cable.points, h.sides.value
        ahead = points[:, 0] - points[:, 2]
        yaw = atan2(ahead[:, 1], ahead[:, 0])
        first, over = (quat_mul(quat_from_yaw(turn), facing_down(h.robot)) for turn in (yaw, yaw * 0 + math.pi / 2))
        held = above(points[:, 0] - 0.015 * ahead / norm(ahead)[:, None], 0.004)  # the fingers clear of the table
        gates = [self._gate(peg.pos, sides[:, k]) for k, peg in enumerate((h.first, h.second))]
        last = above(gates[1], 0.004)
        last[:, 1] += _BEYOND

        def lead(name: str, spot: Tensor, along: float) -> Waypoint:  # past a peg, so far along y
            at = above(spot, 0.004)
            at[:, 1] += along
            how: dict[str, Any] = {"pos_tol": 0.015, "rot_tol": 0.2, "speed": 0.2, "timeout_s": 3.0}
            return Waypoint(name=name, pose=pose(at, over), gripper=-1, **how)

        return [
            Waypoint(name="above", pose=pose(above(held, 0.08), first), gripper=1, pos_tol=0.02, rot_tol=0.1),
            Waypoint(name="down", pose=pose(held, first), gripper=1, pos_tol=0.004),
            Waypoint(name="close", pose=pose(held, first), gripper=-1, pos_tol=0.02, dwell_s=0.5),
            lead("to the first", gates[0], -0.04),
            lead("past the first", gates[0], 0.03),
            lead("to the second", gates[1], -0.03),
            lead("past the second", gates[1], _BEYOND),
            Waypoint(name="open", pose=pose(last, over), gripper=1, pos_tol=0.02, rot_tol=0.2, dwell_s=0.5),
            Waypoint(name="away", pose=pose(above(last, 0.1), over), gripper=1, pos_tol=0.02, speed=0.2).hold(),
        ]
