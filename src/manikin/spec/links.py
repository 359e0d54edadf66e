"""Links of built-in models, as data: bodies with their joints, mass and primitive shapes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from manikin.errors import SceneError

__all__ = [
    "RGBA",
    "Geom",
    "Joint",
    "Link",
    "Quat",
    "Vec3",
    "box",
    "capsule",
    "cylinder",
    "mirrored",
    "pad",
    "renamed",
    "solid",
]

Vec3 = tuple[float, float, float]
Quat = tuple[float, float, float, float]
RGBA = tuple[float, float, float, float]


@dataclass(frozen=True, kw_only=True)
class Geom:
    """A primitive of a built-in model. ``size`` as in MJCF (half lengths; radius, half length)."""

    type: str  # box, sphere, capsule, cylinder, ellipsoid
    size: tuple[float, ...]
    pos: Vec3 = (0, 0, 0)
    quat: Quat = (1, 0, 0, 0)
    rgba: RGBA = (0.9, 0.9, 0.9, 1)
    collide: bool = True  # False: seen only
    visible: bool = True  # False: collides only
    pad: bool = False  # a finger pad: high friction, condim 4, priority over what it touches
    name: str = ""


def box(half: Vec3, pos: Vec3 = (0, 0, 0), rgba: RGBA = (0.9, 0.9, 0.9, 1), **options: object) -> Geom:
    """A box of half lengths ``half`` [m] centred on ``pos``; ``options`` are further fields of :class:`Geom`."""
    return Geom(type="box", size=half, pos=pos, rgba=rgba, **options)  # type: ignore[arg-type]


def pad(half: Vec3, pos: Vec3, rgba: RGBA = (0.2, 0.2, 0.2, 1), **options: object) -> Geom:
    """A finger pad: a box that grips (see :class:`Geom`)."""
    return box(half, pos, rgba, pad=True, **options)


def capsule(a: Vec3, b: Vec3, radius: float, rgba: RGBA = (0.9, 0.9, 0.9, 1), **options: object) -> Geom:
    """A capsule whose two hemispheres are centred on ``a`` and ``b`` [m]."""
    return _between("capsule", a, b, radius, rgba, options)


def cylinder(a: Vec3, b: Vec3, radius: float, rgba: RGBA = (0.9, 0.9, 0.9, 1), **options: object) -> Geom:
    """A cylinder whose flat ends are centred on ``a`` and ``b`` [m]."""
    return _between("cylinder", a, b, radius, rgba, options)


def _between(type: str, a: Vec3, b: Vec3, radius: float, rgba: RGBA, options: Mapping[str, object]) -> Geom:
    x, y, z = (q - p for p, q in zip(a, b, strict=True))
    length = math.sqrt(x * x + y * y + z * z)
    # the shortest rotation that takes +z to a -> b; for -z the axis is free and a capsule looks the same upside down
    w = 1 + abs(z) / length
    x, y = (x, y) if z >= 0 else (-x, -y)
    n = math.hypot(w, x / length, y / length)
    return Geom(
        type=type,
        size=(radius, length / 2),
        pos=tuple((p + q) / 2 for p, q in zip(a, b, strict=True)),  # type: ignore[arg-type]
        quat=(w / n, -y / length / n, x / length / n, 0.0),
        rgba=rgba,
        **options,  # type: ignore[arg-type]
    )


@dataclass(frozen=True, kw_only=True)
class Joint:
    """The joint between a link and its parent; SI units, passive properties linear."""

    name: str
    type: str = "hinge"  # or slide
    axis: Vec3 = (0, 0, 1)
    pos: Vec3 = (0, 0, 0)  # of a hinge's axis, in the link's frame
    range: tuple[float, float] | None = None  # [rad] or [m]
    damping: float = 0.0
    armature: float = 0.0
    frictionloss: float = 0.0
    stiffness: float = 0.0
    springref: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Link:
    """One body of a built-in model. ``parent`` is the name of an earlier link, None for the root."""

    name: str
    parent: str | None
    pos: Vec3 = (0, 0, 0)
    quat: Quat = (1, 0, 0, 0)
    joint: Joint | tuple[Joint, ...] | None = None  # several act in order, each carried by the ones before
    mass: float = 0.0  # [kg]; 0 only for links without a joint
    com: Vec3 = (0, 0, 0)  # [m] in the link frame
    inertia: tuple[float, ...] = (0, 0, 0)  # principal (3) in com_quat's frame, or full xx yy zz xy xz yz (6) [kg m^2]
    com_quat: Quat = (1, 0, 0, 0)
    geoms: tuple[Geom, ...] = ()

    @property
    def joints(self) -> tuple[Joint, ...]:
        """Its joints in order, none for a fixed link."""
        return () if self.joint is None else (self.joint,) if isinstance(self.joint, Joint) else self.joint


def renamed(links: Iterable[Link], prefix: str) -> tuple[Link, ...]:
    """Links whose names, and those of their joints and geoms, begin with ``prefix``."""

    def geom(one: Geom) -> Geom:
        return replace(one, name=prefix + one.name) if one.name else one

    return tuple(
        replace(
            link,
            name=prefix + link.name,
            parent=None if link.parent is None else prefix + link.parent,
            joint=tuple(replace(joint, name=prefix + joint.name) for joint in link.joints) or None,
            geoms=tuple(map(geom, link.geoms)),
        )
        for link in links
    )


def mirrored(links: Iterable[Link], left: str, right: str) -> tuple[Link, ...]:
    """The links of a robot's other side: reflected in the plane y = 0, ``left`` at the beginning of names replaced by
    ``right``. A joint about y turns alike on both sides; one about x or z has its range the other way round."""

    def name(one: str) -> str:
        return right + one.removeprefix(left) if one.startswith(left) else one

    def pos(v: Vec3) -> Vec3:
        return (v[0], -v[1], v[2])

    def quat(q: Quat) -> Quat:
        return (q[0], -q[1], q[2], -q[3])

    def joint(one: Joint) -> Joint:
        turns_alike = abs(one.axis[1]) > 0.5
        low, high = one.range or (0.0, 0.0)
        flipped = one.range if turns_alike or one.range is None else (-high, -low)
        return replace(one, name=name(one.name), pos=pos(one.pos), range=flipped)

    def inertia(values: tuple[float, ...]) -> tuple[float, ...]:
        return values if len(values) == 3 else (*values[:3], -values[3], values[4], -values[5])

    return tuple(
        replace(
            link,
            name=name(link.name),
            parent=None if link.parent is None else name(link.parent),
            pos=pos(link.pos),
            quat=quat(link.quat),
            joint=tuple(map(joint, link.joints)) or None,
            com=pos(link.com),
            com_quat=quat(link.com_quat),
            inertia=inertia(link.inertia),
            geoms=tuple(replace(g, name=name(g.name), pos=pos(g.pos), quat=quat(g.quat)) for g in link.geoms),
        )
        for link in links
    )


def solid(link: Link, density: float) -> Link:
    """The same link with the mass, centre and inertia of its shapes, which are full; what overlaps counts twice.

    Args:
        link: of spheres, capsules, boxes and cylinders.
        density: of all its shapes [kg/m^3].

    Raises:
        SceneError: a shape of another type.
    """
    masses, centres, inertias = [], [], []
    for geom in link.geoms:
        mass, principal = _of(geom, density)
        turn = _matrix(geom.quat)
        masses.append(mass)
        centres.append(np.array(geom.pos, float))
        inertias.append(turn @ np.diag(principal) @ turn.T)
    total = sum(masses)
    com = sum((mass * at for mass, at in zip(masses, centres, strict=True)), np.zeros(3)) / total
    whole = np.zeros((3, 3))
    for mass, at, inertia in zip(masses, centres, inertias, strict=True):
        away = at - com
        whole += inertia + mass * (away @ away * np.eye(3) - np.outer(away, away))
    entries = (*np.diag(whole), whole[0, 1], whole[0, 2], whole[1, 2])
    x, y, z = map(float, com)
    return replace(link, mass=float(total), com=(x, y, z), inertia=tuple(map(float, entries)))


def _of(geom: Geom, density: float) -> tuple[float, tuple[float, float, float]]:
    """Mass [kg] and principal moments [kg m^2] about its centre."""
    if geom.type == "sphere":
        (r,) = geom.size
        mass = density * math.pi * r**3 * 4 / 3
        return mass, (0.4 * mass * r**2,) * 3
    if geom.type == "box":
        x, y, z = geom.size
        mass = density * 8 * x * y * z
        return mass, (mass * (y**2 + z**2) / 3, mass * (x**2 + z**2) / 3, mass * (x**2 + y**2) / 3)
    if geom.type in ("capsule", "cylinder"):
        r, half = geom.size
        tube = density * math.pi * r**2 * 2 * half
        across, along = tube * (r**2 / 4 + half**2 / 3), tube * r**2 / 2
        ends = density * math.pi * r**3 * 4 / 3 if geom.type == "capsule" else 0.0
        # two halves of a ball, each with its centre 3/8 of a radius beyond the end of the tube
        across += ends * (0.4 * r**2 + half**2 + 0.75 * half * r)
        along += ends * 0.4 * r**2
        return tube + ends, (across, across, along)
    raise SceneError(f"no inertia of a {geom.type!r}; give the link's mass, com and inertia")


def _matrix(quat: tuple[float, float, float, float]) -> np.ndarray:
    w, x, y, z = np.array(quat) / math.hypot(*quat)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
