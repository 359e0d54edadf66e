"""Your own robot: a :class:`RobotSpec` or :class:`GripperSpec` from an MJCF or URDF file."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import mujoco

from manikin.assets import menagerie
from manikin.assets.paths import absolute
from manikin.errors import ConfigError, SceneError, UnknownNameError
from manikin.robots.from_files_base import gains_under, grouped, stands_on, without_tool
from manikin.spec.links import Joint, Link, Quat, Vec3
from manikin.spec.robot import (
    FULL_POSE,
    POSE_CONTROLLERS,
    ArmSpec,
    Base,
    Finger,
    Gains,
    GripperSpec,
    RobotFile,
    RobotSpec,
)

__all__ = ["from_file", "gripper_from_file"]

_KIND: dict[int, Literal["hinge", "slide"]] = {
    int(mujoco.mjtJoint.mjJNT_HINGE): "hinge",
    int(mujoco.mjtJoint.mjJNT_SLIDE): "slide",
}
_FREE = int(mujoco.mjtJoint.mjJNT_FREE)
_STIFFNESS = 10.0  # kp / kd [1/s] of gains made from effort and velocity limits: a joint follows within 0.1 s


def from_file(
    path: str | os.PathLike[str],
    *,
    name: str = "",
    joints: Sequence[str] = (),
    flange: str = "",
    flange_pos: Vec3 = (0, 0, 0),
    flange_quat: Quat = (1, 0, 0, 0),
    gripper: GripperSpec | str | None = None,
    rest: Sequence[float] = (),
    gains: Gains | None = None,
    base: Base | str = "fixed",
    groups: Mapping[str, Sequence[str]] | None = None,
    feet: Sequence[str] = (),
    root: str = "",
    packages: Mapping[str, str] | None = None,
    convex: bool = False,
    **options: Any,
) -> RobotSpec:
    """A robot from an MJCF or URDF file: an arm, or with ``base`` one that drives or stands on its feet.

    Args:
        path: the file.
        name: how robot words call it; default the file's name.
        joints: the arm's, in the file's order; default all that turn or slide, follow no other and are not the
            gripper's. The file's other joints stand still at 0.
        flange: the body that carries the gripper; default the last one that the joints move.
        flange_pos: the flange's place in that body's frame [m].
        flange_quat: its turn, so that z points out of it.
        gripper: a gripper's name, or a spec; one without links is part of this file.
        rest: joint positions [rad or m]; default the file's first keyframe, or the middle of ranges that lack 0.
        gains: default from the file: the position actuators of an MJCF; of a URDF effort e and velocity v, kd = e / v
            and kp = 10 kd.
        base: how it stands: ``fixed``; ``free`` on its ``feet``; ``planar`` or ``differential``, which put three joints
            under it, with gains from its mass. A :class:`Base` names joints that the file has.
        groups: the joints of its parts by name, together all of its joints in order; default ``arm``, or ``legs`` of a
            free base.
        feet: the bodies that carry a robot with a free base.
        root: the body that is the robot, when the file has several.
        packages: folder of each package that ``package://`` paths name.
        convex: take a URDF's collision meshes apart into convex pieces (needs CoACD).
        options: further fields of :class:`ArmSpec`, for example ``base_pos``, ``gravcomp``, ``tools`` of a robot with
            several, or ``excludes``, which are added to the file's. ``controllers`` of an arm of fewer than six joints
            leave out, by default, those that ask for a full pose.

    Raises:
        AssetError: when the file or one of its meshes is missing.
        SceneError: when it does not compile, lacks what is named, names two parts alike, or has an empty range.
        ConfigError: when gains are neither in the file nor given, a joint is chosen twice or is in no group, or a free
            base has no feet; says the line to write.
    """
    model = _file(path, root=root, packages=packages, convex=convex)
    spec = menagerie.load(model)
    top = _root(spec, root, model.file)
    bodies = _below(top)
    movable = [joint for body in bodies for joint in body.joints if int(joint.type) != _FREE]
    stand = stands_on(spec, top, bodies, base, feet, model.file)
    if ball := [joint.name for joint in movable if int(joint.type) not in _KIND]:
        raise SceneError(f"{model.file}: {ball[0]!r} is a ball joint; a robot's joints turn or slide")
    own = gripper if isinstance(gripper, GripperSpec) and not gripper.links else None
    follow = {one for one, *_ in _couplings(spec)} | set(own.joints if own is not None else ())
    names = [joint.name for joint in movable]
    chosen = tuple(joints) or tuple(n for n in names if n not in follow)
    for wanted in chosen:
        if wanted not in names:
            raise UnknownNameError(f"joint of {model.file}", wanted, names)
    if len(set(chosen)) < len(chosen):
        raise ConfigError(f"an arm has each of its joints once; got joints={', '.join(chosen)}")
    if len(chosen) < FULL_POSE:  # it cannot turn its tool in every way at every place
        options.setdefault("controllers", tuple(c for c in ArmSpec.controllers if c not in POSE_CONTROLLERS))
    if stand.base.drives:
        options["controllers"] = (*options.get("controllers", ArmSpec.controllers), "base_vel")
    kept = {*chosen, *(own.joints if own is not None else ())}
    model = _file(
        path,
        root=top.name,
        packages=packages,
        convex=convex,
        drop=tuple(n for n in names if n not in kept),
        own_joints=(top.name,) if stand.added else (),
    )
    moving = [joint for joint in movable if joint.name in chosen]
    last = next(body for body in bodies if any(j.name == chosen[-1] for j in body.joints)) if chosen else top
    label = name or Path(path).stem
    links, gains, resting = (
        _links(bodies, kept),
        gains or _gains(spec, moving, model),
        tuple(rest) or _rest(spec, moving),
    )
    if stand.added:
        links = (replace(links[0], joint=stand.added), *links[1:])
        gains = gains_under(stand.base, float(spec.compile().body_mass.sum()), gains)
        chosen, resting = (*stand.base.joints, *chosen), (0.0, 0.0, 0.0, *resting)
    parts = grouped(groups, stand.base, chosen, model.file)
    if stand.base.drives and len(parts) > 1:
        options.setdefault("ik_groups", tuple(part for part in parts if part != "base"))
    if stand.base.kind == "free":
        options.setdefault("gravcomp", False)
        options.setdefault("base_pos", stand.place)
    frame: dict[str, Any] = {
        "flange_body": "" if own is not None else flange or last.name,
        "flange_pos": flange_pos,
        "flange_quat": flange_quat,
        "gripper": gripper.name if isinstance(gripper, GripperSpec) else gripper,
    }
    made = ArmSpec(
        name=label,
        title=options.pop("title", label),
        links=links,
        menagerie=model,
        joints=chosen,
        gains=gains,
        base=stand.base,
        groups=parts,
        feet=tuple(feet),
        keyframes={"rest": resting, **options.pop("keyframes", {})},
        source=options.pop("source", str(path)),
        excludes=tuple(dict.fromkeys([*_at_the_base(top), *_excludes(spec, bodies), *options.pop("excludes", ())])),
        **({} if "tools" in options else frame),
        **options,
    )
    bare = stand.base.kind == "free" and not flange and gripper is None and "tools" not in options
    return without_tool(made) if bare else made


def gripper_from_file(
    path: str | os.PathLike[str],
    *,
    name: str = "",
    drivers: Sequence[str],
    open_q: Sequence[float],
    closed_q: Sequence[float],
    fingers: Sequence[Finger],
    tcp_body: str,
    tcp_pos: Vec3,
    gains: Gains | None = None,
    part_of_arm: bool = False,
    mount_pos: Vec3 = (0, 0, 0),
    mount_quat: Quat = (1, 0, 0, 0),
    root: str = "",
    packages: Mapping[str, str] | None = None,
    convex: bool = False,
    **options: Any,
) -> GripperSpec:
    """A gripper from an MJCF or URDF file. Joints that mimic a driver (or are coupled to it) follow it.

    ``part_of_arm``: the file is the arm's, which comes with it. Otherwise it attaches to any flange, its root frame at
    ``mount_pos`` and ``mount_quat``. ``options`` are further fields of :class:`GripperSpec`; the rest is as for
    :func:`from_file`.
    """
    model = _file(path, root=root, packages=packages, convex=convex)
    spec = menagerie.load(model)
    top = _root(spec, root, model.file)
    bodies = _below(top)
    movable = [joint for body in bodies for joint in body.joints]
    known = [joint.name for joint in movable]
    for wanted in drivers:
        if wanted not in known:
            raise UnknownNameError(f"joint of {model.file}", wanted, known)
    coupled = [(one, other, poly) for one, other, poly in _couplings(spec) if other in drivers]
    joints = [n for n in known if n in drivers or any(n == one for one, *_ in coupled)]
    drop = tuple(n for n in known if n not in joints)
    model = _file(path, root=top.name, packages=packages, convex=convex, drop=drop)
    moving = [joint for joint in movable if joint.name in drivers]
    links = _links(bodies, set(joints), pos=mount_pos, quat=mount_quat)
    return GripperSpec(
        name=name or Path(path).stem,
        title=options.pop("title", name or Path(path).stem),
        links=() if part_of_arm else links,
        menagerie=None if part_of_arm else model,
        joints=tuple(joints),
        drivers=tuple(drivers),
        open_q=tuple(open_q),
        closed_q=tuple(closed_q),
        gains=gains or _gains(spec, moving, model),
        fingers=tuple(fingers),
        tcp_body=tcp_body,
        tcp_pos=tcp_pos,
        followers={one: (other, poly[1]) for one, other, poly in coupled if one not in drivers},
        equalities=tuple(coupled),
        source=options.pop("source", str(path)),
        excludes=(*_excludes(spec, bodies), *options.pop("excludes", ())),
        **options,
    )


def _file(path: str | os.PathLike[str], **options: Any) -> RobotFile:
    place = absolute(path)
    options["packages"] = options["packages"] or {}
    return RobotFile(folder=str(place.parent), file=place.name, **options)


def _root(spec: mujoco.MjSpec, root: str, file: str) -> mujoco.MjsBody:
    if root:
        body = spec.body(root)
        if body is None:
            raise UnknownNameError(f"body of {file}", root, [b.name for b in spec.bodies[1:]])
        return body
    tops = [body for body in spec.bodies[1:] if body.parent == spec.worldbody]
    if len(tops) != 1:
        names = ", ".join(repr(b.name) for b in tops) or "no bodies"
        raise SceneError(f"{file} has {names} in the world; say which is the robot: root=...")
    if not tops[0].name:
        raise SceneError(f"{file}: the robot's first body has no name")
    return tops[0]


def _below(body: mujoco.MjsBody) -> list[mujoco.MjsBody]:
    """A body and all that hangs on it, depth first, as MuJoCo numbers them."""
    return [body] + [b for child in body.bodies for b in _below(child)]


def _links(
    bodies: list[mujoco.MjsBody], kept: set[str], pos: Vec3 = (0, 0, 0), quat: Quat = (1, 0, 0, 0)
) -> tuple[Link, ...]:
    links = []
    for body in bodies:
        joints = tuple(_joint(joint) for joint in body.joints if joint.name in kept)
        first = body is bodies[0]
        links.append(
            Link(
                name=body.name,
                parent=None if first else body.parent.name,
                pos=pos if first else tuple(map(float, body.pos)),  # type: ignore[arg-type]
                quat=quat if first else tuple(map(float, body.quat)),  # type: ignore[arg-type]
                joint=joints if len(joints) > 1 else joints[0] if joints else None,
                mass=_declared_mass(body),
            )
        )
    return tuple(links)


def _declared_mass(body: mujoco.MjsBody) -> float:
    """[kg] that the file gives a body or its shapes; 0 where it gives none and MuJoCo takes water's density."""
    if body.explicitinertial:
        return float(body.mass)
    return sum(float(geom.mass) for geom in body.geoms if geom.mass > 0)  # NaN where it is not given


def _joint(joint: mujoco.MjsJoint) -> Joint:
    limited = joint.range[0] < joint.range[1]
    return Joint(
        name=joint.name,
        type=_KIND[int(joint.type)],
        axis=tuple(map(float, joint.axis)),  # type: ignore[arg-type]
        pos=tuple(map(float, joint.pos)),  # type: ignore[arg-type]
        range=(float(joint.range[0]), float(joint.range[1])) if limited else None,
        damping=float(joint.damping[0]),
        armature=float(joint.armature),
        frictionloss=float(joint.frictionloss),
        stiffness=float(joint.stiffness[0]),
        springref=float(joint.springref),
    )


def _couplings(spec: mujoco.MjSpec) -> list[tuple[str, str, tuple[float, ...]]]:
    """(joint, the joint it follows, polynomial) of the file's mimic joints and joint equalities."""
    kind = int(mujoco.mjtEq.mjEQ_JOINT)
    return [
        (e.name1, e.name2, tuple(map(float, e.data[:5])))
        for e in spec.equalities
        if int(e.type) == kind and e.name1 and e.name2
    ]


def _at_the_base(top: mujoco.MjsBody) -> list[tuple[str, str]]:
    """The base and each link on it: MuJoCo lets parent and child overlap, but not where the parent stands fixed."""
    return [(top.name, child.name) for child in top.bodies]


def _excludes(spec: mujoco.MjSpec, bodies: list[mujoco.MjsBody]) -> tuple[tuple[str, str], ...]:
    """Pairs of the robot's bodies that the file lets overlap."""
    own = {body.name for body in bodies}
    return tuple((e.bodyname1, e.bodyname2) for e in spec.excludes if {e.bodyname1, e.bodyname2} <= own)


def _rest(spec: mujoco.MjSpec, joints: list[mujoco.MjsJoint]) -> tuple[float, ...]:
    model = spec.compile()
    if model.nkey:
        return tuple(float(model.key_qpos[0][model.joint(j.name).qposadr[0]]) for j in joints)
    return tuple(
        0.0 if not j.range[0] < j.range[1] or j.range[0] <= 0 <= j.range[1] else float(sum(j.range) / 2) for j in joints
    )


def _gains(spec: mujoco.MjSpec, joints: list[mujoco.MjsJoint], model: RobotFile) -> Gains:
    if model.file.lower().endswith(".urdf"):
        return _urdf_gains(joints, model)
    by_joint = {a.target: a for a in spec.actuators if int(a.trntype) == int(mujoco.mjtTrn.mjTRN_JOINT)}
    kp, kd, force = [], [], []
    for joint in joints:
        actuator = by_joint.get(joint.name)
        gain = float(actuator.gainprm[0]) if actuator is not None else 0.0
        if actuator is None or not math.isclose(gain, -float(actuator.biasprm[1])) or gain <= 0:
            raise ConfigError(
                f"{model.file} has no position actuator on {joint.name!r}; add one, <position joint={joint.name!r} "
                'kp="..." kv="..." forcerange="..."/>, or give gains=Gains(...)'
            )
        low, high = actuator.forcerange
        most = float(high) if low < high else float(joint.actfrcrange[1]) if joint.actfrcrange[1] > 0 else math.inf
        if math.isinf(most):
            raise ConfigError(
                f"{model.file}: the actuator of {joint.name!r} has no limit; add forcerange or give gains="
            )
        velocity = float(actuator.biasprm[2])
        if velocity > 0:  # dampratio, which MuJoCo turns into damping with the inertia it compiles
            velocity = float(spec.compile().actuator_biasprm[actuator.id, 2])
        kp.append(gain)
        kd.append(-velocity + float(joint.damping[0]))
        force.append(most)
    return Gains(kp=tuple(kp), kd=tuple(kd), force=tuple(force), source=model.file)


def _urdf_gains(joints: list[mujoco.MjsJoint], model: RobotFile) -> Gains:
    import xml.etree.ElementTree as ET

    limits = {j.get("name"): j.find("limit") for j in ET.parse(Path(model.folder) / model.file).iter("joint")}
    kd, force = [], []
    for joint in joints:
        limit = limits.get(joint.name)
        effort, velocity = (0.0 if limit is None else float(limit.get(k, 0)) for k in ("effort", "velocity"))
        if effort <= 0 or velocity <= 0:
            raise ConfigError(
                f"{model.file}: joint {joint.name!r} has no effort and velocity to make gains from; write "
                '<limit effort="..." velocity="..." .../> or give gains=Gains(...)'
            )
        kd.append(effort / velocity)
        force.append(effort)
    return Gains(
        kp=tuple(_STIFFNESS * k for k in kd),
        kd=tuple(kd),
        force=tuple(force),
        source=f"{model.file}: effort / velocity, kp = {_STIFFNESS:g} kd",
    )
