"""A small table with a robot on a stand before it; the table top is z = 0, centred on the origin."""

from __future__ import annotations

from manikin.arenas.ground import View, ground
from manikin.arenas.stand import on_stand
from manikin.scene.builder import SceneBuilder
from manikin.scene.handles import Robot
from manikin.spec.prop import Shape

__all__ = ["small_table", "square_table"]


def square_table(
    b: SceneBuilder,
    *,
    size: tuple[float, float] = (0.8, 0.8),
    centre: tuple[float, float] = (0.0, 0.0),
    height: float = 0.8,
    top: float = 0.0,
    surface: bool = False,
    base: tuple[float, float, float] = (-0.56, 0.0, 0.113),
    base_camera: View = ((0.5, 0, 0.55), (-0.1, 0, 0.05)),
    human_camera: View = ((0.6, 0.6, 0.55), (-0.12, 0, 0.15)),
) -> Robot:
    """Add table, floor, light, cameras and the next robot, whose base is at ``base`` [m]; returns the robot.

    Sizes and places as in robosuite's table arena: 0.8 x 0.8 m, 0.8 m high, the base 0.16 m before the table's edge and
    0.113 m above its top. The uppermost ``top`` [m] are left out for a caller who makes them something else.
    ``surface`` is as for ``b.fixture``.
    """
    small_table(
        b,
        size=size,
        centre=centre,
        height=height,
        top=top,
        surface=surface,
        base_camera=base_camera,
        human_camera=human_camera,
    )
    return on_stand(b, pos=base, floor=-height)


def small_table(
    b: SceneBuilder,
    *,
    size: tuple[float, float] = (0.8, 0.8),
    centre: tuple[float, float] = (0.0, 0.0),
    height: float = 0.8,
    top: float = 0.0,
    surface: bool = False,
    base_camera: View,
    human_camera: View,
) -> None:
    """Add table, floor, light and cameras; robots are for the task to place."""
    block = Shape(
        type="box",
        size=(size[0] / 2, size[1] / 2, (height - top) / 2),
        pos=(centre[0], centre[1], -(height + top) / 2),
        rgba=(0.66, 0.55, 0.44, 1),
    )
    b.fixture("table", block, surface=surface)  # one block: a thin top lets fast objects through
    ground(b, height=-height, base_camera=base_camera, human_camera=human_camera)
