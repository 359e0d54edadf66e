"""Families of tasks: every task is in one, and tasks of one's own may name another."""

from __future__ import annotations

from pathlib import Path

import pytest

import manikin
from manikin.env import registry
from manikin.env.registry import family_title, task_class, task_families, task_family, task_ids, task_versions
from manikin.errors import ConfigError, UnknownNameError
from manikin.tasks.families import FAMILIES, FOLDERS, OWN
from manikin.tasks.tabletop.pick_cube import PickCube
from manikin.tasks.tabletop.push_cube import PushCube

pytestmark = pytest.mark.usefixtures("no_own_tasks")


def test_every_task_is_in_one_built_in_family() -> None:
    families = task_families()
    assert sorted(task for tasks in families.values() for task in tasks) == task_ids()
    assert list(families) == [name for name in FAMILIES if name != OWN]  # none is empty, and they keep their order
    for family, tasks in families.items():
        assert tasks == task_ids(family) == sorted(tasks)
        assert {task_family(task) for task in tasks} == {family}
        assert task_class(tasks[0]).family in ("", family)


def test_every_folder_of_tasks_has_a_family() -> None:
    root = Path(registry.__file__).parents[1] / "tasks"
    assert set(FOLDERS) == {path.name for path in root.iterdir() if (path / "__init__.py").is_file()}
    assert set(FOLDERS.values()) <= set(FAMILIES)


@pytest.mark.parametrize(
    ("task", "family"),
    [
        ("PickCube-v2", "table-top"),  # of its folder
        ("PushCube-v2", "pushing"),  # that it names
        ("PegInsertionSide-v2", "insertion"),
        ("Door-v2", "cabinets"),
        ("Wipe-v2", "drawing"),
        ("TwoArmLift-v3", "two-arms"),
        ("TransportBox-v1", "humanoids"),
        ("Lift-v2", "robosuite"),
        ("HumanoidStand-v1", "control-suite"),
        ("WidowXStackCube-v2", "simpler"),
    ],
)
def test_a_task_names_its_family_or_has_that_of_its_folder(task: str, family: str) -> None:
    assert task_family(task) == family and task in task_families()[family]


def test_a_former_version_is_of_the_family_of_the_newest() -> None:
    newest = {task.rpartition("-v")[0]: task for task in task_ids()}
    former = set(task_versions()) - set(task_ids())
    assert former
    for task in former:
        assert task_family(task) == task_family(newest[task.rpartition("-v")[0]])


class Bare(manikin.Task):
    id, horizon_s = "BareFamily-v0", 1.0


class Kitchen(Bare):
    id, family = "KitchenFamily-v0", "kitchen"


class OtherCube(PickCube):
    id = "OtherCubeFamily-v0"


class OtherPush(PushCube):
    id = "OtherPushFamily-v0"


def test_tasks_of_ones_own_are_listed_last_or_with_what_they_derive_from() -> None:
    for task in (Bare, Kitchen, OtherCube, OtherPush):
        manikin.register(task)
    assert list(task_families())[-2:] == [OWN, "kitchen"]
    assert task_ids("kitchen") == ["KitchenFamily-v0"] and task_ids(OWN) == ["BareFamily-v0"]
    assert "OtherCubeFamily-v0" in task_ids("table-top") and "OtherPushFamily-v0" in task_ids("pushing")
    assert family_title("kitchen") == "kitchen" and family_title(OWN) == "Your own"


@pytest.mark.parametrize("family", ["Drawing", "two arms", "a_b", 3, None])
def test_a_family_is_a_word(family: object) -> None:
    wrong = type("Wrong", (Bare,), {"id": "WrongFamily-v0", "family": family})
    with pytest.raises(ConfigError, match=r"the family of WrongFamily-v0 must be a word of lower-case .*drawing"):
        manikin.register(wrong)


def test_a_family_without_tasks_is_refused_with_those_that_there_are() -> None:
    for wrong in ("drawings", OWN, ""):
        with pytest.raises(UnknownNameError, match="unknown family of tasks") as refused:
            task_ids(wrong)
        assert refused.value.valid == sorted(task_families())
