"""Mass and inertia of links that are given by their shapes and a density."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from manikin.errors import SceneError
from manikin.spec.links import Geom, Link

__all__ = ["solid"]


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
