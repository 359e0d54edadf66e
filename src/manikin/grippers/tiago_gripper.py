"""PAL's parallel gripper: two fingers on slides. Its links are part of TIAGo's model.

Kinematics and limits: mujoco_menagerie pal_tiago (Apache-2.0), where each finger pushes with 5 N at most; the 30 N and
the armature here are chosen, so that it keeps what it holds and does not bounce. The TCP lies between the pads.
"""

from __future__ import annotations

from manikin.spec.robot import Finger, Gains, GripperSpec

GRIPPER = GripperSpec(
    name="tiago_gripper",
    title="PAL gripper",
    links=(),
    menagerie=None,
    joints=("gripper_right_finger_joint", "gripper_left_finger_joint"),
    drivers=("gripper_right_finger_joint", "gripper_left_finger_joint"),
    open_q=(0.045, 0.045),
    closed_q=(-0.01, -0.01),
    gains=Gains(kp=(1000, 1000), kd=(80, 80), force=(30, 30), source="mujoco_menagerie pal_tiago; force chosen"),
    fingers=(
        Finger(body="gripper_right_finger_link", closing=(-1, 0, 0)),
        Finger(body="gripper_left_finger_link", closing=(1, 0, 0)),
    ),
    tcp_body="arm_7_link",
    tcp_pos=(0, 0, 0.25),
    max_width=0.09,
    excludes=(("gripper_right_finger_link", "gripper_left_finger_link"),),
    source="mujoco_menagerie pal_tiago",
)
