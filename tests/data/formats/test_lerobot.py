"""LeRobotDataset v3.0: what is written is read back with pyarrow and PyAV alone."""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import manikin
from manikin.cli import main
from manikin.data.formats.convert import to_lerobot
from manikin.data.formats.lerobot import LeRobotWriter
from manikin.data.recorder import Recorder
from manikin.data.recording.format import RecordedEpisode
from manikin.data.recording.read import read_episodes
from manikin.data.recording.write import EpisodeWriter
from manikin.data.statistics import aggregate, summarize
from manikin.errors import ConfigError, DataError, UnknownNameError
from manikin.eval.runner import run_episodes
from manikin.policy.random_policy import RandomPolicy
from manikin.view.sources import open_source
from toy_episodes import HEADER, toy_episode
from toy_frames import FEATURES, frames

pq = pytest.importorskip("pyarrow.parquet", reason="needs manikin[data]")
av = pytest.importorskip("av", reason="needs manikin[data]")


def pictures(root: Path, key: str, row: dict) -> np.ndarray:
    path = root / f"videos/{key}/chunk-{row[f'videos/{key}/chunk_index']:03d}"
    path /= f"file-{row[f'videos/{key}/file_index']:03d}.mp4"
    start, end = row[f"videos/{key}/from_timestamp"], row[f"videos/{key}/to_timestamp"]
    with av.open(str(path)) as video:
        found = [f.to_ndarray(format="rgb24") for f in video.decode(video=0) if start - 1e-6 <= f.time < end - 1e-6]
    return np.stack(found)


def test_a_dataset_reads_back_and_is_described_right(tmp_path: Path) -> None:
    root, lengths = tmp_path / "set", {3: 7, 0: 5, 9: 11}
    with LeRobotWriter(root, fps=20, robot="panda", features=FEATURES) as writer:
        for number, length in lengths.items():
            writer.write(number, f"task {number % 2}", frames(number, length))
    info = json.loads((root / "meta/info.json").read_text())
    assert info["codebase_version"] == "v3.0" and info["fps"] == 20 and info["robot_type"] == "panda"
    assert (info["total_episodes"], info["total_frames"], info["total_tasks"]) == (3, 23, 2)
    assert not (root / "meta/parts").exists()
    rows = pq.read_table(root / "meta/episodes/chunk-000/file-000.parquet").to_pylist()
    data = pq.read_table(root / "data/chunk-000/file-000.parquet").to_pydict()
    tasks = pq.read_table(root / "meta/tasks.parquet").to_pydict()
    assert data["index"] == list(range(23)) and tasks["task"] == ["task 0", "task 1"]
    for row, number in zip(rows, sorted(lengths), strict=True):
        span = slice(row["dataset_from_index"], row["dataset_to_index"])
        made = frames(number, lengths[number])
        assert row["length"] == lengths[number] and row["tasks"] == [f"task {number % 2}"]
        for name in ("observation.state", "action", "next.done"):
            got = np.array(data[name][span]).reshape(made[name].shape)
            assert (got == made[name]).all(), name
        assert data["frame_index"][span] == list(range(lengths[number]))
        assert np.allclose(data["timestamp"][span], np.arange(lengths[number]) / 20, atol=1e-6)
        assert {data["task_index"][i] for i in range(span.start, span.stop)} == {number % 2}
        film = pictures(root, "observation.images.top", row)
        assert film.shape == made["observation.images.top"].shape
        assert np.abs(film.astype(int) - made["observation.images.top"]).mean() < 4  # compressed
        assert np.allclose(row["stats/action/mean"], made["action"].mean(0), atol=1e-6)


def test_statistics_of_episodes_add_up_to_those_of_all_frames() -> None:
    draw = np.random.Generator(np.random.Philox(1))
    parts = [draw.normal(size=(n, 4)) * 3 + n for n in (5, 17, 40)]
    whole = np.concatenate(parts)
    found = aggregate([{"x": summarize(part)} for part in parts])["x"]
    for name, value in (("min", whole.min(0)), ("max", whole.max(0)), ("mean", whole.mean(0)), ("std", whole.std(0))):
        assert np.allclose(found[name], value, atol=1e-12), name
    assert found["count"] == [62]
    assert np.allclose(summarize(whole)["q10"], np.quantile(whole, 0.1, axis=0))
    image = np.zeros((2, 4, 4, 3), np.uint8)
    image[..., 1] = 255
    assert summarize(image, picture=True)["mean"] == [[[0.0]], [[1.0]], [[0.0]]]


def test_an_interrupted_writer_goes_on_and_bad_frames_are_refused(tmp_path: Path) -> None:
    root = tmp_path / "set"
    writer = LeRobotWriter(root, fps=20, robot="panda", features=FEATURES)
    writer.write(0, "a", frames(0, 5))
    with pytest.raises(DataError, match="the dataset"):
        writer.write(1, "a", {"action": np.zeros((3, 2), np.float32)})
    with pytest.raises(DataError, match=r"action: \(5, 3\) is not \(5, 2\)"):
        writer.write(1, "a", frames(0, 5) | {"action": np.zeros((5, 3), np.float32)})
    (root / "meta/parts/000001.0.mp4").write_bytes(b"half a film")  # killed between film and table
    with pytest.raises(DataError, match="exists"):
        LeRobotWriter(root, fps=20, robot="panda", features=FEATURES)
    with pytest.raises(DataError, match=r"cannot be resumed with other options: fps: 20 then, 10 now\. Repeat"):
        LeRobotWriter(root, fps=10, robot="panda", features=FEATURES, resume=True)
    with LeRobotWriter(root, fps=20, robot="panda", features=FEATURES, resume=True) as writer:
        assert writer.finished == [0]
        writer.write(1, "a", frames(1, 6))
    assert json.loads((root / "meta/info.json").read_text())["total_frames"] == 11
    with pytest.raises(ConfigError, match="complex64"):
        LeRobotWriter(tmp_path / "other", fps=20, robot="x", features={"a": ("complex64", (1,), None)})
    odd = {"observation.images.a": ("video", (32, 31, 3), None)}
    with pytest.raises(ConfigError, match="31 x 32 pixels; videos have an even number"):
        LeRobotWriter(tmp_path / "other", fps=20, robot="x", features=odd)
    assert not (tmp_path / "other").exists()
    with pytest.raises(DataError, match="no finished episode"):
        LeRobotWriter(tmp_path / "empty", fps=20, robot="x", features=FEATURES).close()


def test_a_folder_that_cannot_be_made_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"cannot write .*file.set: "):
        LeRobotWriter(tmp_path / "file" / "set", fps=20, robot="toy", features={"action": ("float32", (2,), None)})


def test_videos_that_are_missing_or_cut_short_are_named_and_written_again(tmp_path: Path) -> None:
    root = tmp_path / "set"
    writer = LeRobotWriter(root, fps=20, robot="panda", features=FEATURES)
    for number in range(3):
        writer.write(number, "a", frames(number, 5))
    (root / "meta/parts/000001.0.mp4").unlink()
    other = LeRobotWriter(tmp_path / "short", fps=20, robot="panda", features=FEATURES)
    other.write(1, "a", frames(1, 3))
    shutil.copy(tmp_path / "short/meta/parts/000001.0.mp4", root / "meta/parts/000002.0.mp4")  # too few pictures
    assert writer.finished == [0, 2]
    with pytest.raises(DataError, match=r"000002\.0\.mp4 is damaged: 3 pictures for 5 frames; remove it and resume"):
        writer.close()
    (root / "meta/parts/000002.0.mp4").write_bytes(b"no film at all")
    with pytest.raises(DataError, match=r"cannot complete .*Every episode is safe in .*parts"):
        writer.close()
    assert not (root / "meta/info.json").exists()
    (root / "meta/parts/000002.0.mp4").unlink()
    with LeRobotWriter(root, fps=20, robot="panda", features=FEATURES, resume=True) as writer:
        assert writer.finished == [0]
        for number in (1, 2):
            writer.write(number, "a", frames(number, 5))
    assert json.loads((root / "meta/info.json").read_text())["total_frames"] == 15


@pytest.mark.parametrize("step", range(6))
def test_a_writer_that_is_killed_while_it_begins_leaves_nothing_in_the_way(
    step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, left = tmp_path / "set", step

    def killed_at(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **more: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
            return function(*given, **more)

        return call

    with monkeypatch.context() as patch:
        for place, name in ((os, "mkdir"), (os, "replace"), (os, "fsync")):
            patch.setattr(place, name, killed_at(getattr(place, name)))
        with pytest.raises(KeyboardInterrupt):
            LeRobotWriter(root, fps=20, robot="panda", features=FEATURES)
    again = LeRobotWriter(root, fps=20, robot="panda", features=FEATURES, resume=root.exists())
    again.write(0, "a", frames(0, 5))
    again.close()
    assert json.loads((root / "meta/info.json").read_text())["total_frames"] == 5
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


CHILD = """
import sys
sys.path.insert(0, {tests!r})
from toy_episodes import HEADER, toy_episode
from toy_frames import FEATURES, frames
from manikin.data.formats.lerobot import LeRobotWriter
writer = LeRobotWriter({root!r}, fps=20, robot="panda", features=FEATURES, resume=True)
begin = max(writer.finished, default=-1) + 1
print("ready", flush=True)
for number in range(begin, begin + 100):
    writer.write(number, "a", frames(number, 200))
    print(number, flush=True)
"""


def test_a_killed_video_encoder_loses_no_finished_episode(tmp_path: Path) -> None:
    root, inside = tmp_path / "set", 0
    reported: set[int] = set()
    LeRobotWriter(root, fps=20, robot="panda", features=FEATURES)
    for round_ in range(4):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD.format(tests=str(Path(__file__).parents[2] / "helpers"), root=str(root))],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        reported |= {int(child.stdout.readline()) for _ in range(round_ % 2)}
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:  # until a film is being written
            time.sleep(0.001 + 0.002 * round_)
            child.send_signal(signal.SIGSTOP)  # so that this process has time to look
            if list(root.glob("meta/parts/*.0.tmp")):
                break
            child.send_signal(signal.SIGCONT)
        child.kill()
        reported |= {int(line) for line in child.stdout.read().splitlines()}
        child.stdout.close()
        child.wait()
        inside += bool(list(root.glob("meta/parts/*.0.tmp")))
        assert reported <= set(LeRobotWriter.reopen(root).finished)
    assert inside and reported, "no kill fell into the encoder, or nothing was written"
    with LeRobotWriter.reopen(root) as writer:
        kept = writer.finished
    rows = pq.read_table(root / "meta/episodes/chunk-000/file-000.parquet").to_pylist()
    assert len(rows) == len(kept) and not (root / "meta/parts").exists()
    for row, number in zip(rows, kept, strict=True):
        film, made = pictures(root, "observation.images.top", row), frames(number, 200)["observation.images.top"]
        assert film.shape == made.shape and np.abs(film.astype(int) - made).mean() < 4


def test_a_conversion_killed_at_any_point_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, root = tmp_path / "run.h5", tmp_path / "set"
    header = dataclasses.replace(HEADER, fingerprint={**HEADER.fingerprint, "robot": "panda"})
    film = np.random.Generator(np.random.Philox(0)).integers(0, 255, (31, 32, 32, 3), dtype=np.uint8)
    with EpisodeWriter(run, header) as writer:
        for number in range(3):
            seen = {"policy/qpos": np.zeros((31, 2), np.float32), "cameras/top/rgb": film}
            writer.write(dataclasses.replace(toy_episode(number), observations=seen))

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:  # all episodes are there, not joined
        patched.setattr(LeRobotWriter, "join_parts", die)
        with pytest.raises(KeyboardInterrupt):
            to_lerobot(run, root)
    (root / "meta/parts/000001.0.mp4").unlink()  # the table is there, the film is not
    written: list[int] = []
    with monkeypatch.context() as patched:
        patched.setattr(LeRobotWriter, "join_parts", die)
        with pytest.raises(KeyboardInterrupt):
            to_lerobot(run, root, resume=True, on_episode=lambda: written.append(1))
    assert written == [1]
    with monkeypatch.context() as patched:  # nothing left but joining; then the parts are not removed
        patched.setattr(shutil, "rmtree", die)
        with pytest.raises(KeyboardInterrupt):
            to_lerobot(run, root, resume=True)
    assert json.loads((root / "meta/info.json").read_text())["total_frames"] == 90
    with pytest.raises(DataError, match="is complete: nothing to resume"):
        to_lerobot(run, root, resume=True)
    assert not (root / "meta/parts").exists()
    (root / "videos/observation.images.top/chunk-000/file-000.mp4").unlink()
    with pytest.raises(DataError, match=r"lacks videos/observation\.images\.top/.*/file-000\.mp4, .*convert again"):
        to_lerobot(run, root, resume=True)
    (root / "meta/episodes/chunk-000/file-000.parquet").write_bytes(b"no table")
    with pytest.raises(DataError, match=r"was completed, but is damaged .*convert again"):
        to_lerobot(run, root, resume=True)


@pytest.mark.skipif(sys.platform == "win32", reason="limits on file sizes are POSIX")
def test_a_full_disk_is_an_error_that_loses_no_episode(tmp_path: Path) -> None:
    import resource

    root = tmp_path / "set"
    writer = LeRobotWriter(root, fps=20, robot="panda", features=FEATURES)
    writer.write(0, "a", frames(0, 40))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, before[1]))
        with pytest.raises(DataError, match=r"cannot write episode 1: .*what was written before it is safe"):
            writer.write(1, "a", frames(1, 40))
        with pytest.raises(DataError, match=r"cannot complete .*Every episode is safe"):
            writer.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert writer.finished == [0]
    writer.write(1, "a", frames(1, 40))
    writer.close()
    assert json.loads((root / "meta/info.json").read_text())["total_frames"] == 80


def test_a_recording_becomes_a_dataset_with_pictures_it_did_not_hold(tmp_path: Path) -> None:
    env = manikin.make("PickCube-v2", 2, horizon=4, autoreset="disabled")
    recorder = Recorder(env, tmp_path / "run.h5", policy="random")
    run_episodes(env, RandomPolicy(env), range(3), observers=[recorder])
    recorder.close()
    env.close()
    with pytest.raises(DataError, match="--observe"):
        to_lerobot(tmp_path / "run.h5", tmp_path / "none")
    root, words = tmp_path / "set", ["--observe", "rgb", "--camera", "hand_camera", "--size", "32", "24"]
    assert main(["convert", str(tmp_path / "run.h5"), str(root), *words, "--renderer", "rays", "--num-envs", "2"]) == 0
    info = json.loads((root / "meta/info.json").read_text())
    assert info["fps"] == 20 and info["total_frames"] == 12
    pictured = {name: feature["shape"] for name, feature in info["features"].items() if feature["dtype"] == "video"}
    assert pictured == {"observation.images.hand_camera": [24, 32, 3]}
    data = pq.read_table(root / "data/chunk-000/file-000.parquet").to_pydict()
    with read_episodes(tmp_path / "run.h5") as episodes:
        actions = np.concatenate([episode.actions for episode in episodes])
    assert (np.array(data["action"], np.float32) == actions).all()
    names = info["features"]["observation.state"]["names"]
    assert names[:2] == ["policy/qpos[0]", "policy/qpos[1]"] and len(names) == len(data["observation.state"][0])
    rows = pq.read_table(root / "meta/episodes/chunk-000/file-000.parquet").to_pylist()
    film = pictures(root, "observation.images.hand_camera", rows[2])
    assert film.shape == (4, 24, 32, 3) and film.std() > 10


# ---- played again, or not what it was begun with ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def flat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two episodes that do not end early, with one flat vector of everything as observation."""
    path = tmp_path_factory.mktemp("flat") / "run.h5"
    env = manikin.make("PickCube-v2", 2, horizon=6, autoreset="disabled", observe="state", terminate=False)
    recorder = Recorder(env, path, policy="random", observations=True)
    run_episodes(env, RandomPolicy(env), range(2), observers=[recorder])
    recorder.close()
    env.close()
    return path


def table(root: Path) -> dict[str, np.ndarray]:
    data = pq.read_table(root / "data/chunk-000/file-000.parquet").to_pydict()
    return {name: np.array(values) for name, values in data.items()}


def test_what_parts_when_played_again_is_refused_and_can_be_observed_in_its_states(flat: Path, tmp_path: Path) -> None:
    bent = Path(shutil.copy(flat, tmp_path / "bent.h5"))
    with h5py.File(bent, "r+") as file:  # of the first episode, what the action after the second did is not this
        file["block_0/steps/actions"][2, 0] = -np.sign(file["block_0/steps/actions"][2, 0])
    with pytest.raises(DataError, match=r"episode 0 deviates from the recording after action 2 of 6 \(the state\)"):
        to_lerobot(bent, tmp_path / "a", observe="state_dict")
    assert main(["convert", str(bent), str(tmp_path / "b"), "--observe", "state_dict"]) == 2
    others = to_lerobot(bent, tmp_path / "others", observe="state_dict", numbers=[1])
    words = [
        "convert",
        str(bent),
        str(tmp_path / "c"),
        "--observe",
        "state_dict",
        "--from",
        "states",
        "--num-envs",
        "1",
    ]
    assert main(words) == 0
    with read_episodes(flat) as episodes:
        seen = np.concatenate([e.observations["value"][:-1] for e in episodes if e.observations])
    made = table(tmp_path / "c")
    got = np.concatenate([made["observation.state"], made["observation.environment_state"]], 1)
    assert got == pytest.approx(seen, abs=1e-6)
    assert (table(others)["observation.state"] == made["observation.state"][6:]).all()
    with h5py.File(bent, "r+") as file:  # as where the task's idea of success is another today
        file["block_0/steps/success"][8] = True
    with pytest.raises(DataError, match=r"episode 1 deviates from the recording after action 2 of 6 \(success\)"):
        to_lerobot(bent, tmp_path / "d", observe="state_dict", numbers=[1])
    with pytest.raises(UnknownNameError, match=r"'state'.*actions, states"):
        to_lerobot(flat, tmp_path / "e", observe="rgb", way="state")
    with pytest.raises(ConfigError, match="only valid with observe="):
        to_lerobot(flat, tmp_path / "e", way="states")
    assert main(["convert", str(flat), str(tmp_path / "e"), "--size", "8", "8"]) == 2
    assert main(["convert", str(flat), str(tmp_path / "e"), "--episodes", "7"]) == 2  # there is none
    assert not (tmp_path / "e").exists()


@pytest.mark.parametrize("observe", [None, "state"])
def test_a_flat_observation_is_parted_into_what_a_policy_may_know_and_the_rest(
    flat: Path, tmp_path: Path, observe: str | None
) -> None:
    named = to_lerobot(flat, tmp_path / "named", observe="state_dict")
    root = to_lerobot(flat, tmp_path / "set", observe=observe)
    features = [json.loads((at / "meta/info.json").read_text())["features"] for at in (root, named)]
    assert features[0] == features[1]
    hidden = features[0]["observation.environment_state"]["names"]
    assert "privileged/cube_pose[0]" in hidden and not set(hidden) & set(features[0]["observation.state"]["names"])
    for key in ("observation.state", "observation.environment_state"):
        assert (table(root)[key] == table(named)[key]).all()


def seen_episode(number: int, **more: np.ndarray) -> RecordedEpisode:
    qpos = np.full((31, 2), number, np.float32)
    return dataclasses.replace(toy_episode(number), observations={"policy/qpos": qpos, **more})


ROBOT = dataclasses.replace(HEADER, fingerprint={**HEADER.fingerprint, "robot": "panda"})


def test_actions_beyond_the_limits_are_written_as_they_were_taken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    episode = seen_episode(0)
    with EpisodeWriter(tmp_path / "run.h5", ROBOT) as writer:
        writer.write(dataclasses.replace(episode, actions=4 * episode.actions))
    with caplog.at_level(logging.WARNING, "manikin.data"):
        got = table(to_lerobot(tmp_path / "run.h5", tmp_path / "set"))["action"]
    beyond = int((np.abs(4 * episode.actions) > 1).sum())
    assert beyond > 100 and np.abs(got).max() == 1
    assert got == pytest.approx((4 * episode.actions).clip(-1, 1))
    assert f"{beyond} of 240 numbers of actions were beyond [-1, 1]" in caplog.text
    stats = json.loads((tmp_path / "set/meta/stats.json").read_text())["action"]
    assert stats["max"] == [1.0] * 8 and stats["min"] == [-1.0] * 8


def test_the_table_of_episodes_says_how_each_went_and_the_viewer_reads_it(tmp_path: Path) -> None:
    pressed = {"total": np.linspace(0, 7, 30, dtype=np.float32)}
    with EpisodeWriter(tmp_path / "run.h5", ROBOT) as writer:
        writer.write(dataclasses.replace(seen_episode(4), mode="straightforward_success", forces=pressed))
    with EpisodeWriter(tmp_path / "old.h5", ROBOT) as writer:  # of before forces and modes were kept
        writer.write(seen_episode(5))
    (one,) = open_source(to_lerobot(tmp_path / "run.h5", tmp_path / "set")).about()["episodes"]
    with read_episodes(tmp_path / "run.h5") as episodes:
        wanted = {k: v for k, v in episodes.attributes(4).items() if k in one and k not in ("number", "length")}
    assert set(wanted) == {"seed", "index", "health", "mode", "instruction", "return"} | {
        *("success_once", "success_at_end", "force_sum", "force_peak")
    }
    assert {k: one[k] for k in wanted} == wanted and one["force_peak"] == 7
    assert one["number"] == 0 and one["mode"] == "straightforward_success" and one["success_once"] is True
    row = pq.read_table(tmp_path / "set/meta/episodes/chunk-000/file-000.parquet").to_pylist()[0]
    assert row["manikin/number"] == 4
    (other,) = open_source(to_lerobot(tmp_path / "old.h5", tmp_path / "old")).about()["episodes"]
    assert other["success_once"] is False and "force_peak" not in other


def test_what_a_dataset_cannot_hold_is_refused_or_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    depth = {"cameras/top/depth": np.ones((31, 8, 8), np.float32), "cameras/top/K": np.ones((31, 3, 3), np.float32)}
    with EpisodeWriter(tmp_path / "run.h5", ROBOT) as writer:
        writer.write(seen_episode(0, **depth), seen_episode(1, **depth))
    for word, named in (("rgb+depth", "no depth:"), ("depth+segmentation", "no depth or segmentation:")):
        with pytest.raises(ConfigError, match=named):
            to_lerobot(tmp_path / "run.h5", tmp_path / "set", observe=word)
    assert not (tmp_path / "set").exists()
    with caplog.at_level(logging.WARNING, "manikin.data"):
        to_lerobot(tmp_path / "run.h5", tmp_path / "set")
    assert [r.getMessage().split("; ")[1] for r in caplog.records] == ["left out: cameras/top/depth"]


def test_another_recording_or_choice_does_not_go_on_with_a_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / "one.h5", tmp_path / "two.h5"]
    for i, path in enumerate(paths):
        with EpisodeWriter(path, dataclasses.replace(ROBOT, created=f"2026-01-0{i + 1}T00:00:00+00:00")) as writer:
            writer.write(*(seen_episode(n) for n in range(3)))
    root, turns = tmp_path / "set", iter([False, False, True, True])
    to_lerobot(paths[0], root, stop=lambda: next(turns))
    assert LeRobotWriter.reopen(root).finished == [0, 1]
    with pytest.raises(
        DataError,
        match=r"cannot be resumed with other options: source/created: .*-01T.* then, .*-02T.* now; source/file",
    ):
        to_lerobot(paths[1], root, resume=True)
    with pytest.raises(
        DataError, match="source/how: 'recorded' then, 'states' now; source/observe: None then, 'state'"
    ):
        to_lerobot(paths[0], root, observe="state", way="states", resume=True)
    with pytest.raises(DataError, match=r"episodes that are not selected now: 0\. Select"):
        to_lerobot(paths[0], root, numbers=[1, 2], resume=True)
    to_lerobot(paths[0], root, resume=True)
    assert json.loads((root / "meta/info.json").read_text())["total_episodes"] == 3
