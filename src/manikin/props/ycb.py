"""Objects of the YCB set: scanned meshes with textures from ``MANIKIN_DATA/ycb``, or primitives of the same size and
mass where that folder is absent.

The folder is laid out as in https://github.com/vikashplus/ycb_sim (Apache License 2.0): one MJCF file per object with a
mesh to look at and a primitive or a convex hull to collide with. Sizes and masses of the primitives are those of the
set's own table (Calli et al. 2015, "Benchmarking in Manipulation Research: The YCB Object and Model Set").

Every object lies as it is put on a table: its origin is the middle of the box around it, z points up. Those too wide
for a gripper of 80 mm the way they were scanned rest on an edge; two cans have no side narrow enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

import mujoco
import numpy as np

from manikin.assets.paths import data_root
from manikin.errors import AssetError, UnknownNameError
from manikin.spec.prop import Mesh, Prop, Shape

__all__ = ["GRASPABLE", "NAMES", "ycb"]

_EDGE = (math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0)  # a quarter turn about x
_FLAT = (1.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class _Object:
    """Mass [kg], how it rests, and primitives in the frame of its scan, z up from the ground."""

    mass: float
    rest: tuple[float, float, float, float]
    shapes: tuple[Shape, ...]
    rgba: tuple[float, float, float, float]


def _box(x: float, y: float, z: float, at: tuple[float, float, float] | None = None) -> Shape:
    return Shape(type="box", size=(x, y, z), pos=at or (0, 0, z))


def _can(radius: float, half: float, at: tuple[float, float, float] | None = None) -> Shape:
    return Shape(type="cylinder", size=(radius, half), pos=at or (0, 0, half))


_OBJECTS = {
    "002_master_chef_can": _Object(0.414, _FLAT, (_can(0.051, 0.0695),), (0.15, 0.25, 0.55, 1)),
    "003_cracker_box": _Object(0.411, _FLAT, (_box(0.03, 0.079, 0.105),), (0.75, 0.12, 0.1, 1)),
    "004_sugar_box": _Object(0.514, _FLAT, (_box(0.019, 0.0445, 0.0875),), (0.9, 0.8, 0.25, 1)),
    "005_tomato_soup_can": _Object(0.349, _FLAT, (_can(0.033, 0.0505),), (0.8, 0.2, 0.15, 1)),
    "006_mustard_bottle": _Object(
        0.603,
        _FLAT,
        (_box(0.029, 0.0475, 0.075), _can(0.018, 0.02, (0, 0, 0.17))),
        (0.9, 0.75, 0.1, 1),
    ),
    "007_tuna_fish_can": _Object(0.171, _FLAT, (_can(0.0425, 0.0165),), (0.2, 0.4, 0.7, 1)),
    "008_pudding_box": _Object(0.187, _EDGE, (_box(0.0445, 0.055, 0.0175),), (0.45, 0.25, 0.15, 1)),
    "009_gelatin_box": _Object(0.097, _EDGE, (_box(0.0365, 0.0425, 0.014),), (0.85, 0.3, 0.35, 1)),
    "010_potted_meat_can": _Object(0.370, _FLAT, (_box(0.0485, 0.025, 0.041),), (0.2, 0.3, 0.6, 1)),
    "035_power_drill": _Object(
        0.895,
        _FLAT,
        (_box(0.09, 0.03, 0.028, (0, 0.06, 0.028)), _box(0.022, 0.06, 0.02, (-0.03, -0.03, 0.028))),
        (0.85, 0.45, 0.1, 1),
    ),
}
NAMES = tuple(_OBJECTS)
GRASPABLE = tuple(n for n in NAMES if n not in ("002_master_chef_can", "007_tuna_fish_can", "035_power_drill"))
"""Those that a parallel gripper of 80 mm can take from above the way they rest."""


def ycb(names: tuple[str, ...] = GRASPABLE, *, meshes: bool | None = None) -> list[Prop]:
    """Objects by name, ready for ``b.mesh(choice=...)``.

    Args:
        names: of :data:`NAMES`.
        meshes: True for the scans, False for primitives, None for scans where ``MANIKIN_DATA/ycb`` exists.

    Raises:
        UnknownNameError: no such object.
        AssetError: scans are asked for, or the folder is there, but an object's file is missing.
    """
    for name in names:
        if name not in _OBJECTS:
            raise UnknownNameError("YCB object", name, NAMES)
    root = data_root()
    folder = root / "ycb" if root is not None else None
    there = folder is not None and folder.is_dir()
    if meshes and not there:
        raise AssetError(
            "the scanned YCB objects are missing: there is no folder MANIKIN_DATA/ycb. meshes=False uses simple "
            "shapes instead"
        )
    if folder is None or not there or meshes is False:
        return [_stand_in(name) for name in names]
    return [_scan(folder, name) for name in names]


def _stand_in(name: str) -> Prop:
    thing = _OBJECTS[name]
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for shape in thing.shapes:
        half = np.array(shape.size if shape.type == "box" else (shape.size[0], shape.size[0], shape.size[1]))
        low, high = np.minimum(low, shape.pos - half), np.maximum(high, shape.pos + half)
    shapes = _resting(thing.shapes, (low + high) / 2, thing.rest)
    shapes = tuple(replace(shape, rgba=thing.rgba) for shape in shapes)
    return Prop(name=name, shapes=shapes, mass=thing.mass, source="primitive stand-in")


def _scan(folder: Path, name: str) -> Prop:
    path = folder / f"{name}.xml"
    if not path.is_file():
        has = ", ".join(sorted(p.stem for p in folder.glob("0*.xml"))) or "no objects"
        raise AssetError(f"{folder} has no {name}.xml; it has: {has}")
    spec = mujoco.MjSpec.from_file(str(path))
    model = spec.compile()
    files = {m.name: m.file for m in spec.meshes}
    pictures = {t.name: t.file for t in spec.textures}
    looks: list[Shape] = []
    shapes: list[Shape] = []
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for g in range(model.ngeom):
        pos, quat = model.geom_pos[g].copy(), model.geom_quat[g].copy()
        collides, rotation = bool(model.geom_contype[g]), np.zeros(9)
        mujoco.mju_quat2Mat(rotation, quat)
        turn = rotation.reshape(3, 3)
        if model.geom_type[g] == int(mujoco.mjtGeom.mjGEOM_MESH):
            mesh = int(model.geom_dataid[g])
            at, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
            points = model.mesh_vert[at : at + count] @ turn.T + pos
            word = model.mesh(mesh).name
            pos, quat = _as_written(pos, quat, model.mesh_pos[mesh], model.mesh_quat[mesh])
            texture = "" if collides else str(folder / pictures[word])
            role = "hull" if collides else "look"
            data = Mesh(name=f"ycb/{word}/{role}", file=str(folder / files[word]), texture=texture)
            shape = Shape(type="mesh", pos=tuple(pos), quat=tuple(quat), mesh=data)
        else:
            kind = "box" if model.geom_type[g] == int(mujoco.mjtGeom.mjGEOM_BOX) else "cylinder"
            size = tuple(model.geom_size[g][: 3 if kind == "box" else 2].tolist())
            half = np.abs(turn) @ model.geom_aabb[g, 3:]
            points = np.stack([pos - half, pos + half])
            shape = Shape(type=kind, size=size, pos=tuple(pos), quat=tuple(quat))
        if collides:
            low, high = np.minimum(low, points.min(0)), np.maximum(high, points.max(0))
        (shapes if collides else looks).append(shape)
    middle, rest = (low + high) / 2, _OBJECTS[name].rest
    return Prop(
        name=name,
        shapes=_resting(shapes, middle, rest),
        looks=_resting(looks, middle, rest),
        mass=float(model.body_mass[1]),
        source="scan, MANIKIN_DATA/ycb",
    )


def _as_written(pos: np.ndarray, quat: np.ndarray, by: np.ndarray, turn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A mesh geom's frame before the compiler moved it to the mesh's own middle and axes (``by``, ``turn``)."""
    back, out_pos, out_quat = np.zeros(4), np.zeros(3), np.zeros(4)
    away = np.zeros(3)
    mujoco.mju_negPose(away, back, by, turn)
    mujoco.mju_mulPose(out_pos, out_quat, pos, quat, away, back)
    return out_pos, out_quat


def _resting(shapes: tuple[Shape, ...] | list[Shape], middle: np.ndarray, rest: tuple[float, ...]) -> tuple[Shape, ...]:
    """Shapes moved so that ``middle`` is the origin, then turned by ``rest``."""
    out = []
    for shape in shapes:
        pos, quat = np.zeros(3), np.zeros(4)
        mujoco.mju_rotVecQuat(pos, np.asarray(shape.pos, float) - middle, np.array(rest))
        mujoco.mju_mulQuat(quat, np.array(rest), np.array(shape.quat, float))
        (x, y, z), (a, b, c, d) = pos.round(9).tolist(), quat.round(9).tolist()
        out.append(replace(shape, pos=(x, y, z), quat=(a, b, c, d)))
    return tuple(out)
