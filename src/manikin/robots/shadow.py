"""Shadow Dexterous Hand E3M5, the right one, with its forearm: twenty motors, twenty-four joints.

Kinematics, inertia, limits, friction, armature, gains and torques: mujoco_menagerie shadow_hand (Apache-2.0), from
Shadow Robot's description. In the real hand one tendon bends the two outer joints of a finger together: its motor sets
the sum of their angles. Here the last joint (FFJ1, MFJ1, RFJ1, LFJ1) follows the one before (FFJ2, ...) one to one, and
that has the servo. A tendon of stiffness 0.5 and force 1 on the sum is a servo of kp 2 and 2 N m on one of two equal
angles. What the tendon could do and this cannot: bend the last joint while a thing blocks the one before. Its weight is
not compensated.
"""

from __future__ import annotations

from manikin.spec.control import JOINT_CONTROLLERS
from manikin.spec.links import Geom, Joint, Link, Quat, Vec3, box, capsule, cylinder
from manikin.spec.robot import Gains, JointGroup, MenagerieModel, RobotSpec, Tool

BLACK, GREY, METAL = (0.16, 0.16, 0.16, 1), (0.81, 0.81, 0.81, 1), (0.9, 0.9, 0.9, 1)
H = 0.5**0.5
ABOUT_Z: Quat = (H, 0, 0, H)
X, Y = (1, 0, 0), (0, 1, 0)
FINGERS = ("ff", "mf", "rf", "lf")


def ball(radius: float, rgba: tuple[float, float, float, float]) -> Geom:
    return Geom(type="sphere", size=(radius,), rgba=rgba)


def J(name: str, axis: Vec3, low: float, high: float, damping: float = 0.05) -> Joint:
    return Joint(name=name, axis=axis, range=(low, high), damping=damping, armature=2e-4, frictionloss=0.01)


def finger(f: str, parent: str, pos: Vec3, sideways: Vec3) -> tuple[Link, ...]:
    n = f.upper()
    return (
        Link(
            name=f"{f}knuckle",
            parent=parent,
            pos=pos,
            joint=J(f"{n}J4", sideways, -0.349066, 0.349066),
            mass=0.008,
            com_quat=(0.5, 0.5, -0.5, 0.5),
            inertia=(3.2e-07, 2.6e-07, 2.6e-07),
            geoms=(cylinder((-0.008, 0, 0), (0.008, 0, 0), 0.0088, METAL),),
        ),
        Link(
            name=f"{f}proximal",
            parent=f"{f}knuckle",
            joint=J(f"{n}J3", X, -0.261799, 1.5708),
            mass=0.03,
            com=(0, 0, 0.0225),
            com_quat=ABOUT_Z,
            inertia=(1e-05, 9.8e-06, 1.8e-06),
            geoms=(capsule((0, 0, 0.007), (0, 0, 0.042), 0.0095, BLACK),),
        ),
        Link(
            name=f"{f}middle",
            parent=f"{f}proximal",
            pos=(0, 0, 0.045),
            joint=J(f"{n}J2", X, 0, 1.5708),
            mass=0.017,
            com=(0, 0, 0.0125),
            com_quat=ABOUT_Z,
            inertia=(2.7e-06, 2.6e-06, 8.7e-07),
            geoms=(capsule((0, 0, 0.001), (0, 0, 0.024), 0.0087, BLACK),),
        ),
        Link(
            name=f"{f}distal",
            parent=f"{f}middle",
            pos=(0, 0, 0.025),
            joint=J(f"{n}J1", X, 0, 1.5708),
            mass=0.013,
            com=(0, 0, 0.0130769),
            com_quat=ABOUT_Z,
            inertia=(1.28092e-06, 1.12092e-06, 5.3e-07),
            geoms=(capsule((0, 0, 0.008), (0, 0, 0.0242), 0.0078, BLACK, pad=True),),
        ),
    )


WRIST = (
    Link(
        name="forearm",
        parent=None,
        mass=3.0,
        com=(0, 0, 0.09),
        inertia=(0.0138, 0.0138, 0.00744),
        geoms=(
            cylinder((0, 0, 0), (0, 0, 0.015), 0.0675, GREY),
            cylinder((0, 0, 0.015), (0, 0, 0.14), 0.0675, BLACK),
            cylinder((0, 0, 0.14), (0, 0, 0.175), 0.072, BLACK),
            cylinder((0.003, 0, 0.175), (0.003, 0, 0.186), 0.058, BLACK),
            box((0.014, 0.034, 0.008), (0.01, 0, 0.194), BLACK, collide=False),
            box((0.012, 0.007, 0.014), (0.01, 0.025, 0.204), BLACK, collide=False),
            box((0.012, 0.007, 0.014), (0.01, -0.025, 0.204), BLACK, collide=False),
        ),
    ),
    Link(
        name="wrist",
        parent="forearm",
        pos=(0.01, 0, 0.21301),
        quat=ABOUT_Z,
        joint=J("WRJ2", Y, -0.523599, 0.174533, damping=0.5),
        mass=0.1,
        com=(0, 0, 0.029),
        com_quat=(0.5, 0.5, 0.5, 0.5),
        inertia=(6.4e-05, 4.38e-05, 3.5e-05),
        geoms=(
            cylinder((0, -0.015, 0), (0, 0.015, 0), 0.0134, METAL),
            box((0.027, 0.009, 0.005), (0.0025, 0, 0.012), METAL, collide=False),
            box((0.004, 0.011, 0.018), (-0.026, 0, 0.024), METAL, collide=False),
            box((0.004, 0.011, 0.018), (0.031, 0, 0.024), METAL, collide=False),
        ),
    ),
    Link(
        name="palm",
        parent="wrist",
        pos=(0, 0, 0.034),
        joint=J("WRJ1", X, -0.698132, 0.488692, damping=0.5),
        mass=0.3,
        com=(0, 0, 0.035),
        com_quat=ABOUT_Z,
        inertia=(0.0005287, 0.0003581, 0.000191),
        geoms=(
            box((0.031, 0.0095, 0.04), (0.011, 0.002, 0.044), BLACK),
            box((0.01, 0.012, 0.02), (-0.03, 0, 0.009), BLACK),
            box((0.011, 0.0135, 0.014), (0.031, -0.0085, 0.004), BLACK),
            box((0.009, 0.0095, 0.004), (0.011, 0.001, 0.087), BLACK, collide=False),
            box((0.026, 0.004, 0.02), (0.004, 0.0105, 0.03), BLACK, collide=False),
        ),
    ),
)

METACARPAL = Link(
    name="lfmetacarpal",
    parent="palm",
    pos=(-0.033, 0, 0.02071),
    joint=J("LFJ5", (0.573576, 0, 0.819152), 0, 0.785398),
    mass=0.03,
    com=(0, 0, 0.04),
    com_quat=ABOUT_Z,
    inertia=(1.638e-05, 1.45e-05, 4.272e-06),
    geoms=(box((0.0105, 0.0105, 0.026), (0.001, 0, 0.032), BLACK),),
)

THUMB = (
    Link(
        name="thbase",
        parent="palm",
        pos=(0.034, -0.00858, 0.029),
        quat=(0.92388, 0, 0.382683, 0),
        joint=J("THJ5", (0, 0, -1), -1.0472, 1.0472),
        mass=0.01,
        inertia=(1.6e-07, 1.6e-07, 1.6e-07),
        geoms=(ball(0.013, BLACK),),
    ),
    Link(
        name="thproximal",
        parent="thbase",
        joint=J("THJ4", X, 0, 1.22173),
        mass=0.04,
        com=(0, 0, 0.019),
        inertia=(1.36e-05, 1.36e-05, 3.13e-06),
        geoms=(capsule((0, 0, 0.008), (0, 0, 0.031), 0.0115, BLACK),),
    ),
    Link(
        name="thhub",
        parent="thproximal",
        pos=(0, 0, 0.038),
        joint=J("THJ3", X, -0.20944, 0.20944),
        mass=0.005,
        inertia=(1e-06, 1e-06, 3e-07),
        geoms=(ball(0.011, BLACK),),
    ),
    Link(
        name="thmiddle",
        parent="thhub",
        joint=J("THJ2", (0, -1, 0), -0.698132, 0.698132),
        mass=0.02,
        com=(0, 0, 0.016),
        inertia=(5.1e-06, 5.1e-06, 1.21e-06),
        geoms=(capsule((0, 0, 0.004), (0, 0, 0.03), 0.0102, BLACK),),
    ),
    Link(
        name="thdistal",
        parent="thmiddle",
        pos=(0, 0, 0.032),
        quat=(H, 0, 0, -H),
        joint=J("THJ1", X, -0.261799, 1.5708),
        mass=0.017,
        com=(0, 0, 0.0145588),
        com_quat=ABOUT_Z,
        inertia=(2.37794e-06, 2.27794e-06, 1e-06),
        geoms=(capsule((0, 0, 0.009), (0, 0, 0.0255), 0.0094, BLACK, pad=True),),
    ),
)

LINKS = (
    *WRIST,
    *finger("ff", "palm", (0.033, 0, 0.095), (0, -1, 0)),
    *finger("mf", "palm", (0.011, 0, 0.099), (0, -1, 0)),
    *finger("rf", "palm", (-0.011, 0, 0.095), Y),
    METACARPAL,
    *finger("lf", "lfmetacarpal", (0, 0, 0.06579), Y),
    *THUMB,
)

SERVOS = {  # joint: kp, force
    "WRJ2": (10, 10),
    "WRJ1": (8, 5),
    **{f"{n}J{k}": servo for n in ("FF", "MF", "RF") for k, servo in ((4, (1, 1)), (3, (1, 1)), (2, (2, 2)))},
    "LFJ5": (1, 1),
    "LFJ4": (1, 1),
    "LFJ3": (1, 1),
    "LFJ2": (2, 2),
    "THJ5": (0.4, 3),
    "THJ4": (1, 2),
    "THJ3": (0.5, 1),
    "THJ2": (1.5, 1),
    "THJ1": (1, 1),
}


def group(joints: tuple[str, ...], kd: float) -> JointGroup:
    kp, force = zip(*(SERVOS[joint] for joint in joints), strict=True)
    gains = Gains(kp=kp, kd=(kd,) * len(joints), force=force, source="mujoco_menagerie shadow_hand")
    return JointGroup(joints=joints, gains=gains, speed=2.0)


def pose(bend: float, thumb: tuple[float, ...], wrist: float = 0.0) -> tuple[float, ...]:
    return (0, wrist, *(0, bend, bend) * 3, 0, 0, bend, bend, *thumb)


ROBOT = RobotSpec(
    name="shadow",
    title="Shadow Dexterous Hand",
    links=LINKS,
    menagerie=MenagerieModel(folder="shadow_hand", file="right_hand.xml", prefix="rh_"),
    groups={"wrist": group(("WRJ2", "WRJ1"), 0.5), "fingers": group(tuple(SERVOS)[2:], 0.05)},
    followers={f"{f.upper()}J1": (f"{f.upper()}J2", 1.0) for f in FINGERS},
    tools={
        "palm": Tool(body="palm", pos=(0, -0.035, 0.09), quat=(H, H, 0, 0)),
        **{f: Tool(body=f"{f}distal", pos=(0, 0, 0.0242)) for f in (*FINGERS, "th")},
    },
    touch=(
        "palm",
        *(f"{f}{part}" for f in FINGERS for part in ("proximal", "middle", "distal")),
        *("thproximal", "thmiddle", "thdistal"),
    ),
    keyframes={"rest": pose(0.3, (0.2, 0.6, 0, 0.2, 0.2)), "fist": pose(1.3, (0.3, 0.6, 0, 0.3, 0.3))},
    gravcomp=False,
    controllers=JOINT_CONTROLLERS,
    excludes=(("wrist", "forearm"), ("palm", "forearm"), ("thproximal", "thmiddle"), ("palm", "thproximal")),
    source="mujoco_menagerie shadow_hand",
)
