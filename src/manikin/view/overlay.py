"""The page that lays a scene on a photograph: self-contained, drawn by the browser, the camera moved by sliders."""

from __future__ import annotations

import base64
import json
import math
from importlib import resources
from pathlib import Path

import mujoco
import numpy as np

from manikin.render.backends.meshes import lighter
from manikin.render.files.video import encode_png
from manikin.render.view import mount_of
from manikin.spec.camera import CameraSpec

__all__ = ["overlay_page", "triangles"]

_G = mujoco.mjtGeom
_SEEN_GROUPS = 3
_AROUND, _UP = 24, 12  # facets of what is round
_LIDS = np.array([0, 1, 1, 0])[:, None, None]  # of the rings of what has a flat bottom and top
_LIGHT = np.array([0.35, 0.25, 0.9])


def overlay_page(
    path: Path,
    model: mujoco.MjModel,
    data: mujoco.MjData,
    camera: CameraSpec,
    photograph: np.ndarray,
    *,
    task: str,
) -> Path:
    """Write the page.

    Args:
        path: of the HTML file.
        model: the scene.
        data: its state.
        camera: where the page begins; seen at the photograph's size.
        photograph: (h, w, 3) uint8.
        task: what the page calls the scene.

    Raises:
        UnknownNameError: the camera is fixed to what is not there.
    """
    height, width = photograph.shape[:2]
    camera = camera.resized(width, height)
    points, colours = triangles(model, data)
    frame = np.eye(4)[:3]
    if camera.on:
        body = mount_of(model, camera)
        frame = np.concatenate([data.xmat[body].reshape(3, 3), data.xpos[body][:, None]], 1)
    K = camera.K()
    given = {
        "task": task,
        "camera": camera.name,
        "on": camera.on,
        "width": width,
        "height": height,
        "pos": [float(v) for v in camera.pos],
        "rotation": camera.rotation.tolist(),
        "frame": frame.tolist(),
        "K": [K[0, 0], K[1, 1], K[0, 2], K[1, 2]],
        "fovy": 2 * math.atan(height / 2 / K[1, 1]),
        "intrinsics": camera.intrinsics is not None,
        "corners": 3 * len(points),
        "points": _text(points.astype("<f4").tobytes()),
        "colours": _text(np.repeat(colours, 3, 0).tobytes()),
        "photograph": "data:image/png;base64," + _text(encode_png(photograph)),
    }
    page = (resources.files("manikin.view") / "pages" / "align.html").read_text(encoding="utf-8")
    # "</" could end the script that holds the data
    path.write_text(page.replace("@DATA@", json.dumps(given).replace("</", "<\\/")), encoding="utf-8")
    return path


def triangles(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[np.ndarray, np.ndarray]:
    """What is seen of a scene as triangles: corners (k, 3, 3) in the world [m], and shaded colours (k, 3) uint8.

    Planes without end and what is transparent are left out. Round shapes have facets.
    """
    drawn, _ = lighter(model)
    points, colours = [np.zeros((0, 3, 3))], [np.zeros((0, 3))]
    for geom in range(model.ngeom):
        rgba = model.geom_rgba[geom] if model.geom_matid[geom] < 0 else _material_colour(model, geom)
        if model.geom_group[geom] >= _SEEN_GROUPS or rgba[3] < 0.05:
            continue
        local = _of_geom(drawn, geom)
        if local is None:
            continue
        rotation = data.geom_xmat[geom].reshape(3, 3)
        world = local @ rotation.T + data.geom_xpos[geom]
        normal = np.cross(world[:, 1] - world[:, 0], world[:, 2] - world[:, 0])
        length = np.linalg.norm(normal, axis=1)
        world, normal = world[length > 1e-12], normal[length > 1e-12] / length[length > 1e-12, None]
        lit = 0.45 + 0.55 * np.abs(normal @ (_LIGHT / np.linalg.norm(_LIGHT)))
        points.append(world)
        colours.append(lit[:, None] * rgba[:3])
    return np.concatenate(points), (np.clip(np.concatenate(colours), 0, 1) * 255).astype(np.uint8)


def _material_colour(model: mujoco.MjModel, geom: int) -> np.ndarray:
    """A geom's colour where it has one of its own, else its material's."""
    own = model.geom_rgba[geom]
    return np.asarray(
        own if (own != np.array([0.5, 0.5, 0.5, 1.0], np.float32)).any() else model.mat_rgba[model.geom_matid[geom]]
    )


def _of_geom(model: mujoco.MjModel, geom: int) -> np.ndarray | None:
    """Triangles (k, 3, 3) in the geom's frame; None for what has no end or is not drawn so."""
    kind, size = int(model.geom_type[geom]), model.geom_size[geom]
    if kind == _G.mjGEOM_MESH:
        mesh = int(model.geom_dataid[geom])
        start, faces = model.mesh_vertadr[mesh], model.mesh_faceadr[mesh]
        vertices = model.mesh_vert[start : start + model.mesh_vertnum[mesh]]
        return np.asarray(vertices[model.mesh_face[faces : faces + model.mesh_facenum[mesh]]], float)
    if kind == _G.mjGEOM_PLANE:
        if min(size[:2]) <= 0:
            return None
        return _grid(np.array([[[x, y, 0] for x in (-size[0], size[0])] for y in (-size[1], size[1])]))
    if kind == _G.mjGEOM_BOX:
        corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]]) * size[:2]
        return _profile_of(
            corners[None].repeat(4, 0) * np.array([0, 1, 1, 0])[:, None, None], size[2] * np.array([-1, -1, 1, 1])
        )
    angle = np.linspace(0, 2 * np.pi, _AROUND + 1)
    round_ = np.stack([np.cos(angle), np.sin(angle)], 1)
    if kind in (_G.mjGEOM_SPHERE, _G.mjGEOM_ELLIPSOID):
        half = size if kind == _G.mjGEOM_ELLIPSOID else np.full(3, size[0])
        up = np.linspace(-np.pi / 2, np.pi / 2, _UP + 1)
        return _profile_of(np.cos(up)[:, None, None] * round_ * half[:2], np.sin(up) * half[2])
    if kind == _G.mjGEOM_CYLINDER:
        return _profile_of(_LIDS * round_ * size[0], size[1] * np.array([-1, -1, 1, 1]))
    if kind == _G.mjGEOM_CAPSULE:
        up = np.linspace(-np.pi / 2, np.pi / 2, _UP + 2)
        return _profile_of(np.cos(up)[:, None, None] * round_ * size[0], np.sin(up) * size[0] + np.sign(up) * size[1])
    return None


def _profile_of(rings: np.ndarray, heights: np.ndarray) -> np.ndarray:
    """Triangles between rings (k, n, 2) at heights (k,)."""
    z = np.broadcast_to(heights[:, None, None], (*rings.shape[:2], 1))
    return _grid(np.concatenate([rings, z], 2))


def _grid(points: np.ndarray) -> np.ndarray:
    """Triangles (k, 3, 3) of a grid of points (rows, columns, 3)."""
    a, b, c, d = points[:-1, :-1], points[:-1, 1:], points[1:, 1:], points[1:, :-1]
    return np.concatenate([np.stack([a, b, c], 2), np.stack([a, c, d], 2)]).reshape(-1, 3, 3)


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()
