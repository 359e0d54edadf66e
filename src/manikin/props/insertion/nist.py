"""Pegs and holes of NIST's assembly task board, in the four sizes of Narang et al. 2022 (Factory, arXiv 2205.03532).

Sizes of pegs and holes are those of IsaacGymEnvs' asset tables (BSD-3-Clause), to the micrometre. With ``MANIKIN_DATA``
a test compares them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from manikin.errors import UnknownNameError
from manikin.props.insertion.nist_meshes import hole_pieces, peg_mesh
from manikin.spec.prop import Prop, Shape

__all__ = ["BLOCK", "HOLE_HEIGHT", "LENGTH", "PEGS", "NistPeg", "hole", "nist_peg", "peg", "stand"]

LENGTH = 0.05  # [m] of every peg
HOLE_HEIGHT = 0.0089916  # [m] of the block, which the hole goes through
BLOCK = 0.0125  # [m] half the side of the block
_DENSITY, _FRICTION = 8000.0, 0.5
_STEEL, _BLUE = (0.72, 0.74, 0.77, 1.0), (0.3, 0.38, 0.5, 1.0)
_MESH_SOURCE = "mesh, MANIKIN_DATA/nist_factory"
_SIDES = 16  # of a round hole


@dataclass(frozen=True)
class NistPeg:
    """A peg and its hole.

    Attributes:
        round: or rectangular.
        tight, loose: (width, depth) [m] of the peg in both fits; twice the diameter of a round one.
        hole: (width, depth) [m] of the hole.
    """

    round: bool
    tight: tuple[float, float]
    loose: tuple[float, float]
    hole: tuple[float, float]

    def size(self, fit: str) -> tuple[float, float]:
        """(width, depth) [m] of the peg in a ``tight`` or a ``loose`` fit."""
        if fit not in ("tight", "loose"):
            raise UnknownNameError("fit", fit, ("tight", "loose"))
        return self.tight if fit == "tight" else self.loose


def _round(tight: float, loose: float, hole: float) -> NistPeg:
    return NistPeg(True, (tight, tight), (loose, loose), (hole, hole))


_PEGS = {
    "round_4mm": _round(0.003996, 0.003988, 0.0041),
    "round_8mm": _round(0.007995, 0.007986, 0.0081),
    "round_12mm": _round(0.011994, 0.011983, 0.0122),
    "round_16mm": _round(0.015994, 0.015983, 0.0165),
    "rectangular_4mm": NistPeg(False, (0.004, 0.004), (0.00397, 0.00397), (0.00411, 0.00411)),
    "rectangular_8mm": NistPeg(False, (0.008, 0.007), (0.007964, 0.00691), (0.0081444, 0.007134)),
    "rectangular_12mm": NistPeg(False, (0.012, 0.008), (0.011957, 0.00791), (0.0121778, 0.0081374)),
    "rectangular_16mm": NistPeg(False, (0.016, 0.01), (0.015957, 0.00991), (0.0162182, 0.0101576)),
}
PEGS = tuple(_PEGS)
"""Names of all pegs."""


def nist_peg(name: str) -> NistPeg:
    """The peg of this name. Raises :class:`UnknownNameError` listing all of :data:`PEGS`."""
    if name not in _PEGS:
        raise UnknownNameError("NIST peg", name, PEGS)
    return _PEGS[name]


def peg(name: str, fit: str, *, meshes: bool = False) -> Prop:
    """The peg, upright; its origin is the middle of its bottom.

    Args:
        name: of :data:`PEGS`.
        fit: ``tight`` or ``loose``.
        meshes: whether it is the mesh of ``MANIKIN_DATA/nist_factory``, which has chamfers, instead of a primitive.

    Raises:
        UnknownNameError: no such peg or fit.
        AssetError: the mesh is missing.
    """
    known = nist_peg(name)
    width, depth = known.size(fit)
    if meshes:
        form = replace(peg_mesh(name, fit), rgba=_STEEL, density=_DENSITY)
        return Prop(name=name, shapes=(form,), friction=_FRICTION, source=_MESH_SOURCE)
    pos = (0.0, 0.0, LENGTH / 2)
    form = Shape(type="cylinder", size=(width / 2, LENGTH / 2), pos=pos, rgba=_STEEL, density=_DENSITY)
    if not known.round:
        form = Shape(type="box", size=(width / 2, depth / 2, LENGTH / 2), pos=pos, rgba=_STEEL, density=_DENSITY)
    return Prop(name=name, shapes=(form,), friction=_FRICTION, source="NIST task board, IsaacGymEnvs' tables")


def hole(name: str, *, meshes: bool = False) -> Prop:
    """The block with the hole that the peg fits, upright; its origin is the middle of the hole, at the bottom. A round
    hole has 16 flat sides, which touch the circle; of a mesh, 36.

    Args:
        name: of :data:`PEGS`.
        meshes: whether it is the mesh of ``MANIKIN_DATA/nist_factory``, cut into convex pieces, instead of primitives.

    Raises:
        UnknownNameError: no such peg.
        AssetError: the mesh is missing.
    """
    known = nist_peg(name)
    width, depth = known.hole
    if meshes:
        pieces = tuple(replace(piece, rgba=_BLUE) for piece in hole_pieces(name))
        return Prop(name=name, shapes=pieces, friction=_FRICTION, source=_MESH_SOURCE)
    if not known.round:
        return Prop(name=name, shapes=_around(width / 2, depth / 2, BLOCK, HOLE_HEIGHT, _BLUE), friction=_FRICTION)
    thick = (BLOCK - width / 2) / 2
    middle, half = width / 2 + thick, BLOCK * math.tan(math.pi / _SIDES)
    shapes = []
    for k in range(_SIDES):
        angle = 2 * math.pi * k / _SIDES
        place = (middle * math.cos(angle), middle * math.sin(angle), HOLE_HEIGHT / 2)
        turn = (math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2))
        shapes.append(Shape(type="box", size=(thick, half, HOLE_HEIGHT / 2), pos=place, quat=turn, rgba=_BLUE))
    return Prop(name=name, shapes=tuple(shapes), friction=_FRICTION)


def stand(name: str, clearance: float) -> Prop:
    """A block that a peg stands in, ``clearance`` [m] wider than it on each side; origin as for :func:`hole`."""
    width, depth = nist_peg(name).tight
    x, y = width / 2 + clearance, depth / 2 + clearance
    return Prop(name=name, shapes=_around(x, y, BLOCK, HOLE_HEIGHT, (0.35, 0.35, 0.37, 1.0)), friction=_FRICTION)


def _around(
    x: float, y: float, outer: float, height: float, rgba: tuple[float, float, float, float]
) -> tuple[Shape, ...]:
    """Four walls around a rectangular opening of half size (x, y) [m]."""
    far, wide, tall = (outer - x) / 2, (outer - y) / 2, height / 2
    sizes = [((far, outer, tall), (s * (x + far), 0.0, tall)) for s in (-1, 1)]
    sizes += [((x, wide, tall), (0.0, s * (y + wide), tall)) for s in (-1, 1)]
    return tuple(Shape(type="box", size=size, pos=pos, rgba=rgba) for size, pos in sizes)
