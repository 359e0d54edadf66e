"""The jaw of Spot's arm: an upper finger closes on a fixed lower one. Its links are part of the arm's model.

Kinematics: mujoco_menagerie boston_dynamics_spot (BSD-3-Clause). The TCP is chosen, between the tips where the jaw is
closed. Torque: as users of Spot's joint API have it. kp is chosen, kd near critical for the finger's 1e-3 kg m^2.
"""

from __future__ import annotations

from manikin.spec.robot import Finger, Gains, GripperSpec

GRIPPER = GripperSpec(
    name="spot_jaw",
    title="Spot's jaw",
    links=(),
    menagerie=None,
    joints=("arm_f1x",),
    drivers=("arm_f1x",),
    open_q=(-1.57,),
    closed_q=(0.3,),
    gains=Gains(kp=(30,), kd=(0.5,), force=(15.32,), source="chosen; torque: users of Spot's joint API"),
    fingers=(
        Finger(body="arm_link_wr1", closing=(0, 0, 1)),
        Finger(body="arm_link_fngr", closing=(0, 0, -1)),
    ),
    tcp_body="arm_link_wr1",
    tcp_pos=(0.215, 0, -0.03),
    tcp_quat=(0.5, 0.5, 0.5, 0.5),
    max_width=0.13,
    travel_s=0.4,
    source="mujoco_menagerie boston_dynamics_spot",
)
