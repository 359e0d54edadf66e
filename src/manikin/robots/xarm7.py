"""UFACTORY xArm7, seven joints, with the xArm Gripper.

Kinematics, inertia, limits, armature and forces: mujoco_menagerie ufactory_xarm7 (BSD-3-Clause), from UFACTORY's
description. Its joint friction is left out: the maker's controller compensates it, as it does the weight. kd lets a
joint reach 1 rad/s at its force; kp = 10 kd makes it follow with a time constant of 0.1 s: 2.9 Hz at a damping ratio
of 0.9 at the stretched arm's 1.5 kg m^2 about the shoulder. Rest pose and base placement are chosen: TCP above the
origin, pointing down.
"""

from __future__ import annotations

from math import pi

from manikin.spec.links import Joint, Link, box, capsule, cylinder
from manikin.spec.robot import ArmSpec, Gains, MenagerieModel, MotionLimits

WHITE, GREY = (1, 1, 1, 1), (0.753, 0.753, 0.753, 1)
H = 0.5**0.5


def J(number: int, low: float = -6.28319, high: float = 6.28319) -> Joint:
    return Joint(name=f"joint{number}", range=(low, high), armature=0.1)


LINKS = (
    Link(
        name="link_base",
        parent=None,
        mass=0.88556,
        com=(-0.021131, -0.0016302, 0.056488),
        com_quat=(0.696843, 0.20176, 0.10388, 0.680376),
        inertia=(0.00382023, 0.00335282, 0.00167725),
        geoms=(
            cylinder((0, 0, 0), (0, 0, 0.155), 0.048, WHITE),
            cylinder((0, 0, 0), (0, 0, 0.012), 0.063, WHITE, collide=False),
            box((0.03, 0.02, 0.014), (-0.06, 0, 0.026), GREY, collide=False),
        ),
    ),
    Link(
        name="link1",
        parent="link_base",
        pos=(0, 0, 0.267),
        joint=J(1),
        mass=2.382,
        com=(-0.0002, 0.02905, -0.01233),
        com_quat=(0.978953, -0.202769, -0.00441617, -0.0227264),
        inertia=(0.00569127, 0.00533384, 0.00293865),
        geoms=(
            cylinder((0, 0, -0.112), (0, -0.006, 0), 0.046, WHITE),
            capsule((0, -0.008, 0), (0, 0.026, 0), 0.047, WHITE),
            cylinder((0, 0, 0), (0, 0.075, 0), 0.045, WHITE, collide=False),
        ),
    ),
    Link(
        name="link2",
        parent="link1",
        quat=(H, -H, 0, 0),
        joint=J(2, -2.059, 2.0944),
        mass=1.869,
        com=(0.00022, -0.12856, 0.01735),
        com_quat=(0.50198, 0.86483, -0.00778841, 0.00483285),
        inertia=(0.00959898, 0.00937717, 0.00201315),
        geoms=(
            capsule((0, 0, 0.072), (0, -0.09, 0.068), 0.046, WHITE),
            capsule((0, -0.09, 0.068), (0, -0.14, 0.005), 0.045, WHITE),
            cylinder((0, -0.192, 0), (0, -0.135, 0), 0.042, WHITE, collide=False),
        ),
    ),
    Link(
        name="link3",
        parent="link2",
        pos=(0, -0.293, 0),
        quat=(H, H, 0, 0),
        joint=J(3),
        mass=1.6383,
        com=(0.0466, -0.02463, -0.00768),
        com_quat=(0.913819, 0.289775, 0.281481, -0.0416455),
        inertia=(0.00351721, 0.00294089, 0.00195868),
        geoms=(
            cylinder((0, 0, -0.101), (0, 0, -0.06), 0.042, WHITE, collide=False),
            capsule((0, 0, -0.066), (0.04, 0.025, -0.008), 0.041, WHITE),
            capsule((0.0525, -0.025, 0), (0.0525, 0.026, 0), 0.043, WHITE),
        ),
    ),
    Link(
        name="link4",
        parent="link3",
        pos=(0.0525, 0, 0),
        quat=(H, H, 0, 0),
        joint=J(4, -0.19198, 3.927),
        mass=1.7269,
        com=(0.07047, -0.11575, 0.012),
        com_quat=(0.422108, 0.852026, -0.126025, 0.282832),
        inertia=(0.00657137, 0.00647948, 0.00186763),
        geoms=(
            capsule((0, 0, 0.066), (0.0775, -0.083, 0.062), 0.042, WHITE),
            capsule((0.0775, -0.083, 0.062), (0.0775, -0.12, 0.002), 0.042, WHITE),
            cylinder((0.0775, -0.169, 0), (0.0775, -0.115, 0), 0.042, WHITE, collide=False),
        ),
    ),
    Link(
        name="link5",
        parent="link4",
        pos=(0.0775, -0.3425, 0),
        quat=(H, H, 0, 0),
        joint=J(5),
        mass=1.3203,
        com=(-0.00032, 0.01604, -0.026),
        com_quat=(0.999311, -0.0304457, 0.000577067, 0.0212082),
        inertia=(0.00534729, 0.00499076, 0.0013489),
        geoms=(
            cylinder((0, 0, -0.173), (0, 0, -0.13), 0.042, WHITE, collide=False),
            capsule((0, 0.003, -0.138), (0, 0.046, -0.06), 0.037, WHITE),
            capsule((0, 0.047, -0.06), (0, 0.047, 0), 0.037, WHITE),
        ),
    ),
    Link(
        name="link6",
        parent="link5",
        quat=(H, H, 0, 0),
        joint=J(6, -1.69297, 3.14159),
        mass=1.325,
        com=(0.06469, 0.03278, 0.02141),
        com_quat=(-0.217672, 0.772419, 0.16258, 0.574069),
        inertia=(0.00245421, 0.00221646, 0.00107273),
        geoms=(
            capsule((0, 0, 0.02), (0.07, 0.002, 0.004), 0.036, WHITE),
            cylinder((0.076, 0, 0), (0.076, 0.069, 0), 0.0375, WHITE),
        ),
    ),
    Link(
        name="link7",
        parent="link6",
        pos=(0.076, 0.097, 0),
        quat=(H, -H, 0, 0),
        joint=J(7),
        mass=0.17,
        com=(0, -0.00677, -0.01098),
        com_quat=(0.487612, 0.512088, -0.512088, 0.487612),
        inertia=(0.000132176, 9.3e-05, 5.85236e-05),
        geoms=(cylinder((0, 0, -0.027), (0, 0, 0), 0.0375, GREY),),
    ),
)

ARM = ArmSpec(
    name="xarm7",
    title="UFACTORY xArm7",
    links=LINKS,
    menagerie=MenagerieModel(folder="ufactory_xarm7", file="xarm7_nohand.xml"),
    joints=tuple(f"joint{i}" for i in range(1, 8)),
    gains=Gains(
        kp=(500, 500, 300, 300, 300, 200, 200),
        kd=(50, 50, 30, 30, 30, 15, 15),
        force=(50, 50, 30, 30, 30, 20, 20),
        source="force: Menagerie; kd: force / 1 rad/s, the fastest a damped joint can go; kp: 10 kd",
    ),
    flange_body="link7",
    gripper="xarm_gripper",
    keyframes={"rest": (0, 0.14101, 0, 1.14745, 0, 1.00643, 0)},
    motion=MotionLimits(velocity=(pi,), source="velocity: UFACTORY's manual; the rest chosen"),
    base_pos=(-0.5, 0, 0),
    excludes=(("link_base", "link1"),),
    reach=0.7,
    payload=3.5,
    source="mujoco_menagerie ufactory_xarm7",
)
