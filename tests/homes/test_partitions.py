"""Inner walls: two rooms of 4 x 3 m with a wall of 12 cm between them, and a doorway of 1 m in it. No data needed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from manikin.homes.walls.partitions import partitions
from manikin.spec.prop import Shape

RADIUS, HEIGHT = 0.3, 2.4


def square(x0: float, y0: float, x1: float, y1: float) -> np.ndarray:
    return np.array([(x0, y0), (x1, y0), (x1, y1), (x0, y1)])


def rooms(thick: float) -> list[np.ndarray]:
    """Where the middle of a robot may be; the wall begins at x = 4, the doorway is from y = 1 to 2."""
    left, right = square(0.3, 0.3, 3.7, 2.7), square(4.3 + thick, 0.3, 7.7 + thick, 2.7)
    return [left, right, square(3.7, 1.3, 4.3 + thick, 1.7)]


def covered(walls: tuple[Shape, ...], points: list[tuple[float, float]]) -> list[bool]:
    """Whether each point is in a wall."""
    out = []
    for point in points:
        found = False
        for wall in walls:
            angle = 2 * math.atan2(wall.quat[3], wall.quat[0])
            turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
            found |= bool((np.abs((np.array(point) - wall.pos[:2]) @ turn) <= wall.size[:2]).all())
        out.append(found)
    return out


def test_a_wall_stands_on_both_sides_of_a_doorway() -> None:
    walls = partitions(rooms(0.12), RADIUS, [], height=HEIGHT)
    assert covered(walls, [(4.06, 0.5), (4.06, 0.9), (4.06, 2.1), (4.06, 2.5)]) == [True] * 4
    assert covered(walls, [(4.06, 1.05), (4.06, 1.5), (4.06, 1.95), (3.95, 0.6), (4.17, 2.4)]) == [False] * 5
    assert len(walls) == 2
    for wall in walls:
        assert wall.size[0] == pytest.approx(0.06, abs=0.03) and wall.pos[2] == wall.size[2] == HEIGHT / 2


def test_a_wide_gap_is_no_wall_and_without_a_gap_there_is_none() -> None:
    assert partitions(rooms(0.5), RADIUS, [], height=HEIGHT) == ()
    assert partitions([square(0, 0, 4, 3)], RADIUS, [], height=HEIGHT) == ()
    assert partitions([], RADIUS, [], height=HEIGHT) == ()


def test_long_thin_furniture_is_no_wall_and_none_touches_it() -> None:
    shelf = square(3.98, 1.9, 4.14, 3.1)
    walls = partitions(rooms(0.12), RADIUS, [shelf], height=HEIGHT)
    assert len(walls) == 1 and walls[0].pos[1] + walls[0].size[1] < 1.1
    picture = square(3.97, 0.4, 4.02, 0.9)  # hangs on the wall, which keeps the rest of its thickness behind it
    walls = partitions(rooms(0.12), RADIUS, [picture], height=HEIGHT)
    assert covered(walls, [(4.09, 0.65), (4.01, 0.65)]) == [True, False]


def test_the_rooms_without_furniture_say_what_is_a_wall() -> None:
    """In a mesh with furniture there is another slit: between two things that are not in the data."""
    gap = [square(0.3, 0.3, 3.7, 1.1), square(0.3, 1.85, 3.7, 2.7), *rooms(0.12)[1:]]
    assert any(wall.pos[0] < 3.8 for wall in partitions(gap, RADIUS, [], height=HEIGHT))
    walls = partitions(gap, RADIUS, [], height=HEIGHT, plan=rooms(0.12))
    assert len(walls) == 2 and all(wall.pos[0] > 3.9 for wall in walls)


def test_a_slanted_wall_is_one_box_along_its_slit() -> None:
    turn = np.array([[math.cos(0.5), -math.sin(0.5)], [math.sin(0.5), math.cos(0.5)]])
    turned = [polygon @ turn.T for polygon in rooms(0.14)]
    walls = partitions(turned, RADIUS, [], height=HEIGHT)
    along = [tuple(turn @ point) for point in ((4.07, 0.6), (4.07, 2.4), (4.07, 1.5))]
    assert covered(walls, along) == [True, True, False]


def test_a_wall_is_joined_to_another_before_which_it_would_end() -> None:
    outer = square(-0.1, -0.1, 8.2, 0.0)
    short, joined = (partitions(rooms(0.12), RADIUS, [], height=HEIGHT, outer=walls) for walls in ([], [outer]))
    assert covered(joined, [(4.06, 0.05)]) == [True]
    assert min(w.pos[1] - w.size[1] for w in short) >= min(w.pos[1] - w.size[1] for w in joined)
