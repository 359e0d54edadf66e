"""Pegs and holes of NIST's task board as IsaacGymEnvs' meshes have them: ``MANIKIN_DATA/nist_factory/mesh``, metres,
BSD-3-Clause. Their sizes are those of :mod:`manikin.props.insertion.nist`. A round peg's ends also have a chamfer of
0.5 mm, a rectangular peg's long edges one of 0.25 to 0.6 mm.

A peg collides as its convex hull, which it fills. A hole's block is cut into convex pieces around the opening. Where
the opening is round, its wall of 144 sides becomes one of :data:`SIDES` that touch it from outside: nowhere narrower,
and at the corners wider by 0.4 % of the radius, 8 to 32 micrometres.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from manikin.assets.paths import data_root
from manikin.errors import AssetError
from manikin.spec.prop import Mesh, Shape

__all__ = ["SIDES", "hole_pieces", "peg_mesh"]

SIDES = 36  # of a round hole


def peg_mesh(name: str, fit: str) -> Shape:
    """The mesh of a peg by its name, such as ``round_8mm``, in a ``tight`` or a ``loose`` fit. Raises
    :class:`AssetError` where it is missing."""
    path = _file("factory_{0}_peg_{1}_" + fit + ("" if name.startswith("round") else "_subdiv_3x"), name)
    return _hull(f"nist/{name}/{fit}", _points(path))


def hole_pieces(name: str) -> tuple[Shape, ...]:
    """The block with a hole, by its peg's name, as convex pieces: one for each side of the opening.

    Raises:
        AssetError: the file is missing, or holds no block that a hole goes straight through.
    """
    path = _file("factory_{0}_hole_{1}_subdiv_3x", name)
    points = _points(path)
    if not len(points):
        raise AssetError(f"{path} has no points")
    outer, height = float(np.abs(points[:, :2]).max()), float(points[:, 2].max())
    low = points[np.abs(points[:, 2]) < 1e-6, :2]
    rim = low[np.abs(low).max(1) < outer - 1e-6]
    if len(rim) < 4:
        raise AssetError(f"{path} has no opening in its lower face, which lies at z = 0")
    sides = SIDES if name.startswith("round") else 4
    turn = 2 * math.pi * np.arange(sides) / sides
    normals = np.stack([np.cos(turn), np.sin(turn)], 1)
    corners = _corners(normals, (rim @ normals.T).max(0))
    pieces = []
    for k in range(sides):
        base = _sector(corners[k - 1], corners[k], outer)
        both = np.concatenate([np.pad(base, ((0, 0), (0, 1)), constant_values=z) for z in (0.0, height)])
        pieces.append(_hull(f"nist/{name}/piece{k}", both))
    return tuple(pieces)


def _corners(normals: np.ndarray, far: np.ndarray) -> np.ndarray:
    """(k, 2) where each side of a polygon meets the next: sides are ``far`` (k,) from the middle along ``normals``."""
    after, beyond = np.roll(normals, -1, 0), np.roll(far, -1)
    return np.linalg.solve(np.stack([normals, after], 1), np.stack([far, beyond], 1)[..., None])[..., 0]


def _sector(first: np.ndarray, last: np.ndarray, outer: float) -> np.ndarray:
    """(k, 2) corners of what lies between a side of the opening, ``first`` to ``last``, and the block's edge."""
    ends = [point * outer / np.abs(point).max() for point in (first, last)]
    between = [
        corner
        for corner in outer * np.array([(1, 1), (-1, 1), (-1, -1), (1, -1)])
        if first[0] * corner[1] > first[1] * corner[0] and corner[0] * last[1] > corner[1] * last[0]
    ]
    return np.stack([first, last, *ends, *between])


def _hull(name: str, points: np.ndarray) -> Shape:
    return Shape(type="mesh", mesh=Mesh(name=name, points=tuple(points.round(9).ravel().tolist())))


def _file(pattern: str, name: str) -> Path:
    root, word = data_root(), pattern.format(*name.split("_"))
    path = (root or Path("MANIKIN_DATA")) / "nist_factory" / "mesh" / f"{word}.obj"
    if root is None or not path.is_file():
        raise AssetError(
            f"the mesh of NIST's {name} is missing: there is no {path}. Set MANIKIN_DATA to the folder that has "
            "nist_factory; meshes=False uses primitives of the same sizes instead"
        )
    return path


def _points(path: Path) -> np.ndarray:
    """(n, 3) [m] of an OBJ file, each once. MuJoCo would draw the first of its groups of faces alone."""
    try:
        rows = [line.split()[1:4] for line in path.read_text().splitlines() if line.startswith("v ")]
        return np.unique(np.array(rows, float).reshape(-1, 3).round(9), axis=0)
    except (OSError, ValueError) as error:
        raise AssetError(f"{path} is not a mesh that can be read: {error}") from None
