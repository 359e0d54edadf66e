"""ReplicaCAD's scene instances as apartments. The data are the user's (MANIKIN_DATA/replicacad); CC BY-NC 4.0.

Files have y up; manikin has z up: all poses are turned by 90 degrees about x. The walls of the stages are
not in the data. Outer ones are put around the floor: the scene's navigation mesh, that of the empty apartment, and the
furniture. Inner ones stand in the slits of the empty apartment's mesh; upper stairs and landing are no floor.
"""

from __future__ import annotations

import functools
import json
import math
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from manikin.assets import urdf
from manikin.assets.paths import data_root
from manikin.errors import AssetError, DataError, ManikinError, UnknownNameError
from manikin.homes.apartment import Apartment, Fixture, Mechanism, Receptacle
from manikin.homes.footprints import hull, outlines
from manikin.homes.joinery import DRAG
from manikin.homes.navmesh import NavigationMesh, read_navmesh
from manikin.homes.walls.partitions import partitions
from manikin.homes.walls.shell import HEIGHT, shell_around
from manikin.scene.shapes import add_shapes
from manikin.spec.links import Quat, Vec3
from manikin.spec.prop import Mesh, Shape

__all__ = ["load", "scenes"]

# Bars that a gripper can take, in the frame of the link before it is scaled: template, link, both ends and where the
# posts meet the front (x) [m]. The fridge's follow the bars that are seen; the counter's drawers have none to see.
_BARS: tuple[tuple[str, str, Vec3, Vec3, float], ...] = (
    ("fridge", "top_door", (0.095, -0.664, -0.05), (0.095, -0.664, 0.5), 0.062),
    ("fridge", "bottom_door", (0.095, -0.664, -0.33), (0.095, -0.664, -0.01), 0.062),
    *(
        ("kitchen_counter", drawer, (0.36, 0.0, -0.09), (0.36, 0.0, 0.09), 0.305)
        for drawer in (
            *("drawer1_top", "drawer1_bottom", "drawer2_top", "drawer2_middle", "drawer2_bottom"),
            *("drawer3", "drawer4"),
        )
    ),
)
_BAR, _POST = 0.009, 0.007  # [m] radii
_SUFFIX = ".scene_instance.json"
_PASSED_OVER = ("rug", "mat", "carpet")  # a robot drives over these, so they are only seen
_PLAN = "empty_stage"  # the mesh of the same rooms without furniture, which says where their walls are
_STAIRS = 1.1  # [m] what reaches higher is upper stairs and landing, where the meshes of the staging scenes end
_BOARD = 0.02  # [m] half thickness of what stands in
_FAR = 1000.0  # [m] from the middle of a scene: a map of its floor would hold no more
_UP = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])  # y up becomes z up


def scenes(folder: str | Path | None = None) -> tuple[str, ...]:
    """Names of all scenes in the folder, ``v3_sc0_staging_00`` for example.

    Raises:
        AssetError: there is no such folder; says how to name it.
    """
    return tuple(p.name.removesuffix(_SUFFIX) for p in sorted((_root(folder) / "configs/scenes").glob("*" + _SUFFIX)))


def load(scene: str, folder: str | Path | None = None) -> Apartment:
    """An apartment from a scene instance.

    Args:
        scene: its name, see :func:`scenes`.
        folder: of the data set; None for ``MANIKIN_DATA/replicacad``.

    Returns:
        The apartment. Its notes say what is missing and what stands in.

    Raises:
        AssetError: the folder, or the scene's navigation mesh, is missing.
        UnknownNameError: no such scene.
        DataError: a file is damaged.
    """
    root = _root(folder)
    path = root / "configs/scenes" / (scene + _SUFFIX)
    if not path.is_file():
        raise UnknownNameError("scene of ReplicaCAD", scene, scenes(root))
    return _read(scene, root, path, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=4)  # a task asks several times while its scene is made; the time says which file it was
def _read(scene: str, root: Path, path: Path, _changed: int) -> Apartment:
    instance = _json(path)
    notes: list[str] = []
    mechanisms: list[Mechanism] = []
    counts: dict[str, int] = {}

    def numbered(template: str) -> str:
        short = template.rsplit("/", 1)[-1]
        counts[short] = counts.get(short, -1) + 1
        return f"{short}:{counts[short]:04d}"

    try:
        fixtures = [
            _object(root, item, numbered(item["template_name"]), notes) for item in instance["object_instances"]
        ]
        for item in instance.get("articulated_object_instances", ()):
            template = item["template_name"]
            if "door" in template:
                notes.append(f"{template} is left out, as MS-HAB leaves out doors")
                continue
            try:
                mechanisms.append(_mechanism(root, item, numbered(template)))
            except AssetError as error:
                notes.append(f"{template} is left out: {error}")
        navigation = instance.get("navmesh_instance", scene).removesuffix("_navmesh")  # so the files are named
        stage = instance["stage_instance"]["template_name"]
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, ManikinError):
            raise
        raise DataError(f"{path} is no scene instance: {error!r}") from error
    mesh = read_navmesh(root / "navmeshes" / f"{navigation}.navmesh")
    plan = root / "navmeshes" / f"{_PLAN}.navmesh"
    driven, bare = _floor(mesh), _floor(read_navmesh(plan)) if plan.is_file() else []
    standing = _footprints(fixtures, mechanisms)
    low = [polygon for polygons in standing.values() for polygon in polygons]
    shell = shell_around([*driven, *bare], mesh.radius, low)
    inner = partitions(driven, mesh.radius, low, height=HEIGHT, plan=bare, outer=shell.outlines)
    things: list[Fixture | Mechanism] = [*fixtures, *mechanisms]
    outside = {
        thing.name
        for thing in things
        if not shell.contains(np.array([thing.pos[:2]])).any()
        and not any(map(shell.meets, standing.get(thing.name, ())))
    }
    notes += [f"{name} is left out, as it is outside of the walls" for name in sorted(outside)]
    notes.append(f"walls stand around the navigation mesh and the furniture, in place of {stage}")
    return Apartment(
        name=scene,
        low=shell.corners[0],
        high=shell.corners[1],
        walls=(*shell.walls, *inner),
        fixtures=tuple(one for one in fixtures if one.name not in outside),
        mechanisms=tuple(one for one in mechanisms if one.name not in outside),
        notes=tuple(dict.fromkeys(notes)),
    )


def _root(folder: str | Path | None) -> Path:
    data = data_root()
    root = Path(folder) if folder is not None else None if data is None else data / "replicacad"
    if root is None or not (root / "configs/scenes").is_dir():
        raise AssetError(
            f"ReplicaCAD is not at {root}: it needs configs/scenes, objects, urdf and navmeshes. Set MANIKIN_DATA to "
            "the folder that has replicacad, or pass folder="
        )
    return root


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise DataError(f"{path} is no JSON object")
    return found


# ---- poses ---------------------------------------------------------------------------------------------------------


def _pose(item: Mapping[str, Any]) -> tuple[Vec3, Quat]:
    """Where an instance is, z up.

    Raises:
        DataError: it is nowhere, or turned by no rotation.
    """
    place, given = np.array(item["translation"], float), np.array(item["rotation"], float)
    if not (np.abs(place) < _FAR).all() or not (np.isfinite(given).all() and given.any()):
        raise DataError(
            f"{item.get('template_name', 'the stage')} has the translation {place.tolist()} and the rotation "
            f"{given.tolist()}: a place within {_FAR:g} m and a quaternion that is not 0 are needed"
        )
    pos = _UP @ place
    quat = np.empty(4)
    turn = np.array([math.sqrt(0.5), math.sqrt(0.5), 0, 0])
    mujoco.mju_mulQuat(quat, turn, given / np.linalg.norm(given))
    return _vec(pos), _quat(quat)


def _matrix(quat: Sequence[float]) -> np.ndarray:
    out = np.empty(9)
    mujoco.mju_quat2Mat(out, np.array(quat, float))
    return out.reshape(3, 3)


def _vec(values: np.ndarray) -> Vec3:
    x, y, z = map(float, values)
    return x, y, z


def _quat(values: np.ndarray) -> Quat:
    w, x, y, z = map(float, values)
    return w, x, y, z


def _receptacles(
    config: Mapping[str, Any], owner: str, turns: Mapping[str, np.ndarray], scale: float
) -> list[Receptacle]:
    """The boxes of a configuration; ``turns`` are the rotations of the links (``""``: of an object) in the world."""
    out = []
    for name, box in config.get("user_defined", {}).items():
        if not name.startswith("receptacle"):
            continue
        link = box.get("parent_link", "")
        link = link if link in turns else next(iter(turns))
        up = turns[link][2]  # the world's z along the axes of the link
        axis = int(np.argmax(np.abs(up)))
        z = np.zeros(3)
        z[axis] = math.copysign(1.0, up[axis])
        x = np.roll(np.abs(z), 1)
        frame = np.stack([x, np.cross(z, x), z], -1)
        half = np.abs(frame.T @ (np.abs(np.array(box["scale"], float)) * scale))
        quat = np.empty(4)
        mujoco.mju_mat2Quat(quat, frame.ravel())
        out.append(
            Receptacle(
                name=f"{owner}/{name}",
                pos=_vec(np.array(box["position"], float) * scale),
                half=_vec(half),
                quat=_quat(quat),
                link=link,
            )
        )
    return out


# ---- furniture -----------------------------------------------------------------------------------------------------


def _object(root: Path, item: Mapping[str, Any], name: str, notes: list[str]) -> Fixture:
    template = item["template_name"].rsplit("/", 1)[-1]
    pos, quat = _pose(item)
    kind = template.removeprefix("frl_apartment_").rstrip("0123456789").rstrip("_")
    config_file = root / "configs/objects" / f"{template}.object_config.json"
    config = _json(config_file) if config_file.is_file() else {}
    receptacles = _receptacles(config, name, {"": _matrix(quat)}, 1.0)
    try:
        shapes, looks = _meshes(root / "objects" / template / f"{template}.xml")
    except AssetError as error:
        shapes, looks = tuple(map(_board, receptacles)), ()
        instead = "a board under each receptacle stands" if shapes else "nothing stands"
        notes.append(f"{template} is missing ({error}); {instead} in")
    if kind in _PASSED_OVER:
        notes.append(f"{template} is seen and does not collide")
        shapes = ()
    return Fixture(name=name, kind=kind, pos=pos, quat=quat, shapes=shapes, looks=looks, receptacles=tuple(receptacles))


def _board(receptacle: Receptacle) -> Shape:
    """What things lie on where the furniture is missing."""
    x, y, z = receptacle.half
    pos = np.array(receptacle.pos) - _matrix(receptacle.quat)[:, 2] * (z + _BOARD)
    return Shape(type="box", size=(x, y, _BOARD), pos=_vec(pos), quat=receptacle.quat)


def _meshes(path: Path) -> tuple[tuple[Shape, ...], tuple[Shape, ...]]:
    """The convex pieces that collide and the meshes that are seen, from an object's MJCF file."""
    if not path.is_file():
        raise AssetError(f"there is no {path.name} in {path.parent}")
    tree = ET.parse(path)
    files = {mesh.get("name", ""): path.parent / mesh.get("file", "") for mesh in tree.iter("mesh")}
    textures = {t.get("name", ""): path.parent / t.get("file", "") for t in tree.iter("texture")}
    materials = {m.get("name", ""): m for m in tree.iter("material")}
    shapes: list[Shape] = []
    looks: list[Shape] = []
    for geom in tree.iter("geom"):
        key = geom.get("mesh", "")
        if key not in files or not files[key].is_file():
            raise AssetError(f"{path} names the mesh {key!r}, which is not there")
        material = materials.get(geom.get("material", ""))
        texture = textures.get("" if material is None else material.get("texture", ""))
        seen = geom.get("contype") == "0"
        picture = str(texture) if seen and texture is not None and texture.is_file() else ""
        colour = None if material is None or material.get("rgba") is None else material.get("rgba")
        rgba = tuple(map(float, colour.split())) if colour else None
        shape = Shape(
            type="mesh",
            mesh=Mesh(name=key, file=str(files[key]), texture=picture),
            rgba=rgba,  # type: ignore[arg-type]
        )
        (looks if seen else shapes).append(shape)
    return tuple(shapes), tuple(looks)


def _mechanism(root: Path, item: Mapping[str, Any], name: str) -> Mechanism:
    template, scale = item["template_name"], float(item.get("uniform_scale", 1.0))
    files = sorted((root / "urdf").glob(f"*/{template}.urdf"))
    if not files:
        raise AssetError(f"there is no {template}.urdf in {root / 'urdf'}")
    spec = urdf.load(files[0])
    _add_bars(spec, template)
    _scale(spec, scale)
    for joint in spec.joints:
        joint.damping[0] = DRAG[int(joint.type == mujoco.mjtJoint.mjJNT_HINGE)]
        joint.frictionloss = 0.0
    pos, quat = _pose(item)
    model = spec.copy().compile()
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    turn = _matrix(quat)
    turns = {model.body(b).name: turn @ data.xmat[b].reshape(3, 3) for b in range(1, model.nbody)}
    config_file = files[0].with_suffix(".ao_config.json")
    config = _json(config_file) if config_file.is_file() else {}
    receptacles = _receptacles(config, name, turns, scale)
    return Mechanism(name=name, kind=template, model=spec, pos=pos, quat=quat, receptacles=tuple(receptacles))


def _add_bars(spec: mujoco.MjSpec, template: str) -> None:
    """Give drawers and doors handles that collide, each with a site ``handle/JOINT``; upstream they have none."""
    for name, link, one, two, front in _BARS:
        body = spec.body(link) if name == template else None
        if body is None:
            continue
        joint = body.joints[0].name
        site = body.add_site(name=f"handle/{joint}", pos=np.add(one, two) / 2, size=[0.005, 0, 0])
        site.group = 4
        pieces = [("bar", one, two, _BAR)]
        pieces += [(word, end, (front, *end[1:]), _POST) for word, end in (("low", one), ("high", two))]
        for word, start, end, radius in pieces:
            body.add_geom(
                name=f"handle/{joint}/{word}",
                type=mujoco.mjtGeom.mjGEOM_CAPSULE,
                fromto=[*start, *end],
                size=[radius, 0, 0],
                rgba=(0.25, 0.25, 0.28, 1),
                mass=0,
                group=2,
            )


def _scale(spec: mujoco.MjSpec, scale: float) -> None:
    """Make a model larger in every length; slides go farther."""
    if scale == 1.0:
        return
    for mesh in spec.meshes:
        mesh.scale = np.array(mesh.scale) * scale
    for body in spec.bodies:
        body.pos, body.ipos = np.array(body.pos) * scale, np.array(body.ipos) * scale
    for geom in spec.geoms:
        geom.pos, geom.fromto = np.array(geom.pos) * scale, np.array(geom.fromto) * scale
        if geom.type != mujoco.mjtGeom.mjGEOM_MESH:
            geom.size = np.array(geom.size) * scale
    for site in spec.sites:
        site.pos = np.array(site.pos) * scale
    for joint in spec.joints:
        joint.pos = np.array(joint.pos) * scale
        if joint.type == mujoco.mjtJoint.mjJNT_SLIDE:
            joint.range = np.array(joint.range) * scale


def _floor(mesh: NavigationMesh) -> list[np.ndarray]:
    """The polygons of a mesh, without those of the upper stairs."""
    lowest = min(float(polygon[:, 2].min()) for polygon in mesh.polygons)
    return [hull(polygon[:, :2]) for polygon in mesh.polygons if polygon[:, 2].max() < lowest + _STAIRS]


def _footprints(fixtures: Sequence[Fixture], mechanisms: Sequence[Mechanism]) -> dict[str, list[np.ndarray]]:
    """Footprints of all that collides below the walls' height, by the name of the thing."""
    spec = mujoco.MjSpec()
    for fixture in fixtures:
        body = spec.worldbody.add_body(name=fixture.name, pos=fixture.pos, quat=fixture.quat)
        add_shapes(
            spec,
            body,
            fixture.name,
            fixture.shapes,
            colour=(1, 1, 1, 1),
            friction=1.0,
            mass=None,
            density=1000.0,
            collide=True,
            looks=(),
            rests_on=(),
        )
    for one in mechanisms:
        frame = spec.worldbody.add_frame(pos=one.pos, quat=one.quat)
        spec.attach(one.model.copy(), frame=frame, prefix=f"{one.name}/")
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    out: dict[str, list[np.ndarray]] = {}
    for geom, polygon in outlines(model, data, low=0.01, high=HEIGHT).items():
        out.setdefault(model.body(model.geom_bodyid[geom]).name.split("/")[0], []).append(polygon)
    return out
