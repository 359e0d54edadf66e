"""What tasks ask of a robot: how it points down, where it faces, whether it stands still, how far its fingers are."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from manikin.math import Constant, atan2, quat_from_yaw, quat_mul, quat_to_yaw
from manikin.scene.handles import Robot
from manikin.toolkit.steps import constant

__all__ = ["base_yaw", "bearing", "facing_down", "finger_gap", "is_still", "top_down"]

_DOWN = Constant((0.0, 1.0, 0.0, 0.0))  # gripper axis down, opening along y


def is_still(robot: Robot, speed: float = 0.2) -> Tensor:
    """(n,) bool: no arm joint moves faster than ``speed`` [rad/s]."""
    return torch.linalg.vector_norm(robot.arm_qvel, ord=math.inf, dim=1) <= constant(speed)


def top_down(quat: Tensor, robot: Robot, *, symmetry: int = 4, around: Tensor | float | None = None) -> Tensor:
    """(n, 4) TCP orientation pointing down, opening along the y axis of an upright object turned by ``quat`` (n, 4).

    Of the ``symmetry`` equivalent grasps about the vertical the one nearest to the turn ``around`` (n,) [rad] is taken;
    by default the way the robot faces, as the gripper does at rest; :func:`bearing` is where the arm's base joint
    brings it.
    """
    around = base_yaw(robot) if around is None else around
    period = 2 * math.pi / symmetry
    turn = quat_to_yaw(quat) - around
    turn = turn - torch.round(turn / period) * period
    return quat_mul(quat_from_yaw(turn + around), facing_down(robot))


def base_yaw(robot: Robot) -> float:
    """[rad] where the robot faces, about the vertical."""
    return float(quat_to_yaw(robot.base_pose[None, 3:])[0])


def bearing(robot: Robot, pos: Tensor) -> Tensor:
    """(n,) [rad] direction of ``pos`` (n, 3) seen from the robot's base, about the vertical."""
    return atan2(pos[:, 1] - robot.base_pose[1], pos[:, 0] - robot.base_pose[0])


def facing_down(robot: Robot) -> Tensor:
    """(n, 4) TCP orientation pointing down, opening along the world's y."""
    return _DOWN.like(robot.base_pose).expand(robot.scope.n, 4)


def finger_gap(robot: Robot) -> Tensor:
    """(n,) 0 where the fingers meet, 1 fully open; :attr:`Robot.opening` is 0 where a closed command goes."""
    spec = robot.gripper
    joint = next(j for link in (*spec.links, *robot.arm.links) for j in link.joints if j.name == spec.drivers[0])
    opened = spec.open_q[0]
    meet = min(max(spec.closed_q[0], joint.range[0]), joint.range[1])
    return (robot.qpos[:, len(robot.arm.joints)] - meet) * (1.0 / (opened - meet))
