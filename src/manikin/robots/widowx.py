"""Trossen WidowX-250 S, six joints, with its own gripper: the arm of BridgeData.

Kinematics, inertia, limits, armature and forces: mujoco_menagerie trossen_wx250s (BSD-3-Clause), from Trossen's
description. kd lets a joint reach 1.5 rad/s at that force; kp = 10 kd. Gravity is compensated, as it was when SIMPLER
fitted gains to the real arm's motion; those (a lag of 0.2 s and more) belong to its tasks. Rest pose and base
placement are chosen: TCP above the origin, pointing down.
"""

from __future__ import annotations

from manikin.spec.links import Joint, Link, box, cylinder
from manikin.spec.robot import ArmSpec, Gains, MenagerieModel

GREY = (0.3, 0.3, 0.32, 1)
H = 0.5**0.5


def J(
    name: str, range: tuple[float, float], axis: tuple[float, float, float] = (0, 1, 0), armature: float = 0.1
) -> Joint:
    return Joint(name=name, range=range, axis=axis, armature=armature)


LINKS = (
    Link(
        name="base_link",
        parent=None,
        mass=0.538736,
        com=(-0.0380446, 0.000613892, 0.0193354),
        com_quat=(0.509292, 0.490887, -0.496359, 0.503269),
        inertia=(0.00252518, 0.00211519, 0.000690737),
        geoms=(
            cylinder((0, 0, 0), (0, 0, 0.018), 0.074, GREY),
            cylinder((0, 0, 0.018), (0, 0, 0.069), 0.051, GREY),
            box((0.058, 0.046, 0.022), (-0.098, 0, 0.022), GREY),
        ),
    ),
    Link(
        name="shoulder_link",
        parent="base_link",
        pos=(0, 0, 0.072),
        joint=J("waist", (-3.14158, 3.14158), (0, 0, 1)),
        mass=0.480879,
        com=(2.23482e-05, 4.14609e-05, 0.0066287),
        com_quat=(0.0130352, 0.706387, 0.012996, 0.707586),
        inertia=(0.000588946, 0.000555655, 0.000378999),
        geoms=(
            cylinder((0, 0, -0.003), (0, 0, 0.004), 0.05, GREY),
            box((0.015, 0.017, 0.023), (0, -0.033, 0.026), GREY),
            box((0.015, 0.017, 0.023), (0, 0.033, 0.026), GREY),
        ),
    ),
    Link(
        name="upper_arm_link",
        parent="shoulder_link",
        pos=(0, 0, 0.03865),
        joint=J("shoulder", (-1.88496, 1.98968)),
        mass=0.430811,
        com=(0.0171605, 2.725e-07, 0.191323),
        com_quat=(0.705539, 0.0470667, -0.0470667, 0.705539),
        inertia=(0.00364425, 0.003463, 0.000399348),
        geoms=(
            box((0.016, 0.015, 0.138), (0, 0.001, 0.121), GREY),
            box((0.044, 0.044, 0.021), (0.036, 0, 0.25), GREY),
        ),
    ),
    Link(
        name="upper_forearm_link",
        parent="upper_arm_link",
        pos=(0.04975, 0, 0.25),
        joint=J("elbow", (-2.14675, 1.6057)),
        mass=0.234589,
        com=(0.107963, 0.000115876, 0),
        com_quat=(0.000980829, H, -0.000980829, H),
        inertia=(0.000888, 0.000887807, 3.97035e-05),
        geoms=(
            box((0.02, 0.016, 0.017), (0.153, 0.001, -0.001), GREY),
            box((0.037, 0.014, 0.014), (0.023, 0, 0), GREY),
            box((0.057, 0.011, 0.011), (0.102, 0, 0), GREY),
        ),
    ),
    Link(
        name="lower_forearm_link",
        parent="upper_forearm_link",
        pos=(0.175, 0, 0),
        joint=J("forearm_roll", (-3.14158, 3.14158), (1, 0, 0)),
        mass=0.220991,
        com=(0.0374395, 0.00522252, 0),
        com_quat=(-0.0732511, 0.703302, 0.0732511, 0.703302),
        inertia=(0.0001834, 0.000172527, 5.88633e-05),
        geoms=(
            box((0.019, 0.025, 0.018), (0.018, 0.011, 0), GREY),
            box((0.023, 0.018, 0.017), (0.062, 0, 0), GREY),
        ),
    ),
    Link(
        name="wrist_link",
        parent="lower_forearm_link",
        pos=(0.075, 0, 0),
        joint=J("wrist_angle", (-1.74533, 2.14675)),
        mass=0.084957,
        com=(0.04236, -1.0663e-05, 0.010577),
        com_quat=(0.608721, 0.363497, -0.359175, 0.606895),
        inertia=(3.29057e-05, 3.082e-05, 2.68343e-05),
        geoms=(
            box((0.011, 0.019, 0.019), (0.045, 0.003, 0.017), GREY, quat=(0.988, -0.139, 0.01, -0.063)),
            box((0.018, 0.015, 0.023), (0.047, 0, 0.011), GREY),
            box((0.034, 0.002, 0.015), (0.028, -0.02, 0.008), GREY, quat=(0.984, 0.01, -0.177, 0.029)),
            box((0.026, 0.002, 0.015), (0.027, 0.021, 0.004), GREY),
        ),
    ),
    Link(
        name="roll_link",
        parent="wrist_link",
        pos=(0.065, 0, 0),
        joint=J("wrist_rotate", (-3.14158, 3.14158), (1, 0, 0)),
        mass=0.110084,
        com=(0.0325296, 4.2061e-07, 0.0090959),
        com_quat=(0.546081, 0.419626, 0.62801, 0.362371),
        inertia=(0.00307592, 0.00307326, 0.0030332),
    ),
)

ARM = ArmSpec(
    name="widowx",
    title="Trossen WidowX-250 S",
    links=LINKS,
    menagerie=MenagerieModel(
        folder="trossen_wx250s",
        file="wx250s.xml",
        prefix="wx250s/",
        drop=("wx250s/left_finger_link", "wx250s/right_finger_link"),
        bare=("wx250s/gripper_link",),
        rename={"gripper_link": "roll_link"},
    ),
    joints=tuple(joint.name for link in LINKS for joint in link.joints),
    gains=Gains(kp=(230,) * 6, kd=(23,) * 6, force=(35,) * 6, source="derived, see above"),
    flange_body="roll_link",
    flange_pos=(0, 0, 0),
    flange_quat=(0, H, 0, H),
    gripper="widowx_fingers",
    keyframes={"rest": (0, 0.08177, -0.07636, 0, 1.56538, 0)},
    base_pos=(-0.32, 0, 0),
    excludes=(("base_link", "shoulder_link"), ("base_link", "upper_arm_link")),
    reach=0.65,
    payload=0.25,
    source="mujoco_menagerie trossen_wx250s",
)
