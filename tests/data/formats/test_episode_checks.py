"""Which episodes are refused: each of what a file may get wrong, in a generated episode that is otherwise right."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from manikin.data.formats.homes import check_episode, habitat_episode, subtask_plans
from manikin.data.formats.rearrange import parse_rearrange
from manikin.errors import ConfigError, DataError, SceneError, UnknownNameError
from manikin.homes import Apartment
from manikin.homes.episodes import generate, home_of
from manikin.homes.furniture import table
from manikin.spec.prop import Shape

Raw = dict[str, Any]
Change = Callable[[Raw, Apartment], None]
BOWL, APPLE = "024_bowl_:0000", "013_apple_:0000"


@pytest.fixture(scope="module")
def right() -> tuple[Raw, Apartment]:
    """Episode 0 of SetTable in a file's words, and its apartment."""
    (episode,) = generate("set_table", [0])
    home = home_of(episode.scene)
    return dict(habitat_episode(episode, home).raw), home


def goal_at(x: float, y: float, z: float) -> Change:
    """The bowl's goal at a place of the world, z up [m]."""

    def change(raw: Raw, _: Apartment) -> None:
        for row, value in enumerate((x, z, -y)):
            raw["targets"][BOWL][row][3] = value

    return change


def goal_up(z: float) -> Change:
    def change(raw: Raw, _: Apartment) -> None:
        raw["targets"][BOWL][1][3] = z

    return change


def goal_in_the_fridges_foot(raw: Raw, home: Apartment) -> None:
    x, y, _ = home.of_kind("fridge")[0].pos
    goal_at(x, y, 0.02)(raw, home)


def bowl_up(raw: Raw, _: Apartment) -> None:
    raw["rigid_objs"][0][1][1][3] = 9.0


def start_in_the_fridge(raw: Raw, home: Apartment) -> None:
    x, y, _ = home.of_kind("fridge")[0].pos
    raw["start_position"] = [x, 0.0, -y]


def marker_on(key: str, value: str) -> Change:
    def change(raw: Raw, _: Apartment) -> None:
        raw["markers"][0]["params"][key] = value

    return change


def lies_on(name: str, place: str) -> Change:
    def change(raw: Raw, _: Apartment) -> None:
        raw["name_to_receptacle"][name] = place

    return change


def starts_on(handle: str, link: int | None) -> Change:
    """What the bowl is said to lie in, which is a drawer."""

    def change(raw: Raw, _: Apartment) -> None:
        raw["target_receptacles"][0] = [handle, link]

    return change


def words(**more: Any) -> Change:
    return lambda raw, home: raw.update(more)


def door_at(value: float) -> Change:
    def change(raw: Raw, home: Apartment) -> None:
        bodies = [body.name for body in home.of_kind("fridge")[0].model.bodies[1:]]  # type: ignore[union-attr]
        raw["ao_states"] = {"fridge_:0000": {str(bodies.index("top_door")): value}}

    return change


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (words(scene_id="a/hall.scene_instance.json"), ConfigError, "episode 0 is of the scene hall, not of apartment"),
        (goal_up(50.0), SceneError, rf"the goal of {BOWL} at .*50\.00\) m is outside of apartment.*, 2\.40\) m"),
        (goal_up(-0.5), SceneError, rf"the goal of {BOWL} at .*-0\.50\) m is outside of apartment.*, 0\.00\) m"),
        (goal_in_the_fridges_foot, SceneError, rf"{BOWL} .* is at no receptacle of table_:0000: table/top \(\d.* away"),
        (bowl_up, SceneError, rf"the target {BOWL} at .*9\.00\) m is outside of apartment"),
        (start_in_the_fridge, SceneError, r"the robot's start at .* radius 0\.32 m can drive .* nearest such place is"),
        (words(start_position=[99.0, 0.0, 0.0]), SceneError, r"the robot's start at \(99\.00, .* nearest such place"),
        (words(start_position=[0.0, 3.0, 0.0]), SceneError, r"the robot's start at .* 3\.00 m from the floor"),
        (door_at(99.0), SceneError, r"fridge_:0000 is at 99 rad; its joint top_door goes from 0\.000 to 1\.900 rad"),
        (door_at(-0.5), SceneError, "fridge_:0000 is at -0.5 rad; its joint top_door goes from"),
        (starts_on("oven_:0000", None), UnknownNameError, r"furniture of apartment\d 'oven_:0000'.*counter_:0000"),
        (starts_on("counter_:0000", 99), UnknownNameError, r"link of counter_:0000 '99'.*\(\w+\)"),
        (starts_on("counter_:0000", None), UnknownNameError, "link of counter_:0000 'None'"),
        (starts_on("table_:0000", None), SceneError, rf"target {BOWL} .* no receptacle of table_:0000: table/top \("),
        (lies_on(BOWL, "stage|x"), UnknownNameError, "furniture of apartment.* 'stage'.*counter_:0000"),
        (lies_on(BOWL, "table_:0000|lid"), UnknownNameError, f"receptacle of table_:0000 for {BOWL} 'lid'.*Valid: top"),
        (lies_on(BOWL, "lid"), UnknownNameError, rf"receptacle of apartment\d for {BOWL} 'lid'.*Valid: .*seat"),
        (lies_on("spoon_:0000", "table_:0000|top"), DataError, r"no object 'spoon_:0000'; there are 024_bowl"),
        (marker_on("object", "oven_:0000"), UnknownNameError, "articulation of .* the marker .*'oven_:0000'.*fridge"),
        (marker_on("object", "table_:0000"), UnknownNameError, "articulation of .* for the marker .*'table_:0000'"),
        (marker_on("link", "lid"), UnknownNameError, "link of fridge_:0000 for the marker .*'lid'.*top_door"),
    ],
)  # fmt: skip
def test_an_episode_that_cannot_be_is_refused(
    right: tuple[Raw, Apartment], change: Change, error: type[Exception], said: str
) -> None:
    raw, home = copy.deepcopy(right[0]), right[1]
    change(raw, home)
    episode = parse_rearrange(raw, "changed")
    with pytest.raises(error, match=said):
        check_episode(episode, home)


def free_start(raw: Raw, home: Apartment) -> None:
    """Two metres before the fridge, whose front looks along -y."""
    x, y, _ = home.of_kind("fridge")[0].pos
    raw["start_position"] = [x, 0.15, -(y - 1.5)]


@pytest.mark.parametrize(
    "change",
    [
        words(),
        free_start,
        door_at(1.5),
        door_at(1.95),  # a file says what is meant of furniture of another size
        lies_on(BOWL, "top"),  # as older files have it
        words(name_to_receptacle={}, markers=[]),
        words(target_receptacles=[], goal_receptacles=[]),
    ],
)
def test_an_episode_that_can_be_is_taken(right: tuple[Raw, Apartment], change: Change) -> None:
    raw, home = copy.deepcopy(right[0]), right[1]
    change(raw, home)
    check_episode(parse_rearrange(raw, "changed"), home)


def test_a_goal_in_an_open_drawer_is_where_the_drawer_is(right: tuple[Raw, Apartment]) -> None:
    """Pulled out by 0.4 m along -y; closed, nothing of the counter is there."""
    raw, home = copy.deepcopy(right[0]), right[1]
    _, link = raw["target_receptacles"][0]
    counter = home.of_kind("counter")[0]
    joint = counter.model.bodies[1 + link].name  # type: ignore[union-attr]
    x, y, z = home.middle(f"counter/{joint}")[:3]
    goal_at(x, y - 0.4, z)(raw, home)
    raw["goal_receptacles"][0] = ["counter_:0000", link]
    with pytest.raises(SceneError, match="at no receptacle of counter_:0000: counter/"):
        check_episode(parse_rearrange(raw, "closed"), home)
    raw["ao_states"] = {"counter_:0000": {str(link): 0.4}}
    check_episode(parse_rearrange(raw, "open"), home)


def test_a_goal_behind_a_wall_is_out_of_reach() -> None:
    """A table in the smaller of two rooms without a door; the robot drives to 0.32 m from the wall at x = 1."""
    sides = [
        ((2.0, 2.05, 1.0), (4.1, 0.05, 1.0)),
        ((2.0, -2.05, 1.0), (4.1, 0.05, 1.0)),
        ((1.0, 0, 1.0), (0.05, 2, 1.0)),
    ]
    sides += [((-2.05, 0, 1.0), (0.05, 2, 1.0)), ((6.05, 0, 1.0), (0.05, 2, 1.0))]
    walls = tuple(Shape(type="box", size=size, pos=pos) for pos, size in sides)
    home = Apartment(name="two", low=(-2, -2), high=(6, 2), walls=walls, fixtures=(table("table"),))
    top = home.middle("table/top")[:3]

    def raw(x: float) -> Raw:
        place = np.eye(4)
        place[:3, 3] = x, top[2], 0.0
        return {
            "scene_id": "two.scene_instance.json",
            "episode_id": "0",
            "rigid_objs": [["024_bowl.object_config.json", place.tolist()]],
            "targets": {BOWL: place.tolist()},
            "info": {},
        }

    with pytest.raises(
        SceneError, match=rf"the goal of {BOWL} at .* is out of reach: .* within 1\.9\d m .* 1\.5 m are"
    ):
        check_episode(parse_rearrange(raw(-0.3), "far"), home)
    check_episode(parse_rearrange(raw(0.3), "near"), home)


def on_the_table(raw: Raw, _: Apartment) -> None:
    """Both objects lie at their goals, which are there."""
    names = [name for name, _ in raw["rigid_objs"]]
    for name, goal in raw["targets"].items():
        raw["rigid_objs"][names.index(f"{name.partition('_:')[0]}.object_config.json")][1] = goal
    raw["target_receptacles"] = raw["goal_receptacles"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (words(goal_receptacles=[]), "episode 0 lacks goal_receptacles, of which plans are made"),
        (on_the_table, f"{BOWL} lies in nothing that opens, and set_table"),
    ],
)  # fmt: skip
def test_plans_need_what_files_may_leave_out(right: tuple[Raw, Apartment], change: Change, said: str) -> None:
    raw = copy.deepcopy(right[0])
    change(raw, right[1])
    episode = parse_rearrange(raw, "changed")
    with pytest.raises(DataError, match=said):
        subtask_plans("set_table", "train", [episode], home_of)


def test_plans_of_no_long_task_are_refused(right: tuple[Raw, Apartment]) -> None:
    with pytest.raises(UnknownNameError, match=r"long task 'wash_up'.*tidy_house"):
        subtask_plans("wash_up", "train", [], home_of)
