"""Fill-v1."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import Episode, Handles, Part, Quantity, Robot, SceneBuilder, Task, Waypoint
from manikin.arenas.table import table
from manikin.math import norm, pose_mul
from manikin.props.soft.grains import Grains, column, grain_radius, grains, tilt_forward, upright_axis
from manikin.props.soft.ladle import FLOOR, WALL, ladle, raise_ladle, tipped, tool_of
from manikin.props.soft.vessel import vessel
from manikin.toolkit import above, bonus, closeness, constant, per_step

__all__ = ["Fill"]

_BELOW = 0.05  # [m] the beaker's floor goes on below the table


@dataclass
class FillHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    ladle: Part
    beaker: Part
    grains: Grains


class Fill(Task):
    """Empty a ladle of grains, which is fixed to the arm, into a beaker.

    Randomization: the beaker's place, uniform in a rectangle; how the grains lie; the arm's joints, a little noise
    about where it holds the ladle upright.
    Success: at least ``filled`` of the grains are in the beaker, and nearly all velocities of grains along an axis of
    the world (a share of ``calm``) are below ``calm_speed``.

    Model: as in Pour: ``count`` smooth balls of three degrees of freedom each stand in for ManiSkill2's material
    points, 100 physics steps per second. There are no liquids. There and here about nine tenths of the grains must be
    in the beaker and be calm; the reward is manikin's own.
    """

    id = "Fill-v1"
    horizon_s = 8.0
    instruction = "empty the ladle into the beaker"
    robots = ("panda+stick",)
    robot_needs = ("stick",)
    reward_max = 6.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "beaker_pos": Quantity("m", "world", "the middle of its bottom"),
        "ladle_pose": Quantity("m, quaternion wxyz", "world", "z along its axis, origin at its bottom"),
        "shares": Quantity("1", "", "shares of the grains: in the beaker, in the ladle, spilt, in the air"),
    }
    reward_terms = {
        "carry": "1 - tanh(5 d), d from the ladle's lip to above the beaker",
        "fill": "3 times the share of the grains that are in the beaker",
        "clean": "1 less the share that is spilt",
        "success": "what is missing to 6, in success",
    }

    @dataclass(frozen=True)
    class Config:
        count: int = 200  # grains, 1 to 1000
        fill_radius: float = 0.005  # [m] of a grain where there are 200; others fill as much
        ladle_radius: float = 0.032  # [m] inside
        ladle_height: float = 0.09  # [m]
        beaker_radius: float = 0.05  # [m] inside
        beaker_height: float = 0.08  # [m]
        beaker_low: tuple[float, float] = (-0.2, -0.2)  # [m] corner of the rectangle
        beaker_high: tuple[float, float] = (-0.05, 0.2)  # [m] the other one
        filled: float = 0.9  # share of all grains, in the beaker, at least
        calm: float = 0.99  # share of the grains' velocity components that are small, more than
        calm_speed: float = 0.05  # [m/s]

    def scene(self, b: SceneBuilder) -> FillHandles:
        c = self.config
        table(b, human_camera=((0.45, 0.75, 0.45), (-0.1, 0.05, 0.08)))
        self._radius = grain_radius(c.count, c.fill_radius)
        self._column = column(c.count, self._radius, c.ladle_radius)
        robot = b.robot()
        scoop, self._in_tool = ladle(b, robot, radius=c.ladle_radius, height=c.ladle_height)
        shapes = vessel(c.beaker_radius, c.beaker_height, wall=WALL, floor=FLOOR, below=_BELOW)
        beaker = b.part("beaker", shapes, kind="kinematic", rgba=(0.8, 0.85, 0.9, 0.3))
        balls = grains(b, "grains", count=c.count, radius=self._radius)
        return FillHandles(robot=robot, ladle=scoop, beaker=beaker, grains=balls)

    def start(self, h: FillHandles, ep: Episode) -> None:
        c, rng = self.config, ep.rng
        q = raise_ladle(h.robot, rng)
        pos, quat = h.robot.solver.chain.fk(q.double())
        tool = pose_mul(h.robot.base_pose.expand(h.n, 7), torch.cat([pos, quat], 1).float())
        at = pose_mul(tool, self._in_tool.expand(h.n, 7))
        spot = rng.uniform("beaker/xy", torch.tensor(c.beaker_low), torch.tensor(c.beaker_high), (2,))
        h.beaker.set_pose(torch.cat([spot, torch.zeros(h.n, 1)], 1))
        inside = self._column + h.grains.shake(rng) + torch.tensor([0.0, 0.0, FLOOR + 0.002])
        axis = upright_axis(at[:, 3:])[:, None]
        flat = inside * torch.tensor([1.0, 1.0, 0.0])
        h.grains.set_pos(at[:, None, :3] + flat + inside[:, :, 2:] * axis)

    @per_step
    def shares(self, h: FillHandles) -> Tensor:
        """(n, 4) of all grains: in the beaker, in the ladle, spilt, and in the air; they add up to 1."""
        c = self.config
        inside = h.grains.within(h.beaker, c.beaker_radius + WALL, c.beaker_height)
        held = h.grains.within(h.ladle, c.ladle_radius + WALL, c.ladle_height + self._radius) & ~inside
        out = ~inside & ~held
        spilt = out & (h.grains.pos[:, :, 2] < constant(2.0 * self._radius))
        return torch.stack([inside, held, spilt, out & ~spilt], 1).float().mean(2)

    def evaluate(self, h: FillHandles) -> dict[str, Tensor]:
        c = self.config
        slow = h.grains.calm(c.calm_speed)
        return {
            "success": (self.shares(h)[:, 0] >= constant(c.filled)) & (slow > constant(c.calm)),
            "is_filled": self.shares(h)[:, 0] >= constant(c.filled),
        }

    def observe(self, h: FillHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose},
            "privileged": {
                "beaker_pos": h.beaker.pos,
                "ladle_pose": h.ladle.pose,
                "shares": self.shares(h),
            },
        }

    def reward(self, h: FillHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        shares, axis = self.shares(h), upright_axis(h.ladle.quat)
        rim = torch.add(h.ladle.pos, axis, alpha=self.config.ladle_height)
        over = above(h.beaker.pos, self.config.beaker_height + 0.04)
        terms = {
            "carry": closeness(norm(rim - over), 5.0),
            "fill": constant(3.0) * shares[:, 0],
            "clean": 1.0 - shares[:, 2],
        }
        return bonus(terms, ev["success"], self.reward_max)

    def expert(self, h: FillHandles) -> list[Waypoint]:
        tilt = tilt_forward(h.ladle.quat)
        first = torch.full_like(tilt, 0.3)
        over = torch.where(self.shares(h)[:, 1] > 0.01, (tilt + 0.2).clamp(0.6, 2.1), first)
        return [
            self._tipped(h, "across", first, higher=0.08),
            self._tipped(h, "over", first),
            self._tipped(h, "tip", over).hold(),
        ]

    def _tipped(self, h: FillHandles, name: str, tilt: Tensor, higher: float = 0.0) -> Waypoint:
        """The ladle tipped by ``tilt`` (n,) [rad], its lip over the beaker and the rest of it clear of that."""
        c = self.config
        lip = above(h.beaker.pos, c.beaker_height + 0.02 + higher)
        lip[:, 2] += torch.minimum(c.ladle_height * torch.cos(tilt), 0.03 / torch.tan(tilt).abs()).clamp_min(0.0)
        lip[:, 0] -= 0.03  # they fly forward a little
        at = tipped(lip, tilt, radius=c.ladle_radius + WALL, height=c.ladle_height)
        return Waypoint(
            name=name,
            pose=tool_of(at, self._in_tool),
            gripper=1,
            pos_tol=0.02,
            rot_tol=0.1,
            speed=0.3,
            turn=1.0,
            timeout_s=3,
            track=name == "tip",
        )
