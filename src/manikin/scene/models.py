"""The models that a robot is put together from, built in or the maker's, brought to one form: bodies, joints, geoms and
sites by manikin's names, nothing that a scene decides."""

from __future__ import annotations

import mujoco

from manikin.assets import builtin, menagerie
from manikin.compat.mujoco import forget_authored
from manikin.errors import ConfigError, SceneError
from manikin.spec.robot import GripperSpec, MenagerieModel, RobotFile, RobotSpec

__all__ = ["attach", "find_body", "load", "load_whole"]

_PREFIX = "gripper:"  # while attaching


def load_whole(arm: RobotSpec, from_menagerie: bool) -> mujoco.MjSpec:
    """A robot's model; of one that is put together, its parts at their places."""
    if not arm.parts:
        return load(arm, from_menagerie)
    if from_menagerie and not any(part.spec.menagerie for part in arm.parts):
        raise ConfigError(f"{arm.name!r} has no Menagerie model; use the built-in one")
    root, *others = arm.parts
    spec = load_whole(root.spec, from_menagerie and root.spec.menagerie is not None)
    for part in others:
        child = load_whole(part.spec, from_menagerie and part.spec.menagerie is not None)
        frame = find_body(spec, part.on, arm.name).add_frame(pos=part.pos, quat=part.quat)
        attach(spec, child, frame, part.prefix, kind=f"{part.prefix}part:")
    return spec


def load(part: RobotSpec | GripperSpec, from_menagerie: bool) -> mujoco.MjSpec:
    """One part's model. Raises :class:`ConfigError` where it has no maker's model and that is asked for."""
    if not from_menagerie and not isinstance(part.menagerie, RobotFile):
        return builtin.build(part.links, name=part.name)
    if part.menagerie is None:
        raise ConfigError(f"{part.name!r} has no Menagerie model; use the built-in one")
    spec = menagerie.load(part.menagerie)
    spec = _strip(spec, part.menagerie, part.name)
    for joint in list(spec.joints):
        if int(joint.type) == int(mujoco.mjtJoint.mjJNT_FREE):  # a robot's own base says whether it floats
            spec.delete(joint)
    root = spec.worldbody.first_body()
    root.pos, root.quat = part.links[0].pos, part.links[0].quat
    root.alt.type = mujoco.mjtOrientation.mjORIENTATION_QUAT  # the file may say it with angles
    for link in part.links:
        if link.name in part.menagerie.own_joints:
            body = find_body(spec, link.name, part.name)
            for joint in list(body.joints):
                spec.delete(joint)
            for own in link.joints:
                builtin.add_joint(body, own)
    passive = {joint.name: joint for link in part.links for joint in link.joints}
    for joint in spec.joints:
        if joint.name in passive:
            builtin.set_passive(joint, passive[joint.name])
            builtin.set_range(joint, passive[joint.name])
    for link in part.links:
        if link.name in part.menagerie.own_inertia:
            builtin.set_inertia(find_body(spec, link.name, part.name), link)
        if any(geom.pad for geom in link.geoms):
            for geom in find_body(spec, link.name, part.name).geoms:
                if geom.contype or geom.conaffinity:
                    builtin.make_pad(geom)
    return spec


def _strip(spec: mujoco.MjSpec, model: MenagerieModel, name: str) -> mujoco.MjSpec:
    """Leave bodies, joints, geoms, sites and assets; reset everything a scene decides."""
    for kind in (spec.actuators, spec.sensors, spec.equalities, spec.tendons, spec.excludes, spec.pairs, spec.keys):
        for element in list(kind):
            spec.delete(element)
    for element in (*spec.lights, *spec.cameras):
        spec.delete(element)
    for gone in model.drop:
        spec.delete(spec.joint(gone) or find_body(spec, gone, name))
    for bare in model.bare:
        for geom in list(find_body(spec, bare, name).geoms):
            spec.delete(geom)
    fresh = mujoco.MjSpec()
    spec.option, spec.visual, spec.stat = fresh.option, fresh.visual, fresh.stat
    spec.compiler.fusestatic = False  # a frame or a wheel that stands still keeps its name
    forget_authored(spec)  # or attaching would warn that the parent's options win
    if model.root:
        spec = _subtree(spec, find_body(spec, model.root, name))
    for element in (*spec.bodies, *spec.joints):
        short = element.name.removeprefix(model.prefix)
        element.name = model.rename.get(short, short)
    for geom in spec.geoms:
        collides = bool(geom.contype) or bool(geom.conaffinity)
        geom.group = builtin.COLLISION_GROUP if collides and geom.group >= 3 else builtin.VISIBLE_GROUP
        if collides:
            geom.solref[:2] = builtin.SOLREF
    return spec


def _subtree(spec: mujoco.MjSpec, body: mujoco.MjsBody) -> mujoco.MjSpec:
    """A spec of one body and all that hangs on it, less its sites, whose materials would stay behind."""
    for site in list(spec.sites):
        spec.delete(site)
    alone = mujoco.MjSpec()
    alone.modelname = spec.modelname
    alone.compiler.degree = False  # of joints that are added; what is attached keeps its own unit
    alone.worldbody.add_frame().attach_body(body, _PREFIX, "")
    _unprefix(alone)
    return alone


def attach(
    spec: mujoco.MjSpec, child: mujoco.MjSpec, frame: mujoco.MjsFrame, prefix: str = "", *, kind: str = ""
) -> None:
    """Attach so that names of bodies, joints, geoms and sites begin with ``prefix``, which may be "". Assets keep a
    longer one: those of two Menagerie models share names."""
    for word in ("bodies", "joints", "geoms", "sites"):
        taken, new = ({element.name for element in getattr(one, word)} - {"", "world"} for one in (spec, child))
        if both := taken & {prefix + name for name in new}:
            names = ", ".join(map(repr, sorted(both)))
            raise SceneError(f"arm and gripper both have {word} named {names}; rename them in the gripper's file")
    lasting = kind or prefix + _PREFIX
    spec.attach(child, frame=frame, prefix=lasting)
    _unprefix(spec, lasting, prefix)


def _unprefix(spec: mujoco.MjSpec, lasting: str = _PREFIX, prefix: str = "") -> None:
    """Take the prefix of attaching off again, and put ``prefix`` in its place."""
    for kind in (spec.bodies, spec.joints, spec.geoms, spec.sites):
        for element in kind:
            if element.name.startswith(lasting):
                bare = element.name.removeprefix(lasting)
                element.name = prefix + bare if bare else ""


def find_body(spec: mujoco.MjSpec, name: str, part: str) -> mujoco.MjsBody:
    """The body called ``name``. Raises :class:`SceneError`, which lists what the model of ``part`` has."""
    body = spec.body(name)
    if body is None:
        has = ", ".join(b.name for b in spec.bodies[1:])
        raise SceneError(f"{part}: the model has no body {name!r}; it has: {has}")
    return body
