"""WidowX-250's fingers: two on a rail, opening 0.044 m.

Kinematics: mujoco_menagerie trossen_wx250s (BSD-3-Clause). Its housing is one body with the arm's last link, so here
that link keeps the mass and the housing only looks and collides. Fingers 15 mm from the middle are closed, as the maker
says, though the meshes leave 8 mm between them: the built-in pads fill that gap. Force, kp, kd and armature: those of
the ViperX's fingers, force scaled by the smaller servo's torque (1.5 to 4.1 N m). It mounts on the frame of
`gripper_link`, whose x and z the flange swaps.
"""

from __future__ import annotations

from manikin.spec.links import Joint, Link, box, cylinder, pad
from manikin.spec.robot import Finger, Gains, GripperSpec, MenagerieModel

BLACK, DARK = (0.15, 0.15, 0.15, 1), (0.25, 0.25, 0.25, 1)
H = 0.5**0.5


def finger(side: str, s: int) -> Link:
    return Link(
        name=f"{side}_finger_link",
        parent="gripper_housing",
        pos=(0.066, 0, 0),
        joint=Joint(
            name=f"{side}_finger",
            type="slide",
            axis=(0, 1, 0),
            range=(0.015, 0.037) if s > 0 else (-0.037, -0.015),
            armature=1.0,
        ),
        mass=0.016246,
        com=(0.013816, 0, 0),
        com_quat=(0.705384, 0.705384, -s * 0.0493271, -s * 0.0493271),
        inertia=(4.79509e-06, 3.7467e-06, 1.48651e-06),
        geoms=(
            box((0.011, 0.005, 0.0135), (-0.001, -s * 0.001, 0), BLACK),
            box((0.018, 0.0035, 0.0135), (0.0252, -s * 0.0075, 0), BLACK),
            pad((0.016, 0.002, 0.0125), (0.0272, -s * 0.013, 0), DARK),
        ),
    )


GRIPPER = GripperSpec(
    name="widowx_fingers",
    title="WidowX-250 fingers",
    links=(
        Link(
            name="gripper_housing",
            parent=None,
            quat=(0, H, 0, H),
            geoms=(
                box((0.0215, 0.02, 0.019), (0.0215, 0, 0.001), BLACK),
                box((0.009, 0.0517, 0.014), (0.054, 0, 0), BLACK),
                cylinder((0.043, 0, 0.014), (0.043, 0, 0.034), 0.008, DARK, collide=False),
            ),
        ),
        finger("left", 1),
        finger("right", -1),
    ),
    menagerie=MenagerieModel(
        folder="trossen_wx250s",
        file="wx250s.xml",
        root="wx250s/gripper_link",
        prefix="wx250s/",
        drop=("wrist_rotate",),
        own_inertia=("gripper_housing",),
        rename={"gripper_link": "gripper_housing"},
    ),
    joints=("left_finger", "right_finger"),
    drivers=("left_finger", "right_finger"),
    open_q=(0.037, -0.037),
    closed_q=(0.005, -0.005),
    gains=Gains(kp=(1000, 1000), kd=(100, 100), force=(13, 13), source="see above"),
    fingers=(Finger(body="left_finger_link", closing=(0, -1, 0)), Finger(body="right_finger_link", closing=(0, 1, 0))),
    tcp_body="gripper_housing",
    tcp_pos=(0.0992, 0, 0),
    tcp_quat=(0, H, 0, H),
    max_width=0.044,
    travel_s=0.3,
    equalities=(("left_finger", "right_finger", (0, -1)),),
    excludes=(("gripper_housing", "left_finger_link"), ("gripper_housing", "right_finger_link")),
    source="mujoco_menagerie trossen_wx250s",
)
