"""Unitree Go2, a quadruped: four legs of three joints, nothing that holds it but its feet.

Kinematics, inertia, limits, torques and armature: mujoco_menagerie unitree_go2 (BSD-3-Clause), from Unitree's
description. Shapes and gains are chosen: kp lets it sag by half a centimetre where it stands, kd is near critical for a
leg that carries a quarter of its 15 kg. Keyframe `rest` is Menagerie's `home`; the base's height follows from it.
"""

from __future__ import annotations

from dataclasses import replace

from manikin.spec.control import JOINT_CONTROLLERS
from manikin.spec.links import Geom as Shape
from manikin.spec.links import Joint, Link, Vec3, box, capsule, cylinder, mirrored
from manikin.spec.robot import Base, Gains, ImuSpec, JointGroup, MenagerieModel, RobotSpec

WHITE, GREY, DARK = (0.92, 0.93, 0.95, 1), (0.62, 0.65, 0.7, 1), (0.08, 0.08, 0.09, 1)
X, Y = (1, 0, 0), (0, 1, 0)


def J(name: str, axis: Vec3, low: float, high: float) -> Joint:
    return Joint(name=f"{name}_joint", axis=axis, range=(low, high), damping=2.0, armature=0.01, frictionloss=0.2)


BODY = Link(
    name="base",
    parent=None,
    mass=6.921,
    com=(0.021112, 0, -0.005366),
    inertia=(0.02448, 0.098077, 0.107, 0.00012166, 0.00148481, -3.12005e-05),
    geoms=(
        box((0.19, 0.075, 0.05), (0, 0, 0), WHITE, visible=False),
        box((0.17, 0.072, 0.045), (0, 0, 0.002), WHITE, collide=False),
        box((0.14, 0.04, 0.012), (0, 0, 0.052), GREY, collide=False),
        cylinder((-0.225, 0, 0), (-0.16, 0, 0), 0.05, DARK, collide=False),
        capsule((0.2, 0, 0.005), (0.285, 0, 0.005), 0.047, GREY),
        capsule((0.29, -0.02, 0.0), (0.29, 0.02, 0.0), 0.04, DARK, collide=False),
        cylinder((0.29, 0, -0.09), (0.29, 0, -0.05), 0.032, DARK, collide=False),
    ),
)


def front_left() -> tuple[Link, ...]:
    """The leg that the others are reflections of."""
    hip = Link(
        name="FL_hip",
        parent="base",
        pos=(0.1934, 0.0465, 0),
        joint=J("FL_hip", X, -1.0472, 1.0472),
        mass=0.678,
        com=(-0.0054, 0.00194, -0.000105),
        inertia=(0.00048, 0.000884, 0.000596, -3.01008e-06, 1.10995e-06, -1.42003e-06),
        geoms=(cylinder((0, 0.06, 0), (0, 0.1, 0), 0.046, GREY), capsule((0, 0, 0), (0, 0.06, 0), 0.03, DARK)),
    )
    thigh = Link(
        name="FL_thigh",
        parent="FL_hip",
        pos=(0, 0.0955, 0),
        joint=J("FL_thigh", Y, -1.5708, 3.4907),
        mass=1.152,
        com=(-0.00374, -0.0223, -0.0327),
        inertia=(0.00584, 0.0058, 0.00103, 8.72e-05, -0.000289001, 0.000808),
        geoms=(
            capsule((0, 0, -0.03), (0, 0, -0.195), 0.02, GREY),
            cylinder((0, -0.03, 0), (0, 0.02, 0), 0.045, WHITE, collide=False),
        ),
    )
    calf = Link(
        name="FL_calf",
        parent="FL_thigh",
        pos=(0, 0, -0.213),
        joint=J("FL_calf", Y, -2.7227, -0.83776),
        mass=0.241352,
        com=(0.00629595, -0.000622121, -0.141417),
        inertia=(0.00146354, 0.00148999, 5.32693e-05, 2.17545e-07, 5.96681e-06, 1.22479e-05),
        geoms=(
            capsule((0.004, 0, -0.01), (0.014, 0, -0.12), 0.012, DARK),
            capsule((0.014, 0, -0.12), (0, 0, -0.2), 0.01, DARK, collide=False),
            Shape(type="sphere", size=(0.022,), pos=(-0.002, 0, -0.213), rgba=DARK),
        ),
    )
    return hip, thigh, calf


def rear(front: tuple[Link, ...], name: str) -> tuple[Link, ...]:
    """A hind leg: the hip is that of the front leg reflected lengthwise, thigh and calf are alike."""
    hip, thigh, calf = (replace(one, name=name + one.name[2:]) for one in front)
    i, joints = hip.inertia, [replace(one.joints[0], name=name + one.joints[0].name[2:]) for one in front]
    return (
        replace(
            hip,
            pos=(-hip.pos[0], hip.pos[1], 0),
            joint=joints[0],
            com=(-hip.com[0], hip.com[1], hip.com[2]),
            inertia=(*i[:3], -i[3], -i[4], i[5]),
        ),
        replace(thigh, parent=f"{name}_hip", joint=replace(joints[1], range=(-0.5236, 4.5379))),
        replace(calf, parent=f"{name}_thigh", joint=joints[2]),
    )


FL = front_left()
FR = mirrored(FL, "FL", "FR")
LEGS = (*FL, *FR, *rear(FL, "RL"), *rear(FR, "RR"))

ROBOT = RobotSpec(
    name="go2",
    title="Unitree Go2",
    links=(BODY, *LEGS),
    menagerie=MenagerieModel(folder="unitree_go2", file="go2.xml"),
    base=Base(kind="free"),
    groups={
        "legs": JointGroup(
            joints=tuple(joint.name for link in LEGS for joint in link.joints),
            gains=Gains(
                kp=(150, 150, 200) * 4,
                kd=(6, 6, 8) * 4,
                force=(23.7, 23.7, 45.43) * 4,
                source="chosen; torques: Unitree",
            ),
            delta=(0.1,) * 12,
            speed=2.0,
        )
    },
    feet=("FL_calf", "FR_calf", "RL_calf", "RR_calf"),
    keyframes={"rest": (0, 0.9, -1.8) * 4},
    base_pos=(0, 0, 0.287),
    gravcomp=False,
    controllers=JOINT_CONTROLLERS,
    sensors=(ImuSpec(name="imu", body="base", pos=(-0.02557, 0, 0.04232)),),
    source="mujoco_menagerie unitree_go2",
)
