"""PickClutterYCB-v2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from manikin import Episode, Marker, Quantity, SceneBuilder, VariantPart, Waypoint
from manikin.arenas.table import table
from manikin.math import norm, pose
from manikin.props.ycb import ycb
from manikin.tasks.tabletop.pick_single_ycb import PickSingleYCB, PickSingleYCBHandles, across, grip_point
from manikin.toolkit import above, first_valid, full_turn, noisy_rest, top_down

__all__ = ["PickClutterYCB"]


@dataclass
class PickClutterYCBHandles(PickSingleYCBHandles):
    """What the scene consists of, and ``h`` below; a type checker would hold ``h`` to the class derived from."""

    others: list[VariantPart]
    wanted: Marker


class PickClutterYCB(PickSingleYCB):
    """Pick one of several everyday objects and hold it at a goal above the others.

    Randomization: which YCB objects stand on the table, how many, and which is wanted (the one under the small green
    ball); their places, apart from one another and farther from the wanted one, and turns; the goal's place; the arm's
    joints, a little noise about a raised pose.
    Success: the middle of the wanted object is within ``goal_radius`` of the goal and the arm stands still.

    ManiSkill3 3.0.1 has a task of this name without reward or success. Objects as in PickSingleYCB-v2.
    """

    id = "PickClutterYCB-v2"
    horizon_s = 5.0
    instruction = "pick up the marked object from among the others and hold it at the green goal"
    observations = {
        **PickSingleYCB.observations,
        "others_pos": Quantity("m", "world", "0 for those that are absent"),
        "others_present": Quantity("0 or 1"),
    }

    @dataclass(frozen=True)
    class Config(PickSingleYCB.Config):
        goal_low: float = 0.2  # [m] the goal is at least this far above the object's resting height
        others: tuple[int, int] = (2, 5)  # fewest and most objects beside the wanted one
        field_half_size: tuple[float, float] = (0.15, 0.3)  # [m] of the rectangle where the others stand
        gap: float = 0.02  # [m] between the others
        room: float = 0.12  # [m] around the wanted object's middle, for the gripper

    def scene(self, b: SceneBuilder) -> PickClutterYCBHandles:
        c = self.config
        table(b)
        robot, props = b.robot(), ycb(tuple(c.objects))
        parts = [b.mesh(f"object{i}" if i else "object", choice=props, draw=False) for i in range(1 + c.others[1])]
        return PickClutterYCBHandles(
            robot=robot,
            thing=parts[0],
            others=parts[1:],
            grasp=b.grasp(robot, parts[0]),
            goal=b.variable("goal", (3,)),
            marker=b.marker("goal_marker", size=(c.goal_radius,), rgba=(0.1, 0.8, 0.2, 0.5)),
            wanted=b.marker("wanted_marker", size=(0.01,), rgba=(0.1, 0.8, 0.2, 1)),
        )

    def start(self, h: Any, ep: Episode) -> None:
        c = self.config
        noisy_rest(h.robot, ep, keyframe="raised")
        order = ep.rng.permutation("objects", len(c.objects))
        count = ep.rng.integers("others", c.others[0], c.others[1] + 1)
        h.thing.set_choice(order[:, 0])
        spot = ep.rng.uniform("object/xy", -c.spawn_half_size, c.spawn_half_size, (2,))
        taken, apart = [spot], [torch.full_like(spot[:, 0], c.room)]
        self._stand(h.thing, spot, ep, "object")
        half = torch.tensor(c.field_half_size)
        for i, part in enumerate(h.others):
            there = i < count
            part.set_choice(order[:, (1 + i) % order.shape[1]], there)
            radius = norm(part.extents[:, :2])
            tries = ep.rng.uniform(f"object{1 + i}/xy", -1.0, 1.0, (64, 2)) * half
            away = torch.stack(
                [norm(tries - p[:, None]) - (r + radius)[:, None] for p, r in zip(taken, apart, strict=True)]
            ).amin(0)
            spot = first_valid(tries, (away >= c.gap) | (away >= away.amax(1, keepdim=True)))
            self._stand(part, spot, ep, part.name)
            taken.append(torch.where(there[:, None], spot, spot + 100.0))  # the absent take no place
            apart.append(radius)
        low = torch.tensor([-c.spawn_half_size, -c.spawn_half_size, c.goal_low])
        high = torch.tensor([c.spawn_half_size, c.spawn_half_size, c.goal_height])
        goal = ep.rng.uniform("goal", low, high, (3,))
        goal[:, 2] += h.thing.extents[:, 2]
        h.goal.set(goal)
        h.marker.set_pose(goal)
        h.wanted.set_pose(torch.cat([taken[0], 2 * h.thing.extents[:, 2:] + 0.02], 1))

    def _stand(self, part: VariantPart, spot: Tensor, ep: Episode, name: str) -> None:
        part.set_pose(torch.cat([spot, part.extents[:, 2:]], 1), full_turn(ep, f"{name}/yaw"))

    def observe(self, h: Any) -> dict[str, dict[str, Tensor]]:
        seen = super().observe(h)
        present = torch.stack([part.present for part in h.others], 1)
        places = torch.stack([part.pos for part in h.others], 1)
        seen["privileged"]["others_pos"] = torch.where(present[:, :, None], places, torch.zeros_like(places))
        seen["privileged"]["others_present"] = present
        return seen

    def expert(self, h: Any) -> list[Waypoint]:
        _, down, close, _, goal = super().expert(h)
        grip, facing = grip_point(h.thing), top_down(across(h.thing), h.robot, symmetry=2)
        over = torch.cat([grip[:, :2], grip[:, 2:].clamp_min(0.28)], 1)
        up = pose(above(h.robot.tcp_pos, 0.2), h.robot.tcp_quat)
        return [
            Waypoint(name="over", pose=pose(over, facing), gripper=1, pos_tol=0.02, speed=1.0),
            down,
            close,
            Waypoint(name="lift", pose=up, gripper=-1, pos_tol=0.03),
            goal,
        ]
