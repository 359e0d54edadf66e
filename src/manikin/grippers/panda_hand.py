"""Franka Hand: two fingers on one screw, opening 0.08 m.

Kinematics, inertia, limits: mujoco_menagerie franka_emika_panda/hand.xml (Apache-2.0), from Franka's description.
Force: Franka gives 70 N continuous grasping force. kp and kd are ManiSkill3's, so that its policies meet the same
hand; commanding 0.01 m beyond closed keeps a grip on thin things. The armature stands for motor and screw: with
Menagerie's 0.1 kg, damping acts faster than a step of 5 ms (kd dt / m = 5) and the fingers bounce on what they hold; 1
kg gives 0.5.
"""

from __future__ import annotations

from typing import Any

from manikin.spec.camera import CameraSpec
from manikin.spec.links import Joint, Link, box, pad
from manikin.spec.robot import Finger, Gains, GripperSpec, MenagerieModel

WHITE, SILVER, GREY = (0.98, 0.98, 0.98, 1), (0.75, 0.77, 0.79, 1), (0.25, 0.25, 0.25, 1)

FINGER: dict[str, Any] = dict(
    mass=0.015,
    inertia=(2.375e-6, 2.375e-6, 7.5e-7),
    geoms=(
        pad((0.0085, 0.004, 0.009), (0, 0.004, 0.045), GREY),
        box((0.0105, 0.004, 0.018), (0, 0.012, 0.035), WHITE),
        box((0.0105, 0.0105, 0.009), (0, 0.0155, 0.009), WHITE),
    ),
)
SLIDE: dict[str, Any] = dict(type="slide", axis=(0, 1, 0), range=(0, 0.04), armature=1.0)

GRIPPER = GripperSpec(
    name="panda_hand",
    title="Franka Hand",
    links=(
        Link(
            name="hand",
            parent=None,
            mass=0.73,
            com=(-0.01, 0, 0.03),
            inertia=(0.001, 0.0025, 0.0017),
            geoms=(
                box((0.025, 0.101, 0.022), (0, 0, 0.035), WHITE),
                box((0.022, 0.092, 0.032), (0, 0, 0.034), WHITE),
                box((0.0255, 0.075, 0.007), (0, 0, 0.02), SILVER, collide=False),
                box((0.005, 0.012, 0.018), (0, -0.09, -0.005), GREY, collide=False),
            ),
        ),
        Link(
            name="left_finger", parent="hand", pos=(0, 0, 0.0584), joint=Joint(name="finger_joint1", **SLIDE), **FINGER
        ),
        Link(
            name="right_finger",
            parent="hand",
            pos=(0, 0, 0.0584),
            quat=(0, 0, 0, 1),
            joint=Joint(name="finger_joint2", **SLIDE),
            **FINGER,
        ),
    ),
    menagerie=MenagerieModel(folder="franka_emika_panda", file="hand.xml"),
    joints=("finger_joint1", "finger_joint2"),
    drivers=("finger_joint1", "finger_joint2"),
    open_q=(0.04, 0.04),
    closed_q=(-0.01, -0.01),
    gains=Gains(
        kp=(1000, 1000), kd=(100, 100), force=(70, 70), source="ManiSkill3 3.0.1 panda; force: Franka Hand data"
    ),
    fingers=(Finger(body="left_finger", closing=(0, -1, 0)), Finger(body="right_finger", closing=(0, -1, 0))),
    tcp_body="hand",
    tcp_pos=(0, 0, 0.1034),
    max_width=0.08,
    equalities=(("finger_joint1", "finger_joint2", (0, 1)),),
    excludes=(("hand", "left_finger"), ("hand", "right_finger")),
    cameras=(  # ManiSkill3's panda_wristcam: a RealSense beside the hand, looking along it
        CameraSpec(name="hand_camera", on="hand", pos=(0.0465, -0.02, 0.036), quat=(0.5**0.5, 0, 0, 0.5**0.5)),
    ),
    source="mujoco_menagerie franka_emika_panda",
)
