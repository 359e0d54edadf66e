"""The shapes of a part as geoms of its body: what collides, what is seen, and what it rests on."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco

from manikin.scene.candidates import HIDDEN, add_geom
from manikin.spec.prop import Shape

__all__ = ["SURFACE", "add_shapes"]

# (contype, conaffinity); two shapes touch where one's type is in the other's affinity. All else has (1, 1). Surfaces
# touch all but the shapes of a compound that has others to rest on, and these touch surfaces alone.
SURFACE = (0, 3)
_COMPOUND, _RESTS = (4, 5), (2, 0)


def add_shapes(
    spec: mujoco.MjSpec,
    body: mujoco.MjsBody,
    name: str,
    shapes: Sequence[Shape],
    *,
    colour: Sequence[float],
    friction: float,
    mass: float | None,
    density: float,
    collide: bool,
    looks: Sequence[Shape],
    rests_on: Sequence[Shape],
) -> list[str]:
    """Add them; arguments are as for :meth:`manikin.scene.builder.SceneBuilder.part`.

    Returns:
        Names of the geoms of ``shapes``.
    """
    names = []
    for i, shape in enumerate(shapes):
        geom = add_geom(spec, body, shape, name=f"{name}/{i}")
        if shape.rgba is None and not geom.material:
            geom.rgba = colour
        geom.friction = (friction if shape.friction is None else shape.friction, 0.005, 0.0001)
        if mass is not None:
            geom.mass = mass / len(shapes)
        else:
            geom.density = density if shape.density is None else shape.density
        if not collide:
            geom.contype = geom.conaffinity = 0
        elif rests_on:
            geom.contype, geom.conaffinity = _COMPOUND
        if looks:
            geom.group = HIDDEN
        names.append(geom.name)
    for i, shape in enumerate(looks):
        geom = add_geom(spec, body, shape, name=f"{name}/look{i}")
        geom.mass = geom.contype = geom.conaffinity = 0
    for i, shape in enumerate(rests_on):
        geom = add_geom(spec, body, shape, name=f"{name}/rest{i}")
        geom.friction = (friction, 0.005, 0.0001)
        geom.mass, geom.group = 0, HIDDEN
        geom.contype, geom.conaffinity = _RESTS
    return names
