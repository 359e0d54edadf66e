"""UFACTORY xArm Gripper: two fingers on parallelograms, opening 0.086 m.

Kinematics and inertia: mujoco_menagerie ufactory_xarm7/hand.xml (BSD-3-Clause). Each finger is a real four-bar (outer
knuckle, finger, inner knuckle) closed by a `connect`. Menagerie's joint friction and armature stabilize its simulation
and are not the maker's; here they are those of the like-built 2F-85. Force: 1.65 N m per driver at a lever of 0.055 m
is 30 N at the pads; with 1.2 N m s/rad of damping it closes at 1.4 rad/s, 150 mm/s (both chosen).
"""

from __future__ import annotations

from typing import Any

from manikin.spec.camera import CameraSpec
from manikin.spec.links import Joint, Link, Quat, Vec3, box, capsule, cylinder, pad
from manikin.spec.robot import Finger, Gains, GripperSpec, MenagerieModel

WHITE, BLACK = (1, 1, 1, 1), (0.149, 0.149, 0.149, 1)
SIDES = {"left": 1, "right": -1}
LIMIT = (0, 0.85)


def finger(side: str) -> tuple[Link, ...]:
    s = SIDES[side]

    def v(x: float, y: float, z: float) -> Vec3:
        return (x, s * y, z)

    def q(w: float, x: float, y: float, z: float) -> Quat:
        return (w, s * x, y, s * z)

    driver = Joint(name=f"{side}_driver_joint", axis=(s, 0, 0), range=LIMIT, armature=0.02)
    follower = Joint(name=f"{side}_finger_joint", axis=(-s, 0, 0), range=LIMIT, armature=0.001)
    spring: dict[str, Any] = dict(armature=0.001, stiffness=0.05, springref=2.62, damping=0.00125)
    inner = Joint(name=f"{side}_inner_knuckle_joint", axis=(s, 0, 0), range=LIMIT, **spring)
    pads = tuple(
        pad((0.015, 0.002, 0.0095), v(0, -0.024003, z), (0.25, 0.25, 0.25, 1), name=f"{side}_finger_pad_{i}")
        for i, z in ((1, 0.032), (2, 0.050))
    )
    return (
        Link(
            name=f"{side}_outer_knuckle",
            parent="xarm_gripper_base_link",
            pos=v(0, 0.035, 0.059098),
            joint=driver,
            mass=0.033618,
            com=v(0, 0.021559, 0.015181),
            com_quat=q(0.47789, 0.87842, 0, 0),
            inertia=(1.9111e-05, 1.79089e-05, 1.90167e-06),
            geoms=(
                capsule(v(0, -0.01, -0.002), v(0, 0.042, 0.022), 0.007, BLACK),
                capsule(v(0, 0.042, 0.022), v(0, 0.035465, 0.042039), 0.007, BLACK, collide=False),
            ),
        ),
        Link(
            name=f"{side}_finger",
            parent=f"{side}_outer_knuckle",
            pos=v(0, 0.035465, 0.042039),
            joint=follower,
            mass=0.048304,
            com=v(0, -0.016413, 0.029258),
            com_quat=q(0.697634, 0.115353, -0.115353, 0.697634),
            inertia=(1.88037e-05, 1.7493e-05, 3.56792e-06),
            geoms=(
                *pads,
                box((0.013, 0.009, 0.012), v(0, -0.005, 0.006), BLACK),
                box((0.015, 0.004, 0.024), v(0, -0.018, 0.036), BLACK),
            ),
        ),
        Link(
            name=f"{side}_inner_knuckle",
            parent="xarm_gripper_base_link",
            pos=v(0, 0.02, 0.074098),
            joint=inner,
            mass=0.0230126,
            com=v(1.86601e-06, 0.0220468, 0.0261335),
            com_quat=q(0.664139, -0.242732, 0.242713, 0.664146),
            inertia=(8.34216e-06, 6.0949e-06, 2.75601e-06),
            geoms=(capsule(v(0, 0, 0), v(0, 0.035465, 0.042039), 0.006, BLACK),),
        ),
    )


GRIPPER = GripperSpec(
    name="xarm_gripper",
    title="UFACTORY xArm Gripper",
    links=(
        Link(
            name="xarm_gripper_base_link",
            parent=None,
            mass=0.54156,
            com=(-0.00065489, -0.0018497, 0.048028),
            com_quat=(0.997403, -0.0717512, -0.0061836, 0.000477479),
            inertia=(0.000471093, 0.000332307, 0.000254799),
            geoms=(
                cylinder((0, 0, -0.009), (0, 0, 0.02), 0.037, WHITE, collide=False),
                box((0.031, 0.045, 0.03), (0, 0, 0.032), WHITE),
                box((0.027, 0.037, 0.02), (0, 0, 0.082), WHITE),
            ),
        ),
        *finger("left"),
        *finger("right"),
    ),
    menagerie=MenagerieModel(folder="ufactory_xarm7", file="hand.xml"),
    joints=tuple(f"{side}_{part}_joint" for side in SIDES for part in ("driver", "finger", "inner_knuckle")),
    drivers=("left_driver_joint", "right_driver_joint"),
    open_q=(0.0, 0.0),
    closed_q=(0.85, 0.85),
    gains=Gains(kp=(10, 10), kd=(1.2, 1.2), force=(1.65, 1.65), source="derived, see above"),
    fingers=(Finger(body="left_finger", closing=(0, -1, 0)), Finger(body="right_finger", closing=(0, 1, 0))),
    tcp_body="xarm_gripper_base_link",
    tcp_pos=(0, 0, 0.165),  # 10 mm behind the tips of the closed fingers, so that low things can be taken from a table
    max_width=0.086,
    followers={
        f"{side}_{part}_joint": (f"{side}_driver_joint", 1.0) for side in SIDES for part in ("finger", "inner_knuckle")
    },
    equalities=(("left_driver_joint", "right_driver_joint", (0, 1)),),
    connects=tuple((f"{side}_finger", f"{side}_inner_knuckle", (0, -SIDES[side] * 0.015, 0.015)) for side in SIDES),
    excludes=tuple(
        pair
        for side in SIDES
        for pair in (
            ("xarm_gripper_base_link", f"{side}_outer_knuckle"),
            ("xarm_gripper_base_link", f"{side}_inner_knuckle"),
            ("xarm_gripper_base_link", f"{side}_finger"),
            (f"{side}_inner_knuckle", f"{side}_outer_knuckle"),
            (f"{side}_inner_knuckle", f"{side}_finger"),
        )
    ),
    cameras=(  # chosen: beside the housing, looking along the gripper as the Franka Hand's does
        CameraSpec(
            name="hand_camera", on="xarm_gripper_base_link", pos=(0.065, 0, 0.02), quat=(0.5**0.5, 0, 0, 0.5**0.5)
        ),
    ),
    source="mujoco_menagerie ufactory_xarm7",
)
