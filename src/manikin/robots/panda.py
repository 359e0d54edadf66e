"""Franka Emika Panda, seven joints, with the Franka Hand.

Kinematics, inertia, limits and armature: mujoco_menagerie franka_emika_panda (Apache-2.0), from Franka's description.
Gains, rest pose and base placement: ManiSkill3 3.0.1.
"""

from __future__ import annotations

from math import pi

from manikin.spec.links import Joint, Link, box, capsule, cylinder
from manikin.spec.robot import ArmSpec, Gains, MenagerieModel, MotionLimits

WHITE, OFF, GREY = (1, 1, 1, 1), (0.9, 0.92, 0.93, 1), (0.25, 0.25, 0.25, 1)
H = 0.5**0.5


def J(name: str, low: float = -2.8973, high: float = 2.8973) -> Joint:
    return Joint(name=name, range=(low, high), armature=0.1, damping=1.0)


LINKS = (
    Link(
        name="link0",
        parent=None,
        mass=0.629769,
        com=(-0.041018, -0.00014, 0.049974),
        inertia=(0.00315, 0.00388, 0.004285, 8.2904e-7, 0.00015, 8.2299e-6),
        geoms=(
            box((0.1, 0.08, 0.008), (-0.04, 0, 0.008), OFF, collide=False),
            capsule((-0.09, 0, 0.03), (-0.01, 0, 0.075), 0.056, WHITE),
            cylinder((0, 0, 0), (0, 0, 0.14), 0.06, WHITE),
        ),
    ),
    Link(
        name="link1",
        parent="link0",
        pos=(0, 0, 0.333),
        joint=J("joint1"),
        mass=4.970684,
        com=(0.003875, 0.002081, -0.04762),
        inertia=(0.70337, 0.70661, 0.0091170, -0.00013900, 0.0067720, 0.019169),
        geoms=(
            capsule((0, 0, -0.137), (0, -0.055, -0.01), 0.053, WHITE),
            capsule((0, -0.074, 0), (0, -0.04, 0), 0.055, WHITE),
            cylinder((0, 0, -0.192), (0, 0, -0.137), 0.054, WHITE, collide=False),
        ),
    ),
    Link(
        name="link2",
        parent="link1",
        quat=(H, -H, 0, 0),
        joint=J("joint2", -1.7628, 1.7628),
        mass=0.646926,
        com=(-0.003141, -0.02872, 0.003495),
        inertia=(0.0079620, 2.8110e-2, 2.5995e-2, -3.925e-3, 1.0254e-2, 7.04e-4),
        geoms=(
            capsule((0, -0.139, 0), (0, -0.01, 0.055), 0.053, WHITE),
            capsule((0, 0, 0.074), (0, 0, 0.04), 0.055, WHITE),
            cylinder((0, -0.194, 0), (0, -0.139, 0), 0.054, WHITE, collide=False),
        ),
    ),
    Link(
        name="link3",
        parent="link2",
        pos=(0, -0.316, 0),
        quat=(H, H, 0, 0),
        joint=J("joint3"),
        mass=3.228604,
        com=(2.7518e-2, 3.9252e-2, -6.6502e-2),
        inertia=(3.7242e-2, 3.6155e-2, 1.083e-2, -4.761e-3, -1.1396e-2, -1.2805e-2),
        geoms=(
            capsule((0, 0, -0.07), (0.072, 0.048, -0.005), 0.053, WHITE),
            cylinder((0, 0, -0.121), (0, 0, -0.066), 0.054, WHITE, collide=False),
            cylinder((0.0825, 0.05, 0), (0.0825, 0.1, 0), 0.056, GREY),
            cylinder((0.0825, 0.1, 0), (0.0825, 0.111, 0), 0.036, WHITE, collide=False),
        ),
    ),
    Link(
        name="link4",
        parent="link3",
        pos=(0.0825, 0, 0),
        quat=(H, H, 0, 0),
        joint=J("joint4", -3.0718, -0.0698),
        mass=3.587895,
        com=(-5.317e-2, 1.04419e-1, 2.7454e-2),
        inertia=(2.5853e-2, 1.9552e-2, 2.8323e-2, 7.796e-3, -1.332e-3, 8.641e-3),
        geoms=(
            capsule((-0.01, 0.005, 0.048), (-0.0825, 0.07, 0), 0.053, WHITE),
            cylinder((-0.0825, 0.065, 0), (-0.0825, 0.124, 0), 0.054, WHITE, collide=False),
            cylinder((0, 0, 0.05), (0, 0, 0.1), 0.056, GREY),
            cylinder((0, 0, 0.1), (0, 0, 0.111), 0.036, WHITE, collide=False),
        ),
    ),
    Link(
        name="link5",
        parent="link4",
        pos=(-0.0825, 0.384, 0),
        quat=(H, -H, 0, 0),
        joint=J("joint5"),
        mass=1.225946,
        com=(-1.1953e-2, 4.1065e-2, -3.8437e-2),
        inertia=(3.5549e-2, 2.9474e-2, 8.627e-3, -2.117e-3, -4.037e-3, 2.29e-4),
        geoms=(
            cylinder((0, 0, -0.259), (0, 0, -0.21), 0.053, WHITE, collide=False),
            capsule((0, 0, -0.208), (0, 0.06, -0.11), 0.05, WHITE),
            capsule((0, 0.08, -0.165), (0, 0.085, 0), 0.04, GREY),
            capsule((0, 0.05, 0), (0, 0.075, 0), 0.048, WHITE),
            capsule((0, 0.1, -0.14), (0, 0.104, -0.01), 0.024, WHITE, collide=False),
        ),
    ),
    Link(
        name="link6",
        parent="link5",
        quat=(H, H, 0, 0),
        joint=J("joint6", -0.0175, 3.7525),
        mass=1.666555,
        com=(6.0149e-2, -1.4117e-2, -1.0517e-2),
        inertia=(1.964e-3, 4.354e-3, 5.433e-3, 1.09e-4, -1.158e-3, 3.41e-4),
        geoms=(
            capsule((-0.006, 0, 0.005), (0.06, 0.01, 0), 0.043, WHITE),
            cylinder((0, 0, 0.03), (0, 0, 0.054), 0.044, GREY, collide=False),
            cylinder((0.088, -0.05, 0), (0.088, 0.062, 0), 0.044, WHITE),
            cylinder((0.088, 0.062, 0), (0.088, 0.079, 0), 0.035, GREY, collide=False),
        ),
    ),
    Link(
        name="link7",
        parent="link6",
        pos=(0.088, 0, 0),
        quat=(H, H, 0, 0),
        joint=J("joint7"),
        mass=0.735522,
        com=(1.0517e-2, -4.252e-3, 6.1597e-2),
        inertia=(1.2516e-2, 1.0027e-2, 4.815e-3, -4.28e-4, -1.196e-3, -7.41e-4),
        geoms=(
            cylinder((0, 0, 0.052), (0, 0, 0.107), 0.044, OFF),
            capsule((0.02, 0.02, 0.08), (0.055, 0.055, 0.08), 0.018, WHITE, collide=False),
            box((0.012, 0.02, 0.006), (0.042, 0.042, 0.068), GREY, quat=(0.9239, 0, 0, 0.3827), collide=False),
        ),
    ),
)

ARM = ArmSpec(
    name="panda",
    title="Franka Emika Panda",
    links=LINKS,
    menagerie=MenagerieModel(folder="franka_emika_panda", file="panda_nohand.xml", drop=("attachment",)),
    joints=tuple(f"joint{i}" for i in range(1, 8)),
    gains=Gains(kp=(1000,) * 7, kd=(100,) * 7, force=(100,) * 7, source="ManiSkill3 3.0.1 panda"),
    effort=(87, 87, 87, 87, 12, 12, 12),  # Franka's data sheet
    motion=MotionLimits(
        velocity=(2.175,) * 4 + (2.61,) * 3,
        acceleration=(15, 7.5, 10, 12.5, 15, 20, 20),
        jerk=(7500, 3750, 5000, 6250, 7500, 10000, 10000),
        source="Franka Control Interface, limits of the Panda",
    ),
    flange_body="link7",
    flange_pos=(0, 0, 0.107),
    flange_quat=(0.9238795325112867, 0, 0, -0.3826834323650898),  # Franka mounts its hand turned by 45 deg
    gripper="panda_hand",
    keyframes={
        "rest": (0, pi / 8, 0, -5 * pi / 8, 0, 3 * pi / 4, pi / 4),
        "forward": (0, -0.4, 0, -2.6, 0, 2.2 + pi / 4, pi / 4),  # reaching forward and down
        "raised": (0, 0, 0, -2 * pi / 3, 0, 2 * pi / 3, pi / 4),  # the TCP 32 cm above the base
        "ready": (0, pi / 16, 0, -5 * pi / 6, 0, pi - 0.2, pi / 4),  # robosuite's
    },
    base_pos=(-0.615, 0, 0),
    excludes=(("link0", "link1"),),
    reach=0.855,
    payload=3.0,
    source="mujoco_menagerie franka_emika_panda",
)
