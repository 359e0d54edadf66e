"""Parametric furniture with drawers and doors: kitchen counter, fridge, cupboard, chest of drawers.

x points out of the front, z = 0 is the floor, and the origin is the middle of the footprint. Sizes are chosen, near
those of European kitchens. Handles are bars that collide and can be grasped; each joint ``J`` has a site ``handle/J``
in the middle of its bar.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco

from manikin.assets.builtin import build
from manikin.errors import SceneError, UnknownNameError
from manikin.homes.apartment import Mechanism, Receptacle
from manikin.spec.links import RGBA, Geom, Joint, Link, Vec3, box, capsule, solid

__all__ = ["DRAG", "MODULES", "STANDOFF", "FurniturePiece", "chest", "counter", "cupboard", "fridge"]

MODULES = ("drawers", "drawer_over_door", "sink", "panel")
"""What a counter consists of: three drawers, a drawer over a door, a basin over a fixed front, a fixed front."""

STANDOFF = 0.05  # [m] from a front to the middle of its handle
_BAR, _POST = 0.008, 0.006  # [m] radii
_PANEL, _SLAB = 0.009, 0.02  # [m] half thickness of panels and of a counter's top
_GAP = 0.003  # [m] between fronts
_DENSITY = 500.0  # [kg/m^3]
_METAL, _STEEL, _INSIDE = (0.25, 0.25, 0.28, 1.0), (0.72, 0.74, 0.76, 1.0), (0.9, 0.9, 0.88, 1.0)
# [N s/m] of drawers, [N m s/rad] of doors: pushed, they stop within a second. Dry friction would be a constraint each.
DRAG = (10.0, 2.0)
_STROKE = 0.9  # share of a drawer's depth by which it comes out


@dataclass
class FurniturePiece:
    """What one piece of furniture is put together from.

    Attributes:
        front: colour of its fronts.
        links: its bodies; the first stands still and is called ``body``.
        handles: joint -> the link that carries its handle, and where [m].
        receptacles: where things may lie, named within the piece.
    """

    front: RGBA
    links: list[Link]
    handles: dict[str, tuple[str, Vec3]]
    receptacles: list[Receptacle]

    def bar(self, joint: str, link: str, middle: Vec3, half: float, *, upright: bool) -> tuple[Geom, ...]:
        """A bar before a front at ``middle`` [m], along z if ``upright``, else along y; two posts hold it."""
        x, y, z = middle
        low: Vec3 = (x, y, z - half) if upright else (x, y - half, z)
        high: Vec3 = (x, y, z + half) if upright else (x, y + half, z)
        self.handles[joint] = (link, middle)
        names = [f"handle/{joint}/{word}" for word in ("bar", "low", "high")]
        posts = [
            capsule(end, (end[0] - STANDOFF, end[1], end[2]), _POST, _METAL, name=name)
            for end, name in zip((low, high), names[1:], strict=True)
        ]
        return (capsule(low, high, _BAR, _METAL, name=names[0]), *posts)

    def drawer(self, name: str, place: Vec3, half: tuple[float, float, float]) -> None:
        """A drawer whose frame is the middle of its front's outside; ``half`` are depth, width and height [m]."""
        deep, wide, tall = half[0] - 2 * _PANEL, half[1] - 3 * _PANEL, (half[2] - 3 * _PANEL) * 0.7
        floor = -half[2] + 3 * _PANEL
        geoms = (
            box((_PANEL, half[1], half[2]), (_PANEL, 0, 0), self.front),
            box((deep, wide, _PANEL / 2), (-deep, 0, floor), _INSIDE),
            box((_PANEL / 2, wide, tall), (-2 * deep, 0, floor + tall), _INSIDE),
            *(box((deep, _PANEL / 2, tall), (-deep, side * wide, floor + tall), _INSIDE) for side in (-1.0, 1.0)),
            *self.bar(name, name, (2 * _PANEL + STANDOFF, 0, 0), min(0.09, half[1] - 0.06), upright=False),
        )
        stroke = round(_STROKE * 2 * deep, 3)
        joint = Joint(name=name, type="slide", axis=(1, 0, 0), range=(0.0, stroke), damping=DRAG[0])
        self.links.append(solid(Link(name=name, parent="body", pos=place, joint=joint, geoms=geoms), _DENSITY))
        inside = (deep - 2 * _PANEL, wide - 2 * _PANEL, tall)
        middle = (-deep, 0.0, floor + _PANEL / 2 + tall)
        self.receptacles.append(Receptacle(name=name, link=name, pos=middle, half=inside))

    def door(
        self, name: str, place: Vec3, half_y: float, half_z: float, *, hinge: float, thick: float, raised: float = 0.0
    ) -> None:
        """A door in the middle of ``place``; its hinge is at +y for ``hinge`` 1, at -y for -1, ``thick`` half its
        thickness [m], its handle ``raised`` above its middle [m]. Its frame is at the hinge."""
        joint = Joint(name=name, axis=(0, 0, hinge), range=(0.0, 1.9), damping=DRAG[1])
        across = -hinge * (2 * half_y - 0.05)
        bar = self.bar(
            name, name, (2 * thick + STANDOFF, across, raised), min(0.15, half_z - 0.06 - abs(raised)), upright=True
        )
        geoms = (box((thick, half_y, half_z), (thick, -hinge * half_y, 0), self.front), *bar)
        at = (place[0], place[1] + hinge * half_y, place[2])
        self.links.append(solid(Link(name=name, parent="body", pos=at, joint=joint, geoms=geoms), _DENSITY))

    def model(self, name: str) -> mujoco.MjSpec:
        """Its bodies, joints and the sites of its handles."""
        spec = build(self.links, name=name)
        for joint, (link, pos) in self.handles.items():
            spec.body(link).add_site(name=f"handle/{joint}", pos=pos, size=[0.005, 0, 0], group=4)
        return spec

    def done(self, name: str, kind: str) -> Mechanism:
        """The piece as a mechanism; names of its receptacles begin with its own."""
        named = [
            Receptacle(name=f"{name}/{one.name}", link=one.link, pos=one.pos, half=one.half) for one in self.receptacles
        ]
        return Mechanism(name=name, kind=kind, model=self.model(name), receptacles=tuple(named))


def counter(
    name: str,
    modules: Sequence[str],
    *,
    width: float = 0.6,
    half_depth: float = 0.3,
    height: float = 0.88,
    front: RGBA = (0.85, 0.82, 0.75, 1),
    top: RGBA = (0.4, 0.38, 0.36, 1),
) -> Mechanism:
    """A kitchen counter.

    Args:
        name: of the counter.
        modules: from -y to +y, each one of :data:`MODULES`; at most one ``sink``.
        width: of each module [m].
        half_depth: [m].
        height: of the top's surface [m].
        front: colour of the fronts.
        top: colour of the top.

    Raises:
        UnknownNameError: a module of another kind.
        SceneError: no module, or two sinks.
    """
    if not modules or list(modules).count("sink") > 1:
        raise SceneError(f"counter {name!r} needs modules, at most one of them a sink, not {tuple(modules)}")
    piece = FurniturePiece(front, [], {}, [])
    half, under, plinth = width * len(modules) / 2, height - 2 * _SLAB, 0.09
    panels = [
        box((half_depth - 0.04, half, plinth / 2), (-0.04, 0, plinth / 2), _METAL),
        box((_PANEL, half, (under - plinth) / 2), (-half_depth + _PANEL, 0, (under + plinth) / 2), _INSIDE),
    ]
    inner = [
        box(
            (half_depth - 2 * _PANEL, _PANEL, (under - plinth) / 2), (0, -half + i * width, (under + plinth) / 2), front
        )
        for i in range(1, len(modules))
    ]
    outer = [
        box((half_depth, _PANEL, (under - plinth) / 2), (0, side * (half - _PANEL), (under + plinth) / 2), front)
        for side in (-1.0, 1.0)
    ]
    root = Link(name="body", parent=None)
    piece.links.append(root)
    worktops: list[tuple[float, float]] = [(-half, half)]
    extra: list[Geom] = []
    number = {"drawer": 0, "door": 0}

    def new(word: str) -> str:
        number[word] += 1
        return f"{word}{number[word] - 1}"

    for i, kind in enumerate(modules):
        y, tall = -half + (i + 0.5) * width, under - plinth
        at, wide = half_depth - 2 * _PANEL, width / 2 - _GAP
        if kind == "drawers":
            for k in range(3):
                middle = plinth + (2 * k + 1) * tall / 6
                piece.drawer(new("drawer"), (at, y, middle), (half_depth - 0.02, wide, tall / 6 - _GAP))
        elif kind == "drawer_over_door":
            split = plinth + tall * 0.7
            piece.door(
                new("door"), (at, y, (plinth + split) / 2), wide, (split - plinth) / 2 - _GAP, hinge=1.0, thick=_PANEL
            )
            extra.append(box((half_depth - 2 * _PANEL, width / 2, _PANEL / 2), (-_PANEL, y, plinth), _INSIDE))
            inside = (half_depth - 3 * _PANEL, width / 2 - 2 * _PANEL, (split - plinth) / 2 - 0.03)
            piece.receptacles.append(
                Receptacle(
                    name=f"shelf{i}", link="body", pos=(-_PANEL, y, plinth + _PANEL / 2 + inside[2]), half=inside
                )
            )
            piece.drawer(
                new("drawer"), (at, y, (split + under) / 2), (half_depth - 0.02, wide, (under - split) / 2 - _GAP)
            )
        elif kind in ("sink", "panel"):
            extra.append(box((_PANEL, wide, tall / 2 - _GAP), (half_depth - _PANEL, y, plinth + tall / 2), front))
            if kind == "sink":
                worktops = [(-half, y - width / 2), (y + width / 2, half)]
                extra += _basin(y, width / 2, half_depth, height, top)
                piece.receptacles.append(
                    Receptacle(name="sink", link="body", pos=(0, y, height - 0.1), half=(0.18, width / 2 - 0.07, 0.08))
                )
        else:
            raise UnknownNameError("module of a counter", kind, MODULES)
    for low, high in worktops:
        if high - low > 0.1:
            middle, reach = (low + high) / 2, (high - low) / 2
            extra.append(box((half_depth + 0.01, reach, _SLAB), (0.01, middle, height - _SLAB), top))
            word = "worktop" if len(worktops) == 1 else "right" if middle < 0 and low == -half else "left"
            piece.receptacles.append(
                Receptacle(
                    name=word, link="body", pos=(0, middle, height + 0.15), half=(half_depth - 0.03, reach - 0.03, 0.15)
                )
            )
    piece.links[0] = Link(name="body", parent=None, geoms=(*panels, *inner, *outer, *extra))
    return piece.done(name, "counter")


def _basin(y: float, half_y: float, half_x: float, height: float, top: RGBA) -> list[Geom]:
    """A basin of steel in a hole of the top, with a tap behind it."""
    deep, rim, middle = 0.09, 0.05, height - _SLAB
    hole_x, hole_y = half_x - 0.1, half_y - rim
    out = [
        box((rim, half_y, _SLAB), (half_x - 0.03, y, middle), top),
        box((rim, half_y, _SLAB), (-half_x + rim, y, middle), top),
        *(box((hole_x, rim / 2, _SLAB), (0, y + s * (half_y - rim / 2), middle), top) for s in (-1.0, 1.0)),
        box((hole_x, hole_y, 0.005), (0, y, height - 2 * deep - 0.005), _STEEL),
        *(box((0.005, hole_y, deep), (s * hole_x, y, height - deep - 0.002), _STEEL) for s in (-1.0, 1.0)),
        *(box((hole_x, 0.005, deep), (0, y + s * hole_y, height - deep - 0.002), _STEEL) for s in (-1.0, 1.0)),
    ]
    back = -half_x + 0.06
    return [
        *out,
        capsule((back, y, height), (back, y, height + 0.22), 0.013, _STEEL),
        capsule((back, y, height + 0.22), (back + 0.16, y, height + 0.22), 0.011, _STEEL),
    ]


def fridge(
    name: str,
    *,
    width: float = 0.68,
    half_depth: float = 0.32,
    height: float = 1.85,
    hinge: float = 1.0,
    front: RGBA = (0.88, 0.89, 0.9, 1),
) -> Mechanism:
    """A fridge with joints ``top_door`` and ``bottom_door``.

    Args:
        name: of the fridge.
        width: [m].
        half_depth: of the body without doors [m].
        height: [m].
        hinge: 1 for hinges at +y, which is on the right of who stands before it, -1 for hinges at -y.
        front: colour.

    Raises:
        SceneError: ``hinge`` is something else.
    """
    if hinge not in (1.0, -1.0):
        raise SceneError(f"fridge {name!r}: hinge is 1 (at +y) or -1 (at -y), not {hinge}")
    piece = FurniturePiece(front, [], {}, [])
    half, wall, split, thick = width / 2, 0.02, 0.68, 0.03
    shell = [box((half_depth, wall, height / 2), (0, s * (half - wall), height / 2), front) for s in (-1.0, 1.0)]
    shell += [box((wall, half, height / 2), (-half_depth + wall, 0, height / 2), front)]
    levels = {"bottom": wall, "freezer": 0.36, "lower": split, "middle": 1.0, "upper": 1.34}
    roof = box((half_depth, half, wall), (0, 0, height - wall), front)
    tops = [*sorted(levels.values()), height - wall]
    shelves = []
    for level in levels.values():
        solid_floor = level in (wall, split)
        reach = half_depth if solid_floor else half_depth - 0.06
        shelves.append(
            box(
                (reach, half, wall if solid_floor else 0.008),
                (reach - half_depth, 0, level),
                front if solid_floor else _INSIDE,
            )
        )
    piece.links.append(Link(name="body", parent=None, geoms=(*shell, roof, *shelves)))
    for word, level in levels.items():
        upper = min(t for t in tops if t > level) - 0.02
        lower = level + (wall if level in (wall, split) else 0.008)
        box_half = (half_depth - 0.06, half - 2 * wall - 0.02, (upper - lower) / 2)
        piece.receptacles.append(Receptacle(name=word, link="body", pos=(-0.03, 0, (upper + lower) / 2), half=box_half))
    for joint, low, high in (("bottom_door", 0.04, split), ("top_door", split, height)):
        middle, reach = (low + high) / 2, (high - low) / 2 - _GAP
        piece.door(joint, (half_depth + 0.004, 0, middle), half, reach, hinge=hinge, thick=thick)
    return piece.done(name, "fridge")


def cupboard(
    name: str,
    doors: int,
    *,
    width: float = 0.6,
    half_depth: float = 0.16,
    low: float = 1.45,
    high: float = 2.1,
    front: RGBA = (0.85, 0.82, 0.75, 1),
) -> Mechanism:
    """A cupboard on a wall, ``doors`` doors of ``width`` [m] wide, from ``low`` to ``high`` [m] above the floor. Two
    doors open from their middle.

    Raises:
        SceneError: fewer than one door.
    """
    if doors < 1:
        raise SceneError(f"cupboard {name!r} needs a door, not {doors}")
    piece = FurniturePiece(front, [], {}, [])
    half, tall, middle = width * doors / 2, (high - low) / 2, (high + low) / 2
    panels = [box((half_depth, half, _PANEL), (0, 0, z), front) for z in (low + _PANEL, high - _PANEL)]
    panels += [
        box((half_depth, _PANEL, tall), (0, max(-half + _PANEL, min(half - _PANEL, -half + i * width)), middle), front)
        for i in range(doors + 1)
    ]
    panels.append(box((_PANEL, half, tall), (-half_depth + _PANEL, 0, middle), _INSIDE))
    piece.links.append(Link(name="body", parent=None, geoms=tuple(panels)))
    for i in range(doors):
        y = -half + (i + 0.5) * width
        hinge = -1.0 if i % 2 == 0 else 1.0
        place = (half_depth, y, middle)
        piece.door(f"door{i}", place, width / 2 - _GAP, tall - _GAP, hinge=hinge, thick=_PANEL)
        inside = (half_depth - 3 * _PANEL, width / 2 - 2 * _PANEL, tall - 2 * _PANEL)
        piece.receptacles.append(
            Receptacle(name=f"shelf{i}", link="body", pos=(0, y, low + 2 * _PANEL + inside[2]), half=inside)
        )
    return piece.done(name, "cupboard")


def chest(
    name: str,
    drawers: int,
    *,
    width: float = 0.9,
    half_depth: float = 0.22,
    height: float = 0.8,
    front: RGBA = (0.6, 0.45, 0.3, 1),
) -> Mechanism:
    """A chest of ``drawers`` drawers, one above the other; sizes in [m].

    Raises:
        SceneError: fewer than one drawer, or drawers lower than 0.1 m.
    """
    if drawers < 1 or height / drawers < 0.1:
        raise SceneError(f"chest {name!r} of {height} m has room for 1 to {int(height / 0.1)} drawers, not {drawers}")
    piece = FurniturePiece(front, [], {}, [])
    half, foot = width / 2, 0.06
    tall = height - foot - 2 * _PANEL
    panels = [
        box((half_depth, half, _PANEL), (0, 0, height - _PANEL), front),
        box((half_depth, half, foot / 2), (0, 0, foot / 2), front),
        box((_PANEL, half, tall / 2), (-half_depth + _PANEL, 0, foot + tall / 2), front),
        *(box((half_depth, _PANEL, tall / 2), (0, s * (half - _PANEL), foot + tall / 2), front) for s in (-1.0, 1.0)),
    ]
    piece.links.append(Link(name="body", parent=None, geoms=tuple(panels)))
    for i in range(drawers):
        z = foot + (2 * i + 1) * tall / (2 * drawers)
        size = (half_depth - 0.02, half - 2 * _PANEL - _GAP, tall / (2 * drawers) - _GAP)
        piece.drawer(f"drawer{i}", (half_depth - 2 * _PANEL, 0, z), size)
    piece.receptacles.append(
        Receptacle(name="top", link="body", pos=(0, 0, height + 0.15), half=(half_depth - 0.03, half - 0.03, 0.15))
    )
    return piece.done(name, "chest")
