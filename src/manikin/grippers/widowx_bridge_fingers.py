"""WidowX-250's fingers as SIMPLER has them, for its WidowX tasks (arXiv 2405.05941 and its released code).

The two fingers have a servo each, kp 1000, kd 200, at most 60 N, and the same target: 0.026 + 0.012 g for an action g,
38 mm open and 14 mm closed, 1 mm beyond either limit of the joint, so that a force remains. Their inner faces are where
those of the maker's meshes are, 11 mm from the joint's zero: 52 mm apart when open, 8 mm when closed. The tool centre
point is the frame ``ee_gripper_link`` of the original, 93.6 mm along ``gripper_link``. Friction of the fingers is 2 in
the original, of its objects 0.5, and PhysX takes the mean of a pair, 1.25.
"""

from __future__ import annotations

from dataclasses import replace

from manikin.grippers import widowx_fingers
from manikin.grippers.widowx_fingers import BLACK, DARK
from manikin.spec.links import Link, box, pad
from manikin.spec.robot import Gains


def finger(link: Link, s: int) -> Link:
    """A finger; ``s`` is +1 for the left one."""
    return replace(
        link,
        geoms=(
            box((0.011, 0.005, 0.0135), (-0.001, -s * 0.001, 0), BLACK),
            box((0.018, 0.002, 0.0135), (0.0252, -s * 0.006, 0), BLACK),
            pad((0.016, 0.0015, 0.0125), (0.0272, -s * 0.0095, 0), DARK),
        ),
    )


HOUSING, LEFT, RIGHT = widowx_fingers.GRIPPER.links

GRIPPER = replace(
    widowx_fingers.GRIPPER,
    name="widowx_bridge_fingers",
    title="WidowX-250 fingers, SIMPLER",
    links=(HOUSING, finger(LEFT, 1), finger(RIGHT, -1)),
    open_q=(0.038, -0.038),
    closed_q=(0.014, -0.014),
    gains=Gains(kp=(1000, 1000), kd=(200, 200), force=(60, 60), source="SIMPLER (arXiv 2405.05941), released code"),
    tcp_pos=(0.093575, 0, 0),
    max_width=0.052,
    min_width=0.008,
    pad_friction=1.25,
    travel_s=0.6,
    equalities=(),
    source="SIMPLER; kinematics mujoco_menagerie trossen_wx250s",
)
