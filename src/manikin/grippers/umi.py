"""UMI: the handheld gripper of the Universal Manipulation Interface, with its camera mirrors and soft fingers.

Kinematics and inertia: mujoco_menagerie umi_gripper (MIT); the six joints it floats on are left out. A hand pulls the
real one's trigger, so no maker gives a force: 40 N is chosen, with the Franka Hand's kp, kd and armature. The soft
fingers are rigid here and stop where they meet. The flange is where the back plate ends.
"""

from __future__ import annotations

from typing import Any

from manikin.spec.camera import CameraSpec
from manikin.spec.links import Joint, Link, box, pad
from manikin.spec.robot import Finger, Gains, GripperSpec, MenagerieModel

WHITE, ORANGE, GREY, BLACK = (1, 1, 1, 1), (0.92, 0.68, 0.24, 1), (0.6, 0.6, 0.6, 1), (0.12, 0.12, 0.12, 1)
H = 0.5**0.5


def finger(side: str, s: int) -> Link:
    rail: dict[str, Any] = dict(type="slide", range=(0, 0.0417), armature=1.0)
    quat = (0.49913, 0.411547, -0.543302, 0.53509) if s < 0 else (0.535092, 0.543308, -0.41154, 0.499127)
    com = (-0.0613355, 0.104073, -0.0013157) if s < 0 else (0.0613353, 0.104073, -0.00131574)
    return Link(
        name=f"{side}_finger_holder",
        parent="umi_base",
        quat=(H, H, 0, 0),
        joint=Joint(name=f"{side}_finger_joint", axis=(-s, 0, 0), **rail),
        mass=0.080081,
        com=com,
        com_quat=quat,
        inertia=(0.000104597, 0.000102992, 1.90532e-05),
        geoms=(
            box((0.0215, 0.0395, 0.006), (s * 0.0645, 0.0847, 0.0075), WHITE),
            box((0.018, 0.03, 0.0125), (s * 0.0635, 0.108, -0.003), ORANGE, collide=False),
            box((0.0075, 0.037, 0.0125), (s * 0.0512, 0.163, -0.003), ORANGE),
            pad((0.001, 0.04, 0.0125), (s * 0.0427, 0.16, -0.003), ORANGE),
        ),
    )


GRIPPER = GripperSpec(
    name="umi",
    title="UMI handheld gripper",
    links=(
        Link(
            name="umi_base",
            parent=None,
            pos=(0, 0, 0.0271),
            quat=(H, 0, 0, H),
            mass=1.5601262504237012,
            com=(0.001596798, 0.003504282, 0.02287167),
            com_quat=(0.4689635, 0.5494683, -0.4603515, 0.5159791),
            inertia=(0.00553071, 0.00409211, 0.00272421),
            geoms=(
                box((0.086, 0.016, 0.032), (0, 0, 0.035), WHITE),
                box((0.03, 0.017, 0.016), (0, 0, -0.011), WHITE),
                box((0.016, 0.047, 0.018), (0, 0.061, 0.012), WHITE),
                box((0.036, 0.024, 0.0165), (0.0195, -0.079, -0.002), BLACK),
                box((0.02, 0.03, 0.012), (0.01, -0.04, 0.01), WHITE, collide=False),
                box((0.08, 0.003, 0.004), (0, -0.002, 0.062), GREY, collide=False),
                box((0.03, 0.0187, 0.0005), (-0.069, -0.057, 0.04), BLACK, quat=(0.828, 0, 0.5605, 0), collide=False),
                box((0.03, 0.0187, 0.0005), (0.069, -0.057, 0.04), BLACK, quat=(0.828, 0, -0.5605, 0), collide=False),
            ),
        ),
        finger("left", -1),
        finger("right", 1),
    ),
    menagerie=MenagerieModel(
        folder="umi_gripper",
        file="umi_gripper.xml",
        drop=tuple(f"gripper_joint_{axis}" for axis in ("x", "y", "z", "rx", "ry", "rz")),
        rename={"": "umi_base"},
    ),
    joints=("left_finger_joint", "right_finger_joint"),
    drivers=("left_finger_joint", "right_finger_joint"),
    open_q=(0.0, 0.0),
    closed_q=(0.06, 0.06),
    gains=Gains(kp=(1000, 1000), kd=(100, 100), force=(40, 40), source="chosen, see above"),
    fingers=(
        Finger(body="left_finger_holder", closing=(1, 0, 0)),
        Finger(body="right_finger_holder", closing=(-1, 0, 0)),
    ),
    tcp_body="umi_base",
    tcp_pos=(0, 0, 0.1913),
    tcp_quat=(H, 0, 0, -H),
    max_width=0.0834,
    travel_s=0.4,
    equalities=(("left_finger_joint", "right_finger_joint", (0, 1)),),
    excludes=(("umi_base", "left_finger_holder"), ("umi_base", "right_finger_holder")),
    cameras=(  # the GoPro; its fisheye lens of 155 degrees is drawn as a pinhole of 120
        CameraSpec(name="hand_camera", on="umi_base", pos=(0, -0.092, 0.04), quat=(0, 1, 0, 0), fovy=2.0944),
    ),
    source="mujoco_menagerie umi_gripper",
)
