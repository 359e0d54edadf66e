"""The Google Robot of RT-1: a seven-joint arm on a mobile base, which stands still here.

Kinematics, inertia, limits and forces: mujoco_menagerie google_robot (Apache-2.0), where gravity is compensated too;
its base and head do not move. kd lets a joint reach 1.5 rad/s at the force; kp = 8 kd. The gains that SIMPLER fitted to
the real robot's motion (a lag of 0.6 s) belong to its tasks. Rest pose and base placement are chosen: TCP above the
origin, pointing down; the base stands before the table, but 0.33 m above the floor, since the tasks' table is higher
than this robot's.
"""

from __future__ import annotations

from manikin.spec.links import Joint, Link, box, capsule, cylinder
from manikin.spec.robot import ArmSpec, Gains, MenagerieModel

SHELL, DARK = (0.86, 0.86, 0.87, 1), (0.2, 0.2, 0.22, 1)


def J(
    name: str, range: tuple[float, float], axis: tuple[float, float, float] = (0, 0, 1), armature: float = 0.1
) -> Joint:
    return Joint(name=name, range=range, axis=axis, armature=armature)


LINKS = (
    Link(
        name="base_link",
        parent=None,
        mass=140.4916,
        com=(-0.0854922, -0.000328357, 0.293694),
        com_quat=(0.704227, 0.0651693, 0.0648294, 0.703999),
        inertia=(22.2, 21.1479, 3.17816),
        geoms=(
            box((0.26, 0.17, 0.13), (-0.13, 0, 0.09), SHELL),
            box((0.085, 0.085, 0.17), (0.01, 0, 0.38), SHELL),
            cylinder((0, 0, 0.55), (0, 0, 1.17), 0.055, SHELL),
            capsule((0.01, 0, 1.18), (0.05, 0, 1.28), 0.05, SHELL),
            capsule((0.115, -0.07, 1.29), (0.115, 0.07, 1.29), 0.045, SHELL),
            cylinder((0, 0.17, 0), (0, 0.196, 0), 0.062, DARK, collide=False),
            cylinder((0, -0.196, 0), (0, -0.17, 0), 0.062, DARK, collide=False),
        ),
    ),
    Link(
        name="link_torso",
        parent="base_link",
        pos=(0, 0, 0.5945),
        joint=J("joint_torso", (-4.49, 1.35)),
        mass=2.46883,
        com=(0, 0, 0.108398),
        inertia=(0.0184592, 0.0154173, 0.0102031),
        geoms=(
            cylinder((0.002, -0.088, 0.116), (0.002, 0.031, 0.116), 0.064, SHELL),
            cylinder((-0.006, -0.074, 0.061), (-0.006, 0.039, 0.061), 0.057, SHELL),
            cylinder((0.001, -0.162, 0.112), (0.001, 0.015, 0.112), 0.051, SHELL),
            cylinder((0, 0.003, -0.006), (0, 0.003, 0.215), 0.073, SHELL),
        ),
    ),
    Link(
        name="link_shoulder",
        parent="link_torso",
        pos=(0, -0.167289, 0.113),
        joint=J("joint_shoulder", (-2.66, 3.18), (0, 1, 0)),
        mass=2.08054,
        com=(0.00108994, 0.00565406, 0.103479),
        inertia=(0.0162136, 0.0158994, 0.00367842),
        geoms=(
            capsule((0, 0.033, -0.003), (0, 0.003, 0.059), 0.067, SHELL),
            cylinder((0, 0.002, 0.051), (0, 0.002, 0.218), 0.059, SHELL),
        ),
    ),
    Link(
        name="link_bicep",
        parent="link_shoulder",
        pos=(0, 0.002289, 0.215029),
        joint=J("joint_bicep", (-2.13, 3.71)),
        mass=1.3989,
        com=(9.39565e-05, -0.0191308, 0.130972),
        inertia=(0.00828463, 0.00826766, 0.00210613),
        geoms=(
            cylinder((-0.046, -0.016, 0.185), (0.05, -0.016, 0.185), 0.054, SHELL),
            cylinder((-0.001, 0, 0), (-0.001, 0, 0.179), 0.056, SHELL),
        ),
    ),
    Link(
        name="link_elbow",
        parent="link_bicep",
        pos=(0, -0.064, 0.185036),
        joint=J("joint_elbow", (-2.05, 3.79), (0, 1, 0)),
        mass=2.036624,
        com=(-1.24605e-05, -0.0703451, 0.0197616),
        com_quat=(0.903631, 0.428311, 4.15128e-05, 0.000573645),
        inertia=(0.00529312, 0.00507603, 0.00267104),
        geoms=(
            cylinder((0, 0.001, 0.001), (0, -0.098, 0.001), 0.051, SHELL),
            cylinder((0, -0.099, -0.024), (0, -0.099, 0.091), 0.047, SHELL),
        ),
    ),
    Link(
        name="link_forearm",
        parent="link_elbow",
        pos=(0, -0.101, 0.0914359),
        joint=J("joint_forearm", (-2.92, 2.92)),
        mass=2.18372,
        com=(5.83229e-05, 0.0157589, 0.150081),
        com_quat=(0.999089, -0.0426655, 0.000127052, 0.00130771),
        inertia=(0.0201846, 0.0200624, 0.0015804),
        geoms=(
            cylinder((0, 0.007, -0.004), (0, 0.007, 0.108), 0.041, SHELL),
            box((0.029, 0.03, 0.105), (0, 0.023, 0.177), SHELL, quat=(0.927, -0.052, -0.018, -0.37)),
            box((0.035, 0.037, 0.035), (-0.001, 0.023, 0.275), SHELL),
        ),
    ),
    Link(
        name="link_wrist",
        parent="link_forearm",
        pos=(0, -0.00604, 0.2735),
        joint=J("joint_wrist", (-1.79, 1.79), (0, 1, 0)),
        mass=1.159394,
        com=(-4.32685e-05, -0.0098594, 0.0481333),
        com_quat=(0.68979, -0.137642, 0.138224, 0.697237),
        inertia=(0.00249185, 0.00242051, 0.000878531),
        geoms=(
            cylinder((-0.001, 0.004, 0.045), (-0.001, 0.004, 0.113), 0.041, SHELL),
            box((0.035, 0.023, 0.039), (0, -0.028, 0.004), SHELL, quat=(0.993, -0.007, 0.115, 0.026)),
            cylinder((-0.041, -0.023, 0.049), (0.036, -0.023, 0.049), 0.024, SHELL),
        ),
    ),
    Link(
        name="link_gripper",
        parent="link_wrist",
        pos=(0, 0.0060384, 0.10911),
        joint=J("joint_gripper", (-4.49, 1.35)),
        mass=0.41474,
        com=(-3.20302e-05, 0.000371384, 0.0387883),
        com_quat=(0.997934, 0.0574504, -0.0278948, -0.00699571),
        inertia=(0.000327698, 0.000308611, 0.000272392),
    ),
)

ARM = ArmSpec(
    name="google_robot",
    title="Google Robot",
    links=LINKS,
    menagerie=MenagerieModel(
        folder="google_robot", file="robot.xml", drop=("link_finger_right", "link_finger_left"), bare=("link_gripper",)
    ),
    joints=tuple(joint.name for link in LINKS for joint in link.joints),
    gains=Gains(
        kp=(800, 800, 160, 160, 160, 160, 160),
        kd=(100, 100, 20, 20, 20, 20, 20),
        force=(150, 150, 30, 30, 30, 30, 30),
        source="derived, see above",
    ),
    flange_body="link_gripper",
    flange_pos=(0, 0, 0),
    flange_quat=(0, 0, 0, 1),
    gripper="google_gripper",
    keyframes={"rest": (0.63263, 0.33612, -0.07148, 1.30981, 0.02363, 1.49648, 0.56338)},
    base_pos=(-0.6, 0, -0.53),
    table_edge=-0.45,
    excludes=(("base_link", "link_torso"), ("base_link", "link_shoulder")),
    source="mujoco_menagerie google_robot",
)
