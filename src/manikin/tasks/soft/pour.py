"""Pour-v1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import Episode, Grasp, Handles, Marker, Part, Quantity, Robot, SceneBuilder, Task, Variable, Waypoint
from manikin.arenas.table import table
from manikin.math import norm, pose, quat_mul
from manikin.props.soft.grains import Grains, column, grain_radius, grains, tilt_forward, upright_axis
from manikin.props.soft.vessel import vessel
from manikin.toolkit import GRASP, above, bonus, closeness, constant, is_still, noisy_rest, per_step, tilted

__all__ = ["Pour"]

_RAISED = 0.6  # [rad] the gripper points down and so far forward when it grasps
_WALL, _FLOOR, _BELOW = 0.005, 0.008, 0.05  # [m]
_AHEAD = 0.12  # [rad] how far ahead of the cup's tilt its goal is while the expert pours, so that it tips slowly
_FLOWS = 1.2  # [rad] nothing flows before


@dataclass
class PourHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    cup: Part
    beaker: Part
    grains: Grains
    grasp: Grasp
    low: Variable  # [m] the lower mark above the beaker's floor
    marks: list[Marker]


class Pour(Task):
    """Pour grains from a cup into a beaker until they stand between two marks, and hold the cup upright again.

    Randomization: the places of cup and beaker, each in a ring about the middle of the table; the height of the marks;
    how the grains lie; the arm's joints, a little noise about rest.
    Success: at least ``enough`` of all grains are in the beaker above the lower mark, at most ``over`` of them above
    the upper one; at most ``spilt`` of them are outside both vessels; no grain is in the air; the cup is upright, and
    the arm stands still.

    Model: ManiSkill2 pours a liquid of material points. MuJoCo has no liquids; these are ``count`` balls, smooth and of
    three degrees of freedom each, which flow and nearly level. Their radius follows from the count, so that they always
    fill the cup alike. Physics has 100 steps per second. The rule is that of ManiSkill2 (more than 100 particles above
    one line, fewer than 10 above the other, fewer than 100 spilt, the bottle within 30 degrees of upright, joints
    slower than 0.05 rad/s) in shares of the grains. There the beaker may stand anywhere on the far half of a ring; here
    it is where a Panda reaches over it.
    """

    id = "Pour-v1"
    horizon_s = 14.0
    labels = GRASP
    instruction = "pour grains into the beaker until they stand between the marks"
    robots = ("panda",)
    reward_max = 10.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "is_grasped": Quantity("0 or 1", "", "whether the gripper holds the cup"),
        "cup_pose": Quantity("m, quaternion wxyz", "world", "z along its axis, origin at its bottom"),
        "beaker_pos": Quantity("m", "world", "the middle of its bottom"),
        "marks": Quantity("m", "beaker", "the lower and the upper mark above the beaker's bottom"),
        "shares": Quantity(
            "1", "", "shares of the grains: in the beaker, above each mark, in the cup, spilt, in the air"
        ),
        "level": Quantity("m", "", "twice the mean height of the grains in the beaker above its floor; 0 of none"),
    }
    reward_terms = {
        "reach": "1 - tanh(5 d), d from TCP to where the cup is held",
        "grasp": "1 while grasped",
        "carry": "while grasped, 1 - tanh(5 d), d from the cup's rim to above the beaker's",
        "pour": "2 s / ``enough``, s the share of the grains above the lower mark, at most 2; less 2 s / ``over`` of "
        "those above the upper one, at least 0",
        "right": "while so much is in the beaker, 1 + the cosine of the cup's tilt",
        "success": "what is missing to 10, in success",
    }

    @dataclass(frozen=True)
    class Config:
        count: int = 200  # grains, 1 to 1000
        fill_radius: float = 0.005  # [m] of a grain where there are 200; others fill as much
        cup_radius: float = 0.028  # [m] inside
        cup_height: float = 0.11  # [m]
        grasp_height: float = 0.08  # [m] above the cup's bottom
        beaker_radius: float = 0.04  # [m] inside
        beaker_height: float = 0.08  # [m]
        cup_ring: tuple[float, float] = (0.05, 0.1)  # [m] from the middle of the table
        cup_angle: tuple[float, float] = (-math.pi * 5 / 6, -math.pi / 3)  # [rad]
        beaker_ring: tuple[float, float] = (0.2, 0.25)  # [m]
        beaker_angle: tuple[float, float] = (math.pi / 2, math.pi * 5 / 6)  # [rad]
        mark_low: float = 0.008  # [m] the lower mark is so far above the beaker's floor ...
        mark_high: float = 0.018  # [m] ... to so far
        mark_gap: float = 0.012  # [m] between the marks
        enough: float = 0.03  # share of all grains, above the lower mark, at least
        over: float = 0.015  # share of all grains, above the upper mark, at most
        spilt: float = 0.05  # share of all grains, outside both vessels, at most
        upright: float = math.pi / 6  # [rad]
        still_speed: float = 0.05  # [rad/s]

    def scene(self, b: SceneBuilder) -> PourHandles:
        c = self.config
        table(b, human_camera=((0.45, 0.75, 0.45), (-0.1, 0.05, 0.08)))
        self._radius = grain_radius(c.count, c.fill_radius)
        self._column = column(c.count, self._radius, c.cup_radius)
        robot = b.robot()
        shapes = vessel(c.cup_radius, c.cup_height, wall=_WALL, floor=_FLOOR)
        cup = b.part("cup", shapes, density=600.0, friction=0.5, rgba=(0.3, 0.55, 0.85, 0.35))
        shapes = vessel(c.beaker_radius, c.beaker_height, wall=_WALL, floor=_FLOOR, below=_BELOW)
        beaker = b.part("beaker", shapes, kind="kinematic", rgba=(0.8, 0.85, 0.9, 0.3))
        ring, colours = c.beaker_radius + 1.3 * _WALL, ((0.1, 0.7, 0.2, 0.5), (0.8, 0.1, 0.1, 0.5))
        marks = [
            b.marker(f"mark{k}", shape="cylinder", size=(ring, 0.0005), rgba=rgba) for k, rgba in enumerate(colours)
        ]
        return PourHandles(
            robot=robot,
            cup=cup,
            beaker=beaker,
            grains=grains(b, "grains", count=c.count, radius=self._radius),
            grasp=b.grasp(robot, cup),
            low=b.variable("low"),
            marks=marks,
        )

    def start(self, h: PourHandles, ep: Episode) -> None:
        c, rng = self.config, ep.rng
        noisy_rest(h.robot, ep)
        spots = []
        for name, ring, angle in (("cup", c.cup_ring, c.cup_angle), ("beaker", c.beaker_ring, c.beaker_angle)):
            away, turn = rng.uniform(f"{name}/ring", *ring), rng.uniform(f"{name}/angle", *angle)
            spots.append(torch.stack([away * torch.cos(turn), away * torch.sin(turn), torch.zeros(h.n)], 1))
        cup, beaker = spots
        h.cup.set_pose(cup)
        h.beaker.set_pose(beaker)
        h.grains.set_pos(cup[:, None] + self._column + h.grains.shake(rng) + torch.tensor([0.0, 0.0, _FLOOR + 0.001]))
        low = rng.uniform("marks", c.mark_low, c.mark_high)
        h.low.set(low)
        for mark, extra in zip(h.marks, (0.0, c.mark_gap), strict=True):
            mark.set_pose(above(beaker, low + (_FLOOR + extra)))

    @per_step
    def shares(self, h: PourHandles) -> Tensor:
        """(n, 6) of all grains: in the beaker, above the lower mark in it, above the upper one, in the cup, spilt, and
        in the air. The first, and the last three, add up to 1."""
        c, pos = self.config, h.grains.pos
        inside = h.grains.within(h.beaker, c.beaker_radius + _WALL, c.beaker_height)
        cup = h.grains.within(h.cup, c.cup_radius + _WALL, c.cup_height + self._radius) & ~inside
        height = pos[:, :, 2] - h.beaker.pos[:, None, 2] - constant(_FLOOR)
        low = h.low.value[:, None]
        out = ~inside & ~cup
        spilt = out & (pos[:, :, 2] < constant(2.0 * self._radius))
        kinds = [
            inside,
            inside & (height > low),
            inside & (height > low + constant(c.mark_gap)),
            cup,
            spilt,
            out & ~spilt,
        ]
        return torch.stack(kinds, 1).float().mean(2)

    def level(self, h: PourHandles) -> Tensor:
        """(n,) [m] how high the grains in the beaker stand, were they levelled: twice their mean height above its
        floor."""
        c = self.config
        inside = h.grains.within(h.beaker, c.beaker_radius + _WALL, c.beaker_height)
        height = h.grains.pos[:, :, 2] - h.beaker.pos[:, None, 2] - constant(_FLOOR)
        return 2.0 * (height * inside).sum(1) / inside.sum(1).clamp_min(1)

    def held_at(self, h: PourHandles) -> Tensor:
        """(n, 3) where the gripper holds the cup [m]."""
        return torch.add(h.cup.pos, upright_axis(h.cup.quat), alpha=self.config.grasp_height)

    def evaluate(self, h: PourHandles) -> dict[str, Tensor]:
        c = self.config
        _, low, high, _, spilt, air = self.shares(h).unbind(1)
        filled = (low >= constant(c.enough)) & (high <= constant(c.over))
        upright = upright_axis(h.cup.quat)[:, 2] >= constant(math.cos(c.upright))
        clean = (spilt <= constant(c.spilt)) & (air == 0.0)
        return {
            "success": filled & clean & upright & is_still(h.robot, c.still_speed),
            "is_filled": filled,
            "is_upright": upright,
            "is_grasped": h.grasp.value,
        }

    def observe(self, h: PourHandles) -> dict[str, dict[str, Tensor]]:
        low = h.low.value
        return {
            "policy": {
                "tcp_pose": h.robot.tcp_pose,
                "is_grasped": h.grasp.value,
                "marks": torch.stack([low, low + self.config.mark_gap], 1) + _FLOOR,
            },
            "privileged": {
                "cup_pose": h.cup.pose,
                "beaker_pos": h.beaker.pos,
                "shares": self.shares(h),
                "level": self.level(h),
            },
        }

    def reward(self, h: PourHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        c = self.config
        _, low, high, _, _, _ = self.shares(h).unbind(1)
        grasped, axis = ev["is_grasped"].float(), upright_axis(h.cup.quat)
        rim = torch.add(h.cup.pos, axis, alpha=c.cup_height)
        reach, carry = closeness((norm(self.held_at(h) - h.robot.tcp_pos), norm(rim - self.over(h))), 5.0)
        poured = (low * constant(2.0 / c.enough)).clamp_max(2.0) - high * constant(2.0 / c.over)
        terms = {
            "reach": reach,
            "grasp": grasped,
            "carry": grasped * carry,
            "pour": poured.clamp_min(0.0),
            "right": ev["is_filled"] * (axis[:, 2] + 1.0),
        }
        return bonus(terms, ev["success"], self.reward_max)

    def over(self, h: PourHandles) -> Tensor:
        """(n, 3) [m] where the cup's rim should be: 4 cm above the middle of the beaker's."""
        return above(h.beaker.pos, self.config.beaker_height + 0.04)

    def expert(self, h: PourHandles) -> list[Waypoint]:
        c = self.config
        at, raised = self.held_at(h), tilted(h.robot, _RAISED)  # the gripper opens sideways
        before = at - 0.12 * torch.tensor([math.sin(_RAISED), 0.0, -math.cos(_RAISED)])  # back along the gripper's axis
        low, air = self.shares(h)[:, 1], self.shares(h)[:, 5]
        tilt = tilt_forward(h.cup.quat)
        more = low + air < 0.1 * self._room() + c.enough  # what is in the air counts as above the mark
        closer = (tilt > _FLOWS) & (self.level(h) > h.low.value - 0.005)
        near = torch.where(air > 0.01, -0.03, 0.07)  # while grains fall, it tips back a little
        far = torch.where(air > 0.04, 0.0, _AHEAD)
        further = torch.where(closer, near, far)
        angle = torch.where(more, (tilt + further).clamp(0.9, 2.0), torch.full_like(tilt, 0.3))
        lifted = above(at, 0.15)
        return [
            Waypoint(name="before", pose=pose(before, raised), gripper=1, pos_tol=0.02, rot_tol=0.1),
            Waypoint(name="around", pose=pose(at, raised), gripper=1, pos_tol=0.01, speed=0.3),
            Waypoint(name="close", pose=pose(at, raised), gripper=-1, pos_tol=0.01),
            Waypoint(name="lift", pose=pose(lifted, raised), gripper=-1, pos_tol=0.02, speed=0.3),
            self._tipped(h, "across", torch.full_like(tilt, 0.4), higher=0.06),
            self._tipped(h, "over", torch.full_like(tilt, 0.4)),
            self._tipped(h, "pour", angle).hold(),
        ]

    def _room(self) -> float:
        """The share of the grains that fits between the marks."""
        c = self.config
        grain = 4.0 / 3.0 * math.pi * self._radius**3 / 0.6  # [m^3] with its share of the gaps
        return math.pi * c.beaker_radius**2 * c.mark_gap / grain / c.count

    def _tipped(self, h: PourHandles, name: str, angle: Tensor, higher: float = 0.0) -> Waypoint:
        """The cup tipped forward by ``angle`` (n,) [rad], its lip over the beaker and the rest of it clear of that,
        or ``higher`` [m]."""
        c = self.config
        rest, out = c.cup_height - c.grasp_height, c.cup_radius + _WALL
        lip = 0.02 + torch.minimum(c.cup_height * torch.cos(angle), 0.03 / torch.tan(angle).abs()).clamp_min(0)
        place = above(h.beaker.pos, higher + c.beaker_height + lip - rest * torch.cos(angle) + out * torch.sin(angle))
        place[:, 0] -= rest * torch.sin(angle) + out * torch.cos(angle) + 0.025  # they fly forward a little
        half = angle / 2
        lean = torch.stack([torch.cos(half), torch.zeros_like(half), torch.sin(half), torch.zeros_like(half)], 1)
        return Waypoint(
            name=name,
            pose=pose(place, quat_mul(lean, tilted(h.robot, _RAISED))),
            gripper=-1,
            pos_tol=0.02,
            rot_tol=0.1,
            speed=0.3,
            turn=0.8,
            timeout_s=3,
            track=name == "pour",
        )
