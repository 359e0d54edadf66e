"""Parametric cabinets with drawers and doors; a front faces -x, the origin is the middle of the foot."""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco

from manikin.assets.builtin import build
from manikin.errors import SceneError, UnknownNameError
from manikin.spec.links import Geom, Joint, Link, Vec3, box, capsule

__all__ = ["CABINETS", "DOOR_CABINETS", "Cabinet"]

_WALL = 0.009  # [m] half thickness of the panels
_GAP = 0.003  # [m] between fronts
_WOOD, _FRONT, _METAL = (0.55, 0.4, 0.27, 1.0), (0.8, 0.72, 0.6, 1.0), (0.25, 0.25, 0.28, 1.0)
_DENSITY = 600.0  # [kg/m^3] of the panels
HANDLE_STANDOFF = 0.05  # [m] from a front to the middle of its handle
TRAVEL = 0.2  # [m] of a drawer
_KINDS = ("drawer", "door", "right_door")


@dataclass(frozen=True, kw_only=True)
class Cabinet:
    """Columns of fronts, each from bottom to top: ``drawer``, ``door`` or ``right_door``.

    The columns go from -y to +y. A ``door`` has its hinge at +y, on the left of who stands before the cabinet, a
    ``right_door`` at -y.

    Attributes:
        half_size: depth, width, height [m].
        handle_radius: [m] of the handles' bars.
        handle_half: half length of the bars of drawers and of doors [m], where the front has room for it.
        door_range: [rad] by which doors open.
    """

    columns: tuple[tuple[str, ...], ...]
    half_size: tuple[float, float, float]
    handle_radius: float = 0.007
    handle_half: tuple[float, float] = (0.035, 0.05)
    door_range: float = math.pi / 2

    @property
    def drawers(self) -> tuple[str, ...]:
        """Names of the drawers' joints, column by column from below."""
        return tuple(name for name, kind, *_ in self._fronts() if kind == "drawer")

    @property
    def doors(self) -> tuple[str, ...]:
        """Names of the doors' joints, likewise."""
        return tuple(name for name, kind, *_ in self._fronts() if kind != "drawer")

    def build(self) -> mujoco.MjSpec:
        """The model: joints ``drawer0``, ``door0``, ..., and a site ``handle/...`` in the middle of each handle.

        Raises:
            UnknownNameError: a front of another kind.
            SceneError: no column, or one without a front.
        """
        depth, width, height = self.half_size
        panels = [box((depth, _WALL, height), (0, side * (width - _WALL), height), _WOOD) for side in (-1.0, 1.0)]
        panels += [
            box((depth, width, _WALL), (0, 0, _WALL), _WOOD),
            box((depth, width, _WALL), (0, 0, 2 * height - _WALL), _WOOD),
            box((_WALL, width, height), (depth - _WALL, 0, height), _WOOD),
        ]
        links = [Link(name="body", parent=None, geoms=tuple(panels))]
        handles = {}
        for name, kind, y, z, half_y, half_z in self._fronts():
            place = (-depth, y, z)
            made = (
                self._drawer(name, place, half_y, half_z)
                if kind == "drawer"
                else self._door(name, place, half_y, half_z, hinge=1.0 if kind == "door" else -1.0)
            )
            link, handles[name] = made
            links.append(link)
        spec = build(links, name="cabinet")
        for name, pos in handles.items():
            spec.body(name).add_site(name=f"handle/{name}", pos=pos, size=[0.005, 0, 0], group=4)
        return spec

    def _fronts(self) -> list[tuple[str, str, float, float, float, float]]:
        """Name, kind, middle (y, z) and half size (y, z) of every front."""
        if not self.columns or not all(self.columns):
            raise SceneError("a cabinet needs columns, each with a drawer or a door")
        _, width, height = self.half_size
        counts: dict[str, int] = {}
        out = []
        wide = width / len(self.columns)
        for i, column in enumerate(self.columns):
            tall = height / len(column)
            for j, kind in enumerate(column):
                if kind not in _KINDS:
                    raise UnknownNameError("kind of front", kind, _KINDS)
                word = kind.removeprefix("right_")
                name = f"{word}{counts.setdefault(word, 0)}"
                counts[word] += 1
                y, z = -width + (2 * i + 1) * wide, (2 * j + 1) * tall
                out.append((name, kind, y, z, wide - _GAP, tall - _GAP))
        return out

    def _handle(self, middle: Vec3, half: float) -> tuple[Geom, ...]:
        """An upright bar before a front, with two posts; ``half`` is half its length [m]."""
        x, y, z = middle
        a, b = ((x, y, z + s * half) for s in (-1.0, 1.0))
        posts = [capsule(end, (end[0] + HANDLE_STANDOFF, end[1], end[2]), 0.005, _METAL) for end in (a, b)]
        return (capsule(a, b, self.handle_radius, _METAL), *posts)

    def _drawer(self, name: str, place: Vec3, half_y: float, half_z: float) -> tuple[Link, Vec3]:
        """A drawer and the middle of its handle in its frame, which lies in the middle of the front's outside."""
        long, inner = self.half_size[0] - 2 * _WALL, half_y - 3 * _WALL
        low = -half_z + 3 * _WALL
        wall = (half_z - 3 * _WALL) * 0.7
        geoms = [
            box((_WALL, half_y, half_z), (-_WALL, 0, 0), _FRONT),
            box((long, inner, _WALL / 2), (long, 0, low), _WOOD),
            box((_WALL / 2, inner, wall), (2 * long, 0, low + wall), _WOOD),
            *(box((long, _WALL / 2, wall), (long, s * inner, low + wall), _WOOD) for s in (-1.0, 1.0)),
        ]
        handle = (-2 * _WALL - HANDLE_STANDOFF, 0.0, 0.0)
        mass = _DENSITY * 8 * (_WALL * half_y * half_z + long * inner * _WALL / 2)
        joint = Joint(name=name, type="slide", axis=(-1, 0, 0), range=(0.0, TRAVEL), damping=4.0, frictionloss=1.0)
        half = (long, half_y, half_z)
        return (
            Link(
                name=name,
                parent="body",
                pos=place,
                mass=mass,
                com=(long / 2, 0, 0),
                inertia=_inertia(mass, half),
                joint=joint,
                geoms=(*geoms, *self._handle(handle, min(self.handle_half[0], half_z - 0.02))),
            ),
            handle,
        )

    def _door(self, name: str, place: Vec3, half_y: float, half_z: float, *, hinge: float) -> tuple[Link, Vec3]:
        """A door and the middle of its handle in its frame, which lies at its hinge: at +y, or at -y for -1."""
        handle = (-2 * _WALL - HANDLE_STANDOFF, -hinge * 1.6 * half_y, 0.0)
        mass = _DENSITY * 8 * _WALL * half_y * half_z
        joint = Joint(
            name=name, type="hinge", axis=(0, 0, -hinge), range=(0.0, self.door_range), damping=0.5, frictionloss=0.1
        )
        front = box((_WALL, half_y, half_z), (-_WALL, -hinge * half_y, 0), _FRONT)
        return (
            Link(
                name=name,
                parent="body",
                pos=(place[0], place[1] + hinge * half_y, place[2]),
                mass=mass,
                com=(-_WALL, -hinge * half_y, 0),
                inertia=_inertia(mass, (_WALL, half_y, half_z)),
                joint=joint,
                geoms=(front, *self._handle(handle, min(self.handle_half[1], half_z - 0.02))),
            ),
            handle,
        )


def _inertia(mass: float, half: tuple[float, float, float]) -> tuple[float, float, float]:
    x, y, z = (h * h for h in half)
    return mass * (y + z) / 3, mass * (x + z) / 3, mass * (x + y) / 3


CABINETS = {
    "one_drawer": Cabinet(columns=(("drawer",),), half_size=(0.15, 0.17, 0.09)),
    "two_drawers": Cabinet(columns=(("drawer",) * 2,), half_size=(0.15, 0.16, 0.16)),
    "three_drawers": Cabinet(columns=(("drawer",) * 3,), half_size=(0.15, 0.18, 0.21)),
    "four_drawers": Cabinet(columns=(("drawer",) * 2,) * 2, half_size=(0.15, 0.28, 0.16)),
    "drawer_over_door": Cabinet(columns=(("door", "drawer"),), half_size=(0.15, 0.17, 0.18)),
    "two_drawers_two_doors": Cabinet(columns=(("door", "drawer"),) * 2, half_size=(0.15, 0.28, 0.17)),
    "door_beside_drawers": Cabinet(columns=(("door",), ("drawer",) * 3), half_size=(0.15, 0.28, 0.2)),
}
"""The cabinets of OpenCabinetDrawer, each with a drawer."""

_ONE, _TWO = 0.15, 0.28  # [m] half widths of cabinets with one and with two columns
DOOR_CABINETS = {
    "door": Cabinet(columns=(("door",),), half_size=(0.15, 0.15, 0.16)),
    "right_door": Cabinet(columns=(("right_door",),), half_size=(0.15, 0.15, 0.16)),
    "narrow_door": Cabinet(columns=(("door",),), half_size=(0.12, 0.11, 0.19), handle_radius=0.006),
    "narrow_right_door": Cabinet(columns=(("right_door",),), half_size=(0.12, 0.11, 0.19), handle_radius=0.006),
    "low_door": Cabinet(columns=(("door",),), half_size=(0.15, 0.16, 0.11), handle_half=(0.035, 0.04)),
    "low_right_door": Cabinet(columns=(("right_door",),), half_size=(0.15, 0.16, 0.11), handle_half=(0.035, 0.04)),
    "two_doors": Cabinet(columns=(("right_door",), ("door",)), half_size=(0.15, _TWO, 0.18)),
    "two_doors_alike": Cabinet(columns=(("door",), ("door",)), half_size=(0.15, _TWO, 0.17), handle_radius=0.009),
    "door_over_door": Cabinet(columns=(("door", "right_door"),), half_size=(0.15, _ONE, 0.22)),
    "four_doors": Cabinet(columns=(("right_door",) * 2, ("door",) * 2), half_size=(0.15, 0.26, 0.22)),
    "door_over_drawer": Cabinet(columns=(("drawer", "door"),), half_size=(0.15, _ONE, 0.2), handle_radius=0.008),
    "right_door_over_drawer": Cabinet(columns=(("drawer", "right_door"),), half_size=(0.15, _ONE, 0.2)),
    "drawers_beside_door": Cabinet(columns=(("drawer",) * 3, ("door",)), half_size=(0.15, _TWO, 0.2)),
    "drawers_beside_right_door": Cabinet(
        columns=(("right_door",), ("drawer",) * 2), half_size=(0.15, _TWO, 0.18), handle_half=(0.03, 0.07)
    ),
}
"""The cabinets of OpenCabinetDoor, each with a door."""
