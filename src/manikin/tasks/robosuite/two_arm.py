"""What experts with two arms share."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from manikin.math import quat_from_yaw, quat_mul, quat_to_yaw
from manikin.scene.handles import Robot
from manikin.tasks.tabletop.common import facing_down

__all__ = ["base_yaw", "raising", "tilted"]


def base_yaw(robot: Robot) -> float:
    """[rad] where the robot faces, about the vertical."""
    return float(quat_to_yaw(robot.base_pose[None, 3:])[0])


def raising(robot: Robot, tilt: float) -> Tensor:
    """(n, 4) the turn that raises what points down by ``tilt`` [rad] towards where the robot faces."""
    yaw, half = base_yaw(robot), -tilt / 2
    across = (-math.sin(yaw) * math.sin(half), math.cos(yaw) * math.sin(half), 0.0)
    return torch.tensor([math.cos(half), *across], device=robot.scope.device).expand(robot.scope.n, 4)


def tilted(robot: Robot, tilt: float, *, roll: float = 0.0) -> Tensor:
    """(n, 4) TCP orientation pointing down and then raised, see :func:`raising`. The gripper opens sideways, turned by
    ``roll`` [rad] about the vertical before it is raised."""
    down = facing_down(robot)
    turn = quat_from_yaw(down.new_full((len(down),), base_yaw(robot) + roll))
    return quat_mul(raising(robot, tilt), quat_mul(turn, down))
