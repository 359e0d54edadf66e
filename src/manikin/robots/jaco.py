"""Kinova Jaco, second generation with seven joints and a spherical wrist (j2s7s300), with its three-finger hand.

Kinematics, inertia, limits and forces (30.5 and 6.8 N m): the figures of robosuite 1.5.2, from Kinova's description; no
mesh model of this arm is at hand. The last link's mass belongs to the hand. kd lets a joint reach about 1 rad/s at that
force; kp = 12 kd. Armature is chosen. Rest pose and base placement are chosen: TCP above the origin, pointing down.
"""

from __future__ import annotations

from manikin.spec.links import Joint, Link, capsule, cylinder
from manikin.spec.robot import ArmSpec, Gains

GREY = (0.85, 0.84, 0.84, 1)
H = 0.5**0.5


def J(
    name: str, range: tuple[float, float] | None, axis: tuple[float, float, float] = (0, 0, 1), armature: float = 0.05
) -> Joint:
    return Joint(name=name, range=range, axis=axis, armature=armature)


LINKS = (
    Link(
        name="link_0",
        parent=None,
        mass=4,
        com=(0, 0, 0.05),
        inertia=(0.4, 0.4, 0.4),
        geoms=(cylinder((0, -0.001, 0.004), (0, -0.001, 0.157), 0.041, GREY),),
    ),
    Link(
        name="link_1",
        parent="link_0",
        pos=(0, 0, 0.15675),
        quat=(0, 0, 1, 0),
        joint=J("joint_1", (-6.28319, 6.28319)),
        mass=0.7477,
        com=(0, -0.002, -0.0605),
        inertia=(0.00152032, 0.00152032, 0.00059816),
        geoms=(
            capsule((0.001, -0.015, -0.021), (0.001, -0.015, -0.13), 0.033, GREY),
            capsule((0.013, 0.009, -0.023), (-0.021, 0.002, -0.019), 0.031, GREY),
        ),
    ),
    Link(
        name="link_2",
        parent="link_1",
        pos=(0, 0.0016, -0.11875),
        quat=(0, 0, -H, H),
        joint=J("joint_2", (0.820305, 5.46288)),
        mass=0.8447,
        com=(0, -0.103563, 0),
        com_quat=(H, H, 0, 0),
        inertia=(0.00247074, 0.00247074, 0.000380115),
        geoms=(
            cylinder((0.001, -0.118, -0.003), (0.001, -0.209, -0.003), 0.041, GREY),
            cylinder((0, -0.15, -0.021), (0, 0.041, -0.021), 0.031, GREY),
        ),
    ),
    Link(
        name="link_3",
        parent="link_2",
        pos=(0, -0.205, 0),
        quat=(H, -H, 0, 0),
        joint=J("joint_3", (-6.28319, 6.28319)),
        mass=0.8447,
        com=(0, 0, -0.102245),
        inertia=(0.00247074, 0.00247074, 0.000380115),
        geoms=(
            cylinder((0, 0.001, -0.082), (0, 0.001, 0.001), 0.041, GREY),
            capsule((0.003, 0.017, -0.109), (0.003, 0.017, -0.086), 0.032, GREY),
            cylinder((-0.001, 0.012, -0.241), (0, 0.039, -0.137), 0.033, GREY),
        ),
    ),
    Link(
        name="link_4",
        parent="link_3",
        pos=(0, 0, -0.205),
        quat=(0, 0, H, H),
        joint=J("joint_4", (0.523599, 5.75959)),
        mass=0.6763,
        com=(0, 0.081, -0.0086),
        com_quat=(H, H, 0, 0),
        inertia=(0.00142022, 0.00142022, 0.000304335),
        geoms=(
            cylinder((0, 0.192, -0.02), (0, 0.018, -0.02), 0.023, GREY),
            cylinder((0, 0.211, -0.013), (0, 0.148, -0.013), 0.031, GREY),
            cylinder((0, 0.003, -0.041), (0, 0.003, 0.002), 0.044, GREY),
        ),
    ),
    Link(
        name="link_5",
        parent="link_4",
        pos=(0, 0.2073, -0.0114),
        quat=(0, 0, -H, H),
        joint=J("joint_5", (-6.28319, 6.28319)),
        mass=0.463,
        com=(0, 0.00288489, -0.0541933),
        inertia=(0.000432132, 0.000432132, 9.26e-05),
        geoms=(
            capsule((-0.005, 0.028, -0.07), (0.019, 0, -0.016), 0.019, GREY),
            capsule((-0.008, 0.008, -0.036), (-0.008, 0.008, -0.018), 0.023, GREY),
            capsule((0, -0.007, -0.02), (0, 0.009, -0.02), 0.028, GREY),
            cylinder((0, -0.001, -0.102), (0, 0.044, -0.102), 0.032, GREY),
        ),
    ),
    Link(
        name="link_6",
        parent="link_5",
        pos=(0, 0, -0.10375),
        quat=(0, 0, H, H),
        joint=J("joint_6", (1.13446, 5.14872)),
        mass=0.463,
        com=(0, 0.0497209, -0.00285628),
        com_quat=(H, H, 0, 0),
        inertia=(0.000432132, 0.000432132, 9.26e-05),
        geoms=(
            cylinder((0, 0.053, -0.001), (0, 0.105, -0.001), 0.031, GREY),
            cylinder((0.002, 0.048, -0.033), (-0.002, -0.028, -0.012), 0.029, GREY),
        ),
    ),
    Link(
        name="link_7",
        parent="link_6",
        pos=(0, 0.10375, 0),
        quat=(0, 0, -H, H),
        joint=J("joint_7", (-6.28319, 6.28319)),
        mass=1e-06,
        com=(0, 0, -0.06),
        inertia=(1e-06, 1e-06, 1e-06),
    ),
    Link(
        name="right_hand",
        parent="link_7",
        quat=(0, 1, 0, 0),
    ),
)

ARM = ArmSpec(
    name="jaco",
    title="Kinova Jaco",
    links=LINKS,
    menagerie=None,
    joints=tuple(f"joint_{i}" for i in range(1, 8)),
    gains=Gains(
        kp=(360,) * 5 + (72,) * 2, kd=(30,) * 5 + (6,) * 2, force=(30.5,) * 5 + (6.8,) * 2, source="derived, see above"
    ),
    flange_body="link_7",
    flange_quat=(0, 0, 1, 0),
    gripper="jaco_three_finger",
    keyframes={"rest": (3.14263, 3.70456, 0.03975, 1.69064, -0.02347, 4.26973, 0.04471)},
    base_pos=(-0.5, 0, 0),
    excludes=(("link_0", "link_1"),),
    reach=0.985,
    payload=2.4,
    source="robosuite 1.5.2, from Kinova's description",
)
