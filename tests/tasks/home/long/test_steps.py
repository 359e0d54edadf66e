"""The order of subtasks: what MS-HAB's three sequences ask for, and what is open meanwhile."""

from __future__ import annotations

import pytest

from manikin.env.registry import task_class
from manikin.errors import ConfigError
from manikin.tasks.home.long.steps import Errand, steps_of
from manikin.tasks.home.rules import RULES, SEQUENCES

pytest.importorskip("scipy", reason="maps of apartments need pip install 'manikin[meshes]'")


@pytest.mark.parametrize(
    ("task_id", "sequence", "count", "steps"),
    [("SetTable-v1", "set_table", 16, 5600), ("PrepareGroceries-v1", "prepare_groceries", 12, 4200)],
)
def test_order_and_horizons_are_those_of_the_rules(task_id: str, sequence: str, count: int, steps: int) -> None:
    kind = task_class(task_id)
    found = kind(layout="apartment0").steps()
    assert tuple(step.kind for step in found) == SEQUENCES[sequence] and len(found) == count
    assert sum(RULES[step.kind].horizon for step in found) == steps == round(kind.horizon_s * kind.control_hz)
    assert {step.kind for step in found} == set(kind.skills)


def test_set_table_opens_before_and_closes_after() -> None:
    found = task_class("SetTable-v1")({"navigation": "teleported"}, layout="apartment0").steps()
    assert [step.name for step in found] == [
        *("open drawer", "pick 0", "place 0", "close drawer"),
        *("open fridge", "pick 1", "place 1", "close fridge"),
    ]
    assert [step.opened for step in found] == ["", "drawer", "drawer", "drawer", "", "fridge", "fridge", "fridge"]


def test_navigate_goes_to_handles_objects_and_goals() -> None:
    found = task_class("SetTable-v1")({"targets": 1}, layout="apartment0").steps()
    names = [step.name for step in found if step.kind == "navigate"]
    assert names == ["navigate to drawer", "navigate to object 0", "navigate to goal 0", "navigate to drawer"]
    assert [step.carrying for step in found] == [False, False, False, False, True, True, False, False]


def test_the_fridge_of_prepare_groceries_stays_open() -> None:
    found = task_class("PrepareGroceries-v1")(layout="apartment0").steps()
    assert {step.opened for step in found} == {"fridge"} and not any(step.door for step in found)


def test_targets_beyond_the_errands_are_refused() -> None:
    with pytest.raises(ConfigError, match="1 to 2 targets, not 3"):
        task_class("SetTable-v1")({"targets": 3}, layout="apartment0").steps()


def test_an_errand_without_a_door_ends_with_place() -> None:
    words = ("pick", "place") * 2
    found = steps_of(words, (Errand(), Errand("counter", "fridge")))
    assert [step.target for step in found] == [0, 0, 1, 1]
    assert [Errand().from_front, Errand("counter", "fridge").from_front] == [False, True]
