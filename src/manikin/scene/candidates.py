"""Different objects in the same part of different rows: one layout with slots for every candidate, a table of what each
candidate puts into them.

Every candidate is compiled alone; what the compiler makes of it (mass, inertia, places, bounds) is a row of the table.
The scene holds as many geoms of each type as the greediest candidate needs. Slots that a candidate leaves empty are
switched off by their margin, since the type of a geom and what it collides with are the same in all rows on a GPU.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from manikin.errors import SceneError, UnknownNameError
from manikin.scene.extent import box_around
from manikin.spec.prop import Mesh, Prop, Shape

__all__ = ["HIDDEN", "TYPES", "Candidates", "add_geom"]

_G = mujoco.mjtGeom
TYPES = {
    "box": _G.mjGEOM_BOX,
    "sphere": _G.mjGEOM_SPHERE,
    "capsule": _G.mjGEOM_CAPSULE,
    "cylinder": _G.mjGEOM_CYLINDER,
    "ellipsoid": _G.mjGEOM_ELLIPSOID,
    "mesh": _G.mjGEOM_MESH,
}
_OFF_MARGIN = -1e3  # margins of a pair are added up: such a geom meets nothing
_OFF_SIZE = 1e-3  # [m] of a geom that is switched off; a bounding radius of 0 would mean a plane
_SEEN, HIDDEN = 0, 3  # groups
_UNSET = (0.5, 0.5, 0.5, 1.0)  # a geom of this colour takes its material's
_GEOM = ("size", "pos", "quat", "aabb", "rbound", "dataid", "matid", "rgba", "friction", "margin")
_BODY = ("mass", "inertia", "ipos", "iquat", "gravcomp")
# of the geom that a slot is compiled with, so that no mass matrix is kept in the simple form of a centred body
_ASKEW = {"ipos": (0.001, 0.002, 0.003), "iquat": (0.8, 0.6, 0.0, 0.0)}


@dataclass(frozen=True)
class _Slot:
    """A geom of the layout."""

    type: str
    seen: bool
    collides: bool
    number: int


class Candidates:
    """The candidates of one part.

    Args:
        name: of the part.
        props: candidates, at least one.

    Attributes:
        extents: (K, 3) half the size [m] of the box around what collides of each, along the part's axes.
        centres: (K, 3) its middle [m] in the part's frame.
        masses: (K,) [kg].
    """

    def __init__(self, name: str, props: Sequence[Prop]) -> None:
        if not props:
            raise SceneError(f"{name}: choice must name at least one object")
        self.name, self.props = name, tuple(props)
        slots: dict[_Slot, Shape] = {}
        self._filled: list[dict[_Slot, Shape]] = []
        for prop in self.props:
            filled = _slots(prop)
            self._filled.append(filled)
            for slot, shape in filled.items():
                slots.setdefault(slot, shape)
        order = sorted(slots, key=lambda s: (not s.collides, not s.seen, s.type, s.number))
        self._slots = {slot: slots[slot] for slot in order}
        singles = [_alone(prop) for prop in self.props]
        self.masses = np.array([m.body_mass[1] for m in singles])
        boxes = [_box(m) for m in singles]
        self.centres, self.extents = np.stack([b[0] for b in boxes]), np.stack([b[1] for b in boxes])
        self._singles = singles

    @property
    def geoms(self) -> tuple[str, ...]:
        """Names of the slots."""
        return tuple(_geom_name(self.name, slot) for slot in self._slots)

    def declare(self, spec: mujoco.MjSpec, body: mujoco.MjsBody) -> None:
        """Add the slots to a body and every candidate's meshes to its scene."""
        for prop in self.props:
            for shape in (*prop.shapes, *prop.looks):
                if shape.mesh is not None:
                    _add_mesh(spec, shape.mesh)
        for slot, shape in self._slots.items():
            geom = add_geom(spec, body, shape, name=_geom_name(self.name, slot))
            _mark(geom, slot)
            geom.mass = 0
        body.explicitinertial = True
        body.mass, body.inertia = self.masses[0], np.sort(self._singles[0].body_inertia[1])[::-1]
        body.ipos, body.iquat = _ASKEW["ipos"], _ASKEW["iquat"]
        body.gravcomp = 1.0  # absent ones float; 0 in every row where it is present
        # what rows are given is part of what the scene is: its hash sees it
        numbers = [np.concatenate([np.ravel(m.body_mass[1:]), np.ravel(m.body_inertia[1:]), np.ravel(m.geom_size)])
                   for m in self._singles]  # fmt: skip
        spec.add_numeric(name=f"{self.name}/choice", data=np.round(np.concatenate(numbers), 9).tolist())

    def table(self, model: mujoco.MjModel) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """For the compiled scene: field -> (K + 1, slots, ...) of the geoms and field -> (K + 1, ...) of the body; the
        last is the absent object."""
        geoms = [int(model.geom(g).id) for g in self.geoms]
        body = int(model.body(self.name).id)
        absent = len(self.props)
        of_geom = {f"geom_{f}": _stack(getattr(model, f"geom_{f}")[geoms], absent + 1) for f in _GEOM}
        of_body = {f"body_{f}": _stack(getattr(model, f"body_{f}")[body], absent + 1) for f in _BODY}
        of_geom["geom_margin"][:], of_geom["geom_rbound"][:] = _OFF_MARGIN, _OFF_SIZE
        of_geom["geom_aabb"][..., :3], of_geom["geom_aabb"][..., 3:] = 0, _OFF_SIZE
        of_geom["geom_pos"][:], of_geom["geom_quat"][:], of_geom["geom_size"][:] = 0, (1, 0, 0, 0), _OFF_SIZE
        of_geom["geom_rgba"][:], of_geom["geom_matid"][:] = 0, -1
        of_body["body_gravcomp"][:absent] = 0
        for k, (single, filled) in enumerate(zip(self._singles, self._filled, strict=True)):
            for field in ("mass", "inertia", "ipos", "iquat"):
                of_body[f"body_{field}"][k] = getattr(single, f"body_{field}")[1]
            for i, slot in enumerate(self._slots):
                if slot not in filled:
                    continue
                g = single.geom(_geom_name("alone", slot)).id
                for field in ("size", "pos", "quat", "aabb", "rbound", "friction", "margin", "rgba"):
                    of_geom[f"geom_{field}"][k, i] = getattr(single, f"geom_{field}")[g]
                mesh, material = int(single.geom_dataid[g]), int(single.geom_matid[g])
                if mesh >= 0:
                    of_geom["geom_dataid"][k, i] = model.mesh(single.mesh(mesh).name).id
                if material >= 0:
                    of_geom["geom_matid"][k, i] = model.material(single.mat(material).name).id
        for field in ("body_mass", "body_inertia"):
            of_body[field][absent] = of_body[field][0]
        return of_geom, of_body


def add_geom(spec: mujoco.MjSpec, body: mujoco.MjsBody, shape: Shape, *, name: str) -> mujoco.MjsGeom:
    """Add a shape to a body; its mesh and texture are added to the scene when they are new there.

    Raises:
        UnknownNameError: no such type of shape.
        SceneError: a mesh without triangles, or a primitive without size.
    """
    if shape.type not in TYPES:
        raise UnknownNameError("type of shape", shape.type, TYPES)
    if (shape.type == "mesh") != (shape.mesh is not None) or (shape.mesh is None and not shape.size):
        raise SceneError(f"{name}: a shape of type 'mesh' needs mesh=Mesh(...), the others need a size")
    geom = body.add_geom(name=name, type=TYPES[shape.type], pos=shape.pos, quat=shape.quat, group=_SEEN)
    if shape.mesh is not None:
        geom.meshname = _add_mesh(spec, shape.mesh)
        if shape.mesh.texture:
            geom.material = shape.mesh.name
    else:
        geom.size = [*shape.size, 0, 0][:3]
    if shape.rgba is not None or not geom.material:
        geom.rgba = shape.rgba or (0.7, 0.7, 0.7, 1)
    return geom


def _slots(prop: Prop) -> dict[_Slot, Shape]:
    counts: dict[tuple[str, bool, bool], int] = {}
    out = {}
    for shapes, seen, collides in ((prop.shapes, not prop.looks, True), (prop.looks, True, False)):
        for shape in shapes:
            kind = (shape.type, seen, collides)
            counts[kind] = counts.get(kind, 0) + 1
            out[_Slot(*kind, counts[kind] - 1)] = shape
    return out


def _geom_name(part: str, slot: _Slot) -> str:
    role = "look" if not slot.collides else "shape" if slot.seen else "hull"
    return f"{part}/{role}/{slot.type}{slot.number}"


def _mark(geom: mujoco.MjsGeom, slot: _Slot) -> None:
    geom.contype = geom.conaffinity = int(slot.collides)
    geom.group = _SEEN if slot.seen else HIDDEN


def _alone(prop: Prop) -> mujoco.MjModel:
    """The object by itself, compiled; body 1. Not to be written to: it is the same for the same files."""
    meshes = [shape.mesh for shape in (*prop.shapes, *prop.looks) if shape.mesh is not None]
    files = [Path(file) for mesh in meshes for file in (mesh.file, mesh.texture) if file]
    return _compiled(prop, tuple((s.st_mtime_ns, s.st_size) for s in (file.stat() for file in files if file.is_file())))


@functools.lru_cache(maxsize=64)
def _compiled(prop: Prop, state: tuple[tuple[int, int], ...]) -> mujoco.MjModel:
    """See :func:`_alone`; ``state`` is that of its files."""
    spec = mujoco.MjSpec()
    body = spec.worldbody.add_body(name=prop.name)
    body.add_freejoint()
    for slot, shape in _slots(prop).items():
        geom = add_geom(spec, body, shape, name=_geom_name("alone", slot))
        _mark(geom, slot)
        geom.friction[0] = prop.friction if shape.friction is None else shape.friction
        if shape.density is not None:
            geom.density = shape.density
        if not slot.collides:
            geom.mass = 0
    if prop.inertia is not None or prop.com is not None:
        if prop.mass is None or prop.com is None or prop.inertia is None:
            raise SceneError(f"{prop.name}: com, inertia and mass are given together or not at all")
        body.explicitinertial = True
        body.mass, body.ipos, body.fullinertia = prop.mass, prop.com, prop.inertia
    try:
        model = spec.compile()
    except (ValueError, mujoco.FatalError) as error:
        raise SceneError(f"{prop.name} does not compile: {error}") from error
    if prop.mass is not None:
        model.body_inertia[1] *= prop.mass / model.body_mass[1]
        model.body_mass[1] = prop.mass
    return model


def _box(model: mujoco.MjModel) -> tuple[np.ndarray, np.ndarray]:
    """Middle and half size (3,) of the box around what collides, in the body's frame."""
    rotation = np.zeros((model.ngeom, 9))
    for g in range(model.ngeom):
        mujoco.mju_quat2Mat(rotation[g], model.geom_quat[g])
    return box_around(model, np.flatnonzero(model.geom_contype), model.geom_pos, rotation.reshape(-1, 3, 3))


def _stack(value: np.ndarray, times: int) -> np.ndarray:
    array: np.ndarray = np.repeat(np.asarray(value)[None], times, 0)
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _add_mesh(spec: mujoco.MjSpec, mesh: Mesh) -> str:
    if spec.mesh(mesh.name) is not None:
        return mesh.name
    made = spec.add_mesh(name=mesh.name)
    made.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX
    if mesh.points:
        made.uservert = list(mesh.points)
    else:
        made.file = mesh.file
    if mesh.texture:
        texture: Any = spec.add_texture(name=mesh.name, type=mujoco.mjtTexture.mjTEXTURE_2D)
        texture.file = mesh.texture
        material = spec.add_material(name=mesh.name)
        material.textures[int(mujoco.mjtTextureRole.mjTEXROLE_RGB)] = mesh.name
    return mesh.name
