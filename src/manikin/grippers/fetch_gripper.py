"""Fetch's gripper: two flat fingers on a rail, opening 0.1 m.

Kinematics and housing: gymnasium_robotics' Fetch (MIT), from Fetch Robotics' description. Its fingers of 4 kg steady
that simulation; here they have the description's 0.08 kg, and the armature (motor and screw) that steadies them is the
Franka Hand's, as is kd. Force: Fetch gives 60 N. It mounts where its housing ends: 0.0124 m along x of
`wrist_roll_link`, whose x and z the flange swaps.
"""

from __future__ import annotations

from typing import Any

from manikin.spec.camera import CameraSpec
from manikin.spec.links import Joint, Link, box, cylinder, pad
from manikin.spec.robot import Finger, Gains, GripperSpec, MenagerieModel

GREY, DARK = (0.75, 0.75, 0.78, 1), (0.2, 0.2, 0.2, 1)
H = 0.5**0.5
SLIDE: dict[str, Any] = dict(type="slide", range=(0, 0.05), armature=1.0)


def finger(side: str, s: int) -> Link:
    return Link(
        name=f"{side}_gripper_finger_link",
        parent="gripper_link",
        pos=(0, s * 0.0159, 0),
        joint=Joint(name=f"{side}_gripper_finger_joint", axis=(0, s, 0), **SLIDE),
        mass=0.08,
        com=(-0.01, 0, 0),
        inertia=(6.2e-06, 4.4e-05, 4.1e-05),
        geoms=(pad((0.0385, 0.007, 0.0135), (0, -s * 0.008, 0), DARK),),
    )


GRIPPER = GripperSpec(
    name="fetch_gripper",
    title="Fetch gripper",
    links=(
        Link(
            name="gripper_link",
            parent=None,
            pos=(0, 0, 0.154),
            quat=(0, H, 0, H),
            mass=1.5175,
            com=(-0.09, -0.0001, -0.0017),
            com_quat=(0, H, 0, H),
            inertia=(0.0024, 0.0019, 0.0013),
            geoms=(
                cylinder((-0.154, 0, 0), (-0.12, 0, 0), 0.034, GREY),
                box((0.044, 0.063, 0.034), (-0.078, 0, 0), GREY),
                box((0.008, 0.055, 0.01), (-0.036, 0, 0), DARK, collide=False),
            ),
        ),
        finger("r", 1),
        finger("l", -1),
    ),
    menagerie=MenagerieModel(
        collection="data",
        folder="gymnasium_robotics_fetch",
        file="fetch/reach.xml",
        root="robot0:gripper_link",
        prefix="robot0:",
        drop=("robot0:gripper_camera_link",),
        own_inertia=("r_gripper_finger_link", "l_gripper_finger_link"),
    ),
    joints=("r_gripper_finger_joint", "l_gripper_finger_joint"),
    drivers=("r_gripper_finger_joint", "l_gripper_finger_joint"),
    open_q=(0.05, 0.05),
    closed_q=(-0.01, -0.01),
    gains=Gains(kp=(2000, 2000), kd=(100, 100), force=(60, 60), source="maker's force; else see above"),
    fingers=(
        Finger(body="r_gripper_finger_link", closing=(0, -1, 0)),
        Finger(body="l_gripper_finger_link", closing=(0, 1, 0)),
    ),
    tcp_body="gripper_link",
    tcp_pos=(0.0285, 0, 0),
    tcp_quat=(0, H, 0, H),
    max_width=0.1018,
    travel_s=0.4,
    equalities=(("r_gripper_finger_joint", "l_gripper_finger_joint", (0, 1)),),
    excludes=(("gripper_link", "r_gripper_finger_link"), ("gripper_link", "l_gripper_finger_link")),
    cameras=(CameraSpec(name="hand_camera", on="gripper_link", pos=(-0.09, 0, 0.06), quat=(0.5, 0.5, -0.5, -0.5)),),
    source="gymnasium_robotics fetch",
)
