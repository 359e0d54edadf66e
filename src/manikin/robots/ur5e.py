"""Universal Robots UR5e, six joints, with a Robotiq 2F-85.

Kinematics, inertia, limits and armature: mujoco_menagerie universal_robots_ur5e (BSD-3-Clause), from UR's description.
Force: UR's maximum joint torques, 150 N m (size 3) and 28 N m (size 1). kd lets a joint reach 1 rad/s (size 1: 1.5) at
that force; kp = 10 kd (size 1: 17 kd) makes it follow with a time constant of 0.1 s (0.06 s). At the stretched arm's 3
kg m^2 about the shoulder that is 3.6 Hz at a damping ratio of 1.1. Rest pose and base placement are chosen: TCP above
the origin, pointing down.
"""

from __future__ import annotations

from math import pi

from manikin.spec.links import Joint, Link, capsule, cylinder
from manikin.spec.robot import ArmSpec, Gains, MenagerieModel, MotionLimits

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
        inertia=(0.00443333156, 0.00443333156, 0.0072),
        geoms=(
            cylinder((0, 0, 0), (0, 0, 0.02), 0.075, GREY),
            cylinder((0, 0, 0.02), (0, 0, 0.085), 0.064, GREY),
            cylinder((0, 0, 0.085), (0, 0, 0.099), 0.058, BLACK, collide=False),
        ),
    ),
    Link(
        name="shoulder_link",
        parent="base",
        pos=(0, 0, 0.163),
        joint=J("shoulder_pan_joint", (0, 0, 1)),
        mass=3.7,
        inertia=(0.0102675, 0.0102675, 0.00666),
        geoms=(
            cylinder((0, 0, -0.064), (0, 0, 0.015), 0.058, GREY),
            cylinder((0, 0, 0.012), (0, 0, 0.062), 0.059, BLUE),
            cylinder((0, 0, 0.062), (0, 0, 0.072), 0.045, BLUE, collide=False),
            cylinder((0, 0, 0), (0, 0.062, 0), 0.057, GREY, collide=False),
            cylinder((0, 0.06, 0), (0, 0.074, 0), 0.058, BLACK, collide=False),
        ),
    ),
    Link(
        name="upper_arm_link",
        parent="shoulder_link",
        pos=(0, 0.138, 0),
        quat=(H, 0, H, 0),
        joint=J("shoulder_lift_joint"),
        mass=8.393,
        com=(0, 0, 0.2125),
        inertia=(0.133886, 0.133886, 0.0151074),
        geoms=(
            cylinder((0, -0.064, 0), (0, 0.012, 0), 0.058, GREY),
            cylinder((0, 0.012, 0), (0, 0.062, 0), 0.059, BLUE),
            cylinder((0, 0.062, 0), (0, 0.072, 0), 0.045, BLUE, collide=False),
            cylinder((0, 0, 0), (0, 0, 0.073), 0.056, GREY, collide=False),
            cylinder((0, 0, 0.073), (0, 0, 0.351), 0.05, LIGHT),
            cylinder((0, 0, 0.351), (0, 0, 0.425), 0.056, GREY, collide=False),
            cylinder((0, -0.064, 0.425), (0, 0.012, 0.425), 0.058, GREY),
            cylinder((0, 0.012, 0.425), (0, 0.062, 0.425), 0.059, BLUE),
            cylinder((0, 0.062, 0.425), (0, 0.072, 0.425), 0.045, BLUE, collide=False),
            cylinder((0, -0.078, 0.425), (0, -0.064, 0.425), 0.058, BLACK, collide=False),
        ),
    ),
    Link(
        name="forearm_link",
        parent="upper_arm_link",
        pos=(0, -0.131, 0.425),
        joint=J("elbow_joint", limit=3.1415),
        mass=2.275,
        com=(0, 0, 0.196),
        inertia=(0.0311796, 0.0311796, 0.004095),
        geoms=(
            capsule((0, 0, 0), (0, 0.002, 0.01), 0.055, GREY, collide=False),
            cylinder((0, 0, 0), (0, 0.053, 0), 0.057, GREY),
            cylinder((0, 0, 0), (0, 0, 0.076), 0.047, GREY, collide=False),
            cylinder((0, 0, 0.076), (0, 0, 0.339), 0.041, LIGHT),
            cylinder((0, 0, 0.339), (0, 0, 0.352), 0.044, BLACK, collide=False),
            cylinder((0, 0, 0.352), (0, 0, 0.392), 0.037, GREY, collide=False),
            cylinder((0, -0.01, 0.392), (0, 0.053, 0.392), 0.0375, GREY),
            cylinder((0, -0.056, 0.392), (0, -0.01, 0.392), 0.039, BLUE),
        ),
    ),
    Link(
        name="wrist_1_link",
        parent="forearm_link",
        pos=(0, 0, 0.392),
        quat=(H, 0, H, 0),
        joint=J("wrist_1_joint"),
        mass=1.219,
        com=(0, 0.127, 0),
        inertia=(0.0025599, 0.0025599, 0.0021942),
        geoms=(
            cylinder((0, 0.053, 0), (0, 0.127, 0), 0.0375, GREY),
            cylinder((0, 0.127, -0.01), (0, 0.127, 0.046), 0.0375, GREY),
            cylinder((0, 0.127, 0.046), (0, 0.127, 0.054), 0.0375, BLACK, collide=False),
            cylinder((0, 0.127, -0.056), (0, 0.127, -0.01), 0.039, BLUE),
        ),
    ),
    Link(
        name="wrist_2_link",
        parent="wrist_1_link",
        pos=(0, 0.127, 0),
        joint=J("wrist_2_joint", (0, 0, 1)),
        mass=1.219,
        com=(0, 0, 0.1),
        inertia=(0.0025599, 0.0025599, 0.0021942),
        geoms=(
            cylinder((0, 0, 0.054), (0, 0, 0.1), 0.0375, GREY),
            cylinder((0, -0.01, 0.1), (0, 0.046, 0.1), 0.0375, GREY),
            cylinder((0, 0.046, 0.1), (0, 0.053, 0.1), 0.0375, BLACK, collide=False),
            cylinder((0, -0.056, 0.1), (0, -0.01, 0.1), 0.039, BLUE),
        ),
    ),
    Link(
        name="wrist_3_link",
        parent="wrist_2_link",
        pos=(0, 0, 0.1),
        joint=J("wrist_3_joint"),
        mass=0.1889,
        com=(0, 0.0771683, 0),
        com_quat=(H, 0, 0, H),
        inertia=(0.000132134, 9.90863e-05, 9.90863e-05),
        geoms=(cylinder((0, 0.053, 0), (0, 0.099, 0), 0.0375, LIGHT),),
    ),
)

ARM = ArmSpec(
    name="ur5e",
    title="Universal Robots UR5e",
    links=LINKS,
    menagerie=MenagerieModel(folder="universal_robots_ur5e", file="ur5e.xml"),
    joints=tuple(joint.name for link in LINKS for joint in link.joints),
    gains=Gains(
        kp=(1500,) * 3 + (300,) * 3, kd=(150,) * 3 + (18,) * 3, force=(150,) * 3 + (28,) * 3, source="see above"
    ),
    flange_body="wrist_3_link",
    flange_pos=(0, 0.1, 0),
    flange_quat=(H, -H, 0, 0),
    gripper="robotiq_2f85",
    keyframes={"rest": (-0.27132, -1.52135, 1.92365, -1.97309, -1.5708, -1.84211)},
    motion=MotionLimits(velocity=(pi,), source="velocity: Universal Robots' data sheet; the rest chosen"),
    base_pos=(-0.5, 0, 0),
    excludes=(("base", "shoulder_link"),),
    reach=0.85,
    payload=5.0,
    source="mujoco_menagerie universal_robots_ur5e",
)
