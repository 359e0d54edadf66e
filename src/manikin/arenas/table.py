"""A table on a floor; the table top is z = 0 and its working area is centred on the origin."""

from __future__ import annotations

from manikin.arenas.ground import View, ground
from manikin.scene.builder import SceneBuilder
from manikin.spec.prop import Shape

__all__ = ["table"]


def table(
    b: SceneBuilder,
    *,
    base_camera: View = ((0.3, 0, 0.6), (-0.1, 0, 0.1)),
    human_camera: View = ((0.6, 0.7, 0.6), (0, 0, 0.25)),
) -> None:
    """Add table, floor, light, the observing camera ``base_camera`` (from, to) [m] and ``human_camera``, for people.

    Table size and place as in ManiSkill3's table scene: 2.418 x 1.209 m, 0.92 m high, centred at x = -0.12.
    A robot that stands on the floor has the table before it: then the near edge is where its ``table_edge`` says.
    """
    far, near = 0.4845, max([-0.7245, *(arm.table_edge for arm, _, _ in b.robots if arm.table_edge is not None)])
    # one thick block instead of top and legs: a thin top lets fast objects through
    b.fixture(
        "table",
        Shape(
            type="box",
            size=((far - near) / 2, 1.209, 0.4598),
            pos=((far + near) / 2, 0, -0.4598),
            rgba=(0.66, 0.55, 0.44, 1),
        ),
    )
    ground(b, height=-0.9196, base_camera=base_camera, human_camera=human_camera)
