"""A robot and its grippers as one MjSpec, ready to attach to a scene.

Built-in and Menagerie models come out alike: same body and joint names, manikin's own actuators, equalities and
excludes from the specs, contact properties of pads, gravity compensation, a TCP frame and a closing direction per
finger. No physics options, keyframes, lights or foreign actuators remain.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

from manikin.assets import builtin, menagerie
from manikin.errors import ConfigError, SceneError, UnknownNameError
from manikin.scene.models import attach, find_body, load, load_whole
from manikin.spec.links import Quat, Vec3
from manikin.spec.robot import Gains, GripperSpec, RobotFile, RobotSpec, Tool

__all__ = ["CENTRE", "FAR", "FREE", "RobotModel", "ToolModel", "assemble", "folders"]

# how far a joint without limits is commanded either way [rad or m], by MuJoCo's type of joint
FAR = {int(mujoco.mjtJoint.mjJNT_HINGE): 2 * math.pi, int(mujoco.mjtJoint.mjJNT_SLIDE): 10.0}

FREE = "free"  # the joint of a free base
CENTRE = "centre_velocity"  # the sensor of the whole robot


@dataclass(frozen=True)
class ToolModel:
    """A tool of an assembled robot, by the names it has there."""

    name: str
    gripper: GripperSpec | None
    gripper_joints: tuple[str, ...]
    gripper_actuators: tuple[str, ...]  # one per driver, named like it
    tcp_body: str
    tcp_site: str
    finger_bodies: tuple[str, ...]
    finger_sites: tuple[str, ...]  # z is the closing direction
    pad_geoms: tuple[str, ...]

    def gripper_qpos(self, opening: float, limit: Mapping[str, tuple[float, float] | None]) -> np.ndarray:
        """Positions (len(gripper_joints),) [rad, m], followers included, within the joints' limits; see
        :meth:`RobotModel.gripper_qpos`."""
        if self.gripper is None:
            return np.zeros(0)
        low, high = np.array([limit.get(name) or (-np.inf, np.inf) for name in self.gripper_joints]).reshape(-1, 2).T
        return np.clip(self.gripper.joint_positions(opening), low, high)


@dataclass(frozen=True)
class RobotModel:
    """An assembled robot. Names are those inside ``spec``; attaching with a prefix puts it before each of them.

    What is said of a gripper or a TCP without naming a tool is that of the first one."""

    spec: mujoco.MjSpec
    arm: RobotSpec
    menagerie: bool
    base_body: str
    bodies: tuple[str, ...]
    arm_joints: tuple[str, ...]  # of all groups
    arm_actuators: tuple[str, ...]  # named like their joints
    torque_joints: tuple[str, ...]  # arm joints whose actuators take torques; the others take positions
    tools: tuple[ToolModel, ...]  # at least one: a robot without tools has a bare frame where things are fixed to it

    @property
    def gripper(self) -> GripperSpec | None:
        """Of the first tool."""
        return self.tools[0].gripper

    @property
    def gripper_joints(self) -> tuple[str, ...]:
        """Of all tools, one after the other."""
        return tuple(joint for tool in self.tools for joint in tool.gripper_joints)

    @property
    def gripper_actuators(self) -> tuple[str, ...]:
        """Of all tools, one per driver."""
        return tuple(actuator for tool in self.tools for actuator in tool.gripper_actuators)

    @property
    def tcp_body(self) -> str:
        """Of the first tool."""
        return self.tools[0].tcp_body

    @property
    def tcp_site(self) -> str:
        """Of the first tool."""
        return self.tools[0].tcp_site

    @property
    def finger_bodies(self) -> tuple[str, ...]:
        """Of the first tool."""
        return self.tools[0].finger_bodies

    @property
    def finger_sites(self) -> tuple[str, ...]:
        """Of the first tool."""
        return self.tools[0].finger_sites

    @property
    def pad_geoms(self) -> tuple[str, ...]:
        """Of the first tool."""
        return self.tools[0].pad_geoms

    @property
    def joints(self) -> tuple[str, ...]:
        """All joints but a free base's: the groups', those that follow them, then the grippers'. That is qpos order
        where nothing follows and there is one tool."""
        return self.arm_joints + tuple(self.arm.followers) + self.gripper_joints

    @property
    def actuators(self) -> tuple[str, ...]:
        """All actuators in ctrl order: the groups', then one per gripper driver."""
        return self.arm_actuators + self.gripper_actuators

    def qpos(self, keyframe: str = "rest", *, gripper: float = 1.0) -> np.ndarray:
        """Positions [rad, m] of ``joints`` at a keyframe with the grippers at ``gripper`` (1 open, 0 closed)."""
        return self.whole_qpos(self.arm_qpos(keyframe), gripper=gripper)

    def whole_qpos(self, arm: np.ndarray, *, gripper: float = 1.0) -> np.ndarray:
        """Positions [rad, m] of ``joints`` from those of the groups (len(arm_joints),), grippers as in :meth:`qpos`."""
        at, ratio = self.following
        return np.concatenate([arm, arm[list(at)] * ratio, self.gripper_qpos(gripper)])

    @property
    def following(self) -> tuple[tuple[int, ...], tuple[float, ...]]:
        """Of each joint that follows another: which of ``arm_joints`` that is, and how many times its position."""
        pairs = self.arm.followers.values()
        return tuple(self.arm_joints.index(driver) for driver, _ in pairs), tuple(ratio for _, ratio in pairs)

    def arm_qpos(self, keyframe: str = "rest") -> np.ndarray:
        """Positions (len(arm_joints),) [rad or m] of a keyframe. Raises :class:`UnknownNameError`."""
        if keyframe not in self.arm.keyframes:
            raise UnknownNameError(f"keyframe of {self.arm.name}", keyframe, self.arm.keyframes)
        return np.asarray(self.arm.keyframes[keyframe], dtype=float)

    def gripper_qpos(self, opening: float = 1.0) -> np.ndarray:
        """Positions (len(gripper_joints),) [rad, m], followers included; ``opening`` 1 is open, 0 closed, within the
        joints' limits."""
        limit = {joint.name: joint.range for link in self.arm.links for joint in link.joints}  # of a jaw of the arm's
        return np.concatenate([tool.gripper_qpos(opening, limit) for tool in self.tools])


def folders(robots: Iterable[tuple[RobotSpec, GripperSpec | None, bool]]) -> list[Path]:
    """Where the model files lie that robots are made of; each robot is (spec, gripper, from Menagerie?)."""
    every: list[tuple[RobotSpec | GripperSpec, bool]] = []
    for arm, gripper, makers in robots:
        specs = [mounted.spec for mounted in arm.parts] or [arm]
        others = [tool.gripper for tool in list(arm.tools.values())[1:] if isinstance(tool.gripper, GripperSpec)]
        every += [(part, makers) for part in (*specs, gripper, *others) if part is not None]
    models = [part.menagerie for part, makers in every if makers or isinstance(part.menagerie, RobotFile)]
    return [menagerie.find(model).parent for model in models if model is not None]


def assemble(
    arm: RobotSpec, gripper: GripperSpec | None, *, menagerie: bool = False, torque: Collection[str] = ()
) -> RobotModel:
    """Load or build a robot and its grippers, join them at the flanges and make them manikin's own.

    ``gripper`` is what the first tool carries; other tools carry the :class:`GripperSpec` they are declared with.
    ``menagerie=True`` takes the models from MuJoCo Menagerie; a gripper that is not there stays the built-in one.
    The joints named in ``torque`` get motors instead of position servos, and keep only the damping of the joint
    itself. Each call makes a new MjSpec. Raises :class:`AssetError` when a model is missing, :class:`SceneError` when
    it does not compile or does not have the parts the specs name, :class:`ConfigError` for a pair that cannot be
    joined.
    """
    hands = [(name, *_pair(arm, tool, gripper, first=k == 0)) for k, (name, tool) in enumerate(arm.tools.items())]
    if gripper is not None and not arm.tools:
        raise ConfigError(
            f"{arm.name!r} has no tool, so it carries no {gripper.name!r}; declare one: "
            'tools={"tool": Tool(body=..., pos=...)}'
        )
    spec = load_whole(arm, menagerie)
    made: list[tuple[str, Tool, GripperSpec | None]] = []
    for name, tool, hand in hands:
        if hand is not None and hand.links:
            child = load(hand, menagerie and hand.menagerie is not None)
            frame = find_body(spec, tool.body, arm.name).add_frame(pos=tool.pos, quat=tool.quat)
            prefix = f"{name}_" if len(hands) > 1 else ""
            attach(spec, child, frame, prefix)
            hand = hand.renamed(prefix) if prefix else hand
        made.append((name, tool, hand))

    carried = [hand for _, _, hand in made if hand is not None]
    of_hands = tuple(joint for hand in carried for joint in hand.joints)
    of_base = arm.base.joints if arm.base.loose else ()
    _check_joints(spec, (*of_base, *arm.joints, *arm.followers, *of_hands), arm.name)
    pads = [_contacts(spec, hand, name) for name, hand in _named(made)]
    if arm.foot_friction is not None:
        for geom in (geom for foot in arm.feet for geom in find_body(spec, foot, arm.name).geoms):
            geom.friction[0] = arm.foot_friction
    for body in spec.bodies[1:]:
        body.gravcomp = float(arm.gravcomp)
    arm_actuators = _servo(spec, arm.joints, arm.gains, torque=torque, effort=arm.effort)
    for joint, (driver, ratio) in arm.followers.items():
        if driver not in arm.joints:
            raise UnknownNameError(f"joint that {joint!r} of {arm.name} follows", driver, arm.joints)
        _follow(spec, joint, driver, (0, ratio))
    for hand in carried:
        _servo(spec, hand.drivers, hand.gains, reach=_reach(hand))
        _couple(spec, hand)
    for one, other in (*arm.excludes, *(pair for hand in carried for pair in hand.excludes)):
        spec.add_exclude(bodyname1=one, bodyname2=other)
    if not made:
        made = [("", Tool(body=arm.mount), None)]
        pads = [()]
    for (_, tool, hand), (name, _) in zip(made, _named(made), strict=True):
        if hand is not None:
            _frame(spec, hand.tcp_body, hand.tcp_pos, hand.tcp_quat, name)
        else:
            _frame(spec, tool.body, tool.pos, tool.quat, name)
    bodies = tuple(b.name for b in spec.bodies[1:])
    tools = []
    for (label, _, hand), (name, _), own_pads in zip(made, _named(made), pads, strict=True):
        fingers = hand.fingers if hand is not None else ()
        for k, finger in enumerate(fingers):
            site = find_body(spec, finger.body, arm.name).add_site(
                name=f"{name}finger_closing_{k}", quat=_z_to(finger.closing), size=(0.002, 0.002, 0.002), group=4
            )
            site.material = ""
        tools.append(
            ToolModel(
                name=label,
                gripper=hand,
                gripper_joints=hand.joints if hand is not None else (),
                gripper_actuators=hand.drivers if hand is not None else (),
                tcp_body=f"{name}tcp",
                tcp_site=f"{name}tcp",
                finger_bodies=tuple(f.body for f in fingers),
                finger_sites=tuple(f"{name}finger_closing_{k}" for k in range(len(fingers))),
                pad_geoms=own_pads,
            )
        )
    if arm.base.kind == "free":
        find_body(spec, bodies[0], arm.name).add_freejoint(name=FREE)
    _sense(spec, arm)
    return RobotModel(
        spec=spec,
        arm=arm,
        menagerie=menagerie,
        base_body=bodies[0],
        bodies=bodies,
        arm_joints=arm.joints,
        arm_actuators=arm_actuators,
        torque_joints=tuple(j for j in arm.joints if j in torque),
        tools=tuple(tools),
    )


def _named(tools: list[tuple[str, Tool, GripperSpec | None]]) -> list[tuple[str, GripperSpec | None]]:
    """What names of a tool's parts begin with: nothing where there is only one."""
    return [(f"{name}_" if len(tools) > 1 else "", hand) for name, _, hand in tools]


def _pair(arm: RobotSpec, tool: Tool, gripper: GripperSpec | None, *, first: bool) -> tuple[Tool, GripperSpec | None]:
    """A tool and what it carries."""
    own = tool.gripper.name if isinstance(tool.gripper, GripperSpec) else tool.gripper
    hand = gripper if first else tool.gripper
    if isinstance(hand, str):
        raise ConfigError(
            f"{arm.name!r}: gripper {hand!r} is a name, and a GripperSpec is needed; give "
            f"manikin.grippers.gripper({hand!r})"
        )
    if hand is not None and not hand.links and hand.name != own:
        raise ConfigError(f"gripper {hand.name!r} is part of its arm's model and does not attach to {arm.name!r}")
    if not tool.body and (hand is None or hand.links):
        other = "nothing" if hand is None else repr(hand.name)
        has = f"its own gripper {own!r}" if own else "grippers of its own"
        raise ConfigError(f"{arm.name!r} has {has} and no flange; it cannot have {other}")
    return tool, hand


def _sense(spec: mujoco.MjSpec, arm: RobotSpec) -> None:
    """A site for each IMU, whose sensors the scene adds; the velocity of the centre of mass."""
    if arm.measures_centre:
        kind, body = mujoco.mjtSensor.mjSENS_SUBTREELINVEL, mujoco.mjtObj.mjOBJ_BODY
        spec.add_sensor(name=CENTRE, type=kind, objtype=body, objname=spec.bodies[1].name)
    for imu in arm.sensors:
        if spec.site(imu.name) is not None:  # the maker's, at the same place
            spec.delete(spec.site(imu.name))
        site = find_body(spec, imu.body, arm.name).add_site(
            name=imu.name, pos=imu.pos, quat=imu.quat, size=(0.002,) * 3, group=4
        )
        site.material = ""


def _contacts(spec: mujoco.MjSpec, hand: GripperSpec | None, prefix: str) -> tuple[str, ...]:
    """Names of the fingers' pads: what a built-in model marks as pad, or every colliding geom of a maker's finger."""
    names: list[str] = []
    if hand is None:
        return ()
    for k, finger in enumerate(hand.fingers):
        colliding = [g for g in find_body(spec, finger.body, "gripper").geoms if g.contype or g.conaffinity]
        marked = [g for g in colliding if g.priority == builtin.PAD["priority"] and g.condim == builtin.PAD["condim"]]
        for i, geom in enumerate(marked or colliding):
            builtin.make_pad(geom, hand.pad_friction)
            geom.name = geom.name or f"{prefix}finger_pad_{k}_{i}"
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
        if not low < high:
            why = "; open_q and closed_q of the gripper must differ" if reach is not None else ""
            raise SceneError(f"the control range of {name!r} is empty, from {low:g} to {high:g}{why}")
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
        _follow(spec, joint, other, poly)
    for body, other, anchor in gripper.connects:
        equality = spec.add_equality(type=mujoco.mjtEq.mjEQ_CONNECT, objtype=mujoco.mjtObj.mjOBJ_BODY)
        equality.name1, equality.name2 = body, other
        equality.data[:3] = anchor
        _stiffen(equality)


def _follow(spec: mujoco.MjSpec, joint: str, other: str, poly: tuple[float, ...]) -> None:
    """Couple two joints: the position of one is a polynomial in that of the other, lowest power first."""
    equality = spec.add_equality(type=mujoco.mjtEq.mjEQ_JOINT, objtype=mujoco.mjtObj.mjOBJ_JOINT)
    equality.name1, equality.name2 = joint, other
    equality.data[:5] = (*poly, 0, 0, 0, 0)[:5]
    _stiffen(equality)


def _stiffen(equality: mujoco.MjsEquality) -> None:
    equality.solref[:2] = builtin.SOLREF
    equality.solimp[:3] = builtin.SOLIMP


def _frame(spec: mujoco.MjSpec, body: str, pos: Vec3, quat: Quat, prefix: str) -> None:
    tcp = find_body(spec, body, "TCP").add_body(name=f"{prefix}tcp", pos=pos, quat=quat)
    tcp.add_site(name=f"{prefix}tcp", size=(0.002, 0.002, 0.002), group=4).material = ""


def _check_joints(spec: mujoco.MjSpec, names: tuple[str, ...], part: str) -> None:
    has = tuple(j.name for j in spec.joints)
    if sorted(has) != sorted(names):
        raise SceneError(f"{part}: the model's joints are {', '.join(has)}; the spec says {', '.join(names)}")


def _z_to(direction: Vec3) -> Quat:
    """The quaternion of a rotation that takes z to the unit vector ``direction``."""
    x, y, z = direction
    if z < -0.999999:
        return (0.0, 1.0, 0.0, 0.0)
    n = math.sqrt(2 * (1 + z))
    return (n / 2, -y / n, x / n, 0.0)
