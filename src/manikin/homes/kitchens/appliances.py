"""Parametric appliances of a kitchen: stove, hob, oven, microwave, dishwasher, sink with a tap, hood.

Frames and boxes are those of :mod:`manikin.homes.kitchens.cabinets`. Sizes that are not asked for are chosen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from manikin.homes.apartment import Fixture, Mechanism, Receptacle
from manikin.homes.joinery import DRAG, FurniturePiece
from manikin.spec.links import RGBA, Geom, Joint, Link, Vec3, box, capsule, cylinder, solid
from manikin.spec.prop import Shape

__all__ = ["BURNERS", "KNOB", "dishwasher", "hob", "hood", "microwave", "oven", "sink", "stove"]

BURNERS = ("front_left", "rear_left", "rear_right", "front_right")
"""Of a stove, in the order of its knobs from left to right, seen from the front."""
KNOB = 0.03
"""[m] from the front of a knob's plate to the middle of its grip."""

_WALL = 0.02  # [m] half thickness
_DARK, _STEEL, _BLACK = (0.16, 0.17, 0.19, 1.0), (0.72, 0.74, 0.76, 1.0), (0.06, 0.06, 0.07, 1.0)
_GLASS, _GREEN, _RED = (0.1, 0.11, 0.13, 1.0), (0.15, 0.6, 0.25, 1.0), (0.75, 0.15, 0.12, 1.0)
_TURN = (0.0, 2.6)  # [rad] of a knob
_DENSITY = 500.0  # [kg/m^3]


def _piece(front: RGBA) -> FurniturePiece:
    return FurniturePiece(front, [Link(name="body", parent=None)], {}, [])


def _knob(piece: FurniturePiece, burner: str, place: Vec3, *, upward: bool = False) -> None:
    """A knob with a grip across it that turns clockwise, seen from before it, or from above if ``upward``."""
    name = f"knob_{burner}"
    axis, quat = (-1.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)
    if upward:  # its own x points up, and its grip lies along x of the piece
        quat = (math.sqrt(0.5), 0.0, -math.sqrt(0.5), 0.0)
    plate = cylinder((0, 0, 0), (0.012, 0, 0), 0.022, _BLACK)
    grip = box((0.014, 0.006, 0.024), (KNOB - 0.004, 0, 0), _STEEL, name=f"handle/{name}/bar")
    joint = Joint(name=name, axis=axis, range=_TURN, damping=0.05, armature=0.001)
    link = Link(name=name, parent="body", pos=place, quat=quat, joint=joint, geoms=(plate, grip))
    piece.links.append(solid(link, _DENSITY))
    piece.handles[name] = (name, (KNOB, 0.0, 0.0))


def _flap(
    piece: FurniturePiece, name: str, place: Vec3, half_y: float, tall: float, rgba: RGBA, thick: float = 0.015
) -> None:
    """A door that drops open; ``place`` is the middle of its lower edge, on its inner side."""
    bar = piece.bar(name, name, (2 * thick + 0.05, 0, 2 * tall - 0.05), min(0.2, half_y - 0.08), upright=False)
    geoms = (box((thick, half_y, tall), (thick, 0, tall), rgba), *bar)
    joint = Joint(name=name, axis=(0, 1, 0), range=(0.0, 1.5), damping=DRAG[1])
    piece.links.append(solid(Link(name=name, parent="body", pos=place, joint=joint, geoms=geoms), _DENSITY))


def _balanced(made: Mechanism) -> Mechanism:
    """The same, doors held by springs: nothing of it sinks by itself."""
    for body in made.model.bodies[2:]:
        body.gravcomp = 1.0
    return made


def _burners(piece: FurniturePiece, size: Vec3, top: float) -> list[Geom]:
    """Rings on the top, and receptacles above them."""
    geoms = []
    for burner in BURNERS:
        x = size[1] / 4 * (1 if burner.startswith("front") else -1) - 0.01
        y = size[0] / 4 * (-1 if burner.endswith("left") else 1)
        geoms.append(cylinder((x, y, top), (x, y, top + 0.008), 0.09, _BLACK))
        piece.receptacles.append(
            Receptacle(name=f"burner_{burner}", link="body", pos=(x, y, top + 0.158), half=(0.1, 0.1, 0.15))
        )
    return geoms


def _cavity(piece: FurniturePiece, half_y: float, span: tuple[float, float], reach: tuple[float, float]) -> list[Geom]:
    """Walls around the space of an oven: ``span`` its lower and upper end, ``reach`` its back and front [m]."""
    (low, high), (back, front) = span, reach
    long, middle = (front - back) / 2, (front + back) / 2
    geoms = [
        box((long, _WALL, (high - low) / 2), (middle, s * (half_y - _WALL), (low + high) / 2), _STEEL)
        for s in (-1.0, 1.0)
    ]
    geoms += [box((long, half_y - 2 * _WALL, _WALL), (middle, 0, z), _STEEL) for z in (low + _WALL, high - _WALL)]
    geoms.append(
        box((_WALL, half_y - 2 * _WALL, (high - low) / 2 - 2 * _WALL), (back + _WALL, 0, (low + high) / 2), _STEEL)
    )
    inside = (long - _WALL - 0.01, half_y - 2 * _WALL - 0.01, (high - low) / 2 - 2 * _WALL)
    piece.receptacles.append(
        Receptacle(name="inside", link="body", pos=(middle + _WALL, 0, (low + high) / 2), half=inside)
    )
    return geoms


def stove(name: str, size: Vec3, *, front: RGBA = _STEEL) -> Mechanism:
    """A stove with four burners, a knob for each in its front, and an oven whose door drops open."""
    width, depth, height = size
    piece, half = _piece(front), width / 2
    face, split, low = depth / 2 - 0.03, height - 0.14, 0.16  # the front without door, the knobs' panel, the oven
    geoms = [
        *_cavity(piece, half, (low, split), (-depth / 2, face)),
        box((face / 2 + depth / 4, half, (low - 0.02) / 2), (face / 2 - depth / 4, 0, (low + 0.02) / 2), front),
        box((face / 2 + depth / 4, half, 0.06), (face / 2 - depth / 4, 0, split + 0.06), front),
        box((depth / 2, half, 0.006), (0, 0, height - 0.014), _GLASS),
        *_burners(piece, size, height - 0.008),
    ]
    _flap(piece, "oven_door", (face, 0, low), half - 0.004, (split - low) / 2 - 0.004, _GLASS)
    for k, burner in enumerate(BURNERS):
        _knob(piece, burner, (face, (k - 1.5) * width / 5, split + 0.06))
    piece.links[0] = Link(name="body", parent=None, geoms=tuple(geoms))
    return _balanced(piece.done(name, "stove"))


def hob(name: str, size: Vec3) -> Mechanism:
    """Four burners in a worktop, with a knob for each on its front edge."""
    width, depth, height = size
    piece = _piece(_GLASS)
    plate = box((depth / 2, width / 2, height / 2), (0, 0, height / 2), _GLASS)
    for k, burner in enumerate(BURNERS):
        _knob(piece, burner, (depth / 2 - 0.035, (k - 1.5) * width / 9, height), upward=True)
    piece.links[0] = Link(name="body", parent=None, geoms=(plate, *_burners(piece, (width, depth - 0.07, 0), height)))
    return piece.done(name, "stove")


def oven(name: str, size: Vec3, *, front: RGBA = _STEEL) -> Mechanism:
    """An oven to be built in, with a door that drops open."""
    width, depth, height = size
    piece, half = _piece(front), width / 2
    face, split = depth / 2 - 0.03, height - 0.12
    geoms = [
        *_cavity(piece, half, (0.0, split), (-depth / 2, face)),
        box((face / 2 + depth / 4, half, 0.06), (face / 2 - depth / 4, 0, split + 0.06), front),
    ]
    _flap(piece, "oven_door", (face, 0, 0.0), half - 0.004, split / 2 - 0.004, _GLASS)
    piece.links[0] = Link(name="body", parent=None, geoms=tuple(geoms))
    return _balanced(piece.done(name, "oven"))


def dishwasher(name: str, size: Vec3, *, front: RGBA = _STEEL) -> Mechanism:
    """A dishwasher with a door that drops open and a rack that slides out."""
    width, depth, height = size
    piece, half = _piece(front), width / 2
    face = depth / 2 - 0.03
    geoms = [
        box((depth / 2 - 0.05, half, 0.04), (-0.05, 0, 0.04), _DARK),
        *_cavity(piece, half, (0.08, height), (-depth / 2, face)),
    ]
    _flap(piece, "door", (face, 0, 0.08), half - 0.004, (height - 0.08) / 2 - 0.004, front)
    wide, long, z = half - 2 * _WALL - 0.01, depth / 2 - 0.06, 0.55 * height
    rack = (
        box((long, wide, 0.004), (0, 0, 0), _STEEL),
        *(box((long, 0.004, 0.04), (0, s * (wide - 0.004), 0.044), _STEEL) for s in (-1.0, 1.0)),
    )
    joint = Joint(name="rack", type="slide", axis=(1, 0, 0), range=(0.0, 0.8 * 2 * long), damping=DRAG[0])
    place = (face - long - 0.01, 0.0, z)
    piece.links.append(solid(Link(name="rack", parent="body", pos=place, joint=joint, geoms=rack), _DENSITY))
    piece.links[0] = Link(name="body", parent=None, geoms=tuple(geoms))
    return _balanced(piece.done(name, "dishwasher"))


def microwave(name: str, size: Vec3, *, front: RGBA = _DARK) -> Mechanism:
    """A microwave with a door, hinged on the left, and two buttons on its right: ``start_button``, ``stop_button``. A
    button moves in by 4 mm and springs back."""
    width, depth, height = size
    piece, panel = _piece(front), 0.2 * width
    thick, door = 0.015, width - panel
    face = depth / 2 - 2 * thick
    middle = -width / 2 + door / 2  # of door and cavity
    walls = _cavity(piece, door / 2, (0.0, height), (-depth / 2, face))
    geoms = [
        *(_moved(geom, middle) for geom in walls),
        box((depth / 2, panel / 2, height / 2), (0, width / 2 - panel / 2, height / 2), front),
    ]
    inside = piece.receptacles[0]
    piece.receptacles[0] = Receptacle(name="inside", link="body", pos=(inside.pos[0], middle, inside.pos[2]),
                                      half=inside.half)  # fmt: skip
    half = (door / 2 - 0.003, height / 2 - 0.003)
    piece.door("door", (face, middle, height / 2), *half, hinge=-1.0, thick=thick)
    for word, z, rgba in (("start_button", 0.3, _GREEN), ("stop_button", 0.6, _RED)):
        joint = Joint(name=word, type="slide", axis=(-1, 0, 0), range=(0.0, 0.004), damping=8.0, armature=0.05,
                      stiffness=300.0)  # fmt: skip
        shape = box((0.008, 0.02, 0.02), (0.008, 0, 0), rgba, name=f"handle/{word}/bar")
        place = (depth / 2, width / 2 - panel / 2, z * height)
        piece.links.append(solid(Link(name=word, parent="body", pos=place, joint=joint, geoms=(shape,)), _DENSITY))
        piece.handles[word] = (word, (0.016, 0.0, 0.0))
    piece.links[0] = Link(name="body", parent=None, geoms=tuple(geoms))
    return piece.done(name, "microwave")


def _moved(geom: Geom, y: float) -> Geom:
    return Geom(type=geom.type, size=geom.size, pos=(geom.pos[0], geom.pos[1] + y, geom.pos[2]), rgba=geom.rgba)


def sink(name: str, size: Vec3) -> Mechanism:
    """A basin below z = 0, which is the worktop's upper side, and a tap behind it.

    Its lever, the joint ``handle``, lies to the right over the worktop and turns back. ``size`` is width, depth of the
    hole in the worktop, and depth of the basin [m].
    """
    width, depth, deep = size
    piece, edge, rim = _piece(_STEEL), 0.05, 0.1  # [m] beside and behind the basin, where the tap stands
    half_y, front, back = width / 2 - edge, depth / 2 - edge, -depth / 2 + rim
    middle, long, thin = (front + back) / 2, (front - back) / 2, 0.004
    geoms = [
        box((rim / 2, width / 2, 0.005), (-depth / 2 + rim / 2, 0, -0.005), _STEEL),
        box((edge / 2, width / 2, 0.005), (depth / 2 - edge / 2, 0, -0.005), _STEEL),
        *(box((long, edge / 2, 0.005), (middle, s * (half_y + edge / 2), -0.005), _STEEL) for s in (-1.0, 1.0)),
        box((long, half_y, thin), (middle, 0, -deep + thin), _STEEL),
        *(box((thin, half_y, deep / 2 - thin), (x, 0, -deep / 2 + thin), _STEEL) for x in (back + thin, front - thin)),
        *(
            box((long - 2 * thin, thin, deep / 2 - thin), (middle, s * (half_y - thin), -deep / 2 + thin), _STEEL)
            for s in (-1.0, 1.0)
        ),
    ]
    piece.receptacles.append(
        Receptacle(
            name="basin",
            link="body",
            pos=(middle, 0, -deep / 2 + thin),
            half=(long - 0.03, half_y - 0.03, deep / 2 - thin),
        )
    )
    tap = -depth / 2 + rim / 2
    geoms += [
        cylinder((tap, 0, 0), (tap, 0, 0.2), 0.016, _STEEL),
        capsule((tap, 0, 0.24), (tap + 0.17, 0, 0.24), 0.012, _STEEL),
        capsule((tap, 0, 0.2), (tap, 0, 0.24), 0.012, _STEEL),
        capsule((tap + 0.17, 0, 0.24), (tap + 0.17, 0, 0.2), 0.012, _STEEL),
        cylinder((tap, 0.075, 0), (tap, 0.075, 0.1), 0.014, _STEEL),
    ]
    lever = (capsule((0, 0.0, 0), (0, 0.13, 0), 0.009, _DARK, name="handle/handle/bar"),)
    joint = Joint(name="handle", axis=(0, 0, 1), range=(0.0, 1.2), damping=0.3, armature=0.002)
    link = Link(name="handle", parent="body", pos=(tap, 0.075, 0.112), joint=joint, geoms=lever)
    piece.links.append(solid(link, _DENSITY))
    piece.handles["handle"] = ("handle", (0.0, 0.1, 0.0))
    piece.links[0] = Link(name="body", parent=None, geoms=tuple(geoms))
    return piece.done(name, "sink")


def hood(name: str, size: Vec3) -> Fixture:
    """A cooker hood: a wide part below and a flue, which does not open."""
    width, depth, height = size
    low = min(0.12, height / 2)
    geoms: Sequence[Geom] = (
        box((depth / 2, width / 2, low / 2), (0, 0, low / 2), _STEEL),
        box((depth / 4, width / 5, (height - low) / 2), (-depth / 4, 0, (height + low) / 2), _STEEL),
    )
    shapes = tuple(Shape(type=g.type, size=g.size, pos=g.pos, quat=g.quat, rgba=g.rgba) for g in geoms)
    return Fixture(name=name, kind="hood", shapes=shapes)
