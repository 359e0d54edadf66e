"""Drawings of apartments: where in them places are, and what is drawn, beside numbers that were worked out by hand."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from manikin.homes import Apartment, Fixture, apartment
from manikin.homes.plan import FloorPlan, drawn_plan
from manikin.spec.prop import Shape

NAME = "{http://www.w3.org/2000/svg}"


def room(*fixtures: Fixture) -> Apartment:
    """4 m wide and 3 m deep, with one wall, at its right side."""
    wall = Shape(type="box", size=(0.05, 1.5, 1.2), pos=(3.05, 0.5, 1.2))
    return Apartment(name="room", low=(-1, -1), high=(3, 2), walls=(wall,), fixtures=fixtures)


def box(name: str, x: float, y: float, z: float, half: tuple[float, float], *, turned: bool = False) -> Fixture:
    """A board, 2 cm thick; turned by 90 degrees."""
    quat = (0.5**0.5, 0.0, 0.0, 0.5**0.5) if turned else (1.0, 0.0, 0.0, 0.0)
    return Fixture(name=name, kind=name, pos=(x, y, z), quat=quat, shapes=(Shape(type="box", size=(*half, 0.01)),))


def drawn(plan: FloorPlan) -> list[tuple[str, np.ndarray]]:
    """Of each path its colour, and the lowest and highest of its corners (2, 2) [pixels]."""
    found = []
    for path in ElementTree.fromstring(plan.svg).iter(f"{NAME}path"):
        corners = np.array([list(map(float, pair)) for pair in re.findall(r"([\d.-]+),([\d.-]+)", path.get("d", ""))])
        found.append((path.get("fill", ""), np.stack([corners.min(0), corners.max(0)])))
    return found


def words(plan: FloorPlan) -> list[str]:
    return [str(one.text) for one in ElementTree.fromstring(plan.svg).iter(f"{NAME}text")]


def test_places_are_where_they_were_worked_out_to_be() -> None:
    """20 cm around the floor and 50 pixels a metre, x to the right and y up: (-1.2, 2.2) m is the upper left corner."""
    plan = drawn_plan(room())
    assert plan.size == pytest.approx((4.4 * 50, 3.4 * 50)) and plan.corner == pytest.approx((-1.2, 2.2))
    world = np.array([(-1.2, 2.2), (0.0, 0.0), (3.0, 2.0), (3.2, -1.2)])
    assert plan.at(world) == pytest.approx(np.array([(0, 0), (60, 110), (210, 10), (220, 170)]))


def test_walls_and_furniture_are_drawn_where_they_stand() -> None:
    """A table from (0, 0) to (1, 0.5) m, and one turned by 90 degrees, from (1.75, 0) to (2.25, 1) m."""
    half = (0.5, 0.25)
    (one, two, wall) = drawn(
        drawn_plan(room(box("table", 0.5, 0.25, 0.7, half), box("desk", 2, 0.5, 0.8, half, turned=True)))
    )
    assert one[1] == pytest.approx(np.array([(60, 85), (110, 110)]), abs=0.06)
    assert two[1] == pytest.approx(np.array([(147.5, 60), (172.5, 110)]), abs=0.06)
    assert wall[1] == pytest.approx(np.array([(210, 10), (215, 160)]), abs=0.06)
    assert one[0] == two[0] != wall[0]


def test_what_is_higher_is_drawn_over_what_is_lower_and_what_hangs_above_is_left_out() -> None:
    stool, table = box("stool", 0.5, 0.5, 0.4, (0.2, 0.2)), box("table", 0.5, 0.25, 0.7, (0.5, 0.25))
    for order in ((stool, table), (table, stool)):
        first, second, _ = drawn(drawn_plan(room(*order, box("cupboard", 0.5, 0.5, 1.6, (0.5, 0.2)))))
        assert np.ptp(first[1][:, 0]) == pytest.approx(20, abs=0.1)  # the stool's 0.4 m
        assert np.ptp(second[1][:, 0]) == pytest.approx(50, abs=0.1)


def test_words_stand_where_there_is_room_for_them() -> None:
    wide, again = box("side_board", 1, 1, 0.7, (0.8, 0.3)), box("cover", 1, 1, 0.9, (0.8, 0.3))
    assert words(drawn_plan(room(wide, box("x" * 40, 1, -0.5, 0.5, (0.5, 0.3))))) == ["side board"]
    assert words(drawn_plan(room(wide, again))) == ["side board"]  # none on another
    assert words(drawn_plan(room(box("a&b", 1, 1, 0.7, (0.8, 0.3))))) == ["a&b"]


def test_a_built_in_apartment_is_drawn_with_its_doors_and_drawers() -> None:
    home = apartment(0)
    plan = drawn_plan(home)
    assert {"sofa", "counter", "fridge", "table"} <= set(words(plan))
    pieces = [one.name for one in (*home.fixtures, *home.mechanisms) if one.kind not in ("rug", "cupboard")]
    assert len(drawn(plan)) == len(pieces) + 1  # and the walls
    everything = np.concatenate([box for _, box in drawn(plan)])
    assert (everything >= 0).all() and (everything <= plan.size).all()
    assert len(plan.svg) < 30_000
