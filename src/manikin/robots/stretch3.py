"""Hello Robot Stretch 3, a light mobile manipulator: two driven wheels, a lift on a mast, an arm that telescopes to the
right, a wrist of three joints, a gripper, a head.

Kinematics, masses, inertia, limits and the forces of lift and arm: mujoco_menagerie hello_robot_stretch_3 (Apache-2.0,
from Hello Robot). The four tubes of the arm slide together there, 0.13 m each; here the last one slides 0.52 m, and
nothing is drawn or collides between it and the others. The base moves along x and y (20 m either way, chosen) and turns
about z; wheels do not turn. Gains, the forces of base, head and wrist, and armature are chosen; dry friction is left
out. kd lets a joint reach the speed that `group` names at its force. Its weight is compensated. The arm has no way to
go sideways but the base: inverse kinematics of a full pose takes both, `base+lift+arm+wrist: ee_delta_pose`. Place and
rest pose are chosen: on the floor before a table, the arm over it, pointing down. `carry` is Menagerie's `home`, `stow`
its `stow`.
"""

from __future__ import annotations

from manikin.robots.compose import base_joints
from manikin.spec.camera import CameraSpec
from manikin.spec.links import Joint, Link, box, capsule, cylinder, pad
from manikin.spec.robot import Base, Gains, JointGroup, MenagerieModel, RobotSpec, Tool

BLACK, GREY, SILVER, RUBBER = (0.09, 0.09, 0.1, 1), (0.42, 0.42, 0.43, 1), (0.7, 0.7, 0.72, 1), (0.25, 0.25, 0.25, 1)
CARBON = (0.13, 0.13, 0.14, 1)
H = 0.5**0.5
BASE = ("base_x", "base_y", "base_yaw")


def tube(
    name: str, parent: str, radius: float, mass: float, com: float, inertia: tuple[float, float], **more: object
) -> Link:
    """A tube of the arm, along z of its frame."""
    across, along = inertia
    return Link(
        name=name,
        parent=parent,
        mass=mass,
        com=(0, 0, com),
        inertia=(across, across, along),
        geoms=(box((radius, radius, 0.109), (0, 0, -0.118), CARBON, collide=name == "link_arm_l0"),),
        **more,  # type: ignore[arg-type]
    )


def finger(side: str, s: int, pos: tuple[float, float, float], mass: float, com: tuple[float, float, float]) -> Link:
    """``s`` is the way along x of its frame in which it points back to the wrist."""
    quat = (0, -0.706825, 0, 0.707388) if side == "left" else (-0.706825, 0, 0.707388, 0)
    return Link(
        name=f"link_gripper_finger_{side}",
        parent="link_SG3_gripper_body",
        pos=pos,
        quat=quat,
        joint=Joint(
            name=f"joint_gripper_finger_{side}_open", axis=(0, -1, 0), range=(-0.6, 0.6), armature=0.01, damping=0.0
        ),
        mass=mass,
        com=com,
        inertia=(0.000156, 0.000154, 0.000006) if side == "left" else (0.00038, 0.00037, 0.000015),
        geoms=(
            capsule((-0.01 * s, 0, 0), (-0.085 * s, 0, -0.028 * s), 0.007, SILVER, collide=False),
            capsule((-0.085 * s, 0, -0.028 * s), (-0.165 * s, 0, -0.014 * s), 0.007, SILVER),
        ),
    )


def tip(side: str, pos: tuple[float, float, float], quat: tuple[float, float, float, float]) -> Link:
    return Link(
        name=f"rubber_tip_{side}",
        parent=f"link_gripper_finger_{side}",
        pos=pos,
        quat=quat,
        mass=0.005,
        com=(0, 0, 0.010368),
        inertia=(4.5e-07, 4.5e-07, 7.9e-07),
        geoms=(pad((0.02, 0.02, 0.01), (0, 0, 0.01), RUBBER),),
    )


def wheel(side: str, s: int) -> Link:
    return Link(
        name=f"link_{side}_wheel",
        parent="base_link",
        pos=(0, 0.17035 * s, 0.0508),
        quat=(H, -H, 0, 0),
        mass=0.15,
        inertia=(0.000108, 0.000108, 0.000205),
        geoms=(cylinder((0, 0, -0.0125), (0, 0, 0.0125), 0.05, GREY, collide=False),),
    )


LINKS = (
    Link(
        name="base_link",
        parent=None,
        joint=base_joints(*BASE),
        mass=15.0,
        com=(-0.108058, 0.001728, 0.092531),
        inertia=(0.132053, 0.228628, 0.138152),
        geoms=(
            box((0.16, 0.165, 0.05), (-0.115, 0, 0.09), GREY),
            box((0.09, 0.12, 0.01), (-0.06, 0, 0.15), BLACK, collide=False),
            cylinder((0.004, 0, 0.14), (0.004, 0, 0.185), 0.038, BLACK, collide=False),
        ),
    ),
    Link(
        name="link_mast",
        parent="base_link",
        pos=(-0.067, 0.135, 0.0284),
        quat=(H, H, 0, 0),
        mass=1.8285,
        com=(0, 0.7075, 0),
        inertia=(0.251818, 0.000425, 0.251818),
        geoms=(box((0.019, 0.643, 0.019), (0, 0.7075, 0), BLACK),),
    ),
    Link(
        name="link_head",
        parent="base_link",
        pos=(-0.067, 0.134995, 1.3584),
        quat=(H, 0, 0, -H),
        mass=0.833027,
        com=(0.040603, 0.039965, 0.031248),
        inertia=(0.002711, 0.0020, 0.002),
        geoms=(box((0.075, 0.05, 0.015), (0.06, 0.04, 0.02), BLACK),),
    ),
    wheel("right", -1),
    wheel("left", 1),
    Link(
        name="link_lift",
        parent="base_link",
        pos=(-0.104385, 0.134999, 0.2),
        quat=(H, 0, 0, H),
        joint=Joint(name="joint_lift", type="slide", range=(0, 1.1), armature=0.1),
        mass=3.0,
        com=(-0.029793, 0.035798, 0.006475),
        inertia=(0.0155, 0.0058, 0.0167),
        geoms=(
            box((0.055, 0.065, 0.06), (-0.04, 0.035, 0.0), GREY, collide=False),
            box((0.03, 0.03, 0.05), (-0.02, 0.0, 0.0), BLACK),
        ),
    ),
    Link(
        name="link_arm_l4",
        parent="link_lift",
        mass=0.168095,
        com=(-0.137582, 0, 0),
        inertia=(0.000066, 0.000428, 0.000428),
        geoms=(box((0.107, 0.023, 0.023), (-0.139, 0, 0), CARBON),),
    ),
    tube(
        *("link_arm_l3", "link_arm_l4", 0.021, 0.162893, -0.119274, (0.000425, 0.000053)),
        pos=(-0.2677, 0, 0),
        quat=(0.5, 0.5, -0.5, -0.5),
    ),
    tube("link_arm_l2", "link_arm_l3", 0.019, 0.157139, -0.119434, (0.000407, 0.000042), pos=(0, 0, 0.013)),
    tube("link_arm_l1", "link_arm_l2", 0.017, 0.151382, -0.119635, (0.000389, 0.000032), pos=(0, 0, 0.013)),
    tube(
        *("link_arm_l0", "link_arm_l1", 0.015, 0.28501, -0.095134, (0.000704, 0.000047)),
        pos=(0, 0, -0.01375),
        joint=Joint(name="joint_arm_l0", type="slide", range=(0, 0.52), armature=0.1),
    ),
    Link(
        name="link_wrist_yaw",
        parent="link_arm_l0",
        pos=(0.083, -0.03075, 0),
        quat=(H, H, 0, 0),
        joint=Joint(name="joint_wrist_yaw", axis=(0, 0, -1), range=(-1.39, 4.42), armature=0.01),
        mass=0.1445,
        com=(0, -0.000076, -0.019045),
        inertia=(0.000021, 0.000021, 0.000011),
        geoms=(
            cylinder((0, 0, -0.038), (0, 0, 0.03), 0.022, BLACK),
            box((0.02, 0.015, 0.01), (-0.01, 0, 0.025), BLACK, collide=False),
        ),
    ),
    Link(
        name="link_DW3_wrist_pitch",
        parent="link_wrist_yaw",
        pos=(-0.01946, 0, 0.0305),
        quat=(0.500398, -0.499602, 0.5, -0.5),
        joint=Joint(name="joint_wrist_pitch", axis=(0, 0, -1), range=(-1.57, 0.56), armature=0.01),
        mass=0.1165,
        com=(-0.003282, -0.018906, 0.018954),
        inertia=(0.000055, 0.00005, 0.00005),
        geoms=(box((0.025, 0.037, 0.02), (-0.005, -0.016, 0.0196), BLACK),),
    ),
    Link(
        name="link_SG3_gripper_body",
        parent="link_DW3_wrist_pitch",
        pos=(-0.0399, -0.024, 0.0196),
        quat=(H, 0, -H, 0),
        joint=Joint(name="joint_wrist_roll", range=(-3.14, 3.14), armature=0.01),
        mass=0.58,
        com=(0.00045, 0.042, 0.052),
        inertia=(0.0010, 0.0008, 0.0004),
        geoms=(
            box((0.033, 0.03, 0.04), (0, 0, 0.045), BLACK),
            box((0.021, 0.012, 0.02), (0, 0.06, 0.06), SILVER, collide=False),
        ),
    ),
    finger("left", 1, (0.02292, 0.0020217, 0.035297), 0.1, (-0.140647, 0.001931, -0.002549)),
    tip("left", (-0.17777, 0.0018452, -0.011272), (0.991431, 0.000677, -0.130525, -0.005145)),
    finger("right", -1, (-0.023281, 0, 0.035287), 0.15, (0.121119, -0.000129, 0.005391)),
    tip("right", (0.17778, 0, 0.011272), (-0.130526, 0, -0.991445, 0)),
    Link(
        name="link_head_pan",
        parent="base_link",
        pos=(0.0061, 0, 1.3552),
        joint=Joint(name="joint_head_pan", range=(-4.04, 1.73), armature=0.01),
        mass=0.127376,
        com=(-0.000371, 0.008691, -0.002694),
        inertia=(0.000097, 0.00005, 0.0001),
        geoms=(box((0.014, 0.02, 0.03), (0, 0.018, -0.035), BLACK, collide=False),),
    ),
    Link(
        name="link_head_tilt",
        parent="link_head_pan",
        pos=(-0.0013, 0.0277625, -0.0533108),
        quat=(H, H, 0, 0),
        joint=Joint(name="joint_head_tilt", range=(-1.53, 0.79), armature=0.01),
        mass=0.290563,
        com=(0.0135, -0.0228, 0.0268),
        inertia=(0.00036, 0.00033, 0.0002),
        geoms=(box((0.015, 0.055, 0.03), (0.03, -0.022, 0.031), SILVER),),
    ),
)


def group(names: tuple[str, ...], force: tuple[float, ...], fastest: float, **more: object) -> JointGroup:
    """Joints whose kd lets them reach ``fastest`` [rad/s or m/s] at their force, kp being 10 times that."""
    kd = tuple(round(f / fastest, 3) for f in force)
    gains = Gains(kp=tuple(10 * k for k in kd), kd=kd, force=force, source="chosen, see above")
    return JointGroup(joints=names, gains=gains, **more)  # type: ignore[arg-type]


ROBOT = RobotSpec(
    name="stretch3",
    title="Hello Robot Stretch 3",
    links=LINKS,
    menagerie=MenagerieModel(
        folder="hello_robot_stretch_3",
        file="stretch.xml",
        drop=(
            *("joint_right_wheel", "joint_left_wheel", "joint_arm_l1", "joint_arm_l2", "joint_arm_l3"),
            *("joint_gripper_slide", "joint_head_nav_cam"),
            *(f"rubber_{side}_{axis}" for side in ("left", "right") for axis in "xy"),
        ),
        own_joints=("base_link", "link_arm_l0"),
    ),
    base=Base(kind="differential", joints=BASE),
    groups={
        "base": JointGroup(
            joints=BASE,
            gains=Gains(kp=(1500, 1500, 100), kd=(300, 300, 20), force=(300, 300, 40), source="chosen"),
            delta=(0.02, 0.02, 0.1),
            speed=(0.3, 0.3, 1.0),
        ),
        "head": group(("joint_head_pan", "joint_head_tilt"), (2.0, 2.0), 2.0),
        "lift": group(("joint_lift",), (70.0,), 0.3, delta=(0.03,), speed=0.2),
        "arm": group(("joint_arm_l0",), (56.0,), 0.4, delta=(0.03,), speed=0.2),
        "wrist": group(("joint_wrist_yaw", "joint_wrist_pitch", "joint_wrist_roll"), (4.0, 4.0, 3.0), 2.0),
    },
    ik_groups=("lift", "arm", "wrist"),
    tools={"tool": Tool(body="", gripper="stretch_gripper", group="wrist")},
    keyframes={
        "rest": (0, 0, 0, -1.57, -0.5, 1.08, 0.35, 0, -1.0, 0),
        "carry": (0, 0, 0, 0, 0, 0.6, 0.1, 0, 0, 0),
        "stow": (0, 0, 0, 0, 0, 0.23, 0, 3.14, -0.4, 0),
    },
    base_pos=(-0.615, 0.0214, -0.9196),
    base_quat=(H, 0, 0, H),
    table_edge=-0.3,
    controllers=(
        *("joint_pos", "joint_delta_pos", "joint_target_delta_pos", "joint_vel", "ee_delta_pos", "joint_impedance"),
        *("joint_torque", "base_vel"),
    ),
    excludes=(
        *(("link_lift", body) for body in ("link_mast", "link_head", "link_arm_l0", "link_arm_l1", "link_arm_l2")),
        ("link_head_pan", "link_head"),
        ("link_head_tilt", "link_head"),
        *((f"link_arm_l{a}", f"link_arm_l{b}") for a in range(5) for b in range(a + 2, 5)),
        ("link_arm_l0", "link_arm_l1"),
        *(("link_wrist_yaw", f"link_arm_l{k}") for k in range(5)),
    ),
    cameras=(
        CameraSpec(
            name="head_camera",
            on="link_head_tilt",
            pos=(0.0406, 0.0203, 0.0307),
            quat=(0.5, 0.5, -0.5, -0.5),
            fovy=1.012,
        ),
    ),
    reach=0.0,
    payload=2.0,
    source="mujoco_menagerie hello_robot_stretch_3",
)
