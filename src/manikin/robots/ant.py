"""The ant of many benchmarks: a ball with four legs of two joints.

Shapes, density, joints, damping and armature: ManiSkill3's ant.xml, which is Gymnasium's with other limits. Torques are
its motors' 15 N m, stiffness and damping those of its position controller.
"""

from __future__ import annotations

import math

from manikin.spec.links import Geom, Joint, Link, Vec3, capsule, solid
from manikin.spec.robot import Base, Gains, JointGroup, RobotSpec

ORANGE, DARK = (0.9, 0.45, 0.15, 1), (0.35, 0.2, 0.12, 1)
DENSITY = 5.0  # [kg/m^3]
RADIUS = 0.08  # [m] of a leg
HIP, ANKLE = math.radians(40), (math.radians(30), math.radians(100))
LEGS = {  # name of the leg: where it points, axis of its ankle, which way that bends down
    1: ("front_left", (1, 1), (-1, 1, 0), 1),
    2: ("front_right", (-1, 1), (1, 1, 0), -1),
    3: ("left_back", (-1, -1), (-1, 1, 0), -1),
    4: ("right_back", (1, -1), (1, 1, 0), 1),
}


def along(way: tuple[int, int], length: float) -> Vec3:
    """So far in x and in y."""
    return (way[0] * length, way[1] * length, 0.0)


def hinge(name: str, axis: Vec3, low: float, high: float) -> Joint:
    return Joint(name=name, axis=axis, range=(low, high), damping=0.1, armature=0.01)


def leg(number: int) -> tuple[Link, ...]:
    """From the hip to the tip."""
    name, way, axis, down = LEGS[number]
    low, high = sorted((down * ANKLE[0], down * ANKLE[1]))
    return (
        Link(
            name=f"{name}_leg",
            parent="torso",
            pos=along(way, 0.2),
            joint=hinge(f"hip_{number}", (0, 0, 1), -HIP, HIP),
            geoms=(capsule((0, 0, 0), along(way, 0.2), RADIUS, ORANGE),),
        ),
        Link(
            name=f"{name}_foot",
            parent=f"{name}_leg",
            pos=along(way, 0.2),
            joint=hinge(f"ankle_{number}", axis, low, high),
            geoms=(capsule((0, 0, 0), along(way, 0.4), RADIUS, DARK),),
        ),
    )


TORSO = Link(
    name="torso",
    parent=None,
    geoms=(
        Geom(type="sphere", size=(0.25,), rgba=ORANGE),
        *(capsule((0, 0, 0), along(way, 0.2), RADIUS, ORANGE) for _, way, _, _ in LEGS.values()),
    ),
)
LINKS = tuple(solid(link, DENSITY) for link in (TORSO, *(link for number in LEGS for link in leg(number))))

ROBOT = RobotSpec(
    name="ant",
    title="Ant",
    links=LINKS,
    base=Base(kind="free"),
    groups={
        "legs": JointGroup(
            joints=tuple(joint.name for link in LINKS for joint in link.joints),
            gains=Gains(kp=(1000,) * 8, kd=(100,) * 8, force=(1000,) * 8, source="ManiSkill3; force: chosen"),
            effort=(15,) * 8,
            delta=(1.0,) * 8,
        )
    },
    feet=tuple(f"{name}_foot" for name, *_ in LEGS.values()),
    foot_friction=1.5,
    keyframes={"rest": tuple(float(x) for *_, down in LEGS.values() for x in (0, down))},
    base_pos=(0, 0, 0.57),
    gravcomp=False,
    measures_centre=True,
    controllers=("joint_pos", "joint_delta_pos", "joint_target_delta_pos", "joint_vel", "joint_torque"),
    source="ManiSkill3 3.0.1 ant.xml",
)
