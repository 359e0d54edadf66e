"""An arm and its gripper as one MjSpec, ready to attach to a scene.

Built-in and Menagerie models come out alike: same body and joint names, manikin's own actuators, equalities and
excludes from the specs, contact properties of pads, gravity compensation, a TCP frame and a closing direction per
finger. No physics options, keyframes, lights or foreign actuators remain.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

from manikin.assets import builtin, menagerie
from manikin.errors import ConfigError, SceneError, UnknownNameError
from manikin.spec.robot import ArmSpec, Finger, Gains, GripperSpec, MenagerieModel, Quat, RobotFile, Vec3

__all__ = ["FAR", "RobotModel", "assemble", "folders"]

# how far a joint without limits is commanded either way [rad or m], by MuJoCo's type of joint
FAR = {int(mujoco.mjtJoint.mjJNT_HINGE): 2 * math.pi, int(mujoco.mjtJoint.mjJNT_SLIDE): 10.0}

_PREFIX = "gripper:"  # while attaching


@dataclass(frozen=True)
class RobotModel:
    """An assembled robot. Names are those inside ``spec``; attaching with a prefix puts it before each of them."""

    spec: mujoco.MjSpec
    arm: ArmSpec
    gripper: GripperSpec | None
    menagerie: bool
    base_body: str
    bodies: tuple[str, ...]
    arm_joints: tuple[str, ...]
    gripper_joints: tuple[str, ...]
    arm_actuators: tuple[str, ...]  # named like their joints
    gripper_actuators: tuple[str, ...]  # one per driver, named like it
    torque_joints: tuple[str, ...]  # arm joints whose actuators take torques; the others take positions
    tcp_body: str
    tcp_site: str
    finger_bodies: tuple[str, ...]
    finger_sites: tuple[str, ...]  # z is the closing direction
    pad_geoms: tuple[str, ...]

    @property
    def joints(self) -> tuple[str, ...]:
        """All joints in qpos order: the arm's, then the gripper's."""
        return self.arm_joints + self.gripper_joints

    @property
    def actuators(self) -> tuple[str, ...]:
        """All actuators in ctrl order: the arm's, then one per gripper driver."""
        return self.arm_actuators + self.gripper_actuators

    def qpos(self, keyframe: str = "rest", *, gripper: float = 1.0) -> np.ndarray:
        """Joint positions (nq,) [rad, m] of an arm keyframe with the gripper at ``gripper`` (1 open, 0 closed)."""
        return np.concatenate([self.arm_qpos(keyframe), self.gripper_qpos(gripper)])

    def arm_qpos(self, keyframe: str = "rest") -> np.ndarray:
        """Positions (len(arm_joints),) [rad] of a keyframe. Raises :class:`UnknownNameError`."""
        if keyframe not in self.arm.keyframes:
            raise UnknownNameError(f"keyframe of {self.arm.name}", keyframe, self.arm.keyframes)
        return np.asarray(self.arm.keyframes[keyframe], dtype=float)

    def gripper_qpos(self, opening: float = 1.0) -> np.ndarray:
        """Positions (len(gripper_joints),) [rad, m], followers included; ``opening`` 1 is open, 0 closed, within the
        joints' limits."""
        if self.gripper is None:
            return np.zeros(0)
        limit = {joint.name: joint.range for link in self.arm.links for joint in link.joints}  # of a jaw of the arm's
        low, high = np.array([limit.get(name) or (-np.inf, np.inf) for name in self.gripper_joints]).reshape(-1, 2).T
        return np.clip(self.gripper.joint_positions(opening), low, high)


def folders(robots: Iterable[tuple[ArmSpec, GripperSpec | None, bool]]) -> list[Path]:
    """Where the model files lie that robots are made of; each robot is (arm, gripper, from Menagerie?)."""
    parts = [(part, makers) for arm, gripper, makers in robots for part in (arm, gripper) if part is not None]
    models = [part.menagerie for part, makers in parts if makers or isinstance(part.menagerie, RobotFile)]
    return [menagerie.find(model).parent for model in models if model is not None]


def assemble(
    arm: ArmSpec, gripper: GripperSpec | None, *, menagerie: bool = False, torque: Collection[str] = ()
) -> RobotModel:
    """Load or build the arm and the gripper, join them at the flange and make them manikin's own.

    ``menagerie=True`` takes both models from MuJoCo Menagerie; a gripper that is not there stays the built-in one.
    The arm joints named in ``torque`` get motors instead of position servos, and keep only the damping of the joint
    itself. Each call makes a new MjSpec. Raises :class:`AssetError` when a model is missing, :class:`SceneError` when
    it does not compile or does not have the parts the specs name, :class:`ConfigError` for a pair that cannot be
    joined.
    """
    if gripper is not None and not gripper.links and gripper.name != arm.gripper:
        raise ConfigError(f"gripper {gripper.name!r} is part of its arm's model and does not attach to {arm.name!r}")
    if not arm.flange_body and (gripper is None or gripper.links):
        other = "nothing" if gripper is None else repr(gripper.name)
        raise ConfigError(f"{arm.name!r} has its own gripper {arm.gripper!r} and no flange; it cannot have {other}")
    spec = _load(arm, menagerie)
    if gripper is not None and gripper.links:
        child = _load(gripper, menagerie and gripper.menagerie is not None)
        frame = _body(spec, arm.flange_body, arm.name).add_frame(pos=arm.flange_pos, quat=arm.flange_quat)
        _attach(spec, child, frame)

    arm_joints = arm.joints
    gripper_joints = gripper.joints if gripper is not None else ()
    _check_joints(spec, arm_joints + gripper_joints, arm.name)
    fingers = gripper.fingers if gripper is not None else ()
    pads = _contacts(spec, fingers)
    for body in spec.bodies[1:]:
        body.gravcomp = float(arm.gravcomp)
    arm_actuators = _servo(spec, arm_joints, arm.gains, torque=torque, effort=arm.effort)
    gripper_actuators: tuple[str, ...] = ()
    if gripper is not None:
        gripper_actuators = _servo(spec, gripper.drivers, gripper.gains, reach=_reach(gripper))
        _couple(spec, gripper)
    for one, other in (*arm.excludes, *(gripper.excludes if gripper is not None else ())):
        spec.add_exclude(bodyname1=one, bodyname2=other)
    if gripper is not None:
        _frame(spec, gripper.tcp_body, gripper.tcp_pos, gripper.tcp_quat)
    else:
        _frame(spec, arm.flange_body, arm.flange_pos, arm.flange_quat)
    bodies = tuple(b.name for b in spec.bodies[1:])
    for k, finger in enumerate(fingers):
        site = _body(spec, finger.body, arm.name).add_site(
            name=f"finger_closing_{k}", quat=_z_to(finger.closing), size=(0.002, 0.002, 0.002), group=4
        )
        site.material = ""
    return RobotModel(
        spec=spec,
        arm=arm,
        gripper=gripper,
        menagerie=menagerie,
        base_body=bodies[0],
        bodies=bodies,
        arm_joints=arm_joints,
        gripper_joints=gripper_joints,
        arm_actuators=arm_actuators,
        gripper_actuators=gripper_actuators,
        torque_joints=tuple(j for j in arm_joints if j in torque),
        tcp_body="tcp",
        tcp_site="tcp",
        finger_bodies=tuple(f.body for f in fingers),
        finger_sites=tuple(f"finger_closing_{k}" for k in range(len(fingers))),
        pad_geoms=pads,
    )


def _load(part: ArmSpec | GripperSpec, from_menagerie: bool) -> mujoco.MjSpec:
    if not from_menagerie and not isinstance(part.menagerie, RobotFile):
        return builtin.build(part.links, name=part.name)
    if part.menagerie is None:
        raise ConfigError(f"{part.name!r} has no Menagerie model; use the built-in one")
    spec = menagerie.load(part.menagerie)
    spec = _strip(spec, part.menagerie, part.name)
    root = spec.worldbody.first_body()
    root.pos, root.quat = part.links[0].pos, part.links[0].quat
    root.alt.type = mujoco.mjtOrientation.mjORIENTATION_QUAT  # the file may say it with angles
    for link in part.links:
        if link.name in part.menagerie.own_joints:
            body = _body(spec, link.name, part.name)
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
            builtin.set_inertia(_body(spec, link.name, part.name), link)
    return spec


def _strip(spec: mujoco.MjSpec, model: MenagerieModel, name: str) -> mujoco.MjSpec:
    """Leave bodies, joints, geoms, sites and assets; reset everything a scene decides."""
    for kind in (spec.actuators, spec.sensors, spec.equalities, spec.tendons, spec.excludes, spec.pairs, spec.keys):
        for element in list(kind):
            spec.delete(element)
    for element in (*spec.lights, *spec.cameras):
        spec.delete(element)
    for gone in model.drop:
        spec.delete(spec.joint(gone) or _body(spec, gone, name))
    for bare in model.bare:
        for geom in list(_body(spec, bare, name).geoms):
            spec.delete(geom)
    fresh = mujoco.MjSpec()
    spec.option, spec.visual, spec.stat = fresh.option, fresh.visual, fresh.stat
    for field in dir(spec.authored):  # or attaching would warn that the parent's options win
        if not field.startswith("_"):
            setattr(spec.authored, field, 0)
    if model.root:
        spec = _subtree(spec, _body(spec, model.root, name))
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
    alone.worldbody.add_frame().attach_body(body, _PREFIX, "")
    _unprefix(alone)
    return alone


def _attach(spec: mujoco.MjSpec, child: mujoco.MjSpec, frame: mujoco.MjsFrame) -> None:
    """Attach without a lasting prefix: assets of two Menagerie models share names, bodies and joints do not."""
    taken = {element.name for element in (*spec.bodies, *spec.joints)}
    spec.attach(child, frame=frame, prefix=_PREFIX)
    for name in _unprefix(spec):
        if name in taken:
            raise SceneError(f"arm and gripper both have a part named {name!r}; rename one in its spec")


def _unprefix(spec: mujoco.MjSpec) -> list[str]:
    """Take the prefix of attaching off again; what had it, by new name."""
    names = []
    for kind in (spec.bodies, spec.joints, spec.geoms, spec.sites):
        for element in kind:
            if element.name.startswith(_PREFIX):
                element.name = element.name.removeprefix(_PREFIX)
                names.append(element.name)
    return [name for name in names if name]


def _contacts(spec: mujoco.MjSpec, fingers: Iterable[Finger]) -> tuple[str, ...]:
    """Names of the fingers' pads: what a built-in model marks as pad, or every colliding geom of a maker's finger."""
    names = []
    for k, finger in enumerate(fingers):
        colliding = [g for g in _body(spec, finger.body, "gripper").geoms if g.contype or g.conaffinity]
        marked = [g for g in colliding if g.priority == builtin.PAD["priority"] and g.condim == builtin.PAD["condim"]]
        for i, geom in enumerate(marked or colliding):
            builtin.make_pad(geom)
            geom.name = geom.name or f"finger_pad_{k}_{i}"
            names.append(geom.name)
    return tuple(names)


def _servo(
    spec: mujoco.MjSpec,
    joints: tuple[str, ...],
    gains: Gains,
    *,
    reach: tuple[tuple[float, float], ...] | None = None,
    torque: Collection[str] = (),
    effort: tuple[float, ...] = (),
) -> tuple[str, ...]:
    """Position actuators named like their joints, motors for those in ``torque``.

    A servo's kd goes on the joint: there it stays implicit also while the force is at its limit, where a damped
    actuator chatters; a gripper that holds something always is."""
    if not len(joints) == len(gains.kp) == len(gains.kd) == len(gains.force):
        raise SceneError(f"{len(joints)} joints ({', '.join(joints)}) but gains for {len(gains.kp)}")
    for i, name in enumerate(joints):
        joint = spec.joint(name)
        kp, kd, force = gains.kp[i], gains.kd[i], gains.force[i]
        low, high = reach[i] if reach is not None else _range(joint)
        actuator = spec.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        actuator.gaintype = mujoco.mjtGain.mjGAIN_FIXED
        if name in torque:
            force = effort[i] if effort else force
            actuator.gainprm[0], actuator.biastype = 1.0, mujoco.mjtBias.mjBIAS_NONE
            actuator.forcelimited = actuator.ctrllimited = mujoco.mjtLimited.mjLIMITED_TRUE
            actuator.forcerange = actuator.ctrlrange = (-force, force)
            continue
        actuator.biastype = mujoco.mjtBias.mjBIAS_AFFINE
        actuator.gainprm[0] = kp
        actuator.biasprm[:3] = (0, -kp, 0)
        joint.damping[0] = kd
        actuator.forcelimited = actuator.ctrllimited = mujoco.mjtLimited.mjLIMITED_TRUE
        actuator.forcerange, actuator.ctrlrange = (-force, force), (low, high)
    return joints


def _range(joint: mujoco.MjsJoint) -> tuple[float, float]:
    """A joint's own range; one without limits is commanded within a turn, or 10 m, either way."""
    if joint.range[0] < joint.range[1]:
        return float(joint.range[0]), float(joint.range[1])
    far = FAR[int(joint.type)]
    return -far, far


def _reach(gripper: GripperSpec) -> tuple[tuple[float, float], ...]:
    """Control range of each driver: what open and closed command, which may exceed the joint's range."""
    return tuple((min(a, b), max(a, b)) for a, b in zip(gripper.open_q, gripper.closed_q, strict=True))


def _couple(spec: mujoco.MjSpec, gripper: GripperSpec) -> None:
    for joint, other, poly in gripper.equalities:
        equality = spec.add_equality(type=mujoco.mjtEq.mjEQ_JOINT, objtype=mujoco.mjtObj.mjOBJ_JOINT)
        equality.name1, equality.name2 = joint, other
        equality.data[:5] = (*poly, 0, 0, 0, 0)[:5]
        _stiffen(equality)
    for body, other, anchor in gripper.connects:
        equality = spec.add_equality(type=mujoco.mjtEq.mjEQ_CONNECT, objtype=mujoco.mjtObj.mjOBJ_BODY)
        equality.name1, equality.name2 = body, other
        equality.data[:3] = anchor
        _stiffen(equality)


def _stiffen(equality: mujoco.MjsEquality) -> None:
    equality.solref[:2] = builtin.SOLREF
    equality.solimp[:3] = builtin.SOLIMP


def _frame(spec: mujoco.MjSpec, body: str, pos: Vec3, quat: Quat) -> None:
    tcp = _body(spec, body, "TCP").add_body(name="tcp", pos=pos, quat=quat)
    tcp.add_site(name="tcp", size=(0.002, 0.002, 0.002), group=4).material = ""


def _body(spec: mujoco.MjSpec, name: str, part: str) -> mujoco.MjsBody:
    body = spec.body(name)
    if body is None:
        has = ", ".join(b.name for b in spec.bodies[1:])
        raise SceneError(f"{part}: the model has no body {name!r}; it has: {has}")
    return body


def _check_joints(spec: mujoco.MjSpec, names: tuple[str, ...], part: str) -> None:
    has = tuple(j.name for j in spec.joints)
    if has != names:
        raise SceneError(f"{part}: the model's joints are {', '.join(has)}; the spec says {', '.join(names)}")


def _z_to(direction: Vec3) -> Quat:
    """The quaternion of a rotation that takes z to the unit vector ``direction``."""
    x, y, z = direction
    if z < -0.999999:
        return (0.0, 1.0, 0.0, 0.0)
    n = math.sqrt(2 * (1 + z))
    return (n / 2, -y / n, x / n, 0.0)
