"""Universal Robots UR10e, six joints, with a Robotiq 2F-85.

Kinematics, inertia, limits and armature: mujoco_menagerie universal_robots_ur10e (BSD-3-Clause), from UR's description,
lengths to a millimetre. Force: UR's maximum joint torques, 330 N m (size 4), 150 N m (size 3) and 56 N m (size 2). kd
lets a joint reach 1 rad/s (size 2: 1.5) at that force; kp = 10 kd (size 2: 17 kd) makes it follow with a time constant
of 0.1 s (0.06 s), as for the UR5e. Rest pose and base placement are chosen: TCP above the origin, pointing down.
"""

from __future__ import annotations

from math import pi

from manikin.spec.links import Joint, Link, capsule, cylinder
from manikin.spec.robot import ArmSpec, Gains, MotionLimits

BLACK, GREY, LIGHT, BLUE = (
    (0.033, 0.033, 0.033, 1),
    (0.278, 0.278, 0.278, 1),
    (0.82, 0.82, 0.82, 1),
    (0.49, 0.678, 0.8, 1),
)
H = 0.5**0.5


def J(name: str, axis: tuple[float, float, float] = (0, 1, 0), limit: float = 6.28319) -> Joint:
    return Joint(name=name, axis=axis, range=(-limit, limit), armature=0.1)


LINKS = (
    Link(
        name="base",
        parent=None,
        mass=4.0,
        inertia=(0.0061063308908, 0.0061063308908, 0.01125),
        geoms=(
            cylinder((0, 0, 0), (0, 0, 0.03), 0.095, GREY),
            cylinder((0, 0, 0.03), (0, 0, 0.088), 0.079, GREY),
            cylinder((0, 0, 0.088), (0, 0, 0.1), 0.072, BLACK, collide=False),
        ),
    ),
    Link(
        name="shoulder_link",
        parent="base",
        pos=(0, 0, 0.181),
        joint=J("shoulder_pan_joint", (0, 0, 1)),
        mass=7.778,
        inertia=(0.0314743, 0.0314743, 0.0218756),
        geoms=(
            cylinder((0, 0, -0.081), (0, 0, 0.015), 0.076, GREY),
            cylinder((0, 0, 0.015), (0, 0, 0.079), 0.077, BLUE),
            cylinder((0, 0, 0.079), (0, 0, 0.091), 0.06, BLUE, collide=False),
            cylinder((0, 0, 0), (0, 0.082, 0), 0.075, GREY, collide=False),
            cylinder((0, 0.08, 0), (0, 0.095, 0), 0.076, BLACK, collide=False),
        ),
    ),
    Link(
        name="upper_arm_link",
        parent="shoulder_link",
        pos=(0, 0.176, 0),
        quat=(H, 0, H, 0),
        joint=J("shoulder_lift_joint"),
        mass=12.93,
        com=(0, 0, 0.3065),
        inertia=(0.423074, 0.423074, 0.0363656),
        geoms=(
            cylinder((0, -0.081, 0), (0, 0.015, 0), 0.076, GREY),
            cylinder((0, 0.015, 0), (0, 0.079, 0), 0.077, BLUE),
            cylinder((0, 0.079, 0), (0, 0.09, 0), 0.06, BLUE, collide=False),
            cylinder((0, 0, 0), (0, 0, 0.1), 0.072, GREY, collide=False),
            cylinder((0, 0, 0.1), (0, 0, 0.53), 0.06, LIGHT),
            cylinder((0, 0, 0.53), (0, 0, 0.613), 0.062, GREY, collide=False),
            cylinder((0, -0.08, 0.613), (0, 0.012, 0.613), 0.059, GREY),
            cylinder((0, 0.012, 0.613), (0, 0.064, 0.613), 0.06, BLUE),
            cylinder((0, 0.064, 0.613), (0, 0.074, 0.613), 0.046, BLUE, collide=False),
            cylinder((0, -0.092, 0.613), (0, -0.08, 0.613), 0.058, BLACK, collide=False),
        ),
    ),
    Link(
        name="forearm_link",
        parent="upper_arm_link",
        pos=(0, -0.137, 0.613),
        joint=J("elbow_joint", limit=3.1415),
        mass=3.87,
        com=(0, 0, 0.2855),
        inertia=(0.11059, 0.11059, 0.0108844),
        geoms=(
            capsule((0, 0, 0), (0, 0.002, 0.01), 0.056, GREY, collide=False),
            cylinder((0, 0, 0), (0, 0.045, 0), 0.058, GREY),
            cylinder((0, 0, 0), (0, 0, 0.09), 0.052, GREY, collide=False),
            cylinder((0, 0, 0.09), (0, 0, 0.5), 0.043, LIGHT),
            cylinder((0, 0, 0.5), (0, 0, 0.513), 0.046, BLACK, collide=False),
            cylinder((0, 0, 0.513), (0, 0, 0.571), 0.043, GREY, collide=False),
            cylinder((0, -0.015, 0.571), (0, 0.062, 0.571), 0.045, GREY),
            cylinder((0, -0.066, 0.571), (0, -0.015, 0.571), 0.046, BLUE),
        ),
    ),
    Link(
        name="wrist_1_link",
        parent="forearm_link",
        pos=(0, 0, 0.571),
        quat=(H, 0, H, 0),
        joint=J("wrist_1_joint"),
        mass=1.96,
        com=(0, 0.135, 0),
        com_quat=(0.5, 0.5, -0.5, 0.5),
        inertia=(0.0055125, 0.00510825, 0.00510825),
        geoms=(
            cylinder((0, 0.062, 0), (0, 0.135, 0), 0.045, GREY),
            cylinder((0, 0.135, -0.012), (0, 0.135, 0.055), 0.045, GREY),
            cylinder((0, 0.135, 0.055), (0, 0.135, 0.064), 0.045, BLACK, collide=False),
            cylinder((0, 0.135, -0.066), (0, 0.135, -0.012), 0.046, BLUE),
        ),
    ),
    Link(
        name="wrist_2_link",
        parent="wrist_1_link",
        pos=(0, 0.135, 0),
        joint=J("wrist_2_joint", (0, 0, 1)),
        mass=1.96,
        com=(0, 0, 0.12),
        com_quat=(0.5, 0.5, -0.5, 0.5),
        inertia=(0.0055125, 0.00510825, 0.00510825),
        geoms=(
            cylinder((0, 0, 0.064), (0, 0, 0.12), 0.045, GREY),
            cylinder((0, -0.012, 0.12), (0, 0.055, 0.12), 0.045, GREY),
            cylinder((0, 0.055, 0.12), (0, 0.062, 0.12), 0.045, BLACK, collide=False),
            cylinder((0, -0.066, 0.12), (0, -0.012, 0.12), 0.046, BLUE),
        ),
    ),
    Link(
        name="wrist_3_link",
        parent="wrist_2_link",
        pos=(0, 0, 0.12),
        joint=J("wrist_3_joint"),
        mass=0.202,
        com=(0, 0.092, 0),
        com_quat=(0, H, -H, 0),
        inertia=(0.000204525, 0.000144346, 0.000144346),
        geoms=(cylinder((0, 0.062, 0), (0, 0.099, 0), 0.045, LIGHT),),
    ),
)

ARM = ArmSpec(
    name="ur10e",
    title="Universal Robots UR10e",
    links=LINKS,
    joints=tuple(joint.name for link in LINKS for joint in link.joints),
    gains=Gains(
        kp=(3300, 3300, 1500, 600, 600, 600),
        kd=(330, 330, 150, 36, 36, 36),
        force=(330, 330, 150, 56, 56, 56),
        source="see above",
    ),
    flange_body="wrist_3_link",
    flange_pos=(0, 0.1, 0),
    flange_quat=(H, -H, 0, 0),
    gripper="robotiq_2f85",
    keyframes={"rest": (-0.25121, -1.42732, 2.03006, -2.17354, -1.5708, -1.822)},
    motion=MotionLimits(
        velocity=(2.094, 2.094, pi, pi, pi, pi), source="velocity: Universal Robots' data sheet; the rest chosen"
    ),
    base_pos=(-0.7, 0, 0),
    excludes=(("base", "shoulder_link"),),
    reach=1.3,
    payload=12.5,
    source="mujoco_menagerie universal_robots_ur10e",
)
