"""Nothing but a floor at z = 0 and robots on stands."""

from __future__ import annotations

from manikin.arenas.ground import View, ground
from manikin.arenas.stand import on_stand
from manikin.scene.builder import SceneBuilder
from manikin.scene.handles import Robot

__all__ = ["empty"]


def empty(
    b: SceneBuilder,
    *,
    base: tuple[float, float, float] = (-0.6, 0.0, 0.913),
    base_camera: View = ((0.8, 0, 1.5), (-0.2, 0, 0.9)),
    human_camera: View = ((1.1, 1.1, 1.7), (-0.2, 0, 1.0)),
) -> Robot:
    """Add floor, light, cameras and the next robot, its base at ``base`` [m] (robosuite's); returns the robot."""
    ground(b, height=0.0, base_camera=base_camera, human_camera=human_camera)
    return on_stand(b, pos=base, floor=0.0)
