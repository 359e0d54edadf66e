"""KUKA LBR iiwa 14 R820, seven joints, with a Robotiq 2F-140.

Kinematics, inertia and limits: mujoco_menagerie kuka_iiwa_14 (BSD-3-Clause), from KUKA's description. Force: the
maximum joint torques of KUKA's brochure, as others quote it. kd lets a joint reach about 1.5 rad/s at that force; kp =
10 kd makes it follow with a time constant of 0.1 s. Armature is chosen: the rotors behind the gears, small beside the
links. Rest pose and base placement are chosen: TCP above the origin, pointing down.
"""

from __future__ import annotations

from manikin.spec.links import Joint, Link, box, capsule, cylinder
from manikin.spec.robot import ArmSpec, Gains, MenagerieModel

GREY, ORANGE = (0.55, 0.57, 0.58, 1), (1, 0.42, 0.04, 1)
H = 0.5**0.5


def J(
    name: str, range: tuple[float, float], axis: tuple[float, float, float] = (0, 0, 1), armature: float = 0.1
) -> Joint:
    return Joint(name=name, range=range, axis=axis, armature=armature)


LINKS = (
    Link(
        name="base",
        parent=None,
        mass=5,
        com=(-0.1, 0, 0.07),
        inertia=(0.05, 0.06, 0.03),
        geoms=(
            cylinder((0, 0, 0), (0, 0, 0.04), 0.12, GREY),
            cylinder((0, 0, 0.04), (0, 0, 0.152), 0.09, GREY),
            box((0.035, 0.06, 0.05), (-0.135, 0, 0.06), GREY),
        ),
    ),
    Link(
        name="link1",
        parent="base",
        pos=(0, 0, 0.1575),
        joint=J("joint1", (-2.96706, 2.96706)),
        mass=5.76,
        com=(0, -0.03, 0.12),
        inertia=(0.0333, 0.033, 0.0123),
        geoms=(
            cylinder((-0.077, 0.008, 0.029), (0.073, 0.008, 0.029), 0.055, GREY),
            cylinder((0.001, -0.057, 0.202), (0.001, -0.001, 0.202), 0.086, GREY),
            capsule((-0.02, -0.056, 0.199), (-0.02, -0.03, 0.199), 0.055, GREY),
            capsule((-0.001, -0.046, 0.053), (-0.001, -0.046, 0.201), 0.066, GREY),
        ),
    ),
    Link(
        name="link2",
        parent="link1",
        pos=(0, 0, 0.2025),
        quat=(0, 0, H, H),
        joint=J("joint2", (-2.0944, 2.0944)),
        mass=6.35,
        com=(0.0003, 0.059, 0.042),
        com_quat=(0, 0, H, H),
        inertia=(0.0305, 0.0304, 0.011),
        geoms=(
            cylinder((0.004, -0.053, 0.1), (-0.003, 0.211, -0.003), 0.062, GREY),
            cylinder((0.001, 0.004, -0.003), (0.001, 0.004, 0.079), 0.088, GREY),
        ),
    ),
    Link(
        name="link3",
        parent="link2",
        pos=(0, 0.2045, 0),
        quat=(0, 0, H, H),
        joint=J("joint3", (-2.96706, 2.96706)),
        mass=3.5,
        com=(0, 0.03, 0.13),
        inertia=(0.025, 0.0238, 0.0076),
        geoms=(cylinder((-0.001, -0.002, -0.004), (0, 0.056, 0.269), 0.065, GREY),),
    ),
    Link(
        name="link4",
        parent="link3",
        pos=(0, 0, 0.2155),
        quat=(H, H, 0, 0),
        joint=J("joint4", (-2.0944, 2.0944)),
        mass=3.5,
        com=(0, 0.067, 0.034),
        com_quat=(H, H, 0, 0),
        inertia=(0.017, 0.0164, 0.006),
        geoms=(
            cylinder((-0.002, -0.014, 0.068), (0.003, 0.194, -0.005), 0.060, GREY),
            capsule((-0.003, 0.018, 0.023), (0, -0.005, 0.041), 0.065, GREY),
        ),
    ),
    Link(
        name="link5",
        parent="link4",
        pos=(0, 0.1845, 0),
        quat=(0, 0, H, H),
        joint=J("joint5", (-2.96706, 2.96706)),
        mass=3.5,
        com=(0.0001, 0.021, 0.076),
        inertia=(0.01, 0.0087, 0.00449),
        geoms=(
            cylinder((0, 0.079, 0.106), (0, 0.079, 0.258), 0.035, GREY),
            cylinder((-0.01, 0.04, 0.114), (0.006, 0.028, 0.003), 0.042, GREY),
            capsule((-0.012, -0.002, 0.039), (0.011, -0.002, 0.039), 0.063, GREY),
        ),
    ),
    Link(
        name="link6",
        parent="link5",
        pos=(0, 0, 0.2155),
        quat=(H, H, 0, 0),
        joint=J("joint6", (-2.0944, 2.0944)),
        mass=1.8,
        com=(0, 0.0006, 0.0004),
        com_quat=(H, H, 0, 0),
        inertia=(0.0049, 0.0047, 0.0036),
        geoms=(
            capsule((0, -0.028, 0.014), (0, 0.032, -0.001), 0.060, ORANGE),
            capsule((0.009, -0.005, -0.009), (-0.008, -0.005, -0.009), 0.062, GREY),
            cylinder((-0.034, -0.022, 0.015), (0.036, -0.022, 0.015), 0.045, ORANGE),
        ),
    ),
    Link(
        name="link7",
        parent="link6",
        pos=(0, 0.081, 0),
        quat=(0, 0, H, H),
        joint=J("joint7", (-3.05433, 3.05433)),
        mass=1.2,
        com=(0, 0, 0.02),
        inertia=(0.001, 0.001, 0.001),
        geoms=(
            cylinder((0, -0.001, 0), (0, -0.001, 0.037), 0.051, GREY),
            capsule((-0.009, -0.001, 0.019), (0.007, -0.001, 0.019), 0.032, GREY),
        ),
    ),
)

ARM = ArmSpec(
    name="iiwa14",
    title="KUKA LBR iiwa 14",
    links=LINKS,
    menagerie=MenagerieModel(folder="kuka_iiwa_14", file="iiwa14.xml"),
    joints=tuple(f"joint{i}" for i in range(1, 8)),
    gains=Gains(
        kp=(2000, 2000, 1100, 1100, 700, 300, 300),
        kd=(200, 200, 110, 110, 70, 30, 30),
        force=(320, 320, 176, 176, 110, 40, 40),
        source="derived, see above",
    ),
    flange_body="link7",
    flange_pos=(0, 0, 0.045),
    flange_quat=(0, 0, 0, 1),
    gripper="robotiq_2f140",
    keyframes={"rest": (0, 0.65404, 0, -1.44998, 0, 1.03756, 0)},
    base_pos=(-0.6, 0, 0),
    excludes=(("base", "link1"),),
    reach=0.82,
    payload=14.0,
    source="mujoco_menagerie kuka_iiwa_14",
)
