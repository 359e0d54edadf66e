"""The Koch v1.1's jaw: one moving finger closes on a fixed one. Its links are part of the arm's model.

Names and geometry: mujoco_menagerie low_cost_robot_arm (Apache-2.0). The TCP lies 13 mm behind the fixed finger's tip
and 16 mm from its pad, so that the open jaw passes on both sides of a small thing. Force: three quarters of the XL330
servo's stall torque of 0.52 N m, 7 N at the tip; kp reaches it at 0.1 rad, kd lets the jaw close at 5 rad/s.
"""

from __future__ import annotations

from manikin.spec.robot import Finger, Gains, GripperSpec

H = 0.5**0.5

GRIPPER = GripperSpec(
    name="koch_jaw",
    title="Koch v1.1 jaw",
    links=(),
    menagerie=None,
    joints=("gripper",),
    drivers=("gripper",),
    open_q=(-1.0,),
    closed_q=(0.032,),
    gains=Gains(kp=(3.9,), kd=(0.08,), force=(0.39,), source="derived, see above"),
    fingers=(
        Finger(body="gripper_static_finger", closing=(0, -1, 0)),
        Finger(body="gripper_moving_finger", closing=(0, 1, 0)),
    ),
    tcp_body="gripper_static_finger",
    tcp_pos=(-0.058, -0.0075, 0.0005),
    tcp_quat=(H, 0, -H, 0),
    max_width=0.055,
    travel_s=0.35,
    source="mujoco_menagerie low_cost_robot_arm",
)
