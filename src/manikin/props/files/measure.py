"""Measures a mesh before it is simulated: units, mass properties, thin parts, widths."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from manikin.errors import SceneError, UnknownNameError

__all__ = ["UNITS", "MassProperties", "guess_units", "mass_properties", "narrowest", "thickness", "up_axis"]

UNITS = {"m": 1.0, "cm": 0.01, "mm": 0.001}
"""Metres per unit."""

_LARGEST = {"m": 1.5, "cm": 30.0}  # [unit] a longer object is measured in the next smaller unit
_SAMPLES = 400  # rays of `thickness`


def guess_units(path: Path, extents: np.ndarray) -> tuple[str, str]:
    """The unit of a mesh file and the reason in words.

    A DAE names its unit and glTF is defined in metres. Otherwise the longest side decides, as for an object that a
    gripper handles: metres up to 1.5, centimetres up to 30, else millimetres.

    Args:
        path: the file.
        extents: (3,) its size in its own units.

    Raises:
        SceneError: the file names a unit that is none of :data:`UNITS`.
    """
    kind, longest = path.suffix.lower(), float(extents.max())
    if kind == ".dae":
        found = re.search(rb"<unit\b[^>]*\bmeter\s*=\s*[\"']([\d.eE+-]+)", path.read_bytes()[:20_000])
        metres = float(found[1]) if found else 1.0
        for unit, size in UNITS.items():
            if abs(metres / size - 1) < 1e-3:
                return unit, "the file says so"
        raise SceneError(f"{path.name} has a unit of {metres:g} m; say which of {', '.join(UNITS)} is meant: units=")
    if kind in (".glb", ".gltf") and longest <= 5.0:
        return "m", "glTF is in metres"
    unit = next((u for u, most in _LARGEST.items() if longest <= most), "mm")
    return unit, f"guessed: its longest side of {longest:.4g} is then {longest * UNITS[unit] * 100:.3g} cm"


def up_axis(path: Path) -> str:
    """``y`` for glTF and for a DAE that says Y_UP, else ``z``."""
    kind = path.suffix.lower()
    if kind == ".dae":
        return "y" if b"Y_UP" in path.read_bytes()[:20_000] else "z"
    return "y" if kind in (".glb", ".gltf") else "z"


@dataclass(frozen=True, eq=False)
class MassProperties:
    """Of a solid of uniform density: ``mass`` [kg], ``com`` (3,) [m], ``inertia`` (3, 3) [kg m^2] about ``com`` along
    the mesh's axes, ``volume`` [m^3]."""

    mass: float
    com: np.ndarray
    inertia: np.ndarray
    volume: float

    def turned(self, rotation: np.ndarray, shift: np.ndarray) -> MassProperties:
        """The same of the solid moved: points p become ``rotation @ p + shift``."""
        com = rotation @ self.com + shift
        return MassProperties(self.mass, com, rotation @ self.inertia @ rotation.T, self.volume)


def mass_properties(solids: list[Any], *, mass: float | None, density: float) -> MassProperties:
    """Mass properties of closed meshes together (``trimesh.Trimesh`` each), which should not overlap.

    Args:
        solids: one or more closed meshes, in metres.
        mass: [kg]; None for ``density`` times the volume.
        density: [kg/m^3].

    Raises:
        SceneError: they enclose no volume.
    """
    volumes = np.array([float(s.volume) for s in solids])
    volume = float(volumes.sum())
    if not volume > 1e-12:
        raise SceneError(f"the mesh encloses no volume ({volume:.2g} m^3)")
    rho = density if mass is None else mass / volume
    com = (volumes[:, None] * np.array([s.center_mass for s in solids])).sum(0) / volume
    inertia = np.zeros((3, 3))
    for solid, each in zip(solids, volumes, strict=True):
        own = np.asarray(solid.moment_inertia, float) / float(solid.density) * rho
        away = np.asarray(solid.center_mass) - com
        inertia += own + rho * each * (away @ away * np.eye(3) - np.outer(away, away))
    return MassProperties(rho * volume, com, inertia, volume)


def thickness(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Thickness (k,) [m] at up to 400 faces spread over the surface: how far a ray inward from a face's middle goes
    before it meets the surface again. Faces whose ray meets nothing are left out."""
    corners = vertices[faces]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    length = np.linalg.norm(normal, axis=1)
    area = length / length.sum()
    # equal steps along the accumulated area: large faces count as often as their area says
    at = np.searchsorted(np.cumsum(area), (np.arange(_SAMPLES) + 0.5) / _SAMPLES)
    chosen = np.unique(np.minimum(at, len(faces) - 1))
    spec = mujoco.MjSpec()
    mesh = spec.add_mesh(name="mesh")
    mesh.uservert, mesh.userface = vertices.ravel().tolist(), faces.ravel().astype(int).tolist()
    mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
    body = spec.worldbody.add_body()
    body.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="mesh")
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    # the compiler centres a mesh, and places the geom so that the vertices stay where they were
    skip = 1e-5 * float(np.ptp(vertices, axis=0).max())
    out, hit = [], np.zeros(1, np.int32)
    for k in chosen:
        inward = -normal[k] / length[k]
        start = corners[k].mean(0) + skip * inward
        distance = mujoco.mj_ray(model, data, start, inward, None, 1, -1, hit)
        if distance >= 0:
            out.append(distance + skip)
    return np.array(out)


def narrowest(points: np.ndarray) -> tuple[float, float]:
    """Smallest width [m] seen from above of points (n, 3), and its direction [rad] about z from x."""
    angles = np.deg2rad(np.arange(0, 180, 2.0))
    across = points[:, :2] @ np.stack([np.cos(angles), np.sin(angles)])
    width = np.ptp(across, axis=0)
    k = int(width.argmin())
    return float(width[k]), float(angles[k])


def checked_unit(unit: str) -> float:
    """Metres per unit. Raises :class:`UnknownNameError`."""
    if unit not in UNITS:
        raise UnknownNameError("unit", unit, UNITS)
    return UNITS[unit]
