"""NutAssembly-v4 and its single-nut forms NutAssemblySquare-v4, NutAssemblyRound-v4."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from manikin import Episode, Grasp, Handles, Part, Physics, Quantity, Robot, SceneBuilder, Segment, Waypoint
from manikin.arenas.pegs import PEGS, pegs
from manikin.env.placement import Place
from manikin.math import norm, pose, quat_conj, quat_from_yaw, quat_mul, quat_rotate, quat_to_yaw
from manikin.props.nuts import HANDLE, nut_rests, round_nut, square_nut
from manikin.tasks.robosuite.common import OFFSET, POSE, TCP, StagedTask, ready
from manikin.tasks.robosuite.staged_reward import TERMS, staged_reward, still_near
from manikin.toolkit import above, all_fingers_touch, facing_down, per_step, pick

__all__ = ["NutAssembly", "NutAssemblyRound", "NutAssemblySquare"]

START = 0.07  # [m] height at which nuts start, to fall on the table
_FURTHER = {"square": 0.0, "round": 0.01}  # [m] from the handle's centre outwards, where the expert holds it
_SHAPES = {"square": square_nut, "round": round_nut}
_COLOUR = {"square": (0.75, 0.6, 0.25, 1), "round": (0.55, 0.57, 0.6, 1)}


def _observed(*nuts: str) -> dict[str, Quantity]:
    out = dict(TCP)
    for t in nuts:
        out |= {f"{t}_pose": POSE, f"tcp_to_{t}": OFFSET, f"{t}_quat_in_tcp": Quantity("quaternion wxyz", "tcp")}
    return out


def _segments(*nuts: str) -> tuple[Segment, ...]:
    """Each nut is grasped where it lies and brought to its peg, which stands still."""
    return tuple(
        one
        for nut in nuts
        for one in (
            Segment(nut, until=f"{nut}_grasped", after_s=0.5),
            Segment("world", until=f"{nut}_placed", moves=nut),
        )
    )


@dataclass
class NutHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    parts: list[Part]  # one per nut
    grasps: list[Grasp]


class NutAssembly(StagedTask):
    """Put the square nut over the square peg and the round nut over the round peg.

    Randomization: the nuts' places in two strips, their turns about the vertical; the arm's joints, a little noise.
    Success: every nut is around its peg, low, and the gripper is away from it.

    Numbers: robosuite 1.0.
    """

    id = "NutAssembly-v4"
    instruction = "put the square nut over the square peg and the round nut over the round peg"
    nuts: ClassVar[tuple[str, ...]] = ("square", "round")
    physics = Physics(solref=(0.01, 1.0))  # on stiffer contacts the expert's nuts jam on their pegs more often
    pads: ClassVar[tuple[float, float] | None] = (0.005, 1.0)  # stiffness of the fingers, out of which nuts creep less
    rests: ClassVar[bool] = True  # nuts touch the table with few boxes: a quarter of the contacts while they lie
    rounds: ClassVar[int] = 4  # tries of the expert, one nut each
    reward_max = 2.0
    reward_terms = TERMS
    observations = _observed(*nuts)
    segments = _segments(*nuts)

    @dataclass(frozen=True)
    class Config:
        strip_x: tuple[float, float] = (-0.115, -0.11)  # [m] where nuts start
        strip_y: tuple[float, float] = (0.11, 0.225)  # [m] of the square nut; the round one is on the other side
        lift_height: float = 0.175  # [m] where lifting is complete: 0.2 above the middle of the table's board
        peg_tol: float = 0.03  # [m] of a nut's centre from its peg's axis, in x and in y
        low: float = 0.05  # [m] a nut around its peg is lower

    def scene(self, b: SceneBuilder) -> NutHandles:
        robot = pegs(b, surface=self.rests)
        for name in robot.model.pad_geoms if self.pads else ():
            b.spec.geom(robot.prefix + name).solref[:2] = self.pads
        parts = [self._nut(b, name) for name in self.nuts]
        self._peg = torch.tensor([PEGS[name] for name in self.nuts])  # (k, 2)
        self._handle = torch.tensor([[HANDLE[name], 0.0, 0.0] for name in self.nuts])
        self._further = torch.tensor([_FURTHER[name] for name in self.nuts])
        return NutHandles(robot=robot, parts=parts, grasps=[b.grasp(robot, p) for p in parts])

    def _nut(self, b: SceneBuilder, name: str) -> Part:
        rests = nut_rests(name) if self.rests else ()
        return b.part(name, _SHAPES[name](), rgba=_COLOUR[name], density=100.0, friction=0.95, rests_on=rests)

    def start(self, h: NutHandles, ep: Episode) -> None:
        c = self.config
        ready(h.robot, ep)
        for name, part in zip(self.nuts, h.parts, strict=True):
            y = c.strip_y if name == "square" else (-c.strip_y[1], -c.strip_y[0])
            place = Place(low=(c.strip_x[0], y[0]), high=(c.strip_x[1], y[1]), z=START)
            spot = ep.scatter([place], name=name)[:, 0]
            part.set_pose(spot[:, :3], spot[:, 3:])

    @per_step
    def _geometry(self, h: NutHandles) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Of the nuts, positions (n, k, 3), quaternions (n, k, 4), offsets TCP to handle (n, k, 3), their lengths."""
        pos, quat = torch.stack([p.pos for p in h.parts], 1), torch.stack([p.quat for p in h.parts], 1)
        reach = pos + quat_rotate(quat, self._handle.expand_as(pos)) - h.robot.tcp_pos[:, None]
        return pos, quat, reach, norm(reach)

    @per_step
    def _flags(self, h: NutHandles) -> tuple[Tensor, Tensor]:
        """Which of the nuts is in its place, and which is grasped, (n, k) bool each."""
        c = self.config
        pos = self._geometry(h)[0]
        around = ((pos[..., :2] - self._peg).abs() < c.peg_tol).all(-1) & (pos[..., 2] < c.low)
        clear = ~still_near(norm(pos - h.robot.tcp_pos[:, None]))
        placed = around & clear
        return placed, all_fingers_touch(h.grasps)

    def evaluate(self, h: NutHandles) -> dict[str, Tensor]:
        placed, grasped = self._flags(h)
        flags = {"success": placed.all(1)}
        for name, *each in zip(self.nuts, placed.unbind(1), grasped.unbind(1), strict=True):
            flags[f"{name}_placed"], flags[f"{name}_grasped"] = each
        return flags

    def observe(self, h: NutHandles) -> dict[str, dict[str, Tensor]]:
        pos, quat, _, _ = self._geometry(h)
        turned = quat_mul(quat_conj(h.robot.tcp_quat)[:, None].expand_as(quat), quat)
        offset = pos - h.robot.tcp_pos[:, None]
        privileged = {}
        for k, (name, part) in enumerate(zip(self.nuts, h.parts, strict=True)):
            privileged[f"{name}_pose"] = part.pose
            privileged[f"tcp_to_{name}"] = offset[:, k]
            privileged[f"{name}_quat_in_tcp"] = turned[:, k]
        return {"policy": {"tcp_pose": h.robot.tcp_pose}, "privileged": privileged}

    def reward(self, h: NutHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        pos, _, _, reach = self._geometry(h)
        away = norm(pos[..., :2] - self._peg)
        placed, grasped = self._flags(h)
        return staged_reward(placed, reach, grasped, self.config.lift_height - pos[..., 2], away)

    # ---- expert ----------------------------------------------------------------------------------------------------

    def expert(self, h: NutHandles) -> list[Waypoint]:
        c = self.config
        pos, quats, reach, _ = self._geometry(h)
        tcp, quat = h.robot.tcp_pos, h.robot.tcp_quat
        around = ((pos[..., :2] - self._peg).abs() < c.peg_tol).all(-1) & (pos[..., 2] < c.low)
        there = around & (norm(pos - tcp[:, None]) > 0.06)
        which = (~there).to(torch.uint8).argmax(1)
        row = torch.arange(h.n)
        nut, peg = pos[row, which], self._peg[which]
        nut_x = quat_rotate(quats[row, which], torch.tensor([[1.0, 0.0, 0.0]]).expand(h.n, 3))
        grip = tcp + reach[row, which] + self._further[which][:, None] * nut_x  # clear of the ring, which is wider
        grip[:, 2] = grip[:, 2].clamp_min(0.013)
        # Over its peg, near the end of the arm's reach, the handle must point at the robot. Held with the gripper's x
        # towards the nut that is the gripper's turn at rest; where the last joint's range forbids that, it holds the
        # other way round.
        turn = quat_to_yaw(quats[row, which])
        facing = turn - math.pi
        facing = facing - 2 * math.pi * torch.round(facing / (2 * math.pi))
        down = quat_mul(quat_from_yaw(torch.where(facing < -1.9, turn, facing)), facing_down(h.robot))
        held_turn = quat_to_yaw(quat_mul(quat, quat_conj(facing_down(h.robot))))
        other = torch.cos(held_turn - turn) > 0
        # in quarter turns of the nut, so that a square one is not across its peg
        goal_turn = torch.where(other, torch.full((h.n,), math.pi / 2), torch.zeros(h.n))
        swing = quat_from_yaw(goal_turn - held_turn)
        at = quat_rotate(swing, tcp - nut)  # from the nut to the TCP, once turned
        target = quat_mul(swing, quat)
        over = torch.cat([peg, torch.full((h.n, 1), 0.17)], 1) + at
        lower = torch.cat([peg, torch.full((h.n, 1), 0.025)], 1) + at
        up = torch.cat([tcp[:, :2], torch.full((h.n, 1), 0.2)], 1)
        one = [
            *pick(grip, down, h.robot, clear=0.08),
            Waypoint(name="raise", pose=pose(up, quat), gripper=-1, pos_tol=0.02),
            Waypoint(
                name="turn", pose=pose(up, target), gripper=-1, pos_tol=0.03, rot_tol=0.1, turn=1.5, timeout_s=3.0
            ),
            Waypoint(name="over", pose=pose(over, target), gripper=-1, pos_tol=0.004, rot_tol=0.05, timeout_s=3.0),
            Waypoint(name="lower", pose=pose(lower, target), gripper=-1, pos_tol=0.01, speed=0.2, timeout_s=1.5),
            Waypoint(name="open", pose=pose(tcp, quat), gripper=1, pos_tol=0.05, rot_tol=0.5, dwell_s=0.3),
            Waypoint(name="back", pose=pose(above(tcp, 0.12), quat), gripper=1, pos_tol=0.02, rot_tol=0.5),
        ]
        home = torch.cat([torch.full((h.n, 1), -0.05), torch.zeros(h.n, 1), torch.full((h.n, 1), 0.25)], 1)
        rest = pose(home, facing_down(h.robot))
        done = there.all(1)[:, None]
        one = [dataclasses.replace(stage, pose=torch.where(done, rest, stage.at)) for stage in one]
        return [*one * self.rounds, Waypoint(name="end", pose=rest, gripper=1).hold()]


class NutAssemblySquare(NutAssembly):
    """Put the square nut over the square peg.

    Randomization: the nut's place in a strip and its turn about the vertical; the arm's joints, a little noise.
    Success: the nut is around its peg, low, and the gripper is away from it.

    Numbers: robosuite 1.0, as in NutAssembly.
    """

    id = "NutAssemblySquare-v4"
    instruction = "put the square nut over the square peg"
    nuts = ("square",)
    rounds = 2
    reward_max = 1.0
    observations = _observed(*nuts)
    segments = _segments(*nuts)


class NutAssemblyRound(NutAssembly):
    """Put the round nut over the round peg.

    Randomization: the nut's place in a strip and its turn about the vertical; the arm's joints, a little noise.
    Success: the nut is around its peg, low, and the gripper is away from it.

    Numbers: robosuite 1.0, as in NutAssembly.
    """

    id = "NutAssemblyRound-v4"
    instruction = "put the round nut over the round peg"
    nuts = ("round",)
    rounds = 2
    reward_max = 1.0
    observations = _observed(*nuts)
    segments = _segments(*nuts)
