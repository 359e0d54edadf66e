"""The valve of ROBEL: a hub on a stand that turns about the vertical, with up to five arms that a claw pushes.

Sizes as in ManiSkill3 3.0.1, after ROBEL. The stand is at the origin on z = 0.
"""

from __future__ import annotations

from dataclasses import replace

import mujoco

from manikin.assets.builtin import build
from manikin.spec.links import Joint, Link, Vec3, box, capsule, cylinder, solid

__all__ = ["ARMS", "LENGTH", "PLANE", "RADIUS", "valve"]

ARMS = tuple(f"arm{k}" for k in range(5))
LENGTH, RADIUS = 0.061706, 0.0195  # [m] of an arm, from the axis to the middle of its round end
PLANE = 0.069854  # [m] height of the arms
_STEEL, _RED, _WHITE = (0.55, 0.56, 0.58, 1.0), (0.8, 0.1, 0.1, 1.0), (0.93, 0.93, 0.93, 1.0)


def valve() -> mujoco.MjSpec:
    """Bodies ``mount``, ``valve`` and :data:`ARMS`; the joint ``valve``, without limits, anticlockwise from above.

    Each arm is a body of one capsule along x, to be fastened and sized with ``Articulation.set_links``; here all five
    are evenly spread. Mass and inertia are those of three arms of 1000 kg/m^3, whichever there are: against the joint's
    damping they do not count. The stand cannot be touched: no finger gets down to it.
    """
    stand = (
        box((0.02, 0.02, 0.015), (0, 0, 0.015), _STEEL, collide=False),
        cylinder((0, 0, 0.03), (0, 0, PLANE), 0.007, _STEEL, collide=False),
    )
    joint = Joint(name="valve", axis=(0, 0, 1), damping=2.0, frictionloss=0.02)
    end: tuple[Vec3, ...] = (
        (LENGTH, 0, 0),
        (-0.5 * LENGTH, 0.75**0.5 * LENGTH, 0),
        (-0.5 * LENGTH, -(0.75**0.5) * LENGTH, 0),
    )
    weighed = Link(name="valve", parent="mount", geoms=tuple(capsule((0, 0, 0), one, RADIUS) for one in end))
    hub = replace(solid(weighed, 1000.0), pos=(0, 0, PLANE), joint=joint, geoms=())
    half = LENGTH / 2
    arms = tuple(
        Link(
            name=name,
            parent="valve",
            pos=(half, 0, 0),
            geoms=(capsule((-half, 0, 0), (half, 0, 0), RADIUS, _WHITE if k else _RED),),
        )
        for k, name in enumerate(ARMS)
    )
    return build((Link(name="mount", parent=None, geoms=stand), hub, *arms), name="valve")
