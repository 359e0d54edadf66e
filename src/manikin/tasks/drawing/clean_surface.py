"""CleanSurface-v1."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import Dots, Episode, Handles, Quantity, Robot, SceneBuilder, Task, Waypoint
from manikin.arenas.height_field import HeightField, lay, mounds
from manikin.arenas.table import table
from manikin.assets.heights import scan_heights
from manikin.math import norm, pose
from manikin.tasks.drawing.trail import trail
from manikin.toolkit import ONE, bonus, closeness, constant, facing_down, noisy_rest, per_step

__all__ = ["CleanSurface"]

_MIDDLE = (-0.05, 0.0, 0.0)  # [m] of the surface
_LIFT = 0.04  # [m] above the highest point: where the expert's stick travels
_AHEAD = 2  # marks that the expert looks ahead
_APART = 0.03  # [m] the expert lifts the stick for a longer way


@dataclass
class CleanSurfaceHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    dirt: Dots


class CleanSurface(Task):
    """Wipe a trail of dirt off a surface that is not flat, with a stick.

    Randomization: the trail, a random walk on the surface; the arm's joints, a little noise.
    Success: every mark is wiped off. A mark is wiped while the stick's tip is within ``wipe_radius`` of it sideways,
    and no more than ``reach`` above the surface.

    The paper of ManiSkill3 names such a task, and its code has none: rules and numbers are our own. The surface is a
    height field. ``config={"scan": "my.obj"}`` takes a scanned mesh: OBJ, STL or MSH, z up, seen from above.
    """

    id = "CleanSurface-v1"
    family = "drawing"
    horizon_s = 25.0
    instruction = "wipe all the dirt off the surface"
    robots = ("panda+stick",)
    robot_needs = ("stick",)
    reward_max = 3.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "tip_height": Quantity("m", note="of the stick's tip above the surface below it"),
        "mark_pos": Quantity("m", "world", "of every mark"),
        "mark_wiped": Quantity("0 or 1"),
    }
    reward_terms = {
        "reach": "1 - tanh(5 d), d from the tip to the nearest mark; 1 when none is left",
        "wiped": "share of the marks that is wiped off",
        "success": "what is missing to 3, in success",
    }

    @dataclass(frozen=True)
    class Config:
        scan: str = ""  # a mesh file; "" is a landscape with a hill, a hollow and a ridge
        scale: float = 1.0  # [m] of one unit of the file
        side: float = 0.3  # [m] of the square that is seen of a scan
        cells: int = 64  # along each side
        marks: int = 150  # how many
        mark_radius: float = 0.01  # [m]
        step: float = 0.005  # [m] from mark to mark, seen from above
        coverage: float = 0.8  # share of the square, each way, that may be dirty
        bend: float = 0.3  # chance that the trail turns at a mark
        bend_std: float = 0.5  # [rad] by how much
        wipe_radius: float = 0.015  # [m]
        reach: float = 0.008  # [m]
        friction: float = 0.05  # of the wet surface

    def scene(self, b: SceneBuilder) -> CleanSurfaceHandles:
        c = self.config
        table(b, base_camera=((0.35, 0, 0.45), (-0.05, 0, 0.02)), human_camera=((0.4, 0.5, 0.45), (-0.1, 0, 0.1)))
        if c.scan:
            seen = scan_heights(c.scan, c.side, cells=c.cells, scale=c.scale)
            self.surface = HeightField(seen, c.side / (c.cells - 1))
        else:
            self.surface = mounds(c.side, c.cells)
        lay(b, self.surface, name="surface", pos=_MIDDLE, rgba=(0.93, 0.92, 0.88, 1.0), friction=c.friction)
        self._heights, self._middle = self.surface.tensor(), torch.tensor(_MIDDLE[:2])
        dirt = b.dots("dirt", count=c.marks, radius=c.mark_radius, height=0.01, rgba=(0.37, 0.27, 0.17, 1))
        return CleanSurfaceHandles(robot=b.robot(), dirt=dirt)

    def start(self, h: CleanSurfaceHandles, ep: Episode) -> None:
        c = self.config
        noisy_rest(h.robot, ep)
        edge = torch.full((2,), c.coverage * c.side / 2)
        flat = trail(ep.rng, edge, marks=c.marks, step=c.step, bend=c.bend, bend_std=c.bend_std)
        flat = flat + self._middle
        h.dirt.set_places(torch.cat([flat, self.height(flat)[..., None]], 2))

    def height(self, xy: Tensor) -> Tensor:
        """Height [m] of the surface at ``xy`` (..., 2) [m] in the world; beside it, that of its rim."""
        return self.surface.at(self._heights, xy - self._middle)

    @per_step
    def _geometry(self, h: CleanSurfaceHandles) -> tuple[Tensor, Tensor]:
        """Offsets from the tip to the marks (n, marks, 3) and the tip's height above the surface (n,) [m]."""
        tip = h.robot.tcp_pos
        return h.dirt.pos - tip[:, None], tip[:, 2] - self.height(tip[:, :2])

    def advance(self, h: CleanSurfaceHandles) -> None:
        offset, height = self._geometry(h)
        near = norm(offset[..., :2]) < constant(self.config.wipe_radius)
        h.dirt.hide(near & (height < constant(self.config.reach))[:, None])

    def evaluate(self, h: CleanSurfaceHandles) -> dict[str, Tensor]:
        height = self._geometry(h)[1]
        return {"success": ~h.dirt.shown.any(1), "is_down": height < constant(self.config.reach)}

    def observe(self, h: CleanSurfaceHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose},
            "privileged": {
                "tip_height": self._geometry(h)[1],
                "mark_pos": h.dirt.pos,
                "mark_wiped": (~h.dirt.shown).float(),
            },
        }

    def reward(self, h: CleanSurfaceHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        away = torch.where(h.dirt.shown, norm(self._geometry(h)[0]), constant(10.0)).amin(1)
        reach = torch.where(ev["success"], ONE, closeness(away, 5.0))
        return bonus({"reach": reach, "wiped": (~h.dirt.shown).float().mean(1)}, ev["success"], self.reward_max)

    def expert(self, h: CleanSurfaceHandles) -> list[Waypoint]:
        down, tip, row = facing_down(h.robot), h.robot.tcp_pos, torch.arange(h.n)
        done = ~h.dirt.shown.any(1)
        first = h.dirt.shown.to(torch.uint8).argmax(1)  # in the order of the trail
        near = norm(h.dirt.pos[row, first, :2] - tip[:, :2]) < constant(_APART)
        ahead = torch.where(near, (first + _AHEAD).clamp_max(self.config.marks - 1), first)
        goal = torch.where(done[:, None], tip, h.dirt.pos[row, ahead])
        high = torch.full_like(tip[:, 2], float(self.surface.heights.max()) + _LIFT)
        level = torch.where(~near | done, high, self.height(goal[:, :2]) + 0.003)
        over = torch.cat([h.dirt.pos[:, 0, :2], high[:, None]], 1)
        return [
            Waypoint(name="above", pose=pose(over, down), gripper=1, pos_tol=0.01, timeout_s=3.0),
            Waypoint(name="wipe", pose=pose(torch.cat([goal[:, :2], level[:, None]], 1), down), gripper=1, speed=0.12,
                     track=True).hold(),
        ]  # fmt: skip
