"""Robotiq 3-Finger adaptive gripper in pinch mode: a middle finger against two that lean together.

Pivots, masses and inertia: the figures of robosuite 1.5.2's robotiq_gripper_s, from the ROS description (its centre of
mass of the knuckles lies outside them; here it is their middle). Each finger's first two phalanges move as one and the
last one stays parallel to the palm's axis, as the real fingers do until something blocks them; that they then wrap
around a thing is not modelled. The scissor that spreads the two fingers is fixed at the description's limit of 0.178
rad, pinch mode. Robotiq gives 155 mm of opening and 60 N. 3 N m per finger at a lever of 0.1 m is 30 N; with 2.5 N m
s/rad of damping it closes at 1.2 rad/s.
"""

from __future__ import annotations

import math

from manikin.spec.camera import CameraSpec
from manikin.spec.links import Joint, Link, box, capsule, cylinder, pad
from manikin.spec.robot import Finger, Gains, GripperSpec

BLACK, DARK, RUBBER = (0.12, 0.12, 0.12, 1), (0.2, 0.2, 0.2, 1), (0.55, 0.55, 0.55, 1)
LEAN = 0.1784  # [rad] of the two fingers, towards each other
FINGERS = {"finger_1": (-0.0361, 1, LEAN), "finger_2": (0.0361, 1, -LEAN), "finger_middle": (0.0, -1, 0.0)}
TURN = (0.0, 0.904)  # the pads meet


def finger(name: str) -> tuple[Link, ...]:
    x, s, lean = FINGERS[name]
    return (
        Link(
            name=f"{name}_link_0",
            parent="palm",
            pos=(x, s * 0.0455, 0.0214),
            quat=(math.cos(lean / 2), 0, math.sin(lean / 2), 0),
            mass=0.0494545,
            com=(0, -s * 0.008, 0.005),
            inertia=(1.396e-5, 1.099e-5, 1.004e-5),
            geoms=(box((0.0155, 0.022, 0.02), (0, -s * 0.008, 0.004), DARK),),
        ),
        Link(
            name=f"{name}_link_1",
            parent=f"{name}_link_0",
            pos=(0, 0, 0.02),
            joint=Joint(name=f"{name}_joint_1", axis=(s, 0, 0), range=TURN, armature=0.03),
            mass=0.0859984,
            com=(0, s * 0.022013, 0.018423),
            inertia=(6.46e-5, 4.974e-5, 2.479e-5, 0, 0, -s * 1.843e-5),
            geoms=(
                capsule((0, 0, 0), (0, s * 0.028, 0.05), 0.0125, BLACK),
                capsule((0, s * 0.022, -0.006), (0, s * 0.036, 0.03), 0.0125, BLACK),
            ),
        ),
        Link(
            name=f"{name}_link_2",
            parent=f"{name}_link_1",
            pos=(0, s * 0.02804, 0.04998),
            mass=0.0461767,
            com=(0, s * 0.014481, 0.0087),
            inertia=(1.707e-5, 1.552e-5, 7.152e-6, 0, 0, -s * 3.458e-6),
            geoms=(
                capsule((0, s * 0.002, 0), (0, s * 0.021, 0.0325), 0.0095, DARK),
                capsule((0, s * 0.016, -0.008), (0, s * 0.026, 0.022), 0.0105, DARK),
            ),
        ),
        Link(
            name=f"{name}_link_3",
            parent=f"{name}_link_2",
            pos=(0, s * 0.0194, 0.03383),
            joint=Joint(name=f"{name}_joint_3", axis=(-s, 0, 0), range=TURN, armature=0.001),
            mass=0.0227212,
            com=(0, s * 0.002233, 0.008703),
            inertia=(4.692e-6, 5.244e-6, 2.258e-6, 0, 0, s * 8.83e-7),
            geoms=(
                capsule((0, s * 0.003, 0), (0, s * 0.003, 0.024), 0.0095, BLACK),
                box((0.012, 0.003, 0.015), (0, -s * 0.0035, 0.0215), BLACK),
                pad((0.012, 0.0015, 0.0145), (0, -s * 0.0078, 0.0222), RUBBER),
            ),
        ),
    )


DRIVERS = tuple(f"{name}_joint_1" for name in FINGERS)

GRIPPER = GripperSpec(
    name="robotiq_three_finger",
    title="Robotiq 3-Finger, pinch mode",
    links=(
        Link(
            name="palm",
            parent=None,
            pos=(0, 0, 0.045),
            mass=1.20044,
            com=(0, 0.001342, 0.002631),
            inertia=(0.002189, 0.002111, 0.002635),
            geoms=(
                cylinder((0, 0, -0.045), (0, 0, -0.02), 0.044, BLACK),
                box((0.058, 0.055, 0.024), (0, 0.002, 0), BLACK),
                cylinder((0, 0, 0.02), (0, 0, 0.034), 0.03, DARK),
            ),
        ),
        *(link for name in FINGERS for link in finger(name)),
    ),
    menagerie=None,
    joints=tuple(f"{name}_joint_{i}" for name in FINGERS for i in (1, 3)),
    drivers=DRIVERS,
    open_q=(0.07,) * 3,
    closed_q=(1.2,) * 3,
    gains=Gains(kp=(12,) * 3, kd=(2.5,) * 3, force=(3,) * 3, source="derived from the maker's force, see above"),
    fingers=tuple(Finger(body=f"{name}_link_3", closing=(0, -s, 0)) for name, (_, s, _) in FINGERS.items()),
    sides=((0, 1), (2,)),
    tcp_body="palm",
    tcp_pos=(0, 0, 0.158),  # 10 mm behind the tips of the closed fingers, so that low things can be taken from a table
    max_width=0.155,
    travel_s=0.8,
    followers={f"{name}_joint_3": (f"{name}_joint_1", 1.0) for name in FINGERS},
    equalities=(
        *((driver, DRIVERS[0], (0, 1)) for driver in DRIVERS[1:]),
        *((f"{name}_joint_3", f"{name}_joint_1", (0, 1)) for name in FINGERS),
    ),
    excludes=(
        *(("palm", f"{name}_link_{i}") for name in FINGERS for i in (0, 1, 2)),
        *((f"{name}_link_{i}", f"{name}_link_{j}") for name in FINGERS for i, j in ((0, 1), (1, 3), (2, 3), (0, 2))),
        *((f"finger_1_link_{i}", f"finger_2_link_{j}") for i in range(4) for j in range(4)),  # they lean on each other
    ),
    cameras=(CameraSpec(name="hand_camera", on="palm", pos=(0.085, 0, -0.02), quat=(0.5**0.5, 0, 0, 0.5**0.5)),),
    source="figures of robosuite 1.5.2",
)
