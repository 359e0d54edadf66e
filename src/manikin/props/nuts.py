"""Flat nuts with a handle, to put over a peg: a square one and a round one. Sizes as in robosuite."""

from __future__ import annotations

import math

from manikin.spec.prop import Shape

__all__ = ["HALF_HEIGHT", "HANDLE", "nut_rests", "round_nut", "square_nut"]

HANDLE = {"square": 0.054, "round": 0.06}  # [m] along x from the nut's centre to its handle's
HALF_HEIGHT = 0.01  # [m]
_GRIP = (0.02525, 0.015875, HALF_HEIGHT)


def square_nut() -> list[Shape]:
    """A square ring 0.0875 m wide with a hole of 0.0455 m, and its handle."""
    across, along = (0.0105, 0.04375, HALF_HEIGHT), (0.03125, 0.0105, HALF_HEIGHT)
    return [
        Shape(type="box", size=across, pos=(-0.03325, 0, 0)),
        Shape(type="box", size=along, pos=(0, 0.03325, 0)),
        Shape(type="box", size=along, pos=(0, -0.03325, 0)),
        Shape(type="box", size=across, pos=(0.03325, 0, 0)),
        Shape(type="box", size=_GRIP, pos=(HANDLE["square"], 0, 0)),
    ]


def round_nut() -> list[Shape]:
    """A ring of eight blocks around a hole of 0.0624 m, and its handle."""
    out = []
    for k in range(8):
        angle = k * math.pi / 4
        radius = 0.04245 if k % 2 == 0 else 0.03 * math.sqrt(2)
        turn = (math.cos(angle / 2), 0, 0, math.sin(angle / 2))
        place = (radius * math.cos(angle), radius * math.sin(angle), 0)
        out.append(Shape(type="box", size=(0.01125, 0.0225, HALF_HEIGHT), pos=place, quat=turn))
    return [*out, Shape(type="box", size=_GRIP, pos=(HANDLE["round"], 0, 0))]


def nut_rests(name: str) -> list[Shape]:
    """Two or three boxes with the hull of the ``"square"`` or ``"round"`` nut's ring, to 0.2 mm, and of its handle."""
    handle = Shape(type="box", size=_GRIP, pos=(HANDLE[name], 0, 0))
    if name == "square":
        return [Shape(type="box", size=(0.04375, 0.04375, HALF_HEIGHT)), handle]
    long, short = 0.0537, 0.0225  # the eight corners of a cross of two boxes are those of the ring
    return [
        Shape(type="box", size=(long, short, HALF_HEIGHT)),
        Shape(type="box", size=(short, long, HALF_HEIGHT)),
        handle,
    ]
