"""A photograph's colours put onto a mesh: which texels the camera sees, and what they look like.

The texture is read back through the camera: the point of the surface that lies under a texel is projected into the
photograph, and counts where no other part of the mesh hides it.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import mujoco
import numpy as np

from manikin.errors import ConfigError, DataError
from manikin.render.align import align_camera, check_mask
from manikin.render.api import make_renderer
from manikin.render.renderer import Renderer
from manikin.render.view import View, view_of
from manikin.spec.camera import CameraSpec

__all__ = ["Match", "Texture", "atlas", "match_texture", "rough_camera", "unproject"]

_NAME = "object"

_GRAZING = 0.2  # cosine between surface and ray below which a pixel says too little
_EDGE = 2  # [pixels] at the mask's edge, which are mixed with what is behind
_MARGIN = 2  # texels round each triangle that are filled with it, against seams


@dataclass(frozen=True, eq=False)
class Texture:
    """What :func:`unproject` made.

    Attributes:
        image: (size, size, 3) uint8, row 0 at the top, which is v = 1.
        seen: (size, size) bool: texels that the photograph shows.
        used: (size, size) bool: texels that belong to the mesh.
    """

    image: np.ndarray
    seen: np.ndarray
    used: np.ndarray


@dataclass(frozen=True, eq=False)
class Match:
    """What :func:`match_texture` made.

    Attributes:
        texture: the picture and what of it the photograph shows.
        uv: (faces, 3, 2) texture coordinates of the triangles' corners.
        camera: its pose in the mesh's frame.
        agreement: intersection over union of silhouette and mask.
        model: the mesh alone, as a scene for more pictures.
    """

    texture: Texture
    uv: np.ndarray
    camera: CameraSpec
    agreement: float
    model: mujoco.MjModel


def match_texture(
    vertices: np.ndarray,
    faces: np.ndarray,
    photograph: np.ndarray,
    mask: np.ndarray,
    camera: CameraSpec,
    *,
    texcoord: np.ndarray | None = None,
    size: int = 256,
    fill: str = "nearest",
    renderer: Renderer | None = None,
) -> Match:
    """The texture of an object from one photograph: its silhouette is aligned with the mask, then the pixels are put
    onto the mesh.

    Args:
        vertices: (n, 3) [m].
        faces: (m, 3), counter-clockwise from outside.
        photograph: (h, w, 3) uint8.
        mask: of the photograph's size, see :func:`manikin.render.align.check_mask`.
        camera: the photograph's lens, and its rough pose in the mesh's frame: the search begins there.
        texcoord: (n, 2) texture coordinates in 0..1; None makes an atlas of single triangles.
        size: of the texture [texels each way].
        fill: as in :func:`unproject`.
        renderer: makes depth and segmentation; by default any that works.

    Raises:
        DataError: as :func:`manikin.render.align.align_camera` and :func:`unproject`.
        ConfigError: ``fill`` is another word.
    """
    if fill not in ("nearest", "mean"):
        raise ConfigError(f"fill is nearest or mean, not {fill!r}")
    mask = check_mask(mask, photograph)
    model = scene_of(vertices, faces)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    own = renderer is None
    renderer = make_renderer("auto", outputs=("depth", "segmentation")) if renderer is None else renderer
    try:
        camera = dataclasses.replace(camera, on="")
        found = align_camera(model, data, camera, mask, things=(_NAME,), renderer=renderer)
        view = view_of(model, data, found.camera)
        depth = renderer.images(model, data, view, ("depth",))["depth"]
    finally:
        if own:
            renderer.close()
    uv = atlas(len(faces)) if texcoord is None else np.asarray(texcoord, float)[faces]
    texture = unproject(np.asarray(vertices)[faces], uv, view, photograph, mask, depth, size=size, fill=fill)
    return Match(texture, uv, found.camera, found.agreement, model)


def rough_camera(
    vertices: np.ndarray, mask: np.ndarray, camera: CameraSpec, quat: tuple[float, float, float, float]
) -> CameraSpec:
    """Where the camera is about, in the mesh's frame: as far away as the mask is small, its middle in the mask's.

    Args:
        vertices: (n, 3) [m].
        mask: (h, w) bool.
        camera: the lens.
        quat: (w, x, y, z) of the mesh in the optical frame (x right, y down, z forward).
    """
    spec = camera.resized(mask.shape[1], mask.shape[0])
    K, matrix = spec.K(), np.zeros(9)
    mujoco.mju_quat2Mat(matrix, np.array(quat) / np.linalg.norm(quat))
    rotation = matrix.reshape(3, 3)
    turned = np.asarray(vertices) @ rotation.T
    y, x = np.nonzero(mask)
    spread = math.sqrt((np.ptp(turned[:, 0]) ** 2 + np.ptp(turned[:, 1]) ** 2) / (np.ptp(x) ** 2 + np.ptp(y) ** 2))
    far = K[0, 0] * spread
    middle = np.array([(x.min() + x.max()) / 2, (y.min() + y.max()) / 2])
    ahead = np.append((middle - K[:2, 2]) / K[[0, 1], [0, 1]], 1.0) * far
    centre = (turned.min(0) + turned.max(0)) / 2
    back = np.zeros(4)
    mujoco.mju_negQuat(back, np.array(quat) / np.linalg.norm(quat))
    pos = rotation.T @ (centre - ahead)
    way = (float(back[0]), float(back[1]), float(back[2]), float(back[3]))
    return dataclasses.replace(spec, pos=tuple(pos.tolist()), quat=way, target=None, on="")


def scene_of(vertices: np.ndarray, faces: np.ndarray) -> mujoco.MjModel:
    spec = mujoco.MjSpec()
    mesh = spec.add_mesh(name=_NAME, inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL)
    mesh.uservert, mesh.userface = np.asarray(vertices, float).flatten(), np.asarray(faces, int).flatten()
    body = spec.worldbody.add_body(name=_NAME)
    body.add_geom(name=_NAME, type=mujoco.mjtGeom.mjGEOM_MESH, meshname=_NAME, contype=0, conaffinity=0)
    return spec.compile()


def atlas(faces: int) -> np.ndarray:
    """Texture coordinates (faces, 3, 2) in 0..1 of a mesh that has none: each triangle has half of a cell of a grid."""
    side = int(np.ceil(np.sqrt((faces + 1) // 2)))
    number = np.arange(faces)
    cell = np.stack([number // 2 % side, number // 2 // side], 1)[:, None].astype(float)
    gap = 0.12  # of a cell, between its two triangles and to its neighbours
    lower = np.array([[gap / 2, gap / 2], [1 - 1.7 * gap, gap / 2], [gap / 2, 1 - 1.7 * gap]])
    upper = 1 - lower
    return np.asarray((cell + np.where((number % 2 == 0)[:, None, None], lower, upper)) / side)


def unproject(
    points: np.ndarray,
    uv: np.ndarray,
    view: View,
    photograph: np.ndarray,
    mask: np.ndarray,
    depth: np.ndarray,
    *,
    size: int = 256,
    fill: str = "nearest",
) -> Texture:
    """The texture of a mesh from one photograph.

    Args:
        points: (faces, 3, 3) corners of the triangles in the world [m], counter-clockwise from outside.
        uv: (faces, 3, 2) their texture coordinates in 0..1.
        view: the camera, at the photograph's size.
        photograph: (h, w, 3) uint8.
        mask: (h, w) bool: where the photograph shows the mesh; other pixels are not taken.
        depth: (h, w) of the mesh from the same view [m], 0 where it is not.
        size: of the texture [texels each way].
        fill: what unseen texels get: ``nearest`` the colour of the nearest seen point of the surface, ``mean`` the mean
            of the seen ones.

    Raises:
        DataError: no texel is seen.
    """
    face, weights = _texels(uv, size)
    used = face >= 0
    corners = points[face[used]]
    place = (corners * weights[used][..., None]).sum(1)
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-20)
    ray = place - view.pos
    far = np.linalg.norm(ray, axis=1)
    facing = -(normal * ray).sum(1) / far
    z = (place - view.pos) @ view.rotation[:, 2]
    at = view.project(place)
    h, w = mask.shape
    for _ in range(_EDGE):
        core = np.pad(mask, 1)
        mask = core[1:-1, 1:-1] & core[:-2, 1:-1] & core[2:, 1:-1] & core[1:-1, :-2] & core[1:-1, 2:]
    inside = (z > 0) & (at >= 0).all(1) & (at[:, 0] <= w - 1) & (at[:, 1] <= h - 1)
    at = np.where(inside[:, None], at, 0.0)
    x, y = np.rint(at).astype(int).T
    slack = 1.5 * z / view.K[0, 0] / np.maximum(facing, _GRAZING) + 0.002 * z
    seen = inside & (facing > _GRAZING) & mask[y, x] & (depth[y, x] > 0) & (z < depth[y, x] + slack)
    if not seen.any():
        raise DataError("no texel of the mesh is seen in the mask; check the pose, and that faces wind outwards")
    colours = np.zeros((len(place), 3))
    colours[seen] = _bilinear(photograph, at[seen])
    if fill == "mean":
        colours[~seen] = colours[seen].mean(0)
    else:
        colours[~seen] = colours[seen][_nearest(place[~seen], place[seen])]
    image = np.broadcast_to(colours[seen].mean(0), (size, size, 3)).copy()
    image[used] = colours
    shown = np.zeros_like(used)
    shown[used] = seen
    return Texture(np.rint(image).astype(np.uint8), shown, used)


def _texels(uv: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Face (size, size) under each texel, -1 for none, and the weights (size, size, 3) of its corners. Texels just
    outside of a triangle that no other has count to it."""
    face, weights = np.full((size, size), -1), np.zeros((size, size, 3))
    off = np.full((size, size), np.inf)
    pixel = np.stack([uv[..., 0] * size - 0.5, (1 - uv[..., 1]) * size - 0.5], -1)
    for number, (a, b, c) in enumerate(pixel):
        low = np.maximum(np.floor(pixel[number].min(0)).astype(int) - _MARGIN, 0)
        high = np.minimum(np.ceil(pixel[number].max(0)).astype(int) + _MARGIN + 1, size)
        area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
        if (high <= low).any() or abs(area) < 1e-9:
            continue
        x, y = np.meshgrid(np.arange(low[0], high[0]), np.arange(low[1], high[1]))
        u = ((b[0] - x) * (c[1] - y) - (b[1] - y) * (c[0] - x)) / area
        v = ((c[0] - x) * (a[1] - y) - (c[1] - y) * (a[0] - x)) / area
        w = np.stack([u, v, 1 - u - v], -1)
        clipped = np.clip(w, 0, None)
        clipped /= clipped.sum(-1, keepdims=True)
        nearest = clipped @ np.stack([a, b, c])
        out = np.hypot(nearest[..., 0] - x, nearest[..., 1] - y)
        part = (slice(low[1], high[1]), slice(low[0], high[0]))
        closer = (out < off[part]) & (out <= _MARGIN)
        for whole, mine in ((face, number), (weights, clipped), (off, out)):
            whole[part] = np.where(closer[..., None] if whole.ndim == 3 else closer, mine, whole[part])
    return face, weights


def _nearest(of: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Number of the nearest of ``among`` (m, 3) for each of ``of`` (k, 3); of many, some of them are compared."""
    some = np.arange(0, len(among), -(-len(among) // 1000))
    found = [((part[:, None] - among[some]) ** 2).sum(-1).argmin(1) for part in np.array_split(of, len(of) // 2000 + 1)]
    return np.asarray(some[np.concatenate(found)])


def _bilinear(picture: np.ndarray, at: np.ndarray) -> np.ndarray:
    """(k, 3) colours at pixel coordinates (k, 2) inside of the picture."""
    h, w = picture.shape[:2]
    low = np.minimum(np.floor(at).astype(int), (w - 2, h - 2))
    (x, y), (s, t) = low.T, (at - low).T[..., None]
    values = picture.astype(float)
    upper = values[y, x] * (1 - s) + values[y, x + 1] * s
    return np.asarray(upper * (1 - t) + (values[y + 1, x] * (1 - s) + values[y + 1, x + 1] * s) * t)
