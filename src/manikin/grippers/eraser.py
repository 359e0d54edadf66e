"""A whiteboard eraser on the flange, for wiping: 120 x 50 x 30 mm, 30 g, no fingers.

Size and mass: robosuite 1.5.2's wiping_gripper, whose seventy little geoms are one soft box here. The TCP is the middle
of the wiping face. It has low friction, so that wiping does not drag the table along.
"""

from __future__ import annotations

from manikin.spec.links import Link, box
from manikin.spec.robot import Gains, GripperSpec

FELT, BACK = (0.25, 0.25, 0.25, 1), (0.15, 0.3, 0.6, 1)

GRIPPER = GripperSpec(
    name="eraser",
    title="Wiping eraser",
    links=(
        Link(
            name="eraser",
            parent=None,
            mass=0.03,
            com=(0, 0, 0.015),
            inertia=(8.5e-6, 3.8e-5, 4.2e-5),
            geoms=(
                box((0.025, 0.06, 0.015), (0, 0, 0.015), FELT, name="wiping_face"),
                box((0.0255, 0.0605, 0.006), (0, 0, 0.006), BACK, collide=False),
            ),
        ),
    ),
    menagerie=None,
    joints=(),
    drivers=(),
    open_q=(),
    closed_q=(),
    gains=Gains(kp=(), kd=(), force=(), source="nothing moves"),
    fingers=(),
    tcp_body="eraser",
    tcp_pos=(0, 0, 0.03),
    max_width=0.0,
    source="figures of robosuite 1.5.2",
)
