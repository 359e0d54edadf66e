"""A milk carton, a loaf of bread, a box of cereal and a can: primitives of the sizes of robosuite's meshes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from manikin.spec.prop import Shape

__all__ = ["GROCERIES", "Grocery"]

RGBA = tuple[float, float, float, float]


@dataclass(frozen=True, kw_only=True)
class Grocery:
    """An upright box or cylinder with a band of another colour at its top.

    Attributes:
        half: half its size [m] along x, y, z; of a cylinder the radius twice, and half its height.
        density: [kg/m^3].
        colours: of the body and of the band.
        round: a cylinder.
        band: [m] height of the band.
    """

    half: tuple[float, float, float]
    density: float
    colours: tuple[RGBA, RGBA]
    round: bool = False
    band: float = 0.02

    @property
    def radius(self) -> float:
        """[m] of the upright cylinder around it."""
        x, y, _ = self.half
        return x if self.round else math.hypot(x, y)

    @property
    def shapes(self) -> list[Shape]:
        """For ``b.part``; the origin is the middle."""
        x, y, z = self.half
        out = []
        for low, high, rgba in ((-z, z - self.band, self.colours[0]), (z - self.band, z, self.colours[1])):
            half, middle = (high - low) / 2, (high + low) / 2
            size = (x, half) if self.round else (x, y, half)
            out.append(Shape(type="cylinder" if self.round else "box", size=size, pos=(0, 0, middle), rgba=rgba))
        return out


GROCERIES = {
    "milk": Grocery(
        half=(0.0198, 0.0198, 0.072), density=100, colours=((0.95, 0.95, 0.97, 1), (0.25, 0.5, 0.85, 1)), band=0.03
    ),
    "bread": Grocery(
        half=(0.024, 0.02, 0.024), density=50, colours=((0.85, 0.65, 0.4, 1), (0.6, 0.38, 0.18, 1)), band=0.012
    ),
    "cereal": Grocery(
        half=(0.015, 0.05, 0.075), density=150, colours=((0.8, 0.2, 0.15, 1), (0.95, 0.8, 0.2, 1)), band=0.04
    ),
    "can": Grocery(
        half=(0.025, 0.025, 0.04),
        density=100,
        colours=((0.75, 0.1, 0.12, 1), (0.8, 0.8, 0.82, 1)),
        round=True,
        band=0.008,
    ),
}
"""By name, in the order of the quarters they belong to."""
