"""Fetch's gripper as MS-HAB has it (Shukla et al. 2024, its released code, and ManiSkill3's Fetch).

The two fingers have one target, 0.02 + 0.03 g for an action g: 50 mm each when open, and 10 mm beyond the closed
stop, so that a force remains. Gains and force are the original's. The tool centre point is the middle between the two
finger links, which is the origin of ``gripper_link``. Friction of the fingers is 2, as in the original.
"""

from __future__ import annotations

from dataclasses import replace

from manikin.grippers import fetch_gripper
from manikin.spec.camera import CameraSpec
from manikin.spec.robot import Gains

GRIPPER = replace(
    fetch_gripper.GRIPPER,
    name="fetch_gripper_mshab",
    title="Fetch gripper, MS-HAB",
    gains=Gains(kp=(1000, 1000), kd=(100, 100), force=(100, 100), source="MS-HAB (arXiv 2412.13211), ManiSkill3"),
    tcp_pos=(0, 0, 0),
    cameras=(
        CameraSpec(name="fetch_hand", on="gripper_link", pos=(-0.1, 0, 0.1), quat=(0.5, -0.5, 0.5, -0.5), fovy=2.0),
    ),
    source="MS-HAB; kinematics gymnasium_robotics fetch",
)
