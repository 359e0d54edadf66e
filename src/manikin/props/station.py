"""The cabinet of SIMPLER's drawer tasks (Li et al. 2024, arXiv 2405.05941): three drawers under a top, all boxes.

Sizes and places are those of the original's model, whose fronts face +x; its origin is in the middle of its foot.
Masses are those of the boxes at 1000 kg/m^3, the original simulator's default. PhysX multiplies a joint's friction
coefficient, ``JOINT_FRICTION``, with the load on the joint; here that is 0.05 times the drawer's weight, 5.6 N.

The original has four of these cabinets, which differ in colours alone, see ``FINISHES``.

The original's handles have no collision shape: its robots pull at the edges of the fronts. Here handles collide, as the
boxes that the original shows, so that a gripper can hold them; ``handles=False`` gives the original's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import mujoco

from manikin.assets.builtin import build
from manikin.errors import ConfigError, UnknownNameError
from manikin.props.simpler import GROUND_FRICTION
from manikin.spec.links import RGBA, Geom, Joint, Link, Vec3, box

__all__ = ["DRAWERS", "FINISHES", "HANDLE", "JOINT_FRICTION", "Finish", "station"]

DRAWERS = {"top": 0.668, "middle": 0.423, "bottom": 0.178}
"""Height of the drawers' origins [m]."""
HANDLE = (0.3425, 0.0, 0.02)
"""Middle of a handle's bar in its drawer's frame [m]."""
JOINT_FRICTION = 0.05
"""Of the original's drawers; SIMPLER's Table X varies it from 0.0125 to 0.2."""
_DENSITY = 1000.0  # [kg/m^3]
_BODY = (
    ((-0.305, 0, 0.4225), (0.02, 0.615, 0.845)),
    ((0, -0.2975, 0.4225), (0.59, 0.02, 0.845)),
    ((0, 0.2975, 0.4225), (0.59, 0.02, 0.845)),
    ((0, 0, 0.855), (0.63, 0.615, 0.02)),
)
_DRAWER = (
    ((0.305, 0, 0), (0.015, 0.615, 0.14)),
    ((-0.285, 0, -0.02), (0.02, 0.515, 0.10)),
    ((0.285, 0, -0.02), (0.02, 0.515, 0.10)),
    ((0, -0.2675, -0.02), (0.59, 0.02, 0.10)),
    ((0, 0.2675, -0.02), (0.59, 0.02, 0.10)),
)
_FLOOR = ((0, 0, -0.06), (0.55, 0.515, 0.02))
_HANDLE = (
    (HANDLE, (0.005, 0.10, 0.005)),
    ((0.3325, -0.05, 0.02), (0.02, 0.005, 0.005)),
    ((0.3325, 0.05, 0.02), (0.02, 0.005, 0.005)),
)
Boxes = tuple[tuple[Vec3, Vec3], ...]


@dataclass(frozen=True, kw_only=True)
class Finish:
    """Colours of a cabinet: of body and fronts, its top, the insides of its drawers, and the handles."""

    wood: RGBA = (0.388, 0.322, 0.275, 1.0)
    top: RGBA = (0.635, 0.529, 0.412, 1.0)
    inside: RGBA = (1.0, 1.0, 1.0, 1.0)
    handle: RGBA = (0.1, 0.1, 0.1, 1.0)


_DARK = (0.325, 0.187, 0.1166, 1.0)
FINISHES: Mapping[str, Finish] = {
    "mk_station_recolor": Finish(wood=_DARK, top=_DARK, inside=_DARK, handle=(0.0127, 0.0023, 0.0005, 1.0)),
    "mk_station": Finish(),
    "mk_station2": Finish(inside=Finish.wood),
    "mk_station3": Finish(inside=Finish.wood, top=(0.72, 0.71, 0.69, 1.0)),  # in place of a scanned slab of stone
}
"""By the names of the original's files: the one of visual matching, and the three of variant aggregation."""


def _inertial(boxes: Boxes) -> tuple[float, Vec3, tuple[float, ...]]:
    """Mass [kg], centre [m] and inertia xx yy zz xy xz yz [kg m^2] of boxes together."""
    masses = [_DENSITY * a * b * c for _, (a, b, c) in boxes]
    mass = sum(masses)
    centre = [sum(m * at[k] for m, (at, _) in zip(masses, boxes, strict=True)) / mass for k in range(3)]
    inertia = [0.0] * 6
    for m, (at, size) in zip(masses, boxes, strict=True):
        d = [at[k] - centre[k] for k in range(3)]
        for k in range(3):
            i, j = (k + 1) % 3, (k + 2) % 3
            inertia[k] += m * ((size[i] ** 2 + size[j] ** 2) / 12 + d[i] ** 2 + d[j] ** 2)
        for k, (i, j) in enumerate(((0, 1), (0, 2), (1, 2))):
            inertia[3 + k] -= m * d[i] * d[j]
    return mass, (centre[0], centre[1], centre[2]), tuple(inertia)


def _shapes(boxes: Boxes, rgba: RGBA, *, collide: bool = True) -> tuple[Geom, ...]:
    return tuple(box((x / 2, y / 2, z / 2), at, rgba, collide=collide) for at, (x, y, z) in boxes)


def station(
    *, handles: bool = True, finish: str = "mk_station_recolor", joint_friction: float = JOINT_FRICTION
) -> mujoco.MjSpec:
    """The model: joints ``top``, ``middle`` and ``bottom`` [0, 0.5 m], links of these names, in each a link
    ``NAME_floor`` that is its bottom, and a site ``handle/NAME`` in the middle of each handle's bar.

    Args:
        handles: whether they collide.
        finish: one of ``FINISHES``.
        joint_friction: what a drawer's weight is multiplied with to give the friction of its joint.

    Raises:
        UnknownNameError: there is no such finish.
        ConfigError: a friction that is negative or not finite.
    """
    if not (math.isfinite(joint_friction) and joint_friction >= 0):
        raise ConfigError(f"joint_friction of the cabinet must be 0 or more, got {joint_friction}")
    if finish not in FINISHES:
        raise UnknownNameError("finish of the cabinet", finish, FINISHES)
    colours = FINISHES[finish]
    sides, top = _shapes(_BODY[:-1], colours.wood), _shapes(_BODY[-1:], colours.top)
    drawer = (*_shapes(_DRAWER[:1], colours.wood), *_shapes(_DRAWER[1:], colours.inside))
    bar = _shapes(_HANDLE, colours.handle, collide=handles)
    links = [Link(name="body", parent=None, geoms=(*sides, *top))]
    for name, height in DRAWERS.items():
        mass, com, inertia = _inertial((*_DRAWER, _FLOOR))
        friction = joint_friction * mass * 9.81
        links.append(
            Link(
                name=name,
                parent="body",
                pos=(0, 0, height),
                mass=mass,
                com=com,
                inertia=inertia,
                joint=Joint(
                    name=name, type="slide", axis=(1, 0, 0), range=(0.0, 0.5), damping=1.0, frictionloss=friction
                ),
                geoms=(*drawer, *bar),
            )
        )
        links.append(Link(name=f"{name}_floor", parent=name, geoms=_shapes((_FLOOR,), colours.inside)))
    spec = build(links, name="station")
    for geom in spec.geoms:
        geom.friction[0], geom.priority = GROUND_FRICTION, -1
    for name in DRAWERS:
        spec.body(name).add_site(name=f"handle/{name}", pos=HANDLE, size=[0.003, 0, 0], group=4)
    return spec
