"""Robotiq 2F-140: two fingers on parallelograms, opening 0.140 m.

Pivots, link masses and inertia: the figures of robosuite 1.5.2's robotiq_gripper_140, from the ROS description; the
housing's mass makes up the 1.0 kg that Robotiq gives. The parallelograms are exact, so each finger and inner knuckle is
coupled to its driver instead of closing a loop. The description's zero leaves 126 mm between the pads; the drivers open
further, to the maker's 140 mm. Force and speed: Robotiq gives 10 to 125 N and 30 to 250 mm/s. 4 N m per driver at a
lever of 0.1 m is 40 N; with 2.5 N m s/rad of damping it closes at 1.6 rad/s, 160 mm/s.
"""

from __future__ import annotations

from manikin.spec.camera import CameraSpec
from manikin.spec.links import Joint, Link, box, capsule, cylinder, pad
from manikin.spec.robot import Finger, Gains, GripperSpec

BLACK, SILVER, RUBBER = (0.12, 0.12, 0.12, 1), (0.7, 0.72, 0.78, 1), (0.5, 0.5, 0.5, 1)
SIDES = {"right": 1, "left": -1}
TURN = (-0.079, 0.7)  # [rad] open to closed
UP, OUT = 0.076303, 0.064637  # [m] from a driver's pivot to its finger's


def finger(side: str) -> tuple[Link, ...]:
    s = SIDES[side]
    return (
        Link(
            name=f"{side}_outer_knuckle",
            parent="gripper_base",
            pos=(0, s * 0.030601, 0.05393),
            joint=Joint(name=f"{side}_driver_joint", axis=(s, 0, 0), range=TURN, armature=0.03),
            mass=0.0311462,
            com=(0, s * 0.039216, 0.0265),
            inertia=(2.96e-5, 2.753e-5, 4.839e-6, 0, 0, -s * 3.221e-6),
            geoms=(
                capsule((0, 0, 0), (0, s * 0.028, 0), 0.0095, SILVER),
                capsule((0, s * 0.036, 0.004), (0, s * OUT, UP), 0.0095, BLACK),
                capsule((0, s * 0.028, 0), (0, s * 0.036, 0.004), 0.009, BLACK, collide=False),
            ),
        ),
        Link(
            name=f"{side}_inner_finger",
            parent=f"{side}_outer_knuckle",
            pos=(0, s * OUT, UP),
            joint=Joint(name=f"{side}_inner_finger_joint", axis=(-s, 0, 0), range=(-0.8757, 0.8757), armature=0.001),
            mass=0.0261503,
            com=(0, -s * 0.021841, 0.033924),
            inertia=(1.591e-5, 1.546e-5, 3.171e-6, 0, 0, s * 3.195e-6),
            geoms=(
                capsule((0, 0, 0), (0, -s * 0.018, 0.03), 0.0065, BLACK),
                box((0.0125, 0.003, 0.0325), (0, -s * 0.0215, 0.0458), BLACK),
                pad((0.0135, 0.00325, 0.033), (0, -s * 0.02775, 0.0458), RUBBER),
            ),
        ),
        Link(
            name=f"{side}_inner_knuckle",
            parent="gripper_base",
            pos=(0, s * 0.0127, 0.060445),
            joint=Joint(name=f"{side}_inner_knuckle_joint", axis=(s, 0, 0), range=(-0.8757, 0.8757), armature=0.001),
            mass=0.0271177,
            com=(0, s * 0.034456, 0.037323),
            inertia=(2.619e-5, 1.66e-5, 1.459e-5, 0, 0, -s * 1.274e-5),
            geoms=(
                capsule((0.013, 0, 0), (0.013, s * OUT, UP), 0.0055, BLACK),
                capsule((-0.013, 0, 0), (-0.013, s * OUT, UP), 0.0055, BLACK),
            ),
        ),
    )


PARTS = ("inner_finger", "inner_knuckle")
FOLLOWERS = {f"{side}_{part}_joint": (f"{side}_driver_joint", 1.0) for side in SIDES for part in PARTS}

GRIPPER = GripperSpec(
    name="robotiq_2f140",
    title="Robotiq 2F-140",
    links=(
        Link(
            name="gripper_base",
            parent=None,
            mass=0.83,
            com=(0, 0, 0.0336),
            inertia=(0.00074, 0.00064, 0.00051),
            geoms=(
                cylinder((0, 0, 0), (0, 0, 0.058), 0.0375, BLACK),
                box((0.03, 0.04, 0.012), (0, 0, 0.063), BLACK),
                box((0.02, 0.022, 0.008), (0, 0, 0.081), BLACK, collide=False),
            ),
        ),
        *finger("right"),
        *finger("left"),
    ),
    menagerie=None,
    joints=tuple(f"{side}_{part}_joint" for side in SIDES for part in ("driver", *PARTS)),
    drivers=("right_driver_joint", "left_driver_joint"),
    open_q=(-0.079, -0.079),
    closed_q=(0.95, 0.95),
    gains=Gains(kp=(16, 16), kd=(2.5, 2.5), force=(4, 4), source="derived from the maker's force and speed, see above"),
    fingers=(
        Finger(body="right_inner_finger", closing=(0, -1, 0)),
        Finger(body="left_inner_finger", closing=(0, 1, 0)),
    ),
    tcp_body="gripper_base",
    tcp_pos=(0, 0, 0.222),  # 10 mm behind the tips of the closed fingers, so that low things can be taken from a table
    max_width=0.14,
    travel_s=0.5,
    followers=FOLLOWERS,
    equalities=(
        ("right_driver_joint", "left_driver_joint", (0, 1)),
        *((joint, driver, (0, 1)) for joint, (driver, _) in FOLLOWERS.items()),
    ),
    excludes=(
        *(("gripper_base", f"{side}_{part}") for side in SIDES for part in ("outer_knuckle", *PARTS)),
        *((f"{side}_inner_knuckle", f"{side}_{part}") for side in SIDES for part in ("outer_knuckle", "inner_finger")),
        ("right_inner_knuckle", "left_inner_knuckle"),
    ),
    cameras=(CameraSpec(name="hand_camera", on="gripper_base", pos=(0.065, 0, 0.02), quat=(0.5**0.5, 0, 0, 0.5**0.5)),),
    source="figures of robosuite 1.5.2",
)
