"""The small table, smooth and dirty: marks on it that a task places and removes."""

from __future__ import annotations

from manikin.arenas.square_table import square_table
from manikin.scene.builder import SceneBuilder
from manikin.scene.handles import Part, Robot
from manikin.scene.handles.dots import Dots
from manikin.spec.prop import Shape

__all__ = ["SIZE", "wipe_table"]

SIZE = (0.6, 0.8)  # [m]


def wipe_table(b: SceneBuilder, *, marks: int, radius: float) -> tuple[Robot, Part, Dots]:
    """Add :func:`square_table` in robosuite's size for wiping, its top as a part that can be asked about contact, and
    ``marks`` spots of dirt of ``radius`` [m]; returns robot, top and dirt."""
    robot = square_table(b, size=SIZE, height=0.8, base=(-0.46, 0.0, 0.113), top=0.05)
    top = Shape(type="box", size=(SIZE[0] / 2, SIZE[1] / 2, 0.025), pos=(0, 0, -0.025), rgba=(0.93, 0.93, 0.9, 1))
    part = b.part("top", [top], kind="fixed", friction=1e-5)
    b.spec.geom(part.geom_names[0]).priority = 2  # its friction counts, whatever wipes it
    return robot, part, b.dots("dirt", count=marks, radius=radius, height=0.002, rgba=(0.37, 0.27, 0.17, 1))
