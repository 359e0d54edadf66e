"""The SO-100's jaw: one moving finger closes on a fixed one. Its links are part of the arm's model.

Kinematics and limits: mujoco_menagerie trs_so_arm100 (Apache-2.0). The TCP lies as the SO-101's: 8 mm behind the tips
and 21 mm from the fixed finger, so that the open jaw passes on both sides of a small thing. Friction: ManiSkill3's.
Gains are those of the SO-101's jaw, which has the same servo: ManiSkill3's 100 N m would crush what is held.
"""

from __future__ import annotations

from manikin.spec.robot import Finger, Gains, GripperSpec

GRIPPER = GripperSpec(
    name="so100_jaw",
    title="SO-100 jaw",
    links=(),
    menagerie=None,
    joints=("gripper",),
    drivers=("gripper",),
    open_q=(0.8,),
    closed_q=(-0.174,),
    gains=Gains(kp=(12.0,), kd=(0.6,), force=(1.47,), source="as so101_jaw"),
    fingers=(
        Finger(body="Fixed_Jaw", closing=(-1, 0, 0)),
        Finger(body="Moving_Jaw", closing=(-1, 0, 0)),
    ),
    tcp_body="Fixed_Jaw",
    tcp_pos=(-0.0105, -0.098, 0),
    tcp_quat=(0.5, 0.5, 0.5, -0.5),
    max_width=0.065,
    travel_s=0.35,
    source="mujoco_menagerie trs_so_arm100",
)
