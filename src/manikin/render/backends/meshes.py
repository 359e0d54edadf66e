"""Models whose meshes have fewer faces, for drawing. Physics never sees them.

The decimated meshes take the places of the originals in a copy of the compiled model, so that geoms, their poses and
their numbers stay as they are and any state of the original can be drawn with the copy.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import mujoco
import numpy as np

from manikin.assets.decimate import decimate

__all__ = ["Lightening", "lighter"]

BUDGET = 500  # faces of a mesh below which it stays as it is
TOLERANCE = 2.5e-4  # [m] about an eighth of a pixel at 1 m and 640 x 480
_CREASE = math.cos(math.radians(40))  # faces that meet at a sharper angle keep their edge when lit
_SEEN_GROUPS = 3


@dataclass(frozen=True)
class Lightening:
    """What was done to a model's meshes.

    Attributes:
        faces_before, faces_after: triangles of all visible mesh geoms.
        max_error, mean_error: distance between original and drawn surface [m]; the mean is over changed meshes.
    """

    faces_before: int
    faces_after: int
    max_error: float
    mean_error: float


def lighter(
    model: mujoco.MjModel, *, budget: int = BUDGET, tolerance: float = TOLERANCE
) -> tuple[mujoco.MjModel, Lightening]:
    """The model with meshes of visible geoms (groups 0 to 2) of more than ``budget`` faces decimated, and a report.

    The original is returned where there is nothing to do. The copy is for drawing and for ray tracers that build their
    own trees; MuJoCo's own collision, rays and inertia do not fit its meshes. Results are cached on disk.

    Args:
        model: a compiled model; it is not changed.
        budget: [faces].
        tolerance: [m], see :func:`manikin.assets.decimate.decimate`.
    """
    mesh_geoms = (model.geom_type == int(mujoco.mjtGeom.mjGEOM_MESH)) & (model.geom_group < _SEEN_GROUPS)
    uses = np.bincount(model.geom_dataid[mesh_geoms], minlength=model.nmesh)
    before = after = int((uses * model.mesh_facenum).sum())
    heavy = np.flatnonzero((uses > 0) & (model.mesh_facenum > budget))
    out, largest, means = model, 0.0, []
    for mesh in map(int, heavy):
        vertices, faces, texcoord, corner = _of(model, mesh)
        made = decimate(vertices, faces, texcoord, tolerance=tolerance)
        room = int(model.mesh_vertnum[mesh])  # less than ``vertices`` where textures have seams
        if len(made.faces) >= len(faces) or len(made.vertices) > room:
            continue
        if corner and len(made.texcoord) > model.mesh_texcoordnum[mesh]:
            continue
        normals, index = _normals(made.vertices, made.faces)
        if len(normals) > model.mesh_normalnum[mesh]:
            continue
        if out is model:
            out = copy.copy(model)
        _put(out, mesh, made.vertices, made.faces, normals, index, made.texcoord if corner else None)
        after -= int(uses[mesh]) * (len(faces) - len(made.faces))
        largest = max(largest, made.max_error)
        means.append(made.mean_error)
    return out, Lightening(before, after, largest, float(np.mean(means)) if means else 0.0)


def _of(model: mujoco.MjModel, mesh: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, bool]:
    """Vertices, faces, texture coordinates per vertex or None, and whether there are any.

    A vertex with several texture coordinates becomes several.
    """
    at, n = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
    faces = model.mesh_face[at : at + n]
    start, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
    vertices = model.mesh_vert[start : start + count].astype(float)
    uv_start = int(model.mesh_texcoordadr[mesh])
    if uv_start < 0:
        return vertices, faces, None, False
    uv_faces = model.mesh_facetexcoord[at : at + n]
    pairs, index = np.unique(
        np.stack([faces.reshape(-1), uv_faces.reshape(-1)], 1).astype(np.int64), axis=0, return_inverse=True
    )
    texcoord = model.mesh_texcoord[uv_start + pairs[:, 1]].astype(float)
    return vertices[pairs[:, 0]], index.reshape(-1, 3).astype(np.int32), texcoord, True


def _normals(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Normals (n, 3), and which each corner of the faces has (m, 3): smooth over a vertex, but not across creases."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    area = np.cross(b - a, c - a)
    unit = area / np.maximum(np.linalg.norm(area, axis=1, keepdims=True), 1e-30)
    # Vertices at one place count as one: texture seams are no creases.
    _, place = np.unique(vertices, axis=0, return_inverse=True)
    corner = place.reshape(-1)[faces].reshape(-1)
    by = np.argsort(corner, kind="stable")
    first = np.searchsorted(corner[by], np.arange(corner.max() + 2))
    size = first[corner + 1] - first[corner]
    own, total = np.arange(len(corner)) // 3, np.zeros((len(corner), 3))
    for k in range(int(size.max())):
        on = np.flatnonzero(size > k)
        other = by[first[corner[on]] + k] // 3
        smooth = np.einsum("ij,ij->i", unit[own[on]], unit[other]) >= _CREASE
        total[on[smooth]] += area[other[smooth]]
    length = np.linalg.norm(total, axis=1, keepdims=True)
    total = np.where(length > 1e-30, total / np.maximum(length, 1e-30), unit[own])
    normals, index = np.unique(total.astype(np.float32), axis=0, return_inverse=True)
    return normals, index.reshape(-1, 3).astype(np.int32)


def _put(
    model: mujoco.MjModel,
    mesh: int,
    vertices: np.ndarray,
    faces: np.ndarray,
    normals: np.ndarray,
    index: np.ndarray,
    texcoord: np.ndarray | None,
) -> None:
    """Write a smaller mesh where a larger one was."""

    def write(array: np.ndarray, start: np.ndarray, values: np.ndarray) -> None:
        at = int(start[mesh])
        array[at : at + len(values)] = values

    write(model.mesh_vert, model.mesh_vertadr, vertices)
    write(model.mesh_face, model.mesh_faceadr, faces)
    write(model.mesh_normal, model.mesh_normaladr, normals)
    write(model.mesh_facenormal, model.mesh_faceadr, index)
    if texcoord is not None:
        write(model.mesh_texcoord, model.mesh_texcoordadr, texcoord)
        write(model.mesh_facetexcoord, model.mesh_faceadr, faces)
        model.mesh_texcoordnum[mesh] = len(texcoord)
    model.mesh_vertnum[mesh], model.mesh_facenum[mesh] = len(vertices), len(faces)
    model.mesh_normalnum[mesh] = len(normals)
