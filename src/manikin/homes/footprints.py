"""What of a compiled scene stands in a robot's way: each shape, cut to the robot's height and seen from above."""

from __future__ import annotations

import mujoco
import numpy as np

__all__ = ["footprints", "hull", "outlines"]

_CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
_EDGES = np.array([(i, j) for i in range(8) for j in range(i + 1, 8) if (_CORNERS[i] != _CORNERS[j]).sum() == 1])
_SIDES = 16  # of the prism around something round


def footprints(model: mujoco.MjModel, data: mujoco.MjData, *, low: float, high: float) -> list[np.ndarray]:
    """Convex polygons that cover everything that collides between two heights.

    Boxes and meshes (their convex hull) are exact; something round is covered by a polytope around it. Planes are left
    out: they are floors.

    Args:
        model: the scene.
        data: its state, after forward kinematics.
        low: height from which on things count [m].
        high: height up to which they do [m].

    Returns:
        Corners (k, 2) [m] of each polygon, counter-clockwise.
    """
    return list(outlines(model, data, low=low, high=high).values())


def outlines(model: mujoco.MjModel, data: mujoco.MjData, *, low: float, high: float) -> dict[int, np.ndarray]:
    """What :func:`footprints` gives, by the numbers of the geoms."""
    out = {}
    for g in range(model.ngeom):
        if model.geom_type[g] == mujoco.mjtGeom.mjGEOM_PLANE or not (
            model.geom_contype[g] or model.geom_conaffinity[g]
        ):
            continue
        points, edges = _polytope(model, g)
        world = points @ data.geom_xmat[g].reshape(3, 3).T + data.geom_xpos[g]
        cut = _between(world, edges, low, high)
        if len(cut):
            out[g] = hull(cut)
    return out


def _polytope(model: mujoco.MjModel, g: int) -> tuple[np.ndarray, np.ndarray]:
    """Corners (k, 3) in the geom's frame and edges (e, 2)."""
    kind, size = model.geom_type[g], model.geom_size[g]
    if kind == mujoco.mjtGeom.mjGEOM_BOX:
        return _CORNERS * size, _EDGES
    if kind == mujoco.mjtGeom.mjGEOM_MESH:
        from scipy.spatial import ConvexHull

        mesh = model.geom_dataid[g]
        start, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
        points = model.mesh_vert[start : start + count].astype(float)
        faces = ConvexHull(points).simplices
        return points, np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    if kind in (mujoco.mjtGeom.mjGEOM_CAPSULE, mujoco.mjtGeom.mjGEOM_CYLINDER):
        half = size[1] + (size[0] if kind == mujoco.mjtGeom.mjGEOM_CAPSULE else 0.0)
        angles = np.arange(_SIDES) * (2 * np.pi / _SIDES)
        ring = size[0] / np.cos(np.pi / _SIDES) * np.stack([np.cos(angles), np.sin(angles)], -1)
        points = np.concatenate([np.insert(ring, 2, z, axis=1) for z in (-half, half)])
        i = np.arange(_SIDES)
        after = (i + 1) % _SIDES
        pairs = [np.stack([i, after]), np.stack([i, after]) + _SIDES, np.stack([i, i + _SIDES])]
        return points, np.concatenate(pairs, 1).T
    half_box = np.broadcast_to(size[0], 3) if kind == mujoco.mjtGeom.mjGEOM_SPHERE else model.geom_aabb[g, 3:]
    return _CORNERS * half_box, _EDGES


def _between(points: np.ndarray, edges: np.ndarray, low: float, high: float) -> np.ndarray:
    """(k, 2) corners of a polytope's part between two heights, seen from above."""
    z = points[:, 2]
    kept = [points[(z >= low) & (z <= high), :2]]
    a, b = points[edges[:, 0]], points[edges[:, 1]]
    for level in (low, high):
        crosses = (a[:, 2] - level) * (b[:, 2] - level) < 0
        p, q = a[crosses], b[crosses]
        share = (level - p[:, 2:]) / (q[:, 2:] - p[:, 2:])
        kept.append((p + share * (q - p))[:, :2])
    return np.concatenate(kept)


def hull(points: np.ndarray) -> np.ndarray:
    """(k, 2) corners of the convex hull of ``points`` (n, 2), counter-clockwise; also of points in one line."""
    order = sorted(map(tuple, points.tolist()))
    chains = []
    for run in (order, order[::-1]):
        chain: list[tuple[float, float]] = []
        for p in run:
            while len(chain) > 1 and _turn(chain[-2], chain[-1], p) <= 0:
                chain.pop()
            chain.append(p)
        chains.append(chain[:-1])
    corners = chains[0] + chains[1]
    return np.array(corners or order[:1])


def _turn(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
