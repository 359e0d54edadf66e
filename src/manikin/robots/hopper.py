"""The hopper of dm_control: a torso on one leg of four joints, in the plane y = 0.

Shapes, density, joints, damping, armature and torques: dm_control's hopper.xml. Its foot is one capsule; here what
touches is a heel and a toe, so that each has its own force, as in ManiSkill3. The root moves along x and z and turns
about y, by joints that nothing drives. The position servos are ManiSkill3's. Contacts are manikin's, harder than
dm_control's.
"""

from __future__ import annotations

import math
from dataclasses import replace

from manikin.spec.links import Geom, Joint, Link, Vec3, capsule, solid
from manikin.spec.robot import Base, Gains, JointGroup, RobotSpec

BLUE, DARK = (0.2, 0.45, 0.75, 1), (0.15, 0.25, 0.4, 1)
DENSITY = 1000.0  # [kg/m^3]
X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)
ROOT = ("root_x", "root_z", "root_pitch")
HEEL, TOE, SPLIT = (-0.08, 0, 0), (0.17, 0, 0), (0.11, 0, 0)  # [m] ends of the foot, and where the toe begins


def hinge(name: str, low: float, high: float) -> Joint:
    """``low`` and ``high`` in degrees."""
    limits = (math.radians(low), math.radians(high))
    return Joint(name=name, axis=Y, range=limits, damping=0.05, armature=0.2)


def part(name: str, parent: str, z: float, joint: Joint, end: Vec3, radius: float) -> Link:
    """A capsule from its joint, which is at ``z`` [m] in its parent, to ``end``."""
    shape = capsule((0, 0, 0), end, radius, BLUE)
    return solid(Link(name=name, parent=parent, pos=(0, 0, z), joint=joint, geoms=(shape,)), DENSITY)


def sole(a: Vec3, b: Vec3) -> Geom:
    return capsule(a, b, 0.04, DARK)


FOOT = solid(
    Link(name="foot", parent="calf", pos=(0, 0, -0.32), joint=hinge("ankle", -45, 45), geoms=(sole(HEEL, TOE),)),
    DENSITY,
)
LINKS = (
    solid(
        Link(
            name="torso",
            parent=None,
            joint=(
                Joint(name=ROOT[0], type="slide", axis=X),
                Joint(name=ROOT[1], type="slide", axis=Z),
                Joint(name=ROOT[2], axis=Y),
            ),
            geoms=(
                capsule((0, 0, -0.05), (0, 0, 0.2), 0.0653, BLUE),
                capsule((0.08, 0, 0.13), (0.15, 0, 0.14), 0.03, DARK),
            ),
        ),
        DENSITY,
    ),
    part("pelvis", "torso", -0.05, hinge("waist", -30, 30), (0, 0, -0.15), 0.065),
    part("thigh", "pelvis", -0.2, hinge("hip", -170, 10), (0, 0, -0.33), 0.04),
    part("calf", "thigh", -0.33, hinge("knee", 5, 150), (0, 0, -0.32), 0.03),
    replace(FOOT, geoms=(sole(HEEL, SPLIT),)),
    Link(name="toe", parent="foot", geoms=(sole(SPLIT, TOE),)),  # its mass is the foot's
)

ROBOT = RobotSpec(
    name="hopper",
    title="Hopper",
    links=LINKS,
    base=Base(kind="vertical", joints=ROOT),
    groups={
        "legs": JointGroup(
            joints=("waist", "hip", "knee", "ankle"),
            gains=Gains(kp=(100,) * 4, kd=(10,) * 4, force=(1000,) * 4, source="ManiSkill3; force: chosen"),
            effort=(30, 40, 30, 10),
            delta=(2, 2, 2, 0.8),
        )
    },
    feet=("foot", "toe"),
    keyframes={"rest": (0, -0.35, 0.7, -0.35)},
    base_pos=(0, 0, 0.91),
    stands=False,
    gravcomp=False,
    measures_centre=True,
    controllers=("joint_pos", "joint_delta_pos", "joint_target_delta_pos", "joint_vel", "joint_torque"),
    source="dm_control hopper.xml",
)
