"""Kinova KG-3 of the Mico: a thumb against two fingers, each on one joint, with stiff tips.

Places, masses, inertia and limits: the description that Collins et al. (IEEE RA-L 2020, arXiv 1911.01557) released;
zero is fully open. The thumb's axis is that of the newer kinova-ros, which turned it by 18 degrees; with the older one
a thing that is held turns away. Shapes, stiffness and the coupling of the fingers are those of ``jaco_three_finger``,
whose fingers have the same length. The tips' joints, which a tendon moves, are left out: the tips are stiff.
"""

from __future__ import annotations

from dataclasses import replace

from manikin.grippers import jaco_three_finger as jaco
from manikin.spec.links import Joint, Link, Quat, Vec3

PLACES: dict[int, tuple[Vec3, Quat]] = {
    1: ((0.00279, 0.03126, -0.11467), (0.1499618, -0.682231, -0.2963663, 0.6513366)),  # the thumb
    2: ((0.02226, -0.02707, -0.11482), (0.6889559, -0.2829764, 0.6480157, -0.1591847)),
    3: ((-0.02226, -0.02707, -0.11482), (0.6480157, -0.1591847, 0.6889559, -0.2829764)),
}


def light(link: Link) -> Link:
    """A part of a finger with the description's mass."""
    return replace(link, mass=0.01, com=(0.022, 0, 0), com_quat=(1, 0, 0, 0), inertia=(7.9e-07, 7.9e-07, 8e-08))


def finger(k: int) -> tuple[Link, ...]:
    pos, quat = PLACES[k]
    proximal, tip = (light(link) for link in jaco.finger(k))
    joint = Joint(name=f"finger_{k}", axis=(0, 0, 1), range=(0, 1.51), armature=0.01)
    return replace(proximal, pos=pos, quat=quat, joint=joint), tip


GRIPPER = replace(
    jaco.GRIPPER,
    name="kinova_kg3",
    title="Kinova KG-3, three fingers",
    links=(
        replace(
            jaco.GRIPPER.links[0],
            mass=0.727,
            com=(0, 0, -0.06),
            com_quat=(1, 0, 0, 0),
            inertia=(0.000345324, 0.000345324, 0.0005816),
        ),
        *(link for k in PLACES for link in finger(k)),
    ),
    menagerie=None,
    gains=replace(jaco.GRIPPER.gains, force=(2.0,) * 3, source="force: the description; kp, kd: jaco_three_finger"),
    open_q=(0.0,) * 3,
    closed_q=(1.38,) * 3,
    max_width=0.109,
    source="Collins et al. 2020, from Kinova's description",
)
