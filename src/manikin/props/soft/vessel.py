"""Round vessels built of boxes."""

from __future__ import annotations

import math

from manikin.spec.prop import Shape

__all__ = ["vessel"]


def vessel(
    radius: float, height: float, *, wall: float, floor: float, below: float = 0.0, sides: int = 8
) -> list[Shape]:
    """A floor and upright walls of boxes; the origin is the middle of the bottom, z the axis.

    Args:
        radius: of the largest cylinder that fits inside [m].
        height: of the rim above the bottom [m].
        wall: thickness of the walls [m].
        floor: thickness of the floor [m].
        below: how much thicker the floor is downwards [m], of a vessel that stands on something: what falls fast does
            not fall through.
        sides: how many walls; an even number, so that two of them face a gripper's fingers.
    """
    out = radius + wall / 2
    half_floor = (floor + below) / 2
    shapes = [
        Shape(
            type="cylinder",
            size=((radius + wall) / math.cos(math.pi / sides), half_floor),
            pos=(0, 0, floor - half_floor),
        )
    ]
    for k in range(sides):
        turn = 2 * math.pi * k / sides
        shapes.append(
            Shape(
                type="box",
                size=(wall / 2, (radius + wall) * math.tan(math.pi / sides), height / 2),
                pos=(out * math.cos(turn), out * math.sin(turn), height / 2),
                quat=(math.cos(turn / 2), 0, 0, math.sin(turn / 2)),
            )
        )
    return shapes
