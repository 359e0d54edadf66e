"""HomeOpen-v1."""

from __future__ import annotations

import torch
from torch import Tensor

from manikin import Waypoint
from manikin.math import norm
from manikin.tasks.home.approach import approach, ready
from manikin.tasks.home.labels import subtask_labels
from manikin.tasks.home.mechanisms import MechanismHandles, MechanismTask
from manikin.tasks.home.rewards import open_terms
from manikin.tasks.home.rules import RULES

__all__ = ["HomeOpen"]


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

    def expert(self, h: MechanismHandles) -> list[Waypoint]:
        """Drive before the handle, take it, pull while driving back, let go, rest."""
        found, target = self._fronts, h.target.value.long()
        foot, out = found.handle[target], found.yaw[target]
        line = approach("drawer", foot, out, self.seen(h).base, (-0.5, 0.5))
        handle, rest = self.joint(h).handle, h.robot.keyframe("rest")
        way = torch.stack([torch.cos(out), torch.sin(out), torch.zeros_like(out)], 1)
        opened = foot + 0.47 * way
        away = norm(self.seen(h).base[:, :2] - foot[:, :2])
        near, far = line.base(away.clamp(0.8, 0.95)), line.base(1.2)
        return [
            Waypoint(
                name="drive",
                base=near,
                joints=ready("drawer", rest).expand(h.n, -1),
                gripper=1,
                pos_tol=0.03,
                rot_tol=0.25,
                speed=0.9,
                turn=2.5,
                timeout_s=3.0,
            ),
            Waypoint(name="before", pose=line.hand(handle, 0.08), gripper=0.1, pos_tol=0.03, rot_tol=0.1, speed=0.8),
            Waypoint(name="around", pose=line.hand(handle, 0.015), gripper=0.1, pos_tol=0.01, rot_tol=0.1, speed=0.3),
            Waypoint(name="close", pose=line.hand(handle, 0.015), gripper=-1, pos_tol=0.03, rot_tol=0.2),
            Waypoint(name="pull", pose=line.hand(opened, 0.015), base=far, gripper=-1, pos_tol=0.02, rot_tol=0.3, speed=0.45),
            Waypoint(name="let go", pose=line.hand(handle, 0.015), base=far, gripper=0.1, pos_tol=0.05, rot_tol=0.3),
            Waypoint(name="away", pose=line.hand(handle, 0.15), base=far, gripper=0.1, pos_tol=0.06, rot_tol=0.3),
            Waypoint(name="rest", joints=rest.expand(h.n, -1), base=far, gripper=0.1).hold(),
        ]
