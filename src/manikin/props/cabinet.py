"""A parametric cabinet with drawers and doors; its front faces -x, its origin is the middle of its foot."""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco

from manikin.assets.builtin import build
from manikin.errors import SceneError, UnknownNameError
from manikin.spec.links import Geom, Joint, Link, box, capsule

__all__ = ["CABINETS", "Cabinet"]

_WALL = 0.009  # [m] half thickness of the panels
_GAP = 0.003  # [m] between fronts
_WOOD, _FRONT, _METAL = (0.55, 0.4, 0.27, 1.0), (0.8, 0.72, 0.6, 1.0), (0.25, 0.25, 0.28, 1.0)
_DENSITY = 600.0  # [kg/m^3] of the panels
HANDLE_STANDOFF = 0.05  # [m] from a front to the middle of its handle
TRAVEL = 0.2  # [m] of a drawer


@dataclass(frozen=True, kw_only=True)
class Cabinet:
    """Columns of fronts, each from bottom to top: ``drawer`` or ``door``.

    Attributes:
        half_size: depth, width, height [m].
    """

    columns: tuple[tuple[str, ...], ...]
    half_size: tuple[float, float, float]

    @property
    def drawers(self) -> tuple[str, ...]:
        """Names of the drawers' joints, column by column from below."""
        return tuple(name for name, kind, *_ in self._fronts() if kind == "drawer")

    def build(self) -> mujoco.MjSpec:
        """The model: joints ``drawer0``, ``door0``, ..., and a site ``handle/...`` in the middle of each handle.

        Raises:
            UnknownNameError: a front of another kind.
            SceneError: no drawer at all.
        """
        if not self.drawers:
            raise SceneError("a cabinet needs a drawer")
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
            made = _drawer if kind == "drawer" else _door
            link, handles[name] = made(name, (-depth, y, z), half_y, half_z, depth)
            links.append(link)
        spec = build(links, name="cabinet")
        for name, pos in handles.items():
            spec.body(name).add_site(name=f"handle/{name}", pos=pos, size=[0.005, 0, 0], group=4)
        return spec

    def _fronts(self) -> list[tuple[str, str, float, float, float, float]]:
        """Name, kind, middle (y, z) and half size (y, z) of every front."""
        _, width, height = self.half_size
        counts: dict[str, int] = {}
        out = []
        wide = width / len(self.columns)
        for i, column in enumerate(self.columns):
            tall = height / len(column)
            for j, kind in enumerate(column):
                if kind not in ("drawer", "door"):
                    raise UnknownNameError("kind of front", kind, ("drawer", "door"))
                name = f"{kind}{counts.setdefault(kind, 0)}"
                counts[kind] += 1
                y, z = -width + (2 * i + 1) * wide, (2 * j + 1) * tall
                out.append((name, kind, y, z, wide - _GAP, tall - _GAP))
        return out


def _handle(middle: tuple[float, float, float], along: tuple[float, float, float]) -> tuple[Geom, ...]:
    """A bar ``along`` (half its length) before a front, with two posts."""
    x, y, z = middle
    a, b = ((x, y + s * along[1], z + s * along[2]) for s in (-1.0, 1.0))
    posts = [capsule(end, (end[0] + HANDLE_STANDOFF, end[1], end[2]), 0.005, _METAL) for end in (a, b)]
    return (capsule(a, b, 0.007, _METAL), *posts)


def _inertia(mass: float, half: tuple[float, float, float]) -> tuple[float, float, float]:
    x, y, z = (h * h for h in half)
    return mass * (y + z) / 3, mass * (x + z) / 3, mass * (x + y) / 3


def _drawer(
    name: str, place: tuple[float, float, float], half_y: float, half_z: float, depth: float
) -> tuple[Link, tuple[float, float, float]]:
    """A drawer and the middle of its handle in its frame, which lies in the middle of the front's outside."""
    long, inner = depth - 2 * _WALL, half_y - 3 * _WALL
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
            geoms=(*geoms, *_handle(handle, (0, 0, min(0.035, half_z - 0.02)))),
        ),
        handle,
    )


def _door(
    name: str, place: tuple[float, float, float], half_y: float, half_z: float, depth: float
) -> tuple[Link, tuple[float, float, float]]:
    """A door hinged on its side at +y, and the middle of its handle in its frame."""
    handle = (-2 * _WALL - HANDLE_STANDOFF, -1.6 * half_y, 0.0)
    mass = _DENSITY * 8 * _WALL * half_y * half_z
    joint = Joint(name=name, type="hinge", axis=(0, 0, -1), range=(0.0, math.pi / 2), damping=0.5, frictionloss=0.1)
    front = box((_WALL, half_y, half_z), (-_WALL, -half_y, 0), _FRONT)
    return (
        Link(
            name=name,
            parent="body",
            pos=(place[0], place[1] + half_y, place[2]),
            mass=mass,
            com=(-_WALL, -half_y, 0),
            inertia=_inertia(mass, (_WALL, half_y, half_z)),
            joint=joint,
            geoms=(front, *_handle(handle, (0, 0, min(0.05, half_z - 0.02)))),
        ),
        handle,
    )


CABINETS = {
    "one_drawer": Cabinet(columns=(("drawer",),), half_size=(0.15, 0.17, 0.09)),
    "two_drawers": Cabinet(columns=(("drawer",) * 2,), half_size=(0.15, 0.16, 0.16)),
    "three_drawers": Cabinet(columns=(("drawer",) * 3,), half_size=(0.15, 0.18, 0.21)),
    "four_drawers": Cabinet(columns=(("drawer",) * 2,) * 2, half_size=(0.15, 0.28, 0.16)),
    "drawer_over_door": Cabinet(columns=(("door", "drawer"),), half_size=(0.15, 0.17, 0.18)),
    "two_drawers_two_doors": Cabinet(columns=(("door", "drawer"),) * 2, half_size=(0.15, 0.28, 0.17)),
    "door_beside_drawers": Cabinet(columns=(("door",), ("drawer",) * 3), half_size=(0.15, 0.28, 0.2)),
}
