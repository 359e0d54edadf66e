"""Two tables on a floor, one on either side of a robot that stands between them."""

from __future__ import annotations

from manikin.arenas.ground import View, ground
from manikin.scene.builder import SceneBuilder
from manikin.spec.prop import Shape

__all__ = ["two_tables"]


def two_tables(
    b: SceneBuilder,
    *,
    half_size: tuple[float, float, float],
    away: float,
    base_camera: View,
    human_camera: View,
) -> None:
    """Add a floor at z = 0, light, the cameras ``base_camera`` and ``human_camera``, and two tables.

    Args:
        b: the scene.
        half_size: of each table [m], which stands on the floor.
        away: of the middle of each table from the origin, along y [m].
        base_camera: where that camera is and what it looks at [m].
        human_camera: likewise.
    """
    x, y, z = half_size
    for name, side in (("right_table", -1), ("left_table", 1)):
        # one thick block instead of top and legs: a thin top lets fast objects through
        block = Shape(type="box", size=(x, y, z), pos=(0, side * away, z), rgba=(0.66, 0.55, 0.44, 1))
        b.fixture(name, block)
    ground(b, height=0.0, base_camera=base_camera, human_camera=human_camera)
