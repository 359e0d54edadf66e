"""How episodes begin: an arm near its rest, a turn, the first draw that fits."""

from __future__ import annotations

import math

from torch import Tensor

from manikin.env.placement import first_valid
from manikin.env.task import Episode
from manikin.math import quat_from_yaw
from manikin.scene.handles import Robot

__all__ = ["first_valid", "full_turn", "noisy_rest"]


def noisy_rest(
    robot: Robot,
    ep: Episode,
    std: float = 0.02,
    *,
    turn: float = 0.0,
    keyframe: str = "rest",
    opening: float | Tensor = 1.0,
) -> None:
    """Rest pose or another keyframe, the last joint turned on by ``turn`` [rad], with normal noise of ``std`` [rad] on
    every arm joint; the gripper at ``opening``, one for all rows or (n,), 1 is open.
    """
    rest = robot.keyframe(keyframe)
    rest[-1] += turn
    robot.set_qpos(rest + ep.rng.normal(f"{robot.name}/qpos", 0.0, std, (len(rest),)), opening)


def full_turn(ep: Episode, name: str) -> Tensor:
    """(n, 4) turn about the vertical, uniform over the circle."""
    return quat_from_yaw(ep.rng.uniform(name, -math.pi, math.pi))
