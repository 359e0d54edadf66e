"""Kinova Mico with six joints and a wrist of 60 degree bends (m1n6s300), a Robotiq FT300 and the KG-3 hand.

Kinematics, masses and inertia: the description that Collins et al. (IEEE RA-L 2020, arXiv 1911.01557) released, which
is Kinova's with the sensor between arm and hand. Zero is where the arm points up; Kinova counts 180 degrees more in
joints 2 and 3. Forces and limits: kinova-ros (BSD-3-Clause). kd lets a joint reach 2 rad/s at its force; kp = 10 kd.
Armature, shapes, rest pose and base placement are chosen: TCP above the origin, pointing down.
"""

from __future__ import annotations

from math import radians

from manikin.spec.links import Joint, Link, Quat, Vec3, box, capsule, cylinder
from manikin.spec.robot import ArmSpec, Gains, MotionLimits

WHITE, GREY, DARK = (0.79, 0.82, 0.93, 1), (0.62, 0.64, 0.68, 1), (0.2, 0.21, 0.23, 1)
H, C30 = 0.5**0.5, 0.75**0.5
TURN = 6.28319
EFFORT = (40.0, 80.0, 40.0, 20.0, 20.0, 20.0)


def J(number: int, low: float = -TURN, high: float = TURN) -> Joint:
    return Joint(name=f"joint_{number}", range=(low, high), armature=0.05)


def bend(number: int, parent: str, pos: Vec3, quat: Quat) -> Link:
    """One half of the wrist."""
    return Link(
        name=f"link_{number}",
        parent=parent,
        pos=pos,
        quat=quat,
        joint=J(number),
        mass=0.1785,
        com=(0, -0.037, -0.0642),
        inertia=(7.73497e-05, 7.73497e-05, 0.0001428),
        geoms=(
            cylinder((0, 0, 0), (0, 0, -0.038), 0.0315, WHITE),
            capsule((0, -0.002, -0.036), (0, -0.02, -0.054), 0.03, WHITE),
            cylinder((0, -0.0024, -0.0441), (0, -0.037, -0.0641), 0.0315, WHITE),
            cylinder((0, 0, -0.001), (0, 0, -0.009), 0.034, DARK, collide=False),
        ),
    )


LINKS = (
    Link(
        name="link_base",
        parent=None,
        mass=0.46784,
        com=(0, 0, 0.1255),
        inertia=(0.000951271, 0.000951271, 0.000374272),
        geoms=(cylinder((0, 0, 0), (0, 0, 0.156), 0.041, WHITE),),
    ),
    Link(
        name="link_1",
        parent="link_base",
        pos=(0, 0, 0.15675),
        quat=(0, 0, 1, 0),
        joint=J(1),
        mass=0.7477,
        com=(0, -0.002, -0.0605),
        inertia=(0.00152032, 0.00152032, 0.00059816),
        geoms=(
            cylinder((0, 0, 0), (0, 0, -0.085), 0.0405, WHITE),
            cylinder((0, 0.0016, -0.11875), (0, -0.041, -0.11875), 0.0413, WHITE),
            cylinder((0, 0, -0.001), (0, 0, -0.012), 0.0445, DARK, collide=False),
        ),
    ),
    Link(
        name="link_2",
        parent="link_1",
        pos=(0, 0.0016, -0.11875),
        quat=(H, H, 0, 0),
        joint=J(2, radians(-130), radians(130)),
        mass=0.85968,
        com=(0, -0.145, -0.0076),
        inertia=(0.00467091, 0.000386856, 0.00467091),
        geoms=(
            cylinder((0, 0, 0), (0, 0, -0.0437), 0.0413, WHITE),
            box((0.036, 0.13, 0.018), (0, -0.145, -0.0245), WHITE),
            cylinder((0, -0.29, 0), (0, -0.29, -0.0437), 0.0413, WHITE),
            cylinder((0, 0, 0.001), (0, 0, -0.01), 0.0445, DARK, collide=False),
        ),
    ),
    Link(
        name="link_3",
        parent="link_2",
        pos=(0, -0.290, 0),
        quat=(0, 1, 0, 0),
        joint=J(3, radians(-145), radians(145)),
        mass=0.606,
        com=(0, 0.0463, -0.0065),
        inertia=(0.000383798, 0.0001212, 0.000383798),
        geoms=(
            cylinder((0, 0, 0), (0, 0, -0.0425), 0.0413, WHITE),
            box((0.033, 0.03, 0.0195), (0, 0.04, -0.02), WHITE),
            cylinder((0, 0.06, -0.0086), (0, 0.1231, -0.0086), 0.0315, WHITE),
            cylinder((0, 0, 0.001), (0, 0, -0.01), 0.0445, DARK, collide=False),
        ),
    ),
    bend(4, "link_3", (0, 0.1231, -0.0086), (0, 0, -H, H)),
    bend(5, "link_4", (0, -0.03703, -0.06414), (0, 0, 0.5, C30)),
    Link(
        name="ft_mount",
        parent="link_5",
        pos=(0, -0.03703, -0.06414),
        quat=(0, 0, 0.5, C30),
        joint=J(6),
        mass=0.0431,
        inertia=(0.001, 0.001, 0.001),
        geoms=(cylinder((0, 0, 0), (0, 0, -0.0351), 0.0375, GREY),),
    ),
    Link(
        name="ft_sensor",  # z out of it
        parent="ft_mount",
        pos=(0, 0, -0.03513),
        quat=(0, H, H, 0),
        mass=0.65,
        com=(0, 0, 0.01875),
        inertia=(0.000661172, 0.000661172, 0.00117),
        geoms=(cylinder((0, 0, 0), (0, 0, 0.0348), 0.0375, DARK),),
    ),
    Link(
        name="gripper_mount",  # what the sensor carries begins here
        parent="ft_sensor",
        pos=(0, 0, 0.0348),
        mass=0.04,
        inertia=(0.001, 0.001, 0.001),
        geoms=(cylinder((0, 0, 0), (0, 0, 0.0175), 0.0365, GREY),),
    ),
)

ARM = ArmSpec(
    name="kinova_mico",
    title="Kinova Mico with FT300",
    links=LINKS,
    menagerie=None,
    joints=tuple(f"joint_{i}" for i in range(1, 7)),
    gains=Gains(
        kp=tuple(5 * e for e in EFFORT),
        kd=tuple(e / 2 for e in EFFORT),
        force=EFFORT,
        source="force: kinova-ros; kd: force / 2 rad/s, kp: 10 kd",
    ),
    flange_body="gripper_mount",
    flange_pos=(0, 0, 0.008),
    flange_quat=(H, 0, 0, H),
    gripper="kinova_kg3",
    keyframes={"rest": (0.14081, -0.70271, 0.85814, 0.62257, -1.92474, -2.37822), "home": (0, 0, 0, 0, 0, 0)},
    motion=MotionLimits(velocity=(radians(36),) * 3 + (radians(48),) * 3, source="velocity: kinova-ros; rest chosen"),
    base_pos=(-0.4, 0, 0),
    excludes=(
        ("link_base", "link_1"),
        ("link_1", "link_3"),
        ("link_3", "link_5"),
        ("link_4", "ft_mount"),
        *((one, "gripper_mount") for one in ("ft_mount", "link_5")),
        ("link_5", "ft_sensor"),
    ),
    reach=0.7,
    payload=1.3,
    source="Collins et al. 2020, from Kinova's description",
)
