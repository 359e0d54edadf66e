"""D'Claw of ROBEL: three fingers of three joints on a disc, to turn a valve with; also on an arm (``panda+dclaw``).

Kinematics, inertia and limits: ManiSkill3 3.0.1's dclaw, from ROBEL (Apache-2.0). The limits of the first joints are as
they stand there: one way round for the first finger, the other way round for the others. Gains: ManiSkill3's, so that
its tasks meet the same hand; 20 N m is more than the real servos give. Armature stands for motor and gears. By itself
it hangs upside down, its disc 0.28 m above the table, as over the valve. Its weight is not compensated.
"""

from __future__ import annotations

from manikin.spec.control import JOINT_CONTROLLERS
from manikin.spec.links import Geom, Joint, Link, Quat, Vec3, box, capsule, cylinder
from manikin.spec.robot import Gains, JointGroup, RobotSpec, Tool

BLACK, DARK, GREY = (0.09, 0.09, 0.1, 1), (0.14, 0.14, 0.15, 1), (0.22, 0.22, 0.23, 1)
H = 0.5**0.5
Inertia = tuple[float, ...]

# of each finger: its joints' places [m] and axes in the link before, its links' centres of mass [m] and inertia
PLACES: dict[int, tuple[Vec3, ...]] = {
    1: (
        (0.013836, 0.026467, 0.054269),
        (0.0684978405, -0.0044705907, -0.0006948042),
        (0.0684925347, 0.0005425522, -0.0008534243),
    ),
    2: (
        (0.0138355527, 0.0333216419, -0.0509719116),
        (0.0684929531, 0.0035925256, -0.000174343),
        (0.0684929345, 0.0009824556, -5.20041e-05),
    ),
    3: (
        (0.0138355527, -0.0596332114, 0.0002243267),
        (0.0684964735, 0.0007459173, -0.0002094488),
        (0.068496, 0.00069546, 0.00025837),
    ),
}
TURNS: dict[int, Quat] = {  # of the first link, about x by 150, -150 and 90 degrees
    1: (0.2588154, 0.9659269, 0, 0),
    2: (0.258819, -0.9659258, 0, 0),
    3: (H, H, 0, 0),
}
AXES: dict[int, tuple[Vec3, ...]] = {
    1: (
        (0, -0.0015509, -1),
        (-0.0079403968, 0.999967272, -0.001550821),
        (0.0079403968, -0.999967272, 0.001550821),
    ),
    2: (
        (0, -0.0015508699, -0.9999987974),
        (-0.0143435819, 0.9998959231, -0.0015507104),
        (0.0143435819, -0.9998959231, 0.0015507104),
    ),
    3: (
        (0, -0.0015508699, -0.9999987974),
        (-0.010146898, 0.9999473164, -0.0015507901),
        (-0.010147, 0.99995, -0.0015508),
    ),
}
MIDDLES: dict[int, tuple[Vec3, ...]] = {
    1: (
        (0.0529379801, -0.0049713926, -0.0006940275),
        (0.0529346131, 4.20660e-05, -0.0006589486),
        (0.0442887583, 0.0003523591, 0.000434933),
    ),
    2: (
        (0.0529366187, 0.0029920957, -0.0001734118),
        (0.0529373376, 0.0003820541, -3.96046e-05),
        (0.0442877262, 0.0006353634, 3.24374e-05),
    ),
    3: (
        (0.0529377561, 0.0002107824, -0.0002086189),
        (0.0529381098, 0.0001602413, 0.0002002538),
        (0.0442682769, 0.0004470525, -0.0013882563),
    ),
}
INERTIA: dict[int, tuple[Inertia, ...]] = {
    1: (
        (8.46910e-06, 1.16900e-05, 1.27968e-05, -5.5919e-09, 8.7e-12, 1.7165e-09),
        (8.46983e-06, 1.10965e-05, 1.33896e-05, -7.792e-10, 6.12479e-08, 3.794e-09),
        (3.47807e-06, 7.19387e-06, 8.68619e-06, -2.9589e-08, -5.11686e-08, 1.908e-09),
    ),
    2: (
        (8.46931e-06, 1.16898e-05, 1.27968e-05, -2.62162e-08, 4.06e-11, 1.7168e-09),
        (8.46919e-06, 1.10964e-05, 1.33904e-05, -1.76973e-08, 3.6539e-09, 3.5951e-09),
        (3.47809e-06, 7.19334e-06, 8.68669e-06, -5.33143e-08, -3.8483e-09, 2.2598e-09),
    ),
    3: (
        (8.46914e-06, 1.16900e-05, 1.27968e-05, -1.26990e-08, 1.97e-11, 1.7166e-09),
        (8.46915e-06, 1.10965e-05, 1.33903e-05, -6.7046e-09, -1.86285e-08, 3.4441e-09),
        (3.48282e-06, 7.19373e-06, 8.68158e-06, -3.74052e-08, 1.63162e-07, 3.9629e-09),
    ),
}


def fork(y: float, z: float, off: float = 0.0) -> tuple[Geom, Geom]:
    """The two cheeks that hold a link at its servo, ``y`` or ``z`` [m] to either side."""
    half = (0.015, 0.005 if y else 0.012, 0.012 if y else 0.005)
    a, b = (box(half, (0.013, off + s * y, s * z), GREY, collide=False) for s in (1, -1))
    return a, b


def finger(n: int) -> tuple[Link, ...]:
    middle = PLACES[n][1][1]  # the servo of the first link is as much to the side as the joint after it
    low, high = (-0.524, 1.32) if n == 1 else (-1.32, 0.524)
    shapes = (
        (box((0.029, 0.019, 0.015), (0.05, middle, 0), DARK), *fork(0, 0.018, middle)),
        (box((0.029, 0.018, 0.0145), (0.05, 0, 0), DARK), *fork(0.018, 0)),
        (
            box((0.0025, 0.021, 0.012), (0.026, 0, 0), BLACK),
            cylinder((0.028, 0, 0), (0.036, 0, 0), 0.014, BLACK, collide=False),
            capsule((0.034, 0, 0), (0.0715, 0, 0), 0.0115, BLACK, pad=True),
            *fork(0.018, 0),
        ),
    )
    return tuple(
        Link(
            name=f"link_f{n}_{k + 1}",
            parent=f"link_f{n}_{k}" if k else "base_link",
            pos=PLACES[n][k],
            quat=(1, 0, 0, 0) if k else TURNS[n],
            joint=Joint(
                name=f"joint_f{n}_{k}", axis=AXES[n][k], range=(-1.57, 1.57) if k else (low, high), armature=1e-3
            ),
            mass=(0.0500997885, 0.0500997885, 0.0260028968)[k],
            com=MIDDLES[n][k],
            inertia=INERTIA[n][k],
            geoms=shapes[k],
        )
        for k in range(3)
    )


DISC = Link(
    name="base_link",
    parent=None,
    quat=(H, 0, -H, 0),  # its x is up
    mass=0.23695,
    com=(0.0061371, 0.00092103, 0.0001376),
    inertia=(0.00032097, 0.00016917, 0.00016932, -6.69e-18, 1.99e-17, -1.3585e-07),
    geoms=(
        cylinder((-0.009, 0, 0.002), (0.002, 0, 0.002), 0.08, BLACK),
        box((0.013, 0.02, 0.025), (0.013, -0.059, -0.012), DARK),
        box((0.013, 0.02, 0.025), (0.013, 0.02, 0.058), DARK, quat=(0.8660254, 0.5, 0, 0)),
        box((0.013, 0.02, 0.025), (0.013, 0.042, -0.045), DARK, quat=(0.8660254, -0.5, 0, 0)),
    ),
)

ROBOT = RobotSpec(
    name="dclaw",
    title="D'Claw",
    links=(DISC, *finger(1), *finger(2), *finger(3)),
    groups={
        "fingers": JointGroup(
            joints=tuple(f"joint_f{n}_{k}" for k in range(3) for n in (1, 2, 3)),  # ManiSkill3's order
            gains=Gains(kp=(100,) * 9, kd=(10,) * 9, force=(20,) * 9, source="ManiSkill3 3.0.1 dclaw"),
            speed=2.0,
        )
    },
    tools={
        "claw": Tool(body="base_link", pos=(0.2, 0, 0), quat=(H, 0, H, 0)),  # between the tips
        **{f"f{n}": Tool(body=f"link_f{n}_3", pos=(0.0715, 0, 0), quat=(H, 0, H, 0)) for n in (1, 2, 3)},
    },
    touch=tuple(f"link_f{n}_{k}" for n in (1, 2, 3) for k in (2, 3)),
    keyframes={"rest": (0.0,) * 9},
    base_pos=(0, 0, 0.28),
    base_quat=(0, 0, 1, 0),
    gravcomp=False,
    controllers=JOINT_CONTROLLERS,
    source="ManiSkill3 3.0.1 dclaw, from ROBEL",
)
