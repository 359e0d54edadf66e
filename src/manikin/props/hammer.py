"""Hammers of different sizes and weights, as robosuite's two-arm handover draws them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from manikin.spec.prop import RGBA, Prop, Shape

__all__ = ["HANDLE_SHAPES", "Hammer", "hammers"]

HANDLE_SHAPES = (0,)  # numbers of the shapes that are the handle
_ALPHAS = tuple(1.1347241384015194**-k for k in range(1, 6))  # evenly spread points in five dimensions
_WOOD: RGBA = (0.72, 0.55, 0.35, 1.0)
_STEEL: RGBA = (0.6, 0.62, 0.65, 1.0)
_FACE = math.sqrt(0.5)


@dataclass(frozen=True)
class Hammer:
    """Sizes of one [m]: half the width of its square handle, the handle's length, half the height of its head; density
    of the handle [kg/m^3] and its friction."""

    radius: float
    length: float
    head: float
    density: float
    friction: float

    def prop(self, name: str) -> Prop:
        """Handle along z around the origin, head at its upper end, face along x; the head is twice as dense."""
        r, s, top, dense = self.radius, self.head, self.length / 2 + self.head, 2 * self.density
        along_x, claw = (_FACE, 0.0, _FACE, 0.0), (math.cos(math.pi / 8), 0.0, math.sin(math.pi / 8), 0.0)

        def steel(kind: str, size: tuple[float, ...], x: float, quat: tuple[float, float, float, float]) -> Shape:
            return Shape(type=kind, size=size, pos=(x, 0, top), quat=quat, rgba=_STEEL, density=dense)

        handle = (r, r, self.length / 2)
        shapes = (
            Shape(type="box", size=handle, rgba=_WOOD, density=self.density, friction=self.friction),
            steel("box", (2 * s, s, s), 0.0, (1.0, 0.0, 0.0, 0.0)),
            steel("cylinder", (0.8 * s, 0.2 * s), 2.2 * s, along_x),
            steel("cylinder", (s, 0.4 * s), 2.8 * s, along_x),
            steel("box", (_FACE * s, 0.95 * s, _FACE * s), -2 * s, claw),
        )
        return Prop(name=name, shapes=shapes, source="robosuite's ranges")


def hammers(count: int) -> list[Hammer]:
    """Hammers spread evenly over the published ranges; the first ``count`` of a fixed sequence."""
    out = []
    for k in range(count):
        a, b, c, d, e = ((0.5 + (k + 1) * alpha) % 1.0 for alpha in _ALPHAS)
        radius = 0.015 + 0.005 * a
        out.append(Hammer(radius, 0.1 + 0.15 * b, radius * (1 + 0.2 * c), 100 + 150 * d, 3 + 2 * e))
    return out
