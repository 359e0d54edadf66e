"""UFACTORY xArm6, six joints, with the xArm Gripper.

Kinematics, inertia, limits and forces: UFACTORY's xarm_ros (BSD-3-Clause), its default parameters xarm6_type6_HT_BR2.
Its joint friction is left out: the maker's controller compensates it, as it does the weight. Armature, kd and kp as for
the xArm7, whose motors it has. Shapes are drawn after those of the xArm7, the upper arm by guess. Rest pose and base
placement are chosen: TCP above the origin, pointing down.
"""

from __future__ import annotations

from math import pi

from manikin.spec.links import Joint, Link, box, capsule, cylinder
from manikin.spec.robot import ArmSpec, Gains, MotionLimits

WHITE, GREY = (1, 1, 1, 1), (0.753, 0.753, 0.753, 1)
H = 0.5**0.5


def J(number: int, low: float = -2 * pi, high: float = 2 * pi) -> Joint:
    return Joint(name=f"joint{number}", range=(low, high), armature=0.1)


LINKS = (
    Link(
        name="link_base",
        parent=None,
        mass=2.7,
        com=(0, 0, 0.09103),
        inertia=(0.00494875, 0.00494174, 0.002219, -3.5e-06, 1.25e-05, 1.67e-06),
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
        mass=2.3814,
        com=(0.00022, 0.02951, -0.0124),
        inertia=(0.0058562, 0.0050316, 0.003536652, -1.79e-05, 3.55e-06, -0.000888336),
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
        mass=2.2675,
        com=(0.03881, -0.22783, 0.03496),
        inertia=(0.028315776, 0.0058, 0.0273447, 0.005, 0.00066546, -0.0045741),
        geoms=(
            capsule((0, 0, 0.072), (0, -0.13, 0.068), 0.046, WHITE),
            capsule((0, -0.13, 0.068), (0.03, -0.225, 0.012), 0.044, WHITE),
            capsule((0.03, -0.225, 0.012), (0.0535, -0.2845, 0), 0.043, WHITE),
            cylinder((0.0535, -0.2845, -0.05), (0.0535, -0.2845, 0.026), 0.043, WHITE),
        ),
    ),
    Link(
        name="link3",
        parent="link2",
        pos=(0.0535, -0.2845, 0),
        joint=J(3, -3.927, 0.19198),
        mass=1.875,
        com=(0.07041, 0.11631, 0.0107),
        inertia=(0.0063483, 0.00379758, 0.00595768, -0.0015397, 0.00096858, 0.00186567),
        geoms=(
            capsule((0, 0, 0.066), (0.0775, 0.083, 0.062), 0.042, WHITE),
            capsule((0.0775, 0.083, 0.062), (0.0775, 0.12, 0.002), 0.042, WHITE),
            cylinder((0.0775, 0.115, 0), (0.0775, 0.169, 0), 0.042, WHITE, collide=False),
        ),
    ),
    Link(
        name="link4",
        parent="link3",
        pos=(0.0775, 0.3425, 0),
        quat=(H, -H, 0, 0),
        joint=J(4),
        mass=1.3192,
        com=(-0.00018, 0.01798, -0.02291),
        inertia=(0.004896, 0.00445694, 0.00134332, -6.925e-06, -1.418e-05, -0.00023186),
        geoms=(
            cylinder((0, 0, -0.173), (0, 0, -0.13), 0.042, WHITE, collide=False),
            capsule((0, 0.003, -0.138), (0, 0.046, -0.06), 0.037, WHITE),
            capsule((0, 0.047, -0.06), (0, 0.047, 0), 0.037, WHITE),
        ),
    ),
    Link(
        name="link5",
        parent="link4",
        quat=(H, H, 0, 0),
        joint=J(5, -1.69297, pi),
        mass=1.33854,
        com=(0.0651, 0.03096, 0.00315),
        inertia=(0.00146378, 0.00184192, 0.002333524, -0.000450624, 0.000284306, 0.000130866),
        geoms=(
            capsule((0, 0, 0.02), (0.07, 0.002, 0.004), 0.036, WHITE),
            cylinder((0.076, 0, 0), (0.076, 0.069, 0), 0.0375, WHITE),
        ),
    ),
    Link(
        name="link6",
        parent="link5",
        pos=(0.076, 0.097, 0),
        quat=(H, -H, 0, 0),
        joint=J(6),
        mass=0.17,
        com=(0, -0.00677, -0.01098),
        inertia=(9.3e-05, 5.87e-05, 0.000132, 0.0, 0.0, -3.6e-06),
        geoms=(cylinder((0, 0, -0.027), (0, 0, 0), 0.0375, GREY),),
    ),
)

ARM = ArmSpec(
    name="xarm6",
    title="UFACTORY xArm6",
    links=LINKS,
    joints=tuple(f"joint{i}" for i in range(1, 7)),
    gains=Gains(
        kp=(500, 500, 300, 300, 300, 200),
        kd=(50, 50, 30, 30, 30, 15),
        force=(50, 50, 32, 32, 32, 20),
        source="force: UFACTORY; kd: the fastest a damped joint can go is about 1 rad/s; kp: 10 kd",
    ),
    flange_body="link6",
    gripper="xarm_gripper",
    keyframes={"rest": (0, 0.10367, -1.21497, 0, 1.1113, 0)},
    motion=MotionLimits(velocity=(pi,), source="velocity: UFACTORY's manual; the rest chosen"),
    base_pos=(-0.5, 0, 0),
    excludes=(("link_base", "link1"),),
    reach=0.7,
    payload=5.0,
    source="UFACTORY's xarm_ros",
)
