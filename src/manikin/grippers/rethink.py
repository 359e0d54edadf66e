"""Rethink Robotics electric parallel gripper with narrow fingers and half-round tips, as on Sawyer and Baxter.

Rails, travel (-0.0115 to 0.0208 m per finger), masses and force: the figures of robosuite 1.5.2's rethink_gripper, from
Rethink's description; its inertias are placeholders, those here are of boxes of that mass. Where fingers sit on the
rails is the user's choice on the real one: here the tips meet when closed, so they open 65 mm. kp, kd and the armature
(motor and screw) are the Franka Hand's.
"""

from __future__ import annotations

from manikin.spec.camera import CameraSpec
from manikin.spec.links import Joint, Link, box, cylinder, pad
from manikin.spec.robot import Finger, Gains, GripperSpec

RED, BLACK, GREY = (0.5, 0.1, 0.1, 1), (0.1, 0.1, 0.1, 1), (0.6, 0.6, 0.6, 1)


def finger(side: str, s: int) -> Link:
    return Link(
        name=f"{side}_finger",
        parent="gripper_base",
        pos=(0, s * 0.01, 0.0444),
        joint=Joint(name=f"{side}_finger_joint", type="slide", axis=(0, s, 0), range=(-0.0115, 0.020833), armature=1.0),
        mass=0.03,
        com=(0, s * 0.012, 0.035),
        inertia=(2.2e-5, 2.0e-5, 4.0e-6),
        geoms=(
            box((0.005, 0.025, 0.0085), (0.006 * s, -s * 0.003, 0.0283), GREY, collide=False),
            box((0.005, 0.00675, 0.024), (0, s * 0.01725, 0.0535), BLACK),
            pad((0.005, 0.0045, 0.0165), (0, s * 0.006, 0.058), BLACK),
        ),
    )


GRIPPER = GripperSpec(
    name="rethink",
    title="Rethink electric parallel gripper",
    links=(
        Link(
            name="gripper_base",
            parent=None,
            mass=0.3,
            com=(0, 0, 0.035),
            inertia=(0.00034, 0.00015, 0.00034),
            geoms=(
                cylinder((0, 0, 0), (0, 0, 0.014), 0.036, BLACK),
                cylinder((0.004, -0.05, 0.042), (0.004, 0.05, 0.042), 0.028, RED),
                box((0.018, 0.052, 0.004), (0, 0, 0.069), GREY, collide=False),
            ),
        ),
        finger("left", 1),
        finger("right", -1),
    ),
    menagerie=None,
    joints=("left_finger_joint", "right_finger_joint"),
    drivers=("left_finger_joint", "right_finger_joint"),
    open_q=(0.020833, 0.020833),
    closed_q=(-0.0215, -0.0215),
    gains=Gains(kp=(1000, 1000), kd=(100, 100), force=(20, 20), source="robosuite 1.5.2's force; else see above"),
    fingers=(Finger(body="left_finger", closing=(0, -1, 0)), Finger(body="right_finger", closing=(0, 1, 0))),
    tcp_body="gripper_base",
    tcp_pos=(0, 0, 0.109),
    max_width=0.0647,
    equalities=(("left_finger_joint", "right_finger_joint", (0, 1)),),
    excludes=(("gripper_base", "left_finger"), ("gripper_base", "right_finger")),
    cameras=(CameraSpec(name="hand_camera", on="gripper_base", pos=(0.05, 0, 0.02), quat=(0.5**0.5, 0, 0, 0.5**0.5)),),
    source="figures of robosuite 1.5.2",
)
