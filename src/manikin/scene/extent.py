"""How large things are: boxes around geoms."""

from __future__ import annotations

from collections.abc import Iterable

import mujoco
import numpy as np

__all__ = ["box_around"]


def box_around(
    model: mujoco.MjModel, geoms: Iterable[int], pos: np.ndarray, rotation: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Middle and half size (3,) [m] of the box around geoms, along the axes of the frame that they are given in.

    Args:
        model: what they are in.
        geoms: their numbers, at least one.
        pos: (ngeom, 3) of all geoms in that frame [m].
        rotation: (ngeom, 3, 3) of all geoms in that frame.
    """
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for g in geoms:
        r = rotation[g]
        if int(model.geom_type[g]) == int(mujoco.mjtGeom.mjGEOM_MESH):  # the box of its points, not of its box
            mesh = int(model.geom_dataid[g])
            at = int(model.mesh_vertadr[mesh])
            points = model.mesh_vert[at : at + int(model.mesh_vertnum[mesh])] @ r.T + pos[g]
            low, high = np.minimum(low, points.min(0)), np.maximum(high, points.max(0))
        else:
            middle = pos[g] + r @ model.geom_aabb[g, :3]
            half = np.abs(r) @ model.geom_aabb[g, 3:]
            low, high = np.minimum(low, middle - half), np.maximum(high, middle + half)
    return (low + high) / 2, (high - low) / 2
