"""Inspire Robots RH56, the right hand: six motors for twelve joints; also on an arm (``xarm7+inspire``).

Kinematics and limits: robosuite 1.5.2's inspire_right_hand (MIT). Mass, inertia, 1 N m of torque and 0.5 rad/s:
unitree_ros' h1_with_hand (BSD-3-Clause), whose links are the same; its 0.2 kg leave out the motors in the palm.
The two motors of the thumb turn it across the palm and bend it, the other four bend a finger each. The outer joints
follow: they reach the ends of their ranges together with the joint they follow, which are the couplings of
mujoco_menagerie's inspire_hand. kd lets a joint reach 0.5 rad/s at its force; kp = 10 kd. Its weight is not
compensated.
"""

from __future__ import annotations

from manikin.spec.control import JOINT_CONTROLLERS
from manikin.spec.links import Geom, Joint, Link, Quat, Vec3, box, capsule, cylinder
from manikin.spec.robot import Gains, JointGroup, RobotSpec, Tool

WHITE, BLACK, METAL = (0.86, 0.86, 0.87, 1), (0.12, 0.12, 0.13, 1), (0.5, 0.5, 0.52, 1)
H = 0.5**0.5
RANGES = {  # [rad], of joints named like the links that they move; all begin at 0
    "thumb_proximal_1": 1.3,
    "thumb_proximal_2": 0.68,
    "thumb_middle": 0.68,
    "thumb_distal": 0.77,
    **{f"{f}_proximal": 1.62 for f in ("index", "middle", "ring", "pinky")},
    "index_distal": 1.82,
    "middle_distal": 1.82,
    "ring_distal": 1.75,
    "pinky_distal": 1.87,
}
FOLLOWED = {"thumb_middle": "thumb_proximal_2", "thumb_distal": "thumb_proximal_2"} | {
    f"{f}_distal": f"{f}_proximal" for f in ("index", "middle", "ring", "pinky")
}


def link(
    name: str,
    parent: str,
    pos: Vec3,
    figures: tuple[float, Vec3, tuple[float, ...]],
    *geoms: Geom,
    quat: Quat = (1, 0, 0, 0),
    axis: Vec3 = (0, 0, 1),
) -> Link:
    mass, com, inertia = figures
    follows = name in FOLLOWED
    joint = Joint(
        name=name,
        axis=axis,
        range=(0, RANGES[name]),
        damping=0.02 if follows else 0.0,
        armature=1e-4 if follows else 1e-3,
    )
    return Link(
        name=name, parent=parent, pos=pos, quat=quat, joint=joint, mass=mass, com=com, inertia=inertia, geoms=geoms
    )


THUMB = (
    link(
        "thumb_proximal_1",
        "palm",
        (-0.01496, -0.0375, -0.02045),
        (
            0.0018869,
            (-0.0048064, 0.0009382, -0.00757),
            (5.816e-08, 7.9161e-08, 6.7433e-08, 1.4539e-08, 4.491e-09, -1.8727e-09),
        ),
        capsule((-0.008, 0, -0.007), (-0.001, 0, -0.007), 0.0075, METAL),
        quat=(0.5, 0.5, -0.5, 0.5),
        axis=(0, 0, -1),
    ),
    link(
        "thumb_proximal_2",
        "thumb_proximal_1",
        (-0.0088099, 0.010892, -0.00925),
        (
            0.0066075,
            (0.021932, 0.012785, -0.0080386),
            (1.5686e-06, 1.7353e-06, 2.786e-06, -7.8296e-07, 8.9143e-10, -1.0191e-09),
        ),
        capsule((0.006, 0.002, -0.008), (0.042, 0.027, -0.008), 0.0105, WHITE),
        quat=(0.1, 0.1, 0.7, 0.7),
    ),
    link(
        "thumb_middle",
        "thumb_proximal_2",
        (0.04407, 0.034553, -0.0008),
        (
            0.0037847,
            (0.0095544, -0.0016282, -0.0071997),
            (3.6981e-07, 3.2394e-07, 4.6531e-07, -9.8581e-08, -4.7469e-12, 1.0939e-12),
        ),
        capsule((0.002, -0.003, -0.0072), (0.016, 0.001, -0.0072), 0.0085, METAL),
    ),
    link(
        "thumb_distal",
        "thumb_middle",
        (0.020248, 0.010156, -0.0012),
        (
            0.0033441,
            (0.0092888, 0.0049529, -0.0060033),
            (1.3632e-07, 1.4052e-07, 2.0026e-07, -5.6788e-08, -9.2764e-11, -1.2283e-10),
        ),
        capsule((0.003, -0.0005, -0.006), (0.0165, 0.0085, -0.006), 0.0068, BLACK, pad=True),
    ),
)

PROXIMAL = (
    0.0042403,
    (0.001297, 0.011934, -0.0060001),
    (6.6211e-07, 2.1167e-07, 6.9397e-07, -1.8461e-08, 1.8e-12, -6.7e-12),
)
INDEX_PROXIMAL = (
    0.0042403,
    (0.0012259, 0.011942, -0.0060001),
    (6.6232e-07, 2.1146e-07, 6.9398e-07, -1.5775e-08, 1.9e-12, -5.1e-12),
)
DISTAL = {
    "index": (
        0.0045683,
        (0.0019697, 0.019589, -0.005),
        (7.6111e-07, 9.6076e-08, 7.8179e-07, 8.7637e-08, -3.8e-13, 9.9e-13),
    ),
    "middle": (
        0.0050396,
        (0.001921, 0.020796, -0.005),
        (9.5822e-07, 1.0646e-07, 9.8384e-07, 1.1425e-07, -2.5e-12, 5.9e-12),
    ),
    "ring": (
        0.0045683,
        (0.0021753, 0.019567, -0.005),
        (7.6286e-07, 9.431e-08, 7.8177e-07, 8.0635e-08, -6.2e-13, 5.9e-13),
    ),
    "pinky": (
        0.0035996,
        (0.0024748, 0.016203, -0.0050031),
        (4.3913e-07, 7.0247e-08, 4.4867e-07, 4.1418e-08, 3.72e-11, 5.86e-11),
    ),
}


def finger(name: str, pos: Vec3, quat: Quat, joint: Vec3, length: float) -> tuple[Link, Link]:
    """Its place and turn on the palm, its second joint's place, and how far its tip is from that [m]."""
    return (
        link(
            f"{name}_proximal",
            "palm",
            pos,
            INDEX_PROXIMAL if name == "index" else PROXIMAL,
            capsule((0, 0.002, -0.006), (-0.0005, 0.025, -0.006), 0.0078, METAL),
            quat=quat,
        ),
        link(
            f"{name}_distal",
            f"{name}_proximal",
            joint,
            DISTAL[name],
            capsule((0.002, 0.005, -0.005), (0.003, length - 0.0068, -0.005), 0.0068, BLACK, pad=True),
        ),
    )


PALM = Link(
    name="palm",
    parent=None,
    quat=(0, 0, -H, H),  # fingers up, palm ahead
    mass=0.14143,
    com=(-0.0005264, -0.034447, 0.0019598),
    inertia=(0.00012281, 8.3832e-05, 7.6663e-05, 2.1711e-06, 1.7709e-06, -1.6551e-06),
    geoms=(
        cylinder((0, 0, 0), (0, -0.016, 0), 0.0225, WHITE),
        box((0.0165, 0.043, 0.037), (0.002, -0.055, 0.002), WHITE),
        box((0.012, 0.006, 0.0385), (0.002, -0.1, 0.002), WHITE, collide=False),
    ),
)

LINKS = (
    PALM,
    *THUMB,
    *finger(
        "index", (0.0022853, -0.10493, -0.032268), (0.01745, -0.99985, 0, 0), (-0.0026138, 0.032026, -0.001), 0.0452
    ),
    *finger("middle", (0.0022853, -0.1055, -0.01295), (0, -1, 0, 0), (-0.0024229, 0.032041, -0.001), 0.0487),
    *finger("ring", (0.0022853, -0.10531, 0.0062872), (0.02619, 0.99966, 0, 0), (-0.0024229, 0.032041, -0.001), 0.0453),
    *finger("pinky", (0.0022853, -0.10411, 0.025488), (0.05232, 0.99863, 0, 0), (-0.0024229, 0.032041, -0.001), 0.0375),
)
FINGERS = ("index", "middle", "ring", "pinky")
TIPS = {"index": 0.0384, "middle": 0.0419, "ring": 0.0385, "pinky": 0.0307}  # [m] along a finger's last link

ROBOT = RobotSpec(
    name="inspire",
    title="Inspire RH56 hand",
    links=LINKS,
    groups={
        "fingers": JointGroup(
            joints=("thumb_proximal_1", "thumb_proximal_2", *(f"{f}_proximal" for f in FINGERS)),
            gains=Gains(kp=(20,) * 6, kd=(2,) * 6, force=(1,) * 6, source="force: unitree_ros; kp, kd: see above"),
            speed=0.5,
        )
    },
    followers={joint: (driver, RANGES[joint] / RANGES[driver]) for joint, driver in FOLLOWED.items()},
    tools={
        "palm": Tool(body="palm", pos=(-0.05, -0.09, 0.0), quat=(H, 0, -H, 0)),  # before the palm, whose face is -x
        "thumb": Tool(body="thumb_distal", pos=(0.0165, 0.0085, -0.006)),
        **{f: Tool(body=f"{f}_distal", pos=(0.003, TIPS[f], -0.005), quat=(H, -H, 0, 0)) for f in FINGERS},
    },
    touch=(
        *("palm", "thumb_proximal_2", "thumb_middle", "thumb_distal"),
        *(f"{f}_{part}" for f in FINGERS for part in ("proximal", "distal")),
    ),
    keyframes={
        "rest": (0.4, 0.1, 0.2, 0.2, 0.2, 0.2),
        "fist": (0.0, 0.3, 1.4, 1.4, 1.4, 1.4),
    },
    gravcomp=False,
    controllers=JOINT_CONTROLLERS,
    excludes=tuple(
        ("palm", one)
        for one in ("thumb_proximal_1", "thumb_proximal_2", "thumb_middle", *(f"{f}_proximal" for f in FINGERS))
    ),
    source="robosuite 1.5.2, unitree_ros h1_with_hand",
)
