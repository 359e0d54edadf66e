"""Rethink Robotics Sawyer, seven joints, with Rethink's electric gripper.

Kinematics, inertia and limits: mujoco_menagerie rethink_robotics_sawyer (Apache-2.0), from Rethink's description; the
head stands still, as there. Forces are the file's and robosuite's (80, 80, 40, 40, 9, 9, 9 N m). kd lets a joint reach
1 rad/s at that force; kp = 10 kd makes it follow with a time constant of 0.1 s (wrist: 15 kd). Menagerie's armature of
1 kg m^2 and joint friction steady its own gains; here armature is the UR5e's 0.1. Rest pose and base placement are
chosen: TCP above the origin, pointing down.
"""

from __future__ import annotations

from manikin.spec.links import Joint, Link, box, capsule, cylinder
from manikin.spec.robot import ArmSpec, Gains, MenagerieModel

RED, BLACK, WHITE = (0.5, 0.1, 0.1, 1), (0.12, 0.12, 0.12, 1), (0.9, 0.9, 0.92, 1)
H = 0.5**0.5


def J(
    name: str, range: tuple[float, float], axis: tuple[float, float, float] = (0, 0, 1), armature: float = 0.1
) -> Joint:
    return Joint(name=name, range=range, axis=axis, armature=armature)


LINKS = (
    Link(
        name="base",
        parent=None,
        mass=2.0687,
        com=(-0.0006241, -2.8025e-05, 0.065404),
        com_quat=(-0.209285, 0.674441, 0.227335, 0.670558),
        inertia=(0.00740351, 0.00681776, 0.00672942),
        geoms=(
            cylinder((0, 0, 0), (0, 0, 0.025), 0.115, RED),
            cylinder((0, 0, 0.025), (0, 0, 0.08), 0.08, RED),
        ),
    ),
    Link(
        name="right_l0",
        parent="base",
        pos=(0, 0, 0.08),
        joint=J("right_j0", (-3.0503, 3.0503)),
        mass=5.3213,
        com=(0.0243645, 0.0109688, 0.143631),
        com_quat=(0.894821, 0.0089945, -0.17028, 0.412576),
        inertia=(0.0651599, 0.0510954, 0.0186221),
        geoms=(
            cylinder((-0.008, -0.001, -0.007), (0.06, -0.015, 0.257), 0.071, RED),
            cylinder((-0.05, 0.003, 0.24), (0.137, 0.003, 0.24), 0.053, RED),
        ),
    ),
    Link(
        name="head",
        parent="right_l0",
        pos=(0, 0, 0.2965),
        mass=1.5795,
        com=(0.00532226, -2.65473e-05, 0.1021),
        com_quat=(0.999993, 7.08384e-05, -0.00359812, -0.000626267),
        inertia=(0.0118334, 0.00827097, 0.00496582),
        geoms=(
            capsule((-0.005, 0, 0.03), (-0.005, 0, 0.19), 0.035, BLACK),
            box((0.012, 0.132, 0.088), (0.032, 0, 0.1), BLACK),
            box((0.002, 0.122, 0.078), (0.044, 0, 0.1), WHITE, collide=False),
        ),
    ),
    Link(
        name="right_l1",
        parent="right_l0",
        pos=(0.081, 0.05, 0.237),
        quat=(0.5, -0.5, 0.5, 0.5),
        joint=J("right_j1", (-3.8095, 2.2736)),
        mass=4.505,
        com=(-0.0030849, -0.026811, 0.092521),
        com_quat=(0.424888, 0.891987, 0.132364, -0.0794294),
        inertia=(0.0224339, 0.0221624, 0.00970971),
        geoms=(
            cylinder((0, -0.001, -0.001), (0, -0.001, 0.159), 0.069, RED),
            cylinder((0, -0.141, 0.141), (0, 0.031, 0.141), 0.055, RED),
        ),
    ),
    Link(
        name="right_l2",
        parent="right_l1",
        pos=(0, -0.14, 0.1425),
        quat=(H, H, 0, 0),
        joint=J("right_j2", (-3.0426, 3.0426)),
        mass=1.745,
        com=(-0.00016044, -0.014967, 0.13582),
        com_quat=(0.707831, -0.0524761, 0.0516006, 0.702537),
        inertia=(0.0257928, 0.025506, 0.00292516),
        geoms=(
            capsule((-0.001, 0.009, 0.164), (0.001, -0.012, 0.266), 0.045, RED),
            cylinder((0.001, 0.002, -0.001), (0.001, 0.002, 0.163), 0.050, RED),
        ),
    ),
    Link(
        name="right_l3",
        parent="right_l2",
        pos=(0, -0.042, 0.26),
        quat=(H, -H, 0, 0),
        joint=J("right_j3", (-3.0439, 3.0439)),
        mass=2.5097,
        com=(-0.0048135, -0.0281, -0.084154),
        com_quat=(0.902999, 0.385391, -0.0880901, 0.168247),
        inertia=(0.0102404, 0.0096997, 0.00369622),
        geoms=(
            capsule((0, 0.001, -0.117), (0, 0.001, -0.036), 0.053, RED),
            capsule((0, -0.097, -0.126), (0, 0.004, -0.126), 0.046, WHITE),
        ),
    ),
    Link(
        name="right_l4",
        parent="right_l3",
        pos=(0, -0.125, -0.1265),
        quat=(H, H, 0, 0),
        joint=J("right_j4", (-2.9761, 2.9761)),
        mass=1.1136,
        com=(-0.00188917, 0.00689948, 0.134095),
        com_quat=(0.803247, 0.031244, -0.0298409, 0.594077),
        inertia=(0.0136555, 0.0135498, 0.00127385),
        geoms=(cylinder((-0.005, 0.004, 0.003), (-0.005, 0.004, 0.307), 0.049, BLACK),),
    ),
    Link(
        name="right_l5",
        parent="right_l4",
        pos=(0, 0.031, 0.275),
        quat=(H, -H, 0, 0),
        joint=J("right_j5", (-2.9761, 2.9761)),
        mass=1.5625,
        com=(0.0061133, -0.023697, 0.076416),
        com_quat=(0.404076, 0.9135, 0.0473125, 0.00158335),
        inertia=(0.00474131, 0.00422857, 0.00190672),
        geoms=(
            cylinder((0.003, -0.07, 0.044), (0.003, 0.039, 0.044), 0.044, RED),
            capsule((0.002, -0.036, 0.103), (0.002, 0.002, 0.103), 0.050, RED),
        ),
    ),
    Link(
        name="right_l6",
        parent="right_l5",
        pos=(0, -0.11, 0.1053),
        quat=(0.06162481, 0.06163001, -0.704416114, 0.704416114),
        joint=J("right_j6", (-4.7124, 4.7124)),
        mass=0.3292,
        com=(-8.0726e-06, 0.0085838, -0.0049566),
        com_quat=(0.479044, 0.515636, -0.513069, 0.491321),
        inertia=(0.000360268, 0.000311078, 0.000214984),
        geoms=(
            cylinder((0.001, -0.004, -0.004), (0.001, 0.066, -0.004), 0.034, BLACK),
            cylinder((0, 0.001, -0.04), (0, 0.001, 0.022), 0.041, BLACK),
        ),
    ),
)

ARM = ArmSpec(
    name="sawyer",
    title="Rethink Sawyer",
    links=LINKS,
    menagerie=MenagerieModel(folder="rethink_robotics_sawyer", file="sawyer.xml"),
    joints=tuple(f"right_j{i}" for i in range(7)),
    gains=Gains(
        kp=(800, 800, 400, 400, 135, 135, 135),
        kd=(80, 80, 40, 40, 9, 9, 9),
        force=(80, 80, 40, 40, 9, 9, 9),
        source="derived, see above",
    ),
    flange_body="right_l6",
    flange_pos=(0, 0, 0.0245),
    flange_quat=(0, 0, 0, 1),
    gripper="rethink",
    keyframes={"rest": (-0.27873, -1.02175, 0.04643, 1.59353, -0.02879, 0.99967, 3.09258)},
    base_pos=(-0.65, 0, 0),
    excludes=(("base", "right_l0"), ("right_l0", "right_l1")),
    reach=1.26,
    payload=4.0,
    source="mujoco_menagerie rethink_robotics_sawyer",
)
