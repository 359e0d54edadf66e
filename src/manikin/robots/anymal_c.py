"""ANYbotics ANYmal C, a quadruped whose knees point inwards: four legs of three joints.

Kinematics, inertia, limits and torque: ANYbotics' description (BSD-3-Clause), as genesis-world 1.4.5 and
example-robot-data 6.0.0 have it; what is fixed to a link there is part of it here, the feet excepted. Limits and
torque: the latter's. Keyframe `rest`, gains, the feet's friction of 2 and the action's scale: ManiSkill3. ManiSkill
puts the base at 0.545 m and leaves only it under gravity; here all of the robot weighs, and it sinks where it stands.
"""

from __future__ import annotations

from manikin.spec.control import JOINT_CONTROLLERS
from manikin.spec.links import Geom as Shape
from manikin.spec.links import Joint, Link, Vec3, box, capsule, cylinder
from manikin.spec.robot import Base, Gains, ImuSpec, JointGroup, RobotSpec

RED, GREY, DARK = (0.55, 0.07, 0.06, 1), (0.36, 0.37, 0.39, 1), (0.09, 0.09, 0.1, 1)
X, Y = (1, 0, 0), (0, 1, 0)
H = 0.5**0.5
TURNS = 9.42477796077  # [rad] one and a half

BASE = Link(
    name="base",
    parent=None,
    mass=26.3732,
    com=(-0.0177939, -0.00017817, 0.00850434),
    inertia=(0.216712, 1.78516, 1.8337, 0.00922381, 0.0589332, -0.000163778),
    geoms=(
        cylinder((-0.375, 0, 0), (0.375, 0, 0), 0.1, GREY, visible=False),
        box((0.3, 0.155, 0.045), (0, 0, 0.055), RED, collide=False),
        box((0.4, 0.15, 0.05), (0, 0, -0.05), DARK, collide=False),
        box((0.25, 0.1, 0.02), (0, 0, 0.1), GREY, collide=False),
        box((0.055, 0.13, 0.07), (0.45, 0, -0.02), DARK, collide=False),
        box((0.035, 0.09, 0.05), (0.49, 0, -0.02), GREY, collide=False),
        box((0.055, 0.13, 0.07), (-0.45, 0, -0.02), DARK, collide=False),
        box((0.035, 0.09, 0.05), (-0.49, 0, -0.02), GREY, collide=False),
        *(
            capsule((0.33, 0.055 * s, 0.1), (0.37, 0.055 * s, 0.165), 0.008, DARK, collide=False) for s in (1, -1)
        ),  # handle
        capsule((0.37, -0.055, 0.165), (0.37, 0.055, 0.165), 0.008, DARK, collide=False),
        cylinder((-0.364, 0, 0.08), (-0.364, 0, 0.18), 0.05, DARK, collide=False),  # lidar and its cage
        box((0.045, 0.06, 0.006), (-0.364, 0, 0.24), GREY, collide=False),
        *(capsule((-0.364, 0.06 * s, 0.1), (-0.364, 0.055 * s, 0.24), 0.008, GREY, collide=False) for s in (1, -1)),
        cylinder((-0.17, 0, 0.12), (-0.17, 0, 0.28), 0.004, DARK, collide=False),  # antenna
    ),
)


def leg(name: str, x: int, y: int) -> tuple[Link, ...]:
    """A leg in front (``x`` = 1) or behind (-1), on the left (``y`` = 1) or on the right (-1).

    The drives of knee and hip are not symmetric: those in front on the left and behind on the right sit alike, and so
    do the other two."""
    alike = x * y > 0

    def link(
        part: str, parent: str, pos: Vec3, axis: Vec3 | None, limit: tuple[float, float], mass: float, com: Vec3,
        inertia: tuple[float, ...], *geoms: Shape,
    ) -> Link:  # fmt: skip
        xx, yy, zz, xy, xz, yz = inertia
        joint = {"HIP": "HAA", "THIGH": "HFE", "SHANK": "KFE"}.get(part)
        return Link(
            name=f"{name}_{part}",
            parent=parent,
            pos=(pos[0] * x, pos[1] * y, pos[2]),
            joint=None if axis is None else Joint(name=f"{name}_{joint}", axis=axis, range=limit, armature=0.01),
            mass=mass,
            com=(com[0] * x, com[1] * y, com[2]),
            inertia=(xx, yy, zz, xy * x * y, xz * x, yz * y),
            geoms=geoms,
        )

    return (
        link(
            "HIP",
            "base",
            (0.2999, 0.104, 0),
            X,
            (-0.72, 0.49) if y > 0 else (-0.49, 0.72),
            2.781,
            (0.0566606 if alike else 0.0567633, 0.0173939, -0.000460841),
            (0.00329553, 0.0049383, 0.00583295, -4.45346e-05, -9.79127e-05, 0.000135809)
            if alike
            else (0.00329553, 0.00494012, 0.00583477, 4.50297e-05, 0.000100004, 0.000135809),
            capsule((-0.02 * x, 0, 0), (0.05 * x, 0.01 * y, 0), 0.058, GREY, collide=False),
            cylinder((0.06 * x, -0.03 * y, 0), (0.06 * x, 0.05 * y, 0), 0.064, DARK, collide=False),
        ),
        link(
            "THIGH",
            f"{name}_HIP",
            (0.0599, 0.08381, 0),
            Y,
            (-TURNS, TURNS),
            3.071,
            (-4.64995e-05 if alike else 4.64995e-05, 0.0308147, -0.245696),
            (
                0.029904,
                0.0295638,
                0.00486108,
                -4.42919e-05 if alike else 4.43959e-05,
                -9.448e-05 if alike else 0.000114794,
                0.00414243,
            ),
            cylinder((0, -0.03 * y, 0), (0, 0.06 * y, 0), 0.062, GREY, collide=False),
            capsule((0, 0.015 * y, -0.05), (0, 0.02 * y, -0.26), 0.045, GREY, collide=False),
            cylinder((0, -0.01 * y, -0.285), (0, 0.07 * y, -0.285), 0.06, DARK),
        ),
        link(
            "SHANK",
            f"{name}_THIGH",
            (0, 0.1003, -0.285),
            Y,
            (-TURNS, TURNS),
            0.33842,
            (0.0345277, 0.00685967, 0.000977104),
            (0.000328528, 0.00111194, 0.000896128, 2.11881e-05, 1.33604e-05, 6.92875e-08),
            cylinder((0, -0.012 * y, 0), (0, 0.03 * y, 0), 0.055, GREY, collide=False),
            capsule((0, 0.008 * y, 0), (0.09 * x, 0.012 * y, -0.005), 0.035, GREY, collide=False),
            capsule((0.1 * x, 0.01 * y, -0.12), (0.1 * x, 0.01 * y, -0.28), 0.0175, DARK, visible=False),
        ),
        link(
            "FOOT",
            f"{name}_SHANK",
            (0.08795, 0.01305, -0.33797),
            None,
            (0, 0),
            0.25,
            (0.00948, -0.00948, 0.1468),
            (0.00317174, 0.00317174, 8.3192e-05, 2.63048e-06, 6.81558e-05, 6.81558e-05),
            Shape(type="sphere", size=(0.03,), pos=(0, 0, 0.0225), rgba=DARK),
            cylinder((0.002 * x, 0, 0.03), (0.014 * x, -0.014 * y, 0.34), 0.017, DARK, collide=False),
        ),
    )


LEGS = (*leg("LF", 1, 1), *leg("RF", 1, -1), *leg("LH", -1, 1), *leg("RH", -1, -1))
JOINTS = tuple(joint.name for link in LEGS for joint in link.joints)

ROBOT = RobotSpec(
    name="anymal_c",
    title="ANYbotics ANYmal C",
    links=(BASE, *LEGS),
    base=Base(kind="free"),
    groups={
        "legs": JointGroup(
            joints=JOINTS,
            gains=Gains(kp=(80,) * 12, kd=(2,) * 12, force=(80,) * 12, source="ManiSkill3; torque: ANYbotics"),
            delta=(0.225,) * 12,
            speed=2.0,
        )
    },
    feet=("LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT"),
    foot_friction=2.0,
    keyframes={"rest": (0.03, 0.4, -0.8, -0.03, 0.4, -0.8, 0.03, -0.4, 0.8, -0.03, -0.4, 0.8)},
    base_pos=(0, 0, 0.541),
    gravcomp=False,
    controllers=JOINT_CONTROLLERS,
    sensors=(ImuSpec(name="imu", body="base", pos=(0.2488, 0.00835, 0.04628), quat=(H, 0, 0, H)),),
    source="ANYbotics' description, from genesis-world 1.4.5",
)
