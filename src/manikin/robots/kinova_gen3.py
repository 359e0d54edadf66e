"""Kinova Gen3, seven joints, with a Robotiq 2F-85.

Kinematics, inertia and limits: mujoco_menagerie kinova_gen3 (BSD-3-Clause), from Kinova's description. Joints 1, 3, 5
and 7 turn without end. Force: 39 N m, the effort of Kinova's description, and 9 N m for the small actuators, not
confirmed. kd lets a joint reach 1.3 rad/s at that force; kp = 10 kd (small: 15 kd). Armature is chosen. Rest pose and
base placement are chosen: TCP above the origin, pointing down.
"""

from __future__ import annotations

from manikin.spec.links import Joint, Link, box, capsule, cylinder
from manikin.spec.robot import ArmSpec, Gains, MenagerieModel

SILVER, BLACK = (0.75, 0.75, 0.75, 1), (0.1, 0.1, 0.1, 1)
H = 0.5**0.5


def J(
    name: str, range: tuple[float, float] | None, axis: tuple[float, float, float] = (0, 0, 1), armature: float = 0.05
) -> Joint:
    return Joint(name=name, range=range, axis=axis, armature=armature)


LINKS = (
    Link(
        name="base_link",
        parent=None,
        mass=1.697,
        com=(-0.000648, -0.000166, 0.084487),
        com_quat=(0.999294, 0.00139618, -0.0118387, 0.035636),
        inertia=(0.00462407, 0.00449437, 0.00207755),
        geoms=(cylinder((-0.001, 0, 0), (-0.001, 0, 0.158), 0.047, SILVER),),
    ),
    Link(
        name="shoulder_link",
        parent="base_link",
        pos=(0, 0, 0.15643),
        quat=(0, 1, 0, 0),
        joint=J("joint_1", None),
        mass=1.3773,
        com=(-2.3e-05, -0.010364, -0.07336),
        com_quat=(0.707051, 0.0451246, -0.0453544, 0.704263),
        inertia=(0.00488868, 0.00457, 0.00135132),
        geoms=(
            cylinder((0, 0, -0.08), (0, 0, -0.001), 0.045, SILVER),
            capsule((0, 0, -0.06), (0, -0.012, -0.12), 0.042, SILVER),
            cylinder((0, -0.045, -0.128), (0, 0.012, -0.128), 0.042, SILVER),
        ),
    ),
    Link(
        name="half_arm_1_link",
        parent="shoulder_link",
        pos=(0, 0.005375, -0.12838),
        quat=(H, H, 0, 0),
        joint=J("joint_2", (-2.24, 2.24)),
        mass=1.1636,
        com=(-4.4e-05, -0.09958, -0.013278),
        com_quat=(0.482348, 0.516286, -0.516862, 0.483366),
        inertia=(0.0113017, 0.011088, 0.00102532),
        geoms=(
            cylinder((-0.001, -0.209, -0.02), (-0.001, 0.029, -0.02), 0.036, SILVER),
            capsule((-0.016, -0.177, -0.002), (0.013, -0.177, -0.002), 0.037, SILVER),
            box((0.043, 0.035, 0.022), (0.002, 0.004, -0.024), SILVER),
        ),
    ),
    Link(
        name="half_arm_2_link",
        parent="half_arm_1_link",
        pos=(0, -0.21038, -0.006375),
        quat=(H, -H, 0, 0),
        joint=J("joint_3", None),
        mass=1.1636,
        com=(-4.4e-05, -0.006641, -0.117892),
        com_quat=(0.706144, 0.0213722, -0.0209128, 0.707437),
        inertia=(0.0111633, 0.010932, 0.00100671),
        geoms=(
            capsule((0.001, -0.012, -0.229), (0.001, -0.012, -0.036), 0.036, SILVER),
            capsule((-0.012, -0.01, -0.21), (0.015, -0.01, -0.21), 0.038, SILVER),
            cylinder((0, 0, -0.062), (0, 0, -0.001), 0.045, SILVER),
        ),
    ),
    Link(
        name="forearm_link",
        parent="half_arm_2_link",
        pos=(0, 0.006375, -0.21038),
        quat=(H, H, 0, 0),
        joint=J("joint_4", (-2.57, 2.57)),
        mass=0.9302,
        com=(-1.8e-05, -0.075478, -0.015006),
        com_quat=(0.483678, 0.515961, -0.515859, 0.483455),
        inertia=(0.00834839, 0.008147, 0.000598606),
        geoms=(
            capsule((0.001, -0.184, -0.008), (0.001, -0.168, -0.008), 0.037, SILVER),
            capsule((-0.001, -0.023, -0.022), (-0.001, -0.172, -0.022), 0.030, SILVER),
            capsule((0, -0.009, -0.028), (0, 0.005, -0.028), 0.042, SILVER),
        ),
    ),
    Link(
        name="spherical_wrist_1_link",
        parent="forearm_link",
        pos=(0, -0.20843, -0.006375),
        quat=(H, -H, 0, 0),
        joint=J("joint_5", None),
        mass=0.6781,
        com=(1e-06, -0.009432, -0.063883),
        com_quat=(0.703558, 0.0707492, -0.0707492, 0.703558),
        inertia=(0.00165901, 0.001596, 0.000346988),
        geoms=(
            cylinder((0, 0, -0.055), (0, 0, -0.002), 0.035, SILVER),
            capsule((0, 0, -0.05), (0, -0.018, -0.095), 0.033, SILVER),
            cylinder((0, -0.053, -0.106), (0, 0.013, -0.106), 0.035, SILVER),
        ),
    ),
    Link(
        name="spherical_wrist_2_link",
        parent="spherical_wrist_1_link",
        pos=(0, 0.00017505, -0.10593),
        quat=(H, H, 0, 0),
        joint=J("joint_6", (-2.09, 2.09)),
        mass=0.6781,
        com=(1e-06, -0.045483, -0.00965),
        com_quat=(0.44426, 0.550121, -0.550121, 0.44426),
        inertia=(0.00170087, 0.001641, 0.00035013),
        geoms=(
            cylinder((0, 0, -0.053), (0, 0, -0.004), 0.035, SILVER),
            capsule((0, 0, -0.028), (0, -0.055, -0.008), 0.031, SILVER),
            cylinder((0, -0.106, 0), (0, -0.055, 0), 0.035, SILVER),
        ),
    ),
    Link(
        name="bracelet_link",
        parent="spherical_wrist_2_link",
        pos=(0, -0.10593, -0.00017505),
        quat=(H, -H, 0, 0),
        joint=J("joint_7", None),
        mass=0.5,
        com=(0.000281, 0.011402, -0.029798),
        com_quat=(0.394358, 0.596779, -0.577293, 0.393789),
        inertia=(0.000657336, 0.000587019, 0.000320645),
        geoms=(
            cylinder((0, 0, -0.062), (0, 0, -0.002), 0.037, SILVER),
            box((0.044, 0.021, 0.011), (0, -0.053, -0.0525), SILVER),
            box((0.03, 0.012, 0.001), (0, -0.058, -0.0638), BLACK, collide=False),
        ),
    ),
)

ARM = ArmSpec(
    name="kinova_gen3",
    title="Kinova Gen3",
    links=LINKS,
    menagerie=MenagerieModel(folder="kinova_gen3", file="gen3.xml"),
    joints=tuple(f"joint_{i}" for i in range(1, 8)),
    gains=Gains(
        kp=(300,) * 4 + (105,) * 3, kd=(30,) * 4 + (7,) * 3, force=(39,) * 4 + (9,) * 3, source="derived, see above"
    ),
    flange_body="bracelet_link",
    flange_pos=(0, 0, -0.0615),
    flange_quat=(0, H, H, 0),
    gripper="robotiq_2f85",
    keyframes={"rest": (-0.0519, 0.51811, 0.0035, 1.44071, -0.00187, 1.18277, 1.52264)},
    base_pos=(-0.5, 0, 0),
    excludes=(("base_link", "shoulder_link"),),
    reach=0.902,
    payload=4.0,
    source="mujoco_menagerie kinova_gen3",
)
