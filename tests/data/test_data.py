"""Recordings: the format, durability against SIGKILL, and what is said about files that cannot be read."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from manikin.data.dataset import Dataset
from manikin.data.recorder import Recorder
from manikin.data.recording.format import FORMAT_VERSION, Header, RecordedEpisode, flatten, parts_folder
from manikin.data.recording.read import EpisodeFile, read_episodes
from manikin.data.recording.write import EpisodeWriter
from manikin.data.replay.verify import replay
from manikin.errors import DataError, UnknownNameError
from manikin.eval.runner import run_episodes
from toy_env import Chase, ToyEnv
from toy_episodes import HEADER, toy_episode


def assert_same(a: RecordedEpisode, b: RecordedEpisode) -> None:
    fa, fb = vars(a), vars(b)
    for name in fa:
        left, right = flatten(fa[name]), flatten(fb[name])
        assert left.keys() == right.keys(), name
        for key in left:
            x, y = np.asarray(left[key]), np.asarray(right[key])
            assert x.dtype == y.dtype and x.shape == y.shape and (x == y).all(), (name, key)


def test_round_trip_is_bit_exact_before_and_after_the_merge(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "run.h5"
    writer = EpisodeWriter(path, HEADER)
    for number in (2, 0, 5):
        writer.write(toy_episode(number))
    with read_episodes(path) as unfinished:  # only parts exist
        assert unfinished.numbers == [0, 2, 5] and not path.exists()
        for episode in unfinished:
            assert_same(episode, toy_episode(episode.number))
    writer.close()
    assert not parts_folder(path).exists()
    with read_episodes(path) as merged:
        assert merged.numbers == [0, 2, 5]
        for number in merged.numbers:
            assert_same(merged[number], toy_episode(number))
        assert merged.header is not None
        assert merged.header.task == "Toy-v1" and merged.header.processor == "x86_64 test"
        assert dict(merged.header.fingerprint) == dict(HEADER.fingerprint)
        about = merged.attributes(2)
        assert about["seed"] == 1002 and about["index"] == 2 and about["length"] == 30 and about["success_once"]
        assert about["return"] == pytest.approx(toy_episode(2).rewards.astype(np.float64).sum(), abs=1e-9)


def test_resume_continues_and_refuses_another_source(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    with EpisodeWriter(path, HEADER) as writer:
        writer.write(toy_episode(0))
    with pytest.raises(DataError, match="exists"):
        EpisodeWriter(path, HEADER)
    other = Header(fingerprint={**HEADER.fingerprint, "control_hz": 10.0}, policy="random")
    with pytest.raises(DataError, match=r"control_hz: 20.0 there, 10.0 here"):
        EpisodeWriter(path, other, resume=True)
    with EpisodeWriter(path, HEADER, resume=True) as writer:
        assert writer.finished == {0}
        with pytest.raises(DataError, match="already has episode 0"):
            writer.write(toy_episode(0))
        writer.write(toy_episode(1))
    with read_episodes(path) as episodes:
        assert episodes.numbers == [0, 1]
        assert_same(episodes[0], toy_episode(0))
        assert_same(episodes[1], toy_episode(1))


def test_a_recording_goes_on_with_more_room(tmp_path: Path) -> None:
    """As a collection that overflowed advises; another robot it would still refuse."""
    path = tmp_path / "run.h5"
    room = {"nconmax": 24, "njmax": 64, "nccdmax": 2}
    begun, more, none = (
        Header(fingerprint={**HEADER.fingerprint, "budget": budget}, policy="random")
        for budget in (room, {**room, "njmax": 96}, None)
    )
    with EpisodeWriter(path, begun) as writer:
        writer.write(toy_episode(0))
    for k, header in enumerate((more, none), 1):
        with EpisodeWriter(path, header, resume=True) as writer:
            writer.write(toy_episode(k))
    other = Header(fingerprint={**more.fingerprint, "robot": "ur5e"}, policy="random")
    with pytest.raises(DataError, match="robot"):
        EpisodeWriter(path, other, resume=True)


def test_resume_refuses_other_seeds_and_another_choice(tmp_path: Path) -> None:
    """Otherwise episodes would be missing or twice in a recording, and nobody would know."""
    path, env = tmp_path / "run.h5", ToyEnv(2, horizon=6)
    begun: dict[str, Any] = {"policy": "chase", "keep": "success", "first_seed": 5, "observations": True}
    recorder = Recorder(env, path, **begun)
    run_episodes(env, Chase(), range(5, 9), observers=[recorder])
    recorder.close()
    with read_episodes(path) as episodes:
        assert episodes.header is not None
        assert dict(episodes.header.recorded) == {
            "first_seed": 5, "keep": "success", "states": True, "observations": True,
        }  # fmt: skip
    for name, other, said in (
        ("first_seed", 1000, "first_seed: 5 there, 1000 here"),
        ("keep", "all", "keep: 'success' there, 'all' here"),
        ("states", False, "states: True there, False here"),
        ("observations", False, "observations: True there, False here"),
    ):
        with pytest.raises(
            DataError, match=f"cannot be resumed.*{said}.*Repeat the first command.* or .* another file"
        ):
            Recorder(env, path, resume=True, **{**begun, name: other})
    again = Recorder(env, path, resume=True, **begun)
    run_episodes(env, Chase(), range(5, 11), numbers=[4, 5], observers=[again])
    again.close()
    assert again.finished == set(range(6))

    with h5py.File(path, "r+") as file:  # as it was before this was written down
        del file.attrs["recorded"]
    with read_episodes(path) as episodes:
        assert episodes.header is not None and episodes.header.recorded == {} and len(episodes)
    assert Recorder(env, path, resume=True, **begun).finished == set(range(6))


def test_without_a_finished_episode_there_is_no_file(tmp_path: Path) -> None:
    """What fails before the first episode ends leaves nothing in the way of the corrected command."""
    path = tmp_path / "run.h5"
    with pytest.raises(RuntimeError, match="policy"), EpisodeWriter(path, HEADER):
        raise RuntimeError("the policy fails")
    assert list(tmp_path.iterdir()) == []
    EpisodeWriter(path, HEADER)  # killed: its folder stays, empty
    with EpisodeWriter(path, HEADER) as writer:
        writer.write(dropped=[0])
    with EpisodeFile(path) as episodes:
        assert episodes.numbers == [] and episodes.dropped == {0}
    with pytest.raises(DataError, match=r"run.h5 has no episode: --keep has dropped all 1"):
        replay(path)
    with pytest.raises(DataError, match=r"run.h5 has no episode: --keep has dropped all 1"):
        Dataset(path)
    with pytest.raises(DataError, match="exists"):
        EpisodeWriter(path, HEADER)


CHILD = """
import sys
sys.path.insert(0, {tests!r})
from toy_episodes import HEADER, first_step, toy_episode
from manikin.data.recording.write import EpisodeWriter
number = 0
print("ready", flush=True)
while True:
    # every fifth episode closes, so that kills also fall into the merge
    writer = EpisodeWriter({path!r}, HEADER, resume=True)
    number = max(writer.finished, default=-1) + 1
    for number in range(number, number + 5):
        writer.write(toy_episode(number))
        print(number, flush=True)
    writer.close()
"""


def test_sigkill_loses_no_finished_episode(tmp_path: Path) -> None:
    """Kill a writing process at twenty moments; what it had reported as finished must read back exactly."""
    path = tmp_path / "run.h5"
    reported = -1
    for round_ in range(20):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD.format(tests=str(Path(__file__).parents[1] / "helpers"), path=str(path))],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None and child.stdout.readline().strip() == "ready"
        lines = [child.stdout.readline() for _ in range(round_ % 7)]  # in writing, and in the merge after the fifth
        time.sleep(0.0037 * (round_ % 5))
        os.kill(child.pid, signal.SIGKILL)
        lines += child.stdout.read().splitlines()
        child.stdout.close()
        assert child.wait() == -signal.SIGKILL
        reported = max([reported, *(int(line) for line in lines if line.strip().isdigit())])
        if not path.exists() and not parts_folder(path).exists():
            continue
        with read_episodes(path) as episodes:
            assert set(range(reported + 1)) <= set(episodes.numbers)
            assert episodes.numbers == list(range(len(episodes)))  # nothing twice, no gap
            for number in episodes.numbers[-8:]:
                assert_same(episodes[number], toy_episode(number))
    assert reported >= 10, "the children were killed before they wrote anything worth testing"
    with EpisodeWriter(path, HEADER, resume=True) as writer:
        kept = sorted(writer.finished)
    with read_episodes(path) as episodes:
        assert episodes.numbers == kept
        for number in kept:
            assert_same(episodes[number], toy_episode(number))


def test_kill_between_merge_and_removal_of_parts_shows_each_episode_once(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    writer = EpisodeWriter(path, HEADER)
    for number in range(3):
        writer.write(toy_episode(number))
    saved = {p.name: p.read_bytes() for p in parts_folder(path).iterdir()}
    writer.close()
    parts_folder(path).mkdir()
    for name, content in saved.items():
        (parts_folder(path) / name).write_bytes(content)
    with read_episodes(path) as episodes:
        assert episodes.numbers == [0, 1, 2]
    EpisodeWriter(path, HEADER, resume=True).close()
    with read_episodes(path) as episodes:
        assert episodes.numbers == [0, 1, 2]


SHARD = """
import sys
sys.path.insert(0, {tests!r})
from toy_episodes import HEADER, toy_episode
from manikin.data.recording.write import EpisodeWriter
for start in range({first}, 60, 15):
    with EpisodeWriter({path!r}, HEADER, resume=True) as writer:  # merges while the others write
        for number in range(start, start + 15, 3):
            writer.write(toy_episode(number))
"""


def test_processes_that_write_and_merge_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    path, tests = tmp_path / "run.h5", str(Path(__file__).parents[1] / "helpers")
    children = [
        subprocess.Popen([sys.executable, "-c", SHARD.format(tests=tests, path=str(path), first=first)])
        for first in range(3)
    ]
    assert [child.wait() for child in children] == [0, 0, 0]
    with read_episodes(path) as episodes:
        assert episodes.numbers == list(range(60))
        for number in range(0, 60, 7):
            assert_same(episodes[number], toy_episode(number))


def test_a_full_disk_is_an_error_that_loses_nothing(tmp_path: Path) -> None:
    """Writes beyond a limit of the operating system fail like those on a full disk."""
    path = tmp_path / "run.h5"
    writer = EpisodeWriter(path, HEADER)
    writer.write(toy_episode(0), toy_episode(1), dropped=[7])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
        with pytest.raises(DataError, match=r"cannot write .*what was written before it is safe"):
            writer.write(toy_episode(2))
        with pytest.raises(DataError, match=r"cannot merge into .*every episode is safe in .*run.h5.parts"):
            writer.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert not path.exists() and {p.suffix for p in tmp_path.rglob("*") if p.is_file()} == {".h5"}
    writer.write(toy_episode(2))
    writer.close()
    with EpisodeFile(path) as episodes:
        assert episodes.numbers == [0, 1, 2] and episodes.dropped == {7}
        assert_same(episodes[1], toy_episode(1))
    with EpisodeWriter(path, HEADER, resume=True) as writer:
        assert writer.finished == {0, 1, 2, 7}


def test_a_place_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"cannot write .*file.run\.h5: "):
        EpisodeWriter(tmp_path / "file" / "run.h5", HEADER)


def test_unreadable_files_say_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no recording"):
        EpisodeFile(tmp_path / "missing.h5")
    (tmp_path / "set" / "meta").mkdir(parents=True)
    with pytest.raises(DataError, match="set is a folder, not a recording"):
        EpisodeFile(tmp_path / "set")
    (tmp_path / "set" / "meta" / "info.json").touch()
    with pytest.raises(DataError, match=r"set is a LeRobot dataset, .*manikin view"):
        EpisodeFile(tmp_path / "set")

    text = tmp_path / "notes.h5"
    text.write_text("not a data file at all")
    with pytest.raises(DataError, match="not an HDF5 file"):
        EpisodeFile(text)

    foreign = tmp_path / "maniskill.h5"
    with h5py.File(foreign, "w") as file:
        file["traj_0/actions"] = np.zeros((3, 8))
    with pytest.raises(DataError, match=r"not a manikin recording.*traj_0"):
        EpisodeFile(foreign)

    newer = tmp_path / "newer.h5"
    with EpisodeWriter(newer, HEADER) as writer:
        writer.write(toy_episode(0))
    with h5py.File(newer, "r+") as file:
        file.attrs["format_version"] = FORMAT_VERSION + 1
    with pytest.raises(DataError, match=rf"format version {FORMAT_VERSION + 1}.*newer manikin"):
        EpisodeFile(newer)


def test_damage_is_named_and_the_rest_stays_readable(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    writer = EpisodeWriter(path, HEADER)
    for number in range(3):
        writer.write(toy_episode(number))
    broken = parts_folder(path) / "000001.h5"
    broken.write_bytes(broken.read_bytes()[:700])
    said = r"000001.h5 is damaged or cut short.*Move 000001.h5 to .*2 other files.*--resume then runs.*strict=False"
    with pytest.raises(DataError, match=said):
        EpisodeFile(path)
    with EpisodeFile(path, strict=False) as rest:
        assert rest.numbers == [0, 2] and len(rest.damaged) == 1
        assert_same(rest[2], toy_episode(2))
        with pytest.raises(DataError, match=r"no episode 1; it has 0, 2"):
            rest[1]
    broken.rename(tmp_path / "broken")  # as the error says
    with EpisodeWriter(path, HEADER, resume=True) as writer:
        assert writer.finished == {0, 2}
        writer.write(toy_episode(1))
    with EpisodeFile(path) as episodes:
        assert episodes.numbers == [0, 1, 2]

    flipped = tmp_path / "flipped.h5"
    with EpisodeWriter(flipped, HEADER) as writer:
        for number in range(40):
            writer.write(toy_episode(number))
    content = bytearray(flipped.read_bytes())
    at = content.find(toy_episode(1).actions.tobytes())  # narrow arrays are stored plain
    assert at > 0
    content[at + 40] ^= 0x10
    flipped.write_bytes(content)
    with EpisodeFile(flipped) as episodes:
        assert_same(episodes[39], toy_episode(39))  # in another chunk
        with pytest.raises(DataError, match=r"episode 1, steps/actions"):
            episodes[1]

    missing = tmp_path / "missing.h5"
    with EpisodeWriter(missing, HEADER) as writer:
        writer.write(toy_episode(0))
    with h5py.File(missing, "r+") as file:
        del file["block_0/steps/rewards"]
    with EpisodeFile(missing) as episodes, pytest.raises(DataError, match=r"episode 0, rewards"):
        episodes[0]


def told(path: Path) -> list[Any]:
    """Everything that a recording says, comparable."""
    with EpisodeFile(path) as file:
        said: list[Any] = [repr(file.header), file.numbers, sorted(file.dropped)]
        for episode in file:
            leaves = flatten(vars(episode) | {"table": file.attributes(episode.number)})
            said += [(name, np.asarray(value).tobytes()) for name, value in leaves.items()]
        return said


def test_no_flipped_bit_changes_a_word_or_a_number_unnoticed(tmp_path: Path) -> None:
    """Text has a checksum, too, and so has what says where things lie; wherever the bit is."""
    path, flipped = tmp_path / "run.h5", tmp_path / "flipped.h5"
    with EpisodeWriter(path, HEADER) as writer:
        writer.write(*(toy_episode(number, 4) for number in range(3)), dropped=[9])
    truth, content = told(path), path.read_bytes()
    words = [b"pick up the cube", b"random", b"x86_64 test", b"created", b"dropped"]
    places = [8 * content.index(word) + 1 for word in words]
    draw = np.random.Generator(np.random.Philox(0))
    found = 0
    for place in [*places, *draw.integers(0, 8 * len(content), 250).tolist()]:
        changed = bytearray(content)
        changed[place // 8] ^= 1 << (place % 8)
        flipped.write_bytes(changed)
        try:
            assert told(flipped) == truth, place
        except DataError:
            found += 1
    assert found > 150  # the rest is room that nothing uses


def test_recordings_of_the_format_before_still_read_and_go_on(tmp_path: Path) -> None:
    """Their text is of any length, and has no checksum."""
    path, old = tmp_path / "run.h5", tmp_path / "old.h5"
    with EpisodeWriter(path, HEADER) as writer:
        writer.write(toy_episode(0), toy_episode(1))
    with h5py.File(path) as new, h5py.File(old, "w") as file:
        for name in new:
            new.copy(name, file)
        for name, value in new.attrs.items():
            file.attrs[name] = value.decode() if isinstance(value, bytes) else value
        file.attrs["format_version"] = 2
        table = file["block_0/episodes"]
        for name in ("options", "instruction", "mode"):
            values = table[name].asstr()[()]
            del table[name]
            table.create_dataset(name, data=values, dtype=h5py.string_dtype())
    assert told(old) == told(path)
    with EpisodeWriter(old, HEADER, resume=True) as writer:
        assert writer.finished == {0, 1}
        writer.write(RecordedEpisode(**{**vars(toy_episode(2)), "instruction": "lift the blue cube, sofort: schön"}))
    with EpisodeFile(old) as file, h5py.File(old) as plain:
        assert file[2].instruction == "lift the blue cube, sofort: schön" and file[1].instruction == "pick up the cube"
        assert plain.attrs["format_version"] == FORMAT_VERSION
    broken = RecordedEpisode(**{**vars(toy_episode(3)), "instruction": "pick\0"})
    with pytest.raises(DataError, match="cannot hold a zero byte"), EpisodeWriter(tmp_path / "x.h5", HEADER) as writer:
        writer.write(broken)


def test_parts_that_do_not_belong_together_are_refused_and_kept(tmp_path: Path) -> None:
    """Of another version of the task, another robot: found when read and when merged; nothing is lost."""
    path = tmp_path / "run.h5"
    writer = EpisodeWriter(path, HEADER)
    writer.write(toy_episode(0))
    newer = Header(fingerprint={**HEADER.fingerprint, "task": "Toy-v2", "robot": "ur5e"}, policy=HEADER.policy)
    other = EpisodeWriter(tmp_path / "other.h5", newer)
    other.write(toy_episode(1))
    stray = parts_folder(tmp_path / "other.h5") / "000001.h5"
    stray.rename(parts_folder(path) / stray.name)
    with pytest.raises(DataError, match=r"000001.h5 was recorded differently.*robot.*'Toy-v1' there, 'Toy-v2' here"):
        EpisodeFile(path)
    with pytest.raises(DataError, match=r"000001.h5 and .*run.h5 were recorded differently and are not merged"):
        writer.close()
    with EpisodeFile(path, strict=False) as rest:
        assert rest.numbers == [0] and len(rest.damaged) == 1
    (parts_folder(path) / stray.name).unlink()
    writer.close()
    with EpisodeFile(path) as episodes:
        assert episodes.numbers == [0]
        assert_same(episodes[0], toy_episode(0))


def test_columns_keep_their_names_and_shapes_their_blocks(tmp_path: Path) -> None:
    """Episodes whose links or terms differ lie in blocks of their own; recordings without any still read."""
    length = 6
    trace = np.arange(length, dtype=np.float32)

    def made(number: int, *links: str) -> RecordedEpisode:
        forces = {name: trace * (k + 1) for k, name in enumerate(links)}
        terms = {"reach": trace, "lift": -trace}
        joints = {"elbow": np.arange(length + 1, dtype=np.float32)}
        more = {"forces": forces, "reward_terms": terms, "joints": joints}
        return RecordedEpisode(**{**vars(toy_episode(number, length)), **more})

    every = [made(0, "total", "hand"), made(1, "total", "wrist"), made(2, "total", "hand"), toy_episode(3, length)]
    path = tmp_path / "run.h5"
    writer = EpisodeWriter(path, HEADER)
    for episode in every:
        writer.write(episode)
    for _ in range(2):  # parts, then merged
        with EpisodeFile(path) as episodes:
            for episode in every:
                assert_same(episodes[episode.number], episode)
            assert episodes.attributes(1)["force_peak"] == 5 and episodes.attributes(1)["force_sum"] == 15
            assert "force_peak" not in episodes.attributes(3)
            assert episodes[2].force_sum == {"total": 15.0, "hand": 30.0}
            assert episodes.array(2, "steps/forces", 3).tolist() == [3.0, 6.0]
            assert episodes.episode(2, observations=False).observations is None
            assert episodes.shapes(2)["instants/joints"] == (7, 1)
        writer.close()
    with h5py.File(path) as file:
        named = {json.loads(file[block]["steps/forces"].attrs["columns"])[1] for block in ("block_0", "block_1")}
    assert named == {"hand", "wrist"}
    short = RecordedEpisode(**{**vars(made(4, "total")), "forces": {"total": trace[:-1]}})
    with pytest.raises(DataError, match=r"forces/total has shape \(5,\), expected 6"):
        EpisodeWriter(tmp_path / "short.h5", HEADER).write(short)


def test_arrays_of_different_lengths_are_refused(tmp_path: Path) -> None:
    good = toy_episode(0)
    with EpisodeWriter(tmp_path / "run.h5", HEADER) as writer:
        bad = RecordedEpisode(**{**vars(good), "rewards": good.rewards[:-1]})
        with pytest.raises(DataError, match=r"rewards has shape \(29,\), expected 30 rows"):
            writer.write(bad)
        writer.write(good)


def test_recorder_keeps_only_successes_when_asked(tmp_path: Path) -> None:
    env = ToyEnv(2, horizon=6)
    recorder = Recorder(env, tmp_path / "run.h5", keep="success")
    run = run_episodes(env, Chase(), list(range(20)), observers=[recorder])
    recorder.close()
    good = [r.number for r in run.results if r.success_once]
    assert 0 < len(good) < 20
    with read_episodes(tmp_path / "run.h5") as episodes:
        assert episodes.numbers == good
    assert recorder.kept == set(good) and recorder.finished == set(range(20))
    with pytest.raises(UnknownNameError, match="all, failure, label:MODE,MODE, success"):
        Recorder(env, tmp_path / "other.h5", keep="best")
