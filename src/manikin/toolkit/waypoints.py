"""Waypoints that experts share."""

from __future__ import annotations

from torch import Tensor

from manikin.math import pose
from manikin.scene.handles import Robot
from manikin.spec.plan import Waypoint
from manikin.toolkit.geometry import above

__all__ = ["pick"]


def pick(place: Tensor, turn: Tensor, robot: Robot, *, clear: float, tag: str = "") -> list[Waypoint]:
    """Four waypoints that grasp a thing from above and lift it a little: above, down, close, lift.

    Args:
        place: (n, 3) TCP position of the grasp [m].
        turn: (n, 4) TCP orientation of the grasp.
        robot: the robot that moves.
        clear: height of the first waypoint over ``place`` [m].
        tag: added to the names of the waypoints.
    """
    high = pose(above(place, clear), turn)
    up = pose(above(robot.tcp_pos, 0.05), robot.tcp_quat)
    return [
        Waypoint(name=f"above{tag}", pose=high, gripper=1, pos_tol=0.015, rot_tol=0.1, speed=1.0, timeout_s=3.0),
        Waypoint(name=f"down{tag}", pose=pose(place, turn), gripper=1, pos_tol=0.004, rot_tol=0.05, timeout_s=1.5),
        Waypoint(name=f"close{tag}", pose=pose(place, turn), gripper=-1, pos_tol=0.01, rot_tol=0.1, timeout_s=0.5),
        Waypoint(name=f"lift{tag}", pose=up, gripper=-1, pos_tol=0.02, timeout_s=1.0),
    ]
