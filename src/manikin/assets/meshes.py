"""Mesh files of any format, read with trimesh; convex pieces, made with CoACD and cached by content."""

from __future__ import annotations

import hashlib
import importlib
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manikin.assets.paths import cache_root
from manikin.errors import AssetError, ConfigError, SceneError
from manikin.moved import old_names

__all__ = ["CONVEX", "TriangleMesh", "convex_pieces", "package", "piece_files", "read_mesh", "read_obj", "write_obj"]

CONVEX = {"threshold": 0.05, "max_convex_hull": 16, "seed": 0}
"""Options of CoACD; part of the cache's key. ``threshold`` is the concavity that a piece may keep."""


def package(name: str, what: str) -> Any:
    """An optional package, imported.

    Raises:
        ConfigError: it is not installed; says what needs it and how to install it.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigError(f"{what} needs {name}: pip install 'manikin[meshes]'") from error


@dataclass(frozen=True, eq=False)
class TriangleMesh:
    """The triangles of a mesh file, in the file's own axes and units.

    Attributes:
        vertices: (n, 3) float64.
        faces: (m, 3) int64.
        texcoord: (n, 2) float64 per vertex; None where the file has none for some of its meshes.
        colour: red, green, blue and alpha, 0 to 255, of the largest mesh; grey where it has none.
    """

    vertices: np.ndarray
    faces: np.ndarray
    texcoord: np.ndarray | None
    colour: tuple[int, int, int, int]


def read_mesh(source: Path) -> TriangleMesh:
    """All meshes of a file as one.

    Raises:
        AssetError: there is no such file.
        SceneError: trimesh cannot read it, or it has no faces.
        ConfigError: trimesh is not installed, or a package that it needs for the format.
    """
    trimesh = package("trimesh", f"reading {source.suffix} meshes")
    if not source.is_file():
        raise AssetError(f"there is no file {source}")
    vertices: list[np.ndarray] = []
    faces: list[np.ndarray] = []
    texcoord: list[Any] = []
    colours: list[tuple[int, tuple[int, int, int, int]]] = []
    try:
        scene = trimesh.load_scene(source)
        for node in scene.graph.nodes_geometry:
            matrix, name = scene.graph[node]
            mesh = scene.geometry[name]
            if len(getattr(mesh, "faces", ())):
                start = sum(len(v) for v in vertices)
                vertices.append(np.asarray(mesh.vertices, float) @ matrix[:3, :3].T + matrix[:3, 3])
                turned = mesh.faces if np.linalg.det(matrix[:3, :3]) > 0 else mesh.faces[:, ::-1]  # a mirror
                faces.append(np.asarray(turned, np.int64) + start)
                texcoord.append(getattr(mesh.visual, "uv", None))
                colours.append((len(mesh.faces), _colour(mesh)))
    except ModuleNotFoundError as error:
        raise ConfigError(f"reading {source.name} needs {error.name}: pip install {error.name}") from error
    except Exception as error:  # the loaders raise whatever they meet
        raise SceneError(f"trimesh cannot read {source}: {error!r}") from error
    if not faces:
        raise SceneError(f"{source} has no faces")
    uv = [t for t, v in zip(texcoord, vertices, strict=True) if t is not None and len(t) == len(v)]
    return TriangleMesh(
        vertices=np.concatenate(vertices),
        faces=np.concatenate(faces),
        texcoord=np.concatenate(uv).astype(float) if len(uv) == len(vertices) else None,
        colour=max(colours)[1],
    )


def _colour(mesh: Any) -> tuple[int, int, int, int]:
    colour = getattr(mesh.visual, "main_color", None)
    if colour is None and getattr(mesh.visual, "material", None) is not None:
        colour = getattr(mesh.visual.material, "main_color", None)
    r, g, b, a = (180, 180, 180, 255) if colour is None else (int(c) for c in colour)
    return r, g, b, a


def write_obj(file: Path, vertices: Any, faces: Any, texcoord: Any = None) -> None:
    """Write an OBJ: vertices (n, 3), faces (m, 3), and texture coordinates (n, 2) where there are any."""
    lines = [f"v {x:.7g} {y:.7g} {z:.7g}" for x, y, z in np.asarray(vertices, float)]
    if texcoord is not None and len(texcoord):
        lines += [f"vt {u:.6g} {v:.6g}" for u, v in np.asarray(texcoord, float)]
        lines += [f"f {a}/{a} {b}/{b} {c}/{c}" for a, b, c in np.asarray(faces, int) + 1]
    else:
        lines += [f"f {a} {b} {c}" for a, b, c in np.asarray(faces, int) + 1]
    file.write_text("\n".join(lines) + "\n")


def read_obj(file: Path) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (n, 3) and faces (m, 3) of an OBJ that :func:`write_obj` wrote."""
    rows = [line.split() for line in file.read_text().splitlines()]
    vertices = np.array([row[1:] for row in rows if row[0] == "v"], float)
    return vertices, np.array([[v.split("/")[0] for v in row[1:]] for row in rows if row[0] == "f"], int) - 1


def piece_files(source: Path, key: str) -> list[Path]:
    """Files of the convex pieces of a mesh file whose content is ``key``, in the file's axes and units."""
    target = _pieces_at(key)
    if not target.is_dir():
        shape = read_mesh(source)
        _decompose(shape.vertices, shape.faces, target, key)
    return sorted(target.glob("*.obj"))


def convex_pieces(vertices: np.ndarray, faces: np.ndarray) -> list[np.ndarray]:
    """Convex pieces of a mesh, points (k, 3) of each. Cached by the mesh and the options.

    Raises:
        ConfigError: CoACD is not installed.
    """
    digest = hashlib.sha256(np.ascontiguousarray(vertices, float).tobytes())
    digest.update(np.ascontiguousarray(faces, np.int64).tobytes())
    key = digest.hexdigest()[:32]
    target = _pieces_at(key)
    if not target.is_dir():
        _decompose(vertices, faces, target, key)
    return [read_obj(file)[0] for file in sorted(target.glob("*.obj"))]


def _pieces_at(key: str) -> Path:
    return cache_root() / "meshes" / f"{key}-convex-{'-'.join(f'{v}' for v in CONVEX.values())}"


def _decompose(vertices: Any, faces: Any, target: Path, key: str) -> None:
    coacd = package("coacd", "convex decomposition")
    coacd.set_log_level("error")
    pieces = coacd.run_coacd(coacd.Mesh(np.asarray(vertices, float), np.asarray(faces)), **CONVEX)
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(dir=target.parent))
    for i, (points, triangles) in enumerate(pieces):
        write_obj(fresh / f"{key}-{i:02d}.obj", points, triangles)
    try:
        fresh.rename(target)
    except OSError:  # another process was faster
        shutil.rmtree(fresh)


__getattr__ = old_names(__name__)
