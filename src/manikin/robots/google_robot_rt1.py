"""The Google Robot of SIMPLER's tasks (Li et al. 2024, arXiv 2405.05941): an arm of seven joints, a head that pans and
tilts and carries the camera, and a gripper; its base stands still.

Kinematics, inertia, limits, friction, gains, force limits and the first pose: the paper, its released code and model,
whose meshes ``:menagerie`` takes from MANIKIN_DATA. Primitives: ``google_robot``. SIMPLER fitted the gains to the
real robot's motion; they are strongly overdamped: a joint follows its target with a lag kd / kp of 0.6 to 0.8 s, which
is what was fitted. The original limits the force of a servo and its damping together, here ``effort``, which
``ee_delta_pose_planned`` keeps. A servo alone may use more: what its damping takes at 1.5 rad/s. "rest" is where
episodes begin; the base stands in the world of the tasks, faces -x, and is 0.079 m above the floor.
"""

from __future__ import annotations

from manikin.robots.google_robot import LINKS as PRIMITIVES
from manikin.robots.google_robot import SHELL
from manikin.spec.camera import CameraSpec
from manikin.spec.links import Geom, Joint, Link, Vec3, box, capsule, pad
from manikin.spec.robot import ArmSpec, Gains, MenagerieModel, MotionLimits

__all__ = ["ARM", "CAMERA", "COLOURS"]

WHITE, GREY = (0.9, 0.9, 0.9, 1), (0.35, 0.35, 0.38, 1)
COLOURS = {
    "default": ((222, 222, 222), (238, 219, 128)),
    "tabletop_1": ((235, 209, 184), (221, 161, 91)),
    "tabletop_2": ((238, 222, 200), (242, 205, 126)),
    "cabinet_1": ((201, 169, 139), (221, 161, 91)),
}
"""The four colours of SIMPLER's visual matching: RGB of the arm and of the finger pads, measured on its textures."""

_GEOMS = {link.name: link.geoms for link in PRIMITIVES}
_BASE = _GEOMS["base_link"]  # its fourth and fifth are the head


def turning(name: str, low: float, high: float, axis: Vec3) -> Joint:
    return Joint(name=f"joint_{name}", axis=axis, range=(low, high))


def link(
    name: str,
    parent: str,
    pos: Vec3,
    joint: tuple[float, float, Vec3],
    mass: float,
    com: Vec3,
    inertia: tuple[float, ...],
    geoms: tuple[Geom, ...] | None = None,
) -> Link:
    low, high, axis = joint
    return Link(
        name=f"link_{name}",
        parent=f"link_{parent}",
        pos=pos,
        joint=turning(name, low, high, axis),
        mass=mass,
        com=com,
        inertia=inertia,
        geoms=_GEOMS[f"link_{name}"] if geoms is None else geoms,
    )


X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)
_S, _C = -0.5438347894, 0.8391950234  # of half of -1.15 rad, how far a finger leans open at 0


def finger(side: str) -> tuple[Link, ...]:
    left = side == "left"
    return (
        Link(
            name=f"link_finger_{side}",
            parent="link_gripper",
            pos=(0, 0.025 if left else -0.025, 0.05861),
            quat=(_C, _S, 0, 0) if left else (0, 0, _S, _C),
            joint=turning(f"finger_{side}", -0.0001, 1.3, X),
            mass=0.033324,
            com=(0, 0.000351, 0.03718),
            inertia=(9.321e-06, 6.08487e-06, 3.2363e-06, 0, 0, 1.57827e-06),
            geoms=(box((0.022, 0.014, 0.025), (0, 0, 0.044), WHITE),),
        ),
        Link(
            name=f"link_finger_tip_{side}",
            parent=f"link_finger_{side}",
            pos=(0, -0.01035673, 0.06415561),
            quat=(0.9747941, 0.2231064, 0, 0),
            mass=0.016186,
            com=(0, 0.000413, 0.021561),
            inertia=(1.066e-05, 1.147e-05, 1.78e-06),
            geoms=(
                pad((0.018, 0.0028, 0.021), (0, -0.0035, 0.021), (0.933, 0.859, 0.502, 1)),
                box((0.017, 0.005, 0.014), (0, 0.004, 0.016), GREY),
            ),
        ),
    )


LINKS = (
    Link(
        name="link_base",
        parent=None,
        mass=52.910105,
        com=(-0.142543, 0.002333, 0.130111),
        inertia=(2.78321, 3.24941, 1.33602, 0.00102014, -0.544719, 0.00751942),
        geoms=(*_BASE[:3], *_BASE[5:]),
    ),
    link(
        *("torso", "base", (0, 0, 0.5945), (-4.49, 1.35, Z), 1.895748, (-0.003494, -0.060715, 0.111756)),
        (0.0133075, 0.00670473, 0.0114604, 0.000189697, 2.6197e-05, 0.00017465),
    ),
    link(
        *("shoulder", "torso", (0, -0.16728852885, 0.113), (-2.66, 3.18, Y), 1.847194, (0.001081, 0.004809, 0.104944)),
        (0.0139748, 0.0142492, 0.00294679, -4.34243e-05, -1.63555e-05, 0.00044624),
    ),
    link(
        *("bicep", "shoulder", (0, 0.002289, 0.21502852885), (-2.13, 3.71, Z)),
        *(1.24742, (0.000409, -0.021144, 0.135243)),
        (0.0070468, 0.00688742, 0.00185446, 0, 3.84598e-05, 0.000928919),
    ),
    link(
        *("elbow", "bicep", (0, -0.064, 0.1849715), (-2.05, 3.79, Y), 0.646385, (0.00173, -0.076565, 0.036706)),
        (0.00178669, 0.00118492, 0.0013175, 0, 1.63949e-05, 0.000457025),
    ),
    link(
        *("forearm", "elbow", (0, -0.101, 0.0915), (-2.92, 2.92, Z), 0.724367, (1.3e-05, 0.015088, 0.181814)),
        (0.00721054, 0.00715753, 0.000591583, 0, 1.31045e-06, -0.000511257),
    ),
    link(
        *("wrist", "forearm", (0, -0.00604, 0.2735), (-1.79, 1.79, Y), 0.501929, (-0.000297, -0.007327, 0.053662)),
        (0.00114263, 0.00107002, 0.000427136, -2.30402e-06, -6.14793e-06, -0.000260093),
    ),
    link(
        *("gripper", "wrist", (0, 0.0060384, 0.10911), (-4.49, 1.35, Z), 0.40507, (0.000423, 0.000118, 0.037901)),
        (0.00029237, 0.00026364, 0.00031135, 3.59e-06, 2.66e-06, 6.6e-07),
        (capsule((0, 0, 0.035), (0, 0, 0.04), 0.036, WHITE), box((0.03, 0.038, 0.016), (0, 0, 0.058), GREY)),
    ),
    *finger("right"),
    *finger("left"),
    link(
        *("head_pan", "base", (0, 0, 1.16902), (-3.79, 2.22, Z), 0.963358, (0.016401, -0.000574, 0.086878)),
        (0.00199658, 0.00282709, 0.00240811, -0.00022593, 0.00053396, -0.00012776),
        (capsule((0.01, 0, 0.03), (0.05, 0, 0.1), 0.045, SHELL),),
    ),
    link(
        *("head_tilt", "head_pan", (0.07181, 0, 0.11848), (-1.17, 1.17, Y), 0.879241, (0.072845, -0.003004, 0.001328)),
        (0.00336483, 0.00155399, 0.0041008, -6.95998e-05, -3.20907e-06, -6.72869e-06),
        (capsule((0.045, -0.07, 0), (0.045, 0.07, 0), 0.04, SHELL),),
    ),
)

CAMERA = CameraSpec(
    name="overhead_camera",
    on="link_head_tilt",
    pos=(0.10488, 0, 0),
    quat=(0.5, -0.5, 0.5, -0.5),
    intrinsics=(425.0, 425.0, 320.0, 256.0),
    width=640,
    height=512,
)
"""640 x 512 pixels; the original's lens centre (320, 256) counts pixel corners, this one pixel centres."""

_ARM = tuple(f"joint_{name}" for name in ("torso", "shoulder", "bicep", "elbow", "forearm", "wrist", "gripper"))
_NECK = ("joint_head_pan", "joint_head_tilt")
_KP = (1700.0, 1737.0471680861954, 979.975871856535, 930.0, 1212.154500274304, 432.96500923932535, 468.0013365498738)
_KD = (
    *(1059.9791902443303, 1010.4720585373592, 767.2803161582076, 680.0),
    *(674.9946964336588, 274.613381336198, 340.532560578637),
)
_LIMIT = (300, 300, 100, 100, 100, 100, 100, 100, 100)
_FAST = 1.5  # [rad/s]

ARM = ArmSpec(
    name="google_robot_rt1",
    title="Google Robot, SIMPLER",
    links=LINKS,
    menagerie=MenagerieModel(
        collection="data",
        folder="simpler/descriptions/googlerobot_description",
        file="google_robot_mujoco.urdf",
    ),
    joints=_ARM + _NECK,
    groups={"arm": _ARM, "head": _NECK},
    ik_groups=("arm",),
    gains=Gains(
        kp=(*_KP, 2000, 2000),
        kd=(*_KD, 900, 900),
        force=tuple(limit + _FAST * kd for limit, kd in zip(_LIMIT, (*_KD, 900, 900), strict=True)),
        source="SIMPLER (arXiv 2405.05941), fitted to RT-1's recordings",
    ),
    effort=_LIMIT,
    motion=MotionLimits(velocity=(1.5,), acceleration=(2.0,), jerk=(50.0,), source="SIMPLER (arXiv 2405.05941)"),
    gripper="google_gripper_rt1",
    keyframes={
        "rest": (
            *(-0.2639457174606611, 0.0831913360274175, 0.5017611504652179, 1.156859026208673),
            *(0.028583671314766423, 1.592598203487462, -1.080652960128774, -0.00285961, 0.7851361),
        ),
    },
    base_pos=(0.35, 0.20, 0.07905),
    base_quat=(0, 0, 0, 1),
    controllers=(*ArmSpec.controllers, "ee_delta_pose_planned"),
    excludes=(("link_base", "link_torso"), ("link_base", "link_shoulder"), ("link_base", "link_head_pan")),
    cameras=(CAMERA,),
    source="SIMPLER (arXiv 2405.05941)",
)
