"""Two bins side by side, the second divided into four; their floors' middle is z = 0."""

from __future__ import annotations

from manikin.arenas.ground import View, ground
from manikin.arenas.stand import on_stand
from manikin.scene.builder import SceneBuilder
from manikin.scene.handles import Robot
from manikin.spec.prop import Shape

__all__ = ["FLOOR", "FROM", "INNER", "QUARTERS", "TO", "WALL_TOP", "two_bins"]

FROM, TO = (0.1, -0.25), (0.1, 0.28)  # [m] middle of the bins
INNER = (0.39, 0.49)  # [m] inside a bin
FLOOR, WALL_TOP = 0.02, 0.1  # [m] heights of the floors' upper side and of the walls
# [m] middle of the quarters of the second bin
QUARTERS = tuple((TO[0] + sx * INNER[0] / 4, TO[1] + sy * INNER[1] / 4) for sy in (-1, 1) for sx in (-1, 1))
_BLUE, _RED, _WOOD = (0.25, 0.4, 0.7, 1.0), (0.75, 0.25, 0.22, 1.0), (0.66, 0.55, 0.44, 1.0)


def two_bins(
    b: SceneBuilder,
    *,
    base_camera: View = ((0.85, 0, 0.8), (0.0, 0, 0.05)),
    human_camera: View = ((0.85, 0.75, 0.75), (0.0, 0.02, 0.1)),
) -> Robot:
    """Add both bins, floor, light, cameras and the next robot; returns the robot.

    Sizes and places as in robosuite's bins arena: bins 0.4 x 0.5 m with walls 0.1 m high, 0.8 m above the floor, the
    robot's base at (-0.5, -0.1) and 0.113 m above the bins.
    """
    for name, (x, y), colour in (("bin1", FROM, _BLUE), ("bin2", TO, _RED)):
        walls = [
            ("floor", (0.2, 0.25, 0.02), (0, 0, 0.0), _WOOD),
            ("left", (0.21, 0.01, 0.05), (0, 0.25, 0.05), colour),
            ("right", (0.21, 0.01, 0.05), (0, -0.25, 0.05), colour),
            ("back", (0.01, 0.25, 0.05), (0.2, 0, 0.05), colour),
            ("front", (0.01, 0.25, 0.05), (-0.2, 0, 0.05), colour),
        ]
        if name == "bin2":
            walls += [
                ("across", (0.2, 0.01, 0.05), (0, 0, 0.05), colour),
                ("along", (0.01, 0.25, 0.05), (0, 0, 0.05), colour),
            ]
        for side, size, (dx, dy, z), rgba in walls:
            b.fixture(f"{name}/{side}", Shape(type="box", size=size, pos=(x + dx, y + dy, z), rgba=rgba))
        leg = Shape(type="box", size=(0.15, 0.2, 0.39), pos=(x, y, -0.41), rgba=(0.35, 0.36, 0.38, 1))
        b.fixture(f"{name}/leg", leg)
    ground(b, height=-0.8, base_camera=base_camera, human_camera=human_camera)
    return on_stand(b, pos=(-0.5, -0.1, 0.113), floor=-0.8)
