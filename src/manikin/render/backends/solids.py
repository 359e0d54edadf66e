"""Where rays meet the shapes a site can have. Rays are given in the shape's own frame; sizes are MuJoCo's."""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np

__all__ = ["SOLIDS", "bounding_radius", "hit"]

_G = mujoco.mjtGeom
_MISS = np.inf


def hit(kind: int, size: np.ndarray, origin: np.ndarray, rays: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distance (n,) to where rays (n, 3) from ``origin`` (3,) enter a shape, and the unit normals (n, 3) there.

    inf where a ray misses; from inside a shape nothing is hit.
    """
    distance, normal = SOLIDS[kind](size, origin, rays)
    return np.where(distance > 0, distance, _MISS), normal


def bounding_radius(kind: int, size: np.ndarray) -> float:
    """Radius [m] of the sphere round the shape's centre that holds it."""
    if kind == int(_G.mjGEOM_SPHERE):
        return float(size[0])
    if kind == int(_G.mjGEOM_CAPSULE):
        return float(size[0] + size[1])
    if kind == int(_G.mjGEOM_CYLINDER):
        return float(np.hypot(size[0], size[1]))
    return float(np.linalg.norm(size)) if kind == int(_G.mjGEOM_BOX) else float(size.max())


def _quadratic(a: np.ndarray, b: np.ndarray, c: np.ndarray | float) -> np.ndarray:
    """The smaller root of a t^2 + 2 b t + c, inf where there is none."""
    inside = b * b - a * c
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((inside >= 0) & (a > 1e-12), (-b - np.sqrt(np.maximum(inside, 0))) / a, _MISS)


def _points(origin: np.ndarray, rays: np.ndarray, t: np.ndarray) -> np.ndarray:
    return origin + rays * np.where(np.isfinite(t), t, 0)[:, None]


def _unit(v: np.ndarray) -> np.ndarray:
    return v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-12)


def _ellipsoid(size: np.ndarray, origin: np.ndarray, rays: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    o, d = origin / size, rays / size
    t = _quadratic((d * d).sum(1), d @ o, o @ o - 1)
    return t, _unit(_points(o, d, t) / size)


def _sphere(size: np.ndarray, origin: np.ndarray, rays: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return _ellipsoid(np.full(3, size[0]), origin, rays)


def _box(size: np.ndarray, origin: np.ndarray, rays: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    safe = np.where(np.abs(rays) < 1e-12, 1e-12, rays)
    near = (-np.copysign(size, safe) - origin) / safe
    far = (np.copysign(size, safe) - origin) / safe
    axis = near.argmax(1)
    t = near[np.arange(len(rays)), axis]
    normal = np.zeros_like(rays)
    normal[np.arange(len(rays)), axis] = -np.sign(safe[np.arange(len(rays)), axis])
    return np.where(t <= far.min(1), t, _MISS), normal


def _cylinder(size: np.ndarray, origin: np.ndarray, rays: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    radius, half = size[0], size[1]
    flat_o, flat_d = origin[:2], rays[:, :2]
    side = _quadratic((flat_d * flat_d).sum(1), flat_d @ flat_o, flat_o @ flat_o - radius * radius)
    p = _points(origin, rays, side)
    side = np.where(np.abs(p[:, 2]) <= half, side, _MISS)
    normal = np.stack([p[:, 0], p[:, 1], 0 * p[:, 2]], 1) / radius
    down = np.where(np.abs(rays[:, 2]) < 1e-12, 1e-12, rays[:, 2])
    lid = (-np.copysign(half, down) - origin[2]) / down
    q = origin[:2] + flat_d * lid[:, None]
    lid = np.where((q * q).sum(1) <= radius * radius, lid, _MISS)
    first = lid < side
    normal[first] = np.stack([0 * down, 0 * down, -np.sign(down)], 1)[first]
    return np.minimum(side, lid), normal


def _capsule(size: np.ndarray, origin: np.ndarray, rays: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    radius, half = size[0], size[1]
    best, normal = _cylinder(size, origin, rays)
    # The lids lie inside the half spheres and are never what is seen from outside.
    best = np.where(np.abs(normal[:, 2]) > 0.5, _MISS, best)
    for end in (-half, half):
        t, n = _sphere(np.array([radius]), origin - (0, 0, end), rays)
        closer = t < best
        best, normal = np.where(closer, t, best), np.where(closer[:, None], n, normal)
    return best, normal


SOLIDS: dict[int, Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]] = {
    int(_G.mjGEOM_SPHERE): _sphere,
    int(_G.mjGEOM_ELLIPSOID): _ellipsoid,
    int(_G.mjGEOM_BOX): _box,
    int(_G.mjGEOM_CYLINDER): _cylinder,
    int(_G.mjGEOM_CAPSULE): _capsule,
}
