"""Recordings from strangers: nothing in them leads out of the file, in a circle, or to more than there is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from manikin.data.formats.demonstrations import read_demos
from manikin.data.recording.format import parts_folder
from manikin.data.recording.read import EpisodeFile, read_episodes
from manikin.data.recording.write import EpisodeWriter
from manikin.errors import DataError
from toy_episodes import HEADER, toy_episode

SECRET = b"a line that is nobody's business"


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "run.h5"
    with EpisodeWriter(path, HEADER) as writer:
        writer.write(toy_episode(0), toy_episode(1))
    return path


def external_storage(file: Any, folder: Path) -> None:
    """Bytes of any file as observations."""
    secret = folder / "secret.txt"
    secret.write_bytes(SECRET + bytes(64))
    shape, outside = (62,), [(bytes(secret), 0, 62)]
    file.create_dataset("block_0/instants/observations/policy/note", shape, np.uint8, external=outside)


def external_link(file: Any, folder: Path) -> None:
    with h5py.File(folder / "other.h5", "w") as other:
        other["note"] = np.frombuffer(SECRET, np.uint8)
    file["block_0/instants/observations/note"] = h5py.ExternalLink("other.h5", "/note")


def external_link_to_a_pipe(file: Any, folder: Path) -> None:
    """Whoever opens it waits for ever."""
    os.mkfifo(folder / "pipe.h5")
    file["block_1"] = h5py.ExternalLink("pipe.h5", "/")


def virtual_dataset(file: Any, folder: Path) -> None:
    with h5py.File(folder / "other.h5", "w") as other:
        other["note"] = np.frombuffer(SECRET, np.uint8)
    layout = h5py.VirtualLayout((len(SECRET),), np.uint8)
    layout[:] = h5py.VirtualSource(folder / "other.h5", "note", (len(SECRET),))
    file["block_0/instants/observations"].create_virtual_dataset("note", layout)


def soft_loop(file: Any, folder: Path) -> None:
    file["block_0/steps/flags/more"] = h5py.SoftLink("/block_0/steps/flags")


def soft_link_to_itself(file: Any, folder: Path) -> None:
    file["block_0/steps/self"] = h5py.SoftLink("/block_0/steps/self")


def group_in_itself(file: Any, folder: Path) -> None:
    file["block_0/steps/again"] = file["block_0"]


def groups_beyond_count(file: Any, folder: Path) -> None:
    """Each of sixty groups twice in the one before: 2 to the 60th paths."""
    at = file["block_0/steps"].create_group("g0")
    for _ in range(60):
        below = at.create_group("a")
        at["b"] = below
        at = below


def groups_too_deep(file: Any, folder: Path) -> None:
    file.create_group("block_0/steps/" + "/".join("d" * 3000))


def declared_and_never_written(file: Any, folder: Path) -> None:
    file.create_dataset("block_0/steps/flags/huge", (10**12,), np.float64, chunks=(1 << 16,))


def the_same_bytes_many_times(file: Any, folder: Path) -> None:
    """One array under many names: as much memory for each."""
    file["block_0/initial/bulk"] = np.zeros((2, 50_000))
    for i in range(50):
        file[f"block_0/initial/bulk{i}"] = file["block_0/initial/bulk"]


CRAFTED = {
    external_storage: r"note has its values in another file, .*secret.txt",
    external_link: r"note is a link out of the file, to /note in other.h5",
    external_link_to_a_pipe: r"block_1 is a link out of the file, to / in pipe.h5",
    virtual_dataset: r"note is virtual",
    soft_loop: r"flags/more is a link to a group",
    soft_link_to_itself: r"steps/self is a link to nothing, or to itself",
    group_in_itself: r"linked twice",
    groups_beyond_count: r"linked twice",
    groups_too_deep: r"more than 64 deep",
    declared_and_never_written: r"huge declares 8000000000000 bytes, and holds 0",
    the_same_bytes_many_times: r"together are \d+ bytes, more than the file",
}


@pytest.mark.parametrize("craft", CRAFTED, ids=lambda craft: craft.__name__)
def test_what_reaches_out_goes_round_or_declares_too_much_is_refused_when_opening(
    recording: Path, tmp_path: Path, craft: Callable[[Any, Path], None]
) -> None:
    with h5py.File(recording, "r+") as file:
        file.require_group("block_0/steps/flags")
        craft(file, tmp_path)
    with pytest.raises(DataError, match=rf"run.h5 cannot be read safely: .*{CRAFTED[craft]}"):
        EpisodeFile(recording)
    # so is a part, which would be merged, and a file of demonstrations
    parts = parts_folder(tmp_path / "new.h5")
    parts.mkdir()
    recording.rename(parts / "000000.h5")
    with pytest.raises(DataError, match=CRAFTED[craft]):
        EpisodeWriter(tmp_path / "new.h5", HEADER, resume=True)
    with h5py.File(parts / "000000.h5", "r+") as file:
        file["data/demo_0/actions"] = np.zeros((3, 7))
        file["data"].attrs["env_args"] = json.dumps({"env_name": "Lift", "env_kwargs": {}})
    with pytest.raises(DataError, match=CRAFTED[craft]):
        read_demos(parts / "000000.h5")


def test_what_keeps_to_itself_is_read(recording: Path) -> None:
    """A link by name to an array of the same file, compression, and arrays without rows do no harm."""
    with h5py.File(recording, "r+") as file:
        file["block_0/steps/flags/same"] = h5py.SoftLink("/block_0/steps/success")
        rows = len(file["block_0/instants/state_hash"])
        file.create_dataset(
            "block_0/instants/observations/dark", data=np.zeros((rows, 64, 64), np.uint8), compression=9
        )
        file.create_dataset("block_0/initial/nothing", (2, 0), np.float32)
    with read_episodes(recording) as episodes:
        for number in (0, 1):
            episode = episodes[number]
            np.testing.assert_array_equal(episode.flags["same"], toy_episode(number).success)
            assert episode.observations is not None and episode.observations["dark"].shape == (31, 64, 64)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """In a process of its own, which can be ended should it wait."""
    os.mkfifo(tmp_path / "pipe.h5")
    parts_folder(tmp_path / "run.h5").mkdir()
    os.mkfifo(parts_folder(tmp_path / "run.h5") / "000000.h5")
    code = """
import sys
from manikin.data.formats.demonstrations import read_demos
from manikin.data.recording.read import EpisodeFile
from manikin.errors import DataError
for open in (EpisodeFile, read_demos):
    for name in sys.argv[1:]:
        try:
            open(name)
        except DataError as error:
            print(error)
"""
    names = [str(tmp_path / "pipe.h5"), str(tmp_path / "run.h5")]
    told = subprocess.run([sys.executable, "-c", code, *names], capture_output=True, text=True, timeout=300, check=True)
    assert len(told.stdout.splitlines()) == 4 and "000000.h5 is not a file" in told.stdout


def attribute(name: str, value: Any) -> Callable[[Any], None]:
    def change(file: Any) -> None:
        file.attrs[name] = value

    return change


def replaced(name: str, value: Any) -> Callable[[Any], None]:
    def change(file: Any) -> None:
        del file[name]
        file[name] = value

    return change


def fingerprint(**values: Any) -> Callable[[Any], None]:
    return attribute("fingerprint", json.dumps({**HEADER.fingerprint, **values}))


OPENING = [
    (attribute("format", np.arange(3)), "attribute 'format' is array"),
    (attribute("format_version", "two"), "header cannot be read.*'two'"),
    (attribute("format_version", np.arange(2)), "header cannot be read"),
    (attribute("fingerprint", "[1, 2]"), "fingerprint is list, not an object"),
    (attribute("fingerprint", "[" * 100_000), "header cannot be read"),
    (attribute("fingerprint", np.zeros(2)), "header cannot be read"),
    (attribute("recorded", '"all"'), "recorded is str, not an object"),
    (fingerprint(task=None), "task of the fingerprint is None, not str"),
    (fingerprint(machine="x86"), "machine of the fingerprint is 'x86', not dict"),
    (fingerprint(horizon=True), "horizon of the fingerprint is True, not int"),
    (fingerprint(control_hz=-20.0), "control_hz of the fingerprint is -20.0, not a positive number"),
    (fingerprint(physics_hz=float("nan")), "physics_hz of the fingerprint is nan, not a positive number"),
    (fingerprint(robot=[1]), r"robot of the fingerprint is \[1\], not str or list"),
    (replaced("block_0/episodes/length", np.array([30, -1])), "a length is negative"),
    (replaced("block_0/episodes/length", np.array([2**62, 2**62])), "beyond any file"),
    (replaced("block_0/episodes/length", np.array([30.0, 30.0])), "length holds float64"),
    (replaced("block_0/episodes/number", np.array([3, 3])), "there twice"),
    (replaced("block_0/episodes/seed", np.arange(5)), "seed has shape"),
    (replaced("block_0/episodes", np.arange(5)), "table of episodes cannot be read"),
    (replaced("block_0", np.arange(5)), "table of episodes cannot be read"),
    (lambda file: file.create_group("block_last"), "list of blocks cannot be read"),
    (attribute("policy", np.zeros((2, 2))), "policy is array.*, not text"),
]


@pytest.mark.parametrize(("change", "said"), OPENING, ids=lambda value: value if isinstance(value, str) else None)
def test_a_header_or_a_table_of_another_kind_is_refused_when_opening(
    recording: Path, change: Callable[[Any], None], said: str
) -> None:
    with h5py.File(recording, "r+") as file:
        change(file)
    with pytest.raises(DataError, match=rf"(?s)run.h5 .*{said}"):
        EpisodeFile(recording)


READING = [
    (replaced("block_0/episodes/options", [b"[1]", b"{}"]), "episode 0, options"),
    (replaced("block_0/episodes/options", [b"no JSON", b"{}"]), "episode 0, options"),
    (replaced("block_0/steps/actions", np.zeros((60, 8), "S3")), r"steps/actions: it holds \|S3"),
    (replaced("block_0/steps/actions", np.zeros(60, np.float32)), r"steps/actions: it holds float32 of shape \(60,\)"),
    (replaced("block_0/steps/rewards", np.zeros(20, np.float32)), r"steps/rewards: its shape is \(20,\).*30 rows"),
    (replaced("block_0/steps/success", np.zeros(60, np.uint8)), "steps/success: it holds uint8"),
    (replaced("block_0/steps/fail", np.float32(0)), "steps/fail: it holds float32 of shape"),
    (replaced("block_0/instants/states", h5py.Empty("f8")), "instants/states: it holds float64 of shape None"),
    (lambda file: file["block_0/steps"].create_dataset("forces", data=np.zeros((60, 2), np.float32)), "steps/forces"),
    (lambda file: file["block_0/initial"].create_dataset("words", data=[b"a", b"b"]), "initial/words: it holds object"),
]


@pytest.mark.parametrize(("change", "said"), READING, ids=lambda value: value if isinstance(value, str) else None)
def test_damage_of_an_episode_is_named_when_it_is_read(
    recording: Path, change: Callable[[Any], None], said: str
) -> None:
    with h5py.File(recording, "r+") as file:
        change(file)
    with EpisodeFile(recording) as episodes:
        assert episodes.numbers == [0, 1]
        assert set(episodes.shapes(0)) and episodes.attributes(1)["seed"] == 1001
        with pytest.raises(DataError, match=rf"run.h5 is damaged: .*{said}"):
            episodes[0]


def test_columns_that_are_no_list_of_words_are_named(recording: Path) -> None:
    with h5py.File(recording, "r+") as file:
        file["block_0/steps/forces"] = np.zeros((60, 2), np.float32)
        file["block_0/steps/forces"].attrs["columns"] = "not JSON"
    with EpisodeFile(recording) as episodes, pytest.raises(DataError, match=r"names of the columns of steps/forces"):
        episodes[0]


def test_what_is_left_of_a_damaged_file_opens_when_asked(tmp_path: Path) -> None:
    """Two blocks in one file, of which one has lost a column of its table, and the list of what was dropped."""
    path, longer = tmp_path / "run.h5", toy_episode(1)
    with EpisodeWriter(path, HEADER) as writer:
        writer.write(toy_episode(0), type(longer)(**{**vars(longer), "states": None}), toy_episode(2))
    with h5py.File(path, "r+") as file:
        assert list(file["block_1/episodes/number"]) == [1]
        del file["block_1/episodes/seed"]
        file["dropped"] = np.array([b"five"])
    with pytest.raises(DataError, match="table of episodes cannot be read"):
        EpisodeFile(path)
    with EpisodeFile(path, strict=False) as rest:
        assert rest.numbers == [0, 2] and rest.header is not None
        assert "table of episodes" in rest.damaged[0] and "not kept cannot be read" in rest.damaged[1]
        np.testing.assert_array_equal(rest[2].actions, toy_episode(2).actions)
