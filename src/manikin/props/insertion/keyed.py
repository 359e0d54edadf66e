"""A peg to feel with, plain or with a lug on one side as a key has, and the block with the hole for it."""

from __future__ import annotations

from manikin.spec.prop import Shape

__all__ = ["GRIP", "HALF", "HOLE_DEPTH", "LENGTH", "keyed_hole", "keyed_peg"]

HALF = (0.010, 0.008)  # [m] half width of the peg, and half of what the gripper takes it by
LENGTH, GRIP = 0.045, 0.028  # [m] of the peg; from its bottom to where it is held
HOLE_DEPTH = 0.012  # [m] the hole goes through the block
_LUG, _LUG_HALF, _LUG_LENGTH = 0.005, 0.003, 0.018  # [m] how far it sticks out, half its width, its height
_OUTER = 0.04  # [m] half side of the block


def keyed_peg(*, lug: bool) -> list[Shape]:
    """Upright; its origin is the middle of its bottom. A lug is on the side of +x."""
    x, y = HALF
    out = [Shape(type="box", size=(x, y, LENGTH / 2), pos=(0, 0, LENGTH / 2))]
    if lug:
        size = (_LUG / 2, _LUG_HALF, _LUG_LENGTH / 2)
        out.append(Shape(type="box", size=size, pos=(x + _LUG / 2, 0, _LUG_LENGTH / 2)))
    return out


def keyed_hole(clearance: float, *, lug: bool) -> list[Shape]:
    """A block on z = 0 with a hole that leaves ``clearance`` [m] on every side; its origin is the hole's middle."""
    a, b = (half + clearance for half in HALF)
    low, side, far = -_OUTER, _OUTER, _OUTER
    slot, end = (_LUG_HALF + clearance, a + _LUG) if lug else (0.0, a)
    spans = [  # (x from, to), (y from, to)
        ((low, -a), (-side, side)),
        ((-a, a), (b, side)),
        ((-a, a), (-side, -b)),
        ((a, far), (slot, side)),
        ((a, far), (-side, -slot)),
    ]
    if lug:
        spans.append(((end, far), (-slot, slot)))
    return [
        Shape(
            type="box",
            size=((x1 - x0) / 2, (y1 - y0) / 2, HOLE_DEPTH / 2),
            pos=((x0 + x1) / 2, (y0 + y1) / 2, HOLE_DEPTH / 2),
        )
        for (x0, x1), (y0, y1) in spans
    ]
