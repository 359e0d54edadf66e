"""HomeOpen-v1."""

from __future__ import annotations

import torch
from torch import Tensor

from manikin import Waypoint
from manikin.math import norm, pose
from manikin.tasks.home.doors.approach import approach, drive, ready
from manikin.tasks.home.doors.mechanisms import MechanismHandles, MechanismTask
from manikin.tasks.home.doors.wide import open_wide
from manikin.tasks.home.labels import subtask_labels
from manikin.tasks.home.rewards import open_terms
from manikin.tasks.home.rules import RULES
from manikin.toolkit import constant

__all__ = ["HomeOpen"]

_LOW = 0.7  # [m] height below which a handle is low


class HomeOpen(MechanismTask):
    """Open a drawer of the kitchen counter, or the fridge, by its handle.

    Randomization: which of the built-in apartments (by the episode's seed, see ``layouts``); drawer or fridge, and
    which of the upper drawers; where before it the robot stands, and its heading; its arm's joints, a little noise
    about rest.
    Success: the drawer is open by 0.9 of its range, the fridge by 0.75; the tool and all joints are at rest; the robot
    stands still; its links have pressed on things with less than 10,000 N, added up over control steps.

    After MS-HAB's Open, whose numbers are in ``manikin.tasks.home.rules``. Starts in which the robot touches something
    are left out, and the others drawn before, as there. There are 200 control steps.
    """

    id = "HomeOpen-v1"
    subtask = "open"
    horizon_s = 10.0
    instruction = "open the drawer or the fridge"
    labels = subtask_labels("open")
    reward_max = RULES["open"].reward_max
    reward_terms = {
        "reach": "3 (1 - tanh(d)), d from tool to handle; 5 while grasped, 6 once open",
        "open": "6 times the share of the way to open, and 3 once it has moved by 1 cm or 0.01 rad",
        "slow": "3 while a drawer opens by at most 1 m/s, a fridge by 2 rad/s",
        "back": "once open: 2 (1 - tanh(j)) + r + 2 (1 - tanh(t)), j of the joints and t of the tool from rest, r how "
        "far the torso is raised; at rest also 1 - tanh(v), v all speeds",
        "success": "3 in success",
    }

    def reward(self, h: MechanismHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        seen, torso = self.seen(h), self.torso(h)
        return self.by_kind(h, lambda joint: open_terms(seen, joint, ev["success"], torso))

    def way(self, h: MechanismHandles, kind: str) -> list[Waypoint]:
        """Pull; push a door on that opens past a right angle."""
        return open_wide(self, h) if self.wide and kind == "fridge" else self._pull(h, kind)

    def _pull(self, h: MechanismHandles, kind: str) -> list[Waypoint]:
        """Drive before the handle, take it, pull while driving back, let go, rest."""
        found, target, cold = self._fronts, h.target.value.long(), self.cold(h)
        foot, base, joint, rest = found.handle[target], self.seen(h).base, self.joint(h), h.robot.keyframe("rest")

        def of(drawer: float, fridge: float) -> Tensor:
            return torch.where(cold, constant(fridge), constant(drawer))

        swings = found.sense[target]  # where a door swings, there the robot stands
        one, two = swings * of(0.0, 0.15), swings * of(0.0, 0.5)
        right, left = torch.minimum(one, two) - of(0.42, 0.0), torch.maximum(one, two) + of(0.42, 0.0)
        least = 0.8 + (_LOW - foot[:, 2]).clamp_min(0.0)  # a hand that reaches down needs room before it
        away = norm(base[:, :2] - foot[:, :2]).clamp(0.9, 0.95).maximum(least)
        backs = (of(to, 1.45) for to in (1.2, 1.3, 1.35))  # the less the arm folds, the sooner it is at rest
        line = approach(self.layout, cold, foot, found.yaw[target], base, right, left, away, *backs)
        near, far = line.base(away), line.base(line.back)
        before, around = line.hand(joint.handle, 0.08), line.hand(joint.handle, 0.015)
        half, opened = (line.hand(self.handle_at(h, of(*q)), 0.015) for q in ((0.24, 0.4), (0.47, 0.8)))
        tool = h.robot.tcp_pos
        leave, clear = (
            torch.where(cold[:, None], pose(line.behind(tool, 0.22), line.facing), line.hand(joint.handle, off))
            for off in (0.015, 0.25)
        )
        return [
            drive(near, ready(cold, rest), gripper=1),
            Waypoint(name="before", pose=before, gripper=0.1, pos_tol=0.03, rot_tol=0.1, speed=0.8),
            Waypoint(name="around", pose=around, gripper=0.1, pos_tol=0.01, rot_tol=0.1, speed=0.3),
            Waypoint(name="close", pose=around, gripper=-1, pos_tol=0.03, rot_tol=0.2),
            Waypoint(name="pull", pose=half, base=far, gripper=-1, pos_tol=0.05, rot_tol=0.4, speed=0.45),
            Waypoint(
                name="pull on",
                pose=opened,
                base=far,
                gripper=-1,
                pos_tol=0.02,
                rot_tol=0.4,
                speed=0.45,
                dwell_s=0.2 if kind == "drawer" else 0.0,  # a drawer that still moves when it is let go rolls shut
            ),
            Waypoint(name="let go", pose=leave, base=far, gripper=0.1, pos_tol=0.25, rot_tol=0.5, speed=0.6),
            Waypoint(
                name="away", pose=clear, base=far, gripper=0.1, pos_tol=0.06, rot_tol=0.3, speed=0.8, timeout_s=0.8
            ),
            Waypoint(name="rest", joints=rest.expand(h.n, -1), gripper=0.1).hold(),
        ]
