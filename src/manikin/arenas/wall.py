"""The small table with an upright wall across it, facing the robot."""

from __future__ import annotations

from typing import Any

from manikin.arenas.square_table import square_table
from manikin.scene.builder import SceneBuilder
from manikin.scene.handles import Robot
from manikin.spec.prop import Shape

__all__ = ["wall"]


def wall(
    b: SceneBuilder, *, x: float = 0.3, half_size: tuple[float, float, float] = (0.01, 0.4, 0.3), **table: Any
) -> Robot:
    """Add :func:`square_table` (its options in ``table``) and a wall of ``half_size`` [m] that stands on it at ``x``.

    Returns the robot.
    """
    robot = square_table(b, **table)
    b.fixture("wall", Shape(type="box", size=half_size, pos=(x, 0.0, half_size[2]), rgba=(0.85, 0.84, 0.8, 1)))
    return robot
