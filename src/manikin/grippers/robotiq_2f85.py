"""Robotiq 2F-85: two fingers on parallelograms, opening 0.085 m.

Kinematics and inertia: mujoco_menagerie robotiq_2f85/2f85.xml (BSD-2-Clause). Each finger is a real four-bar: driver
(the coupler rigid on it), spring link and follower, closed by a `connect` between follower and coupler. The maker's
coupler joint, which lets the finger wrap around an object, is locked: this gripper pinches, with parallel pads. Force
and speed: Robotiq gives 20 to 235 N and 20 to 150 mm/s. 2.5 N m per driver (Menagerie's limit) at a lever of 0.0575 m
is 43 N; with 1.75 N m s/rad of damping it closes at 1.4 rad/s, 150 mm/s. kp 10 N m/rad reaches the limit at 0.25 rad.
The drivers' armature stands for motor and worm gear, chosen so that damping is slower than a step of 5 ms.
"""

from __future__ import annotations

from manikin.spec.camera import CameraSpec
from manikin.spec.links import Joint, Link, box, cylinder, pad
from manikin.spec.robot import Finger, Gains, GripperSpec, MenagerieModel

BLACK, GREY, RUBBER = (0.15, 0.15, 0.15, 1), (0.46, 0.46, 0.46, 1), (0.55, 0.55, 0.55, 1)
H = 0.5**0.5
SIDES = {"right": (1, (1, 0, 0, 0)), "left": (-1, (0, 0, 0, 1))}  # the left finger is the right one turned about z


def finger(side: str) -> tuple[Link, ...]:
    sign, quat = SIDES[side]
    pads = tuple(
        pad((0.011, 0.004, 0.009375), (0, -0.0026, z), RUBBER, name=f"{side}_pad{i}")
        for i, z in ((1, 0.028125), (2, 0.009375))
    )
    return (
        Link(
            name=f"{side}_driver",
            parent="gripper_base",
            pos=(0, sign * 0.0306011, 0.054904),
            quat=quat,
            joint=Joint(name=f"{side}_driver_joint", axis=(1, 0, 0), range=(0, 0.8), armature=0.02),
            mass=0.00899563,
            com=(0, 0.0177547, 0.00107314),
            com_quat=(0.681301, 0.732003, 0, 0),
            inertia=(1.72352e-06, 1.60906e-06, 3.22006e-07),
            geoms=(box((0.008, 0.02, 0.007), (0, 0.016, -0.001), GREY, collide=False),),
        ),
        Link(
            name=f"{side}_coupler",
            parent=f"{side}_driver",
            pos=(0, 0.0315, -0.0041),
            mass=0.0140974,
            com=(0, 0.00301209, 0.0232175),
            com_quat=(0.705636, -0.0455904, 0.0455904, 0.705636),
            inertia=(4.16206e-06, 3.52216e-06, 8.88131e-07),
            geoms=(box((0.013, 0.006, 0.027), (0, 0.004, 0.024), BLACK),),
        ),
        Link(
            name=f"{side}_spring_link",
            parent="gripper_base",
            pos=(0, sign * 0.0132, 0.0609),
            quat=quat,
            joint=Joint(
                name=f"{side}_spring_link_joint",
                axis=(1, 0, 0),
                range=(-0.29670597283, 0.8),
                armature=0.001,
                damping=0.00125,
                stiffness=0.05,
                springref=2.62,
            ),
            mass=0.0221642,
            com=(0, 0.0181624, 0.0212658),
            com_quat=(0.663403, -0.244737, 0.244737, 0.663403),
            inertia=(8.96853e-06, 6.71733e-06, 2.63931e-06),
            geoms=(box((0.009, 0.004, 0.028), (0, 0.0185, 0.022), BLACK, quat=(0.935, -0.354, 0, 0)),),
        ),
        Link(
            name=f"{side}_follower",
            parent=f"{side}_spring_link",
            pos=(0, 0.055, 0.0375),
            joint=Joint(
                name=f"{side}_follower_joint",
                axis=(1, 0, 0),
                pos=(0, -0.018, 0.0065),
                range=(-0.872664, 0.872664),
                armature=0.001,
            ),
            mass=0.0125222,
            com=(0, -0.011046, 0.0124786),
            com_quat=(1, 0.1664, 0, 0),
            inertia=(2.67415e-06, 2.4559e-06, 6.02031e-07),
            geoms=(box((0.008, 0.006, 0.022), (0, -0.012, 0.022), BLACK),),
        ),
        Link(
            name=f"{side}_pad",
            parent=f"{side}_follower",
            pos=(0, -0.0189, 0.01352),
            mass=0.0035,
            com=(0, -0.0025, 0.0185),
            com_quat=(H, 0, 0, H),
            inertia=(4.73958e-07, 3.64583e-07, 1.23958e-07),
            geoms=pads,
        ),
        Link(
            name=f"{side}_silicone_pad",
            parent=f"{side}_pad",
            mass=0.00130281,
            com=(0, -0.0058, 0.0185174),
            com_quat=(H, 0, 0, H),
            inertia=(2.00804e-07, 1.49536e-07, 5.18242e-08),
        ),
    )


JOINTS = tuple(f"{side}_{part}_joint" for side in SIDES for part in ("driver", "spring_link", "follower"))
DRIVERS = ("right_driver_joint", "left_driver_joint")

GRIPPER = GripperSpec(
    name="robotiq_2f85",
    title="Robotiq 2F-85",
    links=(
        Link(
            name="base_mount",
            parent=None,
            pos=(0, 0, 0.007),
            quat=(H, 0, 0, H),
            mass=0.150003,
            com=(-0.000360584, 8.53627e-05, -5.91991e-05),
            com_quat=(-0.000512917, 0.7061, 0.00053299, 0.708112),
            inertia=(0.000102345, 5.35997e-05, 5.21718e-05),
            geoms=(cylinder((0, 0, -0.007), (0, 0, 0.007), 0.0375, BLACK),),
        ),
        Link(
            name="gripper_base",
            parent="base_mount",
            pos=(0, 0, 0.0038),
            quat=(H, 0, 0, -H),
            mass=0.777441,
            com=(0, -2.70394e-05, 0.0354675),
            com_quat=(1, -0.00152849, 0, 0),
            inertia=(0.000260285, 0.000225381, 0.000152708),
            geoms=(
                cylinder((0, 0, 0), (0, 0, 0.06), 0.038, BLACK),
                box((0.02, 0.034, 0.014), (0, 0, 0.068), BLACK),
                box((0.016, 0.018, 0.006), (0, 0, 0.086), BLACK, collide=False),
            ),
        ),
        *finger("right"),
        *finger("left"),
    ),
    menagerie=MenagerieModel(
        folder="robotiq_2f85",
        file="2f85.xml",
        drop=("right_coupler_joint", "left_coupler_joint"),
        rename={"base": "gripper_base"},
    ),
    joints=JOINTS,
    drivers=DRIVERS,
    open_q=(0.0, 0.0),
    closed_q=(0.8, 0.8),
    gains=Gains(
        kp=(10, 10), kd=(1.75, 1.75), force=(2.5, 2.5), source="derived from the maker's force and speed, see above"
    ),
    fingers=(Finger(body="right_pad", closing=(0, -1, 0)), Finger(body="left_pad", closing=(0, -1, 0))),
    tcp_body="base_mount",
    tcp_pos=(0, 0, 0.157),  # 10 mm behind the tips of the closed fingers, so that low things can be taken from a table
    tcp_quat=(H, 0, 0, -H),
    max_width=0.085,
    followers={
        f"{side}_{part}_joint": (f"{side}_driver_joint", ratio)
        for side in SIDES
        for part, ratio in (("spring_link", 1.0), ("follower", -1.0))
    },
    equalities=(("right_driver_joint", "left_driver_joint", (0, 1)),),
    connects=tuple((f"{side}_follower", f"{side}_coupler", (0, 0, 0)) for side in SIDES),
    excludes=tuple(
        pair
        for side in SIDES
        for pair in (
            ("gripper_base", f"{side}_driver"),
            ("gripper_base", f"{side}_coupler"),
            ("gripper_base", f"{side}_spring_link"),
            ("gripper_base", f"{side}_follower"),
            (f"{side}_coupler", f"{side}_follower"),
            (f"{side}_coupler", f"{side}_spring_link"),
            (f"{side}_driver", f"{side}_spring_link"),
        )
    ),
    cameras=(  # chosen: beside the housing, looking along the gripper as the Franka Hand's does
        CameraSpec(name="hand_camera", on="gripper_base", pos=(0.065, 0, 0.02), quat=(H, 0, 0, H)),
    ),
    source="mujoco_menagerie robotiq_2f85",
)
