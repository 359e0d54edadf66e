"""Recast's navigation meshes, as Habitat writes them, and vertex files of navigable positions."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from manikin.errors import AssetError, DataError

__all__ = ["NavigationMesh", "read_navigable_positions", "read_navmesh"]

# Layouts of Detour: dtMeshHeader version 7 (25 words) and dtPoly (32 bytes).
_TILE, _HEADER, _POLY = b"VAND", "<4s4iI9i3f3f3ff", "<I6H6HHBB"
_TYPE_GROUND = 0


@dataclass(frozen=True)
class NavigationMesh:
    """Where an agent's middle may be.

    Attributes:
        polygons: (k, 3) corners of each convex polygon [m], z up.
        radius: of the agent that it was made for [m].
    """

    polygons: tuple[np.ndarray, ...]
    radius: float


def read_navmesh(path: Path) -> NavigationMesh:
    """Read a ``.navmesh`` file; its y axis, which points up, becomes z.

    Raises:
        AssetError: there is no such file.
        DataError: it is no navigation mesh of Detour's version 7, or it is cut off.
    """
    if not path.is_file():
        raise AssetError(f"there is no navigation mesh {path}")
    data = path.read_bytes()
    if data[:4] != b"TESM":
        raise DataError(f"{path} is no navigation mesh: it begins with {data[:4]!r}, not with b'TESM'")
    polygons: list[np.ndarray] = []
    radius, at = 0.0, data.find(_TILE)
    try:
        while at >= 0:
            header = struct.unpack_from(_HEADER, data, at)
            if header[1] != 7:
                raise DataError(f"{path} has tiles of Detour's version {header[1]}; 7 is known")
            poly_count, vert_count, radius = header[6], header[7], header[16]
            at += struct.calcsize(_HEADER)
            points = np.frombuffer(data, "<f4", 3 * vert_count, at).reshape(-1, 3).astype(float)
            points = np.stack([points[:, 0], -points[:, 2], points[:, 1]], -1)
            at += 12 * vert_count
            for _ in range(poly_count):
                poly = struct.unpack_from(_POLY, data, at)
                at += struct.calcsize(_POLY)
                if poly[15] >> 6 == _TYPE_GROUND:
                    polygons.append(points[list(poly[1 : 1 + poly[14]])])
            at = data.find(_TILE, at)
    except (struct.error, ValueError, IndexError) as error:
        raise DataError(f"{path} is cut off or damaged: {error}") from error
    if not polygons:
        raise DataError(f"{path} has no polygons")
    return NavigationMesh(tuple(polygons), radius)


def read_navigable_positions(path: Path) -> np.ndarray:
    """(n, 2) x and y [m] of a ``.fetch.navigable_positions.obj`` file: the vertices of a flat mesh, z up.

    Raises:
        AssetError: there is no such file.
        DataError: it has no vertices, or one that is not made of numbers.
    """
    if not path.is_file():
        raise AssetError(f"there is no file of navigable positions {path}")
    try:
        lines = (line.split() for line in path.read_text().splitlines())
        points = [[float(v) for v in words[1:3]] for words in lines if words and words[0] == "v"]
        found = np.array(points).reshape(-1, 2)
    except ValueError as error:
        raise DataError(f"{path} has a vertex that is not made of two numbers: {error}") from error
    if not len(found):
        raise DataError(f"{path} has no vertices (lines that begin with v)")
    return found
