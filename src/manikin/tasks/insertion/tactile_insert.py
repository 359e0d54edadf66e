"""TactilePeg-v1 and TactileLock-v1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from manikin import Episode, Handles, Part, Physics, Quantity, Robot, SceneBuilder, Task, Variable, Waypoint
from manikin.arenas.table import table
from manikin.errors import UnknownNameError
from manikin.math import norm, pose
from manikin.props.insertion.keyed import GRIP, HALF, HOLE_DEPTH, keyed_hole, keyed_peg
from manikin.scene.handles.sensors import Tactile
from manikin.toolkit import ONE, bonus, closeness, constant, facing_down, per_step

__all__ = ["TactileLock", "TactilePeg"]

SEARCHES = ("touch", "spiral", "none")
_REST = 0.16978  # [m] height of the Panda's tool at rest, straight over the origin of the table
_OVER = HOLE_DEPTH + GRIP  # [m] height of the tool while the peg stands on the block
_PRESS = 0.0006  # [m] the expert's command is so far below where its tool is, which presses lightly
_INSIDE = 0.0015  # [m] the peg has found the hole where it is so far below the block's top
_FELT = 2.0  # [N] on both prints together, beyond the peg's weight: it stands on something
_SWEEP, _PITCH = 0.012, 0.0005  # [m/s] how fast the expert searches; [m] between the turns of a spiral
_BEYOND, _DWELL = 0.001, 0.3  # [m] it sweeps so far past where the hole can be; [s] it presses before it searches


@dataclass
class TactileInsertHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    peg: Part
    block: Part
    prints: tuple[Tactile, Tactile]  # of both fingers
    said: Variable  # (2,) [m] where the hole is said to be
    felt: Variable  # control steps for which the peg has stood on something


class TactilePeg(Task):
    """Put a peg that is held between two gel fingertips into a hole that is not quite where it is said to be.

    Randomization: where the hole is said to be, and by how much that is wrong, uniform within ``error`` along x and y.
    Success: the peg's bottom is within 3 mm of the hole's lower end, and it is still held.

    A policy is told where the hole is said to be, and feels with both fingertips. How deep and how far sideways each
    taxel is pressed are pictures of ``resolution``. The idea is ManiSkill-ViTac's (2024), with simulated gels. Its peg
    and lock are other shapes, in a physics of soft bodies, so no number can be compared.

    The expert presses lightly and searches. ``config={"search": "touch"}``: the prints of the two fingers move apart
    where the rim carries the peg on one side of the opening's direction, so it corrects along that, and sweeps along
    the other. ``"spiral"`` knows only whether the peg has sunk in, and moves on a spiral with 0.5 mm from turn to turn.
    ``"none"`` goes straight down. None of them looks at the hole.
    """

    id = "TactilePeg-v1"
    family = "insertion"
    instruction = "insert the peg into the hole"
    robots = ("panda",)
    physics = Physics(hz=500, impratio=100)  # as InsertNISTPeg
    horizon_s = 10.0
    reward_max = 3.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "said_pos": Quantity("m", "world", "x and y where the hole is said to be"),
        "print_depth": Quantity("mm", "pad", "of both fingertips, how deep each taxel is pressed in"),
        "print_force": Quantity("N", "pad", "on both fingertips: to the right, down, pressing"),
        "peg_pose": Quantity("m, quaternion wxyz", "world", "origin in the middle of its bottom"),
        "peg_to_hole": Quantity("m", "world", "to the hole's lower end"),
    }
    reward_terms = {
        "align": "1 - tanh(200 a), a how far the peg's bottom is off the hole's axis",
        "insert": "share of the hole's depth that the peg is in",
        "success": "what is missing to 3, in success",
    }
    lug: ClassVar[bool] = False

    @dataclass(frozen=True)
    class Config:
        error: float = 0.004  # [m] the hole is off along x and y by at most this
        clearance: float = 0.0003  # [m] on every side of the peg
        spread: float = 0.03  # [m] the hole is said to be within this of the table's middle, along x and y
        resolution: tuple[int, int] = (16, 12)  # taxels of a print, rows and columns
        search: str = "touch"  # how the expert finds the hole: touch, spiral or none

    def scene(self, b: SceneBuilder) -> TactileInsertHandles:
        c = self.config
        if c.search not in SEARCHES:
            raise UnknownNameError("search", c.search, SEARCHES)
        table(b, base_camera=((0.3, 0, 0.25), (0.0, 0, 0.05)), human_camera=((0.3, 0.25, 0.2), (0.0, 0, 0.05)))
        robot = b.robot()
        peg = b.part("peg", keyed_peg(lug=self.lug), density=2000.0, friction=1.5, rgba=(0.85, 0.55, 0.2, 1))
        hole = keyed_hole(c.clearance, lug=self.lug)
        block = b.part("block", hole, kind="kinematic", friction=0.1, rgba=(0.3, 0.38, 0.5, 1))
        for name in block.geom_names:
            b.spec.geom(name).priority = 1  # it is smooth; of two frictions MuJoCo takes the larger otherwise
        left, right = (b.tactile(robot, finger=k, parts=[peg], resolution=c.resolution) for k in (0, 1))
        return TactileInsertHandles(
            robot=robot,
            peg=peg,
            block=block,
            prints=(left, right),
            said=b.variable("said", (2,)),
            felt=b.variable("felt"),
        )

    def start(self, h: TactileInsertHandles, ep: Episode) -> None:
        c = self.config
        h.robot.set_qpos(h.robot.keyframe(), 2 * HALF[1] / h.robot.gripper.max_width)
        upright = torch.tensor([1.0, 0.0, 0.0, 0.0])
        h.peg.set_pose(torch.tensor([0.0, 0.0, _REST - GRIP]), upright)
        said = ep.rng.uniform("hole/said", -c.spread, c.spread, (2,))
        off = ep.rng.uniform("hole/error", -c.error, c.error, (2,))
        h.said.set(said)
        h.block.set_pose(torch.cat([said + off, torch.zeros(h.n, 1)], 1), upright)

    @per_step
    def away(self, h: TactileInsertHandles) -> Tensor:
        """(n, 3) [m] from the hole's lower end to the peg's bottom."""
        return h.peg.pos - h.block.pos

    @per_step
    def prints(self, h: TactileInsertHandles) -> tuple[Tensor, Tensor]:
        """Of both fingers, depths (n, 2, H, W) [m] and forces (n, 2, 3) [N]."""
        return torch.stack([p.depth for p in h.prints], 1), torch.stack([p.force for p in h.prints], 1)

    @per_step
    def is_felt(self, h: TactileInsertHandles) -> Tensor:
        """(n,) bool: the fingertips carry the peg upwards, so that it stands on something."""
        return self.prints(h)[1][..., 1].sum(1) > constant(_FELT)

    def advance(self, h: TactileInsertHandles) -> None:
        h.felt.set(h.felt.value + self.is_felt(h))

    def evaluate(self, h: TactileInsertHandles) -> dict[str, Tensor]:
        away, force = self.away(h), self.prints(h)[1]
        is_held = (force[..., 2] > constant(0.5)).all(1)
        is_in = (away[:, 2] < constant(0.003)) & (norm(away[:, :2]) < constant(0.003))
        return {"success": is_in & is_held, "is_held": is_held, "is_felt": self.is_felt(h)}

    def observe(self, h: TactileInsertHandles) -> dict[str, dict[str, Tensor]]:
        depth, force = self.prints(h)
        return {
            "policy": {
                "tcp_pose": h.robot.tcp_pose,
                "said_pos": h.said.value,
                "print_depth": depth * constant(1000.0),
                "print_force": force,
            },
            "privileged": {"peg_pose": h.peg.pose, "peg_to_hole": self.away(h)},
        }

    def reward(self, h: TactileInsertHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        away = self.away(h)
        near = closeness(norm(away[:, :2]), 200.0)
        depth = ONE - (away[:, 2] / constant(HOLE_DEPTH)).clamp(0.0, 1.0)
        return bonus({"align": near, "insert": depth}, ev["success"], self.reward_max)

    # ---- expert ------------------------------------------------------------------------------------------------------

    def expert(self, h: TactileInsertHandles) -> list[Waypoint]:
        down, tcp = facing_down(h.robot), h.robot.tcp_pos
        inside = tcp[:, 2] < constant(_OVER - _INSIDE)
        goal = torch.where(inside[:, None], tcp[:, :2], self.search(h, tcp[:, :2]))
        level = tcp[:, 2] - torch.where(inside, 3 * _PRESS, _PRESS)
        over = torch.cat([h.said.value, torch.full((h.n, 1), _OVER + 0.005)], 1)
        return [
            Waypoint(name="over", pose=pose(over, down), gripper=-1, pos_tol=0.0005, rot_tol=0.01, timeout_s=2.5),
            Waypoint(name="search", pose=pose(torch.cat([goal, level[:, None]], 1), down), gripper=-1, speed=0.03,
                     track=True).hold(),
        ]  # fmt: skip

    def search(self, h: TactileInsertHandles, at: Tensor) -> Tensor:
        """(n, 2) [m] where the tool is to go next over the block."""
        kind, said, time = self.config.search, h.said.value, h.felt.value / self.control_hz
        if kind == "none":
            return said
        way = _SWEEP * (time - _DWELL).clamp_min(0.0)  # [m] that the search has come
        if kind == "spiral":  # r = pitch angle / 2 pi, so that way = pitch angle^2 / 4 pi
            angle = (way * (4 * math.pi / _PITCH)).sqrt()
            radius = angle * (_PITCH / (2 * math.pi))
            return said + radius[:, None] * torch.stack([torch.cos(angle), torch.sin(angle)], 1)
        most = self.config.error + _BEYOND
        phase = (way / most + 1.0) % 4.0  # there and back along x
        sweep = most * (ONE - (phase - 2.0).abs())
        depth, _ = self.prints(h)
        row = torch.arange(depth.shape[2], dtype=depth.dtype)
        middle = (depth.sum(3) * row).sum(2) / depth.sum((2, 3)).clamp_min(1e-9)  # (n, 2) of each print
        apart = (middle[:, 1] - middle[:, 0]) * (h.prints[0].size[0] / depth.shape[2])  # [m] one print is lower
        y = at[:, 1] + (constant(2.0) * apart).clamp(-0.002, 0.002)
        low, high = said[:, 1] - most, said[:, 1] + most
        return torch.stack([said[:, 0] + sweep, torch.minimum(torch.maximum(y, low), high)], 1)


class TactileLock(TactilePeg):
    """As TactilePeg, with a lug on one side of the peg, as a key has, and a slot for it beside the hole.

    Randomization: where the hole is said to be, and by how much that is wrong, uniform within ``error`` along x and y.
    Success: the peg's bottom is within 3 mm of the hole's lower end, and it is still held.
    """

    id = "TactileLock-v1"
    instruction = "insert the key into the lock"
    lug = True
