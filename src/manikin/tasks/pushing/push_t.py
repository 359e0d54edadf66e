"""PushT-v1."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from manikin import (
    ContactForce,
    Episode,
    Event,
    Handles,
    Labels,
    Mode,
    Part,
    Quantity,
    Robot,
    SceneBuilder,
    Task,
    Waypoint,
)
from manikin.arenas.table import table
from manikin.errors import ConfigError
from manikin.math import atan2, norm, pose, quat_from_rotvec, quat_from_yaw, quat_mul, quat_rotate, wrap_to_pi
from manikin.spec.prop import Shape
from manikin.tasks.pushing.push_plan import FlatThing
from manikin.toolkit import bearing, bonus, closeness, constant, facing_down, first_valid, per_step

__all__ = ["PushT"]

T = TypeVar("T", np.ndarray, Tensor)
_BAR, _STEM = (0.1, 0.025), (0.025, 0.075)  # [m] half sizes
_BAR_AT, _STEM_AT = (0.0, -0.0375), (0.0, 0.0625)  # [m] their middles; the stem points along y
_CENTRE = (0.0, -0.0375 + 0.1 * 3 / 7)  # [m] of mass: the stem is 3/4 of the bar and 0.1 m beside it
_OUTLINE = (
    (-0.1, -0.0625), (0.1, -0.0625), (0.1, -0.0125), (0.025, -0.0125),
    (0.025, 0.1375), (-0.025, 0.1375), (-0.025, -0.0125), (-0.1, -0.0125),
)  # fmt: skip
_START = (0.615, 0.063, 0.148, -2.7, -0.026, 2.763, 1.573)  # [rad] the tip 0.06 m over (-0.321, 0.284)
_STICK, _LOW, _HIGH = 0.008, 0.012, 0.07  # [m] the stick's radius; heights at which it pushes and travels
_LEAN = 0.15  # [rad] its end goes before its middle by this
_ROUNDS = 16  # pushes at most
_TURN = 0.09  # [m/rad] a turn spoils the overlap as such a way does
_NEAREST = 0.22  # [m] from the base, where the arm still reaches down


@dataclass
class PushTHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    tee: Part
    goal: Part
    press: ContactForce


class PushT(Task):
    """Push a T along the table into its outline with a stick.

    Randomization: the T's place, uniform in a rectangle around the goal, and its turn, uniform over the circle, never
    where it succeeds already; the arm's joints, a little noise. The goal is always the same.
    Success: the T lies flat and covers at least ``covered`` of the goal's area.

    Numbers: ManiSkill3 3.0.1, but 400 control steps instead of 100, in which an arm that lifts the stick between pushes
    gets there; ``make(..., horizon=100)`` gives the published time. Friction is what PhysX makes of the T's 3 and the
    table's 0.3, their mean. What ManiSkill3 calls the T's centre of mass is its frame's origin here, too, and lies
    5 mm from that centre. The published joint positions bring this stick's end to 0.015 m, and noise puts it into the
    table in every twentieth episode; here it starts at 0.06 m. ManiSkill3 moves the points of the T to the goal's
    raster, which leaves holes in a turned T, so that it covers too little; here each point of the goal asks whether the
    T is there, and ``published_overlap`` gives the other. The place for the stick's end that ManiSkill3 draws and never
    asks for is left out. An arm other than the Panda starts at its keyframe ``rest``.
    """

    id = "PushT-v1"
    horizon_s = 20.0
    instruction = "push the T into its outline with the stick"
    robots = ("panda+stick",)
    robot_needs = ("stick",)
    labels = Labels(
        events=(Event("touched", "is_touched"), Event("success", "success"), Event("lost", "success", "fall")),
        success=(
            Mode("success", "not lost"),
            Mode("success_then_lost", "last(lost) > last(success)", "it was pushed out again"),
            Mode("winding_success", "otherwise", "it was there, was pushed out and came back"),
        ),
        failure=(
            Mode("never_touched", "not touched", "the stick never touched the T"),
            Mode("not_there", "otherwise", "the T was pushed and did not cover its outline"),
        ),
        source="tasks whose object is pushed; flag is_touched",
    )
    reward_max = 3.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world", "the stick's end"),
        "goal_pose": Quantity("m, quaternion wxyz", "world", "always the same"),
        "tee_pose": Quantity("m, quaternion wxyz", "world", "y along the stem, away from the bar"),
        "overlap": Quantity("1", note="share of the goal that the T covers"),
    }
    reward_terms = {
        "turn": "((1 + cos a) / 2)^2 / 2, a the angle between the T and its goal",
        "place": "(1 - tanh(5 d))^2 / 2, d from the T to its goal along the table",
        "reach": "sqrt(1 - tanh(5 d)) / 20, d from the stick's end to the T",
        "success": "what is missing to 3, in success",
    }

    @dataclass(frozen=True)
    class Config:
        thickness: float = 0.04  # [m] of the T
        mass: float = 0.8  # [kg]
        friction: float = 1.65  # sliding, of the T on the table and of the stick on the T
        goal_xy: tuple[float, float] = (-0.156, -0.1)  # [m]
        goal_yaw: float = 5 * math.pi / 3  # [rad]
        spawn_low: tuple[float, float] = (-0.1, -0.1)  # [m] the T starts between these, from its goal
        spawn_high: tuple[float, float] = (0.1, 0.2)  # [m]
        noise: float = 0.02  # [rad] of the arm's joints
        covered: float = 0.9  # share of the goal's area
        points: int = 64  # the raster has so many a side
        raster: float = 0.3  # [m] a side
        published_overlap: bool = False  # whether the T is put into the raster as ManiSkill3 does

    def scene(self, b: SceneBuilder) -> PushTHandles:
        c = self.config
        table(b, human_camera=((0.3, 0.45, 0.55), (-0.2, 0, 0.05)))
        robot = b.robot()
        density = c.mass / (c.thickness * sum(4 * x * y for x, y in (_BAR, _STEM)))
        tee = b.part("tee", _tee(c.thickness / 2), density=density, friction=c.friction, rgba=(0.76, 0.08, 0.09, 1))
        half = c.goal_yaw / 2
        goal = b.part(
            "goal",
            _tee(0.0005),
            kind="fixed",
            collide=False,
            pos=(*c.goal_xy, 0.0005),
            quat=(math.cos(half), 0, 0, math.sin(half)),
            rgba=(0.5, 0.5, 0.5, 1),
        )
        if c.points < 1 or c.raster <= 0:
            raise ConfigError(
                f"options 'points' and 'raster' of {self.id} must be positive, but they are {c.points} and {c.raster}"
            )
        self._cell = c.raster / c.points
        cells = np.stack(np.meshgrid(*[np.arange(c.points)] * 2, indexing="ij"), 2).reshape(-1, 2)
        middle = (cells + 0.5 - c.points / 2) * self._cell  # (points^2, 2) [m] in the T's frame
        filled = self._published(cells) if c.published_overlap else _in_tee(middle)
        if not filled.any():
            raise ConfigError(
                f"options 'points' and 'raster' of {self.id} put no point of the raster on the T: {c.points} points on "
                f"{c.raster} m; their defaults are {self.Config.points} and {self.Config.raster}"
            )
        self._area, self._is_tee = int(filled.sum()), torch.tensor(filled.tolist())
        self._filled = torch.tensor(middle[filled].tolist())
        turn = torch.tensor(c.goal_yaw)
        self._goal_xy = torch.tensor(c.goal_xy)
        self._goal_y = torch.stack([-torch.sin(turn), torch.cos(turn)])
        press = b.contact_force(robot, tee)
        return PushTHandles(robot=robot, tee=tee, goal=goal, press=press)

    def start(self, h: PushTHandles, ep: Episode) -> None:
        c, n = self.config, h.n
        arm = h.robot.arm
        rest = torch.tensor(_START if arm.name == "panda" else arm.keyframes["rest"])
        h.robot.set_qpos(rest + ep.rng.normal("robot/qpos", 0.0, c.noise, (len(rest),)))
        shift = ep.rng.uniform("tee/xy", torch.tensor(c.spawn_low), torch.tensor(c.spawn_high), (8, 2))
        yaw = ep.rng.uniform("tee/yaw", -math.pi, math.pi, (8, 1))
        away = norm(shift) + wrap_to_pi(yaw[..., 0] - c.goal_yaw).abs() * _TURN
        first = first_valid(torch.cat([shift, yaw], 2), away > 0.03)  # an overlap below three quarters
        spot = first[:, :2] + torch.tensor(c.goal_xy)
        h.tee.set_pose(torch.cat([spot, torch.full((n, 1), c.thickness / 2)], 1), quat_from_yaw(first[:, 2]))

    @per_step
    def stem(self, h: PushTHandles) -> Tensor:
        """(n, 2) unit vector along the T's stem, on the table."""
        along = quat_rotate(h.tee.quat, torch.tensor([[0.0, 1.0, 0.0]]))[:, :2]
        return along / norm(along, keepdim=True).clamp_min(1e-6)

    @per_step
    def overlap(self, h: PushTHandles) -> Tensor:
        """(n,) share of the goal's area that the T covers."""
        # between the T's frame and the goal's; y along the stem and x to the right of it
        stem, goal = self.stem(h), self._goal_y
        cos = stem[:, :1] * goal[0] + stem[:, 1:] * goal[1]
        sin = goal[0] * stem[:, 1:] - goal[1] * stem[:, :1]  # of the T's turn beyond the goal's
        way = h.tee.pos[:, :2] - self._goal_xy
        x = way[:, :1] * goal[1] - way[:, 1:] * goal[0]  # the T's place in the goal's frame
        y = way[:, :1] * goal[0] + way[:, 1:] * goal[1]
        px, py = self._filled[:, 0], self._filled[:, 1]
        if self.config.published_overlap:
            seen = torch.stack([cos * px - sin * py + x, sin * px + cos * py + y], 2)
            return self._splat(seen) / self._area
        px, py = px - x, py - y
        local = torch.stack([cos * px + sin * py, cos * py - sin * px], 2)
        return _in_tee(local).sum(1) / self._area

    def _published(self, cells: np.ndarray) -> np.ndarray:
        """(points^2,) bool: cells of the raster that ManiSkill3 takes for the T, ends cut off to whole numbers."""
        out = np.zeros(len(cells), bool)
        for half, at in ((_BAR, _BAR_AT), (_STEM, _STEM_AT)):
            low, high = (
                ((np.array(at) + s * np.array(half)) / self._cell + self.config.points / 2).astype(int) for s in (-1, 1)
            )
            out |= ((cells >= low) & (cells < high)).all(1)
        return out

    def _splat(self, seen: Tensor) -> Tensor:
        """(n,) how many of the goal's cells have one of the T's points (n, k, 2) [m] in them, in the goal's frame."""
        points = self.config.points
        cell = (seen / self._cell + points / 2).long()  # towards 0, as published
        cell = torch.where(((cell >= 0) & (cell < points)).all(2, keepdim=True), cell, 0)
        hit = torch.zeros(len(seen), points * points, dtype=torch.bool)
        hit.scatter_(1, cell[..., 0] * points + cell[..., 1], True)
        return (hit & self._is_tee).sum(1)

    def evaluate(self, h: PushTHandles) -> dict[str, Tensor]:
        c = self.config
        covers = self.overlap(h) >= constant(c.covered)
        flat = h.tee.pos[:, 2] < constant(c.thickness / 2 + 0.005)
        return {"success": covers & flat, "is_touched": norm(h.press.value) > 0}

    def observe(self, h: PushTHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose, "goal_pose": h.goal.pose},
            "privileged": {"tee_pose": h.tee.pose, "overlap": self.overlap(h)},
        }

    def reward(self, h: PushTHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        alike = (self.stem(h) * self._goal_y).sum(1)
        away = h.tee.pos - h.robot.tcp_pos
        place, reach = closeness((norm(h.tee.pos[:, :2] - self._goal_xy), norm(away)), 5.0)
        terms = {
            "turn": ((1.0 + alike) * 0.5).square() * 0.5,
            "place": place.square() * 0.5,
            "reach": reach.sqrt() * constant(0.05),
        }
        return bonus(terms, ev["success"], self.reward_max)

    @functools.cached_property
    def _thing(self) -> FlatThing:
        return FlatThing(_OUTLINE, centre=_CENTRE, length=0.09, turn_length=_TURN, radius=_STICK)

    def expert(self, h: PushTHandles) -> list[Waypoint]:
        # choose where and how to push, push until it gets no better, go back and up, and choose anew
        tip, pos, stem = h.robot.tcp_pos, h.tee.pos[:, :2], self.stem(h)
        turn = atan2(-stem[:, 0], stem[:, 1])
        goal = self._goal_xy, self.config.goal_yaw
        done = (self._thing.off(pos, turn, *goal) < 0.004)[:, None]

        def at(spot: Tensor, height: Tensor | float, lean: Tensor) -> Tensor:
            """TCP pose [m] over a place on the table (n, 2), the stick's end ahead by ``lean`` (n, 2) [rad], else
            turned as the arm is; rows that are done stay above."""
            place = torch.cat([spot, torch.zeros(h.n, 1)], 1)
            place[:, 2] = height
            place = torch.where(done, torch.cat([tip[:, :2], torch.full((h.n, 1), _HIGH)], 1), place)
            down = quat_mul(quat_from_yaw(bearing(h.robot, place)), facing_down(h.robot))
            tilt = torch.stack([lean[:, 1], -lean[:, 0], torch.zeros(h.n)], 1)
            return pose(place, quat_mul(quat_from_rotvec(tilt), down))

        spots, outward = self._thing.places(pos, turn)
        base = h.robot.base_pose[:2]
        reachable = norm(spots + 0.02 * outward - base) > _NEAREST
        chosen, on = self._thing.best(pos, turn, *goal, reachable), self._thing.onward(pos, turn, tip[:, :2], *goal)
        gap = norm(tip[:, :2] - on.contact) - _STICK
        lead = torch.where(on.way > 0, on.way.clamp_max(0.05) + gap.clamp_min(0.0), 0.0)
        back, onto = tip[:, :2] + 0.015 * on.outward, tip[:, :2] + lead[:, None] * on.ahead
        # touch at the T's foot, stay at one height and do not press down: friction along the stick would tip the T
        # over or hold it fast
        low = 0.003 + 3 * _LOW - 2 * tip[:, 2] - 3e-4 * h.press.value[:, 2].clamp(-150, 0)
        aslant, upright = _LEAN * on.ahead, torch.zeros(h.n, 2)
        rounds = [
            Waypoint(name="over", pose=at(chosen.start, _HIGH, _LEAN * chosen.ahead), gripper=1, pos_tol=0.01,
                     rot_tol=0.1, speed=0.8, timeout_s=1.5),
            Waypoint(name="down", pose=at(chosen.start, _LOW, _LEAN * chosen.ahead), gripper=1, pos_tol=0.003,
                     rot_tol=0.1, speed=0.6, timeout_s=0.8),
            Waypoint(name="push", pose=at(onto, low, aslant), gripper=1, pos_tol=0.003, rot_tol=0.2, speed=0.2,
                     timeout_s=1.5, track=True),
            Waypoint(name="back", pose=at(back, _LOW, aslant), gripper=1, pos_tol=0.008, rot_tol=0.2, speed=0.4,
                     timeout_s=0.4),
            Waypoint(name="up", pose=at(tip[:, :2], _HIGH, upright), gripper=1, pos_tol=0.02, rot_tol=0.3, speed=0.8,
                     timeout_s=0.6),
        ]  # fmt: skip
        rest = Waypoint(name="done", pose=at(tip[:, :2], _HIGH, upright), gripper=1, speed=0.3).hold()
        return [*rounds * _ROUNDS, rest]


def _tee(half_height: float) -> list[Shape]:
    return [
        Shape(type="box", size=(*half, half_height), pos=(*at, 0.0))
        for half, at in ((_BAR, _BAR_AT), (_STEM, _STEM_AT))
    ]


def _in_tee(points: T) -> T:
    """(...) bool: points (..., 2) [m] of the T's own frame that are in it."""
    x, y = abs(points[..., 0]), points[..., 1]
    bar = (x <= _BAR[0]) & (abs(y - _BAR_AT[1]) <= _BAR[1])
    return bar | ((x <= _STEM[0]) & (abs(y - _STEM_AT[1]) <= _STEM[1]))
