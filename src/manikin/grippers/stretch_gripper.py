"""Stretch 3's gripper: two bent fingers with rubber tips. Its links are part of Stretch's model.

Kinematics and limits: mujoco_menagerie hello_robot_stretch_3 (Apache-2.0, from Hello Robot), whose fingers follow a
slide; here both have a servo and the same target. Torque, gains and armature are chosen. The TCP lies between the tips.
"""

from __future__ import annotations

from manikin.spec.robot import Finger, Gains, GripperSpec

JOINTS = ("joint_gripper_finger_left_open", "joint_gripper_finger_right_open")
H = 0.5**0.5

GRIPPER = GripperSpec(
    name="stretch_gripper",
    title="Stretch 3 gripper",
    links=(),
    menagerie=None,
    joints=JOINTS,
    drivers=JOINTS,
    open_q=(0.4, 0.4),
    closed_q=(-0.3, -0.3),
    gains=Gains(kp=(20, 20), kd=(1, 1), force=(3, 3), source="chosen"),
    fingers=(Finger(body="rubber_tip_left", closing=(0, 0, 1)), Finger(body="rubber_tip_right", closing=(0, 0, 1))),
    tcp_body="link_SG3_gripper_body",
    tcp_pos=(0, 0, 0.22),
    tcp_quat=(H, 0, 0, -H),
    max_width=0.17,
    travel_s=0.5,
    excludes=(
        ("rubber_tip_right", "rubber_tip_left"),
        *((f"link_gripper_finger_{side}", "link_DW3_wrist_pitch") for side in ("left", "right")),
        *((f"link_gripper_finger_{side}", "link_wrist_yaw") for side in ("left", "right")),
        *((f"link_gripper_finger_{side}", "link_SG3_gripper_body") for side in ("left", "right")),
    ),
    source="mujoco_menagerie hello_robot_stretch_3",
)
