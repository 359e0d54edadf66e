"""FoldCloth-v1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import Episode, Grasp, Handles, Quantity, Robot, SceneBuilder, Task, Waypoint
from manikin.arenas.table import table
from manikin.math import atan2, norm, pose, quat_from_yaw, quat_mul
from manikin.props.soft.cloth import Cloth, cloth
from manikin.toolkit import GRASP, ONE, above, bonus, closeness, constant, facing_down, noisy_rest, per_step

__all__ = ["FoldCloth"]


@dataclass
class FoldClothHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    cloth: Cloth
    grasp: Grasp


class FoldCloth(Task):
    """Fold a cloth to a triangle, corner on corner, and let go of it.

    Randomization: the cloth's place, uniform in a square, and its turn; the arm's joints, a little noise about rest.
    Success: the points of one half lie no further from their mirror images of the other than ``gap`` in the mean, seen
    from above; the fold is no shorter than ``straight`` of the diagonal; nothing of the cloth is higher than ``flat``;
    the gripper has let go, and no point moves faster than ``calm_speed``.

    Model: ``across`` squared points of three degrees of freedom, tied by triangles of MuJoCo's finite elements (flex),
    which resist stretching and bending; 100 physics steps per second. The cloth touches everything but itself: the
    layers of the folded cloth lie in one another. A parallel gripper cannot get under a cloth that lies flat, so one
    corner carries a bead, two centimetres thick. Neither ManiSkill2 nor ManiSkill3 has this task; rule and numbers are
    our own.
    """

    id = "FoldCloth-v1"
    horizon_s = 8.0
    labels = GRASP
    instruction = "fold the cloth to a triangle by the corner with the bead"
    robots = ("panda",)
    reward_max = 6.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "is_grasped": Quantity("0 or 1", "", "whether the gripper holds the cloth"),
        "corners": Quantity("m", "world", "the corner opposite the bead, the bead, and the two others"),
        "cloth_points": Quantity("m", "world", "all points of the cloth, column by column"),
    }
    reward_terms = {
        "reach": "1 - tanh(5 d), d from TCP to the bead; 1 once the cloth is folded",
        "grasp": "1 while grasped",
        "fold": "3 (1 - g / g0), g the mean distance of mirror images and g0 that of a flat cloth, at least 0",
        "success": "what is missing to 6, in success",
    }

    @dataclass(frozen=True)
    class Config:
        side: float = 0.24  # [m] of the cloth
        across: int = 9  # points along a side
        spread: float = 0.05  # [m] half size of the square in which its middle starts, about (-0.1, 0)
        turn: float = 0.4  # [rad] either way from where the bead is nearest the robot
        gap: float = 0.05  # [m]
        straight: float = 0.85  # share of the diagonal
        flat: float = 0.06  # [m]
        calm_speed: float = 0.1  # [m/s]

    def scene(self, b: SceneBuilder) -> FoldClothHandles:
        c = self.config
        table(b, human_camera=((0.4, 0.45, 0.5), (-0.1, 0.0, 0.02)))
        robot = b.robot()
        sheet = cloth(b, "cloth", side=c.side, across=c.across)
        k, step = c.across, c.side / (c.across - 1)
        away = [(k - 1 - i - j) * math.sqrt(2) * step for i in range(k) for j in range(k) if i + j < k - 1]
        self._flat_gap = sum(away) / len(away)  # mean distance of mirror images while the cloth lies flat
        return FoldClothHandles(robot=robot, cloth=sheet, grasp=b.grasp(robot, sheet.part))

    def start(self, h: FoldClothHandles, ep: Episode) -> None:
        c, rng = self.config, ep.rng
        noisy_rest(h.robot, ep)
        spot = rng.uniform("cloth/xy", -c.spread, c.spread, (2,)) + torch.tensor([-0.1, 0.0])
        yaw = rng.uniform("cloth/yaw", -c.turn, c.turn) + 3 * math.pi / 4
        h.cloth.place(torch.cat([spot, torch.full((h.n, 1), 0.005)], 1), yaw)

    @per_step
    def gap(self, h: FoldClothHandles) -> Tensor:
        """(n,) [m] mean distance of points from their mirror images, seen from above."""
        return h.cloth.gaps.mean(1)

    def evaluate(self, h: FoldClothHandles) -> dict[str, Tensor]:
        c, cloth = self.config, h.cloth
        corners = cloth.corners
        fold = norm(corners[:, 2] - corners[:, 3])
        flat = cloth.pos[..., 2].amax(1) <= constant(c.flat)
        folded = (self.gap(h) <= constant(c.gap)) & (fold >= constant(c.straight * c.side * math.sqrt(2))) & flat
        free = ~h.grasp.touches & (cloth.speed <= constant(c.calm_speed))
        return {"success": folded & free, "is_folded": folded, "is_grasped": h.grasp.value}

    def observe(self, h: FoldClothHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose, "is_grasped": h.grasp.value},
            "privileged": {"corners": h.cloth.corners.flatten(1), "cloth_points": h.cloth.pos.flatten(1)},
        }

    def reward(self, h: FoldClothHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        reach = closeness(norm(h.cloth.corners[:, 1] - h.robot.tcp_pos), 5.0)
        fold = (ONE - self.gap(h) * constant(1.0 / self._flat_gap)).clamp_min(0.0)
        terms = {
            "reach": torch.where(ev["is_folded"], ONE, reach),
            "grasp": ev["is_grasped"].float(),
            "fold": constant(3.0) * fold,
        }
        return bonus(terms, ev["success"], self.reward_max)

    def expert(self, h: FoldClothHandles) -> list[Waypoint]:
        corners = h.cloth.corners
        goal, bead = corners[:, 0], corners[:, 1]
        way = goal - bead
        down = quat_mul(quat_from_yaw(atan2(way[:, 1], way[:, 0])), facing_down(h.robot))  # fingers beside the corner
        aside = corners[:, 2] - corners[:, 3]
        # where the fold and the bead's way cross; the cloth hangs from the bead in between
        middle = (corners[:, 2] + corners[:, 3]) / 2
        inward = torch.stack([-aside[:, 1], aside[:, 0], torch.zeros_like(aside[:, 0])], 1) / norm(aside)[:, None]

        def over(share: float, height: float) -> Tensor:  # share of the way from the bead to the corner opposite
            along = constant((2 * share - 1) * self.config.side / math.sqrt(2))
            flat = middle + along * inward
            return pose(torch.cat([flat[:, :2], torch.full((h.n, 1), height)], 1), down)

        held = above(bead, 0.002)
        return [
            Waypoint(name="above", pose=pose(above(held, 0.08), down), gripper=1, pos_tol=0.02, rot_tol=0.1),
            Waypoint(name="down", pose=pose(held, down), gripper=1, pos_tol=0.004),
            Waypoint(name="close", pose=pose(held, down), gripper=-1, pos_tol=0.02, dwell_s=0.3),
            Waypoint(name="lift", pose=over(0.15, 0.1), gripper=-1, pos_tol=0.02, rot_tol=0.2, speed=0.25),
            Waypoint(name="over", pose=over(0.5, 0.15), gripper=-1, pos_tol=0.02, rot_tol=0.2, speed=0.25),
            Waypoint(name="beyond", pose=over(0.9, 0.1), gripper=-1, pos_tol=0.02, rot_tol=0.2, speed=0.25),
            Waypoint(name="lower", pose=over(1.07, 0.018), gripper=-1, pos_tol=0.01, rot_tol=0.2, speed=0.25),
            Waypoint(name="open", pose=over(1.07, 0.018), gripper=1, pos_tol=0.02, rot_tol=0.2, dwell_s=0.3),
            Waypoint(name="away", pose=over(1.07, 0.12), gripper=1, pos_tol=0.02, speed=0.2).hold(),
        ]
