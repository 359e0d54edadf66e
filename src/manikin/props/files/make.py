"""A mesh or a scan made into an object: cleaned, weighed, taken apart into convex pieces, dropped, checked, written."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manikin.assets.decimate import Decimated, decimate
from manikin.assets.meshes import TriangleMesh, convex_pieces, package, read_mesh, write_obj
from manikin.assets.paths import absolute, file_hash
from manikin.errors import ConfigError, UnknownNameError
from manikin.props.files import checks as judge
from manikin.props.files.load import ABOUT, FORMAT, VERSION, inertia_words, prop_from_file
from manikin.props.files.measure import MassProperties, checked_unit, guess_units, mass_properties, narrowest, up_axis
from manikin.props.files.mjcf import mjcf
from manikin.props.files.picture import picture
from manikin.props.files.rest import Drop, Pose, angle, drop, stable_poses, to_quat, upright
from manikin.render.files.video import write_png
from manikin.spec.prop import Mesh, Prop, Shape

__all__ = ["COLLISION", "Made", "make_object"]

COLLISION = ("pieces", "hull")
_CONVEX = 0.99  # a mesh that fills this share of its hull is convex
_UPRIGHT = 5.0  # [deg] the file's own vertical is a rest pose when one is this near
_FINEST, _COARSEST = 2.5e-4, 0.02  # of the diagonal: tolerances that decimation tries, doubled each time


@dataclass(frozen=True, eq=False)
class Made:
    """What :func:`make_object` made.

    Attributes:
        folder: where it lies; ``prop`` is read from there.
        about: what ``object.json`` says.
        checks: what is good and what is not.
        prop: ready for ``b.mesh(name, choice=[prop])``.
    """

    folder: Path
    about: dict[str, Any]
    checks: tuple[judge.Check, ...]
    prop: Prop


def make_object(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    name: str = "",
    units: str = "",
    up: str = "",
    mass: float | None = None,
    density: float = 1000.0,
    friction: float = 1.0,
    collision: str = "pieces",
    faces: int = 5000,
    rest: int | None = None,
    opening: tuple[str, float] | None = None,
    overwrite: bool = False,
    renderer: str = "auto",
) -> Made:
    """Make an object of a mesh file and write it into a folder.

    Args:
        path: OBJ, STL, PLY, GLB, DAE, or what else trimesh reads.
        out: the folder; default the file's name, beside it.
        name: of the object; default the file's name.
        units: of the file, ``m``, ``cm`` or ``mm``; default as the format says, or guessed from the size.
        up: the file's vertical, ``y`` or ``z``; default y for GLB, z for others.
        mass: [kg]; default ``density`` [kg/m^3] times the volume.
        density: used where no mass is given.
        friction: sliding.
        collision: ``pieces`` takes the mesh apart into convex pieces (CoACD), ``hull`` takes its convex hull.
        faces: the mesh to look at is decimated to at most so many.
        rest: which rest pose is upright, counted from 0, the most probable; default the file's own vertical where the
            object rests so, else 0.
        opening: a gripper's name and how far it opens [m], for the check whether it can grasp the object.
        overwrite: replace an object that lies in the folder.
        renderer: draws the picture, see :func:`manikin.render.make_renderer`.

    Raises:
        AssetError: there is no such file.
        SceneError: it is no mesh, or it encloses no volume.
        ConfigError: an option cannot be, the folder is taken, or a package is missing; says which.
        UnknownNameError: no such unit, axis or kind of collision.
    """
    source = absolute(path)
    for what, value, valid in (("kind of collision", collision, COLLISION), ("axis", up or "z", ("y", "z"))):
        if value not in valid:
            raise UnknownNameError(what, value, valid)
    for word, number in (("mass", mass), ("density", density), ("friction", friction), ("faces", faces)):
        if number is not None and not (np.isfinite(number) and number > 0):
            raise ConfigError(f"{word} must be positive, not {number}")
    label = name or re.sub(r"\W+", "_", source.stem).strip("_") or "object"
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", label):
        raise ConfigError(f"{label!r} is not a valid name for an object; use letters, digits, _ and -")
    folder = absolute(out) if out is not None else source.with_name(label)
    if folder.exists() and not (overwrite and (folder / ABOUT).is_file()):
        why = "overwrite=True replaces it" if (folder / ABOUT).is_file() else "and it is no object; choose another"
        raise ConfigError(f"{folder} is there already; {why}")

    mesh = read_mesh(source)
    unit, reason = (units, "as told") if units else guess_units(source, np.ptp(mesh.vertices, axis=0))
    scale, vertical = checked_unit(unit), up or up_axis(source)
    turn = upright(np.array((0.0, 1.0, 0.0))) if vertical == "y" else np.eye(3)
    look = mesh.vertices * scale @ turn.T
    solid, found = judge.cleaned(look, mesh.faces)
    pieces, how = _pieces(solid, collision)
    closed = judge.is_solid(solid)
    hulls = [package("trimesh", "making an object").convex.convex_hull(p) for p in pieces]
    weight = mass_properties([solid] if closed else hulls, mass=mass, density=density)
    points = np.concatenate(pieces)
    rests, drops = _rests(label, pieces, weight, friction)
    chosen = _upright(rests, rest)

    # from here on in the object's own frame
    rotation = rests[chosen].rotation
    box = points @ rotation.T
    shift = -(box.min(0) + box.max(0)) / 2
    pieces = [p @ rotation.T + shift for p in pieces]
    weight = weight.turned(rotation, shift)
    order = [chosen, *(k for k in range(len(rests)) if k != chosen)]
    drops = [drops[k] for k in order]
    rests = [Pose(rests[k].rotation @ rotation.T, rests[k].probability) for k in order]
    texture = _texture(source, mesh)
    uv = mesh.texcoord if texture else None
    shown = _decimated(look @ rotation.T + shift, mesh.faces, uv, faces)
    points = np.concatenate(pieces)
    lying = [_lying(p, d, points) for p, d in zip(rests, drops, strict=True)]
    verdicts = (
        *found,
        judge.scale_check(points, unit, reason),
        judge.mass_check(weight, given=mass is not None, closed=closed),
        judge.thin_check(solid),
        judge.pieces_check(solid, hulls, how),
        judge.faces_check(len(mesh.faces), shown),
        judge.rest_check(drops),
        *judge.grasp_check(lying, opening),
    )
    about: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "name": label,
        "source": {
            "file": source.name,
            "sha256": file_hash(source),
            "units": unit,
            "units_are": reason,
            "up": vertical,
        },
        "mass": weight.mass,
        "density": weight.mass / weight.volume,
        "volume": weight.volume,
        "com": weight.com.round(9).tolist(),
        "inertia": inertia_words(weight.inertia),
        "friction": friction,
        "size": np.ptp(points, axis=0).round(6).tolist(),
        "visual": {
            "file": "visual.obj",
            "faces": len(shown.faces),
            "max_error": shown.max_error,
            "rgba": [c / 255 for c in mesh.colour],
        },
        "collision": {"how": how, "files": [f"piece_{k:02d}.obj" for k in range(len(pieces))]},
        "rest": lying,
        "checks": [asdict(v) for v in verdicts],
    }
    if texture:
        about["visual"]["texture"] = "texture.png"
    _write(folder, about, shown, pieces, hulls, rotation, shift, texture, renderer)
    return Made(folder, about, verdicts, prop_from_file(folder))


def _pieces(solid: Any, collision: str) -> tuple[list[np.ndarray], str]:
    """Points (k, 3) of each convex piece, and how they were made."""
    hull = solid.convex_hull
    whole = [np.asarray(hull.vertices, float)]
    if collision == "hull":
        return whole, "hull"
    if judge.is_solid(solid) and solid.volume >= _CONVEX * hull.volume:
        return whole, "convex already"
    try:
        return convex_pieces(np.asarray(solid.vertices), np.asarray(solid.faces)), "pieces"
    except ConfigError as error:
        raise ConfigError(f"{error}; or take the convex hull, which fills what is hollow: collision='hull'") from None


def _rests(
    name: str, pieces: list[np.ndarray], weight: MassProperties, friction: float
) -> tuple[list[Pose], list[Drop]]:
    """Rest poses that a drop confirms, the most probable first. One that falls over gives its probability to the pose
    that it falls into. Without any confirmed the most probable is returned, with what became of it."""
    shapes = tuple(
        Shape(type="mesh", mesh=Mesh(name=f"{name}/{k}", points=tuple(p.ravel().tolist())))
        for k, p in enumerate(pieces)
    )
    x, y, z = weight.com.tolist()
    inertia = inertia_words(weight.inertia)
    prop = Prop(name=name, shapes=shapes, mass=weight.mass, com=(x, y, z), inertia=inertia, friction=friction)
    points = np.concatenate(pieces)
    poses = stable_poses(points, weight.com)
    drops = drop(prop, points, [p.rotation for p in poses])
    held = [k for k, d in enumerate(drops) if d.rests]
    if not held:
        return poses[:1], drops[:1]
    chances = {k: poses[k].probability for k in held}
    for k, fell in enumerate(drops):
        if k not in chances:
            near = min(held, key=lambda j: angle(drops[j].rotation[2], fell.rotation[2]))
            chances[near] += poses[k].probability
    order = sorted(held, key=lambda k: -chances[k])
    return [Pose(poses[k].rotation, chances[k]) for k in order], [drops[k] for k in order]


def _upright(rests: list[Pose], rest: int | None) -> int:
    """The number of the pose that is the object's upright one."""
    if rest is not None:
        if not 0 <= rest < len(rests):
            raise ConfigError(f"the object has {len(rests)} rest poses, numbered from 0; there is no {rest}")
        return rest
    near = [k for k, p in enumerate(rests) if angle(p.up, np.array((0.0, 0.0, 1.0))) < _UPRIGHT]
    return near[0] if near else 0


def _lying(pose: Pose, fell: Drop, points: np.ndarray) -> dict[str, Any]:
    """A rest pose in the words of ``object.json``."""
    turned = points @ pose.rotation.T
    width, direction = narrowest(turned)
    return {
        "quat": to_quat(pose.rotation),
        "height": round(-float(turned[:, 2].min()), 6),
        "probability": round(pose.probability, 4),
        "width": round(width, 6),
        "width_direction": round(direction, 4),
        "confirmed": bool(fell.rests),
    }


def _decimated(vertices: np.ndarray, faces: np.ndarray, uv: np.ndarray | None, most: int) -> Decimated:
    """The mesh to look at, with at most so many faces where a tolerance of 2 % of its size allows that."""
    plain = Decimated(vertices, faces.astype(np.int32), uv if uv is not None else np.zeros((0, 2)), 0.0, 0.0)
    tolerance, diagonal = _FINEST, float(np.linalg.norm(np.ptp(vertices, axis=0)))
    while len(plain.faces) > most and tolerance <= _COARSEST:
        plain = decimate(vertices, faces, uv, tolerance=tolerance * diagonal)
        tolerance *= 2
    return plain


def _texture(source: Path, mesh: TriangleMesh) -> bytes | None:
    """The PNG on the mesh's surface, where an OBJ's MTL file names exactly one; else None."""
    if mesh.texcoord is not None and source.suffix.lower() == ".obj":
        library = re.search(r"^mtllib\s+(.+?)\s*$", source.read_text(errors="replace"), re.MULTILINE)
        listed = source.parent / library[1] if library else None
        if listed is not None and listed.is_file():
            images = re.findall(r"^\s*map_Kd\s+(?:.*\s)?(\S+)\s*$", listed.read_text(errors="replace"), re.MULTILINE)
            files = [listed.parent / image for image in dict.fromkeys(images)]
            if len(files) == 1 and files[0].suffix.lower() == ".png" and files[0].is_file():
                return files[0].read_bytes()
    return None


def _write(
    folder: Path,
    about: dict[str, Any],
    shown: Decimated,
    pieces: list[np.ndarray],
    hulls: list[Any],
    rotation: np.ndarray,
    shift: np.ndarray,
    texture: bytes | None,
    renderer: str,
) -> None:
    """Write all files beside the folder and give them its name: it is there whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
    try:
        write_obj(fresh / "visual.obj", shown.vertices, shown.faces, shown.texcoord)
        for file, hull in zip(about["collision"]["files"], hulls, strict=True):
            write_obj(fresh / file, np.asarray(hull.vertices) @ rotation.T + shift, hull.faces)
        if texture:
            (fresh / "texture.png").write_bytes(texture)
        about["files"] = {p.name: file_hash(p) for p in sorted(fresh.iterdir())}
        (fresh / f"{about['name']}.xml").write_text(mjcf(about), encoding="utf-8")
        (fresh / ABOUT).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
        write_png(fresh / f"{about['name']}.png", picture(prop_from_file(fresh), about, pieces, renderer=renderer))
        fresh.chmod(0o755)
        if folder.exists():
            old = folder.with_name(f".{folder.name}-old")
            shutil.rmtree(old, ignore_errors=True)
            folder.rename(old)
            fresh.rename(folder)
            shutil.rmtree(old)
        else:
            fresh.rename(folder)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
