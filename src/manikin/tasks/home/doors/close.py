"""HomeClose-v1."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from manikin import Waypoint
from manikin.math import Constant, atan2, norm, pose, quat_from_yaw, quat_mul, yaw_rotate
from manikin.tasks.home.doors.approach import approach, backed, drive, floor, ready
from manikin.tasks.home.doors.mechanisms import MechanismHandles, MechanismTask
from manikin.tasks.home.doors.wide import shut_wide
from manikin.tasks.home.labels import subtask_labels
from manikin.tasks.home.rewards import close_terms
from manikin.tasks.home.rules import RULES
from manikin.toolkit import constant

__all__ = ["HomeClose"]

_POINTS = Constant(((0.0, math.cos(math.pi / 6), 0.0, 0.5),))  # a tool that points along x and 30 degrees down

_BASE = 0.35  # [m] around the base that it needs where it backs
_HAND = 0.75  # [m] before the base is the hand ...
_WALL = 0.1  # ... and [m] around it that it wants
_FAR, _ACROSS = 0.1, 0.72  # [m] of a way, and the sine of its angle with where the base faces at its end
_ABOVE = 0.25  # [m] above the middle of the handle the door's edge is free
# torso [m] and arm [rad] of a hand that points like that, before the robot on its right or left
_ON_RIGHT = Constant((0.35, -1.14, -1.03, 1.37, 0.2, -0.41, 1.63, -0.42))
_ON_LEFT = Constant((0.385, 0.46, -1.22, 1.14, 1.01, -1.38, 1.66, 1.17))


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

    def way(self, h: MechanismHandles, kind: str) -> list[Waypoint]:
        if kind == "drawer":
            return self._shut_drawer(h)
        return shut_wide(self, h) if self.wide else self._shut_fridge(h)

    def _shut_drawer(self, h: MechanismHandles) -> list[Waypoint]:
        """Drive before it, take its handle, push while driving on, leave, rest."""
        found, target, cold = self._fronts, h.target.value.long(), self.cold(h)
        foot, base, q, rest = found.handle[target], self.seen(h).base, self.joint(h).q, h.robot.keyframe("rest")
        wide = torch.full_like(q, 0.25)
        away = norm(base[:, :2] - foot[:, :2])
        away = torch.minimum(torch.maximum(away, q + 0.8), q + 0.95)
        line = approach(self.layout, cold, foot, found.yaw[target], base, -wide, wide, away, away - q)
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
            Waypoint(name="let go", pose=still, gripper=0.3, pos_tol=0.02, rot_tol=0.5),
            Waypoint(name="away", pose=clear, gripper=0.3, pos_tol=0.06, rot_tol=0.3, speed=0.6),
            Waypoint(name="rest", joints=rest.expand(h.n, -1), gripper=0.3).hold(),
        ]

    def _shut_fridge(self, h: MechanismHandles) -> list[Waypoint]:
        """Stand before it, take the edge of the door between the fingers, draw it along while driving on, push it shut
        from outside, stay until it is at rest, leave, rest."""
        found, target, q = self._fronts, h.target.value.long(), self.joint(h).q
        yaw, sense, rest = found.yaw[target], found.sense[target], h.robot.keyframe("rest")
        out = torch.stack([torch.cos(yaw), torch.sin(yaw)], 1)
        left_of = sense[:, None] * torch.stack([-out[:, 1], out[:, 0]], 1)

        at = self.seen(h).base
        forth, aside = ((((at[:, :2] - found.frame[target]) * axis).sum(1)) for axis in (out, left_of))
        askew = aside < -0.3  # it then backs, and there may be a wall beside the hinge, so it turns before
        stand = 1.75 + 0.4 * (1.8 - q).clamp_min(0.0)  # [m] before the fridge: further away from a door that is near
        # the elbow is on the right, where a wall beside the hinge leaves it little room
        beside = (found.frame[target] + 1.75 * out + 0.6 * left_of).numpy(force=True)
        room = torch.tensor((floor(self.layout).clearance_at(beside) + 0.03).tolist())
        to = torch.where(sense > 0, room, constant(0.4)).clamp(0.05, 0.45)
        to = torch.minimum(aside.clamp_min(0.05), to)  # going aside costs two turns

        def base(away: float | Tensor) -> Tensor:
            away = torch.full_like(forth, away) if isinstance(away, float) else away
            place = found.frame[target] + away[:, None] * out + to[:, None] * left_of
            return torch.cat([place, (yaw + math.pi)[:, None]], 1)

        # of the hand now: the fingers are past the door's edge and behind its face, where they would hold it open
        tool = yaw_rotate(h.robot.tcp_pos[:, :2] - found.hinge[target], -sense * q)
        along, off = -(tool * left_of).sum(1), (tool * out).sum(1)
        hooked = (along > 0.7) & (off < 0.015)

        def hand(to: Tensor | float, along: Tensor | float, off: Tensor | float, lean: float = 0.0) -> Tensor:
            """``along`` [m] the door from its hinge and ``off`` [m] outside of it, where it is at ``to``, above its
            handle; the hand points at the fridge, ``lean`` of the way to where the door points."""
            to = to if isinstance(to, Tensor) else torch.full_like(q, to)
            along, off = (v[:, None] if isinstance(v, Tensor) else v for v in (along, off))
            spot = found.hinge[target] + yaw_rotate(off * out - along * left_of, sense * to)
            facing = quat_mul(
                quat_from_yaw(yaw + math.pi + lean * sense * (to - math.pi / 2)),
                _POINTS.like(out).expand(len(out), 4),
            )
            return pose(torch.cat([spot, found.handle[target][:, 2:] + _ABOVE], 1), facing)

        near = ~askew & (forth < 1.6)  # it backs before it turns, as else its arm would push the door
        to_turn = backed(at, (1.5 - forth).clamp(0.0, 0.7)[:, None])[:, :2]
        clear = floor(self.layout).clearance_at(to_turn.numpy(force=True)) > _BASE
        near &= torch.tensor(clear.tolist())
        to_turn = torch.where(near[:, None], to_turn, at[:, :2])
        first = base(torch.where(askew, torch.maximum(forth + 0.3, stand), stand))
        facing = torch.where(askew, yaw + math.pi, at[:, 2])
        facing = torch.where(near, facing, _off_walls(self.layout, at, first, facing))
        turned = torch.cat([to_turn, facing[:, None]], 1)
        arm = torch.where((sense > 0)[:, None], _ON_RIGHT.like(rest), _ON_LEFT.like(rest))
        low, up = rest.expand(h.n, -1), torch.cat([rest[:-8].expand(h.n, -1), arm], 1)
        deep = 0.685 - 0.2 * (q - 1.8).clamp_min(0.0)  # [m] of the hand from the hinge: a wide open door slips from it
        push = 0.59 - 0.8 * to  # [m] from the hinge, so that the arm need not reach far aside
        # [m] where the base stands, [m/s] how fast the hand goes, [s] when it goes on at the latest, [m], [rad], [s]
        stages: list[tuple[str, Tensor, Tensor | float, float, float, float, float, float]] = [
            ("before", hand(q, 0.82, 0.024, -0.3), stand, 0.8, 0.7, 0.02, 0.12, 0.0),
            ("around", hand(q, deep, 0.024, -0.3), stand, 0.4, 0.7, 0.015, 0.15, 0.0),
            ("pull", hand(0.5 * (q + 1.2), 0.69, 0.03), stand, 0.8, 0.6, 0.06, 0.4, 0.0),
            ("draw", hand(1.2, 0.69, 0.03), stand, 0.8, 1.0, 0.06, 0.4, 0.0),
            ("past", hand(q, torch.where(hooked, 0.82, along), off), stand, 1.0, 0.4, 0.03, 3.0, 0.0),
            ("sweep", hand(0.7, 0.66, 0.14), 1.5, 1.0, 0.7, 0.035, 0.4, 0.0),
            ("shut", hand(0.0, push, 0.05), 1.3, 0.8, 0.75, 0.06, 0.4, 0.25),
        ]
        leave = Waypoint(
            name="leave",
            pose=hand(0.0, push, 0.3),
            base=base(1.5),
            gripper=1,
            pos_tol=0.06,
            rot_tol=0.4,
            speed=0.8,
            timeout_s=0.25,
        )
        return [
            replace(drive(turned, low, gripper=1), name="turn"),
            replace(drive(first, torch.where((near & (aside > 0))[:, None], low, up), gripper=1), timeout_s=0.8),
            replace(drive(first, up, gripper=1), base=None, name="ready", timeout_s=0.8),
            *(
                Waypoint(
                    name=name,
                    pose=to,
                    base=base(away),
                    gripper=1,
                    pos_tol=close,
                    rot_tol=off,
                    speed=speed,
                    dwell_s=dwell,
                    timeout_s=late,
                )
                for name, to, away, speed, late, close, off, dwell in stages
            ),
            # what is let go at once springs open: it comes to rest between its frame and a hand that stands still
            Waypoint(name="still", joints=h.robot.arm_qpos, gripper=1, rot_tol=2.0, dwell_s=0.6),
            leave,
            Waypoint(name="rest", joints=low, gripper=-1, turn=2.5).hold(),
        ]


def _off_walls(layout: str, at: Tensor, to: Tensor, facing: Tensor) -> Tensor:
    """(n,) [rad] where bases (n, 3) turn before they drive ``to`` (n, 3), across from where they end: forth or back,
    so that the hand before them comes to no wall. ``facing`` (n,) [rad] if neither or both would do."""
    way = to[:, :2] - at[:, :2]
    heading = atan2(way[:, 1], way[:, 0])
    ahead = _HAND * torch.stack([torch.cos(heading), torch.sin(heading)], 1)
    walled, walled_back = (
        torch.tensor(floor(layout).clearance_at(spot.numpy(force=True)).tolist()) < _WALL
        for spot in (to[:, :2] + ahead, at[:, :2] - ahead)
    )
    across = (torch.sin(heading - to[:, 2]).abs() > _ACROSS) & (norm(way) > _FAR)
    facing = torch.where(across & walled_back, heading, facing)
    return torch.where(across & walled, heading + math.pi, facing)
