"""A door between two posts, with a lever that turns its latch, or with a fixed handle. Sizes as in robosuite.

The origin is the middle of the closed door, x along it towards its hinge, its front at -y.
"""

from __future__ import annotations

import math

import mujoco

from manikin.assets.builtin import build
from manikin.spec.links import Joint, Link, box, cylinder

__all__ = ["HINGE", "LEVER", "PULL", "door"]

HINGE = (0.255, 0.0, 0.0)  # [m] a point of the hinge's axis
LEVER = (-0.175, 0.0, -0.025)  # [m] where the lever turns about y
PULL = (0.125, -0.1, 0.0)  # [m] where the lever is to be taken, from there
_WOOD, _POST, _METAL = (0.45, 0.3, 0.2, 1.0), (0.92, 0.92, 0.9, 1.0), (0.8, 0.65, 0.35, 1.0)


def door(latch: bool) -> mujoco.MjSpec:
    """Bodies ``frame``, ``door`` and ``lever``; joints ``hinge`` (0 to 0.4 rad) and, with a latch, ``latch`` (1.57 rad
    either way, with a spring); sites ``door`` in the middle of the panel and ``handle`` at :data:`PULL`.

    A latch that is not turned by more than a radian hooks behind the frame.
    """
    posts = [cylinder((x, 0, -0.3), (x, 0, 0.3), 0.03, _POST) for x in (-0.255, 0.255)]
    panel = Link(
        name="door",
        parent="frame",
        joint=Joint(name="hinge", axis=(0, 0, 1), pos=HINGE, range=(0.0, 0.4), damping=0.1),
        mass=2.43455,
        com=(0.0296816, -0.00152345, 0),
        com_quat=(0.701072, 0, 0, 0.713091),
        inertia=(0.0913751, 0.0521615, 0.043714),
        geoms=(box((0.22, 0.02, 0.29), (0, 0, 0), _WOOD),),
    )
    back = 0.0625 if latch else 0.0
    shapes = [
        cylinder((0, back, 0), (0, -0.125, 0), 0.025, _METAL),
        box((0.075, 0.015, 0.02), (0.075, -0.1, 0), _METAL),
    ]
    turning = None
    if latch:
        shapes += [
            box((0.03125, 0.0125, 0.025), (-0.03125, 0.05, 0), _METAL),
            cylinder((-0.0625, 0.0375, 0), (-0.0625, 0.0625, 0), 0.025, _METAL),
        ]
        turning = Joint(
            name="latch", axis=(0, 1, 0), range=(-math.pi / 2, math.pi / 2), frictionloss=0.1, stiffness=1.0
        )
    lever = Link(
        name="lever",
        parent="door",
        pos=LEVER,
        joint=turning,
        mass=0.1,
        com=(-0.017762, 0.0138544, 0),
        com_quat=(0.365653, 0.605347, -0.36522, 0.605365),
        inertia=(0.0483771, 0.0410001, 0.0111013),
        geoms=tuple(shapes),
    )
    spec = build((Link(name="frame", parent=None, geoms=tuple(posts)), panel, lever), name="door")
    spec.body("door").add_site(name="door", size=[0.005, 0, 0], group=4)
    spec.body("lever").add_site(name="handle", pos=PULL, size=[0.005, 0, 0], group=4)
    return spec
