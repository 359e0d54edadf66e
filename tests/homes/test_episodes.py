"""Generated episodes: what is drawn, that it lies still in a scene made by itself, and that it is always the same."""

from __future__ import annotations

import fnmatch
import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
import pytest

from manikin.errors import AssetError, ConfigError, SceneError, UnknownNameError
from manikin.homes import apartment, free_space, furnish
from manikin.homes.episodes import LONG_TASKS, HomeEpisode, generate, home_of, scene_names, scene_of
from manikin.homes.objects import HOME_OBJECTS, OBJECT_SETS
from manikin.scene.builder import SceneBuilder
from manikin.spec.physics import Physics

TASKS = ("tidy_house", "prepare_groceries", "set_table")
SURFACES = ("*/top", "*/seat", "counter/left", "counter/right", "counter/sink")


def numbers_in(scene: str, task: str, count: int) -> list[int]:
    """Numbers of the first episodes in a scene, so that a test builds one apartment."""
    found = (k for k in itertools.count() if scene_of(task, k) == scene)
    return list(itertools.islice(found, count))


@pytest.fixture(scope="module")
def made() -> Callable[[str], list[HomeEpisode]]:
    """Two episodes of a task in apartment 1, made side by side."""
    kept: dict[str, list[HomeEpisode]] = {}

    def of(task: str) -> list[HomeEpisode]:
        if task not in kept:
            numbers = numbers_in("apartment1", task, 2)
            kept[task] = sorted(generate(task, numbers, rows=2), key=lambda one: one.number)
            assert [one.number for one in kept[task]] == numbers
        return kept[task]

    return of


@pytest.mark.parametrize("task", TASKS)
def test_objects_and_receptacles_are_those_of_the_task(task: str, made: Callable[[str], list[HomeEpisode]]) -> None:
    """Counts and places of Habitat's configurations, typed in anew."""
    for episode in made(task):
        count, targets = {"tidy_house": (30, 5), "prepare_groceries": (30, 3), "set_table": (29, 2)}[task]
        assert (len(episode.objects), len(episode.targets)) == (count, targets)
        starts = [episode.objects[one.object].receptacle for one in episode.targets]
        goals = [one.receptacle for one in episode.targets]
        if task == "set_table":
            assert [one.name for one in episode.objects[:2]] == ["024_bowl", "013_apple"]
            assert starts[0].startswith("counter/drawer") and starts[1] == "fridge/middle"
            assert goals == ["table/top", "table/top"]
        elif task == "prepare_groceries":
            assert starts[:2] == ["fridge/middle"] * 2 and starts[2] in ("counter/left", "counter/right")
            assert all(one in ("counter/left", "counter/right") for one in goals[:2]) and goals[2] == "fridge/middle"
            assert episode.joints == {"fridge": {"top_door": 1.5}}
        else:
            assert all(any(fnmatch.fnmatch(name, p) for p in SURFACES) for name in starts + goals)
        clutter = {one.name for one in episode.objects[targets:]}
        assert clutter <= set(OBJECT_SETS[task].clutter)


@pytest.mark.parametrize("task", TASKS)
def test_all_lies_still_on_its_receptacle_in_a_scene_of_its_own(
    task: str, made: Callable[[str], list[HomeEpisode]]
) -> None:
    """Each object as a plain part, stepped by MuJoCo for a second; goals overlap nothing."""
    episode = made(task)[0]
    home = home_of(episode.scene)
    b = SceneBuilder([], Physics())
    furnish(b, home)
    for k, one in enumerate(episode.objects):
        kind = HOME_OBJECTS[one.name]
        b.part(f"object{k}", kind.shapes, mass=kind.mass if len(kind.shapes) == 1 else None)
    model = b.compile().model
    data = mujoco.MjData(model)
    for mechanism, positions in episode.joints.items():
        for joint, value in positions.items():
            data.joint(f"{mechanism}/{joint}").qpos = value
    for k, one in enumerate(episode.objects):
        data.joint(f"object{k}").qpos = one.pose
        middle, half = home.middle(one.receptacle), np.array(home.receptacle(one.receptacle)[1].half)
        turn = np.empty(9)
        mujoco.mju_quat2Mat(turn, middle[3:])
        local = turn.reshape(3, 3).T @ (np.array(one.pose[:3]) - middle[:3])
        assert (np.abs(local[:2]) <= half[:2] + 0.1).all(), f"{one.name} is not over {one.receptacle}"
        bottom = local[2] + half[2] - HOME_OBJECTS[one.name].height
        assert abs(bottom) < 0.02, f"{one.name} is {bottom:.3f} m over the lower face of {one.receptacle}"
    for _ in range(100):
        mujoco.mj_step(model, data)
    for k, one in enumerate(episode.objects):
        assert np.linalg.norm(data.joint(f"object{k}").qpos[:3] - one.pose[:3]) < 0.01, (k, one)
    for target in episode.targets:
        data.joint(f"object{target.object}").qpos = target.goal
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        body = model.body(f"object{target.object}").id
        mine = (model.geom_bodyid[data.contact.geom] == body).any(1)
        assert (data.contact.dist[mine] > -0.002).all()
        data.joint(f"object{target.object}").qpos = episode.objects[target.object].pose


@pytest.mark.parametrize("task", TASKS)
def test_targets_and_goals_are_apart_and_a_robot_gets_near(task: str, made: Callable[[str], list[HomeEpisode]]) -> None:
    for episode in made(task):
        free = free_space(home_of(episode.scene), radius=0.32, arm=(0.56, 0.8), joints=episode.joints)
        ring = np.stack(np.meshgrid(np.arange(-1.5, 1.5, 0.05), np.arange(-1.5, 1.5, 0.05)), -1).reshape(-1, 2)
        ring = ring[np.linalg.norm(ring, axis=1) < 1.5]
        for one in episode.targets:
            start, goal = np.array(episode.objects[one.object].pose[:3]), np.array(one.goal[:3])
            assert np.linalg.norm(goal - start) >= 0.5
            for place in (start, goal):
                assert free.reachable(place[:2] + ring).any()


def test_an_episode_is_the_same_alone_and_beside_others(made: Callable[[str], list[HomeEpisode]]) -> None:
    first, second = made("set_table")
    assert list(generate("set_table", [second.number], rows=1)) == [second]
    assert first.objects != second.objects
    (other,) = generate("set_table", [second.number], rows=1, seed=1)
    assert other != second


def test_handles_count_objects_of_one_name(made: Callable[[str], list[HomeEpisode]]) -> None:
    episode = made("tidy_house")[0]
    names = [one.name for one in episode.objects]
    assert len(set(episode.handles)) == len(names)
    for name, count in Counter(names).items():
        assert [h for h in episode.handles if h.startswith(name)] == [f"{name}_:{k:04d}" for k in range(count)]


def test_splits_have_no_scene_in_common() -> None:
    train, val = scene_names("train"), scene_names("val")
    assert train == tuple(f"apartment{k}" for k in range(8)) and not set(train) & set(val)
    assert {scene_of("tidy_house", k, split="val") for k in range(100)} == set(val)


def test_splits_of_replicacad_are_those_of_ms_hab(data_root: Path) -> None:
    train, val = scene_names("train", "replicacad"), scene_names("val", "replicacad")
    assert (len(train), len(val)) == (63, 21)
    assert {name[:6] for name in train} == {"v3_sc0", "v3_sc1", "v3_sc2"} and {name[:6] for name in val} == {"v3_sc3"}


@pytest.mark.slow
def test_a_scene_of_replicacad_gets_an_episode(data_root: Path) -> None:
    (episode,) = generate("set_table", [0], collection="replicacad")
    home = home_of(episode.scene)
    assert home.receptacle(episode.objects[0].receptacle)[1].link == "drawer3"
    assert "Tbl1_Top1" in episode.targets[0].receptacle and len(episode.objects) == 29


def test_bad_input_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"long task.*wash_up.*tidy_house"):
        next(generate("wash_up", [0]))
    with pytest.raises(UnknownNameError, match=r"split.*test.*train"):
        next(generate("tidy_house", [0], split="test"))
    with pytest.raises(UnknownNameError, match=r"collection of scenes.*hssd.*apartments"):
        next(generate("tidy_house", [0], collection="hssd"))
    with pytest.raises(ConfigError, match="at least 1 row, not 0"):
        next(generate("tidy_house", [0], rows=0))
    with pytest.raises(ConfigError, match="numbers from 0 on, not -1"):
        next(generate("tidy_house", [-1]))
    monkeypatch.setenv("MANIKIN_DATA", str(tmp_path))
    with pytest.raises(AssetError, match="ReplicaCAD is not at"):
        next(generate("tidy_house", [0], collection="replicacad"))
    with pytest.raises(AssetError, match="ReplicaCAD is not at"):
        home_of("v3_sc0_staging_00")


def test_an_apartment_without_what_a_task_needs_is_named() -> None:
    from dataclasses import replace

    from manikin.homes.episodes.room import Room
    from manikin.homes.episodes.rules import places

    home = apartment(0)
    bare = replace(home, mechanisms=tuple(one for one in home.mechanisms if one.kind != "fridge"))
    with pytest.raises(SceneError, match=r"apartment0 has no receptacle like fridge/middle"):
        places(bare, LONG_TASKS["set_table"].errands[1].start)
    with pytest.raises(UnknownNameError, match="fridge"):
        Room(bare, LONG_TASKS["prepare_groceries"], 1)
