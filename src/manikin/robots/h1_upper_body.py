"""Unitree H1 held at the pelvis, its arms with a turning wrist and a five-finger hand each: upper body only.

Kinematics, inertia, limits and torques of forearms, wrists and hands: Unitree's description of H1 with hands
(BSD-3-Clause), whose hands are Inspire's; the rest is :mod:`h1`. The right hand is the left one's reflection, which
leaves out that the zero of its thumb is 0.11 rad elsewhere. Gains of the body, scale of actions and stance: ManiSkill3,
which drives the arms, the wrists and one thumb. Here one command closes a hand: its six motors together, and the other
six joints follow them. Gains of the hands, their armature (1e-4 kg m^2) and shapes are chosen.
"""

from __future__ import annotations

import math
from dataclasses import replace

from manikin.robots.h1 import LEFT, LEGS, PELVIS, TORSO
from manikin.spec.links import Joint, Link, Quat, Vec3, box, capsule, cylinder, mirrored
from manikin.spec.robot import Finger, Gains, GripperSpec, JointGroup, RobotSpec, Tool

DARK, GREY = (0.12, 0.12, 0.13, 1), (0.4, 0.41, 0.43, 1)
H = 0.5**0.5
STANCE = {"hip_pitch": -0.4, "knee": 0.8, "ankle": -0.4}  # [rad] how the stiff legs are bent

FOREARM = replace(
    LEFT[-1],
    mass=0.723,
    com=(0.164862, 0.000118, -0.015734),
    inertia=(0.00049639, 0.006456355, 0.006450997, -3.3971e-05, 0.000316026, 4.929e-06),
    geoms=(capsule((0.03, 0, -0.002), (0.22, 0, -0.015), 0.028, GREY),),
)
WRIST = Link(
    name="left_hand_link",
    parent=FOREARM.name,
    pos=(0.2605, 0, -0.0185),
    joint=Joint(name="left_hand", axis=(1, 0, 0), range=(-3.05433, 3.05433), armature=0.01),
    mass=0.014,
    com=(0.003993, -9.4e-05, 0),
    inertia=(3.449e-06, 1.917e-06, 1.932e-06, 6e-09, 0, 0),
    geoms=(cylinder((-0.002, 0, 0), (0.006, 0, 0), 0.022, DARK, collide=False),),
)
LIMB = (*LEFT[:-1], FOREARM, WRIST)
ARMS = {"left": LIMB, "right": mirrored(LIMB, "left", "right")}


def bone(
    name: str,
    parent: str,
    pos: Vec3,
    high: float,
    mass: float,
    com: Vec3,
    inertia: tuple[float, ...],
    end: Vec3,
    radius: float,
    *,
    low: float = 0.0,
    axis: Vec3 = (0, 0, -1),
    quat: Quat = (1, 0, 0, 0),
) -> Link:
    """A link of a finger of the left hand: a capsule towards ``end``, beside its frame, as high as its middle."""
    middle = com[2]
    return Link(
        name=name,
        parent=parent,
        pos=pos,
        quat=quat,
        joint=Joint(name=f"{name}_joint", axis=axis, range=(low, high), armature=1e-4),
        mass=mass,
        com=com,
        inertia=inertia,
        geoms=(capsule((0, 0, middle), (end[0], end[1], middle), radius, DARK, pad=True),),
    )


def finger(name: str, pos: Vec3, turn: float, last: tuple[float, Vec3, tuple[float, ...]]) -> tuple[Link, Link]:
    """A finger, leaning by ``turn`` [rad] to the side; ``last`` is mass, centre and inertia of its outer link."""
    quat = (math.cos(turn / 2), math.sin(turn / 2), 0, 0)
    inertia = (6.6215e-07, 2.1167e-07, 6.9402e-07, 1.8442e-08, 0, 0)
    first = (0.0042405, (0.0012971, -0.011934, -0.006), inertia)
    return (
        bone(f"{name}_proximal", "palm", pos, 1.7, *first, (-0.0024, -0.032, 0), 0.0075, quat=quat),
        bone(
            f"{name}_intermediate",
            f"{name}_proximal",
            (-0.0024229, -0.032041, -0.001),
            1.7,
            *last,
            (0.004, -2.1 * -last[1][1] + 0.006, 0),
            0.0065,
        ),
    )


SHORT = (0.0045682, (0.0021753, -0.019567, -0.005), (7.6284e-07, 9.4308e-08, 7.8176e-07, -8.063e-08, 0, 0))
LONG = (0.0050397, (0.001921, -0.020796, -0.005), (9.5823e-07, 1.0646e-07, 9.8385e-07, -1.1425e-07, 0, 0))
SMALL = (0.0036036, (0.0024788, -0.016208, -0.005), (4.3923e-07, 7.0315e-08, 4.4881e-07, -4.1355e-08, 0, 0))
HAND = (
    Link(
        name="palm",
        parent=None,
        pos=(0, 0, 0.003),
        quat=(0.5, -0.5, -0.5, 0.5),  # fingers out of the flange
        mass=0.14143,
        com=(-0.002551, -0.066047, -0.0019357),
        inertia=(0.0001234, 8.3835e-05, 7.7231e-05, 2.1995e-06, -1.7694e-06, 1.5968e-06),
        geoms=(
            cylinder((0, 0, 0), (0, -0.035, 0), 0.022, DARK, collide=False),
            box((0.012, 0.048, 0.036), (-0.001, -0.085, 0), DARK, pad=True),
        ),
    ),
    bone(
        "thumb_base",
        "palm",
        (-0.01696, -0.0691, 0.02045),
        1.3,
        0.0018869,
        (0.0048817, 0.00038782, -0.00722),
        (5.5158e-08, 8.2164e-08, 6.7434e-08, -1.1803e-08, -4.6743e-09, -1.3521e-09),
        (0.009, 0.006, 0),
        0.007,
        low=-0.1,
        axis=(0, 0, 1),
        quat=(0.5, 0.5, -0.5, 0.5),
    ),
    bone(
        "thumb_proximal",
        "thumb_base",
        (0.0099867, 0.0098242, -0.0089),
        0.6,
        0.0066101,
        (0.021936, -0.01279, -0.0080386),
        (1.5693e-06, 1.7356e-06, 2.787e-06, 7.8339e-07, 8.5959e-10, 1.0378e-09),
        (0.044, -0.0345, 0),
        0.0085,
        low=-0.1,
        quat=(0.70457, -0.70457, -0.05982, 0.05982),
    ),
    bone(
        "thumb_intermediate",
        "thumb_proximal",
        (0.04407, -0.034553, -0.0008),
        0.8,
        0.0037844,
        (0.0095531, 0.0016282, -0.0072002),
        (3.6981e-07, 3.2395e-07, 4.6532e-07, 9.8603e-08, 0, 0),
        (0.02, -0.006, 0),
        0.008,
    ),
    bone(
        "thumb_distal",
        "thumb_intermediate",
        (0.020248, -0.010156, -0.0012),
        1.2,
        0.003344,
        (0.0092888, -0.004953, -0.0060033),
        (1.3632e-07, 1.4052e-07, 2.0026e-07, 5.6787e-08, -9.1939e-11, 1.2145e-10),
        (0.019, -0.01, 0),
        0.007,
    ),
    *finger("index", (0.00028533, -0.13653, 0.032268), -0.034907, SHORT),
    *finger("middle", (0.00028533, -0.1371, 0.01295), 0.0, LONG),
    *finger("ring", (0.00028533, -0.13691, -0.0062872), 0.05236, SHORT),
    *finger("pinky", (0.00028533, -0.13571, -0.025488), 0.10472, SMALL),
)
LAST = ("thumb_distal", "index_intermediate", "middle_intermediate", "ring_intermediate", "pinky_intermediate")
MOTORS = ("thumb_base", "thumb_proximal", "index_proximal", "middle_proximal", "ring_proximal", "pinky_proximal")
OPEN, CLOSED = (1.1, 0.0, 0.0, 0.0, 0.0, 0.0), (1.3, 0.35, 1.5, 1.5, 1.5, 1.5)
FOLLOW = {
    "thumb_intermediate_joint": ("thumb_proximal_joint", 1.6),
    "thumb_distal_joint": ("thumb_proximal_joint", 2.4),
    **{f"{name}_intermediate_joint": (f"{name}_proximal_joint", 1.0) for name in ("index", "middle", "ring", "pinky")},
}


def hand(side: str) -> GripperSpec:
    """A hand as a gripper: one command moves all of it."""
    s = 1 if side == "left" else -1
    links = HAND if side == "left" else mirrored(HAND, "left", "right")
    return GripperSpec(
        name=f"h1_hand_{side}",
        title=f"Inspire hand of H1, {side}",
        links=links,
        menagerie=None,
        joints=tuple(joint.name for one in links for joint in one.joints),
        drivers=tuple(f"{name}_joint" for name in MOTORS),
        open_q=tuple(s * q for q in OPEN),
        closed_q=tuple(s * q for q in CLOSED),
        gains=Gains(kp=(1.5,) * 6, kd=(0.06,) * 6, force=(1,) * 6, source="chosen; torque: Unitree's description"),
        fingers=(
            Finger(body=LAST[0], closing=(-0.47, -0.88 * s, 0)),
            *(Finger(body=name, closing=(-1, 0, 0)) for name in LAST[1:]),
        ),
        sides=((0,), (1, 2, 3, 4)),
        tcp_body="palm",
        tcp_pos=(-0.055, -0.135 * s, 0.015),
        palm=((-0.013, -0.085 * s, 0), (-1, 0, 0)),
        tcp_quat=(0.3162, 0.6325, 0.3162, -0.6325) if side == "left" else (0.6325, -0.3162, -0.6325, -0.3162),
        max_width=0.08,
        followers=FOLLOW,
        equalities=tuple((joint, driver, (0, ratio)) for joint, (driver, ratio) in FOLLOW.items()),
        travel_s=0.5,
        source="Unitree's description of H1 with hands",
    )


def stiff(one: Link) -> Link:
    """A link of a leg, or the pelvis, that moves with nothing and touches nothing."""
    angle = next((q for part, q in STANCE.items() if part in one.name), 0.0)
    quat = (math.cos(angle / 2), 0, math.sin(angle / 2), 0)
    return replace(one, joint=None, quat=quat, geoms=tuple(replace(g, collide=False) for g in one.geoms))


def group(joints: tuple[str, ...], effort: tuple[float, ...]) -> JointGroup:
    many = len(joints)
    gains = Gains(kp=(1000,) * many, kd=(100,) * many, force=(100,) * many, source="ManiSkill3")
    return JointGroup(joints=joints, gains=gains, effort=effort, delta=(0.2,) * many)


ROBOT = RobotSpec(
    name="h1_upper_body",
    title="Unitree H1 with hands, held at the pelvis",
    links=(*map(stiff, (PELVIS, *LEGS)), TORSO, *ARMS["left"], *ARMS["right"]),
    groups={
        "torso": group(("torso",), (200,)),
        **{
            f"{side}_arm": group(tuple(joint.name for one in links for joint in one.joints), (40, 40, 18, 18, 6))
            for side, links in ARMS.items()
        },
    },
    ik_groups=("left_arm",),
    tools={
        side: Tool(body=f"{side}_hand_link", quat=(H, 0, H, 0), gripper=hand(side), group=f"{side}_arm")
        for side in ARMS
    },
    keyframes=dict.fromkeys(("rest", "palms"), (0, *(0, 0.2, 0, 0, 0), *(0, -0.2, 0, 0, 0))),
    base_pos=(-0.45, 0, -0.9196 + 0.975),
    table_edge=-0.25,
    gravcomp=False,
    controllers=("joint_pos", "joint_delta_pos", "joint_target_delta_pos", "joint_vel", "ee_delta_pos", "joint_torque"),
    excludes=tuple(("torso_link", f"{side}_shoulder_roll_link") for side in ARMS),
    source="mujoco_menagerie unitree_h1; Unitree's description of H1 with hands",
)
