"""A charger with two prongs and the receptacle it fits. Sizes as in ManiSkill3."""

from __future__ import annotations

from manikin.spec.prop import Shape

__all__ = ["BASE", "PRONG", "charger", "receptacle"]

BASE = (0.02, 0.015, 0.012)  # [m] half size of the charger's body
PRONG = (0.008, 0.00075, 0.0032)  # [m] half size of a prong
_APART = 0.007  # [m] from the middle to each prong
_FACE = (0.01, 0.05, 0.05)  # [m] half size of the receptacle


def charger() -> list[Shape]:
    """The body behind the origin, and the prongs ahead of it along x."""
    steel = (0.72, 0.74, 0.77, 1.0)
    prongs = [Shape(type="box", size=PRONG, pos=(PRONG[0], side * _APART, 0), rgba=steel) for side in (1, -1)]
    return [Shape(type="box", size=BASE, pos=(-BASE[0], 0, 0)), *prongs]


def receptacle(clearance: float) -> list[Shape]:
    """A block with two holes that are wider than the prongs by ``clearance`` [m] on each side. Its face looks along x;
    the origin is between the holes, in the face."""
    depth, width, height = _FACE
    y, z = PRONG[1] + clearance, PRONG[2] + clearance
    edge, side, rest = _APART + y, (width - _APART - y) / 2, (height - z) / 2
    return [
        Shape(type="box", size=(depth, width, rest), pos=(-depth, 0, z + rest)),
        Shape(type="box", size=(depth, width, rest), pos=(-depth, 0, -z - rest)),
        Shape(type="box", size=(depth, side, z), pos=(-depth, edge + side, 0)),
        Shape(type="box", size=(depth, side, z), pos=(-depth, -edge - side, 0)),
        Shape(type="box", size=(depth, _APART - y, z), pos=(-depth, 0, 0), rgba=(0.86, 0.71, 0.22, 1.0)),
    ]
