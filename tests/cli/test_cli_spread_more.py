"""convert, sysid and fidelity with --on: the same files as from one process, also with workers killed."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from manikin.cli import main, sysid
from manikin.cli.collect import CollectOptions
from manikin.cli.collect import run as collect
from manikin.fidelity import write_summary
from manikin.fidelity.recordings.synthetic import averaged
from manikin.fidelity.simulation.rollout import simulate
from manikin.fidelity.simulation.settings import Settings, settings_toml
from manikin.spread.processes import Processes
from motions import moved


def ran(words: list[Any]) -> int:
    return main([str(word) for word in words])


def hashes(folder: Path, *but: str) -> dict[str, str]:
    """What lies in a folder, by its content."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in but
    }


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Kills a worker now and then; the list says which."""
    chance, pids = random.Random(3), list[int]()
    listen = Processes.listen

    def hear(crew: Processes, seconds: float) -> Any:
        words = listen(crew, seconds)
        if crew.pids and len(pids) < 2 and any(word.kind in ("step", "done") for word in words):
            pids.append(chance.choice(list(crew.pids.values())))
            os.kill(pids[-1], signal.SIGKILL)
        return words

    monkeypatch.setattr(Processes, "listen", hear)
    return pids


# ---- convert ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recording") / "run.h5"
    wanted = {"episodes": 6, "num_envs": 3, "horizon": 6, "seed": 5, "policy": "random", "check_disk": False}
    assert collect(CollectOptions(task="PickCube-v2", out=path, **wanted)) == 0
    return path


def test_a_dataset_is_the_same_from_workers_that_are_killed(recording: Path, tmp_path: Path, killed: list[int]) -> None:
    pytest.importorskip("pyarrow", reason="needs pip install 'manikin[data]'")
    pytest.importorskip("av", reason="needs pip install 'manikin[data]'")
    command = ["convert", recording, "--observe", "rgb", "--size", 16, 16, "--renderer", "rays", "--num-envs", 2]
    assert ran([*command[:2], tmp_path / "one", *command[2:]]) == 0
    on = ["--on", "local", "--workers", 2, "--per-shard", 2]
    assert ran([*command[:2], tmp_path / "two", *command[2:], *on]) == 0
    assert killed and hashes(tmp_path / "one") == hashes(tmp_path / "two")
    assert not (tmp_path / "two.spread").exists()
    assert ran([*command[:2], tmp_path / "two", *command[2:], *on]) == 2


def test_an_array_job_makes_a_dataset(recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow", reason="needs pip install 'manikin[data]'")
    pytest.importorskip("av", reason="needs pip install 'manikin[data]'")
    command = ["convert", recording, "--observe", "state_dict", "--num-envs", 2, "--episodes", 1, 2, 4]
    assert ran([*command[:2], tmp_path / "one", *command[2:]]) == 0
    monkeypatch.setenv("SLURM_ARRAY_TASK_COUNT", "2")
    for task in ("1", "0"):
        monkeypatch.setenv("SLURM_ARRAY_TASK_ID", task)
        assert ran([*command[:2], tmp_path / "two", *command[2:], "--on", "slurm-array", "--per-shard", 1]) == 0
    assert hashes(tmp_path / "one") == hashes(tmp_path / "two")


def test_an_episode_that_cannot_be_converted_is_named_and_tried_again(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    pytest.importorskip("pyarrow", reason="needs pip install 'manikin[data]'")
    pytest.importorskip("av", reason="needs pip install 'manikin[data]'")
    damaged = tmp_path / "damaged.h5"
    damaged.write_bytes(recording.read_bytes())
    command = ["convert", damaged, "--observe", "state_dict", "--num-envs", 2, "--on", "local", "--workers", 1]
    command[2:2] = [tmp_path / "out"]
    with h5py.File(damaged, "a") as file:  # of the second episode the actions are others than were made
        block = file["block_0"]
        first = int(block["episodes/length"][0])
        kept = block["steps/actions"][first : first + 2]
        block["steps/actions"][first : first + 2] = -kept
    assert ran([*command, "--per-shard", 1]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "episode 1 failed" in said and "no dataset was written" in said and not (tmp_path / "out").exists()
    with h5py.File(damaged, "a") as file:
        file["block_0/steps/actions"][first : first + 2] = kept
    assert ran([*command, "--resume"]) == 0
    assert ran(["convert", recording, tmp_path / "whole", "--observe", "state_dict", "--num-envs", 2]) == 0
    same = {name: digest for name, digest in hashes(tmp_path / "out").items() if name.startswith("data")}
    assert same and same.items() <= hashes(tmp_path / "whole").items()


def contents(path: Path) -> dict[str, Any]:
    """Every value and attribute of an HDF5 file, and the text of what lies beside it."""
    out: dict[str, Any] = {}
    with h5py.File(path, "r") as file:
        out |= {f"/@{name}": np.asarray(value).tolist() for name, value in file.attrs.items()}

        def visit(name: str, item: Any) -> None:
            out.update({f"{name}@{key}": np.asarray(value).tolist() for key, value in item.attrs.items()})
            if isinstance(item, h5py.Dataset):
                out[name] = (str(item.dtype), item.shape, np.asarray(item[()]).tolist())

        file.visititems(visit)
    beside = path.with_suffix(".json")
    return out | ({"json": json.loads(beside.read_text())} if beside.exists() else {})


@pytest.mark.parametrize(
    ("to", "more"),
    [("robomimic", ["--episodes", 4, 1, 0]), ("maniskill", ["--from", "states"])],
    ids=["actions", "states"],
)
def test_episodes_of_other_formats_are_played_by_workers(
    to: str, more: list[Any], recording: Path, tmp_path: Path, capsys: Any
) -> None:
    shown = ["--observe", "rgb", "--renderer", "rays", "--size", 16, 12, "--num-envs", 2, "--to", to, *more]
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    assert ran(["convert", recording, tmp_path / "one" / "a.h5", *shown]) == 0
    spread = ["convert", recording, tmp_path / "two" / "a.h5", *shown, "--on", "local", "--workers", 2]
    assert ran(spread) == 0
    assert "episodes in" in capsys.readouterr().out
    one, two = contents(tmp_path / "one" / "a.h5"), contents(tmp_path / "two" / "a.h5")
    assert {name for name in one.keys() | two.keys() if one.get(name) != two.get(name)} == set()
    names = {path.name for path in (tmp_path / "one").iterdir()}
    assert {path.name for path in (tmp_path / "two").iterdir()} == names, "what workers saw is left behind"
    assert ran(spread) == 2
    assert "a.h5 exists; choose another name" in capsys.readouterr().err


def test_an_episode_that_parts_is_in_no_file_of_another_format(recording: Path, tmp_path: Path, capsys: Any) -> None:
    damaged, out = tmp_path / "damaged.h5", tmp_path / "a.hdf5"
    damaged.write_bytes(recording.read_bytes())
    with h5py.File(damaged, "a") as file:
        file["block_0/steps/actions"][:2] *= -1.0
    command = ["convert", damaged, out, "--to", "robomimic", "--observe", "state_dict", "--num-envs", 2]
    assert ran(command) == 2
    assert "episode 0 deviates from the recording" in capsys.readouterr().err and not out.exists()
    assert ran([*command, "--on", "local", "--workers", 1, "--per-shard", 3]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "episode 0 failed" in said and "no dataset was written" in said and not out.exists()
    good = ["--episodes", *range(1, 6)]
    assert ran([*command, *good]) == 0


def test_what_workers_cannot_convert_is_told_first(recording: Path, tmp_path: Path, capsys: Any) -> None:
    words = ["convert", recording, tmp_path / "a.hdf5", "--to", "minari", "--on", "local"]
    assert ran(words) == 2
    assert "--on has nothing to share out: without --observe" in capsys.readouterr().err
    assert ran([*words, "--observe", "state_dict", "--valid", 0.1]) == 2
    assert "--valid works only with --to robomimic" in capsys.readouterr().err
    assert not any(path.name != "run.h5" for path in tmp_path.iterdir())


# ---- searches --------------------------------------------------------------------------------------------------------

VARY = ["kd/waist=100:500", "kd/elbow=100:500"]


def test_a_robot_is_identified_alike_by_workers_that_are_killed(tmp_path: Path, monkeypatch: Any) -> None:
    file = moved(VARY, [430.0, 390.0], control="joint_pos", steps=6, noise=1e-4).save(tmp_path / "motions.h5")
    command = ["sysid", file, "--vary", *VARY, "--physics-hz", 100, "--methods", "cma", "squares", "--candidates", 12]
    assert ran([*command, "--out", tmp_path / "one"]) == 0
    pids, give = [], Processes.give

    def kill(crew: Processes, worker: int, shard: Any) -> None:
        give(crew, worker, shard)
        if not pids:  # the first one, as soon as it has begun
            pids.append(crew.pids[worker])
            os.kill(pids[0], signal.SIGKILL)

    monkeypatch.setattr(Processes, "give", kill)
    assert ran([*command, "--out", tmp_path / "two", "--on", "local", "--workers", 2]) == 0
    assert pids
    one, two = ((tmp_path / name / "identified.toml").read_text().splitlines() for name in ("one", "two"))
    assert [line for line in one if "seconds" not in line] == [line for line in two if "seconds" not in line]
    assert not (tmp_path / "two" / "spread").exists()


def test_a_closing_search_that_is_interrupted_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = moved(VARY, [430.0, 390.0], control="joint_pos", steps=6, noise=1e-4).save(tmp_path / "motions.h5")
    command = ["sysid", file, "--vary", *VARY, "--physics-hz", 100, "--methods", "squares", "--out", tmp_path / "one"]

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setenv("SLURM_ARRAY_TASK_COUNT", "1")
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "0")
    searched, calls = sysid.searched, []

    def second(*given: Any) -> Any:
        calls.append(given)
        return interrupted() if len(calls) == 1 else searched(*given)  # the command's own, after the worker's

    monkeypatch.setattr(sysid, "searched", second)  # in this process; the worker has one of its own
    assert ran([*command, "--on", "slurm-array"]) == 130
    assert list((tmp_path / "one/spread/board").glob("*.json")), "the answers were thrown away"
    assert ran([*command, "--on", "slurm-array"]) == 0
    assert len(calls) == 2 and not (tmp_path / "one/spread").exists()
    assert ran([*command, "--on", "slurm-array"]) == 0 and len(calls) == 2  # a task that comes late


def test_an_array_job_searches_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = moved(VARY, [430.0, 390.0], control="joint_pos", steps=6, noise=1e-4).save(tmp_path / "motions.h5")
    command = ["sysid", file, "--vary", *VARY, "--physics-hz", 100, "--methods", "squares"]
    assert ran([*command, "--out", tmp_path / "one"]) == 0
    monkeypatch.setenv("SLURM_ARRAY_TASK_COUNT", "2")
    for task in ("0", "1"):  # the second finds everything on the board
        monkeypatch.setenv("SLURM_ARRAY_TASK_ID", task)
        assert ran([*command, "--out", tmp_path / "two", "--on", "slurm-array"]) == 0
    one, two = ((tmp_path / name / "identified.toml").read_text().splitlines() for name in ("one", "two"))
    assert [line for line in one if "seconds" not in line] == [line for line in two if "seconds" not in line]


def test_a_cluster_is_told_how_many_search(tmp_path: Path, capsys: Any) -> None:
    file = moved(VARY, [430.0, 390.0], control="joint_pos", steps=6).save(tmp_path / "motions.h5")
    assert ran(["sysid", file, "--vary", *VARY, "--on", "ray://head:10001", "--out", tmp_path / "a"]) == 2
    assert "say with --workers how many actors" in capsys.readouterr().err


# ---- fidelity --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Recordings of tasks 9 and 10 that were simulated with a lighter hand, and settings to begin with."""
    folder, start = tmp_path_factory.mktemp("reality"), Settings(physics_hz=50)
    for task in (9, 10):
        write_summary(averaged(simulate(task, Settings(physics_hz=50, hand_mass=0.7), seed=5, repeats=5)), folder)
    settings = folder / "start.toml"
    settings.write_text(settings_toml(start))
    return folder, settings


def test_the_benchmark_is_simulated_alike_by_workers(
    benchmark: tuple[Path, Path], tmp_path: Path, killed: list[int], capsys: Any
) -> None:
    reality, settings = benchmark
    command = ["fidelity", "run", "--config", settings, "--tasks", 9, 10, "--reality", reality, "--mode", "paper"]
    assert ran([*command, "--out", tmp_path / "one"]) == 0
    assert ran([*command, "--out", tmp_path / "two", "--on", "local", "--workers", 2]) == 0
    timed = ("settings.json", "about.toml")
    assert hashes(tmp_path / "one" / "simulation", *timed) == hashes(tmp_path / "two" / "simulation", *timed)
    told = [json.loads((tmp_path / name / "simulation" / "settings.json").read_text()) for name in ("one", "two")]
    assert {key for key in told[0] if told[0][key] != told[1][key]} <= {"seconds", "processor_seconds"}
    capsys.readouterr()
    assert ran([*command, "--out", tmp_path / "three", "--on", "local", "--films"]) == 2
    assert "one engine, mujoco or warp, without --films" in capsys.readouterr().err


def test_settings_are_found_alike_by_workers(benchmark: tuple[Path, Path], tmp_path: Path) -> None:
    reality, settings = benchmark
    command = ["fidelity", "improve", "--config", settings, "--vary", "hand_mass=0.4:1.2", "--tasks", 9, 10]
    command += ["--reality", reality, "--metrics", "torque", "--mode", "paper", "--repeats", 1, "--candidates", 8]
    assert ran([*command, "--out", tmp_path / "one"]) == 0
    assert ran([*command, "--out", tmp_path / "two", "--on", "local", "--workers", 2]) == 0
    one, two = (json.loads((tmp_path / name / "improved.json").read_text()) for name in ("one", "two"))
    assert {key for key in one if one[key] != two[key]} <= {"seconds", "processor_seconds", "candidates_per_minute"}
    assert (tmp_path / "one/improved.toml").read_text() == (tmp_path / "two/improved.toml").read_text()
