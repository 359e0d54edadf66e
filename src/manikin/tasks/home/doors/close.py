"""HomeClose-v1."""

from __future__ import annotations

import torch
from torch import Tensor

from manikin import Waypoint
from manikin.math import norm
from manikin.tasks.home.doors.approach import approach, drive, ready
from manikin.tasks.home.doors.mechanisms import MechanismHandles, MechanismTask
from manikin.tasks.home.labels import subtask_labels
from manikin.tasks.home.rewards import close_terms
from manikin.tasks.home.rules import RULES

__all__ = ["HomeClose"]


class HomeClose(MechanismTask):
    """Close a drawer of the kitchen counter, or the fridge.

    Randomization: which of the built-in apartments (by the episode's seed, see ``layouts``); drawer or fridge, and
    which of the upper drawers; how far it is open, a drawer by 0.9 of its range and more, a fridge by 0.75; where
    before it the robot stands, and its heading; its arm's joints, a little noise about rest.
    Success: it is open by less than a hundredth of its range; the tool and all joints are at rest; the robot stands
    still; its links have pressed on things with less than 10,000 N, added up over control steps.

    After MS-HAB's Close, whose numbers are in ``manikin.tasks.home.rules``. Starts in which the robot touches something
    are left out, and the others drawn before, as there. There are 200 control steps.
    """

    id = "HomeClose-v1"
    subtask = "close"
    horizon_s = 10.0
    instruction = "close the drawer or the fridge"
    labels = subtask_labels("close")
    reward_max = RULES["close"].reward_max
    reward_terms = {
        "reach": "7 (1 - tanh(d)), d from tool to handle; 7.5 while grasped, 8 once pushed shut: shut, and the tool "
        "was within 30 cm of the handle while it was",
        "close": "5 times the share of the way to shut from wide open",
        "slow": "5 while a drawer moves by at most 1 m/s, a fridge by 2 rad/s",
        "arm": "1 - (tanh(j) + tanh(j / 5)) / 2, j of the joints from rest; 10 times that once pushed shut",
        "back": "once pushed shut: r + 2 - tanh(t) - tanh(3 t), r how far the torso is raised, t of the tool from "
        "rest; at rest also 2 (1 - tanh(v)), v all speeds",
        "success": "3 in success, once pushed shut",
    }

    def reward(self, h: MechanismHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        seen, torso, pushed = self.seen(h), self.torso(h), h.pushed.value > 0
        return self.by_kind(h, lambda joint: close_terms(seen, joint, pushed, ev["success"], torso))

    def expert(self, h: MechanismHandles) -> list[Waypoint]:
        """Drive before a drawer, take its handle between open fingers, push while driving on, leave, rest."""
        if self._kinds != ("drawer",):
            raise NotImplementedError(f"{self.id} has a scripted expert for mechanism='drawer' alone")
        found, target, cold = self._fronts, h.target.value.long(), self.cold(h)
        foot, base, q, rest = found.handle[target], self.seen(h).base, self.joint(h).q, h.robot.keyframe("rest")
        wide = torch.full_like(q, 0.4)
        away = norm(base[:, :2] - foot[:, :2])
        away = torch.minimum(torch.maximum(away, q + 0.8), q + 0.95)
        line = approach(self.layout, cold, foot, found.yaw[target], base, -wide, wide, (away, away - q))
        near, on = line.base(away), line.base(away - q)
        before, around, half, shut, still = (
            line.hand(self.handle_at(h, to), back)
            for to, back in (
                (q, 0.08),
                (q, 0.015),
                (0.5 * q, 0.015),
                (torch.full_like(q, -0.01), 0.015),
                (torch.full_like(q, -0.007), 0.015),
            )
        )
        clear = line.hand(foot, 0.25)
        return [
            drive(near, ready(cold, rest), gripper=0.1),
            Waypoint(name="before", pose=before, gripper=0.1, pos_tol=0.03, rot_tol=0.1, speed=0.8),
            Waypoint(name="around", pose=around, gripper=0.1, pos_tol=0.01, rot_tol=0.1, speed=0.3),
            Waypoint(name="close", pose=around, gripper=-1, pos_tol=0.03, rot_tol=0.2),
            Waypoint(name="push", pose=half, base=on, gripper=-1, pos_tol=0.06, rot_tol=0.4, speed=0.4),
            Waypoint(name="push on", pose=shut, base=on, gripper=-1, pos_tol=0.01, rot_tol=0.4, speed=0.4),
            Waypoint(name="stop", pose=still, base=on, gripper=-1, pos_tol=0.01, rot_tol=0.4, dwell_s=0.3),
            Waypoint(name="let go", pose=still, gripper=0.1, pos_tol=0.02, rot_tol=0.5),
            Waypoint(name="away", pose=clear, gripper=0.1, pos_tol=0.06, rot_tol=0.3, speed=0.8),
            Waypoint(name="rest", joints=rest.expand(h.n, -1), gripper=0.1).hold(),
        ]
