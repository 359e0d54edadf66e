"""The Google Robot's gripper as SIMPLER has it: two fingers that each turn on one joint, their tips fixed. Its links
are part of the robot's model.

Kinematics, inertia, limits and gains: SIMPLER (arXiv 2405.05941) and its released model. 0 rad is open, 1.3 rad closed;
closed commands 0.01 rad more, which keeps a squeeze. The TCP is the original's ``link_gripper_tcp``.
"""

from __future__ import annotations

from manikin.spec.robot import Finger, Gains, GripperSpec

GRIPPER = GripperSpec(
    name="google_gripper_rt1",
    title="Google robot gripper, SIMPLER",
    links=(),
    menagerie=None,
    joints=("joint_finger_right", "joint_finger_left"),
    drivers=("joint_finger_right", "joint_finger_left"),
    open_q=(0.0, 0.0),
    closed_q=(1.31, 1.31),
    gains=Gains(kp=(200, 200), kd=(8, 8), force=(60, 60), source="SIMPLER (arXiv 2405.05941)"),
    fingers=(
        Finger(body="link_finger_tip_right", closing=(0, -1, 0)),
        Finger(body="link_finger_tip_left", closing=(0, -1, 0)),
    ),
    tcp_body="link_gripper",
    tcp_pos=(0.0043374896, 0.0018852949, 0.16353297),
    tcp_quat=(0.999997219, -0.000662510, -0.002220151, -0.000435808),
    max_width=0.216,
    travel_s=1.8,
    source="SIMPLER (arXiv 2405.05941)",
)
