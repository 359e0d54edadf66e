"""A square plate with a square hole, as in robosuite's two-arm peg-in-hole."""

from __future__ import annotations

from manikin.spec.prop import Shape

__all__ = ["HOLE", "plate"]

HOLE = 0.11  # [m] along x from the plate's origin to the middle of the hole


def plate() -> list[Shape]:
    """0.34 m wide, 2 cm thick, of four blocks around a hole of 0.1 m; normal along z."""
    strip, bridge = (0.06, 0.17, 0.01), (0.05, 0.06, 0.01)
    return [
        *(Shape(type="box", size=strip, pos=(x, 0, 0)) for x in (0.0, 0.22)),
        *(Shape(type="box", size=bridge, pos=(HOLE, y, 0)) for y in (0.11, -0.11)),
    ]
