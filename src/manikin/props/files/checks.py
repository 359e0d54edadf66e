"""Checks of an object made from a mesh, with a message for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from manikin.assets.decimate import Decimated
from manikin.assets.meshes import package
from manikin.errors import SceneError
from manikin.moved import old_names
from manikin.props.files.measure import MassProperties, thickness
from manikin.props.files.rest import Drop

__all__ = ["ObjectCheck", "cleaned", "is_solid"]

_PLAUSIBLE = (0.01, 1.0)  # [m] longest side of a thing that a gripper handles
_WEIGHT = (0.001, 10.0)  # [kg]
_THIN = 0.002  # [m] about what a finger moves in one physics step of 10 ms at 0.2 m/s
_THIN_SHARE = 0.1  # of the surface
_FILLED = 1.15  # of the mesh's volume; pieces with more fill what is hollow
_ROOM = 0.004  # [m] that a gripper needs beside the object, both sides together


@dataclass(frozen=True)
class ObjectCheck:
    """One line of the report: ``level`` is ok, warning or error."""

    name: str
    level: Literal["ok", "warning", "error"]
    what: str


def is_solid(mesh: Any) -> bool:
    """Whether a mesh encloses a volume, its faces turned outward."""
    return bool(mesh.is_watertight and mesh.is_winding_consistent and mesh.volume > 0)


def cleaned(vertices: np.ndarray, faces: np.ndarray) -> tuple[Any, list[ObjectCheck]]:
    """The welded mesh in its own right, repaired where that is simple, and what was found.

    Args:
        vertices: (n, 3) [m].
        faces: (m, 3).

    Raises:
        SceneError: a vertex is not finite, or all points lie in one plane.
    """
    trimesh = package("trimesh", "making an object")
    if not np.isfinite(vertices).all():
        raise SceneError("the mesh has vertices that are not finite")
    if np.linalg.matrix_rank(vertices - vertices.mean(0), tol=1e-6 * float(np.ptp(vertices))) < 3:
        raise SceneError("all points of the mesh lie in one plane; an object needs a volume")
    mesh = trimesh.Trimesh(vertices, faces, process=False)
    mesh.merge_vertices(merge_tex=True, merge_norm=True)  # seams of textures and flat shading are no holes
    mesh.update_faces(mesh.nondegenerate_faces() & mesh.unique_faces())
    mesh.remove_unreferenced_vertices()
    out = []
    open_edges = _open_edges(mesh)
    if mesh.is_watertight:
        out.append(ObjectCheck("watertight", "ok", "every edge has two faces"))
    else:
        trimesh.repair.fill_holes(mesh)
        now = f"filled: {open_edges} open edges" if mesh.is_watertight else f"{_open_edges(mesh)} open edges stay"
        level: Literal["ok", "warning"] = "ok" if mesh.is_watertight else "warning"
        rest = "" if mesh.is_watertight else "; volume and inertia are those of the collision shapes"
        out.append(ObjectCheck("watertight", level, now + rest))
    turned = not mesh.is_winding_consistent or (mesh.is_watertight and mesh.volume < 0)
    if turned:
        trimesh.repair.fix_normals(mesh, multibody=True)
    good = mesh.is_winding_consistent
    word = "faces turned outward" if good and turned else "faces point outward" if good else "faces point both ways"
    out.append(ObjectCheck("winding", "ok" if good else "warning", word))
    return mesh, out


def _open_edges(mesh: Any) -> int:
    _, count = np.unique(mesh.edges_sorted, axis=0, return_counts=True)
    return int((count == 1).sum())


def scale_check(points: np.ndarray, unit: str, reason: str) -> ObjectCheck:
    """Is it as large as things are that a gripper handles?"""
    size = np.ptp(points, axis=0)
    low, high = _PLAUSIBLE
    fine = low <= float(size.max()) <= high
    words = f"{' x '.join(f'{100 * s:.3g}' for s in size)} cm, units {unit} ({reason})"
    return ObjectCheck(
        "size", "ok" if fine else "warning", words if fine else f"{words}; other units? --units mm, cm or m"
    )


def mass_check(weight: MassProperties, *, given: bool, closed: bool) -> ObjectCheck:
    """Is its mass plausible, and what is it from?"""
    low, high = _WEIGHT
    of = "the mesh" if closed else "the collision shapes"
    how = "as told" if given else f"{weight.mass / weight.volume:.4g} kg/m^3 x {1e6 * weight.volume:.4g} cm^3 of {of}"
    fine = low <= weight.mass <= high
    more = "" if fine else "; give --mass or --density"
    return ObjectCheck("mass", "ok" if fine else "warning", f"{weight.mass:.4g} kg, {how}{more}")


def thin_check(mesh: Any) -> ObjectCheck:
    """Are parts so thin that contacts may miss them?"""
    found = thickness(np.asarray(mesh.vertices), np.asarray(mesh.faces))
    if not len(found):
        return ObjectCheck("thin parts", "warning", "no ray through the surface meets another side of it")
    share, least = float((found < _THIN).mean()), float(np.percentile(found, 5))
    words = f"{share:.0%} of the surface is thinner than {1000 * _THIN:g} mm (5 % below {1000 * least:.2g} mm)"
    bad = share > _THIN_SHARE
    return ObjectCheck("thin parts", "warning" if bad else "ok", words + "; contacts may pass through it" * bad)


def pieces_check(mesh: Any, hulls: list[Any], how: str) -> ObjectCheck:
    """Do the collision shapes fill what is hollow?"""
    filled = sum(float(h.volume) for h in hulls)
    count = f"{len(hulls)} convex piece{'' if len(hulls) == 1 else 's'} ({how})"
    if not is_solid(mesh):
        return ObjectCheck("collision", "ok", count)
    ratio = filled / float(mesh.volume)
    words = f"{count}, {ratio:.0%} of the mesh's volume"
    bad = ratio > _FILLED
    return ObjectCheck("collision", "warning" if bad else "ok", words + "; they fill what is hollow" * bad)


def faces_check(before: int, shown: Decimated) -> ObjectCheck:
    """How many faces are drawn?"""
    if len(shown.faces) >= before:
        return ObjectCheck("faces", "ok", f"{before:,} faces, as in the file")
    words = f"{len(shown.faces):,} of {before:,} faces are drawn, no more than {1000 * shown.max_error:.2g} mm off"
    return ObjectCheck("faces", "ok", words)


def rest_check(drops: list[Drop]) -> ObjectCheck:
    """Does it rest without trembling?"""
    first = drops[0]
    words = f"{1000 * first.speed:.2g} mm/s and {first.spin:.2g} rad/s in the third second after it was put down"
    if first.rests:
        return ObjectCheck("rest", "ok", f"{len(drops)} pose{'' if len(drops) == 1 else 's'}; {words}")
    why = f"it fell over by {first.tilt:.0f} degrees" if first.still else "it does not come to rest"
    return ObjectCheck("rest", "error", f"{why}: {words}")


def grasp_check(rests: list[dict[str, Any]], opening: tuple[str, float] | None) -> list[ObjectCheck]:
    """Does the gripper go round it from above?"""
    if opening is None:
        return []
    name, width = opening
    fits = [k for k, r in enumerate(rests) if r["width"] <= width - _ROOM]
    how = f"{1000 * rests[0]['width']:.0f} mm wide as it stands; {name} opens {1000 * width:.0f} mm"
    if 0 in fits:
        return [ObjectCheck("grasp", "ok", how)]
    none = f"; with {1000 * _ROOM:.0f} mm of room that is too wide in every rest pose"
    other = f"; it fits in rest pose {fits[0]}: --rest {fits[0]}" if fits else none
    return [ObjectCheck("grasp", "warning", how + other)]


__getattr__ = old_names(__name__)
