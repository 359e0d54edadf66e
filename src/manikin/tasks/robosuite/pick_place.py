"""PickPlace-v2 and its single-thing forms PickPlaceMilk-v2, PickPlaceBread-v2, PickPlaceCereal-v2, PickPlaceCan-v2."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from manikin import Episode, Grasp, Handles, Marker, Part, Quantity, Robot, SceneBuilder, Waypoint
from manikin.arenas.two_bins import FLOOR, FROM, INNER, QUARTERS, WALL_TOP, two_bins
from manikin.env.placement import Place
from manikin.math import atan2, norm, pose, quat_conj, quat_from_yaw, quat_mul, quat_to_matrix
from manikin.props.groceries import GROCERIES
from manikin.tasks.robosuite.common import OFFSET, POSE, TCP, StagedTask, ready
from manikin.tasks.robosuite.staged_reward import TERMS, staged_reward, still_near
from manikin.toolkit import all_fingers_touch, facing_down, per_step, pick

__all__ = ["PickPlace", "PickPlaceBread", "PickPlaceCan", "PickPlaceCereal", "PickPlaceMilk"]

PALM = 0.036  # [m] what is held may reach this far above the TCP
REACH = 0.76  # [m] from the robot's axis, for a gripper that points down
LOWEST = WALL_TOP - PALM + 0.001  # [m] TCP height at which the hand passes over the walls


def _observed(*things: str) -> dict[str, Quantity]:
    out = dict(TCP)
    for t in things:
        out |= {f"{t}_pose": POSE, f"tcp_to_{t}": OFFSET, f"{t}_quat_in_tcp": Quantity("quaternion wxyz", "tcp")}
    return out


@dataclass
class PickPlaceHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    parts: list[Part]  # one per thing
    marks: list[Marker]  # where each belongs
    grasps: list[Grasp]


class Lie(NamedTuple):
    """How things stand or lie, k of them in n rows.

    Attributes:
        half: (n, k, 3) [m] half sizes along their axes, of which the last one is about vertical.
        radius: (n, k) [m] of the circle around each, seen from above.
        yaw: (n, k) [rad] of the first axis.
        round: (n, k) bool: what stands there is round seen from above.
    """

    half: Tensor
    radius: Tensor
    yaw: Tensor
    round: Tensor


class PickPlace(StagedTask):
    """Carry milk, bread, cereal and a can from one bin, each to its own quarter of the other.

    Randomization: the things' places in the first bin, never overlapping, and their turns about the vertical; the arm's
    joints, a little noise.
    Success: every thing lies in its quarter, low, and the gripper is away from it.

    Numbers: robosuite 1.0; the middle of the bins' floors is z = 0. Things are boxes and a cylinder of
    its meshes' sizes. They stand at the start, where robosuite's fall by up to 5 mm. The milk's place is its middle, 11
    mm above robosuite's origin of it.
    """

    id = "PickPlace-v2"
    instruction = "put the milk, the bread, the cereal and the can into their quarters of the red bin"
    things: ClassVar[tuple[str, ...]] = ("milk", "bread", "cereal", "can")
    rounds: ClassVar[int] = 6  # tries of the expert, one thing each
    reward_max = 4.0
    reward_terms = TERMS
    observations = _observed(*things)

    @dataclass(frozen=True)
    class Config:
        margin: float = 0.05  # [m] between the first bin's walls and where things start
        lift_height: float = 0.25  # [m] of a thing's middle, where lifting is complete
        low: float = 0.1  # [m] a thing in its quarter is no higher

    def scene(self, b: SceneBuilder) -> PickPlaceHandles:
        robot = two_bins(b)
        parts, marks = [], []
        for name in self.things:
            grocery = GROCERIES[name]
            parts.append(b.part(name, grocery.shapes, density=grocery.density, friction=0.95))
            shape, size = ("cylinder", (grocery.half[0], grocery.half[2])) if grocery.round else ("box", grocery.half)
            marks.append(b.marker(f"target/{name}", shape=shape, size=size, rgba=(*grocery.colours[0][:3], 0.25)))
        numbers = [list(GROCERIES).index(name) for name in self.things]
        self._quarter = torch.tensor([QUARTERS[k] for k in numbers])  # (k, 2)
        self._half = torch.tensor([GROCERIES[name].half for name in self.things])
        self._radius = torch.tensor([GROCERIES[name].radius for name in self.things])
        self._round = torch.tensor([GROCERIES[name].round for name in self.things])
        self._room = torch.tensor([side / 4 for side in INNER])
        return PickPlaceHandles(robot=robot, parts=parts, marks=marks, grasps=[b.grasp(robot, p) for p in parts])

    def start(self, h: PickPlaceHandles, ep: Episode) -> None:
        ready(h.robot, ep)
        half = [side / 2 - self.config.margin for side in INNER]
        low, high = [tuple(c + s * r for c, r in zip(FROM, half, strict=True)) for s in (-1, 1)]
        places = [
            Place(low=low, high=high, radius=GROCERIES[t].radius, z=FLOOR + GROCERIES[t].half[2], inside=True)
            for t in self.things
        ]
        spots = ep.scatter(places, name="things")
        for k, (part, mark) in enumerate(zip(h.parts, h.marks, strict=True)):
            part.set_pose(spots[:, k, :3], spots[:, k, 3:])
            mark.set_pose(torch.cat([self._quarter[k], FLOOR + self._half[k, 2:]]))

    @per_step
    def _geometry(self, h: PickPlaceHandles) -> tuple[Tensor, Tensor, Tensor]:
        """Positions (n, k, 3) of the things, offsets from the TCP (n, k, 3) and their lengths (n, k) [m]."""
        pos = torch.stack([p.pos for p in h.parts], 1)
        reach = pos - h.robot.tcp_pos[:, None]
        return pos, reach, norm(reach)

    def _in_quarter(self, pos: Tensor) -> Tensor:
        """(n, k) bool: over its quarter, whatever the height."""
        return ((pos[..., :2] - self._quarter).abs() < self._room).all(-1)

    @per_step
    def _flags(self, h: PickPlaceHandles) -> tuple[Tensor, Tensor]:
        """Which of the things is in its place, and which is grasped, (n, k) bool each."""
        pos, _, reach = self._geometry(h)
        z = pos[..., 2]
        placed = self._in_quarter(pos) & (z > 0) & (z < self.config.low) & ~still_near(reach)
        return placed, all_fingers_touch(h.grasps)

    def evaluate(self, h: PickPlaceHandles) -> dict[str, Tensor]:
        placed, grasped = self._flags(h)
        flags = {"success": placed.all(1)}
        for name, *each in zip(self.things, placed.unbind(1), grasped.unbind(1), strict=True):
            flags[f"{name}_placed"], flags[f"{name}_grasped"] = each
        return flags

    def observe(self, h: PickPlaceHandles) -> dict[str, dict[str, Tensor]]:
        _, reach, _ = self._geometry(h)
        quat = torch.stack([p.quat for p in h.parts], 1)
        turned = quat_mul(quat_conj(h.robot.tcp_quat)[:, None].expand_as(quat), quat)
        privileged = {}
        for k, (name, part) in enumerate(zip(self.things, h.parts, strict=True)):
            privileged[f"{name}_pose"] = part.pose
            privileged[f"tcp_to_{name}"] = reach[:, k]
            privileged[f"{name}_quat_in_tcp"] = turned[:, k]
        return {"policy": {"tcp_pose": h.robot.tcp_pose}, "privileged": privileged}

    def reward(self, h: PickPlaceHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        pos, _, reach = self._geometry(h)
        away = norm(pos[..., :2] - self._quarter)
        rise = self.config.lift_height - pos[..., 2]
        placed, grasped = self._flags(h)
        return staged_reward(placed, reach, grasped, rise, away, self._in_quarter(pos))

    # ---- expert ----------------------------------------------------------------------------------------------------

    def expert(self, h: PickPlaceHandles) -> list[Waypoint]:
        pos, _, reach = self._geometry(h)
        tcp, quat = h.robot.tcp_pos, h.robot.tcp_quat
        there = self._in_quarter(pos) & (pos[..., 2] < self.config.low) & (reach > 0.06)
        lie = self.as_they_lie(h)
        order = lie.half[..., 2] * 10 - there * 100.0  # the tallest first: they stand in the way of others
        which = order.argmax(1)
        row = torch.arange(h.n)
        mine, half, radius = pos[row, which], lie.half[row, which], lie.radius[row, which]
        goal = self._within_reach(h, which, radius)
        top = mine[:, 2] + half[:, 2]
        height = torch.maximum(mine[:, 2], top - PALM + 0.002)
        yaw = self._grasp(h, pos, lie, which, height.clamp_min(LOWEST))
        turn = quat_mul(quat_from_yaw(yaw), facing_down(h.robot))
        opens = torch.stack([torch.sin(yaw), torch.cos(yaw)], 1).abs()
        hand = mine[:, :2] - torch.tensor(FROM)
        inside = hand.abs() + 0.11 * opens + 0.035 * opens.flip(1) < torch.tensor(INNER) / 2  # the palm, between walls
        low = torch.where(inside.all(1), torch.full((h.n,), FLOOR + 0.015), torch.full((h.n,), LOWEST))
        place = torch.cat([mine[:, :2], torch.maximum(height, low)[:, None]], 1)
        others = there | (torch.arange(len(self.things)) == which[:, None])
        tops = torch.where(others, torch.zeros_like(order), pos[..., 2] + lie.half[..., 2]).amax(1)
        bottom = (tops + 0.02).clamp_min(0.16)  # above the walls, and above what stands on the way
        over = torch.cat([tcp[:, :2], (bottom + half[:, 2] + tcp[:, 2] - mine[:, 2])[:, None]], 1)
        carry = torch.cat([goal, over[:, 2:]], 1)
        carry[:, :2] += tcp[:, :2] - mine[:, :2]
        put = carry.clone()
        beside = norm(goal - self._quarter[which]) > 0.03  # close to a wall: let go above it, open fingers need room
        lowest = torch.where(beside, torch.full((h.n,), WALL_TOP + 0.015), torch.full((h.n,), LOWEST))
        put[:, 2] = torch.maximum(FLOOR + 0.004 + half[:, 2] + tcp[:, 2] - mine[:, 2], lowest)
        rest = torch.cat([tcp[:, :2], torch.full((h.n, 1), 0.3)], 1)
        away = pose(rest, quat)
        one = [
            *pick(place, turn, h.robot, clear=0.1),
            Waypoint(name="raise", pose=pose(over, quat), gripper=-1, pos_tol=0.02, speed=0.8),
            Waypoint(name="carry", pose=pose(carry, quat), gripper=-1, pos_tol=0.015, speed=0.8, timeout_s=3.0),
            Waypoint(name="put", pose=pose(put, quat), gripper=-1, pos_tol=0.006, speed=0.3, timeout_s=1.5),
            Waypoint(name="open", pose=pose(tcp, quat), gripper=1, pos_tol=0.05, rot_tol=0.5, dwell_s=0.25),
            Waypoint(name="away", pose=away, gripper=1, pos_tol=0.05, rot_tol=0.5, speed=0.8),
        ]
        done = there.all(1)[:, None]
        one = [dataclasses.replace(stage, pose=torch.where(done, away, stage.at)) for stage in one]
        last = Waypoint(name="end", pose=away, gripper=1).hold()
        return [*one * self.rounds, last]

    def as_they_lie(self, h: PickPlaceHandles) -> Lie:
        """How the things stand or lie."""
        quat = torch.stack([p.quat for p in h.parts], 1)
        axes = quat_to_matrix(quat)  # (n, k, 3, 3), of each thing's axes in the world
        upright = axes[..., 2, :].abs().argmax(-1, keepdim=True)
        order = (upright + torch.tensor([1, 2, 0])) % 3
        half = self._half.expand(h.n, -1, -1).gather(-1, order)
        first = axes.gather(-1, order[..., None, :1].expand(-1, -1, 3, 1)).squeeze(-1)
        stands = upright.squeeze(-1) == 2
        radius = torch.where(stands, self._radius, norm(half[..., :2]))
        return Lie(half, radius, atan2(first[..., 1], first[..., 0]), stands & self._round)

    def _within_reach(self, h: PickPlaceHandles, which: Tensor, radius: Tensor) -> Tensor:
        """(n, 2) [m] of the quarter of thing ``which`` (n,) the middle, or what is nearest to it within reach; the
        thing with its ``radius`` (n,) [m] stays off the walls."""
        quarter, base = self._quarter[which], h.robot.base_pose[:2]
        way = quarter - base
        near = base + way * (REACH / norm(way, keepdim=True)).clamp_max(1.0)
        room = (self._room - 0.016 - radius[:, None]).clamp_min(0.0)
        return torch.maximum(torch.minimum(near, quarter + room), quarter - room)

    def _grasp(self, h: PickPlaceHandles, pos: Tensor, lie: Lie, which: Tensor, height: Tensor) -> Tensor:
        """(n,) [rad] turn of the TCP for grasping thing ``which`` (n,) at ``height`` (n,) [m]: of the turns that fit
        it one in which open fingers and palm meet neither other things nor walls, and near the gripper's turn at rest.
        """
        row = torch.arange(h.n)
        half = lie.half[row, which]
        eighths = torch.arange(4) * (math.pi / 4)
        turn = lie.yaw[row, which][:, None] + eighths  # of the opening's direction from the thing's y
        turn = turn - torch.round(turn / math.pi) * math.pi  # (n, 4) within a quarter turn either way
        width = torch.stack([half[:, 1], half[:, 0]], 1).repeat_interleave(2, 1)
        fits = (width < 0.036) & ((eighths % (math.pi / 2) < 0.1) | lie.round[row, which][:, None])
        opening = torch.stack([-torch.sin(turn), torch.cos(turn)], -1)  # (n, 4, 2)
        offset = (pos - pos[row, which][:, None])[:, None, :, :2]  # (n, 1, k, 2)
        along = (offset * opening[:, :, None]).sum(-1).abs()
        across = (offset[..., 0] * opening[:, :, None, 1] - offset[..., 1] * opening[:, :, None, 0]).abs()
        fingers = torch.maximum(along - 0.068, across - 0.012)
        palm = torch.maximum(along - 0.102, across - 0.026)
        tall = (pos[..., 2] + lie.half[..., 2] > (height + PALM)[:, None])[:, None]
        free = torch.where(tall, palm.minimum(fingers), fingers) - lie.radius[:, None]  # (n, 4, k)
        same = torch.arange(len(self.things)) == which[:, None]
        free = torch.where(same[:, None], torch.ones_like(free), free).amin(-1)
        tips = (pos[row, which, None, :2] - torch.tensor(FROM)).abs() + 0.068 * opening.abs()
        room = (torch.tensor(INNER) / 2 - 0.012 - tips).amin(-1)
        score = torch.minimum(free, room).clamp_max(0.004) - 1e-4 * turn.abs() - 10.0 * ~fits
        return turn[row, score.argmax(1)]


class PickPlaceMilk(PickPlace):
    """Carry a milk carton from one bin to the first quarter of the other.

    Randomization: its place in the first bin and its turn about the vertical; the arm's joints, a little noise.
    Success: it lies in its quarter, low, and the gripper is away from it.

    Numbers: robosuite 1.0, as in PickPlace.
    """

    id = "PickPlaceMilk-v2"
    instruction = "put the milk into its quarter of the red bin"
    things = ("milk",)
    rounds = 3
    reward_max = 1.0
    observations = _observed(*things)


class PickPlaceBread(PickPlace):
    """Carry a loaf of bread from one bin to the second quarter of the other.

    Randomization: its place in the first bin and its turn about the vertical; the arm's joints, a little noise.
    Success: it lies in its quarter, low, and the gripper is away from it.

    Numbers: robosuite 1.0, as in PickPlace.
    """

    id = "PickPlaceBread-v2"
    instruction = "put the bread into its quarter of the red bin"
    things = ("bread",)
    rounds = 3
    reward_max = 1.0
    observations = _observed(*things)


class PickPlaceCereal(PickPlace):
    """Carry a box of cereal from one bin to the third quarter of the other.

    Randomization: its place in the first bin and its turn about the vertical; the arm's joints, a little noise.
    Success: it lies in its quarter, low, and the gripper is away from it.

    Numbers: robosuite 1.0, as in PickPlace.
    """

    id = "PickPlaceCereal-v2"
    instruction = "put the cereal into its quarter of the red bin"
    things = ("cereal",)
    rounds = 3
    reward_max = 1.0
    observations = _observed(*things)


class PickPlaceCan(PickPlace):
    """Carry a can from one bin to the fourth quarter of the other.

    Randomization: its place in the first bin and its turn about the vertical; the arm's joints, a little noise.
    Success: it lies in its quarter, low, and the gripper is away from it.

    Numbers: robosuite 1.0, as in PickPlace.
    """

    id = "PickPlaceCan-v2"
    instruction = "put the can into its quarter of the red bin"
    things = ("can",)
    rounds = 3
    reward_max = 1.0
    observations = _observed(*things)
