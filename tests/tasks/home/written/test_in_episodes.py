"""Home tasks in written episodes: what lies where, which seed is which episode, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import manikin
from manikin.data.formats.homes import EpisodeFolder, home_episodes
from manikin.env.registry import task_class
from manikin.errors import ConfigError, UnknownNameError
from manikin.eval.runner import run_episodes
from manikin.homes.episodes import HomeEpisode, generate
from manikin.policy.expert import ExpertPolicy
from manikin.tasks.home.doors.close import HomeClose
from manikin.tasks.home.doors.inside import one_front
from manikin.tasks.home.doors.open import HomeOpen
from manikin.tasks.home.long.prepare_groceries import PrepareGroceries
from manikin.tasks.home.long.set_table import SetTable
from manikin.tasks.home.long.tidy_house import TidyHouse
from manikin.tasks.home.pick import HomePick
from manikin.tasks.home.place import HomePlace
from manikin.tasks.home.written import in_episodes

TASKS = {"tidy_house": TidyHouse, "set_table": SetTable, "prepare_groceries": PrepareGroceries}


@pytest.fixture(scope="module")
def episodes() -> dict[str, list[HomeEpisode]]:
    """Two of each task. Those of TidyHouse are in one apartment, those of SetTable about two drawers."""
    numbers = {"tidy_house": (1, 2), "set_table": (0, 2), "prepare_groceries": (0, 1)}
    return {task: list(generate(task, numbers[task])) for task in TASKS}


def made(task, rows, seeds=None, **options):
    env = manikin.make(task, num_envs=rows, autoreset="disabled", threads=1, reward="none", **options)
    env.reset(seed=list(range(rows)) if seeds is None else seeds)
    return env


def bodies(env, row=0):
    """Name of each object and its pose (7,) in the row, by the name of the body."""
    part = env.parts(range(env.num_envs))
    inside = next(one for one in part if row in np.asarray(one.rows))
    at = int(np.flatnonzero(np.asarray(inside.rows) == row)[0])
    h = inside.env.h
    things = [*h.things] if hasattr(h, "things") else [h.thing]
    return [(t.props[int(t.choice[at])].name, t.pose[at].numpy()) for t in [*things, *h["clutter"].things]]


@pytest.mark.parametrize(("word", "device"), [*((word, "cpu") for word in TASKS), ("set_table", "warp:cpu")])
def test_all_objects_and_goals_are_those_of_the_episode(word, device, episodes) -> None:
    episode = episodes[word][0]
    if device != "cpu":  # where nothing sleeps, which takes a while
        episode = replace(episode, objects=episode.objects[:6])
    env = made(in_episodes(TASKS[word], [episode]), 1, device=device, config={"navigation": "teleported"})
    found = bodies(env)
    wanted = [episode.objects[one.object] for one in episode.targets]
    wanted += [one for k, one in enumerate(episode.objects) if k not in {t.object for t in episode.targets}]
    assert [name for name, _ in found] == [one.name for one in wanted] and len(wanted) in (6, 29, 30)
    for (_, pose), one in zip(found, wanted, strict=True):
        np.testing.assert_allclose(pose[:3], one.pose[:3], atol=2e-6)
        assert abs(pose[3:] @ np.array(one.pose[3:])) == pytest.approx(1.0, abs=1e-5)  # a quaternion's sign is free
    h = env.parts([0])[0].env.h
    np.testing.assert_allclose(h.goal.value[0], [one.goal[:3] for one in episode.targets], atol=1e-6)
    for mechanism, positions in episode.joints.items():
        for joint, value in positions.items():
            assert float(h.home.mechanism(mechanism).joint(joint)[0]) == pytest.approx(value, abs=1e-5)
    for _ in range(3):
        *_, info = env.step(torch.zeros(1, env.controller.card.size))
    assert not info["health"].any() and not info["fail"].any()
    now = bodies(env)
    moved = [np.abs(after[:3] - before[:3]).max() for (_, before), (_, after) in zip(found, now, strict=True)]
    assert max(moved) < 2e-3, "all had come to rest when the episode was made"
    env.close()


def test_a_seed_is_an_episode(episodes) -> None:
    """Layouts one after the other, and the episodes of each; round and round, also without a new seed."""
    first, second = episodes["tidy_house"]
    assert first.scene == second.scene
    task = in_episodes(TidyHouse, [first, second])
    assert task.layouts == (first.scene,) and task.id == "TidyHouse-v1"
    env = made(task, 3, [0, 1, 2], config={"targets": 1, "navigation": "teleported"})
    numbers = env.parts([0])[0].env.h["episode"].value.tolist()
    assert numbers == [0, 1, 0]
    apart = [bodies(env, row)[0][1] for row in range(3)]
    assert np.array_equal(apart[0], apart[2]) and not np.array_equal(apart[0], apart[1])
    assert len(bodies(env)) == 30, "targets that are left out stay in the way"
    env.close()


def test_the_drawer_is_that_of_the_episode(episodes) -> None:
    task = in_episodes(SetTable, episodes["set_table"])
    drawers = [one.objects[0].receptacle for one in episodes["set_table"]]
    assert task.layouts == tuple(f"{e.scene}/{d}" for e, d in zip(episodes["set_table"], drawers, strict=True))
    assert len(set(drawers)) == 2
    for layout, drawer in zip(task.layouts, drawers, strict=True):
        assert one_front(layout, "drawer").link == drawer.rpartition("/")[2]
        scene = layout.partition("/")[0]
        with pytest.raises(UnknownNameError, match=f"unknown drawer of {scene} 'counter/drawer99'. Valid: drawer"):
            one_front(f"{scene}/counter/drawer99", "drawer")


def test_an_object_in_a_drawer_comes_out_with_it(episodes) -> None:
    """To pick it, the drawer is open; it is as far out as that."""
    picked = in_episodes(HomePick, episodes["set_table"], where="drawer")
    env = made(picked, 1)
    (_, pose), *_ = bodies(env)
    episode, h = episodes["set_table"][0], env.parts([0])[0].env.h
    one = one_front(picked.layouts[0], "drawer")
    out = float(h.home.mechanism(one.mechanism).joint(one.joint)[0])
    assert out > 0.3
    np.testing.assert_allclose(
        pose[:3] - np.array(episode.objects[0].pose[:3]),
        [out * math.cos(one.yaw), out * math.sin(one.yaw), 0],
        atol=1e-5,
    )
    env.close()


@pytest.mark.parametrize(("task", "least"), [(HomePick, 3), (HomePlace, 3)])
def test_experts_handle_objects_among_the_others(task, least, episodes) -> None:
    """Of five objects; goals of Place are those of the episode."""
    kind = in_episodes(task, episodes["tidy_house"][:1])
    assert len(kind.written[kind.layouts[0]]) == 5
    env = made(kind, 5)
    h = env.parts([0])[0].env.h
    if task is HomePlace:
        goals = [one.goal[:3] for one in episodes["tidy_house"][0].targets]
        np.testing.assert_allclose(h.goal.value, goals, atol=1e-5)
    else:
        lying = [episodes["tidy_house"][0].objects[k].pose[:3] for k in range(5)]
        np.testing.assert_allclose(h.thing.pos, lying, atol=1e-5)
    run = run_episodes(env, ExpertPolicy(env), range(5))
    env.close()
    assert sum(bool(one.success_once) for one in run.results) >= least and not run.unhealthy


@pytest.mark.parametrize("task", [HomeOpen, HomeClose])
@pytest.mark.parametrize("where", ["drawer", "fridge"])
def test_what_is_opened_or_closed_is_what_the_object_is_in(task, where, episodes) -> None:
    """All objects are there, but for one that was taken out of a drawer. The expert does its drawer."""
    kind = in_episodes(task, episodes["set_table"], where=where)
    scenes = tuple(dict.fromkeys(one.scene for one in episodes["set_table"]))
    assert len(kind.layouts) == (2 if where == "drawer" else len(scenes))
    env = made(kind, 1)
    inside, episode = env.parts([0])[0].env, episodes["set_table"][0]
    (front,) = inside.task.fronts.each
    assert front.kind == where
    there = [t for t in inside.h["clutter"].things if bool(t.present[0])]
    taken = task is HomeClose and where == "drawer"
    assert len(there) == len(episode.objects) - taken
    names = [t.props[int(t.choice[0])].name for t in there]
    assert names == [one.name for one in episode.objects[int(taken) :]]
    shown = made(kind, 1, config={"published_state": True}).parts([0])[0].env
    seen = shown.task.observe(shown.h)["policy"]["object_from_base"][0].numpy()
    data = shown.world.data(0)[1]
    mine = next(one for one in episode.targets if where in episode.objects[one.object].receptacle)
    base, spot = data.body("robot/base_link"), np.array(episode.objects[mine.object].pose[:3])
    wanted = np.zeros(3) if taken else base.xmat.reshape(3, 3).T @ (spot - base.xpos)
    np.testing.assert_allclose(seen[:3], wanted, atol=2e-3)
    if where == "drawer":
        assert front.link == episode.objects[0].receptacle.rpartition("/")[2]
        run = run_episodes(env, ExpertPolicy(env), range(1))
        assert [bool(one.success_once) for one in run.results] == [True] and not run.unhealthy
    env.close()


def test_what_lies_in_the_way_rests_and_wakes_when_it_is_touched(episodes) -> None:
    """It keeps its bits while nothing comes near; a hand that drops a thing on it moves it."""
    env = made(in_episodes(HomePick, episodes["tidy_house"][:1]), 1)
    part = env.parts([0])[0].env
    clutter = part.h["clutter"].things
    before = [t.pose.clone() for t in clutter]
    for _ in range(10):
        env.step(torch.zeros(1, env.controller.card.size))
    still = [torch.equal(a, t.pose) for a, t in zip(before, clutter, strict=True)]
    assert sum(still) >= 24  # of 29; what touches the awake target is awake
    under = clutter[still.index(True)]
    part.h.thing.set_pose(under.pos + torch.tensor([[0.0, 0.0, 0.2]]))
    part.world.forward()
    for _ in range(20):
        env.step(torch.zeros(1, env.controller.card.size))
    assert not torch.equal(before[still.index(True)], under.pose)
    env.close()


def test_rows_are_as_alone(episodes) -> None:
    task = in_episodes(TidyHouse, episodes["tidy_house"])
    options = {"config": {"targets": 1, "navigation": "teleported"}}
    both, alone = made(task, 2, **options), made(task, 1, [1], **options)
    actions = torch.zeros(2, both.controller.card.size).uniform_(-0.2, 0.2, generator=torch.Generator().manual_seed(0))
    for _ in range(5):
        one, *_ = both.step(actions)
        two, *_ = alone.step(actions[1:])
        assert torch.equal(one[1:], two)
    for (_, mine), (_, its) in zip(bodies(both, 1), bodies(alone), strict=True):
        assert np.array_equal(mine, its)
    both.close()
    alone.close()


def test_a_file_of_ones_own_plays_a_folder_of_episodes(tmp_path: Path, monkeypatch) -> None:
    folder = EpisodeFolder(path=tmp_path / "made", task="set_table", count=2)
    folder.open(resume=False)
    assert sorted(folder.make()) == [0, 1]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "from manikin.data.formats.homes import home_episodes\n"
        "from manikin.tasks.home.long.set_table import SetTable\n"
        "from manikin.tasks.home.written import in_episodes\n"
        'Mine = in_episodes(SetTable, home_episodes("made/train/set_table.json.gz", "set_table"))\n'
    )
    task = task_class("mine.py")
    played = [part.episode for parts in task.written.values() for part in parts]
    generated = {one.number: one for one in generate("set_table", [0, 1])}
    for one in played:
        other = generated[one.number]
        assert (one.scene, one.task, one.split, one.joints) == (other.scene, "set_table", "train", dict(other.joints))
        assert [(o.name, o.receptacle) for o in one.objects] == [(o.name, o.receptacle) for o in other.objects]
        for mine, its in zip(one.objects, other.objects, strict=True):
            np.testing.assert_allclose(mine.pose[:3], its.pose[:3], atol=2e-6)
            assert abs(np.dot(mine.pose[3:], its.pose[3:])) == pytest.approx(1.0, abs=1e-5)
        assert [(t.object, t.receptacle) for t in one.targets] == [(t.object, t.receptacle) for t in other.targets]


def test_what_cannot_be_is_named(episodes, tmp_path) -> None:
    tidy, table = episodes["tidy_house"], episodes["set_table"]
    with pytest.raises(
        ConfigError, match=r"PickCube-v2 has no written episodes; those have TidyHouse, .*HomeClose, HomeNavigate"
    ):
        in_episodes(task_class("PickCube-v2"), tidy)
    with pytest.raises(ConfigError, match=r"TidyHouse-v1 needs at least one episode"):
        in_episodes(TidyHouse, [])
    with pytest.raises(ConfigError, match="episode 0 is one of set_table, not of tidy_house"):
        in_episodes(TidyHouse, table)
    with pytest.raises(ConfigError, match="episode 1 has 4 targets; TidyHouse-v1 has 5"):
        in_episodes(TidyHouse, [replace(tidy[0], targets=tidy[0].targets[:4])])
    out = replace(table[0].objects[0], receptacle="table/top")
    with pytest.raises(ConfigError, match="target 0 of episode 0 is at table/top; SetTable-v1 has it in a drawer"):
        in_episodes(SetTable, [replace(table[0], objects=(out, *table[0].objects[1:]))])
    with pytest.raises(UnknownNameError, match=r"unknown where 'shelf'. Valid: drawer, fridge, open"):
        in_episodes(HomePick, tidy, where="shelf")
    with pytest.raises(ConfigError, match="in none of the 2 episodes an object lies where='fridge'"):
        in_episodes(HomePick, tidy, where="fridge")
    with pytest.raises(ConfigError, match="where= is for the subtasks"):
        in_episodes(TidyHouse, tidy, where="fridge")
    with pytest.raises(ConfigError, match="HomeOpen-v1 is about the drawer or the fridge: say where='drawer'"):
        in_episodes(HomeOpen, table)
    with pytest.raises(ConfigError, match=r"what HomeOpen-v1 is about is for in_episodes\(..., where=\)"):
        made(in_episodes(HomeOpen, table, where="drawer"), 1, config={"mechanism": "fridge"})
    with pytest.raises(UnknownNameError, match=r"long task.*'tidy'"):
        home_episodes(tmp_path / "none.json", "tidy")
    strange = replace(tidy[0].objects[0], name="099_spoon")
    with pytest.raises(UnknownNameError, match="object of a home '099_spoon'"):
        in_episodes(TidyHouse, [replace(tidy[0], objects=(strange, *tidy[0].objects[1:]))])
    for task, word in ((TidyHouse, "objects"), (HomePick, "objects")):
        with pytest.raises(ConfigError, match=r"the objects of .* are those of its episodes"):
            made(in_episodes(task, tidy), 1, config={word: ("013_apple",)})
    with pytest.raises(ConfigError, match=r"in_episodes\(..., where=\)"):
        made(in_episodes(HomePick, tidy), 1, config={"where": "drawer"})
