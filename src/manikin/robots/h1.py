"""Unitree H1, a humanoid: two legs of five joints, a torso that turns, two arms of four.

Kinematics, inertia, limits, torques and armature: mujoco_menagerie unitree_h1 (BSD-3-Clause), from Unitree's
description. Shapes, gains and keyframes are chosen. The legs' gains are far stiffer than a controller of the real robot
has them: with them it stands still by its servos alone, knees bent, its weight over the middle of its feet.
"""

from __future__ import annotations

from manikin.spec.links import Geom as Shape
from manikin.spec.links import Joint, Link, Vec3, box, capsule, cylinder, mirrored
from manikin.spec.robot import Base, Gains, ImuSpec, JointGroup, MenagerieModel, RobotSpec, Tool

DARK, GREY, WHITE = (0.1, 0.1, 0.11, 1), (0.35, 0.36, 0.38, 1), (0.9, 0.9, 0.92, 1)
X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)


def J(name: str, axis: Vec3, low: float, high: float) -> Joint:
    return Joint(name=name, axis=axis, range=(low, high), damping=1.0, armature=0.1)


PELVIS = Link(
    name="pelvis",
    parent=None,
    mass=5.39,
    com=(-0.0002, 4e-05, -0.04522),
    inertia=(0.044582, 0.0082464, 0.049021, 8.70509e-05, -1.98956e-05, 4.00401e-06),
    geoms=(
        capsule((0, -0.07, -0.06), (0, 0.07, -0.06), 0.05, DARK),
        cylinder((0, 0, -0.05), (0, 0, 0.02), 0.07, GREY, collide=False),
    ),
)

LEG = (
    Link(
        name="left_hip_yaw_link",
        parent="pelvis",
        pos=(0, 0.0875, -0.1742),
        joint=J("left_hip_yaw", Z, -0.43, 0.43),
        mass=2.244,
        com=(-0.04923, 0.0001, 0.0072),
        inertia=(0.0025731, 0.0030444, 0.0022883, 9.15977e-06, -0.000519481, 1.94921e-06),
        geoms=(
            cylinder((0, 0, 0.02), (0, 0, 0.1), 0.055, GREY, collide=False),
            cylinder((-0.1, 0, 0), (-0.03, 0, 0), 0.055, DARK, collide=False),
        ),
    ),
    Link(
        name="left_hip_roll_link",
        parent="left_hip_yaw_link",
        pos=(0.039468, 0, 0),
        joint=J("left_hip_roll", X, -0.43, 0.43),
        mass=2.232,
        com=(-0.0058, -0.00319, -9e-05),
        inertia=(0.0020603, 0.0022482, 0.0024323, 3.21154e-05, 2.87781e-06, -7.81289e-06),
        geoms=(cylinder((0, -0.045, 0), (0, 0.03, 0), 0.05, GREY, collide=False),),
    ),
    Link(
        name="left_hip_pitch_link",
        parent="left_hip_roll_link",
        pos=(0, 0.11536, 0),
        joint=J("left_hip_pitch", Y, -1.57, 1.57),
        mass=4.152,
        com=(0.00746, -0.02346, -0.08193),
        inertia=(0.082618, 0.081579, 0.0060081, -0.00066652, 0.0040725, 0.0072024),
        geoms=(
            cylinder((0, -0.09, 0), (0, -0.03, 0), 0.055, DARK, collide=False),
            capsule((0.01, -0.02, -0.05), (0.015, 0, -0.33), 0.05, GREY),
        ),
    ),
    Link(
        name="left_knee_link",
        parent="left_hip_pitch_link",
        pos=(0, 0, -0.4),
        joint=J("left_knee", Y, -0.26, 2.05),
        mass=1.721,
        com=(-0.00136, -0.00512, -0.1384),
        inertia=(0.012205, 0.012509, 0.0020629, -6.84289e-05, 0.0010862, 0.00022549),
        geoms=(
            cylinder((0, -0.045, 0), (0, 0.045, 0), 0.05, DARK, collide=False),
            capsule((0.01, 0, -0.08), (0.01, 0, -0.33), 0.04, GREY),
        ),
    ),
    Link(
        name="left_ankle_link",
        parent="left_knee_link",
        pos=(0, 0, -0.4),
        joint=J("left_ankle", Y, -0.87, 0.52),
        mass=0.446,
        com=(0.06722, 0.00015, -0.04497),
        inertia=(0.00025669, 0.0022082, 0.0021474, 4.19641e-06, 0.00028656, -2.86958e-06),
        geoms=(
            capsule((-0.035, 0.03, -0.056), (0.14, 0.03, -0.056), 0.014, DARK),
            capsule((-0.035, -0.03, -0.056), (0.14, -0.03, -0.056), 0.014, DARK),
            box((0.09, 0.035, 0.012), (0.055, 0, -0.045), DARK, collide=False),
            capsule((0, 0, -0.04), (0, 0, 0), 0.03, GREY, collide=False),
        ),
    ),
)

TORSO = Link(
    name="torso_link",
    parent="pelvis",
    joint=J("torso", Z, -2.35, 2.35),
    mass=17.789,
    com=(0.000489, 0.002797, 0.20484),
    inertia=(0.4873, 0.40963, 0.12785, -0.00053763, 0.0020276, -0.000745806),
    geoms=(
        box((0.075, 0.1, 0.19), (0, 0, 0.28), DARK),
        box((0.05, 0.08, 0.05), (0, 0, 0.07), GREY, collide=False),
        box((0.078, 0.05, 0.03), (0.002, 0, 0.36), WHITE, collide=False),
        capsule((0.03, 0, 0.5), (0.045, 0, 0.62), 0.045, GREY),
        Shape(type="sphere", size=(0.085,), pos=(0.05, 0, 0.68), rgba=DARK),
    ),
)

ARM = (
    Link(
        name="left_shoulder_pitch_link",
        parent="torso_link",
        pos=(0.0055, 0.15535, 0.42999),
        quat=(0.976296, 0.216438, 0, 0),
        joint=J("left_shoulder_pitch", Y, -2.87, 2.87),
        mass=1.033,
        com=(0.005045, 0.053657, -0.015715),
        inertia=(0.0012985, 0.00087279, 0.00097338, -1.7333e-05, 8.68301e-06, 3.96558e-05),
        geoms=(capsule((0, -0.01, 0), (0, 0.05, -0.01), 0.042, DARK, collide=False),),
    ),
    Link(
        name="left_shoulder_roll_link",
        parent="left_shoulder_pitch_link",
        pos=(-0.0055, 0.0565, -0.0165),
        quat=(0.976296, -0.216438, 0, 0),
        joint=J("left_shoulder_roll", X, -0.34, 3.11),
        mass=0.793,
        com=(0.000679, 0.00115, -0.094076),
        inertia=(0.0015742, 0.0016973, 0.0010183, 2.29748e-06, -7.2265e-05, -6.36907e-05),
        geoms=(capsule((0, 0.01, 0), (0, 0, -0.1), 0.04, GREY),),
    ),
    Link(
        name="left_shoulder_yaw_link",
        parent="left_shoulder_roll_link",
        pos=(0, 0, -0.1343),
        joint=J("left_shoulder_yaw", Z, -1.3, 4.45),
        mass=0.839,
        com=(0.01365, 0.002767, -0.16266),
        inertia=(0.003664, 0.0040789, 0.00066383, -1.06714e-05, 0.00034733, 7.02136e-05),
        geoms=(capsule((0, 0, -0.03), (0.01, 0, -0.18), 0.035, DARK),),
    ),
    Link(
        name="left_elbow_link",
        parent="left_shoulder_yaw_link",
        pos=(0.0185, 0, -0.198),
        joint=J("left_elbow", Y, -1.25, 2.61),
        mass=0.669,
        com=(0.15908, -0.000144, -0.015776),
        inertia=(0.00042388, 0.0060062, 0.0060023, -3.60818e-05, 0.00029293, 4.66379e-06),
        geoms=(
            capsule((0.03, 0, -0.002), (0.24, 0, -0.013), 0.028, GREY),
            Shape(type="sphere", size=(0.036,), pos=(0.28, 0, -0.015), rgba=DARK),
        ),
    ),
)

LEGS = (*LEG, *mirrored(LEG, "left", "right"))
LEFT, RIGHT = ARM, mirrored(ARM, "left", "right")
KNEES = (0, 0, -0.4, 0.93, -0.53)  # of one leg: yaw, roll, pitch, knee, ankle


def names(links: tuple[Link, ...]) -> tuple[str, ...]:
    return tuple(joint.name for link in links for joint in link.joints)


def arm_group(links: tuple[Link, ...]) -> JointGroup:
    gains = Gains(kp=(150,) * 4, kd=(8,) * 4, force=(40, 40, 18, 18), source="chosen; torques: Unitree")
    return JointGroup(joints=names(links), gains=gains, speed=2.0)


ROBOT = RobotSpec(
    name="h1",
    title="Unitree H1",
    links=(PELVIS, *LEGS, TORSO, *LEFT, *RIGHT),
    menagerie=MenagerieModel(folder="unitree_h1", file="h1.xml"),
    base=Base(kind="free"),
    groups={
        "legs": JointGroup(
            joints=names(LEGS),
            gains=Gains(
                kp=(2000, 2000, 3000, 3000, 1500) * 2,
                kd=(60, 60, 80, 80, 40) * 2,
                force=(200, 200, 200, 300, 40) * 2,
                source="chosen; torques: Unitree",
            ),
            speed=2.0,
        ),
        "torso": JointGroup(
            joints=("torso",),
            gains=Gains(kp=(1000,), kd=(30,), force=(200,), source="chosen; torque: Unitree"),
        ),
        "left_arm": arm_group(LEFT),
        "right_arm": arm_group(RIGHT),
    },
    ik_groups=("left_arm",),
    tools={
        "left": Tool(body="left_elbow_link", pos=(0.28, 0, -0.015), quat=(0.5**0.5, 0, 0.5**0.5, 0), group="left_arm"),
        "right": Tool(
            body="right_elbow_link", pos=(0.28, 0, -0.015), quat=(0.5**0.5, 0, 0.5**0.5, 0), group="right_arm"
        ),
    },
    feet=("left_ankle_link", "right_ankle_link"),
    keyframes={"rest": (*KNEES, *KNEES, 0, *(0.3, 0, 0, 0.4) * 2)},
    base_pos=(0, 0, 0.956),
    gravcomp=False,
    controllers=(
        "joint_pos",
        "joint_delta_pos",
        "joint_target_delta_pos",
        "joint_vel",
        "ee_delta_pos",
        "joint_impedance",
        "joint_vel_pid",
        "joint_torque",
    ),
    excludes=(("torso_link", "left_shoulder_roll_link"), ("torso_link", "right_shoulder_roll_link")),
    sensors=(ImuSpec(name="imu", body="torso_link", pos=(-0.04452, -0.01891, 0.27756)),),
    source="mujoco_menagerie unitree_h1",
)
