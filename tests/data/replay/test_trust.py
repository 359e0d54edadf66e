"""A recording may name a file of Python that makes its task. To play it is to run that file: only when told to."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import h5py
import pytest

from manikin.cli import main
from manikin.data.recording.format import Header
from manikin.data.recording.write import EpisodeWriter
from manikin.data.replay.environment import make_env, recorded_task
from manikin.errors import DataError
from toy_episodes import toy_episode

EVIL = "from pathlib import Path\nPath('it_ran').touch()\n"
FINGERPRINT = {"task": "Evil-v1", "task_class": "evil.py:Evil", "robot": "panda", "control": "joint_pos", "horizon": 9}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As downloaded: a recording, and the file that it names."""
    (tmp_path / "evil.py").write_text(EVIL)
    with EpisodeWriter(tmp_path / "run.h5", Header(fingerprint=FINGERPRINT)) as writer:
        writer.write(toy_episode(0))
    with h5py.File(tmp_path / "run.hdf5", "w") as file:
        file["data/demo_0/actions"] = toy_episode(0).actions
        file["data/demo_0/states"] = toy_episode(0).states[:-1]
        told = {"env_name": "Evil-v1", "type": 2, "env_kwargs": {**FINGERPRINT, "model_hash": "0"}}
        file["data"].attrs["env_args"] = json.dumps(told)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        "replay run.h5 --check",
        "replay run.h5 --observe state_dict --out new.h5",
        "replay run.h5 --control joint_pos --out new.h5",
        "convert run.h5 new.hdf5 --to robomimic",
        "convert run.h5 new --observe state_dict --keep success",
        "import run.hdf5 --play states",
    ],
)
def test_no_command_runs_the_file_until_it_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    assert main(words.split()) == 2 and not (folder / "it_ran").exists()
    told = capsys.readouterr().err
    assert "playing Evil-v1 runs the file evil.py:Evil" in told
    assert "--trust" in told and "--task evil.py:Evil" in told


@pytest.mark.parametrize("words", ["--trust", "--task evil.py"])
def test_told_so_it_is_run(folder: Path, capsys: pytest.CaptureFixture[str], words: str) -> None:
    try:
        assert main(["replay", "run.h5", "--check", *words.split()]) == 2  # it holds no task
    finally:
        sys.modules.pop("own_evil", None)
    assert (folder / "it_ran").exists() and "evil.py" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["evil.py", "evil:Evil", "evil.py:Evil", "./evil.py:Evil"])
def test_python_is_asked_too_whatever_the_place_is_called(
    folder: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.syspath_prepend(str(folder))
    with pytest.raises(DataError, match=r"runs the file .*Read it first; then add --trust \(trust=True"):
        recorded_task({**FINGERPRINT, "task_class": place})
    with pytest.raises(DataError, match=r"playing .* runs the file"):
        make_env({**FINGERPRINT, "task_class": place}, 1)
    assert not (folder / "it_ran").exists()


def test_a_file_elsewhere_is_not_run_even_if_trusted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "here").mkdir()
    monkeypatch.chdir(folder / "here")
    for place in (f"{folder.as_posix()}/evil.py:Evil", f"{folder.as_posix()}/evil.py", "../evil.py:Evil"):
        with pytest.raises(DataError, match="not below the current folder"):
            recorded_task({**FINGERPRINT, "task_class": place}, trust=True)
    assert not (folder / "it_ran").exists()


def test_an_environment_of_another_kind_is_named(folder: Path) -> None:
    """What the fingerprint of a task of manikin's says is the recording's, so what it cannot be is its fault."""
    good = {"task": "PickCube-v2", "robot": "panda", "control": "ee_delta_pose"}
    make_env(good, 1).close()
    for name, value in (
        ("budget", {"rows": 3}),
        ("budget", {"nconmax": "many"}),
        ("config", {"no_such_option": 1}),
        ("config", {"cube_half_size": "big"}),
        ("vision", {"cameras": 5}),
        ("sensors", {"policy/qpos": 7}),
        ("looks", {"kind": []}),
        ("horizon", 2.5),
        ("robot", "panda:nowhere"),
        ("control", "telepathy"),
    ):
        with pytest.raises(Exception, match=r"\w") as caught:
            make_env({**good, name: value}, 1, device="cpu")
        assert caught.type.__module__ == "manikin.errors", (name, caught.value)
