"""What tasks for two arms share: where the robots stand, and how their experts turn grippers."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from manikin.arenas.stand import on_stand
from manikin.errors import UnknownNameError
from manikin.math import pose, quat_from_yaw, quat_mul
from manikin.robots import stand_together
from manikin.scene.builder import SceneBuilder
from manikin.scene.handles import Robot
from manikin.toolkit.robots import base_yaw, facing_down

__all__ = ["ARRANGEMENTS", "aside", "tilted", "two_robots"]

ARRANGEMENTS = ("opposed", "parallel")


def two_robots(
    b: SceneBuilder,
    *,
    arrangement: str,
    away: float,
    height: float,
    level: float,
    floor: float | None = None,
    aside: float = 0.25,
) -> tuple[Robot, Robot]:
    """Add the next two robots, ``robot0`` and ``robot1``, around the origin.

    Args:
        b: the scene.
        arrangement: ``opposed``: facing each other on the y axis, the first at negative y; ``parallel``: side by side
            at negative x, the first at negative y. A machine with two arms (``baxter``) has its own arrangement.
        away: of their bases [m], along the axis.
        height: of their bases [m].
        level: height of what they work on [m], where a machine with two arms stands as it does at a table.
        floor: height of the floor [m] that their stands reach down to; None: they stand on what is below them.
        aside: of parallel robots, how far each is to the side [m].

    Raises:
        UnknownNameError: no such arrangement.
    """
    if arrangement not in ARRANGEMENTS:
        raise UnknownNameError("arrangement", arrangement, ARRANGEMENTS)
    names = ("robot0", "robot1")
    if stand_together(b.robots):
        places = [arm.base_pos for arm, *_ in b.robots]
        one, two = (b.robot(name=n, pos=(x, y, z + level)) for n, (x, y, z) in zip(names, places, strict=True))
        return one, two
    if arrangement == "opposed":
        spots = ((0.0, -away, math.pi / 2), (0.0, away, -math.pi / 2))
    else:
        spots = ((-away, -aside, 0.0), (-away, aside, 0.0))
    one, two = (
        b.robot(name=n, pos=(x, y, height), quat=(math.cos(yaw / 2), 0, 0, math.sin(yaw / 2)))
        if floor is None
        else on_stand(b, pos=(x, y, height), yaw=yaw, floor=floor, name=n)
        for n, (x, y, yaw) in zip(names, spots, strict=True)
    )
    return one, two


def aside(robot: Robot) -> Tensor:
    """(n, 7) TCP pose in which a robot that faces another is out of its way: a third of the way back, gripper down."""
    place = robot.base_pose[:3] / 3.0 + torch.tensor([0.0, 0.0, 0.3], device=robot.scope.device)
    return pose(place.expand(robot.scope.n, 3), tilted(robot, 0.0))


def _raising(robot: Robot, tilt: float) -> Tensor:
    """(n, 4) the turn that raises what points down by ``tilt`` [rad] towards where the robot faces."""
    yaw, half = base_yaw(robot), -tilt / 2
    across = (-math.sin(yaw) * math.sin(half), math.cos(yaw) * math.sin(half), 0.0)
    return torch.tensor([math.cos(half), *across], device=robot.scope.device).expand(robot.scope.n, 4)


def tilted(robot: Robot, tilt: float, *, roll: Tensor | float = 0.0) -> Tensor:
    """(n, 4) TCP orientation pointing down and then raised by ``tilt`` [rad] towards where the robot faces. The gripper
    opens sideways, turned by ``roll`` [rad], one or (n,), about the vertical before it is raised."""
    down = facing_down(robot)
    turn = quat_from_yaw(down.new_zeros(len(down)) + (base_yaw(robot) + roll))
    return quat_mul(_raising(robot, tilt), quat_mul(turn, down))
