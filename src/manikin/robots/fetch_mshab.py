"""Fetch as MS-HAB has it (Shukla et al. 2024, arXiv 2412.13211, its released code, and ManiSkill3's Fetch).

Links are those of ``fetch``; here the head pans and tilts. Gains and forces of arm, head and torso, keyframes, cameras
and the meaning of an action are the original's. The base drives forward and turns. :data:`CONTROL` is the original's
controller, 13 numbers in its order: arm, gripper, head, torso, base. :data:`QPOS` is the order of its 15 joint
positions.

Two things differ. The original's base has a velocity servo of 500 N; here a position servo follows a commanded place,
with a lag kd / kp of 0.2 s, and pushes with at most 2500 N. Its self-collisions are those of ``fetch``. Wheels and
fingers do not touch the floor: the wheels have no collision shapes.
"""

from __future__ import annotations

from dataclasses import replace
from math import pi

from manikin.robots import fetch
from manikin.robots.fetch import ARM_JOINTS, BASE, J, Y, Z
from manikin.spec.camera import CameraSpec
from manikin.spec.links import Link
from manikin.spec.robot import Base, Gains, JointGroup

__all__ = ["CONTROL", "QPOS", "REST", "ROBOT"]

CONTROL = "arm: joint_delta_pos, gripper: opening, head: joint_delta_pos, torso: joint_delta_pos, base: base_vel"
QPOS = (
    *("base_x", "base_y", "base_yaw", "torso_lift_joint", "head_pan_joint", "shoulder_pan_joint", "head_tilt_joint"),
    *("shoulder_lift_joint", "upperarm_roll_joint", "elbow_flex_joint", "forearm_roll_joint", "wrist_flex_joint"),
    *("wrist_roll_joint", "l_gripper_finger_joint", "r_gripper_finger_joint"),
)
REST = (0.5, 0.0, 1.25)
"""[m] where the tool rests, seen from the base."""

HEAD = {
    "head_pan_link": J("head_pan_joint", (-1.57, 1.57), Z),
    "head_tilt_link": J("head_tilt_joint", (-0.76, 1.45), Y),
}
SOURCE = "MS-HAB (arXiv 2412.13211), ManiSkill3"
MODEL = fetch.ROBOT.menagerie
assert MODEL is not None


def moving(link: Link) -> Link:
    """A link of ``fetch``, with its joint where it belongs to the head."""
    return replace(link, joint=HEAD[link.name]) if link.name in HEAD else link


def group(*joints: str) -> JointGroup:
    """Joints with the gains that the original gives to all of arm, head and torso."""
    n = len(joints)
    return JointGroup(joints=joints, gains=Gains(kp=(1000,) * n, kd=(100,) * n, force=(100,) * n, source=SOURCE))


ROBOT = replace(
    fetch.ROBOT,
    name="fetch_mshab",
    title="Fetch, MS-HAB",
    links=tuple(moving(link) for link in fetch.LINKS),
    menagerie=replace(
        MODEL,
        drop=tuple(name for name in MODEL.drop if name not in ("robot0:head_pan_joint", "robot0:head_tilt_joint")),
        own_joints=(*MODEL.own_joints, "head_tilt_link"),  # whose zero the file puts elsewhere
    ),
    base=Base(kind="differential", joints=BASE),
    groups={
        "base": JointGroup(
            joints=BASE,
            gains=Gains(kp=(10000, 10000, 750), kd=(2000, 2000, 150), force=(2500, 2500, 600), source="chosen"),
            delta=(0.05, 0.05, 0.1),
            speed=(1.0, 1.0, 3.14),
        ),
        "head": group("head_pan_joint", "head_tilt_joint"),
        "torso": group("torso_lift_joint"),
        "arm": group(*ARM_JOINTS),
    },
    tools={"tool": replace(fetch.ROBOT.tools["tool"], gripper="fetch_gripper_mshab")},
    keyframes={
        "rest": (0, 0, 0, 0, 0.562, 0.386, -0.37, -1.032, 0.695, 0.955, -0.1, 2.077, 0),
        "interact": (0, 0, 0, 0, 0.562, 0.15, -0.45, -1.08, 0.1, 0.935, -0.001, 1.573, 0.005),
        "forward": (0, 0, 0, 0, 0, 0.386, 0, -pi / 4, 0, pi / 4, 0, pi / 3, 0),
    },
    cameras=(
        CameraSpec(
            name="fetch_head", on="head_tilt_link", pos=(0.055, 0, 0.0225), quat=(0.5, -0.5, 0.5, -0.5), fovy=2.0
        ),
    ),
    source="MS-HAB; kinematics gymnasium_robotics fetch",
)
