"""A user's URDF as an MjSpec: ``package://`` paths, meshes in any format, collision meshes in convex pieces.

MuJoCo reads URDF itself, mimic joints included, but only STL and OBJ meshes from paths, and it makes one convex hull of
each collision mesh. What it cannot read is converted (trimesh), what should not be one hull is decomposed (CoACD); both
are kept in the cache by the content of the file they came from.
"""

from __future__ import annotations

import copy
import hashlib
import os
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

import mujoco

from manikin.assets.compiled import check
from manikin.assets.meshes import piece_files, read_mesh, write_obj
from manikin.assets.paths import cache_root, keep
from manikin.errors import AssetError, SceneError

__all__ = ["find_mesh", "load"]

_NATIVE = (".stl", ".obj", ".msh")


def load(path: Path, *, packages: Mapping[str, str] | None = None, convex: bool = False) -> mujoco.MjSpec:
    """Read a URDF file.

    Args:
        path: the file.
        packages: folder of each package that ``package://`` paths name; others are looked for among the folders above
            the file and in ROS_PACKAGE_PATH.
        convex: take collision meshes apart into convex pieces (needs CoACD), instead of one hull each.

    Raises:
        AssetError: when the file or a mesh is missing.
        SceneError: when it is no URDF, or MuJoCo cannot compile it.
        ConfigError: when a package is needed that is not installed.
    """
    if not path.is_file():
        raise AssetError(f"there is no file {path}")
    try:
        robot = ET.parse(path).getroot()
    except ET.ParseError as error:
        raise SceneError(f"{path}: {error}") from error
    if robot.tag != "robot":
        raise SceneError(f"{path}: a URDF begins with <robot>, this file with <{robot.tag}>")
    _check_tree(robot, path)
    compiler = robot.find("mujoco/compiler")
    folder = path.parent / (compiler.get("meshdir", "") if compiler is not None else "")
    for kind in ("visual", "collision"):
        for link in robot.iter("link"):
            for element in link.findall(kind):
                _local_mesh(link, element, folder / path.name, packages or {}, convex and kind == "collision")
    for foreign in [e for e in robot if e.tag in ("mujoco", "gazebo", "transmission")]:
        robot.remove(foreign)
    option = ET.SubElement(ET.SubElement(robot, "mujoco"), "compiler")
    option.attrib.update(discardvisual="false", fusestatic="false", strippath="false")
    try:
        spec = mujoco.MjSpec.from_string(ET.tostring(robot, encoding="unicode"))
        check(spec, folders=[path.parent])
    except ValueError as error:
        raise SceneError(f"{path} does not compile: {error}") from error
    _show(spec)
    return spec


def find_mesh(name: str, path: Path, packages: Mapping[str, str]) -> Path:
    """The file that a URDF in the folder of ``path`` calls ``name``.

    Raises :class:`AssetError` that says where it looked.
    """
    if name.startswith("package://"):
        package, _, rest = name.removeprefix("package://").partition("/")
        if package in packages:
            places = [Path(packages[package]).expanduser()]
        else:
            above = path.resolve().parents
            places = [folder for folder in above if folder.name == package] + [folder / package for folder in above]
            places += [Path(p) / package for p in os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep) if p]
        for place in places:
            if (place / rest).is_file():
                return place / rest
        raise AssetError(
            f"{path.name} needs {name!r}, which is not in {', '.join(map(str, places[:4]))} ...; give the package's "
            f"folder: packages={{{package!r}: '/folder/of/{package}'}}"
        )
    mesh = Path(name.removeprefix("file://"))
    mesh = mesh if mesh.is_absolute() else path.resolve().parent / mesh
    if not mesh.is_file():
        raise AssetError(f"{path.name} needs {name!r}, and there is no {mesh}")
    return mesh


def _check_tree(robot: ET.Element, path: Path) -> None:
    """Every joint joins two links that exist; one link is the root, and it gets MuJoCo's world as its parent."""
    links = [link.get("name", "") for link in robot.findall("link")]
    children = set()
    for joint in robot.findall("joint"):
        for end in ("parent", "child"):
            element = joint.find(end)
            name = "" if element is None else element.get("link", "")
            if name not in links:
                raise SceneError(f"{path.name}: joint {joint.get('name')!r} has no link {name!r} as its {end}")
            if end == "child":
                children.add(name)
    roots = [name for name in links if name not in children]
    if len(roots) != 1:
        raise SceneError(f"{path.name}: a URDF has one root link; this one has {', '.join(roots) or 'none (a loop)'}")
    if roots[0] != "world":
        ET.SubElement(robot, "link", name="world")
        fixed = ET.SubElement(robot, "joint", name="world_joint", type="fixed")
        ET.SubElement(fixed, "parent", link="world")
        ET.SubElement(fixed, "child", link=roots[0])


def _local_mesh(link: ET.Element, element: ET.Element, path: Path, packages: Mapping[str, str], convex: bool) -> None:
    """Let a visual or collision element name files that MuJoCo can read, under names that do not collide."""
    mesh = element.find("geometry/mesh")
    if mesh is None:
        return
    source = find_mesh(mesh.get("filename", ""), path, packages)
    content = source.read_bytes()
    key = f"{source.stem}-{hashlib.sha256(content).hexdigest()[:16]}"
    folder = cache_root() / "meshes"
    folder.mkdir(parents=True, exist_ok=True)
    if convex:
        pieces = piece_files(source, key)
        mesh.set("filename", str(pieces[0]))
        for piece in pieces[1:]:
            another = copy.deepcopy(element)
            another.attrib.pop("name", None)
            found = another.find("geometry/mesh")
            assert found is not None
            found.set("filename", str(piece))
            link.append(another)
        return
    if source.suffix.lower() in _NATIVE:
        target = folder / f"{key}{source.suffix.lower()}"
        if not target.is_file():
            keep(target, lambda file: shutil.copyfile(source, file))
        mesh.set("filename", str(target))
        return
    target = folder / f"{key}.obj"
    colour = folder / f"{key}.rgba"
    if not (target.is_file() and colour.is_file()):
        shape = read_mesh(source)
        keep(colour, lambda file: file.write_text(" ".join(f"{c / 255:.4g}" for c in shape.colour)))
        keep(target, lambda file: write_obj(file, shape.vertices, shape.faces))
    mesh.set("filename", str(target))
    if element.tag == "visual" and element.find("material") is None:
        ET.SubElement(ET.SubElement(element, "material", name=key), "color", rgba=colour.read_text())


def _show(spec: mujoco.MjSpec) -> None:
    """Collision shapes of a link that has visual ones are not shown; joints are limited by manikin's own servos."""
    for body in spec.bodies[1:]:
        collides = [bool(g.contype or g.conaffinity) for g in body.geoms]
        for geom, hit in zip(body.geoms, collides, strict=True):
            geom.group = 3 if hit and not all(collides) else 2
    for joint in spec.joints:
        joint.actfrclimited = mujoco.mjtLimited.mjLIMITED_FALSE
