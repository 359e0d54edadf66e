"""Kinova Jaco hand: a thumb against two fingers, each on one joint, with stiff tips.

Kinematics, masses and limits: dm_control's jaco_hand (Apache-2.0), from Kinova's description; it takes the tips'
springs for stiff, and so does this. The three fingers have a motor each; they are coupled here, so that a thing stays
between them. Kinova gives 175 mm of opening, at the tips; the pads'
near ends open 121 mm. 1.5 N m per finger at a lever of 0.088 m is 17 N; with 0.8 N m s/rad of
damping it closes at 1.9 rad/s. The armature stands for motor and worm gear.
"""

from __future__ import annotations

from manikin.spec.camera import CameraSpec
from manikin.spec.links import Joint, Link, Quat, Vec3, capsule, cylinder, pad
from manikin.spec.robot import Finger, Gains, GripperSpec, MenagerieModel

CARBON, GREY, DARK = (0.1, 0.1, 0.1, 1), (0.7, 0.7, 0.7, 1), (0.3, 0.3, 0.3, 1)
PLACES: dict[int, tuple[Vec3, Quat]] = {
    1: ((0.00279, 0.03126, -0.11467), (0.24396, -0.63159, -0.38818, 0.62521)),  # the thumb
    2: ((-0.02226, -0.02707, -0.11482), (0.601679, -0.254671, 0.659653, -0.37146)),
    3: ((0.02226, -0.02707, -0.11482), (0.659653, -0.37146, 0.601679, -0.254671)),
}


def finger(k: int) -> tuple[Link, ...]:
    pos, quat = PLACES[k]
    return (
        Link(
            name=f"b_finger_{k}",
            parent="hand",
            pos=pos,
            quat=quat,
            joint=Joint(name=f"finger_{k}", axis=(0, 0, 1), range=(0.15, 1.35), armature=0.01),
            mass=0.0255204,
            com=(0.02049543, -0.007902492, -6.814093e-06),
            com_quat=(0.5018436, 0.4991487, 0.5007257, 0.4982744),
            inertia=(7.069e-06, 7.02191e-06, 2.03878e-06),
            geoms=(
                capsule((0.003, -0.004, 0), (0.022, -0.011, 0), 0.0095, GREY),
                capsule((0.022, -0.011, 0), (0.044, -0.004, 0), 0.0085, GREY),
            ),
        ),
        Link(
            name=f"b_finger_tip_{k}",
            parent=f"b_finger_{k}",
            pos=(0.044, -0.003, 0),
            mass=0.0132655,
            com=(0.01282602, -0.00453113, -3.468581e-06),
            com_quat=(0.5003359, 0.5014116, 0.4985254, 0.4997228),
            inertia=(2.7019e-06, 2.54229e-06, 6.6406e-07),
            geoms=(
                capsule((0, -0.003, 0), (0.018, -0.006, 0), 0.008, GREY),
                capsule((0.018, -0.006, 0), (0.036, -0.006, 0), 0.007, GREY),
                pad((0.019, 0.003, 0.009), (0.0225, -0.0005, 0), DARK, quat=(0.9962, 0, 0, -0.0872)),
            ),
        ),
    )


GRIPPER = GripperSpec(
    name="jaco_three_finger",
    title="Kinova Jaco hand, three fingers",
    links=(
        Link(
            name="hand",
            parent=None,
            quat=(0, 1, 0, 0),
            mass=0.54719,
            com=(2.962565e-05, -0.004450738, -0.05792117),
            com_quat=(0.9948837, -0.100917, -0.001802679, -0.004356879),
            inertia=(0.000747164, 0.000656533, 0.000524176),
            geoms=(
                cylinder((0, 0, 0), (0, 0, -0.03), 0.032, CARBON),
                cylinder((0, 0.001, -0.025), (0, 0.001, -0.095), 0.043, CARBON),
                cylinder((0, 0, -0.095), (0, 0, -0.118), 0.034, GREY),
            ),
        ),
        *(link for k in PLACES for link in finger(k)),
    ),
    menagerie=MenagerieModel(collection="data", folder="dm_control_kinova", file="jaco_hand.xml", root="hand"),
    joints=("finger_1", "finger_2", "finger_3"),
    drivers=("finger_1", "finger_2", "finger_3"),
    open_q=(0.15,) * 3,
    closed_q=(1.6,) * 3,
    gains=Gains(kp=(6,) * 3, kd=(0.8,) * 3, force=(1.5,) * 3, source="derived, see above"),
    fingers=tuple(Finger(body=f"b_finger_tip_{k}", closing=(0, 1, 0)) for k in PLACES),
    sides=((0,), (1, 2)),
    tcp_body="hand",
    tcp_pos=(0, 0.003, -0.185),
    tcp_quat=(0, 1, 0, 0),
    max_width=0.121,
    travel_s=0.8,
    equalities=(("finger_2", "finger_1", (0, 1)), ("finger_3", "finger_1", (0, 1))),
    excludes=(
        *(("hand", f"b_finger_{k}") for k in PLACES),
        *(("hand", f"b_finger_tip_{k}") for k in PLACES),
        ("b_finger_tip_2", "b_finger_tip_3"),
    ),
    cameras=(CameraSpec(name="hand_camera", on="hand", pos=(0.06, 0, -0.03), quat=(0, 0.5**0.5, 0.5**0.5, 0)),),
    source="dm_control jaco_hand",
)
