"""How an expert takes things from the front, with a hand that points ahead and a little down: under a shelf there is no
room above them."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from manikin import Episode, Robot, Waypoint
from manikin.math import atan2, pose, quat_from_yaw, quat_to_yaw
from manikin.tasks.home.doors.reach_in import REACH, READY, behind
from manikin.tasks.home.handling import back, brought
from manikin.toolkit import above

__all__ = ["reaching", "stowing", "turned"]

_LIFT = 0.03  # [m]
_OUT = 0.3  # [m] that it backs at least before the arm folds
_BESIDE = 0.25  # of its way that a base comes back to its line at most
_ABOUT = 0.6  # [rad] of the arm from that when the base starts, which takes longer to come near
_SOON, _LATE, _LATER = 0.55, 0.8, 1.2  # [s] after which the arm, which may be at its end, goes on
_ASKEW = 0.15  # [rad] that what is taken from the front lies askew at most


def turned(ep: Episode, stream: str, ahead: float, own: Tensor) -> Tensor:
    """(n, 4) how an object lies so that it can be taken from the front: about straight before a robot whose heading is
    ``ahead`` [rad], which takes an object that is not turned with a gripper that is, by ``own`` (n,) [rad]."""
    return quat_from_yaw(ahead + ep.rng.uniform(stream, -_ASKEW, _ASKEW) - own)


def reaching(robot: Robot, grip: Tensor, stand: Tensor) -> list[Waypoint]:
    """From a stand (n, 3): take what lies so that the tool takes it at ``grip`` (n, 7), back out, go back to rest."""
    lift = pose(above(robot.tcp_pos, _LIFT), robot.tcp_quat)
    return [
        *_going_in(robot, grip, stand[:, 2], gripper=1),
        Waypoint(name="before", pose=behind(grip), gripper=1, pos_tol=0.03, rot_tol=0.15, speed=0.6, timeout_s=_LATER),
        Waypoint(name="around", pose=grip, gripper=1, pos_tol=0.01, rot_tol=0.1, speed=0.35, timeout_s=_LATE),
        Waypoint(name="close", pose=grip, gripper=-1, pos_tol=0.03, rot_tol=0.2, timeout_s=_LATE),
        Waypoint(name="lift", pose=lift, gripper=-1, pos_tol=0.02, rot_tol=0.2, speed=0.3, timeout_s=_LATE),
        Waypoint(
            name="out", base=_straight(robot, stand, least=-_OUT), gripper=-1, pos_tol=0.07, rot_tol=0.15, speed=1.0
        ),
        replace(back(robot, gripper=-1), base=_straight(robot, stand), speed=1.0),
    ]


def stowing(robot: Robot, thing: Tensor, goal: Tensor, stand: Tensor) -> list[Waypoint]:
    """From a stand (n, 3): put what is held, at ``thing`` (n, 7), down to ``goal`` (n, 3) [m], let go, back out, go
    back to rest."""
    over, down = brought(robot, thing, goal, stand[:, 2], (_LIFT, 0.004))
    return [
        *_going_in(robot, goal, stand[:, 2], gripper=-1),
        Waypoint(name="over", pose=over, gripper=-1, pos_tol=0.03, rot_tol=0.2, speed=0.6, timeout_s=_LATER),
        Waypoint(name="down", pose=down, gripper=-1, pos_tol=0.015, rot_tol=0.1, speed=0.2, timeout_s=_LATE),
        Waypoint(name="open", pose=robot.tcp_pose, gripper=1, pos_tol=0.02),
        Waypoint(
            name="leave", pose=behind(robot.tcp_pose), gripper=1, pos_tol=0.03, rot_tol=0.2, speed=0.4, timeout_s=_SOON
        ),
        Waypoint(
            name="out", base=_straight(robot, stand, least=-_OUT), gripper=1, pos_tol=0.07, rot_tol=0.15, speed=1.0
        ),
        replace(back(robot, gripper=1), base=_straight(robot, stand), speed=1.0),
    ]


def _going_in(robot: Robot, place: Tensor, facing: Tensor, gripper: float) -> list[Waypoint]:
    """The arm ready, and then straight on, ``facing`` (n,) [rad], until a place (n, 3) is in reach."""
    n = len(place)
    joints = torch.cat([robot.keyframe("rest")[:-8].expand(n, -1), READY.like(place).expand(n, -1)], 1)
    near = _towards(robot, place, facing, REACH)
    return [
        Waypoint(name="ready", joints=joints, gripper=gripper, rot_tol=_ABOUT, turn=3.0, timeout_s=4.0),
        Waypoint(name="in", base=near, joints=joints, gripper=gripper, pos_tol=0.06, rot_tol=0.2, speed=0.9, turn=3.0),
    ]


def _towards(robot: Robot, place: Tensor, facing: Tensor, less: float) -> Tensor:
    """(n, 3) where a base is, x, y [m] and yaw [rad], when it has gone on, ``facing`` (n,) [rad], until it is ``less``
    [m] before places (n, 2 or more), and faces them. A base that is beside that line comes back to it by a quarter of
    its way at most, so that it hardly turns; one that is nearer stays where it is, and turns."""
    base = robot.root_pose[:, :2]
    ahead = torch.stack([torch.cos(facing), torch.sin(facing)], 1)
    aside = torch.stack([-ahead[:, 1], ahead[:, 0]], 1)
    to = place[:, :2] - base
    way = ((to * ahead).sum(1) - less).clamp_min(0.0)
    off = (to * aside).sum(1)
    off = torch.minimum(torch.maximum(off, -_BESIDE * way), _BESIDE * way)
    end = base + way[:, None] * ahead + off[:, None] * aside
    left = place[:, :2] - end
    return torch.cat([end, atan2(left[:, 1], left[:, 0])[:, None]], 1)


def _straight(robot: Robot, place: Tensor, less: float = 0.0, least: float = -math.inf) -> Tensor:
    """(n, 3) where a base is, x, y [m] and yaw [rad], when it has gone straight until it is beside places (n, 2 or
    more), or ``less`` [m] before them; backwards it goes by ``-least`` [m] at most."""
    base, yaw = robot.root_pose[:, :2], quat_to_yaw(robot.root_pose[:, 3:])
    ahead = torch.stack([torch.cos(yaw), torch.sin(yaw)], 1)
    way = ((place[:, :2] - base) * ahead).sum(1) - less
    way = way.clamp_min(least)
    return torch.cat([base + way[:, None] * ahead, yaw[:, None]], 1)
