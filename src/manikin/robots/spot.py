"""Boston Dynamics Spot, a quadruped, alone (``spot``) and with the arm on its back (``spot_arm``).

Kinematics, inertia and limits: mujoco_menagerie boston_dynamics_spot (BSD-3-Clause). Gains of the legs are Menagerie's.
Torques, which no maker's page gives: 45 N m at the hips, at the knees 106 N m, which their linkage has at the angle at
which Spot stands, and those of the arm; all as Isaac Lab and users of Spot's joint API have them. Gains of the arm, the
place of the IMU and the shapes are chosen. Keyframe `rest` is Menagerie's `home`; the base's height follows from it.
"""

from __future__ import annotations

from dataclasses import replace

from manikin.spec.control import JOINT_CONTROLLERS
from manikin.spec.links import Geom as Shape
from manikin.spec.links import Joint, Link, Quat, Vec3, box, capsule, cylinder, pad
from manikin.spec.robot import Base, Gains, ImuSpec, JointGroup, MenagerieModel, RobotSpec, Tool

YELLOW, DARK, GREY = (0.88, 0.67, 0.23, 1), (0.1, 0.1, 0.1, 1), (0.22, 0.22, 0.23, 1)
X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)
H = 0.5**0.5

BODY = Link(
    name="body",
    parent=None,
    mass=32.86,
    com=(0.0063944, -9.81216e-05, 0.000911379),
    inertia=(0.13144,) * 3,
    geoms=(
        box((0.43, 0.12, 0.095), (0.005, 0, 0), DARK, visible=False),
        box((0.24, 0.112, 0.05), (0, 0, 0.032), YELLOW, collide=False),
        box((0.37, 0.092, 0.07), (0, 0, -0.012), DARK, collide=False),
        box((0.3, 0.05, 0.008), (0, 0, 0.08), DARK, collide=False),
        box((0.045, 0.1, 0.062), (-0.385, 0, 0.012), YELLOW, collide=False),
        box((0.035, 0.098, 0.085), (0.385, 0, -0.01), YELLOW, collide=False),
        box((0.03, 0.094, 0.066), (0.41, 0, -0.008), YELLOW, collide=False),
        box((0.01, 0.02, 0.048), (0.432, 0.045, -0.01), DARK, collide=False),
        box((0.01, 0.02, 0.048), (0.432, -0.045, -0.01), DARK, collide=False),
    ),
)


def leg(name: str, x: int, y: int, thigh: float, knee: float) -> tuple[Link, ...]:
    """A leg in front (``x`` = 1) or behind (-1), on the left (``y`` = 1) or on the right (-1). ``thigh`` and ``knee``
    are the upper limits [rad] of these joints, which differ a little from leg to leg."""
    hip = Link(
        name=f"{name}_hip",
        parent="body",
        pos=(0.29785 * x, 0.055 * y, 0),
        joint=Joint(name=f"{name}_hx", axis=X, range=(-0.785398, 0.785398)),
        mass=1.68,
        com=(-0.00537435 * x, 0.0128418 * y, 9.87523e-05 * x * y),
        com_quat=(0.5, 0.5, -0.5, 0.5),
        inertia=(0.00226544, 0.00211474, 0.00181296),
        geoms=(
            cylinder((-0.09 * x, 0.012 * y, 0), (0.042 * x, 0.012 * y, 0), 0.046, DARK, collide=False),
            cylinder((0, 0.02 * y, 0), (0, 0.06 * y, 0), 0.045, DARK, collide=False),
        ),
    )
    upper = Link(
        name=f"{name}_uleg",
        parent=hip.name,
        pos=(0, 0.1108 * y, 0),
        joint=Joint(name=f"{name}_hy", axis=Y, range=(-0.898845, thigh)),
        mass=2.34,
        com=(0.00514237, -0.00243237 * y, -0.121009),
        inertia=(0.0275596, 0.0273549, 0.00284815),
        geoms=(
            capsule((0, 0.003 * y, 0.012), (0.006, 0.003 * y, -0.14), 0.049, YELLOW),
            capsule((0.004, 0.003 * y, -0.1), (0.014, 0, -0.285), 0.042, YELLOW),
            cylinder((0, -0.062 * y, 0), (0, -0.03 * y, 0), 0.052, DARK, collide=False),
            cylinder((0.024, -0.032 * y, -0.318), (0.024, 0.032 * y, -0.318), 0.024, DARK, collide=False),
        ),
    )
    lower = Link(
        name=f"{name}_lleg",
        parent=upper.name,
        pos=(0.025, 0, -0.32),
        joint=Joint(name=f"{name}_kn", axis=Y, range=(-2.7929, knee)),
        mass=0.35,
        com=(0.00225794, 4.6076e-05, -0.180082),
        com_quat=(H, 0, 0, H),
        inertia=(0.00405032, 0.00399902, 0.00014934),
        geoms=(
            capsule((0.006, 0, 0.025), (0.015, 0, -0.12), 0.023, GREY, collide=False),
            capsule((0.015, 0, -0.12), (0.002, 0, -0.3), 0.019, DARK),
            capsule((0.002, 0, -0.29), (0, 0, -0.33), 0.028, DARK, collide=False),
            Shape(type="sphere", size=(0.036,), pos=(0, 0, -0.3365), rgba=DARK),
        ),
    )
    return hip, upper, lower


LEGS = (
    *leg("fl", 1, 1, 2.29511, -0.254402),
    *leg("fr", 1, -1, 2.24363, -0.255648),
    *leg("hl", -1, 1, 2.29511, -0.247067),
    *leg("hr", -1, -1, 2.29511, -0.248282),
)


def part(
    name: str,
    parent: str,
    pos: Vec3,
    joint: tuple[str, Vec3, float, float] | None,
    mass: float,
    com: Vec3,
    turn: Quat,
    inertia: Vec3,
    *geoms: Shape,
) -> Link:
    moved = None if joint is None else Joint(name=joint[0], axis=joint[1], range=joint[2:])
    return Link(
        name=name,
        parent=parent,
        pos=pos,
        joint=moved,
        mass=mass,
        com=com,
        com_quat=turn,
        inertia=inertia,
        geoms=geoms,
    )


BACK = (
    part(
        "arm_link_sh0",
        "body",
        (0.292, 0, 0.188),
        ("arm_sh0", Z, -2.61799, 3.14159),
        2.3364,
        (-0.0123727, -4.52114e-05, -0.021032),
        (H, H, 0, 0),
        (0.0090143, 0.00778748, 0.0058351),
        cylinder((-0.015, 0, -0.105), (-0.015, 0, -0.04), 0.055, DARK),
        capsule((-0.015, -0.055, -0.005), (-0.015, 0.055, -0.005), 0.05, DARK),
    ),
    part(
        "arm_link_sh1",
        "arm_link_sh0",
        (0, 0, 0),
        ("arm_sh1", Y, -3.14159, 0.523599),
        0.2596,
        (2.41764e-05, 2.41161e-06, -1.00591e-05),
        (0.5, 0.5, -0.5, 0.5),
        (0.00020385, 0.000202928, 0.000170786),
        box((0.115, 0.039, 0.02), (0.19, 0, -0.012), YELLOW, collide=False),
        box((0.19, 0.033, 0.024), (0.165, 0, 0.006), DARK, collide=False),
    ),
    part(
        "arm_link_hr0",
        "arm_link_sh1",
        (0, 0, 0),
        None,
        1e-06,
        (0.17047, -0.0019251, 4.48389e-05),
        (0, H, 0, H),
        (1.16111e-08, 1.14871e-08, 6.31263e-10),
        capsule((0, 0, 0), (0.335, 0, 0), 0.033, DARK, visible=False),
    ),
    part(
        "arm_link_el0",
        "arm_link_hr0",
        (0.3385, 0, 0),
        ("arm_el0", Y, 0, 3.14159),
        0.725,
        (0.0553741, 0.000236034, 0.048272),
        (0.5, 0.5, 0.5, 0.5),
        (0.00200479, 0.00197228, 0.000821537),
        capsule((0, -0.012, 0), (0, 0.012, 0), 0.034, DARK, collide=False),
        capsule((0.005, 0, 0.01), (0.085, 0, 0.072), 0.03, DARK),
        cylinder((0.085, 0, 0.074), (0.138, 0, 0.075), 0.038, DARK),
    ),
    part(
        "arm_link_el1",
        "arm_link_el0",
        (0.4033, 0, 0.075),
        ("arm_el1", X, -2.79253, 2.79253),
        0.725,
        (-0.125784, -0.0136845, 0.000101579),
        (0, H, 0, H),
        (0.00451592, 0.00440245, 0.000625481),
        cylinder((-0.264, 0, 0), (-0.05, 0, 0), 0.037, YELLOW),
        box((0.033, 0.01, 0.033), (0, -0.058, 0), DARK),
        box((0.03, 0.012, 0.03), (-0.045, -0.048, 0), DARK, collide=False),
    ),
    part(
        "arm_link_wr0",
        "arm_link_el1",
        (0, 0, 0),
        ("arm_wr0", Y, -1.8326, 1.8326),
        0.98,
        (0.00821068, -0.012051, 3.14348e-05),
        (0.5, 0.5, -0.5, 0.5),
        (0.00123549, 0.000985132, 0.000891615),
        cylinder((0, -0.05, 0), (0, 0.036, 0), 0.038, DARK),
        cylinder((0.0, 0, 0), (0.054, 0, 0), 0.036, YELLOW, collide=False),
    ),
    part(
        "arm_link_wr1",
        "arm_link_wr0",
        (0, 0, 0),
        ("arm_wr1", X, -2.87979, 2.87979),
        0.785,
        (0.125168, 0.000101374, -0.013998),
        (0.5, 0.5, 0.5, 0.5),
        (0.00176281, 0.00168181, 0.000767414),
        box((0.045, 0.042, 0.03), (0.1, 0, -0.03), DARK),
        cylinder((0.055, 0, 0), (0.08, 0, 0), 0.037, DARK, collide=False),
        box((0.028, 0.041, 0.01), (0.174, 0, -0.049), YELLOW),
        pad((0.017, 0.015, 0.011), (0.219, 0, -0.048), DARK, name="lower_jaw_pad"),
    ),
    part(
        "arm_link_fngr",
        "arm_link_wr1",
        (0.11745, 0, 0.01482),
        ("arm_f1x", Y, -1.57, 0),
        0.2,
        (0.0478787, -0.000206768, -0.0162879),
        (0, H, 0, H),
        (0.000391278, 0.000300713, 0.000143996),
        box((0.024, 0.004, 0.018), (0.008, 0.043, -0.005), YELLOW),
        box((0.024, 0.004, 0.018), (0.008, -0.043, -0.005), YELLOW),
        box((0.032, 0.046, 0.014), (0.062, 0, 0), YELLOW),
        box((0.018, 0.038, 0.016), (0.1, 0, -0.018), YELLOW),
        pad((0.014, 0.03, 0.009), (0.105, 0, -0.043), DARK, name="upper_jaw_pad"),
    ),
)

SPOT = RobotSpec(
    name="spot",
    title="Boston Dynamics Spot",
    links=(BODY, *LEGS),
    menagerie=MenagerieModel(folder="boston_dynamics_spot", file="spot.xml"),
    base=Base(kind="free"),
    groups={
        "legs": JointGroup(
            joints=tuple(joint.name for link in LEGS for joint in link.joints),
            gains=Gains(
                kp=(500,) * 12,
                kd=(40,) * 12,
                force=(45, 45, 106) * 4,
                source="mujoco_menagerie; torques: Isaac Lab",
            ),
            speed=2.0,
        )
    },
    feet=("fl_lleg", "fr_lleg", "hl_lleg", "hr_lleg"),
    keyframes={"rest": (0, 1.04, -1.8) * 4},
    base_pos=(0, 0, 0.463),
    gravcomp=False,
    controllers=JOINT_CONTROLLERS,
    excludes=tuple(("body", f"{name}_uleg") for name in ("fl", "fr", "hl", "hr")),
    sensors=(ImuSpec(name="imu", body="body"),),
    source="mujoco_menagerie boston_dynamics_spot",
)

WITH_ARM = replace(
    SPOT,
    name="spot_arm",
    title="Boston Dynamics Spot with its arm",
    links=(BODY, *LEGS, *BACK),
    menagerie=MenagerieModel(folder="boston_dynamics_spot", file="spot_arm.xml"),
    groups={
        **SPOT.groups,
        "arm": JointGroup(
            joints=("arm_sh0", "arm_sh1", "arm_el0", "arm_el1", "arm_wr0", "arm_wr1"),
            gains=Gains(
                kp=(400, 600, 400, 100, 100, 50),
                kd=(60, 80, 40, 10, 10, 5),
                force=(90.9, 181.8, 90.9, 30.3, 30.3, 30.3),
                source="chosen; torques: users of Spot's joint API",
            ),
        ),
    },
    ik_groups=("arm",),
    tools={"jaw": Tool(body="", gripper="spot_jaw", group="arm")},
    keyframes={
        "rest": (*SPOT.keyframes["rest"], 0, -2.0, 1.9, 0, 0.6, 0),
        "stowed": (*SPOT.keyframes["rest"], 0, -3.14, 3.06, 0, 0, 0),  # Menagerie's home
    },
    controllers=(*JOINT_CONTROLLERS, "ee_delta_pos", "ee_delta_pose", "ee_pose", "ik_pose", "osc_position", "osc_pose"),
)

ROBOTS = {spec.name: spec for spec in (SPOT, WITH_ARM)}
