"""Objects of SIMPLER's tasks (Li et al. 2024, arXiv 2405.05941): meshes with textures from ``MANIKIN_DATA/simpler``, or
primitives of the same size and mass where that folder is absent.

The folder holds the models of https://github.com/simpler-env/ManiSkill2_real2sim, converted to OBJ and PNG: a file to
look at, and convex pieces to collide with. Names are those of the original. Its frames are kept, too: the origin of an
object is the original's, and for most objects not the middle of the box around it; a can's axis is y.

Success tests use the boxes ``half`` of the original's tables, which for some objects are not those of the mesh: the
Red Bull can's is too tall, the sponge's has x and y swapped. They are kept so that results are comparable.

PhysX, which the original uses, takes the mean of two things' friction, MuJoCo the larger. With 0.5 for objects, 0.75
for what they stand on and 1.25 for fingers every pair gets PhysX's mean of 0.5, 1 and 2. PhysX's damping of 0.1 per
second of a free body is left out: MuJoCo has one damping for translation and rotation of a free joint.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import mujoco
import numpy as np

from manikin.assets.paths import data_root
from manikin.errors import AssetError, UnknownNameError
from manikin.scene.candidates import add_geom
from manikin.spec.prop import Mesh, Prop, Shape

__all__ = ["BOXES", "FRICTION", "GROUND_FRICTION", "NAMES", "extent_along", "folder", "simpler_prop"]

FRICTION, GROUND_FRICTION = 0.5, 0.75
"""Of objects, and of tables, sinks and cabinets; see above."""

RGBA = tuple[float, float, float, float]
Vec3 = tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class _Object:
    """An object: the original's box and density, its mass, its primitives in the frame of its mesh."""

    half: Vec3  # [m] half the box that success tests use
    density: float  # [kg/m^3] of the mesh
    mass: float  # [kg] of the stand-in: density times the volume of the original's convex pieces
    shapes: tuple[Shape, ...]
    rgba: RGBA
    models: tuple[str, ...] = ()  # folders of its meshes, the first that is there; () is its own name
    colour: RGBA | None = None  # of a mesh without texture


def _can(radius: float, low: float, high: float) -> Shape:
    """A cylinder along y."""
    turn = (math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0)
    return Shape(type="cylinder", size=(radius, (high - low) / 2), pos=(0, (high + low) / 2, 0), quat=turn)


def _box(low: Vec3, high: Vec3) -> Shape:
    half, middle = zip(*(((b - a) / 2, (b + a) / 2) for a, b in zip(low, high, strict=True)), strict=True)
    return Shape(type="box", size=half, pos=middle)


def _turned(name: str, rings: Sequence[tuple[float, float, float]], sides: int = 10) -> Shape:
    """A convex body around the x axis: rings of (x, radius, z of the middle) [m], a flat face below."""
    angles = [2 * math.pi * (k + 0.5) / sides for k in range(sides)]
    points = [p for x, r, z in rings for a in angles for p in (x, r * math.sin(a), z - r * math.cos(a))]
    return Shape(type="mesh", mesh=Mesh(name=f"simpler/{name}/stand-in", points=tuple(round(p, 6) for p in points)))


_CAN = (0.033, 0.0615, 0.033)
_CUBE = (0.015,) * 3
_RED, _BLUE, _GREEN = (0.75, 0.08, 0.1, 1.0), (0.08, 0.2, 0.55, 1.0), (0.1, 0.5, 0.2, 1.0)
_OBJECTS = {
    "opened_coke_can": _Object(half=_CAN, density=50, mass=0.0200, shapes=(_can(0.0333, -0.069, 0.0538),), rgba=_RED),
    "opened_pepsi_can": _Object(
        half=_CAN, density=50, mass=0.0206, shapes=(_can(0.0335, -0.0643, 0.0599),), rgba=_BLUE
    ),
    "opened_7up_can": _Object(half=_CAN, density=50, mass=0.0197, shapes=(_can(0.0331, -0.063, 0.059),), rgba=_GREEN),
    "opened_sprite_can": _Object(
        half=_CAN, density=50, mass=0.0206, shapes=(_can(0.0337, -0.062, 0.0611),), rgba=(0.1, 0.6, 0.35, 1)
    ),
    "opened_fanta_can": _Object(
        half=_CAN, density=50, mass=0.0206, shapes=(_can(0.0337, -0.0636, 0.0596),), rgba=(0.9, 0.45, 0.05, 1)
    ),
    "opened_redbull_can": _Object(
        half=(0.02925, 0.086, 0.02925),
        density=50,
        mass=0.0183,
        shapes=(_can(0.0299, -0.0658, 0.0675),),
        rgba=(0.25, 0.35, 0.65, 1),
    ),
    "blue_plastic_bottle": _Object(
        half=(0.03005, 0.1015, 0.03025),
        density=50,
        mass=0.0292,
        shapes=(_can(0.0312, -0.0889, 0.075), _can(0.014, 0.075, 0.1163)),
        rgba=(0.15, 0.45, 0.8, 1),
        models=("baked_blue_plastic_bottle_v2",),
    ),
    "apple": _Object(
        half=(0.04, 0.04, 0.04),
        density=800,
        mass=0.2185,
        shapes=(Shape(type="sphere", size=(0.0404,), pos=(0, 0, 0.0042)),),
        rgba=(0.75, 0.12, 0.1, 1),
        models=("baked_apple_v2",),
    ),
    "orange": _Object(
        half=(0.035, 0.035, 0.034),
        density=800,
        mass=0.1495,
        shapes=(Shape(type="sphere", size=(0.035,)),),
        rgba=(0.95, 0.55, 0.1, 1),
    ),
    "sponge": _Object(
        half=(0.035, 0.05, 0.018),
        density=150,
        mass=0.0355,
        shapes=(_box((-0.0505, -0.032, -0.0186), (0.0505, 0.0391, 0.0186)),),
        rgba=(0.3, 0.6, 0.25, 1),
    ),
    "bridge_spoon_generated_modified": _Object(
        half=(0.07, 0.0173, 0.013021),
        density=1200,
        mass=0.0423,
        shapes=(
            _box((-0.0732, -0.0178, -0.008), (-0.023, 0.0178, 0.003)),
            _box((-0.023, -0.0117, -0.0117), (0.0679, 0.0117, 0.0133)),
        ),
        rgba=(0.2, 0.45, 0.25, 1),
        colour=(0.6157, 0.6157, 0.6157, 1),
    ),
    "bridge_carrot_generated_modified": _Object(
        half=(0.0575, 0.016, 0.019),
        density=700,
        mass=0.0551,
        shapes=(
            _turned(
                "bridge_carrot_generated_modified",
                ((-0.0641, 0.004, -0.004), (-0.0472, 0.0095, -0.0035), (0.0035, 0.0165, -0.001), (0.0375, 0.0145, 0.0)),
            ),
            _box((0.03, -0.006, 0.0), (0.0542, 0.006, 0.018)),
        ),
        rgba=(0.9, 0.45, 0.1, 1),
    ),
    "bridge_plate_objaverse_larger": _Object(
        half=(0.055, 0.055, 0.003),
        density=1000,
        mass=0.0405,
        shapes=(Shape(type="cylinder", size=(0.055, 0.003), pos=(0, 0, 0.003)),),
        rgba=(0.85, 0.75, 0.75, 1),
    ),
    "table_cloth_generated_shorter": _Object(
        half=(0.05, 0.05, 0.005),
        density=330,
        mass=0.0280,
        shapes=(_box((-0.0511, -0.0508, -0.005), (0.0499, 0.0502, 0.0061)),),
        rgba=(0.35, 0.55, 0.8, 1),
    ),
    "green_cube_3cm": _Object(
        half=_CUBE, density=1000, mass=0.027, shapes=(Shape(type="box", size=_CUBE),), rgba=(0.0863, 0.3882, 0.0863, 1)
    ),
    "yellow_cube_3cm": _Object(
        half=_CUBE, density=1000, mass=0.027, shapes=(Shape(type="box", size=_CUBE),), rgba=(0.85, 0.72, 0.1, 1)
    ),
    "eggplant": _Object(
        half=(0.03915, 0.0187, 0.019),
        density=400,
        mass=0.0215,
        shapes=(
            _turned(
                "eggplant",
                (
                    *((-0.0449, 0.006, 0.007), (-0.0336, 0.0125, 0.0045), (-0.0112, 0.0175, -0.0005)),
                    *((0.0057, 0.0187, -0.0013), (0.0225, 0.0182, -0.0013), (0.0338, 0.0138, -0.0016)),
                ),
            ),
        ),
        rgba=(0.28, 0.12, 0.35, 1),
        colour=(0.28, 0.12, 0.35, 1),
    ),
    "dummy_sink_target_plane": _Object(
        half=(0.065, 0.04, 0.001),
        density=1e5,
        mass=2.08,
        shapes=(Shape(type="box", size=(0.065, 0.04, 0.001)),),
        rgba=(0.7, 0.7, 0.7, 1),
    ),
    "sink": _Object(
        half=(0.1345, 0.1965, 0.0575),
        density=1000,
        mass=10.0,
        shapes=(
            _box((-0.137, -0.204, 0), (0.138, 0.196, 0.03)),
            _box((-0.055, -0.148, 0.03), (0.112, -0.031, 0.05)),  # floor of the basket
            _box((-0.055, -0.031, 0.03), (0.112, 0.168, 0.04)),  # floor of the basin
            _box((-0.055, -0.047, 0.05), (0.112, -0.031, 0.1)),  # between them
            _box((-0.137, -0.204, 0.03), (0.138, -0.148, 0.1)),
            _box((-0.137, 0.168, 0.03), (0.138, 0.196, 0.097)),
            _box((0.112, -0.148, 0.03), (0.138, 0.168, 0.097)),
            _box((-0.137, -0.148, 0.03), (-0.055, 0.168, 0.1)),
        ),
        rgba=(0.75, 0.75, 0.77, 1),
        colour=(0.75, 0.75, 0.77, 1),
    ),
}
_BAKED = {
    "baked_apple_v2": ("apple", ()),
    "baked_blue_plastic_bottle_v2": ("blue_plastic_bottle", ()),
    "baked_green_cube_3cm": ("green_cube_3cm", ("green_cube_3cm",)),
    "baked_yellow_cube_3cm": ("yellow_cube_3cm", ("yellow_cube_3cm",)),
    "baked_opened_7up_can_v2": ("opened_7up_can", ()),
    "baked_opened_coke_can_v2": ("opened_coke_can", ()),
    "baked_opened_pepsi_can_v2": ("opened_pepsi_can", ()),
    "baked_opened_redbull_can_v2_alt": ("opened_redbull_can", ()),
    "baked_sponge_v2": ("sponge", ()),
}  # with the texture of a real one: the object whose figures it has, and its meshes' folders where they are others
_OBJECTS |= {name: replace(_OBJECTS[same], models=models or (name,)) for name, (same, models) in _BAKED.items()}

NAMES = tuple(_OBJECTS)
BOXES = {name: thing.half for name, thing in _OBJECTS.items()}
"""[m] half the size of the box of each object that success tests use, in its frame."""


def folder(name: str) -> Path | None:
    """Where an object's meshes are; None where there are none, and primitives stand in.

    Raises:
        UnknownNameError: no such object.
    """
    if name not in _OBJECTS:
        raise UnknownNameError("object of SIMPLER", name, NAMES)
    root = data_root()
    if root is None:
        return None
    for model in _OBJECTS[name].models or (name,):
        path = root / "simpler" / "custom" / "models" / model
        if any((path / file).is_file() for file in ("collision.obj", "c0.obj")):
            return path
    return None


def simpler_prop(name: str, *, meshes: bool | None = None, density: float | None = None) -> Prop:
    """An object by its name in the original, for ``b.part(name, prop.shapes, looks=prop.looks)`` and ``b.mesh``.

    Args:
        name: of :data:`NAMES`.
        meshes: True for the original's meshes, False for primitives, None for meshes where they are.
        density: [kg/m^3] instead of the original's, as apple and orange are lighter in one task.

    Raises:
        UnknownNameError: no such object.
        AssetError: meshes are asked for and absent, or a file does not hold what it should.
    """
    path, thing = folder(name), _OBJECTS[name]
    if meshes and path is None:
        raise AssetError(
            f"the meshes of {name!r} are missing: there is no MANIKIN_DATA/simpler/custom/models/"
            f"{(thing.models or (name,))[0]}. meshes=False uses simple shapes of its size and mass instead"
        )
    scale = 1.0 if density is None else density / thing.density
    if path is None or meshes is False:
        heavy = thing.mass * scale / _volume(thing.shapes)
        shapes = tuple(replace(shape, rgba=thing.rgba, density=heavy) for shape in thing.shapes)
        return Prop(name=name, shapes=shapes, friction=FRICTION, source="primitive stand-in")
    files = sorted(path.glob("c[0-9]*.obj")) or [path / "collision.obj"]
    pieces = [piece for file in files for piece in _pieces(file)]
    looks = _looks(path, thing)
    shapes = tuple(
        Shape(
            type="mesh",
            mesh=Mesh(name=f"simpler/{path.name}/hull{k}", points=tuple(piece.ravel().tolist())),
            density=thing.density * scale,
            rgba=thing.colour,
        )
        for k, piece in enumerate(pieces)
    )
    return Prop(name=name, shapes=shapes, looks=looks, friction=FRICTION, source="mesh, MANIKIN_DATA/simpler")


def extent_along(prop: Prop, direction: Sequence[float]) -> tuple[float, float]:
    """Least and largest coordinate [m] of what collides along ``direction`` (3,), a unit vector in the prop's frame."""
    along = np.concatenate([_corners(shape) for shape in prop.shapes]) @ np.asarray(direction, float)
    round_ones = [s for s in prop.shapes if s.type in ("sphere", "cylinder")]
    ends = [(along.min(), along.max()) if len(along) else (math.inf, -math.inf)]
    for shape in round_ones:
        middle, reach = float(np.dot(shape.pos, direction)), shape.size[0]
        if shape.type == "cylinder":
            axis = _rotation(shape.quat)[:, 2]
            cos = float(np.dot(axis, direction))
            reach = shape.size[0] * math.sqrt(max(0.0, 1 - cos * cos)) + shape.size[1] * abs(cos)
        ends.append((middle - reach, middle + reach))
    return min(low for low, _ in ends), max(high for _, high in ends)


def _corners(shape: Shape) -> np.ndarray:
    """(n, 3) corners of a box or a hull; none of what is round."""
    if shape.mesh is not None:
        points = np.reshape(shape.mesh.points, (-1, 3))
    elif shape.type == "box":
        points = np.array(np.meshgrid(*([-1, 1],) * 3)).reshape(3, -1).T * shape.size
    else:
        return np.zeros((0, 3))
    return points @ _rotation(shape.quat).T + shape.pos


def _rotation(quat: Sequence[float]) -> np.ndarray:
    w, x, y, z = quat
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


@functools.lru_cache(maxsize=64)
def _volume(shapes: tuple[Shape, ...]) -> float:
    """[m^3] of all of them together, those of hulls as MuJoCo finds them."""
    spec = mujoco.MjSpec()
    body = spec.worldbody.add_body()
    for k, shape in enumerate(shapes):
        add_geom(spec, body, shape, name=str(k)).density = 1.0
    return float(spec.compile().body_mass[1])


def _looks(path: Path, thing: _Object) -> tuple[Shape, ...]:
    """What is seen, with its textures; nothing where there is only what collides."""
    files = sorted(path.glob("visual_v*.obj"))
    if path.name == "sink":  # 82 pieces without texture, the same as those that collide
        return ()
    out = []
    for file in files:
        picture = file.with_suffix(".png")
        texture = str(picture) if picture.is_file() else ""
        mesh = Mesh(name=f"simpler/{path.name}/{file.stem}", file=str(file), texture=texture)
        out.append(Shape(type="mesh", mesh=mesh, rgba=None if texture else thing.colour or thing.rgba))
    return tuple(out)


def _closed(faces: Sequence[Sequence[int]]) -> bool:
    """Whether every edge is between two faces."""
    edges = Counter(frozenset(edge) for face in faces for edge in zip(face, (*face[1:], face[0]), strict=True))
    return set(edges.values()) == {2}


@functools.lru_cache(maxsize=256)
def _pieces(file: Path) -> tuple[np.ndarray, ...]:
    """The connected pieces of an OBJ file, (points, 3) [m] each: the convex parts that it is made of."""
    points, faces = [], []
    try:
        for line in file.read_text().splitlines():
            kind, *rest = line.split() or [""]
            if kind == "v":
                points.append([float(x) for x in rest[:3]])
            elif kind == "f":
                faces.append([int(corner.split("/")[0]) - 1 for corner in rest])
    except (OSError, ValueError) as error:
        raise AssetError(f"{file} is not a mesh that can be read: {error}") from None
    if not faces:
        raise AssetError(f"{file} has no faces")
    whole = np.round(np.array(points), 7)
    if not _closed(faces):  # each face has its own points; else pieces that touch have theirs
        whole, same = np.unique(whole, axis=0, return_inverse=True)
        faces = [[int(same.ravel()[corner]) for corner in face] for face in faces]
    root = list(range(len(whole)))

    def find(k: int) -> int:
        while root[k] != k:
            root[k] = root[root[k]]
            k = root[k]
        return k

    for face in faces:
        for corner in face[1:]:
            root[find(corner)] = find(face[0])
    found: dict[int, list[int]] = {}
    for k in range(len(whole)):
        found.setdefault(find(k), []).append(k)
    return tuple(np.unique(whole[rows], axis=0) for rows in found.values() if len(rows) > 3)
