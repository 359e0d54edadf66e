"""Unitree G1 of 29 joints, a humanoid: two legs of six joints, a waist of three, two arms of seven, rubber hands.

Kinematics, inertia, limits, armature and keyframe `rest` (knees bent): mjlab 1.6.0, from Unitree's description
(BSD-3-Clause) and Unitree's figures of the motors. Torques: Unitree's description, in example-robot-data 6.0.0. Shapes
and gains are chosen. As with `h1`, the gains of the legs and the waist are far stiffer than a controller of the real
robot has them: with them it stands still by its servos alone.
"""

from __future__ import annotations

from manikin.spec.links import RGBA, Joint, Link, Quat, Vec3, box, capsule, cylinder, mirrored
from manikin.spec.links import Geom as Shape
from manikin.spec.robot import Base, Gains, ImuSpec, JointGroup, RobotSpec, Tool

SILVER, DARK, BLACK = (0.72, 0.72, 0.73, 1), (0.16, 0.16, 0.17, 1), (0.05, 0.05, 0.06, 1)
X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)
H = 0.5**0.5
# Unitree's motors, at the joint: armature [kg m^2] and torque [N m]. Two SMALL ones turn an ankle or tilt the waist.
SMALL, WRIST, HIP, KNEE, PAIR = (0.00361, 25), (0.00425, 5), (0.0101776, 88), (0.025102, 139), (0.00722, 35)


def link(
    name: str,
    parent: str,
    joint: tuple[str, Vec3, float, float, tuple[float, float]],
    pos: Vec3,
    mass: float,
    com: Vec3,
    com_quat: Quat,
    inertia: Vec3,
    *geoms: Shape,
    quat: Quat = (1, 0, 0, 0),
) -> Link:
    """A link and the joint before it: its name without ``_joint``, axis, limits and motor."""
    label, axis, low, high, (armature, _) = joint
    return Link(
        name=name,
        parent=parent,
        pos=pos,
        quat=quat,
        joint=Joint(name=f"{label}_joint", axis=axis, range=(low, high), armature=armature),
        mass=mass,
        com=com,
        com_quat=com_quat,
        inertia=inertia,
        geoms=geoms,
    )


def ball(radius: float, pos: Vec3, rgba: RGBA, *, collide: bool = True, visible: bool = True) -> Shape:
    return Shape(type="sphere", size=(radius,), pos=pos, rgba=rgba, collide=collide, visible=visible)


PELVIS = Link(
    name="pelvis",
    parent=None,
    mass=3.813,
    com=(0, 0, -0.07605),
    com_quat=(1, 0, -0.000399148, 0),
    inertia=(0.010549, 0.0093089, 0.0079184),
    geoms=(
        ball(0.07, (0, 0, -0.08), DARK, visible=False),
        cylinder((0, -0.064, -0.1027), (0, 0.064, -0.1027), 0.044, DARK, collide=False),
        cylinder((0, 0, -0.09), (0, 0, 0.0), 0.045, DARK, collide=False),
        box((0.058, 0.05, 0.035), (0, 0, -0.085), SILVER, collide=False),
    ),
)

LEG = (
    link(
        "left_hip_pitch_link",
        "pelvis",
        ("left_hip_pitch", Y, -2.5307, 2.8798, HIP),
        (0, 0.064452, -0.1027),
        1.35,
        (0.002741, 0.047791, -0.02606),
        (0.954862, 0.293964, 0.0302556, 0.030122),
        (0.00181517, 0.00153422, 0.00116212),
        cylinder((0, 0.004, 0), (0, 0.09, -0.01), 0.038, DARK, collide=False),
        cylinder((-0.035, 0.052, -0.03), (0.02, 0.052, -0.03), 0.045, DARK, collide=False),
    ),
    link(
        "left_hip_roll_link",
        "left_hip_pitch_link",
        ("left_hip_roll", X, -0.5236, 2.9671, HIP),
        (0, 0.052, -0.030465),
        1.52,
        (0.029812, -0.001045, -0.087934),
        (0.977808, -1.97119e-05, 0.205576, -0.0403793),
        (0.00254986, 0.00241169, 0.00148755),
        capsule((0.025, 0, 0), (0.025, 0, -0.08), 0.053, SILVER),
        quat=(0.996179, 0, -0.0873386, 0),
    ),
    link(
        "left_hip_yaw_link",
        "left_hip_roll_link",
        ("left_hip_yaw", Z, -2.7576, 2.7576, HIP),
        (0.025001, 0, -0.12412),
        1.702,
        (-0.057709, -0.010981, -0.15078),
        (0.600598, 0.15832, 0.223482, 0.751181),
        (0.00776166, 0.00717575, 0.00160139),
        capsule((0, 0, -0.02), (-0.055, 0, -0.15), 0.05, SILVER),
        cylinder((-0.078, -0.045, -0.177), (-0.078, 0.043, -0.177), 0.046, DARK, collide=False),
    ),
    link(
        "left_knee_link",
        "left_hip_yaw_link",
        ("left_knee", Y, -0.087267, 2.8798, KNEE),
        (-0.078273, 0.0021489, -0.17734),
        1.932,
        (0.005457, 0.003964, -0.12074),
        (0.923418, -0.0327699, 0.0158246, 0.382067),
        (0.0113804, 0.0112778, 0.00146458),
        capsule((0.015, 0, 0), (0.015, 0, -0.13), 0.043, SILVER),
        capsule((0.012, 0, -0.14), (0.004, 0, -0.285), 0.03, SILVER),
        quat=(0.996179, 0, 0.0873386, 0),
    ),
    link(
        "left_ankle_pitch_link",
        "left_knee_link",
        ("left_ankle_pitch", Y, -0.87267, 0.5236, PAIR),
        (0, -9.4445e-05, -0.30001),
        0.074,
        (-0.007269, 0, 0.011137),
        (0.603053, 0.369225, 0.369225, 0.603053),
        (1.89e-05, 1.40805e-05, 6.9195e-06),
        ball(0.02, (0, 0, 0), DARK, collide=False),
    ),
    link(
        "left_ankle_roll_link",
        "left_ankle_pitch_link",
        ("left_ankle_roll", X, -0.2618, 0.2618, PAIR),
        (0, 0, -0.017558),
        0.608,
        (0.026505, 0, -0.016425),
        (-0.000481092, 0.728482, -0.000618967, 0.685065),
        (0.00167218, 0.0016161, 0.000217621),
        capsule((-0.044, 0.022, -0.025), (0.115, 0.022, -0.025), 0.01, BLACK),
        capsule((-0.044, -0.022, -0.025), (0.115, -0.022, -0.025), 0.01, BLACK),
        box((0.09, 0.03, 0.01), (0.038, 0, -0.022), BLACK, collide=False),
        capsule((-0.02, 0, -0.008), (0.05, 0, -0.012), 0.026, BLACK, collide=False),
        capsule((0.05, 0, -0.012), (0.11, 0, -0.02), 0.018, BLACK, collide=False),
    ),
)

WAIST = (
    link(
        "waist_yaw_link",
        "pelvis",
        ("waist_yaw", Z, -2.618, 2.618, HIP),
        (0, 0, 0),
        0.214,
        (0.003494, 0.000233, 0.018034),
        (0.289697, 0.591001, -0.337795, 0.672821),
        (0.000163531, 0.000107714, 0.000102205),
        cylinder((0, 0, 0), (0, 0, 0.03), 0.04, SILVER, collide=False),
    ),
    link(
        "waist_roll_link",
        "waist_yaw_link",
        ("waist_roll", X, -0.52, 0.52, PAIR),
        (-0.0039635, 0, 0.044),
        0.086,
        (0, 2.3e-05, 0),
        (0.5, 0.5, -0.5, 0.5),
        (8.245e-06, 7.079e-06, 6.339e-06),
        capsule((-0.012, 0, 0), (0.012, 0, 0), 0.012, DARK, collide=False),
    ),
    link(
        "torso_link",
        "waist_roll_link",
        ("waist_pitch", Y, -0.52, 0.52, PAIR),
        (0, 0, 0),
        7.818,
        (0.00203158, 0.000339683, 0.184568),
        (0.999803, -6.03319e-05, 0.0198256, 0.00131986),
        (0.121847, 0.109825, 0.0273735),
        cylinder((0, 0, 0), (0, 0, 0.05), 0.035, DARK, collide=False),
        box((0.06, 0.085, 0.1), (0.006, 0, 0.15), SILVER),
        box((0.062, 0.1, 0.055), (0.006, 0, 0.225), SILVER, collide=False),
        box((0.05, 0.075, 0.03), (0.006, 0, 0.06), SILVER, collide=False),
        cylinder((0, 0, 0.27), (0, 0, 0.34), 0.035, BLACK, collide=False),
        ball(0.063, (0.008, 0, 0.42), BLACK),
        capsule((0.02, 0, 0.36), (0.03, 0, 0.4), 0.05, BLACK, collide=False),
    ),
)

LIMB = (
    link(
        "left_shoulder_pitch_link",
        "torso_link",
        ("left_shoulder_pitch", Y, -3.0892, 2.6704, SMALL),
        (0.0039563, 0.10022, 0.24778),
        0.718,
        (0, 0.035892, -0.011628),
        (0.654152, 0.0130458, -0.326267, 0.68225),
        (0.000465864, 0.000432842, 0.000406394),
        cylinder((0, 0, 0), (0, 0.06, -0.01), 0.034, DARK, collide=False),
        quat=(0.990264, 0.139201, 1.38722e-05, -9.86868e-05),
    ),
    link(
        "left_shoulder_roll_link",
        "left_shoulder_pitch_link",
        ("left_shoulder_roll", X, -1.5882, 2.2515, SMALL),
        (0, 0.038, -0.013831),
        0.643,
        (-0.000227, 0.00727, -0.063243),
        (0.701256, -0.0196223, -0.00710317, 0.712604),
        (0.000691311, 0.000618011, 0.000388977),
        capsule((0, 0.004, 0), (0, 0.006, -0.065), 0.036, SILVER, collide=False),
        quat=(0.990268, -0.139172, 0, 0),
    ),
    link(
        "left_shoulder_yaw_link",
        "left_shoulder_roll_link",
        ("left_shoulder_yaw", Z, -2.618, 2.618, SMALL),
        (0, 0.00624, -0.1032),
        0.734,
        (0.010773, -0.002949, -0.072009),
        (0.716879, -0.0964829, -0.0679942, 0.687134),
        (0.00106187, 0.00103217, 0.000400661),
        capsule((0, 0, 0.0), (0.004, 0, -0.075), 0.033, SILVER),
    ),
    link(
        "left_elbow_link",
        "left_shoulder_yaw_link",
        ("left_elbow", Y, -1.0472, 2.0944, SMALL),
        (0.015783, 0, -0.080518),
        0.6,
        (0.064956, 0.004454, -0.010062),
        (0.541765, 0.636132, 0.388821, 0.388129),
        (0.000443035, 0.000421612, 0.000259353),
        capsule((0, 0, -0.008), (0.075, 0.002, -0.01), 0.032, SILVER),
    ),
    link(
        "left_wrist_roll_link",
        "left_elbow_link",
        ("left_wrist_roll", X, -1.97222, 1.97222, SMALL),
        (0.1, 0.00188791, -0.01),
        0.085445,
        (0.0171394, 0.000537591, 4.8864e-07),
        (0.575338, 0.411667, -0.574906, 0.411094),
        (5.48211e-05, 4.96646e-05, 3.57798e-05),
        cylinder((0, 0, 0), (0.05, 0, 0), 0.029, DARK, collide=False),
    ),
    link(
        "left_wrist_pitch_link",
        "left_wrist_roll_link",
        ("left_wrist_pitch", Y, -1.61443, 1.61443, WRIST),
        (0.038, 0, 0),
        0.48405,
        (0.0229999, -0.00111685, -0.00111658),
        (0.249998, 0.661363, 0.293036, 0.643608),
        (0.000430353, 0.000429873, 0.000164648),
        capsule((0, 0, 0), (0.05, 0, 0), 0.028, SILVER),
    ),
    link(
        "left_wrist_yaw_link",
        "left_wrist_pitch_link",
        ("left_wrist_yaw", Z, -1.61443, 1.61443, WRIST),
        (0.046, 0, 0),
        0.254576,
        (0.0708244, 0.000191745, 0.00161742),
        (0.510571, 0.526295, 0.468078, 0.493188),
        (0.000646113, 0.000559993, 0.000147566),
        cylinder((0, 0, -0.026), (0, 0, 0.026), 0.026, SILVER, collide=False),
        box((0.032, 0.012, 0.032), (0.078, 0.002, 0), BLACK, collide=False),
        capsule((0.07, 0, 0), (0.14, -0.014, 0), 0.026, BLACK, visible=False),
        *(
            capsule((0.1, 0, z), (0.155, -0.016, 1.15 * z), 0.009, BLACK, collide=False)
            for z in (-0.028, -0.01, 0.01, 0.028)
        ),
        capsule((0.06, -0.008, 0.03), (0.095, -0.03, 0.052), 0.01, BLACK, collide=False),
    ),
)

LEGS = (*LEG, *mirrored(LEG, "left", "right"))
LEFT, RIGHT = LIMB, mirrored(LIMB, "left", "right")
KNEES = (-0.312, 0, 0, 0.669, -0.363, 0)  # of one leg: hip pitch, roll and yaw, knee, ankle pitch and roll


def names(links: tuple[Link, ...]) -> tuple[str, ...]:
    return tuple(joint.name for one in links for joint in one.joints)


def group(
    links: tuple[Link, ...], kp: tuple[float, ...], kd: tuple[float, ...], *motors: tuple[float, int]
) -> JointGroup:
    gains = Gains(kp=kp, kd=kd, force=tuple(force for _, force in motors), source="chosen; torques: Unitree")
    return JointGroup(joints=names(links), gains=gains, speed=2.0)


def arm_group(links: tuple[Link, ...]) -> JointGroup:
    return group(links, (100,) * 5 + (50,) * 2, (4,) * 5 + (2,) * 2, *(SMALL,) * 5, *(WRIST,) * 2)


ROBOT = RobotSpec(
    name="g1",
    title="Unitree G1",
    links=(PELVIS, *LEGS, *WAIST, *LEFT, *RIGHT),
    base=Base(kind="free"),
    groups={
        "legs": group(
            LEGS,
            (1000, 1000, 500, 1000, 600, 600) * 2,
            (30, 30, 15, 30, 15, 15) * 2,
            *(HIP, KNEE, HIP, KNEE, PAIR, PAIR) * 2,
        ),
        "waist": group(WAIST, (500, 800, 800), (15, 25, 25), HIP, PAIR, PAIR),
        "left_arm": arm_group(LEFT),
        "right_arm": arm_group(RIGHT),
    },
    ik_groups=("left_arm",),
    tools={
        f"{side}": Tool(body=f"{side}_wrist_yaw_link", pos=(0.11, 0, 0), quat=(H, 0, H, 0), group=f"{side}_arm")
        for side in ("left", "right")
    },
    feet=("left_ankle_roll_link", "right_ankle_roll_link"),
    keyframes={
        "rest": (*KNEES, *KNEES, 0, 0, 0, *(0.2, 0.2, 0, 0.6, 0, 0, 0), *(0.2, -0.2, 0, 0.6, 0, 0, 0)),
    },
    base_pos=(0, 0, 0.76),
    gravcomp=False,
    controllers=(
        "joint_pos",
        "joint_delta_pos",
        "joint_target_delta_pos",
        "joint_vel",
        "ee_delta_pos",
        "ee_delta_pose",
        "joint_impedance",
        "joint_vel_pid",
        "joint_torque",
    ),
    excludes=(
        *((f"{side}_elbow_link", f"{side}_wrist_pitch_link") for side in ("left", "right")),
        *(("pelvis", f"{side}_hip_roll_link") for side in ("left", "right")),
    ),
    sensors=(
        ImuSpec(name="imu", body="pelvis", pos=(0.04525, 0, -0.08339)),
        ImuSpec(name="torso_imu", body="torso_link", pos=(-0.03959, -0.00224, 0.14792)),
    ),
    source="mjlab 1.6.0, from Unitree's description",
)
