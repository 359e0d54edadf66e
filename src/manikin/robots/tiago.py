"""PAL Robotics TIAGo, a mobile manipulator: two driven wheels, a torso that lifts, a head, an arm of seven joints, a
gripper.

Kinematics, inertia, limits and forces: mujoco_menagerie pal_tiago (Apache-2.0), from PAL's description. The base moves
along x and y (20 m either way, chosen) and turns about z; wheels do not turn, casters are left out. kd lets a joint of
the arm reach 1.2 rad/s at its force, the base 1 m/s and 1.5 rad/s; kp = 10 kd (base, torso: 5 kd). Armature is chosen,
and the joints' dry friction is left out. Its weight is compensated. Place and rest pose are chosen: on the floor before
a table, TCP above the origin, pointing 35 deg below the horizontal: over a table of 0.92 m its wrist cannot point
straight down. Keyframe `carry` is Menagerie's `home`, the arm folded before the body.
"""

from __future__ import annotations

from manikin.spec.camera import CameraSpec
from manikin.spec.links import Joint, Link, box, capsule, cylinder, pad
from manikin.spec.robot import Base, Gains, JointGroup, MenagerieModel, RobotSpec, Tool

WHITE, GREY, DARK, SILVER = (0.93, 0.93, 0.94, 1), (0.3, 0.3, 0.32, 1), (0.1, 0.1, 0.1, 1), (0.75, 0.76, 0.78, 1)
ORANGE = (1, 0.49, 0, 1)
H = 0.5**0.5
X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)


def J(name: str, low: float, high: float, armature: float = 0.1) -> Joint:
    return Joint(name=f"{name}_joint", range=(low, high), armature=armature)


def wheel(side: str, s: int) -> Link:
    return Link(
        name=f"wheel_{side}_link",
        parent="base_link",
        pos=(0, 0.2022 * s, 0.0985),
        quat=(H, -H, 0, 0),
        mass=4.4,
        inertia=(0.014, 0.014, 0.027),
        geoms=(cylinder((0, 0, -0.02), (0, 0, 0.02), 0.0985, DARK, collide=False),),
    )


def finger(side: str, s: int) -> Link:
    """``s`` is the way in which it opens along x of its frame."""
    return Link(
        name=f"gripper_{side}_finger_link",
        parent="arm_7_link",
        pos=(0, 0, 0.076575),
        quat=(0, -H, H, 0),
        joint=Joint(name=f"gripper_{side}_finger_joint", type="slide", axis=(s, 0, 0), range=(0, 0.045), armature=0.6),
        mass=0.107001,
        com=(0.008658 * s, 0.019724 * s, -0.149125),
        inertia=(0.000242, 0.000236, 0.000018),
        geoms=(
            pad((0.00375, 0.02, 0.027), (0.00375 * s, 0, -0.192), DARK),
            box((0.0075, 0.015, 0.04), (0.009 * s, 0.016 * s, -0.13), DARK, collide=False),
        ),
    )


LINKS = (
    Link(
        name="base_link",
        parent=None,
        joint=(
            Joint(name="base_x", type="slide", axis=X, range=(-20, 20), armature=0.1),
            Joint(name="base_y", type="slide", axis=Y, range=(-20, 20), armature=0.1),
            Joint(name="base_yaw", axis=Z, range=(-62.8, 62.8), armature=0.1),  # ten turns either way
        ),
        mass=47.112,
        com=(-0.01, -0.002, 0.131),
        inertia=(2.074, 2.245, 0.897),
        geoms=(
            cylinder((0, 0, 0.03), (0, 0, 0.28), 0.255, WHITE),
            cylinder((0, 0, 0.12), (0, 0, 0.14), 0.262, ORANGE, collide=False),
            cylinder((-0.03, 0, 0.28), (-0.03, 0, 0.34), 0.14, SILVER, collide=False),
            box((0.09, 0.1, 0.275), (-0.062, 0, 0.5685), GREY),
        ),
    ),
    wheel("right", -1),
    wheel("left", 1),
    Link(
        name="torso_lift_link",
        parent="base_link",
        pos=(-0.062, 0, 0.8885),
        joint=Joint(name="torso_lift_joint", type="slide", axis=Z, range=(0, 0.35), armature=0.1),
        mass=6.281737,
        com=(0.031711, -0.001004, -0.187315),
        inertia=(0.230972, 0.235034, 0.080705),
        geoms=(
            box((0.13, 0.15, 0.09), (-0.01, 0, -0.1), WHITE),
            box((0.1, 0.12, 0.12), (-0.02, 0, -0.3), WHITE),
            cylinder((0.155, 0.014, -0.24), (0.155, 0.014, -0.17), 0.06, GREY, collide=False),
            box((0.06, 0.05, 0.04), (0.13, 0.0, -0.06), WHITE, collide=False),
        ),
    ),
    Link(
        name="head_1_link",
        parent="torso_lift_link",
        pos=(0.182, 0, 0),
        joint=J("head_1", -1.309, 1.309, 0.01),
        mass=0.6222,
        com=(-0.00508, 0.00237, 0.07229),
        inertia=(0.00140223, 0.00121968, 0.000861083),
        geoms=(capsule((-0.01, 0, 0.03), (0, 0, 0.09), 0.042, WHITE),),
    ),
    Link(
        name="head_2_link",
        parent="head_1_link",
        pos=(0.005, 0, 0.098),
        quat=(H, H, 0, 0),
        joint=J("head_2", -1.0472, 0.785398, 0.01),
        mass=0.88693,
        com=(0.0558274, 0.0609987, 1.58542e-05),
        inertia=(0.00554181, 0.00436261, 0.00347586),
        geoms=(
            box((0.05, 0.045, 0.105), (0.045, 0.075, 0), WHITE),
            box((0.004, 0.02, 0.07), (0.097, 0.08, 0), DARK, collide=False),
        ),
    ),
    Link(
        name="arm_1_link",
        parent="torso_lift_link",
        pos=(0.15505, 0.014, -0.151),
        quat=(H, 0, 0, -H),
        joint=J("arm_1", 0, 2.74889),
        mass=1.56343,
        com=(0.061191, -0.022397, -0.012835),
        inertia=(0.00510233, 0.00510233, 0.00510233),
        geoms=(capsule((0.01, 0, -0.02), (0.12, 0, -0.028), 0.048, WHITE),),
    ),
    Link(
        name="arm_2_link",
        parent="arm_1_link",
        pos=(0.125, 0.0195, -0.031),
        quat=(H, H, 0, 0),
        joint=J("arm_2", -1.5708, 1.09083),
        mass=1.8004,
        com=(0.030432, 0.000229, -0.005942),
        inertia=(0.00437229, 0.00432701, 0.0017837),
        geoms=(capsule((0, 0, -0.005), (0.06, 0, -0.002), 0.05, GREY),),
    ),
    Link(
        name="arm_3_link",
        parent="arm_2_link",
        pos=(0.0895, 0, -0.0015),
        quat=(0.5, -0.5, -0.5, 0.5),
        joint=J("arm_3", -3.53429, 1.5708),
        mass=1.8,
        com=(0.007418, -0.004361, -0.134194),
        inertia=(0.0200771, 0.0196154, 0.00264853),
        geoms=(capsule((0, 0, -0.05), (-0.012, -0.005, -0.215), 0.047, GREY),),
    ),
    Link(
        name="arm_4_link",
        parent="arm_3_link",
        pos=(-0.02, -0.027, -0.222),
        quat=(0.5, -0.5, -0.5, -0.5),
        joint=J("arm_4", -0.392699, 2.35619),
        mass=1.4327,
        com=(-0.095658, 0.014666, 0.018133),
        inertia=(0.002040, 0.008424, 0.008686),
        geoms=(capsule((0, 0, 0.025), (-0.14, 0.015, 0.025), 0.046, GREY),),
    ),
    Link(
        name="arm_5_link",
        parent="arm_4_link",
        pos=(-0.162, 0.02, 0.027),
        quat=(H, 0, -H, 0),
        joint=J("arm_5", -2.0944, 2.0944, 0.05),
        mass=0.935914,
        com=(0.001078, -0.000151, -0.077173),
        inertia=(0.00103619, 0.000794527, 0.000439824),
        geoms=(
            capsule((0, 0, 0.03), (0, 0, 0.1), 0.042, SILVER),
            capsule((0, -0.05, 0.15), (0, 0.05, 0.15), 0.025, SILVER, collide=False),
        ),
    ),
    Link(
        name="arm_6_link",
        parent="arm_5_link",
        pos=(0, 0, 0.15),
        quat=(0.5, -0.5, -0.5, -0.5),
        joint=J("arm_6", -1.41372, 1.41372, 0.05),
        mass=0.302758,
        com=(-0.000153, -0.003122, 0.000183),
        inertia=(3.85419e-05, 3.33205e-05, 3.29226e-05),
        geoms=(cylinder((0, 0, -0.018), (0, 0, 0.018), 0.038, SILVER, collide=False),),
    ),
    Link(
        name="arm_7_link",
        parent="arm_6_link",
        quat=(0.5, 0.5, 0.5, 0.5),
        joint=J("arm_7", -2.0944, 2.0944, 0.05),
        mass=1.00276,
        com=(-0.000173894, 0.000176395, 0.0817355),
        inertia=(0.0025841, 0.0022568, 0.000746434),
        geoms=(
            cylinder((0, 0, 0.03), (0, 0, 0.072), 0.025, GREY, collide=False),
            box((0.037, 0.05, 0.05), (0, 0, 0.123), WHITE),
        ),
    ),
    finger("right", 1),
    finger("left", -1),
)

BASE = ("base_x", "base_y", "base_yaw")
SOURCE = "derived, see above"


def group(names: tuple[str, ...], force: tuple[float, ...], fastest: float, ratio: float, **more: object) -> JointGroup:
    """Joints whose kd lets them reach ``fastest`` at their force, kp being ``ratio`` times that."""
    kd = tuple(round(f / fastest, 2) for f in force)
    gains = Gains(kp=tuple(ratio * k for k in kd), kd=kd, force=force, source=SOURCE)
    return JointGroup(joints=names, gains=gains, **more)  # type: ignore[arg-type]


ROBOT = RobotSpec(
    name="tiago",
    title="PAL TIAGo",
    links=LINKS,
    menagerie=MenagerieModel(
        folder="pal_tiago",
        file="tiago.xml",
        drop=(
            "wheel_right_joint",
            "wheel_left_joint",
            *(f"caster_{x}_{y}_1_link" for x in ("front", "back") for y in ("right", "left")),
        ),
        own_joints=("base_link",),
    ),
    base=Base(kind="differential", joints=BASE),
    groups={
        "base": JointGroup(
            joints=BASE,
            gains=Gains(kp=(7500, 7500, 600), kd=(1500, 1500, 120), force=(1500, 1500, 180), source="chosen"),
            delta=(0.05, 0.05, 0.1),
        ),
        "torso": JointGroup(
            joints=("torso_lift_joint",),
            gains=Gains(kp=(20000,), kd=(4000,), force=(500,), source=SOURCE),
            delta=(0.02,),
        ),
        "head": group(("head_1_joint", "head_2_joint"), (5.197, 5.197), 2.0, 10.0),
        "arm": group(tuple(f"arm_{k}_joint" for k in range(1, 8)), (43, 43, 26, 26, 3, 6.6, 6.6), 1.2, 10.0),
    },
    ik_groups=("torso", "arm"),
    tools={"tool": Tool(body="", gripper="tiago_gripper", group="arm")},
    keyframes={
        "rest": (0, 0, 0, 0.32811, 0, -0.6, 0.38664, 0.85547, -1.99848, 2.2312, -0.09915, -1.06224, -1.61425),
        "carry": (0, 0, 0, 0.15, 0, 0, 0.2, -1.34, -0.2, 1.94, -1.57, 1.37, 0),
    },
    base_pos=(-0.6, 0, -0.9196),
    table_edge=-0.31,
    controllers=(*RobotSpec.controllers, "base_vel"),
    excludes=(("arm_2_link", "torso_lift_link"), ("arm_3_link", "torso_lift_link")),
    cameras=(
        CameraSpec(
            name="head_camera", on="head_2_link", pos=(0.0908, 0.08, 0.0), quat=(0.5, -0.5, 0.5, -0.5), fovy=0.8
        ),
    ),
    reach=0.87,
    payload=3.0,
    source="mujoco_menagerie pal_tiago",
)
