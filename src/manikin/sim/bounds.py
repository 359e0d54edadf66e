"""Constants that follow from a primitive's size, in closed form, for rows whose sizes differ.

Writing ``geom_size`` alone is silently wrong: MuJoCo's broad phase keeps the old bounds (measured: 22 mm of error in a
resting height). Here size, bounding radius, axis-aligned box, mass, inertia and the body's bounding volumes change
together; tests hold the result to compiling the same scene.
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import torch

from manikin.errors import SceneError

__all__ = ["PRIMITIVES", "body_volumes", "library", "primitive_bounds", "primitive_inertia"]

_G = mujoco.mjtGeom
SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX = (
    int(g) for g in (_G.mjGEOM_SPHERE, _G.mjGEOM_CAPSULE, _G.mjGEOM_ELLIPSOID, _G.mjGEOM_CYLINDER, _G.mjGEOM_BOX)
)

PRIMITIVES = (SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX)


def library(array: Any) -> Any:
    """``torch`` for a tensor, ``numpy`` for an array: what is used of them here is called the same in both."""
    return torch if isinstance(array, torch.Tensor) else np


def primitive_bounds(kind: int, size: Any) -> tuple[Any, Any]:
    """Bounding radius (n,) and axis-aligned half extents (n, 3) of a primitive of size (n, 3) in its own frame."""
    xp, r, h = library(size), size[:, 0], size[:, 1]
    if kind == SPHERE:
        return r, xp.stack([r, r, r], 1)
    if kind == CAPSULE:
        return r + h, xp.stack([r, r, r + h], 1)
    if kind == CYLINDER:
        return xp.sqrt(r * r + h * h), xp.stack([r, r, h], 1)
    if kind == ELLIPSOID:
        return xp.amax(size, 1), size
    if kind == BOX:
        return xp.sqrt((size * size).sum(1)), size
    raise SceneError("only sphere, capsule, cylinder, ellipsoid and box can change size per row")


def primitive_inertia(kind: int, size: Any) -> tuple[Any, Any]:
    """Volume (n,) [m^3] and principal moments per unit mass (n, 3) [m^2] of a solid primitive."""
    xp, r, h = library(size), size[:, 0], size[:, 1]
    if kind == SPHERE:
        i = 0.4 * r * r
        return 4 / 3 * np.pi * r**3, xp.stack([i, i, i], 1)
    if kind == CYLINDER:
        lateral = (3 * r * r + 4 * h * h) / 12
        return 2 * np.pi * r * r * h, xp.stack([lateral, lateral, r * r / 2], 1)
    if kind == CAPSULE:
        cylinder, ball = 2 * np.pi * r * r * h, 4 / 3 * np.pi * r**3
        mc, mb = cylinder / (cylinder + ball), ball / (cylinder + ball)
        lateral = mc * (3 * r * r + 4 * h * h) / 12 + mb * (0.4 * r * r + 0.75 * r * h + h * h)
        return cylinder + ball, xp.stack([lateral, lateral, mc * r * r / 2 + mb * 0.4 * r * r], 1)
    s = size * size
    sums = xp.stack([s[:, 1] + s[:, 2], s[:, 0] + s[:, 2], s[:, 0] + s[:, 1]], 1)
    if kind == ELLIPSOID:
        return 4 / 3 * np.pi * size.prod(1), sums / 5
    if kind == BOX:
        return 8 * size.prod(1), sums / 3
    raise SceneError("only sphere, capsule, cylinder, ellipsoid and box can change size per row")


def body_volumes(
    model: mujoco.MjModel,
    body: int,
    frame: tuple[np.ndarray, np.ndarray],
    aabb: np.ndarray,
    pos: np.ndarray,
    quat: np.ndarray,
    out: np.ndarray,
) -> None:
    """Recompute one body's bounding volumes in place.

    ``frame`` is the body's inertial frame, (n, 3) and (n, 4); ``aabb`` (n, ngeom, 6) are the geoms' boxes (centre,
    half) in their own frames, ``pos`` (n, ngeom, 3) and ``quat`` (n, ngeom, 4) those frames in the body, ``out``
    (n, nbvh, 6) the boxes in the body's inertial frame.
    """
    start, count = int(model.body_bvhadr[body]), int(model.body_bvhnum[body])
    ipos, imat = frame[0], _matrices(frame[1])
    for node in range(start + count - 1, start - 1, -1):  # children come after their parents
        geom = int(model.bvh_nodeid[node])
        if geom >= 0:
            rot = imat.transpose(0, 2, 1) @ _matrices(quat[:, geom])  # (n, 3, 3), geom frame -> inertial frame
            centre = np.einsum("nji,nj->ni", imat, pos[:, geom] - ipos) + np.einsum(
                "nij,nj->ni", rot, aabb[:, geom, :3]
            )
            half = np.einsum("nij,nj->ni", np.abs(rot), aabb[:, geom, 3:])
        else:
            low = np.full((len(out), 3), np.inf)
            high = -low
            for child in model.bvh_child[node]:
                if child >= 0:
                    box = out[:, start + child]
                    low = np.minimum(low, box[:, :3] - box[:, 3:])
                    high = np.maximum(high, box[:, :3] + box[:, 3:])
            centre, half = (low + high) / 2, (high - low) / 2
        out[:, node, :3], out[:, node, 3:] = centre, half


def _matrices(quat: np.ndarray) -> np.ndarray:
    w, x, y, z = quat.T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), -1, 0)
