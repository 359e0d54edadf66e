"""Trossen ViperX-300 S, six joints: one on a table (`viperx`), or two facing each other as in ALOHA 2 (`aloha`).

Kinematics, inertia, limits, armature, gains and forces: mujoco_menagerie aloha (BSD-3-Clause), identified on real
arms by Google DeepMind. The servos do not compensate gravity. Menagerie's joint friction of 1.2 to 2 N m is left out:
the arm would stop anywhere within it. The arms of ALOHA 2 stand 0.938 m apart on either side of the table. Rest poses
and the single arm's base placement are chosen: TCP above the origin, or 0.15 m beside it, pointing down.
"""

from __future__ import annotations

from dataclasses import replace

from manikin.spec.links import Joint, Link, box, cylinder
from manikin.spec.robot import ArmSpec, Gains, MenagerieModel

BLACK = (0.15, 0.15, 0.15, 1)
H = 0.5**0.5


def J(
    name: str, range: tuple[float, float], axis: tuple[float, float, float] = (0, 1, 0), armature: float = 0.1
) -> Joint:
    return Joint(name=name, range=range, axis=axis, armature=armature)


LINKS = (
    Link(
        name="base_link",
        parent=None,
        mass=0.969034,
        com=(-0.0534774, -0.000562575, 0.0205961),
        com_quat=(-0.00292324, 0.712517, 0.00480387, 0.701633),
        inertia=(0.0071633, 0.00602451, 0.00169819),
        geoms=(
            cylinder((0, 0, 0), (0, 0, 0.012), 0.1, BLACK),
            cylinder((0, 0, 0.012), (0, 0, 0.079), 0.062, BLACK),
            box((0.07, 0.05, 0.026), (-0.125, 0, 0.026), BLACK),
        ),
    ),
    Link(
        name="shoulder_link",
        parent="base_link",
        pos=(0, 0, 0.079),
        joint=J("waist", (-3.14158, 3.14158), (0, 0, 1), armature=0.05),
        mass=0.798614,
        com=(0.000259233, -3.3552e-06, 0.0116129),
        com_quat=(-0.476119, 0.476083, 0.52279, 0.522826),
        inertia=(0.00120156, 0.00113744, 0.0009388),
        geoms=(
            cylinder((0, 0, -0.003), (0, 0, 0.006), 0.061, BLACK),
            box((0.026, 0.03, 0.018), (0, 0, 0.024), BLACK),
            box((0.026, 0.009, 0.02), (0, -0.043, 0.026), BLACK),
            box((0.026, 0.009, 0.02), (0, 0.043, 0.026), BLACK),
            cylinder((0, -0.052, 0.044), (0, -0.034, 0.044), 0.017, BLACK),
            cylinder((0, 0.034, 0.044), (0, 0.052, 0.044), 0.017, BLACK),
        ),
    ),
    Link(
        name="upper_arm_link",
        parent="shoulder_link",
        pos=(0, 0, 0.04805),
        joint=J("shoulder", (-1.85005, 1.25664), armature=0.395),
        mass=0.792592,
        com=(0.0206949, 0, 0.226459),
        com_quat=(0, 0.0728458, 0, 0.997343),
        inertia=(0.00911338, 0.008925, 0.000759317),
        geoms=(
            box((0.02, 0.046, 0.018), (0, 0, 0.03), BLACK),
            box((0.057, 0.05, 0.022), (0.065, -0.001, 0.3), BLACK),
            box((0.014, 0.025, 0.137), (0, 0, 0.17), BLACK),
        ),
    ),
    Link(
        name="upper_forearm_link",
        parent="upper_arm_link",
        pos=(0.05955, 0, 0.3),
        joint=J("elbow", (-1.76278, 1.6057), armature=0.383),
        mass=0.322228,
        com=(0.105723, 0, 0),
        com_quat=(-0.000621631, 0.704724, 0.0105292, 0.709403),
        inertia=(0.00144107, 0.00134228, 0.000152047),
        geoms=(
            cylinder((0.041, -0.046, 0), (0.041, 0.051, 0), 0.021, BLACK),
            box((0.074, 0.022, 0.011), (0.115, 0, -0.001), BLACK),
            cylinder((0.179, 0, -0.014), (0.179, 0, 0.016), 0.024, BLACK),
        ),
    ),
    Link(
        name="lower_forearm_link",
        parent="upper_forearm_link",
        pos=(0.2, 0, 0),
        joint=J("forearm_roll", (-3.14158, 3.14158), (1, 0, 0), armature=0.14),
        mass=0.414823,
        com=(0.0513477, 0.00680462, 0),
        com_quat=(-0.702604, -0.0796724, -0.702604, 0.0796724),
        inertia=(0.0005911, 0.000546493, 0.000155707),
        geoms=(
            box((0.024, 0.03, 0.02), (0.024, 0.015, 0), BLACK),
            box((0.03, 0.023, 0.019), (0.084, 0, 0), BLACK),
        ),
    ),
    Link(
        name="wrist_link",
        parent="lower_forearm_link",
        pos=(0.1, 0, 0),
        joint=J("wrist_angle", (-1.8675, 2.23402), armature=0.008),
        mass=0.115395,
        com=(0.046743, -7.6652e-06, 0.010565),
        com_quat=(-0.00100191, 0.544586, 0.0026583, 0.8387),
        inertia=(5.45707e-05, 4.63101e-05, 4.32692e-05),
        geoms=(
            box((0.025, 0.002, 0.012), (0.022, -0.027, -0.001), BLACK),
            box((0.029, 0.003, 0.021), (0.03, 0.025, 0.009), BLACK),
            box((0.009, 0.024, 0.015), (0.051, -0.005, 0.016), BLACK),
            box((0.018, 0.017, 0.023), (0.051, 0.003, 0.011), BLACK),
        ),
    ),
    Link(
        name="roll_link",
        parent="wrist_link",
        pos=(0.069744, 0, 0),
        joint=J("wrist_rotate", (-3.14158, 3.14158), (1, 0, 0), armature=0.008),
        mass=0.251652,
        com=(0.0395662, -2.56311e-07, 0.00400649),
        com_quat=(0.62033, 0.619916, -0.339682, 0.339869),
        inertia=(0.000689546, 0.000650316, 0.000468142),
    ),
)

MESHES = MenagerieModel(
    folder="aloha",
    file="aloha.xml",
    root="left/base_link",
    prefix="left/",
    drop=("left/gripper_base",),
    rename={"gripper_link": "roll_link"},
)

VIPERX = ArmSpec(
    name="viperx",
    title="Trossen ViperX-300 S",
    links=LINKS,
    menagerie=MESHES,
    joints=tuple(joint.name for link in LINKS for joint in link.joints),
    gains=Gains(
        kp=(43, 265, 227, 78, 37, 10.4),
        kd=(5.76, 20, 18.49, 6.78, 6.28, 1.2),
        force=(35, 144, 59, 22, 35, 35),
        source="mujoco_menagerie aloha, identified on real arms",
    ),
    flange_body="roll_link",
    flange_pos=(0, 0, 0),
    flange_quat=(0, H, 0, H),
    gripper="viperx_fingers",
    keyframes={"rest": (0.0, 0.23364, -0.06833, 0, 1.40548, 0.0)},
    base_pos=(-0.42, 0, 0),
    gravcomp=False,
    excludes=(("base_link", "shoulder_link"), ("base_link", "upper_arm_link")),
    reach=0.75,
    payload=0.75,
    source="mujoco_menagerie aloha",
)

BESIDE = {"rest": (0.0, -0.09129, 0.34564, 0, 1.31645, 0.0)}

ARMS = {
    "viperx": VIPERX,
    "aloha_left": replace(
        VIPERX, name="aloha_left", title="ALOHA 2, left ViperX-300 S", keyframes=BESIDE, base_pos=(-0.469, 0, 0)
    ),
    "aloha_right": replace(
        VIPERX,
        name="aloha_right",
        title="ALOHA 2, right ViperX-300 S",
        menagerie=replace(MESHES, root="right/base_link", prefix="right/", drop=("right/gripper_base",)),
        keyframes=BESIDE,
        base_pos=(0.469, 0, 0),
        base_quat=(0, 0, 0, 1),
    ),
}
