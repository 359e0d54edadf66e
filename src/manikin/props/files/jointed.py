"""A cabinet, a door, a box with a lid from an MJCF or URDF file, ready for ``b.articulation``."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import mujoco
import numpy as np

from manikin.assets import urdf
from manikin.assets.compiled import check
from manikin.assets.lint import lint
from manikin.assets.paths import absolute
from manikin.errors import AssetError, SceneError, UnknownNameError

__all__ = ["articulation_from_file"]

_WORDS = ("handle", "nob")  # what handles are called in files
_HINGE, _SLIDE, _FREE = (
    int(k) for k in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_FREE)
)

Place = str | Sequence[float]


def articulation_from_file(
    path: str | os.PathLike[str],
    *,
    root: str = "",
    handles: Mapping[str, Place] | None = None,
    packages: Mapping[str, str] | None = None,
    convex: bool = False,
) -> mujoco.MjSpec:
    """The model of an articulated thing, for ``b.articulation("cabinet", model)``.

    It stands fixed, so a free joint of its first body is left out, and so are the file's actuators, sensors,
    keyframes, lights, cameras and floors. Bodies without a name are called ``link0`` and so on. A site
    ``handle/JOINT`` marks the handle of each joint that has one.

    Args:
        path: the MJCF or URDF file.
        root: the body that is the thing, when the file has several.
        handles: joint -> its handle: the name of a site, a geom or a body, or a place (x, y, z) [m] in the frame of
            the joint's body. For other joints a site, geom or body that moves with the joint and has "handle" or
            "knob" in its name is taken, in this order; a joint may have none.
        packages: folder of each package that ``package://`` paths of a URDF name.
        convex: take a URDF's collision meshes apart into convex pieces (needs CoACD).

    Raises:
        AssetError: the file or one of its meshes is missing.
        SceneError: it does not compile, has no joints, a ball joint, a joint without a name or geoms outside bodies.
        UnknownNameError: there is no such root, joint or handle; lists what there is.
    """
    place = absolute(path)
    spec = _read(place, packages, convex)
    _name_bodies(spec)
    top = _top(spec, root, place.name)
    for element in [*spec.actuators, *spec.sensors, *spec.keys, *spec.lights, *spec.cameras]:
        spec.delete(element)
    for other in [b for b in spec.worldbody.bodies if b.name != top.name]:
        spec.delete(other)
    for geom in list(spec.worldbody.geoms):
        if int(geom.type) != int(mujoco.mjtGeom.mjGEOM_PLANE):
            raise SceneError(f"{place.name}: geom {geom.name!r} is in no body; put it into body {top.name!r}")
        spec.delete(geom)
    for joint in list(spec.joints):
        if int(joint.type) == _FREE:
            spec.delete(joint)
    bodies = _below(top)
    for joint in (j for body in bodies for j in body.joints):
        where = f"{place.name}: body {joint.parent.name!r}"
        if not joint.name:
            raise SceneError(f"{where} has a joint without a name; name it, as tasks ask for it by name")
        if int(joint.type) not in (_HINGE, _SLIDE):
            raise SceneError(f"{where} has the ball joint {joint.name!r}; joints of an articulation turn or slide")
    names = [j.name for body in bodies for j in body.joints]
    if not names:
        raise SceneError(f"{place.name} has no joints; a thing without them is a part: manikin object")
    for wanted in handles or {}:
        if wanted not in names:
            raise UnknownNameError(f"joint of {place.name}", wanted, names)
    _mark(spec, bodies, handles or {}, place.name)
    return spec


def _read(place: Path, packages: Mapping[str, str] | None, convex: bool) -> mujoco.MjSpec:
    if not place.is_file():
        raise AssetError(f"there is no file {place}")
    lint(place)
    if place.suffix.lower() == ".urdf":
        return urdf.load(place, packages=packages, convex=convex)
    try:
        spec = mujoco.MjSpec.from_file(str(place))
        check(spec, folders=[place.parent])
    except ValueError as error:
        raise SceneError(f"{place} does not compile: {error}") from error
    # a scene that the thing is attached to has folders of its own
    for listed, folder in ((spec.meshes, spec.meshdir), (spec.textures, spec.texturedir), (spec.hfields, spec.meshdir)):
        for asset in listed:
            if asset.file:
                asset.file = str(place.parent / folder / asset.file)
    spec.meshdir = spec.texturedir = ""
    return spec


def _top(spec: mujoco.MjSpec, root: str, file: str) -> mujoco.MjsBody:
    tops = list(spec.worldbody.bodies)
    if root:
        found = next((b for b in tops if b.name == root), None)
        if found is None:
            raise UnknownNameError(f"body in the world of {file}", root, [b.name for b in tops])
        return found
    with_joints = [b for b in tops if any(len(list(c.joints)) for c in _below(b))]
    if len(tops) > 1 and len(with_joints) != 1:
        names = ", ".join(repr(b.name) for b in tops)
        raise SceneError(f"{file} has the bodies {names} in the world; say which is the thing: root=...")
    if not tops:
        raise SceneError(f"{file} has no bodies")
    return with_joints[0] if with_joints else tops[0]


def _name_bodies(spec: mujoco.MjSpec) -> None:
    """Bodies without a name are called ``link0``, ``link1`` and so on."""
    taken = {b.name for b in spec.bodies}
    fresh = (f"link{k}" for k in itertools.count() if f"link{k}" not in taken)
    for body in spec.bodies[1:]:
        if not body.name:
            body.name = next(fresh)


def _below(body: mujoco.MjsBody) -> list[mujoco.MjsBody]:
    return [body] + [b for child in body.bodies for b in _below(child)]


def _moved(body: mujoco.MjsBody) -> list[mujoco.MjsBody]:
    """A body and those that move with it, without joints of their own."""
    return [body] + [b for child in body.bodies if not list(child.joints) for b in _moved(child)]


def _mark(spec: mujoco.MjSpec, bodies: list[mujoco.MjsBody], handles: Mapping[str, Place], file: str) -> None:
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    known = {s.name for s in spec.sites}
    for body in bodies:
        for joint in body.joints:
            name = f"handle/{joint.name}"
            if name in known and joint.name not in handles:
                continue
            given = handles.get(joint.name)
            if given is None or isinstance(given, str):
                point = _found(body, given, data, joint.name, file)
                if point is None:
                    continue
                frame = data.xmat[body.id].reshape(3, 3)
                pos = frame.T @ (point - data.xpos[body.id])
            else:
                pos = np.asarray(given, float)
                if pos.shape != (3,) or not np.isfinite(pos).all():
                    raise SceneError(f"the handle of {joint.name!r} is a name or (x, y, z), not {given!r}")
            if name in known:
                spec.delete(spec.site(name))
            body.add_site(name=name, pos=pos, size=[0.005, 0, 0], group=4)


def _found(body: mujoco.MjsBody, wanted: str | None, data: mujoco.MjData, joint: str, file: str) -> np.ndarray | None:
    """Where the handle is in the world (3,): the one called ``wanted``, or whose name says that it is one."""
    moving = _moved(body)
    places: dict[str, np.ndarray] = {}
    for one in moving:
        places |= {s.name: data.site_xpos[s.id].copy() for s in one.sites if s.name}
    for one in moving:
        places |= {g.name: data.geom_xpos[g.id].copy() for g in one.geoms if g.name and g.name not in places}
    for one in moving[1:] if wanted is None else moving:
        geoms = [data.geom_xpos[g.id] for g in one.geoms]
        places.setdefault(one.name, np.mean(geoms, 0) if geoms else data.xpos[one.id].copy())
    if wanted is not None:
        if wanted not in places:
            raise UnknownNameError(f"site, geom or body that moves with {joint!r} in {file}", wanted, places)
        return places[wanted]
    named = [k for k in places if any(word in k.lower() for word in _WORDS)]
    return places[named[0]] if named else None
