"""What a robot or gripper is, as data. One frozen record per arm, per gripper.

A robot file (``manikin/robots/panda.py``) is one :class:`ArmSpec`; a gripper file one :class:`GripperSpec`.
``scene/robot.py`` turns the pair into an MjSpec. All actuators are manikin's own, made from the gains here, so that
the built-in model and the maker's meshes behave the same; actuators that a Menagerie model brings are dropped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from manikin.spec.camera import CameraSpec

__all__ = [
    "ArmSpec",
    "Finger",
    "Gains",
    "Geom",
    "GripperSpec",
    "Joint",
    "Link",
    "MenagerieModel",
    "MotionLimits",
    "RobotFile",
    "box",
    "capsule",
    "cylinder",
    "pad",
]

Vec3 = tuple[float, float, float]
Quat = tuple[float, float, float, float]
RGBA = tuple[float, float, float, float]


@dataclass(frozen=True, kw_only=True)
class Geom:
    """A primitive of a built-in model. ``size`` as in MJCF (half lengths; radius, half length)."""

    type: str  # box, sphere, capsule, cylinder, ellipsoid
    size: tuple[float, ...]
    pos: Vec3 = (0, 0, 0)
    quat: Quat = (1, 0, 0, 0)
    rgba: RGBA = (0.9, 0.9, 0.9, 1)
    collide: bool = True  # False: seen only
    visible: bool = True  # False: collides only
    pad: bool = False  # a finger pad: high friction, condim 4, priority over what it touches
    name: str = ""


def box(half: Vec3, pos: Vec3 = (0, 0, 0), rgba: RGBA = (0.9, 0.9, 0.9, 1), **options: object) -> Geom:
    """A box of half lengths ``half`` [m] centred on ``pos``; ``options`` are further fields of :class:`Geom`."""
    return Geom(type="box", size=half, pos=pos, rgba=rgba, **options)  # type: ignore[arg-type]


def pad(half: Vec3, pos: Vec3, rgba: RGBA = (0.2, 0.2, 0.2, 1), **options: object) -> Geom:
    """A finger pad: a box that grips (see :class:`Geom`)."""
    return box(half, pos, rgba, pad=True, **options)


def capsule(a: Vec3, b: Vec3, radius: float, rgba: RGBA = (0.9, 0.9, 0.9, 1), **options: object) -> Geom:
    """A capsule whose two hemispheres are centred on ``a`` and ``b`` [m]."""
    return _between("capsule", a, b, radius, rgba, options)


def cylinder(a: Vec3, b: Vec3, radius: float, rgba: RGBA = (0.9, 0.9, 0.9, 1), **options: object) -> Geom:
    """A cylinder whose flat ends are centred on ``a`` and ``b`` [m]."""
    return _between("cylinder", a, b, radius, rgba, options)


def _between(type: str, a: Vec3, b: Vec3, radius: float, rgba: RGBA, options: Mapping[str, object]) -> Geom:
    x, y, z = (q - p for p, q in zip(a, b, strict=True))
    length = math.sqrt(x * x + y * y + z * z)
    # the shortest rotation that takes +z to a -> b; for -z the axis is free and a capsule looks the same upside down
    w = 1 + abs(z) / length
    x, y = (x, y) if z >= 0 else (-x, -y)
    n = math.hypot(w, x / length, y / length)
    return Geom(
        type=type,
        size=(radius, length / 2),
        pos=tuple((p + q) / 2 for p, q in zip(a, b, strict=True)),  # type: ignore[arg-type]
        quat=(w / n, -y / length / n, x / length / n, 0.0),
        rgba=rgba,
        **options,  # type: ignore[arg-type]
    )


@dataclass(frozen=True, kw_only=True)
class Joint:
    """The joint between a link and its parent; SI units, passive properties linear."""

    name: str
    type: str = "hinge"  # or slide
    axis: Vec3 = (0, 0, 1)
    pos: Vec3 = (0, 0, 0)  # of a hinge's axis, in the link's frame
    range: tuple[float, float] | None = None  # [rad] or [m]
    damping: float = 0.0
    armature: float = 0.0
    frictionloss: float = 0.0
    stiffness: float = 0.0
    springref: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Link:
    """One body of a built-in model. ``parent`` is the name of an earlier link, None for the root."""

    name: str
    parent: str | None
    pos: Vec3 = (0, 0, 0)
    quat: Quat = (1, 0, 0, 0)
    joint: Joint | tuple[Joint, ...] | None = None  # several act in order, each carried by the ones before
    mass: float = 0.0  # [kg]; 0 only for links without a joint
    com: Vec3 = (0, 0, 0)  # [m] in the link frame
    inertia: tuple[float, ...] = (0, 0, 0)  # principal (3) in com_quat's frame, or full xx yy zz xy xz yz (6) [kg m^2]
    com_quat: Quat = (1, 0, 0, 0)
    geoms: tuple[Geom, ...] = ()

    @property
    def joints(self) -> tuple[Joint, ...]:
        """Its joints in order, none for a fixed link."""
        return () if self.joint is None else (self.joint,) if isinstance(self.joint, Joint) else self.joint


@dataclass(frozen=True, kw_only=True)
class MenagerieModel:
    """Where the maker's meshes are, in MuJoCo Menagerie or in a folder of MANIKIN_DATA, and what in them is changed.

    Parts are dropped by the names the file has; then ``prefix`` is taken off names, then they are renamed."""

    folder: str  # for example franka_emika_panda
    file: str  # for example panda_nohand.xml
    collection: str = "menagerie"  # or data: a folder of MANIKIN_DATA itself
    root: str = ""  # the body that is the part, with all that hangs on it, when the file has others too
    prefix: str = ""  # that names in the file begin with
    drop: tuple[str, ...] = ()  # names of bodies and joints to remove
    rename: Mapping[str, str] = field(default_factory=dict)  # body or joint names that differ from the built-in model's
    bare: tuple[str, ...] = ()  # bodies, by the names the file has, whose geoms belong to another part
    own_inertia: tuple[str, ...] = ()  # bodies, by their final names, with the built-in link's mass and inertia instead
    own_joints: tuple[str, ...] = ()  # bodies, by their final names, with the built-in link's joints instead


@dataclass(frozen=True, kw_only=True)
class RobotFile(MenagerieModel):
    """A user's own MJCF or URDF: ``folder`` and ``file`` are its path. The part has no other model than this one, and
    the links of its spec say what the file says. See :func:`manikin.robots.from_file`."""

    packages: Mapping[str, str] = field(default_factory=dict)  # folder of each package that package:// paths name
    convex: bool = False  # collision meshes of a URDF in convex pieces


@dataclass(frozen=True, kw_only=True)
class Gains:
    """Position-servo gains per joint: torque = kp (target - q) clipped to +-force, - kd qdot.

    kd is damping of the joint, which stays implicit also while the servo is at its limit. ``source`` says whence."""

    kp: tuple[float, ...]
    kd: tuple[float, ...]
    force: tuple[float, ...]
    source: str


@dataclass(frozen=True, kw_only=True)
class MotionLimits:
    """How fast the maker lets the joints move; one number is for all of them. SI units, radians or metres.

    The defaults are for arms without published figures: moderate, and said to be so by ``source``."""

    velocity: tuple[float, ...] = (1.5,)
    acceleration: tuple[float, ...] = (5.0,)
    jerk: tuple[float, ...] = (50.0,)
    source: str = "chosen; the maker gives no figures"


@dataclass(frozen=True, kw_only=True)
class Finger:
    """A finger as contact questions see it: the geoms of ``body`` itself count, its child bodies do not; ``closing`` is
    the unit direction, in the body's frame, in which this finger presses on what it grasps."""

    body: str
    closing: Vec3


@dataclass(frozen=True, kw_only=True)
class GripperSpec:
    """A gripper that attaches by its root frame to an arm's flange: z out of the flange, fingers opening along y.

    ``drivers`` are the commanded joints (all get the same normalized command); ``open_q`` / ``closed_q`` their
    positions when fully open / commanded closed (which may lie beyond the joint's limit, to keep a grip force).
    ``joints`` are all joints in qpos order; those of a linkage that only follow have their driver and ratio in
    ``followers``. ``links`` is the built-in model, whose first link's pose is the mounting pose on the flange (of the
    Menagerie model too), or () when the gripper is part of the arm's own model (SO-101's jaw). A tool without moving
    parts (an eraser) has no joints, drivers and fingers.
    """

    name: str
    title: str
    links: tuple[Link, ...]
    menagerie: MenagerieModel | None
    joints: tuple[str, ...]
    drivers: tuple[str, ...]
    open_q: tuple[float, ...]
    closed_q: tuple[float, ...]
    gains: Gains  # of the drivers
    fingers: tuple[Finger, ...]
    sides: tuple[tuple[int, ...], ...] = ()  # fingers that press on the same side of a thing; () is each for itself
    tcp_body: str  # body that carries the TCP frame
    tcp_pos: Vec3
    tcp_quat: Quat = (1, 0, 0, 0)  # z out of the gripper, y along the opening
    max_width: float = 0.08  # [m] between the pads when open
    travel_s: float = 0.2  # [s] to close on a thing, for scripted experts
    followers: Mapping[str, tuple[str, float]] = field(default_factory=dict)  # joint: (driver, ratio), nominally
    equalities: tuple[tuple[str, str, tuple[float, ...]], ...] = ()  # (joint, other joint, polycoef): q1 = poly(q2)
    connects: tuple[
        tuple[str, str, Vec3], ...
    ] = ()  # (body, other body, anchor in the first body's frame) loop closures
    excludes: tuple[tuple[str, str], ...] = ()  # body pairs that never collide
    cameras: tuple[CameraSpec, ...] = ()  # that come with it; ``on`` is a body of this model
    source: str = ""

    def joint_positions(self, opening: float = 1.0) -> tuple[float, ...]:
        """Positions of ``joints`` [rad or m], followers included; ``opening`` 1 is open, 0 closed until a limit."""
        limit = {joint.name: joint.range for link in self.links for joint in link.joints}
        drivers = {}
        for name, opened, closed in zip(self.drivers, self.open_q, self.closed_q, strict=True):
            low, high = limit.get(name) or (-math.inf, math.inf)
            drivers[name] = min(max(closed + opening * (opened - closed), low), high)
        ratio = {name: (name, 1.0) for name in self.drivers} | dict(self.followers)
        return tuple(ratio[name][1] * drivers[ratio[name][0]] for name in self.joints)


@dataclass(frozen=True, kw_only=True)
class ArmSpec:
    """An arm: where its model comes from, its joints in order, gains, flange, keyframes, how it may be controlled.

    A robot that is more than an arm (a base that drives, a torso that lifts) names its parts in ``groups``; inverse
    kinematics then moves the joints of ``ik_groups`` and leaves the others where they are."""

    name: str
    title: str
    links: tuple[Link, ...]
    menagerie: MenagerieModel | None
    joints: tuple[str, ...]
    gains: Gains
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # {} is {"arm": joints}
    ik_groups: tuple[str, ...] = ()  # () is all
    flange_body: str
    flange_pos: Vec3 = (0, 0, 0)
    flange_quat: Quat = (1, 0, 0, 0)
    gripper: str | None = None  # the default gripper's name
    keyframes: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # arm joints only; "rest" is required
    base_pos: Vec3 = (0, 0, 0)  # at a table whose top is z = 0 and whose workspace is centred on the origin
    base_quat: Quat = (1, 0, 0, 0)
    table_edge: float | None = None  # [m] x of the edge of the table that it stands before; None: it stands on it
    gravcomp: bool = True  # the maker's controller compensates the arm's own weight
    effort: tuple[float, ...] = ()  # [N m] torque limits of torque controllers; () means those of the servos
    joint_delta: tuple[float, ...] = ()  # [rad] per action unit of delta controllers; () means 0.1 for all
    joint_speed: float = 1.0  # [rad/s] per action unit of joint velocity
    motion: MotionLimits = MotionLimits()  # of planned motions
    ee_delta_pos: float = 0.1  # [m] per action unit
    ee_delta_rot: float = 0.1  # [rad] per action unit
    controllers: tuple[str, ...] = (
        "joint_pos",
        "joint_delta_pos",
        "joint_target_delta_pos",
        "joint_vel",
        "ee_delta_pos",
        "ee_delta_pose",
        "ee_pose",
        "ik_pose",
        "osc_position",
        "osc_pose",
        "joint_impedance",
        "joint_vel_pid",
        "joint_torque",
    )
    excludes: tuple[tuple[str, str], ...] = ()
    cameras: tuple[CameraSpec, ...] = ()  # that come with it; ``on`` is a body of this model
    reach: float = 0.0  # [m] the figure commonly given, not confirmed; 0: none is known
    payload: float = 0.0  # [kg] likewise
    source: str = ""

    @property
    def ik_joints(self) -> tuple[str, ...]:
        """The joints that inverse kinematics moves, in order."""
        moved = {joint for group in self.ik_groups for joint in self.groups[group]}
        return tuple(joint for joint in self.joints if joint in moved) if moved else self.joints
