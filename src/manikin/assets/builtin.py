"""Built-in models: a tuple of :class:`~manikin.spec.robot.Link` becomes an MjSpec."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco

from manikin.errors import SceneError
from manikin.spec.links import Geom, Joint, Link

__all__ = [
    "PAD",
    "SOLREF",
    "VISIBLE_GROUP",
    "COLLISION_GROUP",
    "add_joint",
    "build",
    "make_pad",
    "set_inertia",
    "set_passive",
    "set_range",
]

SOLREF = (0.01, 1.0)  # of every geom: twice a step of 5 ms
VISIBLE_GROUP, COLLISION_GROUP = 2, 3
SOLIMP = (0.95, 0.99, 0.001)  # of pads and couplings: stiffer, which makes a grip creep less
PAD = {"friction": (2.0, 0.02, 0.0001), "condim": 4, "priority": 1}

_GEOM = {
    "box": mujoco.mjtGeom.mjGEOM_BOX,
    "sphere": mujoco.mjtGeom.mjGEOM_SPHERE,
    "capsule": mujoco.mjtGeom.mjGEOM_CAPSULE,
    "cylinder": mujoco.mjtGeom.mjGEOM_CYLINDER,
    "ellipsoid": mujoco.mjtGeom.mjGEOM_ELLIPSOID,
}
_JOINT = {"hinge": mujoco.mjtJoint.mjJNT_HINGE, "slide": mujoco.mjtJoint.mjJNT_SLIDE}


def build(links: Sequence[Link], *, name: str = "model") -> mujoco.MjSpec:
    """Make an MjSpec whose bodies are ``links``, named and ordered as given.

    Geoms carry no mass (each link's own figures do). What is seen is in group 2, what only collides in group 3.
    Raises :class:`SceneError` when a parent is not an earlier link, two names are alike, a joint's range is empty or a
    primitive's type is unknown.
    """
    spec = mujoco.MjSpec()
    spec.modelname = name
    spec.compiler.degree = False
    bodies: dict[str | None, mujoco.MjsBody] = {None: spec.worldbody}
    joints: set[str] = set()
    for link in links:
        if link.name in bodies:
            raise SceneError(f"{name}: two links are called {link.name!r}; names must differ")
        for joint in link.joints:
            if joint.name in joints:
                raise SceneError(f"{name}: two joints are called {joint.name!r}; names must differ")
            if joint.range is not None and not joint.range[0] < joint.range[1]:
                raise SceneError(f"{name}: the range of joint {joint.name!r} is empty: {joint.range}")
            joints.add(joint.name)
        if link.parent not in bodies:
            known = ", ".join(str(k) for k in bodies if k is not None)
            raise SceneError(f"{name}: link {link.name!r} has parent {link.parent!r}, not an earlier link ({known})")
        body = bodies[link.parent].add_body(name=link.name, pos=link.pos, quat=link.quat)
        bodies[link.name] = body
        if link.mass > 0:
            set_inertia(body, link)
        for joint in link.joints:
            add_joint(body, joint)
        for geom in link.geoms:
            _add_geom(body, geom, where=f"{name}: link {link.name!r}")
    return spec


def make_pad(geom: mujoco.MjsGeom, friction: float | None = None) -> None:
    """Give a geom the contact properties of a finger pad: high friction, torsion, priority over what it touches."""
    geom.friction, geom.condim, geom.priority = PAD["friction"], PAD["condim"], PAD["priority"]
    if friction is not None:
        geom.friction[0] = friction
    geom.solimp[:3] = SOLIMP
    geom.solref[:2] = SOLREF


def set_inertia(body: mujoco.MjsBody, link: Link) -> None:
    """Set a body's mass, centre of mass and inertia."""
    body.explicitinertial = True
    body.mass, body.ipos = link.mass, link.com
    if len(link.inertia) == 6:
        body.fullinertia = link.inertia
    else:
        body.inertia, body.iquat = link.inertia, link.com_quat


def set_passive(made: mujoco.MjsJoint, joint: Joint) -> None:
    """Set a joint's armature, friction, damping and spring."""
    made.armature, made.frictionloss, made.springref = joint.armature, joint.frictionloss, joint.springref
    made.damping, made.stiffness = (joint.damping, 0, 0), (joint.stiffness, 0, 0)  # polynomials, linear term first


def set_range(made: mujoco.MjsJoint, joint: Joint) -> None:
    """Set a joint's limits, where it has some."""
    if joint.range is not None:
        made.range, made.limited = joint.range, mujoco.mjtLimited.mjLIMITED_TRUE


def add_joint(body: mujoco.MjsBody, joint: Joint) -> None:
    """Give a body one more joint."""
    made = body.add_joint(
        name=joint.name,
        type=_JOINT[joint.type],
        axis=joint.axis,
        pos=joint.pos,
    )
    set_passive(made, joint)
    set_range(made, joint)


def _add_geom(body: mujoco.MjsBody, geom: Geom, *, where: str) -> None:
    if geom.type not in _GEOM:
        raise SceneError(f"{where}: unknown geom type {geom.type!r}; valid: {', '.join(_GEOM)}")
    bits = int(geom.collide)
    made = body.add_geom(
        type=_GEOM[geom.type],
        size=(*geom.size, 0, 0)[:3],
        pos=geom.pos,
        quat=geom.quat,
        rgba=geom.rgba,
        mass=0,
        contype=bits,
        conaffinity=bits,
        group=VISIBLE_GROUP if geom.visible else COLLISION_GROUP,
    )
    if geom.name:
        made.name = geom.name
    made.solref[:2] = SOLREF
    if geom.pad:
        make_pad(made)
