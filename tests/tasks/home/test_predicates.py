"""When subtasks succeed: the published numbers, and each condition on both sides of its limit."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
import torch

from manikin.tasks.home import predicates, rules
from manikin.tasks.home.predicates import Goal, Joint, Seen

YES, NO = torch.tensor([True]), torch.tensor([False])


def seen(**changes: Any) -> Seen:
    """One row that rests at (1, 2), turned by 90 degrees, and holds what is at its tool."""
    tool = torch.tensor([[1.0, 2.5, 1.25]])
    whole = Seen(
        base=torch.tensor([[1.0, 2.0, math.pi / 2]]),
        tcp=tool,
        joints=torch.zeros(1, 10),
        joint_speeds=torch.zeros(1, 10),
        base_speeds=torch.zeros(1, 3),
        grasped=torch.tensor([True]),
        force=torch.zeros(1),
        pressed=torch.zeros(1),
        obj=tool.clone(),
        still=YES,
        tool_rests=YES,
        loose=YES,
        tight=YES,
    )
    return dataclasses.replace(whole, **changes)


def joint(kind: str, q: float, limits: tuple[float, float] = (0.0, 0.5), **changes: Any) -> Joint:
    """A joint before which the row above stands, 1 m away."""
    whole = Joint(
        kind=kind,
        q=torch.tensor([q]),
        speed=torch.zeros(1),
        limits=torch.tensor([limits]),
        start=torch.tensor([limits[1]]),
        frame=torch.tensor([[1.0, 3.0, -math.pi / 2]]),
        handle=torch.zeros(1, 3),
    )
    return dataclasses.replace(whole, **changes)


HERE = Goal(torch.tensor([[1.0, 2.5, 1.25]]))


def test_the_numbers_are_the_published_ones() -> None:
    """MS-HAB's code, August 2025: ids, horizons, limits of force, and the largest dense reward."""
    published = {
        "pick": (0, 200, 100, 5000, 28),
        "place": (1, 200, 100, 7500, 44),
        "navigate": (2, 500, 1000, math.inf, 28),
        "open": (3, 200, 100, 10000, 27),
        "close": (4, 200, 100, 10000, 37),
    }
    for name, numbers in published.items():
        r = rules.RULES[name]
        assert (r.number, r.horizon, r.training_horizon, r.force_limit, r.reward_max) == numbers
    assert [r.force_scale for r in rules.RULES.values()] == [0.001, 0.001, 0.005, 0.001, 0.001]
    assert {r.force_free for r in rules.RULES.values()} == {0.2}
    c = predicates.COMMON
    assert (c.rest, c.ee_rest, c.arm_loose, c.arm_tight) == ((0.5, 0, 1.25), 0.05, 0.6, 0.2)
    assert (c.torso_rest, c.torso_tight, c.still, c.still_base) == (0.386, 0.01, 0.2, 0.05)
    assert (c.grasp_force, math.degrees(c.grasp_angle), c.at_goal, c.near, c.heading, c.spawn) == pytest.approx(
        (0.5, 30, 0.15, 2, 0.5, 2)
    )
    assert (c.arm_noise, c.arm_noise_cut, c.base_noise, c.base_noise_cut) == (0.1, 0.2, 0.1, 0.2)
    assert (c.yaw_noise, c.yaw_noise_cut) == (0.25, 0.5)
    fridge, drawer = rules.ARTICULATIONS["fridge"], rules.ARTICULATIONS["drawer"]
    assert (fridge.open_share, fridge.fast, fridge.front) == (0.75, 2, ((0.933, 1.833), (-0.6, 0.6)))
    assert (drawer.open_share, drawer.fast, drawer.front) == (0.9, 1, ((0.3, 1.5), (-0.6, 0.6)))
    assert {(a.close_share, a.slightly_open, a.slightly_closed) for a in (fridge, drawer)} == {(0.01, 0.1, 0.05)}


def test_sequences_are_those_of_the_three_tasks() -> None:
    steps = {name: len(words) for name, words in rules.SEQUENCES.items()}
    assert steps == {"tidy_house": 20, "prepare_groceries": 12, "set_table": 16}
    caps = {name: sum(rules.RULES[word].horizon for word in words) for name, words in rules.SEQUENCES.items()}
    assert caps == {"tidy_house": 7000, "prepare_groceries": 4200, "set_table": 5600}
    assert rules.SEQUENCES["set_table"][1::2] == ("open", "pick", "place", "close") * 2
    assert set(rules.SEQUENCES["set_table"][::2]) == {"navigate"}


@pytest.mark.parametrize(
    "changes, done",
    [
        ({}, True),
        ({"grasped": NO}, False),
        ({"tool_rests": NO}, False),
        ({"loose": NO}, False),
        ({"tight": NO}, True),  # loose is enough
        ({"still": NO}, False),
        ({"pressed": torch.tensor([4999.0])}, True),
        ({"pressed": torch.tensor([5000.0])}, False),
    ],
)
def test_pick(changes: dict[str, torch.Tensor], done: bool) -> None:
    assert predicates.succeeds("pick", seen(**changes), HERE).tolist() == [done]


@pytest.mark.parametrize(
    "changes, done",
    [
        ({}, True),
        ({"grasped": YES}, False),
        ({"tight": NO}, False),
        ({"tool_rests": NO}, False),
        ({"still": NO}, False),
        ({"obj": torch.tensor([[1.0, 2.5, 1.399]])}, True),
        ({"obj": torch.tensor([[1.0, 2.5, 1.401]])}, False),
        ({"pressed": torch.tensor([7499.0])}, True),
        ({"pressed": torch.tensor([7500.0])}, False),
    ],
)
def test_place(changes: dict[str, torch.Tensor], done: bool) -> None:
    row = seen(**{"grasped": torch.tensor([False]), **changes})
    assert predicates.succeeds("place", row, HERE).tolist() == [done]


def test_shapes_of_a_goal() -> None:
    square = torch.tensor([[[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]])
    goal = Goal(torch.tensor([[0.5, 0.5, 1.0]]), square)
    for pos, sphere, cylinder, zone in (
        ((0.5, 0.5, 1.0), True, True, True),
        ((0.61, 0.5, 1.11), False, True, True),  # 0.156 m away
        ((0.5, 0.5, 1.151), False, False, False),
        ((0.95, 0.05, 0.9), False, False, True),
        ((1.05, 0.5, 1.0), False, False, False),
    ):
        obj = torch.tensor([pos])
        found = [predicates.at_goal(obj, goal, shape).item() for shape in ("sphere", "cylinder", "zone")]
        assert found == [sphere, cylinder, zone], pos
    other_way = Goal(goal.pos, square.flip(1))
    assert predicates.at_goal(torch.tensor([[0.95, 0.05, 0.9]]), other_way, "zone").item()
    for shape, of in (("box", goal), ("zone", HERE)):
        with pytest.raises(ValueError, match="sphere, cylinder, or zone"):
            predicates.at_goal(torch.zeros(1, 3), of, shape)


@pytest.mark.parametrize(
    "subtask, kind, q, limits, done",
    [
        ("open", "drawer", 0.449, (0.0, 0.5), False),
        ("open", "drawer", 0.451, (0.0, 0.5), True),
        ("open", "fridge", 1.177, (0.0, math.pi / 2), False),
        ("open", "fridge", 1.179, (0.0, math.pi / 2), True),
        ("open", "drawer", 0.56, (0.2, 0.6), False),  # a range need not begin at zero; 0.56 is 90 % itself
        ("close", "drawer", 0.0049, (0.0, 0.5), True),
        ("close", "drawer", 0.0051, (0.0, 0.5), False),
    ],
)
def test_open_and_close(subtask: str, kind: str, q: float, limits: tuple[float, float], done: bool) -> None:
    it = joint(kind, q, limits)
    for held in (True, False):
        row = seen(grasped=torch.tensor([held]))
        assert predicates.succeeds(subtask, row, HERE, joint=it).tolist() == [done]
    with pytest.raises(ValueError, match=f"{subtask} needs a joint"):
        predicates.succeeds(subtask, row, HERE)


def test_slightly_closed_is_a_twentieth_of_the_range_from_the_start() -> None:
    for q, moved_enough in ((0.426, False), (0.424, True)):
        it = joint("drawer", q, start=torch.tensor([0.45]))
        assert predicates.slightly_closed(it).item() is moved_enough


def test_navigate() -> None:
    """Facing (1, 5): 3 m off is too far; 1.9 m is near; half a radian off counts, a little more does not."""
    for away, turn, carrying, held, tight, done in (
        (3.0, 0.0, False, False, True, False),
        (1.9, 0.0, False, False, True, True),
        (1.9, 0.49, False, False, True, True),
        (1.9, -0.51, False, False, True, False),
        (1.9, 0.0, True, False, True, False),
        (1.9, 0.0, True, True, False, True),  # loose while something is carried
        (1.9, 0.0, False, False, False, False),
    ):
        goal = Goal(torch.tensor([[1.0 - away * math.sin(turn), 2.0 + away * math.cos(turn), 0.8]]))
        row = seen(grasped=torch.tensor([held]), tight=torch.tensor([tight]), pressed=torch.tensor([1e9]))
        assert predicates.succeeds("navigate", row, goal, carrying=carrying).tolist() == [done]
    row = seen(tight=NO, loose=NO, tool_rests=NO, grasped=NO)
    goal = Goal(torch.tensor([[1.0, 3.0, 0.8]]))
    assert predicates.succeeds("navigate", row, goal, arm_counts=False).item()


@pytest.mark.parametrize(
    "kind, forth, aside, inside",
    [
        ("drawer", 0.29, 0.0, False),
        ("drawer", 0.31, 0.59, True),
        ("drawer", 1.49, -0.59, True),
        ("drawer", 1.0, 0.61, False),
        ("drawer", 1.51, 0.0, False),
        ("fridge", 0.93, 0.0, False),
        ("fridge", 0.94, 0.0, True),
        ("fridge", 1.84, 0.0, False),
    ],
)
def test_the_box_before_an_articulation_turns_with_it(kind: str, forth: float, aside: float, inside: bool) -> None:
    for yaw in (0.0, 2.0):
        frame = torch.tensor([[0.4, -0.3, yaw]])
        place = frame.clone()
        place[0, 0] += forth * math.cos(yaw) - aside * math.sin(yaw)
        place[0, 1] += forth * math.sin(yaw) + aside * math.cos(yaw)
        assert predicates.in_front(place, joint(kind, 0.0, frame=frame)).tolist() == [inside]
