"""Two robots on stands: facing each other, or side by side. Arms of one machine stand where the machine does."""

from __future__ import annotations

import math

from manikin.arenas.stand import on_stand
from manikin.errors import UnknownNameError
from manikin.robots import stand_together
from manikin.scene.builder import SceneBuilder
from manikin.scene.handles import Robot

__all__ = ["ARRANGEMENTS", "two_robots"]

ARRANGEMENTS = ("opposed", "parallel")


def two_robots(
    b: SceneBuilder,
    *,
    arrangement: str,
    away: float,
    height: float,
    level: float,
    floor: float,
    aside: float = 0.25,
) -> tuple[Robot, Robot]:
    """Add the next two robots, ``robot0`` and ``robot1``, around the origin.

    Args:
        b: the scene.
        arrangement: ``opposed``: facing each other on the y axis, the first at negative y; ``parallel``: side by side
            at negative x, the first at negative y. A machine with two arms (``baxter``) has its own arrangement.
        away: of their bases [m], along the axis.
        height: of their bases [m].
        level: height of what they work on [m], where a machine with two arms stands as it does at a table.
        floor: height of the floor [m].
        aside: of parallel robots, how far each is to the side [m].

    Raises:
        UnknownNameError: no such arrangement.
    """
    if arrangement not in ARRANGEMENTS:
        raise UnknownNameError("arrangement", arrangement, ARRANGEMENTS)
    names = ("robot0", "robot1")
    if stand_together(b.robots):
        places = [arm.base_pos for arm, *_ in b.robots]
        one, two = (b.robot(name=n, pos=(x, y, z + level)) for n, (x, y, z) in zip(names, places, strict=True))
        return one, two
    if arrangement == "opposed":
        spots = ((0.0, -away, math.pi / 2), (0.0, away, -math.pi / 2))
    else:
        spots = ((-away, -aside, 0.0), (-away, aside, 0.0))
    one, two = (
        on_stand(b, pos=(x, y, height), yaw=yaw, floor=floor, name=n)
        for n, (x, y, yaw) in zip(names, spots, strict=True)
    )
    return one, two
