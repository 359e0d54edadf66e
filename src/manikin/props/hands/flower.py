"""A flower with a long stem, and a vase that it stands in: primitives, sized to go together."""

from __future__ import annotations

import math

from manikin.spec.prop import Shape

__all__ = ["INNER", "RIM", "STEM", "flower", "vase"]

STEM = 0.28  # [m] from the flower's origin, where the bloom begins, to the stem's end
INNER, RIM = 0.04, 0.2  # [m] radius inside the vase, and its height
_THICK, _SIDES = 0.004, 10  # [m] half the wall; flat pieces that it is made of
_GREEN, _YELLOW, _PETAL, _CLAY = (0.2, 0.5, 0.2, 1), (0.9, 0.75, 0.15, 1), (0.85, 0.25, 0.4, 1), (0.35, 0.5, 0.6, 1)


def flower() -> list[Shape]:
    """Stem along z, its end at z = -:data:`STEM`, and the bloom above z = 0."""
    petals = [
        Shape(
            type="sphere",
            size=(0.014,),
            pos=(0.022 * math.cos(angle), 0.022 * math.sin(angle), 0.022),
            rgba=_PETAL,
        )
        for angle in (2 * math.pi * k / 5 for k in range(5))
    ]
    radius = 0.006
    stem = Shape(type="capsule", size=(radius, STEM / 2 - radius), pos=(0, 0, -STEM / 2), rgba=_GREEN)
    return [stem, Shape(type="sphere", size=(0.02,), pos=(0, 0, 0.022), rgba=_YELLOW), *petals]


def vase() -> list[Shape]:
    """A tube with a floor; its foot stands on z = 0."""
    away = INNER + _THICK
    half = away * math.tan(math.pi / _SIDES) + 0.001
    walls = []
    for k in range(_SIDES):
        angle = 2 * math.pi * k / _SIDES
        turn = (math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2))
        place = (away * math.cos(angle), away * math.sin(angle), RIM / 2)
        walls.append(Shape(type="box", size=(_THICK, half, RIM / 2), pos=place, quat=turn, rgba=_CLAY))
    return [Shape(type="cylinder", size=(away, 0.004), pos=(0, 0, 0.004), rgba=_CLAY), *walls]
