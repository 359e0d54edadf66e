"""The SO-101's jaw: one moving finger closes on a fixed one. Its links are part of the arm's model.

The TCP is the maker's `gripperframe` (mujoco_menagerie robotstudio_so101, Apache-2.0): 6 mm behind the tips and 21 mm
from the fixed finger, so that the open jaw passes on both sides of a small thing; closing draws the thing towards the
fixed finger. Force: half of the STS3215 servo's stall torque of 2.94 N m, which it can hold; 18 N at the tip. kp = I
w^2 with the rotor's 0.028 kg m^2 and 2 Hz; kd = 2 I w, damping ratio 1.
"""

from __future__ import annotations

from manikin.spec.robot import Finger, Gains, GripperSpec

GRIPPER = GripperSpec(
    name="so101_jaw",
    title="SO-101 jaw",
    links=(),
    menagerie=None,
    joints=("gripper",),
    drivers=("gripper",),
    open_q=(0.8,),
    closed_q=(-0.174533,),
    gains=Gains(kp=(12.0,), kd=(0.6,), force=(1.47,), source="derived, see above"),
    fingers=(
        Finger(body="gripper", closing=(1, 0, 0)),
        Finger(body="moving_jaw_so101_v1", closing=(-1, 0, 0)),
    ),
    tcp_body="gripper",
    tcp_pos=(0.012, -0.000218, -0.098127),
    tcp_quat=(0, 0.5**0.5, 0.5**0.5, 0),
    max_width=0.07,
    travel_s=0.35,
    source="mujoco_menagerie robotstudio_so101",
)
