"""A scanned surface as a map of heights: what a look from above sees of a mesh."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np

from manikin.errors import DataError

__all__ = ["scan_heights"]

_FORMATS = (".obj", ".stl", ".msh")
_ASIDE = (3.1e-5, 1.7e-5)  # of the side; a ray that meets an edge between two triangles may pass between them


def scan_heights(file: str | Path, side: float, *, cells: int, scale: float = 1.0) -> np.ndarray:
    """Heights (cells, cells) [m] of a mesh above its lowest point, 0 where there is none; rows along y.

    The mesh has z up. Its middle is that of a square with ``side`` [m], from whose edges the cells begin.

    Args:
        file: OBJ, STL or MSH.
        side: of the square [m].
        cells: along each side, at least 2.
        scale: metres of one unit of the file.

    Raises:
        DataError: the file is not there, is no mesh that can be read, or none of it is within the square.
    """
    path = Path(file)
    if path.suffix.lower() not in _FORMATS:
        raise DataError(f"{file}: a scan is one of {', '.join(_FORMATS)}")
    if not path.is_file():
        raise DataError(f"{file}: there is no such file")
    spec = mujoco.MjSpec()
    spec.add_mesh(name="scan", file=str(path.resolve()), scale=[scale] * 3)
    spec.worldbody.add_geom(name="scan", type=mujoco.mjtGeom.mjGEOM_MESH, meshname="scan")
    try:
        model = spec.compile()
    except (ValueError, mujoco.FatalError) as error:
        raise DataError(f"{file}: cannot be read as a mesh ({error})") from error
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    points = data.geom("scan").xpos + model.mesh_vert @ data.geom("scan").xmat.reshape(3, 3).T
    low, high = points.min(0), points.max(0)
    middle, places = (low + high) / 2, np.linspace(-side / 2, side / 2, cells)
    heights, down, hit = np.zeros((cells, cells)), np.array([0.0, 0.0, -1.0]), np.zeros(1, np.int32)
    over = float(high[2]) + 1.0
    for row, y in enumerate(places):
        for column, x in enumerate(places):
            start = np.array([middle[0] + x + side * _ASIDE[0], middle[1] + y + side * _ASIDE[1], over])
            distance = mujoco.mj_ray(model, data, start, down, None, 1, -1, hit, None)
            if distance >= 0:
                heights[row, column] = over - distance - low[2]
    if not heights.any():
        raise DataError(f"{file}: nothing of it lies within {side:g} m; its size is {(high - low).round(3).tolist()} m")
    return heights
