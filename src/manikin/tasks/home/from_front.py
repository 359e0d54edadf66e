"""How an expert takes things from the front, with a hand that points ahead and a little down: under a shelf there is no
room above them."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from manikin import Episode, Robot, Waypoint
from manikin.math import Constant, pose, quat_from_yaw, quat_rotate, quat_to_yaw
from manikin.tasks.home.doors.inside import REACH
from manikin.tasks.home.handling import back, brought
from manikin.toolkit import above

__all__ = ["reaching", "stowing", "turned"]

# torso [m] and arm [rad] of a hand 0.8 m ahead and 1.13 m high that points ahead and 30 degrees down, near rest
_READY = Constant((0.04, -0.4, -1.2, 0.89, 0.9, -0.65, 0.99, 0.36))
_BEHIND = 0.1  # [m] that the hand is behind what it takes before it goes there, and after it has let go
_LIFT = 0.03  # [m]
_CLEAR = 0.42  # [m] of the base from where it reaches in, so that the arm may move anyhow
_LATE = 0.8  # [s] after which the arm, which may be at its end, goes on
_AHEAD = Constant(((0.0, 0.0, 1.0),))
_ASKEW = 0.15  # [rad] that what is taken from the front lies askew at most


def turned(ep: Episode, stream: str, ahead: float, own: Tensor) -> Tensor:
    """(n, 4) how an object lies so that it can be taken from the front: about straight before a robot whose heading is
    ``ahead`` [rad], which takes an object that is not turned with a gripper that is, by ``own`` (n,) [rad]."""
    return quat_from_yaw(ahead + ep.rng.uniform(stream, -_ASKEW, _ASKEW) - own)


def reaching(robot: Robot, grip: Tensor, stand: Tensor) -> list[Waypoint]:
    """From a stand (n, 3): take what lies so that the tool takes it at ``grip`` (n, 7), back out, go back to rest."""
    lift = pose(above(robot.tcp_pos, _LIFT), robot.tcp_quat)
    return [
        *_going_in(robot, grip, gripper=1),
        Waypoint(name="before", pose=_behind(grip), gripper=1, pos_tol=0.03, rot_tol=0.15, speed=0.6, timeout_s=_LATE),
        Waypoint(name="around", pose=grip, gripper=1, pos_tol=0.01, rot_tol=0.1, speed=0.25, timeout_s=_LATE),
        Waypoint(name="close", pose=grip, gripper=-1, pos_tol=0.03, rot_tol=0.2, timeout_s=_LATE),
        Waypoint(name="lift", pose=lift, gripper=-1, pos_tol=0.02, rot_tol=0.2, speed=0.3, timeout_s=_LATE),
        Waypoint(
            name="out", base=_straight(robot, stand, least=-_CLEAR), gripper=-1, pos_tol=0.07, rot_tol=0.15, speed=1.0
        ),
        replace(back(robot, gripper=-1), base=_straight(robot, stand)),
    ]


def stowing(robot: Robot, thing: Tensor, goal: Tensor, stand: Tensor) -> list[Waypoint]:
    """From a stand (n, 3): put what is held, at ``thing`` (n, 7), down to ``goal`` (n, 3) [m], let go, back out, go
    back to rest."""
    over, down = brought(robot, thing, goal, stand[:, 2], (_LIFT, 0.004))
    return [
        *_going_in(robot, goal, gripper=-1),
        Waypoint(name="over", pose=over, gripper=-1, pos_tol=0.03, rot_tol=0.15, speed=0.6, timeout_s=_LATE),
        Waypoint(name="down", pose=down, gripper=-1, pos_tol=0.008, rot_tol=0.1, speed=0.2, timeout_s=_LATE),
        Waypoint(name="open", pose=robot.tcp_pose, gripper=1, pos_tol=0.02),
        Waypoint(
            name="leave", pose=_behind(robot.tcp_pose), gripper=1, pos_tol=0.03, rot_tol=0.2, speed=0.4, timeout_s=_LATE
        ),
        Waypoint(
            name="out", base=_straight(robot, stand, least=-_CLEAR), gripper=1, pos_tol=0.07, rot_tol=0.15, speed=1.0
        ),
        replace(back(robot, gripper=1), base=_straight(robot, stand)),
    ]


def _going_in(robot: Robot, place: Tensor, gripper: float) -> list[Waypoint]:
    """The arm ready, and then straight on until a place (n, 3) is in reach."""
    n = len(place)
    joints = torch.cat([robot.keyframe("rest")[:-8].expand(n, -1), _READY.like(place).expand(n, -1)], 1)
    before, near = _straight(robot, place, REACH + _CLEAR, least=0.0), _straight(robot, place, REACH)
    return [
        Waypoint(
            name="ready", base=before, joints=joints, gripper=gripper, pos_tol=0.1, rot_tol=0.4, turn=3.0, timeout_s=4.0
        ),
        Waypoint(name="in", base=near, joints=joints, gripper=gripper, pos_tol=0.03, rot_tol=0.2, speed=0.6, turn=3.0),
    ]


def _straight(robot: Robot, place: Tensor, less: float = 0.0, least: float = -math.inf) -> Tensor:
    """(n, 3) where a base is, x, y [m] and yaw [rad], when it has gone straight until it is beside places (n, 2 or
    more), or ``less`` [m] before them; backwards it goes by ``-least`` [m] at most."""
    base, yaw = robot.root_pose[:, :2], quat_to_yaw(robot.root_pose[:, 3:])
    ahead = torch.stack([torch.cos(yaw), torch.sin(yaw)], 1)
    way = ((place[:, :2] - base) * ahead).sum(1) - less
    way = way.clamp_min(least)
    return torch.cat([base + way[:, None] * ahead, yaw[:, None]], 1)


def _behind(tool: Tensor) -> Tensor:
    """(n, 7) poses of tools (n, 7) that are drawn back where they point."""
    ahead = quat_rotate(tool[:, 3:], _AHEAD.like(tool).expand(len(tool), 3))
    return pose(tool[:, :3] - _BEHIND * ahead, tool[:, 3:])
