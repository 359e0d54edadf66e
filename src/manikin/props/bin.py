"""An open square bin: a floor and four walls."""

from __future__ import annotations

from manikin.spec.prop import Shape

__all__ = ["open_bin"]


def open_bin(inner_half: float, wall_half: float) -> list[Shape]:
    """Shapes of a bin [m]; its origin is the middle of the floor, whose half thickness is ``wall_half``.

    Args:
        inner_half: half side of the square inside.
        wall_half: half thickness of floor and walls; walls stand 4 ``wall_half`` above the floor.
    """
    w, outer = wall_half, inner_half + 2 * wall_half
    side, high = outer - w, 3 * w  # where the middle of a wall is
    return [
        Shape(type="box", size=(outer, outer, w)),
        Shape(type="box", size=(w, outer, 2 * w), pos=(-side, 0, high)),
        Shape(type="box", size=(w, outer, 2 * w), pos=(side, 0, high)),
        Shape(type="box", size=(outer, w, 2 * w), pos=(0, -side, high)),
        Shape(type="box", size=(outer, w, 2 * w), pos=(0, side, high)),
    ]
