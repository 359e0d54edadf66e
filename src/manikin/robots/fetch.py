"""Fetch, a mobile manipulator: a base that drives, a torso that lifts, an arm of seven joints, a gripper of its own.

Kinematics, inertia and limits: gymnasium_robotics' Fetch (MIT), from Fetch Robotics' description. The base moves along
x and y (20 m either way, chosen) and turns about z, as MS-HAB's does; wheels do not turn. The head stands still, its
camera looking down as far as MS-HAB's does at rest. Force of torso and arm: the efforts of Fetch Robotics' description,
as others quote them; of the base: chosen. kd lets a joint of the arm reach 1.2 rad/s at its force; kp = 10 kd (base,
torso: 5 kd, but 4 kd to turn). Armature is chosen. Gravity is compensated. Inverse kinematics moves torso and arm.
Place and keyframe `rest` are chosen: on the floor before a table, TCP above the origin, pointing down. Keyframe `carry`
is MS-HAB's rest, `forward` that of ManiSkill3's tasks with cabinets.
"""

from __future__ import annotations

from math import pi

from manikin.spec.camera import CameraSpec
from manikin.spec.links import Joint, Link, box, capsule, cylinder
from manikin.spec.robot import Base, Gains, JointGroup, MenagerieModel, RobotSpec, Tool

WHITE, GREY, BLUE, DARK = (0.92, 0.92, 0.92, 1), (0.36, 0.36, 0.38, 1), (0.09, 0.51, 0.77, 1), (0.15, 0.15, 0.16, 1)
H = 0.5**0.5
X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)


def J(name: str, range: tuple[float, float] | None, axis: tuple[float, float, float], type: str = "hinge") -> Joint:
    return Joint(name=name, range=range, axis=axis, type=type, armature=0.1)


LINKS = (
    Link(
        name="base_link",
        parent=None,
        joint=(
            J("base_x", (-20, 20), X, "slide"),
            J("base_y", (-20, 20), Y, "slide"),
            J("base_yaw", None, Z),
        ),
        mass=70.1294,
        com=(-0.0036, 0, 0.0014),
        com_quat=(0.760536, -0.0133006, -0.00610029, 0.649131),
        inertia=(1.2869, 1.2236, 0.9868),
        geoms=(
            cylinder((0, 0, 0.03), (0, 0, 0.22), 0.275, GREY),
            cylinder((-0.02, 0, 0.22), (-0.02, 0, 0.36), 0.235, GREY),
            cylinder((0, 0, 0.285), (0, 0, 0.30), 0.27, DARK, collide=False),
            cylinder((0.0, -0.205, 0.062), (0.0, -0.17, 0.062), 0.0625, DARK, collide=False),
            cylinder((0.0, 0.17, 0.062), (0.0, 0.205, 0.062), 0.0625, DARK, collide=False),
        ),
    ),
    Link(
        name="torso_lift_link",
        parent="base_link",
        pos=(-0.0869, 0, 0.3774),
        joint=J("torso_lift_joint", (0.0386, 0.3861), Z, "slide"),
        mass=10.7796,
        com=(-0.0013, -0.0009, 0.2935),
        com_quat=(0.999264, -0.000599978, 0.0335988, 0.0184993),
        inertia=(0.3365, 0.3354, 0.0943),
        geoms=(
            box((0.1, 0.135, 0.28), (-0.075, 0, 0.315), WHITE),
            box((0.075, 0.08, 0.06), (0.08, 0, 0.27), WHITE),
            box((0.06, 0.06, 0.01), (0.03, 0, 0.588), WHITE),
        ),
    ),
    Link(
        name="head_pan_link",
        parent="torso_lift_link",
        pos=(0.0531, 0, 0.603),
        mass=2.2556,
        com=(0.0321, 0.0161, 0.039),
        com_quat=(0.514806, 0.545107, -0.453006, 0.482306),
        inertia=(0.0185, 0.0128, 0.0095),
        geoms=(
            cylinder((0, 0, 0), (0, 0, 0.09), 0.1, GREY),
            capsule((0.05, -0.115, 0.058), (0.14, -0.115, 0.058), 0.03, GREY),
            capsule((0.05, 0.115, 0.058), (0.14, 0.115, 0.058), 0.03, GREY),
        ),
    ),
    Link(
        name="head_tilt_link",
        parent="head_pan_link",
        pos=(0.1425, 0, 0.058),
        mass=0.9087,
        com=(0.0081, 0.0025, 0.0113),
        com_quat=(0.645787, 0.659987, -0.273994, 0.268895),
        inertia=(0.0063, 0.0059, 0.0014),
        geoms=(box((0.048, 0.1, 0.042), (0.005, 0, 0.008), BLUE),),
    ),
    Link(
        name="shoulder_pan_link",
        parent="torso_lift_link",
        pos=(0.1195, 0, 0.3486),
        joint=J("shoulder_pan_joint", (-1.6056, 1.6056), Z),
        mass=2.5587,
        com=(0.0927, -0.0056, 0.0564),
        com_quat=(-0.136398, 0.76239, -0.156198, 0.612992),
        inertia=(0.009, 0.0086, 0.0041),
        geoms=(
            cylinder((0, 0, -0.06), (0, 0, 0.06), 0.058, WHITE),
            capsule((0.01, 0, 0.02), (0.1, 0, 0.06), 0.045, WHITE),
            cylinder((0.117, -0.066, 0.06), (0.117, 0.03, 0.06), 0.056, WHITE),
        ),
    ),
    Link(
        name="shoulder_lift_link",
        parent="shoulder_pan_link",
        pos=(0.117, 0, 0.06),
        joint=J("shoulder_lift_joint", (-1.221, 1.518), Y),
        mass=2.6615,
        com=(0.1432, 0.0072, -0.0001),
        com_quat=(0.438181, 0.438181, 0.554975, 0.554975),
        inertia=(0.0116, 0.0112, 0.0023),
        geoms=(
            cylinder((0, 0.03, 0), (0, 0.088, 0), 0.055, BLUE),
            capsule((0, 0.03, 0), (0.13, 0.003, 0), 0.054, BLUE),
            cylinder((0.14, 0, 0), (0.21, 0, 0), 0.056, BLUE),
        ),
    ),
    Link(
        name="upperarm_roll_link",
        parent="shoulder_lift_link",
        pos=(0.219, 0, 0),
        joint=J("upperarm_roll_joint", None, X),
        mass=2.3311,
        com=(0.1165, 0.0014, 0),
        com_quat=(-0.0135995, 0.706976, 0.0135995, 0.706976),
        inertia=(0.0047, 0.0045, 0.0019),
        geoms=(
            capsule((0.01, 0, 0), (0.11, -0.03, 0), 0.05, WHITE),
            cylinder((0.133, -0.085, 0), (0.133, 0.02, 0), 0.054, WHITE),
        ),
    ),
    Link(
        name="elbow_flex_link",
        parent="upperarm_roll_link",
        pos=(0.133, 0, 0),
        joint=J("elbow_flex_joint", (-2.251, 2.251), Y),
        mass=2.1299,
        com=(0.1279, 0.0073, 0),
        com_quat=(0.433186, 0.433186, 0.558882, 0.558882),
        inertia=(0.0086, 0.0084, 0.002),
        geoms=(
            cylinder((0, 0.022, 0), (0, 0.08, 0), 0.053, BLUE),
            capsule((0, 0.035, 0), (0.11, 0.005, 0), 0.05, BLUE),
            cylinder((0.12, 0, 0), (0.188, 0, 0), 0.054, BLUE),
        ),
    ),
    Link(
        name="forearm_roll_link",
        parent="elbow_flex_link",
        pos=(0.197, 0, 0),
        joint=J("forearm_roll_joint", None, X),
        mass=1.6563,
        com=(0.1097, -0.0266, 0),
        com_quat=(-0.0714982, 0.703483, 0.0714982, 0.703483),
        inertia=(0.0035, 0.0031, 0.0015),
        geoms=(
            capsule((0.005, 0, 0), (0.1, -0.05, 0), 0.047, WHITE),
            cylinder((0.1245, -0.112, 0), (0.1245, -0.055, 0), 0.052, WHITE),
        ),
    ),
    Link(
        name="wrist_flex_link",
        parent="forearm_roll_link",
        pos=(0.1245, 0, 0),
        joint=J("wrist_flex_joint", (-2.16, 2.16), Y),
        mass=1.725,
        com=(0.0882, 0.0009, -0.0001),
        com_quat=(0.489492, 0.489492, 0.510292, 0.510292),
        inertia=(0.0042, 0.0042, 0.0018),
        geoms=(
            cylinder((0, -0.054, 0), (0, 0.066, 0), 0.054, BLUE),
            cylinder((0.03, 0, 0), (0.115, 0, 0), 0.056, BLUE),
        ),
    ),
    Link(
        name="wrist_roll_link",
        parent="wrist_flex_link",
        pos=(0.1385, 0, 0),
        joint=J("wrist_roll_joint", None, X),
        mass=0.1354,
        com=(0.0095, 0.0004, -0.0002),
        inertia=(0.0001, 0.0001, 0.0001),
        geoms=(cylinder((-0.022, 0, 0), (0.012, 0, 0), 0.052, WHITE),),
    ),
    Link(
        name="torso_fixed_link",
        parent="base_link",
        pos=(-0.0869, 0, 0.3774),
        mass=13.2775,
        com=(-0.0722, 0.0057, 0.2656),
        com_quat=(0.999473, 0.0248993, 0.0176995, 0.0109997),
        inertia=(0.3865, 0.3394, 0.1009),
        geoms=(box((0.07, 0.15, 0.23), (-0.11, 0, 0.21), BLUE),),
    ),
)

ARM_JOINTS = tuple(
    f"{name}_joint"
    for name in (
        "shoulder_pan",
        "shoulder_lift",
        "upperarm_roll",
        "elbow_flex",
        "forearm_roll",
        "wrist_flex",
        "wrist_roll",
    )
)
BASE = ("base_x", "base_y", "base_yaw")
SOURCE = "derived, see above"

ROBOT = RobotSpec(
    name="fetch",
    title="Fetch",
    links=LINKS,
    menagerie=MenagerieModel(
        collection="data",
        folder="gymnasium_robotics_fetch",
        file="fetch/reach.xml",
        root="robot0:base_link",
        prefix="robot0:",
        drop=(
            "robot0:head_pan_joint",
            "robot0:head_tilt_joint",
            "robot0:head_camera_link",
            "robot0:estop_link",
            "robot0:laser_link",
            "robot0:external_camera_body_0",
            "robot0:gripper_link",
        ),
        own_joints=("base_link",),  # the file's third one slides where the base should turn
    ),
    base=Base(kind="planar", joints=BASE),
    groups={
        "base": JointGroup(
            joints=BASE,
            gains=Gains(kp=(4000, 4000, 1600), kd=(800, 800, 400), force=(500, 500, 200), source=SOURCE),
            delta=(0.05, 0.05, 0.1),
        ),
        "torso": JointGroup(
            joints=("torso_lift_joint",),
            gains=Gains(kp=(20000,), kd=(4000,), force=(450,), source=SOURCE),
            delta=(0.02,),
        ),
        "arm": JointGroup(
            joints=ARM_JOINTS,
            gains=Gains(
                kp=(280, 1100, 640, 550, 250, 210, 60),
                kd=(28, 110, 64, 55, 25, 21, 6),
                force=(33.82, 131.76, 76.94, 66.18, 29.35, 25.7, 7.36),
                source=SOURCE,
            ),
        ),
    },
    ik_groups=("torso", "arm"),
    tools={
        "tool": Tool(
            body="wrist_roll_link", pos=(0.0124, 0, 0), quat=(0, H, 0, H), gripper="fetch_gripper", group="arm"
        )
    },
    keyframes={
        "rest": (0, 0, 0, 0.28, 0, -0.85251, 0, 0.72161, 0, 1.70169, 0),
        "forward": (0, 0, 0, 0.386, 0, -pi / 4, 0, pi / 4, 0, pi / 3, 0),
        "carry": (0, 0, 0, 0.386, -0.37, -1.032, 0.695, 0.955, -0.1, 2.077, 0),
    },
    base_pos=(-0.7, 0, -0.9196),
    table_edge=-0.41,
    controllers=(*RobotSpec.controllers, "base_vel"),
    cameras=(
        CameraSpec(
            name="head_camera", on="head_tilt_link", pos=(0.055, 0, 0.0225), target=(0.901, 0, -0.5104), fovy=2.0
        ),
    ),
    source="gymnasium_robotics fetch",
)
