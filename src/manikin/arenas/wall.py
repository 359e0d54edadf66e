"""The small table with an upright wall across it, facing the robot."""

from __future__ import annotations

from typing import Any

from manikin.arenas.ground import View
from manikin.arenas.square_table import square_table
from manikin.scene.builder import SceneBuilder
from manikin.scene.handles import Robot
from manikin.spec.prop import Shape

__all__ = ["wall"]


def wall(
    b: SceneBuilder,
    *,
    x: float = 0.3,
    half_size: tuple[float, float, float] = (0.01, 0.4, 0.3),
    base_camera: View = ((-0.3, 0.8, 0.6), (0.0, 0, 0.1)),
    human_camera: View = ((-0.65, 0.95, 0.7), (-0.05, 0, 0.15)),
    **table: Any,
) -> Robot:
    """Add :func:`square_table` (its further options in ``table``) and a wall of ``half_size`` [m] that stands on it at
    ``x``, and returns the robot. The cameras are on the robot's side of the wall.
    """
    robot = square_table(b, base_camera=base_camera, human_camera=human_camera, **table)
    b.fixture("wall", Shape(type="box", size=half_size, pos=(x, 0.0, half_size[2]), rgba=(0.85, 0.84, 0.8, 1)))
    return robot
