"""A folder of generated episodes: written, read back, continued after a stop; plans; what does not fit is named."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manikin.cli import main
from manikin.data.formats.homes import EpisodeFolder, check_episode, habitat_episode, subtask_plans
from manikin.data.formats.rearrange import parse_rearrange, read_plans, read_rearrange
from manikin.errors import ConfigError, DataError, SceneError, UnknownNameError
from manikin.homes import apartment
from manikin.homes.episodes import generate, home_of


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> EpisodeFolder:
    """Three episodes of SetTable, made without a stop."""
    folder = EpisodeFolder(path=tmp_path_factory.mktemp("whole"), task="set_table", count=3)
    folder.open(resume=False)
    assert sorted(folder.make(rows=2)) == [0, 1, 2] and not folder.missing
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_files_have_the_published_layout(whole: EpisodeFolder) -> None:
    assert set(content(whole.path)) == {
        *(f"train/set_table/episode_{k}.json" for k in range(3)),
        *("train/set_table.about.json", "train/set_table.json.gz"),
        *(f"task_plans/set_table/{k}/train/all.json" for k in ("sequential", "navigate", "open", "pick")),
        *(f"task_plans/set_table/{k}/train/all.json" for k in ("place", "close")),
    }
    alone = json.loads(whole.file(1).read_bytes())
    listed = json.loads(gzip.decompress((whole.path / "train/set_table.json.gz").read_bytes()))["episodes"]
    assert listed[1] == alone and alone["episode_id"] == "1"
    published = {
        *("episode_id", "scene_id", "scene_dataset_config", "additional_obj_config_paths", "start_position"),
        *("start_rotation", "info", "ao_states", "rigid_objs", "targets", "markers", "target_receptacles"),
        *("goal_receptacles", "name_to_receptacle"),
    }
    assert set(alone) == published


def test_what_is_read_back_lies_where_it_was_put(whole: EpisodeFolder) -> None:
    """Poses in files have y upwards: (x, y, z) there is (x, -z, y) here."""
    (made,) = generate("set_table", [0])
    (read,) = read_rearrange(whole.file(0))
    assert [name for name, _ in read.objects] == [one.name for one in made.objects]
    for (_, pose), one in zip(read.objects, made.objects, strict=True):
        assert pose[:3, 3] == pytest.approx(one.pose[:3], abs=2e-6)
        w, x, y, z = one.pose[3:]
        first = (1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y))  # of the rotation's columns
        assert pose[:3, 0] == pytest.approx(first, abs=1e-5)
    assert list(read.goals) == ["024_bowl_:0000", "013_apple_:0000"]
    for (name, pose), one in zip(read.goals.items(), made.targets, strict=True):
        assert pose[:3, 3] == pytest.approx(one.goal[:3], abs=2e-6), name
    raw = read.raw["rigid_objs"][0][1]
    x, y, z = made.objects[0].pose[:3]
    assert [row[3] for row in raw[:3]] == pytest.approx([x, z, -y], abs=2e-6)


def test_the_plan_of_a_whole_task_is_ms_habs_sequence(whole: EpisodeFolder) -> None:
    dataset, plans = read_plans(whole.plan_file("sequential"))
    assert dataset == "ApartmentsSetTableTrain" and len(plans) == 3
    kinds = ["open", "pick", "place", "close"] * 2
    assert [one.kind for one in plans[2].subtasks] == [word for kind in kinds for word in ("navigate", kind)]
    assert [one.uid for one in plans[2].subtasks] == [f"set_table-sequential-train-2-{k}" for k in range(16)]
    assert all(one.uids == (one.uid,) for one in plans[2].subtasks)
    assert plans[2].episode == "train/set_table/episode_2.json"
    by_kind = {one.kind: one for one in plans[0].subtasks[:8]}
    (episode,) = read_rearrange(whole.file(0))
    home = apartment(int(episode.scene.removeprefix("apartment")))
    drawer = by_kind["open"].handle
    assert drawer is not None and drawer == by_kind["close"].handle == by_kind["pick"].handle
    counter = home.of_kind("counter")[0]
    body = counter.model.bodies[1 + drawer.link]  # type: ignore[union-attr]
    assert (drawer.kind, drawer.name) == ("kitchen_counter", "counter-0")
    assert body.joints[0].name == counter.joints[drawer.joint] == body.name  # type: ignore[union-attr]
    assert episode.start_receptacles[0] == ("counter_:0000", drawer.link)
    assert by_kind["navigate"].goal is None and by_kind["close"].remove is None
    assert by_kind["place"].goal == pytest.approx(episode.goals["024_bowl_:0000"][:3, 3])
    corners, goal = np.array(by_kind["place"].corners), np.array(by_kind["place"].goal)
    assert np.ptp(corners[:, 2]) == 0 and 0 < goal[2] - corners[0, 2] < 0.1  # half a bowl over the table
    assert (corners[:, :2].min(0) <= goal[:2]).all() and (goal[:2] <= corners[:, :2].max(0)).all()


def test_plans_of_one_subtask_have_goals(whole: EpisodeFolder) -> None:
    plans = {kind: read_plans(whole.plan_file(kind))[1] for kind in ("navigate", "open", "pick", "place", "close")}
    assert [len(of) for of in plans.values()] == [12, 6, 6, 6, 6]
    (episode,) = read_rearrange(whole.file(0))
    first, second, third = (plan.subtasks[0] for plan in plans["navigate"][:3])
    assert first.goal == pytest.approx(episode.placed("024_bowl_:0000")[:3, 3]) and first.previous_goal is None
    assert second.goal == plans["place"][0].subtasks[0].goal and second.obj == "024_bowl-0"
    assert second.previous_goal == first.goal and third.previous_goal == second.goal
    assert [plan.subtasks[0].remove for plan in plans["close"][:2]] == ["024_bowl-0", None]
    assert plans["pick"][3].subtasks[0].uid == "set_table-pick-train-3-0"


def test_stopped_half_way_and_continued_the_files_are_the_same(whole: EpisodeFolder, tmp_path: Path) -> None:
    folder = replace(whole, path=tmp_path)
    folder.open(resume=False)
    making = folder.make(rows=1)
    done = next(making)
    making.close()
    assert folder.missing == [k for k in range(3) if k != done]
    (tmp_path / "train/set_table/episode_1.tmp").write_bytes(b"half of an epis")  # as a power cut leaves it
    with pytest.raises(ConfigError, match=r"has episodes of set_table already.*--resume.*resume=True"):
        folder.open(resume=False)
    folder.open(resume=True)
    list(folder.make(rows=3))
    made = content(tmp_path)
    made.pop("train/set_table/episode_1.tmp", None)
    assert made == content(whole.path)


@pytest.mark.slow
def test_killed_half_way_and_continued_the_files_are_the_same(whole: EpisodeFolder, tmp_path: Path) -> None:
    words = ["home-episodes", "set_table", "--episodes", "3", "--rows", "1", "--out", str(tmp_path)]
    process = subprocess.Popen([sys.executable, "-m", "manikin.cli", *words], stdout=subprocess.DEVNULL)
    until = time.monotonic() + 120
    while not list(tmp_path.glob("train/set_table/*.json")) and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert 0 < len(list(tmp_path.glob("train/set_table/*.json"))) < 3
    assert not (tmp_path / "task_plans").exists()
    assert main([*words, "--resume"]) == 0
    made = {name: value for name, value in content(tmp_path).items() if not name.endswith(".tmp")}
    assert made == content(whole.path)


def test_the_command_says_what_it_made(
    whole: EpisodeFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in content(whole.path).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(value)
    words = ["home-episodes", "set_table", "--out", str(tmp_path)]
    assert main([*words, "--episodes", "3", "--resume"]) == 0
    assert "0 episodes made, 0 attempts rejected" in capsys.readouterr().out
    monkeypatch.setenv("MANIKIN_DATA", str(tmp_path))
    fresh = ["--out", str(tmp_path / "fresh")]
    for wrong, said in (
        (words, "has episodes of set_table already; continue them with --resume"),
        ([*words, "--resume", "--seed", "1"], "'seed': 0}, not of {'task': 'set_table'"),
        ([*words, "--resume", "--episodes", "0"], "at least 1 episode, not 0"),
        (["home-episodes", "wash_up", *fresh], "'wash_up'"),
        (["home-episodes", "set_table", "--split", "test", *fresh], "unknown split 'test'. Valid: train, val"),
        (["home-episodes", "set_table", "--scenes", "hssd", *fresh], "Valid: apartments, replicacad"),
        (["home-episodes", "set_table", "--scenes", "replicacad", *fresh], "ReplicaCAD is not at"),
        (["home-episodes", "set_table", "--rows", "0", *fresh], "--rows is at least 1, not 0"),
    ):
        assert main(wrong) == 2
        printed = capsys.readouterr()
        assert said in printed.err
        assert "making" not in printed.out  # no bar of what cannot be made
    assert not (tmp_path / "fresh").exists()


def test_a_damaged_folder_is_named(whole: EpisodeFolder, tmp_path: Path) -> None:
    folder = replace(whole, path=tmp_path)
    folder.open(resume=False)
    (tmp_path / "train/set_table.about.json").write_text("{")
    with pytest.raises(DataError, match=r"set_table\.about\.json: cannot be read"):
        folder.open(resume=True)
    with pytest.raises(DataError, match=r"episode_0\.json: cannot be read"):
        folder.read()


@pytest.mark.parametrize(
    "changes, error, said",
    [
        ({"target_receptacles": [["oven_:0000", 1], ["fridge_:0000", 1]]}, UnknownNameError, "oven_:0000.*fridge"),
        ({"goal_receptacles": [["table_:0000", None], ["fridge_:0000", 9]]}, UnknownNameError, "link of fridge.*body"),
        ({"ao_states": {"fridge_:0000": {"0": 1.5}}}, UnknownNameError, "link of fridge that moves.*2"),
        ({"ao_states": {"table_:0000": {"1": 1.5}}}, UnknownNameError, "link of table that moves"),
    ],
)
def test_an_episode_of_what_is_not_there_is_named(
    changes: dict[str, Any], error: type[Exception], said: str, whole: EpisodeFolder
) -> None:
    (episode,) = read_rearrange(whole.file(0))
    home = home_of(episode.scene)
    check_episode(episode, home)
    with pytest.raises(error, match=said):
        check_episode(parse_rearrange({**episode.raw, **changes}, "changed"), home)
    with pytest.raises(error, match=said):
        subtask_plans("set_table", "train", [parse_rearrange({**episode.raw, **changes}, "changed")], home_of)


def test_unknown_objects_and_goals_outside_are_named(whole: EpisodeFolder) -> None:
    (episode,) = read_rearrange(whole.file(0))
    home = home_of(episode.scene)
    things = [*episode.raw["rigid_objs"], ["099_anvil.object_config.json", episode.raw["rigid_objs"][0][1]]]
    with pytest.raises(UnknownNameError, match=r"object of a home.*099_anvil.*024_bowl"):
        check_episode(parse_rearrange({**episode.raw, "rigid_objs": things}, "changed"), home)
    far = [[1, 0, 0, 50.0], [0, 1, 0, 1.0], [0, 0, 1, 2.0], [0, 0, 0, 1]]
    goals = {**episode.raw["targets"], "013_apple_:0000": far}
    with pytest.raises(SceneError, match=r"013_apple_:0000 at \(50\.00, -2\.00, 1\.00\) m is outside of apartment"):
        check_episode(parse_rearrange({**episode.raw, "targets": goals}, "changed"), home)
    with pytest.raises(DataError, match="has 2 targets; tidy_house has 5"):
        subtask_plans("tidy_house", "train", [episode], home_of)


def test_open_doors_are_written_by_their_link(whole: EpisodeFolder) -> None:
    """The fridge's upper door is link 2 of ReplicaCAD's fridge (root, body, top_door), 1 of a built-in one."""
    (made,) = generate("set_table", [0])
    home = home_of(made.scene)
    opened = replace(made, joints={"fridge": {"top_door": 1.5}})
    names = [body.name for body in home.of_kind("fridge")[0].model.bodies[1:]]  # type: ignore[union-attr]
    assert habitat_episode(opened, home).joints == {"fridge_:0000": {names.index("top_door"): 1.5}}
