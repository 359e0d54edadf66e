"""Unitree G1 of 23 joints with the three-finger hands Dex3-1, as ManiSkill3 has it: an earlier G1 than :mod:`g1`.

``g1_simplified_legs`` is whole, and only its shins and feet collide. ``g1_upper_body`` is held at the pelvis, its legs
stiff and out of the way of everything, with a camera in its head. ManiSkill has the pelvis 0.755 m above the floor; at
the default table it is 0.2 m higher.

Kinematics, inertia, limits and torques: mani_skill 3.0.1, from Unitree's description (BSD-3-Clause). Keyframes, gains,
scales of actions, friction of the hands and the camera: ManiSkill3. With these gains the whole robot does not stand
without a controller that balances it. The fingers' gains are chosen: ManiSkill's damping of 100 N m s would hold back
Unitree's 0.7 N m. Armature (0.01 of the body's joints, 1e-4 of the fingers') and shapes are chosen, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from manikin.spec.camera import CameraSpec
from manikin.spec.links import Geom as Shape
from manikin.spec.links import Joint, Link, Quat, Vec3, box, capsule, cylinder, mirrored
from manikin.spec.robot import Base, Finger, Gains, GripperSpec, ImuSpec, JointGroup, RobotSpec, Tool

SILVER, DARK, BLACK = (0.72, 0.72, 0.73, 1), (0.16, 0.16, 0.17, 1), (0.05, 0.05, 0.06, 1)
X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)
H = 0.5**0.5
Moves = tuple[str, Vec3, float, float] | None  # a joint: its name without ``_joint``, axis, limits [rad]


def link(
    name: str,
    parent: str,
    joint: Moves,
    pos: Vec3,
    mass: float,
    com: Vec3,
    inertia: tuple[float, ...],
    *geoms: Shape,
    quat: Quat = (1, 0, 0, 0),
) -> Link:
    """A link, and the joint before it where there is one."""
    finger = mass < 0.1
    moves = joint and Joint(name=f"{joint[0]}_joint", axis=joint[1], range=joint[2:], armature=1e-4 if finger else 0.01)
    return Link(
        name=f"{name}_link",
        parent=f"{parent}_link" if parent != "pelvis" else parent,
        pos=pos,
        quat=quat,
        joint=moves,
        mass=mass,
        com=com,
        inertia=inertia,
        geoms=geoms,
    )


PELVIS = Link(
    name="pelvis",
    parent=None,
    mass=2.86,
    com=(0, 0, -0.07605),
    inertia=(0.0079143, 0.0069837, 0.0059404, 0, 1.6e-06, 0),
    geoms=(
        cylinder((0, -0.064, -0.1027), (0, 0.064, -0.1027), 0.044, DARK, collide=False),
        cylinder((0, 0, -0.09), (0, 0, 0.0), 0.045, DARK, collide=False),
        box((0.056, 0.05, 0.035), (0, 0, -0.085), SILVER, collide=False),
    ),
)

LEG = (
    link(
        "left_hip_pitch",
        "pelvis",
        ("left_hip_pitch", Y, -2.35, 3.05),
        (0, 0.06445, -0.1027),
        1.299,
        (0.001962, 0.049392, -0.000941),
        (0.0013873, 0.0009059, 0.0009196, -1.63e-05, -1e-06, -4.24e-05),
        cylinder((0, 0.004, 0), (0, 0.09, 0), 0.04, DARK, collide=False),
        quat=(0.984807, 0, -0.17365, 0),
    ),
    link(
        "left_hip_roll",
        "left_hip_pitch",
        ("left_hip_roll", X, -0.26, 2.53),
        (0, 0.0523, 0),
        1.446,
        (0.024757, -0.001036, -0.086323),
        (0.0022702, 0.002304, 0.0016001, -3.7e-06, -0.0003789, -1.8e-05),
        capsule((0.02, 0, -0.005), (0.022, 0, -0.085), 0.05, SILVER, collide=False),
    ),
    link(
        "left_hip_yaw",
        "left_hip_roll",
        ("left_hip_yaw", Z, -2.75, 2.75),
        (0.01966, -0.0012139, -0.1241),
        2.052,
        (-0.053554, -0.011477, -0.14067),
        (0.0087264, 0.011374, 0.004279, -0.0004402, -0.0036676, -0.0006654),
        capsule((0, 0, -0.02), (-0.055, 0, -0.15), 0.048, SILVER, collide=False),
        cylinder((-0.078, -0.042, -0.177), (-0.078, 0.042, -0.177), 0.046, DARK, collide=False),
    ),
    link(
        "left_knee",
        "left_hip_yaw",
        ("left_knee", Y, -0.33489, 2.5449),
        (-0.078292, -0.0017335, -0.177225),
        2.252,
        (0.005505, 0.006534, -0.116629),
        (0.0124438, 0.0126749, 0.0019865, 5.3496e-05, -0.000437641, -0.000682499),
        capsule((0.015, 0.004, 0), (0.015, 0.004, -0.13), 0.04, SILVER, collide=False),
        capsule((0.012, 0.004, -0.14), (0.004, 0.004, -0.285), 0.029, SILVER, collide=False),
        cylinder((0.007, 0.005, -0.075), (0.007, 0.005, -0.225), 0.015, DARK, visible=False),
        quat=(0.967714, 0, 0.252052, 0),
    ),
    link(
        "left_ankle_pitch",
        "left_knee",
        ("left_ankle_pitch", Y, -0.68, 0.73),
        (0, 0.0040687, -0.30007),
        0.074,
        (-0.007269, 0, 0.011137),
        (8.4e-06, 1.89e-05, 1.26e-05, 0, -2.9e-06, 0),
        Shape(type="sphere", size=(0.02,), rgba=DARK, collide=False),
        quat=(0.99678, 0, -0.0801788, 0),
    ),
    link(
        "left_ankle_roll",
        "left_ankle_pitch",
        ("left_ankle_roll", X, -0.2618, 0.2618),
        (0, 0, -0.017558),
        0.391,
        (0.024762, 2e-05, -0.012526),
        (0.0001552, 0.0010657, 0.001098, -1e-07, 7.51e-05, 1e-07),
        capsule((-0.05, 0.022, -0.024), (0.12, 0.022, -0.024), 0.01, BLACK),
        capsule((-0.05, -0.022, -0.024), (0.12, -0.022, -0.024), 0.01, BLACK),
        box((0.092, 0.03, 0.01), (0.036, 0, -0.021), BLACK, collide=False),
        capsule((-0.02, 0, -0.006), (0.05, 0, -0.01), 0.026, BLACK, collide=False),
        capsule((0.05, 0, -0.01), (0.11, 0, -0.018), 0.017, BLACK, collide=False),
    ),
)

TORSO = (
    link(
        "torso",
        "pelvis",
        ("torso", Z, -2.618, 2.618),
        (0, 0, 0),
        6.3406,
        (0.00197043, 0.00266861, 0.169377),
        (0.0603775, 0.0435638, 0.0334067, -0.000101627, 0.00069886, 0.000343863),
        cylinder((0, 0, -0.02), (0, 0, 0.08), 0.04, DARK, collide=False),
        box((0.068, 0.08, 0.11), (0, 0, 0.2), SILVER),
        box((0.07, 0.1, 0.06), (0, 0, 0.25), SILVER, collide=False),
        box((0.055, 0.075, 0.03), (0, 0, 0.095), SILVER, collide=False),
    ),
    link(
        "head",
        "torso",
        None,
        (0, 0, 0),
        1.17977,
        (0.00138067, 0.00028431, 0.420342),
        (0.00543236, 0.00552885, 0.00165378, 1.40137e-06, 0.000345548, 1.50122e-05),
        cylinder((0, 0, 0.3), (0, 0, 0.36), 0.035, BLACK, collide=False),
        capsule((0.0, 0, 0.4), (0.0, 0, 0.435), 0.062, BLACK),
    ),
)

LIMB = (
    link(
        "left_shoulder_pitch",
        "torso",
        ("left_shoulder_pitch", Y, -2.9671, 2.7925),
        (-0.0025, 0.10396, 0.25928),
        0.713,
        (-0.001431, 0.048811, 0.001304),
        (0.0004614, 0.0004146, 0.0004416, -9.3e-06, 1e-05, 5.5e-06),
        cylinder((0, 0, 0), (0, 0.075, 0), 0.034, DARK, collide=False),
        quat=(0.990268, 0.139172, 0, 0),
    ),
    link(
        "left_shoulder_roll",
        "left_shoulder_pitch",
        ("left_shoulder_roll", X, -1.5882, 2.2515),
        (0, 0.052, 0),
        0.642,
        (-0.003415, 0.006955, -0.064598),
        (0.0006159, 0.0006835, 0.000373, 0, -5.6e-06, 2.1e-06),
        capsule((-0.003, 0.004, 0), (-0.003, 0.006, -0.07), 0.036, SILVER, collide=False),
        cylinder((-0.004, 0.006, -0.038), (-0.004, 0.006, -0.068), 0.03, DARK, visible=False),
        quat=(0.990268, -0.139172, 0, 0),
    ),
    link(
        "left_shoulder_yaw",
        "left_shoulder_roll",
        ("left_shoulder_yaw", Z, -2.618, 2.618),
        (-0.00354, 0.0062424, -0.1032),
        0.713,
        (0.000375, -0.00444, -0.072374),
        (0.0009699, 0.0009691, 0.0003826, 7.1e-06, 7.8e-06, -4.49e-05),
        capsule((0, 0, 0), (0, 0, -0.08), 0.033, SILVER),
    ),
    link(
        "left_elbow_pitch",
        "left_shoulder_yaw",
        ("left_elbow_pitch", Y, -0.2268, 3.4208),
        (0, 0.00189, -0.0855),
        0.601,
        (0.064497, 0.002873, 0),
        (0.0002845, 0.0004647, 0.0004712, 8.06e-05, 9e-09, 5e-09),
        capsule((0, 0, 0), (0.075, 0, 0), 0.031, SILVER),
    ),
    link(
        "left_elbow_roll",
        "left_elbow_pitch",
        ("left_elbow_roll", X, -2.0943, 2.0943),
        (0.1, 0, 0),
        0.227,
        (0.081811, 0.001454, 0.001),
        (0.0001093, 0.000977, 0.0009676, -1.55e-05, -2.91e-05, 1e-06),
        capsule((0.03, 0, 0), (0.09, 0, 0), 0.029, DARK),
    ),
)

FINGER = (3.83218e-06, 8.90975e-06, 8.65612e-06, 3.23998e-08, 1.92338e-08, -4.4298e-08)
TIP = (9.47446e-07, 2.54698e-06, 2.04289e-06, -1.00863e-07, 3.60547e-08, -3.2571e-09)


def finger(first: str, last: str, z: float) -> tuple[Link, Link]:
    """One of the two fingers beside each other, ``z`` [m] from the middle of the palm."""
    return (
        link(
            f"left_{first}",
            "left_palm",
            (f"left_{first}", Z, -1.84, 0.3),
            (0.085, 0.004, z),
            0.0488469,
            (0.0362561, -0.0015725, 0.000269899),
            FINGER,
            box((0.026, 0.008, 0.0105), (0.026, -0.002, 0), DARK, pad=True),
        ),
        link(
            f"left_{last}",
            f"left_{first}",
            (f"left_{last}", Z, -1.84, 0),
            (0.0471, -0.0036, 0),
            0.0138584,
            (0.0237591, 0.00135257, 0.000119669),
            TIP,
            box((0.021, 0.0065, 0.0105), (0.025, 0, 0), BLACK, pad=True),
        ),
    )


HAND = (
    link(
        "left_palm",
        "left_elbow_roll",
        None,
        (0.12, 0, 0),
        0.28126,
        (0.0557842, 0.00148509, -0.000326701),
        (0.000176381, 0.000310843, 0.000189394, -6.52171e-06, 2.13018e-07, 7.08018e-09),
        cylinder((0, 0, 0), (0.03, 0, 0), 0.025, DARK, collide=False),
        box((0.036, 0.014, 0.036), (0.058, 0, 0), DARK, pad=True),
    ),
    link(
        "left_zero",
        "left_palm",
        ("left_zero", Y, -0.523598, 0.523598),
        (0.05, 0, 0),
        0.0509893,
        (-0.0260466, -0.00877511, 1.08605e-05),
        (6.79822e-06, 5.01632e-06, 8.68017e-06, -9.82815e-07, -4.06407e-09, 2.83345e-08),
        box((0.012, 0.018, 0.009), (-0.0265, -0.01, 0), DARK, collide=False),
    ),
    link(
        "left_one",
        "left_zero",
        ("left_one", Z, -1, 1.2),
        (-0.026525, -0.0188, -5e-05),
        0.047762,
        (-0.00181538, -0.0327057, -0.000185871),
        (8.00635e-06, 3.66334e-06, 7.85914e-06, -2.08113e-07, -4.68765e-08, 5.13392e-08),
        box((0.0095, 0.016, 0.0105), (-0.002, -0.032, 0), DARK, pad=True),
        box((0.007, 0.02, 0.0095), (-0.001, -0.015, 0), DARK, collide=False),
    ),
    link(
        "left_two",
        "left_one",
        ("left_two", Z, 0, 1.84),
        (0, -0.0431, 0),
        0.0138584,
        (-0.00135257, -0.0237591, -0.000119669),
        (2.54698e-06, 9.47446e-07, 2.04289e-06, -1.00863e-07, -3.2571e-09, 3.60547e-08),
        box((0.0065, 0.021, 0.0105), (0, -0.025, 0), BLACK, pad=True),
    ),
    *finger("three", "four", 0.02395),
    *finger("five", "six", -0.02395),
)
BODIES = (*TORSO, *LIMB, *mirrored(LIMB, "left", "right"), *HAND, *mirrored(HAND, "left", "right"))
LEGS = (*LEG, *mirrored(LEG, "left", "right"))


def names(links: Iterable[Link]) -> tuple[str, ...]:
    return tuple(joint.name for one in links for joint in one.joints)


def hand(side: str) -> Tool:
    """A hand as a tool: its frame has z out of the palm, and y is where thumb and fingers open. Its fingers are moved
    as a group; what it holds is between the thumb and either finger."""
    out = 1 if side == "right" else -1
    frame = (0.5, -0.5, -0.5, -0.5) if side == "right" else (0.5, 0.5, 0.5, -0.5)
    thumb, fingers = ("two", "one"), ("four", "six", "three", "five")
    pads = (*((name, X) for name in thumb), *((name, (0, out, 0)) for name in fingers))
    return Tool(
        body="",
        group=f"{side}_arm",
        gripper=GripperSpec(
            name=f"dex3_{side}",
            title=f"Unitree Dex3-1, {side}",
            links=(),
            menagerie=None,
            joints=(),
            drivers=(),
            open_q=(),
            closed_q=(),
            gains=Gains(kp=(), kd=(), force=(), source=""),
            fingers=tuple(Finger(body=f"{side}_{name}_link", closing=way) for name, way in pads),
            sides=((0, 1), (2, 3, 4, 5)),
            tcp_body=f"{side}_palm_link",
            tcp_pos=(0.07, 0.035 * out, 0),
            tcp_quat=frame,
            palm=((0.07, 0.014 * out, 0), (0, out, 0)),
            max_width=0.1,
        ),
    )


def group(joints: tuple[str, ...], kp: float, kd: float, effort: tuple[float, ...]) -> JointGroup:
    """Joints of the body. ManiSkill's servos may exert 100 N m; the motors' torques hold for torque controllers."""
    many = len(joints)
    gains = Gains(kp=(kp,) * many, kd=(kd,) * many, force=(100,) * many, source="ManiSkill3")
    return JointGroup(joints=joints, gains=gains, effort=effort, delta=(0.2,) * many)


def upper(kp: float, kd: float, delta: float) -> dict[str, JointGroup]:
    """The groups above the pelvis; ``delta`` is how far an action turns a finger's joint [rad]."""
    arms = {side: names(one for one in BODIES if one.name.startswith(side)) for side in ("left", "right")}
    soft = Gains(kp=(4,) * 7, kd=(0.15,) * 7, force=(0.7,) * 7, source="chosen; torque: Unitree")
    return {
        "torso": group(("torso_joint",), kp, kd, (88,)),
        **{f"{side}_arm": group(joints[:5], kp, kd, (21,) * 5) for side, joints in arms.items()},
        **{
            f"{side}_hand": JointGroup(joints=joints[5:], gains=soft, delta=(delta,) * 7)
            for side, joints in arms.items()
        },
    }


CONTROLLERS = ("joint_pos", "joint_delta_pos", "joint_target_delta_pos", "joint_vel", "ee_delta_pos", "joint_torque")
GRASP = (0, 0.1, 0.92, -0.77, -0.92, -0.77, -0.92)  # of the left hand: the thumb's three joints, then each finger's two

SIMPLIFIED_LEGS = RobotSpec(
    name="g1_simplified_legs",
    title="Unitree G1 with hands, only shins and feet collide",
    links=tuple(
        replace(one, geoms=tuple(replace(g, collide=g.collide and one in LEGS, pad=False) for g in one.geoms))
        for one in (PELVIS, *LEGS, *BODIES)
    ),
    base=Base(kind="free"),
    groups={"legs": group(names(LEGS), 50, 1, (88, 88, 88, 139, 40, 40) * 2), **upper(50, 1, 0.2)},
    ik_groups=("left_arm",),
    tools={side: replace(hand(side), body=f"{side}_palm_link", gripper=None) for side in ("left", "right")},
    feet=("left_ankle_roll_link", "right_ankle_roll_link"),
    stands=False,
    keyframes={
        "rest": (
            *(0.0,) * 13,
            *(0, 0.2, 0, 0.9, 0),
            *(0, -0.2, 0, 0.9, 0),
            *GRASP,
            *(-q for q in GRASP),
        )
    },
    base_pos=(0, 0, 0.755),
    gravcomp=False,
    controllers=(*CONTROLLERS, "joint_impedance", "joint_vel_pid"),
    sensors=(ImuSpec(name="imu", body="torso_link", pos=(-0.0423387, 0.00166, 0.152067)),),
    source="mani_skill 3.0.1, from Unitree's description",
)

UPPER_BODY = replace(
    SIMPLIFIED_LEGS,
    name="g1_upper_body",
    title="Unitree G1 with hands, held at the pelvis",
    links=(
        *(
            replace(one, joint=None, geoms=tuple(replace(g, collide=False) for g in one.geoms if g.visible))
            for one in (PELVIS, *LEGS)
        ),
        *BODIES,
    ),
    base=Base(),
    groups=upper(1000, 100, 0.5),
    tools={side: hand(side) for side in ("left", "right")},
    feet=(),
    stands=True,
    keyframes={
        "rest": (0.0,) * 25,
        "palms": (0, *(0, 0.2, 0, 0, 0), *(0, -0.2, 0, 0, 0), *(0, -1, 0, 0, 0, 0, 0), *(0, 1, 0, 0, 0, 0, 0)),
    },  # "palms": thumbs turned back, so that both palms lie flat
    base_pos=(-0.4, 0, -0.9196 + 0.755 + 0.2),  # its forearms are lower than the table is high
    table_edge=-0.25,
    gravcomp=True,
    excludes=(
        *(("torso_link", f"{side}_{part}_link") for side in ("left", "right") for part in ("shoulder_roll",)),
        *((f"{side}_palm_link", f"{side}_one_link") for side in ("left", "right")),
    ),
    cameras=(
        CameraSpec(
            name="head_camera",
            on="head_link",
            pos=(0.05, 0, 0.46),
            target=(0.05 + math.cos(math.pi / 6), 0, 0.46 - math.sin(math.pi / 6)),
            fovy=math.pi / 2,
            width=128,
            height=128,
        ),
    ),
)

ROBOTS = {spec.name: spec for spec in (SIMPLIFIED_LEGS, UPPER_BODY)}
