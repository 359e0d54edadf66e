"""Google robot's gripper: two fingers that each turn on one joint, opening 0.13 m at the pads and 0.2 m at the tips.

Kinematics and inertia: mujoco_menagerie google_robot (Apache-2.0). Its housing is one body with the arm's last link, so
here that link keeps the mass and the housing only looks and collides. The fingers are not kept parallel: tips that are
32 mm apart face each other, wider ones lean open. They stop where
they meet. No maker's force is known: 3 N m per finger at a lever of 0.11 m is 27
N; with 1.5 N m s/rad of damping it closes at 2 rad/s (chosen). It mounts on the frame of `link_gripper`, half
a turn about z from the flange's.
"""

from __future__ import annotations

from manikin.spec.links import Joint, Link, Quat, Vec3, box, capsule, cylinder, pad
from manikin.spec.robot import Finger, Gains, GripperSpec, MenagerieModel

WHITE, GREY, RUBBER = (0.9, 0.9, 0.9, 1), (0.35, 0.35, 0.38, 1), (0.2, 0.2, 0.2, 1)
Inertial = tuple[Vec3, Quat, tuple[float, ...]]
PLACES: dict[str, tuple[Vec3, Quat, Inertial, Inertial]] = {
    "right": (
        (0, 0.025, 0.05886),
        (0.879969, -0.475032, 0, 0),
        (
            (2.427078e-05, -0.00307606, 0.04057239),
            (0.698578, 0.1060306, -0.1093019, 0.6991419),
            (4.03921e-05, 2.99707e-05, 2.84435e-05),
        ),
        (
            (8.467735e-06, 0.000731752, 0.0192186),
            (0.706703, 0.01376895, -0.01383773, 0.707241),
            (3.19204e-05, 2.5982e-05, 1.20123e-05),
        ),
    ),
    "left": (
        (0, -0.025, 0.05886),
        (0, 0, -0.475032, 0.879969),
        (
            (-2.968627e-06, -0.003231249, 0.04046316),
            (0.6961222, 0.1220632, -0.1231127, 0.6966762),
            (3.66092e-05, 2.876e-05, 2.56037e-05),
        ),
        (
            (6.103156e-06, 0.0007130037, 0.01880595),
            (0.706689, 0.01551085, -0.0152501, 0.7071899),
            (3.33473e-05, 2.67208e-05, 1.2736e-05),
        ),
    ),
}


def finger(side: str) -> tuple[Link, ...]:
    pos, quat, base, tip = PLACES[side]
    return (
        Link(
            name=f"link_finger_{side}",
            parent="gripper_housing",
            pos=pos,
            quat=quat,
            joint=Joint(name=f"joint_finger_{side}", axis=(1, 0, 0), range=(0.01, 0.95), armature=0.02),
            mass=0.1358308778460444,
            com=base[0],
            com_quat=base[1],
            inertia=base[2],
            geoms=(
                capsule((-0.012, 0, 0.022), (-0.012, -0.004, 0.056), 0.012, WHITE),
                capsule((0.012, 0, 0.022), (0.012, -0.004, 0.056), 0.012, WHITE),
                box((0.014, 0.008, 0.02), (0, 0, 0.01), GREY, collide=False),
            ),
        ),
        Link(
            name=f"link_finger_tip_{side}",
            parent=f"link_finger_{side}",
            pos=(0, -0.0103567, 0.0641556),
            quat=(0.995004, 0.0998334, 0, 0),
            mass=0.12357188206974147,
            com=tip[0],
            com_quat=tip[1],
            inertia=tip[2],
            geoms=(
                box((0.0185, 0.006, 0.024), (0, 0.003, 0.021), GREY, quat=(0.9962, -0.0872, 0, 0)),
                pad((0.018, 0.003, 0.025), (0, -0.007, 0.025), RUBBER),
            ),
        ),
    )


GRIPPER = GripperSpec(
    name="google_gripper",
    title="Google robot gripper",
    links=(
        Link(
            name="gripper_housing",
            parent=None,
            quat=(0, 0, 0, 1),
            geoms=(
                cylinder((0, 0, 0.002), (0, 0, 0.05), 0.04, WHITE),
                box((0.03, 0.038, 0.016), (0, 0, 0.058), GREY),
            ),
        ),
        *finger("right"),
        *finger("left"),
    ),
    menagerie=MenagerieModel(
        folder="google_robot",
        file="robot.xml",
        root="link_gripper",
        drop=("joint_gripper",),
        own_inertia=("gripper_housing",),
        rename={"link_gripper": "gripper_housing"},
    ),
    joints=("joint_finger_right", "joint_finger_left"),
    drivers=("joint_finger_right", "joint_finger_left"),
    open_q=(0.01, 0.01),
    closed_q=(1.3, 1.3),
    gains=Gains(kp=(12, 12), kd=(1.5, 1.5), force=(3, 3), source="chosen, see above"),
    fingers=(
        Finger(body="link_finger_tip_right", closing=(0, -1, 0)),
        Finger(body="link_finger_tip_left", closing=(0, -1, 0)),
    ),
    tcp_body="gripper_housing",
    tcp_pos=(0, 0, 0.16),
    tcp_quat=(0, 0, 0, 1),
    max_width=0.131,
    travel_s=0.8,
    equalities=(("joint_finger_right", "joint_finger_left", (0, 1)),),
    excludes=(
        *(("gripper_housing", f"link_finger_{side}") for side in PLACES),
        *(("gripper_housing", f"link_finger_tip_{side}") for side in PLACES),
    ),
    source="mujoco_menagerie google_robot",
)
