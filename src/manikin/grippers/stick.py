"""A stick in the place of a gripper, to draw, push and poke with: a rod of 16 mm that ends 0.15 m before the flange.

Size: ManiSkill3's panda_stick, whose rod stands in the housing of the Franka Hand; mass of that: Franka's description.
The rod's is that of aluminium. The TCP is the middle of its end.
"""

from __future__ import annotations

from dataclasses import replace

from manikin.grippers import panda_hand
from manikin.spec.links import Link, cylinder
from manikin.spec.robot import Gains, GripperSpec

HAND, DARK = panda_hand.GRIPPER.links[0], (0.25, 0.25, 0.25, 1)

GRIPPER = GripperSpec(
    name="stick",
    title="Stick",
    links=(
        replace(HAND, name="housing", geoms=HAND.geoms[:3]),
        Link(
            name="stick",
            parent="housing",
            pos=(0, 0, 0.1),
            mass=0.0543,
            inertia=(4.61e-5, 4.61e-5, 1.7e-6),
            geoms=(cylinder((0, 0, -0.05), (0, 0, 0.05), 0.008, DARK, name="stick"),),
        ),
    ),
    menagerie=None,
    joints=(),
    drivers=(),
    open_q=(),
    closed_q=(),
    gains=Gains(kp=(), kd=(), force=(), source="nothing moves"),
    fingers=(),
    tcp_body="stick",
    tcp_pos=(0, 0, 0.05),
    max_width=0.0,
    source="size: ManiSkill3 3.0.1 panda_stick",
)
