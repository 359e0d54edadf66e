"""ALOHA's fingers for the ViperX-300: two printed fingers on a rail, opening 0.058 m, with a camera on the wrist.

Kinematics and inertia: mujoco_menagerie aloha (BSD-3-Clause), left arm. A mesh model's finger is its convex hull. The
range of commands is ALOHA's; fingers stop where they meet, at 7 mm. Force: the 35 N of the file. kp, kd and armature
(motor and rack) are the Franka Hand's. It mounts on the frame of `gripper_link`, whose x and z the flange swaps.
"""

from __future__ import annotations

from manikin.spec.links import Joint, Link, Quat, Vec3, box, pad
from manikin.spec.robot import Finger, Gains, GripperSpec, MenagerieModel

H = 0.5**0.5
BLACK, DARK = (0.15, 0.15, 0.15, 1), (0.25, 0.25, 0.25, 1)
PLACES: dict[str, tuple[int, Vec3, Quat, Vec3, Quat, tuple[float, ...]]] = {
    "left": (
        -1,
        (0.0191, -0.0141637, 0.0211727),
        (0.5, -0.5, -0.5, 0.5),
        (0.0143478, -0.0284791, 0.0122897),
        (0.535486, 0.458766, -0.450407, 0.547651),
        (5.86848e-05, 4.46887e-05, 1.8397e-05),
    ),
    "right": (
        1,
        (-0.0191, -0.0141637, 0.0211727),
        (0.5, 0.5, 0.5, 0.5),
        (0.0143711, 0.0284792, 0.0121421),
        (0.461317, 0.537615, -0.545478, 0.447894),
        (5.86828e-05, 4.46887e-05, 1.83949e-05),
    ),
}


def finger(side: str) -> Link:
    s, pos, quat, com, com_quat, inertia = PLACES[side]
    return Link(
        name=f"{side}_finger_link",
        parent="gripper_base",
        pos=pos,
        quat=quat,
        joint=Joint(name=f"{side}_finger", type="slide", axis=(0, 0, -1), range=(0.0074, 0.041), armature=1.0),
        mass=0.0862937 if s < 0 else 0.0862932,
        com=com,
        com_quat=com_quat,
        inertia=inertia,
        geoms=(
            box((0.02, 0.012, 0.005), (0.015, s * 0.002, 0.006), BLACK),
            box((0.014, 0.04, 0.003), (0.0155, s * 0.042, 0.0125), BLACK, quat=(0.9928, s * 0.12, 0, 0)),
            pad((0.008, 0.016, 0.002), (0.016, s * 0.073, 0.0249), DARK),
        ),
    )


GRIPPER = GripperSpec(
    name="viperx_fingers",
    title="ViperX-300 fingers (ALOHA)",
    links=(
        Link(
            name="gripper_base",
            parent=None,
            pos=(0, 0, 0.035),
            quat=(H, 0, 0, H),
            mass=0.42158,
            com=(0.000182154, -0.0341589, -0.0106026),
            com_quat=(0.435286, 0.557074, -0.551539, 0.442718),
            inertia=(0.00110438, 0.000790537, 0.000469727),
            geoms=(
                box((0.075, 0.012, 0.0125), (0, -0.018, 0.0092), BLACK),
                box((0.014, 0.023, 0.018), (0, -0.012, -0.021), BLACK),
                box((0.02, 0.03, 0.012), (0, -0.066, -0.02), BLACK),
                box((0.021, 0.021, 0.0115), (0, -0.085, -0.019), DARK, quat=(0.976, 0.216, 0, 0)),
            ),
        ),
        finger("left"),
        finger("right"),
    ),
    menagerie=MenagerieModel(folder="aloha", file="aloha.xml", root="left/gripper_base", prefix="left/"),
    joints=("left_finger", "right_finger"),
    drivers=("left_finger", "right_finger"),
    open_q=(0.037, 0.037),
    closed_q=(0.0, 0.0),
    gains=Gains(kp=(1000, 1000), kd=(100, 100), force=(35, 35), source="see above"),
    fingers=(Finger(body="left_finger_link", closing=(0, 0, 1)), Finger(body="right_finger_link", closing=(0, 0, 1))),
    tcp_body="gripper_base",
    tcp_pos=(0, 0.0033, 0.101),
    tcp_quat=(H, 0, 0, -H),
    max_width=0.058,
    travel_s=0.3,
    equalities=(("left_finger", "right_finger", (0, 1)),),
    excludes=(("gripper_base", "left_finger_link"), ("gripper_base", "right_finger_link")),
    source="mujoco_menagerie aloha",
)
