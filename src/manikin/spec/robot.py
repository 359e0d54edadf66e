"""What a robot or gripper is, as data. One frozen record per robot, per gripper.

A robot file (``manikin/robots/go2.py``) is one :class:`RobotSpec`, of an arm the shorter :class:`ArmSpec`
(``manikin/robots/panda.py``); a gripper file is one :class:`GripperSpec`. ``scene/robot.py`` turns them into an MjSpec.
All actuators are manikin's own, made from the gains here, so that the built-in model and the maker's meshes behave the
same; actuators that a Menagerie model brings are dropped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from manikin.errors import ConfigError, UnknownNameError
from manikin.moved import old_names
from manikin.spec import links
from manikin.spec.camera import CameraSpec
from manikin.spec.links import Link, Quat, Vec3

__all__ = [
    "FULL_POSE",
    "POSE_CONTROLLERS",
    "ArmSpec",
    "Base",
    "Finger",
    "Gains",
    "GripperSpec",
    "ImuSpec",
    "JointGroup",
    "MenagerieModel",
    "MotionLimits",
    "Mounted",
    "RobotFile",
    "RobotSpec",
    "Tool",
]

__getattr__ = old_names(__name__)  # of links and shapes

FULL_POSE = 6  # joints that bring a tool to any place with any turn
POSE_CONTROLLERS = ("ee_delta_pose", "ee_pose", "ik_pose", "osc_pose")  # that ask for place and turn


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
    palm: tuple[Vec3, Vec3] | None = None  # where it is flat [m], and the way out of it, in the frame of ``tcp_body``
    max_width: float = 0.08  # [m] between the pads when open
    min_width: float = 0.0  # [m] when closed
    pad_friction: float = 2.0  # sliding; it is that of every contact of the pads, whatever they touch
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

    def renamed(self, prefix: str) -> GripperSpec:
        """The same gripper, names of its bodies and joints beginning with ``prefix``: one of two on one robot."""
        p = prefix
        return replace(
            self,
            links=links.renamed(self.links, p),
            joints=tuple(p + joint for joint in self.joints),
            drivers=tuple(p + joint for joint in self.drivers),
            fingers=tuple(replace(finger, body=p + finger.body) for finger in self.fingers),
            tcp_body=p + self.tcp_body,
            followers={p + one: (p + other, ratio) for one, (other, ratio) in self.followers.items()},
            equalities=tuple((p + one, p + other, poly) for one, other, poly in self.equalities),
            connects=tuple((p + one, p + other, at) for one, other, at in self.connects),
            excludes=tuple((p + one, p + other) for one, other in self.excludes),
            cameras=tuple(replace(camera, name=p + camera.name, on=p + camera.on) for camera in self.cameras),
        )


DRIVEN = ("planar", "differential")  # bases that drive
LOOSE = ("free", "vertical")  # bases that nothing holds
BASES = ("fixed", *DRIVEN, *LOOSE)


@dataclass(frozen=True, kw_only=True)
class Base:
    """How a robot stands in the world.

    ``fixed`` is bolted down. ``planar`` and ``differential`` move along x and y and turn about z by three joints of the
    group ``base``, named here in this order; a differential one is driven forward and turned, never sideways. ``free``
    has six degrees of freedom and nothing that holds it: it stands on its feet. ``vertical`` likewise, but it stays in
    a vertical plane: three joints of its first link, in no group, slide along x and z and turn about y."""

    kind: str = "fixed"
    joints: tuple[str, ...] = ()  # x, y and yaw of a planar or differential base; x, z and pitch of a vertical one

    def __post_init__(self) -> None:
        """Raises UnknownNameError for another kind, ConfigError where a base lacks its three joints."""
        if self.kind not in BASES:
            raise UnknownNameError("kind of base", self.kind, BASES)
        jointed = self.drives or self.kind == "vertical"
        if len(self.joints) != 3 * jointed:
            raise ConfigError(
                f"a base that is {self.kind} has {'three joints' if jointed else 'no joints'}, not {self.joints}; "
                'write base=Base(kind="planar", joints=("base_x", "base_y", "base_yaw")) for one that drives'
            )

    @property
    def drives(self) -> bool:
        """Whether it moves over the floor by joints of its own."""
        return self.kind in DRIVEN

    @property
    def loose(self) -> bool:
        """Whether nothing holds it and nothing drives it."""
        return self.kind in LOOSE


@dataclass(frozen=True, kw_only=True)
class JointGroup:
    """Joints that are commanded together: an arm, a torso, the legs, the fingers of a hand, a base."""

    joints: tuple[str, ...]
    gains: Gains
    effort: tuple[float, ...] = ()  # [N m] or [N] limits of torque controllers; () means those of the servos
    delta: tuple[float, ...] = ()  # [rad or m] per action unit of delta controllers; () means 0.1 for all
    speed: float | tuple[float, ...] = 1.0  # [rad/s or m/s] per action unit of joint velocity; one, or of each joint
    motion: MotionLimits = MotionLimits()  # of planned motions


@dataclass(frozen=True, kw_only=True)
class Tool:
    """What a robot acts with: a frame on one of its bodies, which carries a gripper or nothing.

    ``gripper`` is the one it has unless a robot word names another. ``group`` are the joints that bring the tool to a
    place when it is driven by itself; "" means the robot's inverse kinematics moves all of ``ik_groups``."""

    body: str  # "" when the gripper is part of the robot's own model
    pos: Vec3 = (0, 0, 0)
    quat: Quat = (1, 0, 0, 0)
    gripper: str | GripperSpec | None = None
    group: str = ""


@dataclass(frozen=True, kw_only=True)
class ImuSpec:
    """An inertial measurement unit on a body: angular velocity, acceleration and orientation, in its own frame."""

    name: str
    body: str
    pos: Vec3 = (0, 0, 0)
    quat: Quat = (1, 0, 0, 0)


@dataclass(frozen=True, kw_only=True)
class Mounted:
    """A robot that is a part of another one, its root frame on the body ``on``; "" for the part that carries the
    others. Names of its bodies and joints begin with ``prefix`` there."""

    spec: RobotSpec
    on: str = ""
    pos: Vec3 = (0, 0, 0)
    quat: Quat = (1, 0, 0, 0)
    prefix: str = ""


@dataclass(frozen=True, kw_only=True)
class RobotSpec:
    """A robot: where its model comes from, how it stands, the groups of its joints, its tools and feet.

    The joints of a robot are those of its groups, one group after the other; a keyframe has a number for each of them.
    A robot with one group and one tool is written shorter as :class:`ArmSpec`."""

    name: str
    title: str
    links: tuple[Link, ...]
    menagerie: MenagerieModel | None = None
    parts: tuple[Mounted, ...] = ()  # what it is put together from, when it is; ``links`` are theirs
    base: Base = Base()
    groups: Mapping[str, JointGroup]
    ik_groups: tuple[str, ...] = ()  # that inverse kinematics moves, the others stay where they are; () is all
    tools: Mapping[str, Tool] = field(default_factory=dict)  # the first is the one meant where none is named
    feet: tuple[str, ...] = ()  # bodies whose geoms carry the robot
    foot_friction: float | None = None  # sliding, of every geom of the feet; None: as the model has it
    stands: bool = True  # a free base at rest, by the servos alone; False: it takes a controller that balances it
    touch: tuple[str, ...] = ()  # bodies that feel how hard they are touched: fingertips, a palm
    followers: Mapping[str, tuple[str, float]] = field(default_factory=dict)  # joint in no group: (its driver, ratio)
    keyframes: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # "rest" is required
    base_pos: Vec3 = (0, 0, 0)  # at a table whose top is z = 0 and whose workspace is centred on the origin
    base_quat: Quat = (1, 0, 0, 0)
    table_edge: float | None = None  # [m] x of the edge of the table that it stands before; None: it stands on it
    delay: float = 0.0  # [s] from a command to where the position servos of the groups follow it
    gravcomp: bool = True  # the maker's controller compensates the robot's own weight
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
    sensors: tuple[ImuSpec, ...] = ()
    measures_centre: bool = False  # the velocity of its centre of mass
    reach: float = 0.0  # [m] the figure commonly given, not confirmed; 0: none is known
    payload: float = 0.0  # [kg] likewise
    source: str = ""

    # ---- all groups one after the other ------------------------------------------------------------------------------

    @property
    def joints(self) -> tuple[str, ...]:
        """The joints of all groups in order, without those of grippers."""
        return tuple(joint for group in self.groups.values() for joint in group.joints)

    @property
    def gains(self) -> Gains:
        """Of all joints in order."""
        every = [group.gains for group in self.groups.values()]
        if len(every) == 1:
            return every[0]
        source = "; ".join(dict.fromkeys(gains.source for gains in every))
        kp, kd, force = (tuple(x for gains in every for x in getattr(gains, what)) for what in ("kp", "kd", "force"))
        return Gains(kp=kp, kd=kd, force=force, source=source)

    @property
    def effort(self) -> tuple[float, ...]:
        """[N m] or [N] limits of torque controllers, of all joints; () means those of the servos."""
        given = any(group.effort for group in self.groups.values())
        return tuple(x for g in self.groups.values() for x in (g.effort or g.gains.force)) if given else ()

    @property
    def joint_delta(self) -> tuple[float, ...]:
        """[rad or m] per action unit of delta controllers, of all joints; () means 0.1 for all."""
        given = any(group.delta for group in self.groups.values())
        return tuple(x for g in self.groups.values() for x in (g.delta or (0.1,) * len(g.joints))) if given else ()

    @property
    def joint_speed(self) -> tuple[float, ...]:
        """[rad/s or m/s] per action unit of joint velocity, of all joints."""
        every = [(g.speed if isinstance(g.speed, tuple) else (g.speed,), len(g.joints)) for g in self.groups.values()]
        return tuple(speed for speeds, count in every for speed in _for_each(speeds, count))

    @property
    def motion(self) -> MotionLimits:
        """Of planned motions, of all joints; of one group as it is declared."""
        every = list(self.groups.values())
        if all(group.motion == every[0].motion and len(group.motion.velocity) == 1 for group in every):
            return every[0].motion
        if len(every) == 1:
            return every[0].motion
        each = {
            what: tuple(x for g in every for x in _for_each(getattr(g.motion, what), len(g.joints)))
            for what in ("velocity", "acceleration", "jerk")
        }
        return MotionLimits(**each, source="; ".join(dict.fromkeys(g.motion.source for g in every)))

    @property
    def ik_joints(self) -> tuple[str, ...]:
        """The joints that inverse kinematics moves, in order."""
        return tuple(joint for name in self.ik_groups or self.groups for joint in self.groups[name].joints)

    def regrouped(self, groups: Mapping[str, tuple[str, ...]]) -> Self:
        """The same robot with its joints, in the same order, in other groups.

        Raises:
            ConfigError: the groups do not name the joints in their order.
        """
        if tuple(joint for joints in groups.values() for joint in joints) != self.joints:
            raise ConfigError(f"groups of {self.name!r} must name its joints in order: {', '.join(self.joints)}")
        parts = dict(gains=self.gains, effort=self.effort, delta=self.joint_delta, motion=self.motion)
        whole = JointGroup(joints=self.joints, speed=self.joint_speed, **parts)  # type: ignore[arg-type]
        return replace(self, groups=_split(whole, groups))

    # ---- its first tool ----------------------------------------------------------------------------------------------

    @property
    def tool(self) -> Tool | None:
        """The first one; None for a robot without tools."""
        return next(iter(self.tools.values()), None)

    @property
    def mount(self) -> str:
        """The body that carries what is fixed to a robot without tools: the first that moves."""
        free = self.base.loose
        return next((link.name for link in self.links if link.joints or free), self.links[0].name if self.links else "")

    @property
    def flange_body(self) -> str:
        """The body of the first tool; :attr:`mount` where there is none."""
        return self.mount if self.tool is None else self.tool.body

    @property
    def flange_pos(self) -> Vec3:
        """Of the first tool, in the frame of its body [m]."""
        return (0, 0, 0) if self.tool is None else self.tool.pos

    @property
    def flange_quat(self) -> Quat:
        """Of the first tool, in the frame of its body."""
        return (1, 0, 0, 0) if self.tool is None else self.tool.quat

    @property
    def gripper(self) -> str | None:
        """Name of the first tool's own gripper; None for a bare flange and where there is no tool."""
        own = None if self.tool is None else self.tool.gripper
        return own.name if isinstance(own, GripperSpec) else own


class ArmSpec(RobotSpec):
    """The short way to write a robot with one tool: an arm, its joints in order, their gains, its flange.

    ``groups`` names the joints of its parts where it is more than an arm; {} is {"arm": joints}. ``gains``, ``effort``,
    ``joint_delta``, ``joint_speed`` and ``motion`` are those of all joints in order. ``flange_body``, ``flange_pos``
    and ``flange_quat`` are the frame of its tool, ``gripper`` the name of what that carries. Other fields are those of
    :class:`RobotSpec`."""

    def __init__(
        self,
        *,
        joints: tuple[str, ...] = (),
        gains: Gains | None = None,
        groups: Mapping[str, Any] | None = None,
        effort: tuple[float, ...] | None = None,
        joint_delta: tuple[float, ...] | None = None,
        joint_speed: float | None = None,
        motion: MotionLimits | None = None,
        tools: Mapping[str, Tool] | None = None,
        **fields: Any,
    ) -> None:
        made = {name: group for name, group in (groups or {}).items() if isinstance(group, JointGroup)}
        if made:  # dataclasses.replace: what is not given is as it was
            was = RobotSpec(name="", title="", links=(), groups=made)
            gains, motion = gains or was.gains, motion or was.motion
            effort = was.effort if effort is None else effort
            joint_delta = was.joint_delta if joint_delta is None else joint_delta
            joint_speed = was.joint_speed[0] if joint_speed is None else joint_speed
            groups = {name: group.joints for name, group in made.items()}
            joints = joints or was.joints
        if gains is None:
            raise ConfigError(
                f"{fields.get('name', 'an arm')!r} has no gains; write gains=Gains(...), "
                "or spec.regrouped({'name': joints, ...}) for other groups of a robot that has them"
            )
        whole = JointGroup(
            joints=joints,
            gains=gains,
            effort=effort or (),
            delta=joint_delta or (),
            speed=1.0 if joint_speed is None else joint_speed,
            motion=motion or MotionLimits(),
        )
        names = groups if groups and tuple(j for group in groups.values() for j in group) == joints else None
        flange = {what: fields.pop(f"flange_{what}") for what in ("body", "pos", "quat") if f"flange_{what}" in fields}
        carried = {"gripper": fields.pop("gripper")} if "gripper" in fields else {}
        tools = dict(tools or {"tool": Tool(body="")})
        name = next(iter(tools))
        super().__init__(
            groups=_split(whole, names) if names else {"arm": whole},
            tools={**tools, name: replace(tools[name], **flange, **carried)},
            **fields,
        )


def _split(whole: JointGroup, names: Mapping[str, tuple[str, ...]]) -> dict[str, JointGroup]:
    """Groups of joints that follow one another, with their share of the numbers of all."""
    made, at = {}, 0
    for name, joints in names.items():
        own = slice(at, at := at + len(joints))
        every = whole.gains
        made[name] = replace(
            whole,
            joints=tuple(joints),
            gains=replace(every, kp=every.kp[own], kd=every.kd[own], force=every.force[own]),
            effort=whole.effort[own],
            delta=whole.delta[own],
            speed=_share(whole.speed, own) if isinstance(whole.speed, tuple) else whole.speed,
            motion=MotionLimits(
                velocity=_share(whole.motion.velocity, own),
                acceleration=_share(whole.motion.acceleration, own),
                jerk=_share(whole.motion.jerk, own),
                source=whole.motion.source,
            ),
        )
    return made


def _share(values: tuple[float, ...], own: slice) -> tuple[float, ...]:
    """One number is for all joints."""
    return values if len(values) == 1 else values[own]


def _for_each(values: tuple[float, ...], count: int) -> tuple[float, ...]:
    return values * count if len(values) == 1 else values
