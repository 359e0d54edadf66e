"""HomeNavigate in written episodes: where it leads beside what the files' plans say, what is in hand and in the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import manikin
from manikin.data.formats.homes import EpisodeFolder, home_episodes
from manikin.data.formats.rearrange import PlannedSubtask, read_plans
from manikin.errors import ConfigError, UnknownNameError
from manikin.homes.episodes import HomeEpisode
from manikin.plan.executor import WaypointExecutor
from manikin.tasks.home.navigate import HomeNavigate
from manikin.tasks.home.pick import HomePick
from manikin.tasks.home.scene import spots
from manikin.tasks.home.written import in_episodes

pytest.importorskip("scipy", reason="maps of apartments need pip install 'manikin[meshes]'")

Found = dict[str, tuple[list[HomeEpisode], list[PlannedSubtask]]]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """Episodes read from files, and the plans of Navigate beside them, of two tasks."""
    found = {}
    for task in ("tidy_house", "set_table"):
        folder = EpisodeFolder(path=tmp_path_factory.mktemp(task), task=task, count=1)
        folder.open(resume=False)
        list(folder.make())
        episodes = home_episodes(folder.path / f"train/{task}.json.gz", task)
        found[task] = episodes, [one for plan in read_plans(folder.plan_file("navigate"))[1] for one in plan.subtasks]
    return found


def played(task: Any, seeds: list[int], **config: Any) -> Any:
    options = {"autoreset": "disabled", "terminate": False, "reward": "none", "threads": 1, "config": config or None}
    env = manikin.make(task, num_envs=1, **options)
    env.reset(seed=seeds)
    return env


def handles(env: Any) -> Any:
    (part,) = env.parts()
    return part.env.h, part.env.task


@pytest.mark.parametrize("before", ["pick", "place"])
def test_it_leads_where_the_plans_of_the_files_say(before: str, folders: Found) -> None:
    """To each object with empty hands, to its goal with it in hand; all else lies where the episode has it."""
    episodes, plans = folders["tidy_house"]
    kind = in_episodes(HomeNavigate, episodes, before=before)
    mine = [one for one in plans if (one.obj is not None) is (before == "place")]
    assert len(mine) == 5 == sum(len(parts) for parts in kind.written.values())
    for seed in (0, 3):
        env, plan = played(kind, [seed]), mine[seed]
        h, task = handles(env)
        assert task.goal(h)[0].numpy() == pytest.approx(np.array(plan.goal), abs=1e-4)
        assert [t.props[int(t.choice[0])].name for t in h.things] == ([plan.obj.rpartition("-")[0]] if plan.obj else [])
        lying = [one.pose[:3] for one in episodes[0].objects]
        if plan.obj:
            assert (h.things[0].pos - h.robot.tcp_pos).norm() < 0.2
            lying.pop(episodes[0].targets[seed].object)
        seen = np.array([one.pos[0].numpy() for one in h["clutter"].things])
        assert seen == pytest.approx(np.array(lying), abs=5e-3)
        env.close()


def test_before_a_drawer_its_object_is_in_it(folders: Found) -> None:
    """Shut before Open, drawn out before Pick, and taken out before Close."""
    episodes, _ = folders["set_table"]
    seen = {}
    for before in ("open", "pick", "close"):
        env = played(in_episodes(HomeNavigate, episodes, where="drawer", before=before), [0])
        h, task = handles(env)
        bowls = [t for t in h["clutter"].things if t.props[int(t.choice[0])].name == "024_bowl"]
        lying = np.array(episodes[0].objects[episodes[0].targets[0].object].pose[:3])
        away = [np.linalg.norm(one.pos[0].numpy() - lying) for one in bowls]
        goal = task.goal(h)[0].numpy()
        seen[before] = min(away, default=9.0), np.linalg.norm(goal[:2] - lying[:2]), goal
        env.close()
    assert seen["open"][0] < 0.01 and seen["close"][0] > 0.1
    assert seen["pick"][1] == pytest.approx(0.45, abs=0.01), "so far the drawer is out"
    assert np.linalg.norm(seen["close"][2] - seen["open"][2]) == pytest.approx(0.45, abs=1e-3)


def test_the_expert_brings_an_object_to_its_goal(folders: Found) -> None:
    env = played(in_episodes(HomeNavigate, folders["tidy_house"][0], before="place"), [1])
    expert = WaypointExecutor(env)
    done = False
    for _ in range(env.horizon):
        done = bool(env.step(expert.act())[-1]["success"])
        if done:
            break
    assert done
    env.close()


def test_it_starts_before_another_surface_where_that_is_asked_for(folders: Found) -> None:
    env = played(in_episodes(HomeNavigate, folders["tidy_house"][0]), [2], starts="previous")
    h, task = handles(env)
    (x, y, yaw), surfaces = task.seen(h).base[0].tolist(), spots(task.layout).goals
    away = np.hypot(surfaces[:, 0] - x, surfaces[:, 1] - y)
    off = np.arctan2(surfaces[:, 1] - y, surfaces[:, 0] - x) - yaw
    faced = np.abs((off + np.pi) % (2 * np.pi) - np.pi) <= 0.5 + 1e-4
    assert ((away <= 2.0 + 1e-5) & faced).any()
    env.close()


def test_what_cannot_be_is_named(folders: Found) -> None:
    (episodes, _), (table, _) = folders["tidy_house"], folders["set_table"]
    with pytest.raises(UnknownNameError, match="close, open, pick, place"):
        in_episodes(HomeNavigate, episodes, before="wash")
    with pytest.raises(ConfigError, match="before= is for HomeNavigate"):
        in_episodes(HomePick, episodes, before="place")
    with pytest.raises(ConfigError, match="where='drawer' or where='fridge'"):
        in_episodes(HomeNavigate, table, before="open")
    with pytest.raises(ConfigError, match="in none of the 1 episodes an object lies where='fridge'"):
        in_episodes(HomeNavigate, episodes, where="fridge")
    carrying = in_episodes(HomeNavigate, episodes, before="place")
    with pytest.raises(ConfigError, match="those of its episodes; leave out the option objects"):
        manikin.make(carrying, config={"objects": ("013_apple",)})
    with pytest.raises(ConfigError, match="is for in_episodes"):
        manikin.make(carrying, config={"before": "pick"})
