"""The humanoid of dm_control: 21 joints, capsules and balls.

Shapes, density, joints, springs and torques: dm_control's humanoid.xml, right and left as there: the hips bend forward
by 110 and 120 degrees. Stiffness and damping of the position servos are chosen. Contacts are manikin's, harder than
dm_control's.
"""

from __future__ import annotations

import math

from manikin.spec.links import Geom, Joint, Link, Vec3, capsule, solid
from manikin.spec.robot import Base, Gains, JointGroup, RobotSpec

SKIN, DARK = (0.78, 0.6, 0.45, 1), (0.45, 0.33, 0.25, 1)
DENSITY = 1000.0  # [kg/m^3]
SOFT, BIG, STIFF = (1.0, 0.2), (10.0, 5.0), (20.0, 5.0)  # stiffness [N m/rad] and damping [N m s/rad]
TORQUE = {"abdomen": 40, "hip_x": 40, "hip_z": 40, "hip_y": 120, "knee": 80, "ankle": 20, "shoulder": 20, "elbow": 40}


def hinge(name: str, axis: Vec3, low: float, high: float, spring: tuple[float, float], *, z: float = 0.0) -> Joint:
    """``low`` and ``high`` in degrees."""
    limits = (math.radians(low), math.radians(high))
    stiffness, damping = spring
    anchor = (0.0, 0.0, z)
    return Joint(name=name, axis=axis, range=limits, pos=anchor, armature=0.01, stiffness=stiffness, damping=damping)


def ball(radius: float) -> Geom:
    return Geom(type="sphere", size=(radius,), rgba=SKIN)


TRUNK = (
    Link(
        name="torso",
        parent=None,
        geoms=(
            capsule((0, -0.07, 0), (0, 0.07, 0), 0.07, SKIN),
            capsule((-0.01, -0.06, -0.12), (-0.01, 0.06, -0.12), 0.06, SKIN),
        ),
    ),
    Link(name="head", parent="torso", pos=(0, 0, 0.19), geoms=(ball(0.09),)),
    Link(
        name="lower_waist",
        parent="torso",
        pos=(-0.01, 0, -0.26),
        quat=(1, 0, -0.002, 0),
        joint=(
            hinge("abdomen_z", (0, 0, 1), -45, 45, STIFF, z=0.065),
            hinge("abdomen_y", (0, 1, 0), -75, 30, BIG, z=0.065),
        ),
        geoms=(capsule((0, -0.06, 0), (0, 0.06, 0), 0.06, SKIN),),
    ),
    Link(
        name="pelvis",
        parent="lower_waist",
        pos=(0, 0, -0.165),
        quat=(1, 0, -0.002, 0),
        joint=hinge("abdomen_x", (1, 0, 0), -35, 35, BIG, z=0.1),
        geoms=(capsule((-0.02, -0.07, 0), (-0.02, 0.07, 0), 0.09, DARK),),
    ),
)


def leg(name: str, s: int, forward: float) -> tuple[Link, ...]:
    """``s`` is 1 on the left and -1 on the right; ``forward`` is how far the hip bends [degrees]."""
    return (
        Link(
            name=f"{name}_thigh",
            parent="pelvis",
            pos=(0, 0.1 * s, -0.04),
            joint=(
                hinge(f"{name}_hip_x", (-s, 0, 0), -25, 5, BIG),
                hinge(f"{name}_hip_z", (0, 0, -s), -60, 35, BIG),
                hinge(f"{name}_hip_y", (0, 1, 0), -forward, 20, STIFF),
            ),
            geoms=(capsule((0, 0, 0), (0, -0.01 * s, -0.34), 0.06, SKIN),),
        ),
        Link(
            name=f"{name}_shin",
            parent=f"{name}_thigh",
            pos=(0, -0.01 * s, -0.403),
            joint=hinge(f"{name}_knee", (0, -1, 0), -160, 2, SOFT, z=0.02),
            geoms=(capsule((0, 0, 0), (0, 0, -0.3), 0.049, SKIN),),
        ),
        Link(
            name=f"{name}_foot",
            parent=f"{name}_shin",
            pos=(0, 0, -0.39),
            joint=(
                hinge(f"{name}_ankle_y", (0, 1, 0), -50, 50, (6.0, 0.2), z=0.08),
                hinge(f"{name}_ankle_x", (1, 0, 0.5), -50, 50, (3.0, 0.2), z=0.04),
            ),
            geoms=(
                capsule((-0.07, 0.02 * s, 0), (0.14, 0.04 * s, 0), 0.027, DARK),
                capsule((-0.07, 0, 0), (0.14, -0.02 * s, 0), 0.027, DARK),
            ),
        ),
    )


def arm(name: str, s: int, low: float, high: float) -> tuple[Link, ...]:
    """``low`` and ``high`` are limits of both shoulder joints [degrees]."""
    return (
        Link(
            name=f"{name}_upper_arm",
            parent="torso",
            pos=(0, 0.17 * s, 0.06),
            joint=(
                hinge(f"{name}_shoulder1", (2, -s, 1), low, high, SOFT),
                hinge(f"{name}_shoulder2", (0, s, 1), low, high, SOFT),
            ),
            geoms=(capsule((0, 0, 0), (0.16, 0.16 * s, -0.16), 0.04, SKIN),),
        ),
        Link(
            name=f"{name}_lower_arm",
            parent=f"{name}_upper_arm",
            pos=(0.18, 0.18 * s, -0.18),
            joint=hinge(f"{name}_elbow", (0, -1, -s), -90, 50, (0.0, 0.2)),
            geoms=(capsule((0.01, -0.01 * s, 0.01), (0.17, -0.17 * s, 0.17), 0.031, SKIN),),
        ),
        Link(name=f"{name}_hand", parent=f"{name}_lower_arm", pos=(0.18, -0.18 * s, 0.18), geoms=(ball(0.04),)),
    )


LIMBS = (*leg("right", -1, 110), *leg("left", 1, 120), *arm("right", -1, -85, 60), *arm("left", 1, -60, 85))
LINKS = tuple(solid(link, DENSITY) for link in (*TRUNK, *LIMBS))


def group(*words: str, kp: float, kd: float) -> JointGroup:
    """All joints with one of these words in their names."""
    every = (joint.name for link in LINKS for joint in link.joints)
    names = tuple(name for name in every if any(word in name for word in words))
    force = tuple(float(next(t for word, t in TORQUE.items() if word in name)) for name in names)
    count = len(names)
    return JointGroup(
        joints=names,
        gains=Gains(kp=(kp,) * count, kd=(kd,) * count, force=force, source="chosen; torques: dm_control"),
        delta=(0.5,) * count,
    )


ROBOT = RobotSpec(
    name="humanoid",
    title="dm_control's humanoid",
    links=LINKS,
    base=Base(kind="free"),
    groups={
        "torso": group("abdomen", kp=200, kd=10),
        "legs": group("hip", "knee", "ankle", kp=200, kd=10),
        "arms": group("shoulder", "elbow", kp=50, kd=2),
    },
    feet=("right_foot", "left_foot"),
    stands=False,
    keyframes={"rest": (0.0,) * 21},
    base_pos=(0, 0, 1.285),
    gravcomp=False,
    measures_centre=True,
    controllers=("joint_torque", "joint_pos", "joint_delta_pos", "joint_target_delta_pos", "joint_vel"),
    source="dm_control humanoid.xml",
)
