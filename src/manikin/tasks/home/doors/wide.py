"""Experts of a door that counts as open only past a right angle: where its handle goes away from a robot before it.

It is pulled ajar and pushed on from inside; to shut it the hand sweeps its outer face. Lengths are from its hinge: out
is where it faces when it is shut, aside is from the hinge to the handle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from manikin import Waypoint
from manikin.math import atan2, pose, quat_from_yaw, quat_mul, wrap_to_pi
from manikin.tasks.home.doors.approach import FRIDGE, Approach, aim, backed, drive, floor, ready, room_on
from manikin.tasks.home.doors.mechanisms import MechanismHandles, MechanismTask

__all__ = ["Swung", "beside", "behind", "open_wide", "shut_wide"]

_ROOM = 0.33  # [m] that the base wants around it
_TIGHT = 20.0  # [rad/m] or [m/m] a line or a stand is as good as one that is so much worse and has so much less room
_NEAREST, _FARTHEST = 0.88, 0.95  # [m] from the handle where it is taken
# [rad] of the line on which it is pulled from where the door faces, away from the hinge, and [m] from the handle where
# it ends, where there is room; where it ends nearer, it is turned further [rad/m]
_TURNED, _BACK, _MORE = 0.2, 1.25, 0.75
_LINES = np.linspace(0.0, 0.9, 19)  # [rad] that are tried
_BACKS = np.linspace(0.7, _BACK, 12)  # [m] likewise
_AJAR = (0.4, 0.65)  # [rad] half of the way and all of it that the handle is pulled
_PAST = 0.1  # [rad] past where it counts as open the hand pushes it, as far as it comes

_HANGS = aim(45.0, 180.0)  # a hand between ahead and down, as it is at rest
_STAND = (1.3, -0.65)  # [m] out and aside, from where a door is swept shut, where there is room
_STANDS = np.array([(x, y) for x in np.linspace(0.8, 1.3, 6) for y in np.linspace(-1.25, -0.55, 8)])
_BEFORE = 0.75  # [m] of a stand from the door
_SAMPLES = 7  # of a door
_NARROW = 0.35  # [m] around a stand below which the base comes backwards, with the arm behind it ...
_CLOSE = 1.08  # ... and [m] before the fridge, where an arm that turns touches it
_OVER = 0.075  # [m] of the hand above the bar of the handle, where the outer face is free


@dataclass(frozen=True)
class Swung:
    """A door at some angle, as places on the floor (n, 2) [m].

    Attributes:
        hinge: (n, 2) [m].
        out: (n, 2) unit vector of where it faces, shut.
        aside: (n, 2) unit vector from the hinge to the handle, shut.
        width: (n,) [m] from the hinge to its edge.
    """

    hinge: Tensor
    out: Tensor
    aside: Tensor
    width: Tensor

    @classmethod
    def of(cls, hinge: Tensor, yaw: Tensor, sense: Tensor, width: Tensor) -> Swung:
        """A door with hinge (n, 2) [m] that faces yaw (n,) [rad], and turns by sense (n,), 1 to the left, -1 to the
        right."""
        out = torch.stack([torch.cos(yaw), torch.sin(yaw)], 1)
        return cls(hinge, out, sense[:, None] * torch.stack([out[:, 1], -out[:, 0]], 1), width)

    def place(self, out: float | Tensor, aside: float | Tensor) -> Tensor:
        """(n, 2) so far out and aside."""
        one, two = (v[:, None] if isinstance(v, Tensor) else v for v in (out, aside))
        return self.hinge + one * self.out + two * self.aside

    def at(self, q: float | Tensor, along: float | Tensor, off: float = 0.0) -> Tensor:
        """(n, 2) ``along`` the door that is at q [rad], and ``off`` before its outer face, below 0 behind it."""
        q = q if isinstance(q, Tensor) else torch.full_like(self.width, q)
        return self.place(along * torch.sin(q) + off * torch.cos(q), along * torch.cos(q) - off * torch.sin(q))

    def edge(self, q: float | Tensor) -> Tensor:
        """(n, 2) its edge where it is at q [rad]."""
        return self.at(q, self.width)


def beside(layout: str, foot: Tensor, out: Tensor, sense: Tensor, base: Tensor) -> tuple[Approach, Tensor]:
    """The line from which a door is pulled so that the hand comes round its edge later: from beside its handle, away
    from the hinge; with (n,) [m] from the handle where the base takes it.

    Args:
        layout: of an apartment.
        foot: (n, 3) [m] the handle.
        out: (n,) [rad] where the door faces, shut.
        sense: (n,) of its turn, 1 to the left, -1 to the right.
        base: (n, 3) x, y [m] and yaw of the base.
    """
    near = torch.linalg.vector_norm(base[:, :2] - foot[:, :2], dim=1).clamp(_NEAREST, _FARTHEST)
    yaw = out[:, None] - sense[:, None] * torch.tensor(_LINES.tolist())  # (n, lines)
    backs = torch.tensor(_BACKS.tolist())
    least = room_on(layout, foot, yaw, near, backs.expand(len(near), -1))
    turned = np.abs(_LINES[:, None] - _TURNED - _MORE * (_BACK - _BACKS))
    cost = turned + np.abs(_BACKS - _BACK) + _TIGHT * np.maximum(_ROOM - least, 0.0)
    best = cost.reshape(len(near), -1).argmin(1)
    line, end = (torch.tensor(numbers.tolist()) for numbers in divmod(best, len(_BACKS)))
    facing = wrap_to_pi(yaw.gather(1, line[:, None])[:, 0] + math.pi)
    back = backs[end]
    hand = quat_mul(quat_from_yaw(facing), FRIDGE.like(foot))
    return Approach(foot, facing, hand, back), torch.minimum(near, back)


def behind(layout: str, door: Swung, q: Tensor) -> tuple[Tensor, Tensor]:
    """(n, 2) [m] where the robot stands to go round the edge of a door at q (n,) [rad] and to sweep it shut: on the
    side of the hinge, as near to :data:`_STAND` as there is room; and (n,) bool, whether there is little."""
    grid = torch.tensor(_STANDS.tolist())
    stands = door.hinge[:, None] + grid[:, :1] * door.out[:, None] + grid[:, 1:] * door.aside[:, None]
    room = floor(layout).clearance_at(stands.numpy(force=True).reshape(-1, 2)).reshape(stands.shape[:2])
    free = torch.tensor(room.tolist())
    share = torch.linspace(0.0, 1.0, _SAMPLES)[:, None]
    points = door.hinge[:, None] + share * (door.edge(q) - door.hinge)[:, None]  # (n, samples, 2)
    off = torch.linalg.vector_norm(stands[:, :, None] - points[:, None], dim=-1).amin(-1)
    short = (_ROOM - free).clamp_min(0.0) + (_BEFORE - off).clamp_min(0.0)
    best = (torch.linalg.vector_norm(grid - torch.tensor(_STAND), dim=1) + _TIGHT * short).argmin(1)
    row = torch.arange(len(stands))
    return stands[row, best], free[row, best] < _NARROW


def open_wide(task: MechanismTask, h: MechanismHandles) -> list[Waypoint]:
    """Drive back from a fridge that is close, drive beside the handle, take it, pull the door ajar while driving back,
    let go, go round its edge, push its inner face while turning, rest."""
    found, target = task.fronts, h.target.value.long()
    foot, base, joint, rest = found.handle[target], task.seen(h).base, task.joint(h), task.rest_here(h)
    door = _door(task, h)
    line, away = beside(task.layout, foot, found.yaw[target], found.sense[target], base)
    near, far = line.base(away), line.base(line.back)
    before, around = line.hand(joint.handle, 0.08), line.hand(joint.handle, 0.015)
    half, ajar = (line.hand(task.handle_at(h, torch.full_like(joint.q, q)), 0.015) for q in _AJAR)
    leave = pose(line.behind(h.robot.tcp_pos, 0.22), line.facing)

    def at_edge(q: Tensor, out: float, aside: float) -> Tensor:
        spot = door.edge(q) + out * door.out + aside * door.aside
        return line.hand(torch.cat([spot, foot[:, 2:]], 1))

    on = at_edge(found.open_from[target] + _PAST, -0.08, 0.02)
    turned = _towards(far[:, :2], on[:, :2])
    arm = torch.cat([rest[:, :3], ready(task.cold(h), h.robot.keyframe("rest"))[:, 3:]], 1)
    start = torch.where(_close(found.frame[target], door, base)[:, None], backed(base, 0.4), base)
    return [
        replace(drive(start, rest, gripper=1), name="back", speed=1.0, pos_tol=0.1, rot_tol=0.4, timeout_s=0.5),
        replace(drive(near, arm, gripper=1), speed=1.0, turn=3.1, pos_tol=0.05, rot_tol=0.12),
        Waypoint(name="before", pose=before, gripper=0.6, pos_tol=0.02, rot_tol=0.1, speed=0.8),
        Waypoint(name="around", pose=around, gripper=0.6, pos_tol=0.015, rot_tol=0.1, speed=0.3, timeout_s=0.5),
        Waypoint(name="close", pose=around, gripper=-1, pos_tol=0.03, rot_tol=0.2),
        Waypoint(name="pull", pose=half, base=far, gripper=-1, pos_tol=0.05, rot_tol=0.4, speed=0.45),
        Waypoint(name="pull on", pose=ajar, base=far, gripper=-1, pos_tol=0.02, rot_tol=0.4, speed=0.45),
        Waypoint(name="let go", pose=leave, base=far, gripper=0.1, pos_tol=0.25, rot_tol=0.5, speed=0.6),
        _round("aside", at_edge(joint.q, 0.08, 0.16), far, gripper=0.1, close=0.06, speed=1.0, late=0.7),
        _round("behind", at_edge(joint.q, -0.1, 0.1), far, gripper=0.1, close=0.04, speed=0.8, late=1.0),
        # it swings on by itself: the hand need not come all the way
        Waypoint(name="push on", pose=on, base=turned, gripper=0.1, pos_tol=0.4, rot_tol=0.5, speed=0.8, timeout_s=1.0),
        Waypoint(name="rest", joints=rest, gripper=0.1).hold(),
    ]


def shut_wide(task: MechanismTask, h: MechanismHandles) -> list[Waypoint]:
    """Stand on the side of the hinge, go round the edge of the door above its handle, sweep its outer face along, push
    it shut while driving on, stay until it is at rest, rest while driving back."""
    found, target = task.fronts, h.target.value.long()
    yaw, sense, rest = found.yaw[target], found.sense[target], task.rest_here(h)
    door, at, q = _door(task, h), task.seen(h).base, task.joint(h).q
    height = found.top[target][:, None] + _OVER
    stand, narrow = behind(task.layout, door, h.began.value)

    def hand(spot: Tensor, turn: float) -> Tensor:
        """At a spot (n, 2), pointing at the fridge, turned to the handle by ``turn`` [rad]."""
        facing = quat_mul(quat_from_yaw(yaw + math.pi + sense * turn), _HANGS.like(yaw).expand(len(yaw), 4))
        return pose(torch.cat([spot, height], 1), facing)

    one, turned = _towards(stand, door.place(0.5, -0.55)), _towards(stand, door.place(0.6, 0.0))
    two = torch.cat([door.place(1.0, 0.05), (yaw + math.pi + sense * 0.3)[:, None]], 1)
    half = _towards(0.5 * (stand + at[:, :2]), at[:, :2])
    # backwards the arm is away from what is near, and half of the way is short enough for that
    half = torch.where((narrow | _close(found.frame[target], door, at))[:, None], half, at)
    # [m/s] how fast the hand goes, [m] how near, [s] when it goes on at the latest, and how long it stays
    stages = [
        ("sweep", hand(door.at(1.2, 0.6, 0.05), 0.5), turned, 0.8, 0.15, 0.75, 0.0),
        ("on", hand(door.at(0.6, 0.45, 0.15), 0.3), two, 0.7, 0.15, 2.0, 0.0),
        ("shut", hand(door.at(0.0, 0.4, 0.02), 0.3), two, 0.7, 0.15, 0.6, 0.2),
    ]
    quick = replace(drive(one, rest, gripper=-1), speed=1.0, turn=3.1, pos_tol=0.05, rot_tol=0.4)
    return [
        replace(quick, name="back", base=half, pos_tol=0.2, rot_tol=0.4, timeout_s=0.5),
        quick,
        _round("before", hand(door.edge(q) + 0.1 * door.out - 0.18 * door.aside, 0.0), one),
        _round("around", hand(door.edge(q) - 0.1 * door.out - 0.12 * door.aside, 0.0), one),
        *(
            Waypoint(
                name=name,
                pose=to,
                base=base,
                gripper=-1,
                pos_tol=close,
                rot_tol=1.0,
                speed=speed,
                timeout_s=late,
                dwell_s=dwell,
            )
            for name, to, base, speed, close, late, dwell in stages
        ),
        # what is let go at once springs open: it comes to rest between its frame and a hand that stands still
        Waypoint(name="still", joints=h.robot.arm_qpos, gripper=-1, rot_tol=2.0, dwell_s=0.4),
        Waypoint(name="rest", joints=rest, base=backed(at, 0.35), gripper=-1, speed=0.8).hold(),
    ]


def _round(
    name: str,
    to: Tensor,
    base: Tensor,
    *,
    gripper: float = -1,
    close: float = 0.05,
    speed: float = 0.8,
    late: float = 1.0,
) -> Waypoint:
    """On its way round the edge of a door that may still move."""
    return Waypoint(
        name=name,
        pose=to,
        base=base,
        gripper=gripper,
        pos_tol=close,
        rot_tol=0.4,
        speed=speed,
        timeout_s=late,
        track=True,
    )


def _door(task: MechanismTask, h: MechanismHandles) -> Swung:
    found, target = task.fronts, h.target.value.long()
    return Swung.of(found.hinge[target], found.yaw[target], found.sense[target], found.width[target])


def _close(frame: Tensor, door: Swung, base: Tensor) -> Tensor:
    """(n,) bool, whether bases (n, 3) are close before a fridge whose front is at frames (n, 2) [m]."""
    return ((base[:, :2] - frame) * door.out).sum(1) < _CLOSE


def _towards(place: Tensor, spot: Tensor) -> Tensor:
    """(n, 3) a base at places (n, 2) [m] that faces spots (n, 2)."""
    way = spot - place
    return torch.cat([place, atan2(way[:, 1], way[:, 0])[:, None]], 1)
