"""TriFinger Pro: three fingers of three joints that hang from one holder over a table.

Kinematics, inertia and limits: ManiSkill3 3.0.1's trifingerpro, from the makers' robot_properties_fingers
(BSD-3-Clause). That file gives the tips two masses: 31 g with the inertia of a cube of 1 cm, and 9.2 g with the tip's
own inertia. This has the latter. Gains: ManiSkill3's, so that its tasks meet the same fingers; the real motors give
0.396 N m (the makers' trifinger_simulation), which is the limit of the controllers that command torques. Armature
stands for motor and gears. Its weight is not compensated. The rest pose is chosen: tips 8 cm above the table.
"""

from __future__ import annotations

from math import cos, pi, sin

from manikin.spec.control import JOINT_CONTROLLERS
from manikin.spec.links import Joint, Link, Vec3, capsule, cylinder
from manikin.spec.robot import Gains, JointGroup, RobotSpec, Tool

SHELL, TIP, BLACK = (0.804, 0.764, 0.761, 1), (0.33, 0.36, 0.37, 1), (0.17, 0.17, 0.17, 1)
FINGERS = (0, 120, 240)  # [deg] how far each is turned, clockwise as seen from above
X, Y = (1, 0, 0), (0, 1, 0)


def J(name: str, axis: Vec3, low: float, high: float) -> Joint:
    return Joint(name=name, axis=axis, range=(low, high), armature=5e-3)


def finger(n: int) -> tuple[Link, ...]:
    half = -n * pi / 360
    return (
        Link(
            name=f"finger_upper_link_{n}",
            parent="upper_holder_link",
            quat=(cos(half), 0, 0, sin(half)),
            joint=J(f"finger_base_to_upper_joint_{n}", Y, -0.33, 1.0),
            mass=0.26689,
            com=(0.006, 0.122, 0.0),
            inertia=(0.00102362, 0.0000645, 0.00102225, 0.00000889, -0.00000019, 0.00000106),
            geoms=(
                cylinder((0, 0.03, 0), (0, 0.24, 0), 0.0215, SHELL),
                cylinder((0.0157, 0.1643, 0), (0.0315, 0.1643, 0), 0.022, BLACK, collide=False),
                cylinder((-0.006, 0.05, 0), (0.016, 0.05, 0), 0.0235, SHELL, collide=False),
                cylinder((-0.0095, 0.05, 0), (-0.006, 0.05, 0), 0.014, BLACK, collide=False),
            ),
        ),
        Link(
            name=f"finger_middle_link_{n}",
            parent=f"finger_upper_link_{n}",
            pos=(0.01685, 0.0505, 0),
            joint=J(f"finger_upper_to_middle_joint_{n}", X, 0.0, 1.57),
            mass=0.27163,
            com=(0.03935008, -0.00012438, -0.08666705),
            inertia=(0.0009406, 0.00094824, 0.00007573, -0.00000046, -0.00003479, 0.00000164),
            geoms=(
                cylinder((0.003, 0, 0), (0.034, 0, 0), 0.0215, SHELL),
                capsule((0.034, 0, -0.012), (0.036, 0, -0.15), 0.016, SHELL),
                cylinder((0.022, 0, -0.16), (0.05, 0, -0.16), 0.0225, SHELL),
                cylinder((0.0488, 0, -0.0462), (0.0648, 0, -0.0462), 0.022, BLACK, collide=False),
            ),
        ),
        Link(
            name=f"finger_lower_link_{n}",
            parent=f"finger_middle_link_{n}",
            pos=(0.05015, 0, -0.16),
            joint=J(f"finger_middle_to_lower_joint_{n}", X, -2.7, 0.0),
            mass=0.05569,
            com=(0.016327, -0.00001095, -0.04284052),
            inertia=(0.00013626, 0.00013372, 0.00000667, 0.0, -0.00000662, 0.00000004),
            geoms=(
                cylinder((0.001, 0, 0), (0.0265, 0, 0), 0.0215, SHELL),
                capsule((0.015, 0, -0.01), (0.0175, 0, -0.075), 0.012, SHELL),
                capsule((0.0175, 0, -0.075), (0.019, 0, -0.132), 0.0085, SHELL),
            ),
        ),
        Link(
            name=f"finger_tip_link_{n}",
            parent=f"finger_lower_link_{n}",
            pos=(0.019, 0, -0.16),
            mass=0.0092,
            com=(-0.00001194, 0.0, 0.0156006),
            inertia=(0.00000155, 0.00000155, 0.00000032),
            geoms=(
                capsule((0, 0, 0), (0, 0, 0.012), 0.0098, TIP, pad=True),
                cylinder((0, 0, 0.012), (0, 0, 0.0215), 0.0085, TIP, collide=False),
            ),
        ),
    )


HOLDER = (
    Link(name="base_link", parent=None),
    Link(
        name="upper_holder_link",
        parent="base_link",
        pos=(0, 0, 0.29),
        geoms=(cylinder((0, 0, -0.018), (0, 0, 0.018), 0.027, BLACK),),
    ),
)

ROBOT = RobotSpec(
    name="trifinger",
    title="TriFinger Pro",
    links=(*HOLDER, *(link for n in FINGERS for link in finger(n))),
    groups={
        "fingers": JointGroup(
            joints=tuple(joint.name for n in FINGERS for link in finger(n) for joint in link.joints),
            gains=Gains(kp=(100,) * 9, kd=(10,) * 9, force=(20,) * 9, source="ManiSkill3 3.0.1 trifingerpro"),
            effort=(0.396,) * 9,
            speed=2.0,
        )
    },
    tools={
        "middle": Tool(body="base_link", pos=(0, 0, 0.0325)),  # of a cube of 65 mm on the table
        **{f"tip_{n}": Tool(body=f"finger_tip_link_{n}", quat=(0, 1, 0, 0)) for n in FINGERS},
    },
    touch=tuple(f"finger_{part}_link_{n}" for n in FINGERS for part in ("lower", "tip")),
    keyframes={"rest": (0.0, 0.9, -1.7) * 3},
    gravcomp=False,
    controllers=JOINT_CONTROLLERS,
    source="ManiSkill3 3.0.1 trifingerpro, from robot_properties_fingers",
)
