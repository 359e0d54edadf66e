"""Wonik Allegro Hand, right (``allegro``) and left: four fingers of four joints; also on an arm (``panda+allegro``).

Kinematics and limits: mujoco_menagerie wonik_allegro (BSD-2-Clause), from Wonik's description; mass and inertia are
those that MuJoCo gives its meshes at Menagerie's 800 kg/m^3. Gains and the friction of the tips: ManiSkill3's
allegro_hand, so that its tasks meet the same hand. Its servos give up to 50 N m; the real motors give 0.7 N m, which is
the limit of the controllers that command torques. It feels touch where ManiSkill3's allegro_hand_right_touch has its
sixteen sensors: palm, roots of the fingers, phalanges and tips. Armature stands for motor and gears. Its weight is not
compensated.
"""

from __future__ import annotations

from manikin.spec.control import JOINT_CONTROLLERS
from manikin.spec.links import Geom, Joint, Link, Quat, Vec3, box, capsule
from manikin.spec.robot import Gains, JointGroup, MenagerieModel, RobotSpec, Tool

BLACK, WHITE = (0.16, 0.16, 0.17, 1), (0.9, 0.9, 0.9, 1)
Y, Z = (0, 1, 0), (0, 0, 1)
# mass [kg], centre of mass [m] and inertia [kg m^2] of a finger's base, proximal, medial and distal link
BASE = (
    0.00723202,
    (-0.000778127, -1.02867e-05, 0.00828249),
    (7.47719e-07, 3.55048e-07, 7.06498e-07, 7.76847e-11, 3.2243e-08, -8.75654e-10),
)
PROXIMAL = (
    0.0272761,
    (2.75233e-08, -9.05955e-05, 0.0269998),
    (1.18624e-05, 1.12768e-05, 2.26587e-06, 6.66353e-12, 5.55098e-12, -5.51885e-11),
)
MEDIAL = (
    0.0184637,
    (-0.000192882, -7.79042e-05, 0.022586),
    (4.2853e-06, 3.63564e-06, 1.6757e-06, 1.84756e-10, -7.2747e-08, -1.14096e-09),
)
DISTAL = (
    0.00751231,
    (-0.000520806, -3.32499e-06, 0.00725129),
    (7.82431e-07, 3.77752e-07, 7.42114e-07, 8.69785e-11, -2.75121e-08, -6.4747e-12),
)
TIP = (4.55823e-07, 4.55814e-07, 4.49559e-07, 0, 0, -6.10007e-13)


def J(name: str, axis: Vec3, low: float, high: float) -> Joint:
    return Joint(name=name, axis=axis, range=(low, high), damping=0.1, armature=1e-3)


def link(
    name: str,
    parent: str | None,
    pos: Vec3,
    joint: Joint | None,
    figures: tuple[float, Vec3, tuple[float, ...]],
    *geoms: Geom,
    quat: Quat = (1, 0, 0, 0),
) -> Link:
    mass, com, inertia = figures
    return Link(
        name=name, parent=parent, pos=pos, quat=quat, joint=joint, mass=mass, com=com, inertia=inertia, geoms=geoms
    )


def tip(parent: str, name: str, middle: float, mass_at: float) -> Link:
    """The rubber end of a finger, which is fixed to its last link."""
    shape = capsule((0, 0, middle - 0.008), (0, 0, middle + 0.008), 0.012, WHITE, pad=True)
    return link(name, parent, (0, 0, 0), None, (0.00684452, (0, 0, mass_at), TIP), shape)


def finger(f: str, pos: Vec3, quat: Quat = (1, 0, 0, 0)) -> tuple[Link, ...]:
    return (
        link(
            f"{f}_base",
            "palm",
            pos,
            J(f"{f}j0", Z, -0.47, 0.47),
            BASE,
            box((0.0098, 0.0137, 0.008), (0, 0, 0.008), BLACK),
            quat=quat,
        ),
        link(
            f"{f}_proximal",
            f"{f}_base",
            (0, 0, 0.0164),
            J(f"{f}j1", Y, -0.196, 1.61),
            PROXIMAL,
            box((0.0098, 0.0137, 0.025), (0, 0, 0.027), BLACK),
        ),
        link(
            f"{f}_medial",
            f"{f}_proximal",
            (0, 0, 0.054),
            J(f"{f}j2", Y, -0.174, 1.709),
            MEDIAL,
            box((0.0098, 0.0137, 0.0175), (0, 0, 0.0192), BLACK),
        ),
        link(
            f"{f}_distal",
            f"{f}_medial",
            (0, 0, 0.0384),
            J(f"{f}j3", Y, -0.227, 1.618),
            DISTAL,
            box((0.0098, 0.0137, 0.008), (0, 0, 0.008), BLACK),
        ),
        tip(f"{f}_distal", f"{f}_tip", 0.019, 0.0254028),
    )


def palm(side: int) -> Link:
    """Of the right hand, ``side`` 1, or the left, -1, whose casing is not quite the mirror image."""
    right = (
        0.351356,
        (-0.00898561, -0.0039571, -0.0402693),
        (0.00044768, 0.000261129, 0.000283104, 2.31571e-08, -1.6115e-06, -2.63699e-05),
    )
    left = (
        0.351587,
        (-0.0089816, 0.00395365, -0.0402573),
        (0.00044811, 0.000261325, 0.000283412, -2.59376e-08, -1.651e-06, 2.64107e-05),
    )
    shape = box((0.0204, 0.0565, 0.0475), (-0.0093, 0, -0.0475), BLACK)
    return link("palm", None, (0, 0, 0.095), None, right if side > 0 else left, shape)  # mounted by its lower end


def thumb(side: int) -> tuple[Link, ...]:
    right = (
        0.0382581,
        (-0.0179151, 0.00802441, 0.0123141),
        (9.16571e-06, 1.06448e-05, 7.21734e-06, -1.80833e-08, 6.86331e-09, 6.18545e-07),
    )
    left = (
        0.0400879,
        (-0.0179178, -0.00772637, 0.0118711),
        (9.44789e-06, 1.09056e-05, 7.36901e-06, 1.86258e-08, 4.74343e-09, -4.96532e-07),
    )
    return (
        link(
            "th_base",
            "palm",
            (-0.0182, 0.019333 * side, -0.045987),
            J("thj0", (-side, 0, 0), 0.263, 1.396),
            right if side > 0 else left,
            box((0.0179, 0.017, 0.0227), (-0.0179, 0.009 * side, 0.0145), BLACK),
            quat=(0.477714, -0.521334 * side, -0.521334, -0.477714 * side),
        ),
        link(
            "th_proximal",
            "th_base",
            (-0.027, 0.005 * side, 0.0399),
            J("thj1", (0, 0, side), -0.105, 1.163),
            (
                0.00721931,
                (-0.000782027, -1.02494e-05, 0.00810455),
                (7.45976e-07, 3.53934e-07, 7.0517e-07, 7.51416e-11, 3.22654e-08, -8.74758e-10),
            ),
            box((0.0098, 0.0137, 0.008), (0, 0, 0.008), BLACK),
        ),
        link(
            "th_medial",
            "th_proximal",
            (0, 0, 0.0177),
            J("thj2", Y, -0.189, 1.644),
            (
                0.0224965,
                (-0.000164336, 1.71482e-05, 0.0211119),
                (7.52591e-06, 6.58333e-06, 2.1428e-06, 2.08205e-10, 9.65536e-08, 2.82436e-10),
            ),
            box((0.0098, 0.0137, 0.024), (0, 0, 0.0257), BLACK),
        ),
        link(
            "th_distal",
            "th_medial",
            (0, 0, 0.0514),
            J("thj3", Y, -0.162, 1.719),
            (0.0163345, (0, 3.67706e-06, 0.013075), (2.91378e-06, 2.59018e-06, 1.35654e-06, 0, 0, 4.80008e-09)),
            box((0.0098, 0.0137, 0.0145), (0, 0, 0.0157), BLACK),
        ),
        tip("th_distal", "th_tip", 0.035, 0.0410028),
    )


def hand(name: str, title: str, side: int) -> RobotSpec:
    fingers = (
        *finger("ff", (0, 0.0435 * side, -0.001542), (0.999048, -0.0436194 * side, 0, 0)),
        *finger("mf", (0, 0, 0.0007)),
        *finger("rf", (0, -0.0435 * side, -0.001542), (0.999048, 0.0436194 * side, 0, 0)),
        *thumb(side),
    )
    before = Tool(body="palm", pos=(0.06, 0, 0.03), quat=(0.5**0.5, 0, 0.5**0.5, 0))
    tips = {f: Tool(body=f"{f}_tip", pos=(0, 0, 0.043 if f == "th" else 0.027)) for f in ("ff", "mf", "rf", "th")}
    return RobotSpec(
        name=name,
        title=title,
        links=(palm(side), *fingers),
        menagerie=MenagerieModel(folder="wonik_allegro", file=f"{'right' if side > 0 else 'left'}_hand.xml"),
        groups={
            "fingers": JointGroup(
                joints=tuple(joint.name for one in fingers for joint in one.joints),
                gains=Gains(kp=(400,) * 16, kd=(10,) * 16, force=(50,) * 16, source="ManiSkill3 3.0.1 allegro_hand"),
                effort=(0.7,) * 16,
                speed=2.0,
            )
        },
        tools={"palm": before, **tips},
        touch=(
            *("palm", "ff_base", "mf_base", "rf_base"),
            *(f"{f}_{part}" for f in ("ff", "mf", "rf") for part in ("proximal", "medial", "tip")),
            *("th_medial", "th_distal", "th_tip"),
        ),
        keyframes={
            "rest": (0, 0.2, 0.2, 0.2) * 3 + (0.8, 0.2, 0.2, 0.2),
            "fist": (0, 1.3, 1.3, 0.8) * 3 + (1.2, 0.4, 0.3, 0.3),
        },
        gravcomp=False,
        controllers=JOINT_CONTROLLERS,
        excludes=(
            *(("palm", one) for one in ("ff_base", "mf_base", "rf_base", "th_base", "th_proximal")),
            ("ff_base", "mf_base"),
            ("mf_base", "rf_base"),
        ),
        source="mujoco_menagerie wonik_allegro",
    )


ROBOTS = {
    "allegro": hand("allegro", "Wonik Allegro Hand", 1),
    "allegro_left": hand("allegro_left", "Wonik Allegro Hand, left", -1),
}
