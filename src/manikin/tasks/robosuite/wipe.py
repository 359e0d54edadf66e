"""Wipe-v2."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import ContactForce, Dots, Episode, Handles, Quantity, Robot, SceneBuilder, Variable, Waypoint
from manikin.arenas.wipe_table import SIZE, wipe_table
from manikin.math import norm, pose, quat_conj, quat_rotate
from manikin.tasks.drawing.trail import trail
from manikin.tasks.robosuite.common import TCP, StagedTask, ready
from manikin.toolkit import ONE, ZERO, above, closeness, constant, facing_down, per_step

__all__ = ["Wipe"]


@dataclass
class WipeHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    dirt: Dots
    eraser_force: ContactForce  # on the table
    arm_force: ContactForce  # of the whole arm on the table
    new: Variable  # marks wiped in this step


class Wipe(StagedTask):
    """Wipe a trail of dirt off the table with an eraser, pressing neither too hard nor with the arm.

    Randomization: the trail, a random walk on the table; the arm's joints, a little noise.
    Success: every mark is wiped off. A mark is wiped when it lies under the eraser's face while that touches the table.

    Numbers: robosuite 1.0. A reward is divided by what an episode gives per step at best, as there. robosuite counts a
    mark as wiped where its soft eraser is pressed down past it; this one is stiff, so that a mark within ``height`` of
    its face counts while the eraser touches the table.
    """

    id = "Wipe-v2"
    family = "drawing"
    instruction = "wipe all the dirt off the table"
    robots = ("panda+eraser",)
    robot_needs = ("eraser",)
    reward_max = 2525.51
    reward_norm = (50 * 50 + 500 * (0.01 + 25.5)) / 500
    observations = {
        **TCP,
        "mark_pos": Quantity("m", "world", "of every mark"),
        "mark_wiped": Quantity("0 or 1"),
        "tcp_to_mark": Quantity("m", "world"),
        "force": Quantity("N", "world", "of the eraser on the table"),
    }
    reward_terms = {
        "wiped": "50 per mark wiped in this step",
        "approach": "5 (1 - tanh(5 d)), d the mean distance from TCP to marks not yet wiped; 0 when none is left",
        "contact": "0.01 while the eraser presses on the table with more than ``contact_force``",
        "pressure": "-0.01 per newton, above 70 N",
        "success": "25.5 when all are wiped",
        "unsafe": "-10, and none of the others, while the arm touches the table or a joint is 0.1 rad from its limit",
    }

    @dataclass(frozen=True)
    class Config:
        marks: int = 50  # how many
        mark_radius: float = 0.02  # [m]
        step: float = 0.005  # [m] from mark to mark
        coverage: float = 0.6  # share of the table, each way, that may be dirty
        bend: float = 0.3  # chance that the trail turns at a mark
        bend_std: float = 0.5  # [rad] by how much
        face: tuple[float, float] = (0.025, 0.06)  # [m] half size of the eraser
        height: float = 0.02  # [m] a mark this far from the eraser's face is not wiped
        contact_force: float = 3.0  # [N] from which on pressing is rewarded
        force_max: float = 70.0  # [N]
        limit_margin: float = 0.1  # [rad]

    def scene(self, b: SceneBuilder) -> WipeHandles:
        c = self.config
        robot, top, dirt = wipe_table(b, marks=c.marks, radius=c.mark_radius)
        self._face = torch.tensor([*c.face, c.height])
        return WipeHandles(
            robot=robot,
            dirt=dirt,
            eraser_force=b.contact_force(robot, top, link="eraser"),
            arm_force=b.contact_force(robot, top),
            new=b.variable("new"),  # marks wiped in this step
        )

    def start(self, h: WipeHandles, ep: Episode) -> None:
        ready(h.robot, ep)
        c = self.config
        edge = torch.tensor([c.coverage * side / 2 - c.mark_radius for side in SIZE])
        spots = trail(ep.rng, edge, marks=c.marks, step=c.step, bend=c.bend, bend_std=c.bend_std)
        h.dirt.set_places(torch.cat([spots, torch.zeros_like(spots[..., :1])], 2))

    @per_step
    def _geometry(self, h: WipeHandles) -> tuple[Tensor, Tensor, Tensor]:
        """Offsets from the TCP to the marks (n, marks, 3) [m], force of eraser and of the arm on the table (n,) [N]."""
        offset = h.dirt.pos - h.robot.tcp_pos[:, None]
        eraser = h.eraser_force.value
        return offset, norm(eraser), norm(h.arm_force.value - eraser)

    def advance(self, h: WipeHandles) -> None:
        offset, force, _ = self._geometry(h)
        inverse = quat_conj(h.robot.tcp_quat)[:, None].expand(*offset.shape[:2], 4)
        under = (quat_rotate(inverse, offset).abs() < self._face).all(2)
        now = under & h.dirt.shown & ((force > 0) & ~self._unsafe(h))[:, None]
        h.new.set(now.sum(1).float())
        h.dirt.hide(now)

    def _unsafe(self, h: WipeHandles) -> Tensor:
        """(n,) bool: the arm touches the table, or a joint is near its limit."""
        q = h.robot.arm_qpos
        limits = h.robot.limits[: q.shape[1]]
        near = torch.minimum(q - limits[:, 0], limits[:, 1] - q).amin(1) < constant(self.config.limit_margin)
        return near | (self._geometry(h)[2] > constant(0.1))

    def evaluate(self, h: WipeHandles) -> dict[str, Tensor]:
        return {
            "success": ~h.dirt.shown.any(1),
            "is_touching": self._geometry(h)[1] > constant(self.config.contact_force),
            "is_unsafe": self._unsafe(h),
        }

    def observe(self, h: WipeHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose, "force": h.eraser_force.value},
            "privileged": {
                "mark_pos": h.dirt.pos,
                "mark_wiped": (~h.dirt.shown).float(),
                "tcp_to_mark": self._geometry(h)[0],
            },
        }

    def reward(self, h: WipeHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        offset, force, _ = self._geometry(h)
        safe = ONE - ev["is_unsafe"].float()
        left = h.dirt.shown.float()
        mean = (norm(offset) * left).sum(1) / left.sum(1).clamp_min(1.0)
        over = force > constant(self.config.force_max)
        return {
            "wiped": safe * h.new.value * constant(50.0),
            "approach": safe * ~ev["success"] * closeness(mean, 5.0) * constant(5.0),
            "contact": safe * ev["is_touching"] * constant(0.01),
            "pressure": safe * torch.where(over, force * constant(-0.01), ZERO),
            "success": safe * ev["success"] * constant(25.5),
            "unsafe": (ONE - safe) * constant(-10.0),
        }

    def expert(self, h: WipeHandles) -> list[Waypoint]:
        down = facing_down(h.robot)
        offset = norm(self._geometry(h)[0]) + 10.0 * ~h.dirt.shown
        nearest = h.dirt.pos[torch.arange(h.n), offset.argmin(1)]
        done = ~h.dirt.shown.any(1)[:, None]
        rest = pose(torch.cat([h.robot.tcp_pos[:, :2], torch.full((h.n, 1), 0.1)], 1), down)
        press = torch.where(done, rest, pose(above(nearest, -0.001), down))
        return [
            Waypoint(name="above", pose=pose(above(nearest, 0.03), down), gripper=1, pos_tol=0.01, rot_tol=0.05,
                     timeout_s=4.0),
            Waypoint(name="wipe", pose=press, gripper=1, speed=0.15, track=True).hold(),
        ]  # fmt: skip
