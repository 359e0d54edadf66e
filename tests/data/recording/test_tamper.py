"""Every dataset and every attribute of a recording changed in turn: the check finds it, or names it as not compared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import manikin
from manikin.data.recorder import Recorder
from manikin.data.replay.environment import make_env
from manikin.data.replay.verify import ReplayReport, replay
from manikin.errors import DataError
from manikin.eval.runner import run_episodes
from manikin.policy.random_policy import RandomPolicy


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a task whose bodies differ between episodes, with all that can be recorded."""
    path = tmp_path_factory.mktemp("tamper") / "run.h5"
    env = manikin.make("PegInsertionSide-v2", 2, autoreset="disabled", reward="dense", observe="state_dict", horizon=3)
    recorder = Recorder(env, path, policy="random", observations=True, first_seed=7)
    run_episodes(env, RandomPolicy(env), [7, 8], observers=[recorder], options={"colour": "red"})
    recorder.close()
    env.close()
    return path


@pytest.fixture(scope="module")
def env(recording: Path) -> Iterator[Any]:
    with h5py.File(recording) as file:
        made = make_env(json.loads(file.attrs["fingerprint"]), 2)
    yield made
    made.close()


def places(path: Path) -> tuple[list[str], list[tuple[str, str]]]:
    """Names of the datasets, and of the attributes with their owners."""
    datasets: list[str] = []
    attributes: list[tuple[str, str]] = []
    with h5py.File(path) as file:
        attributes += [("/", name) for name in file.attrs]

        def visit(name: str, item: Any) -> None:
            if isinstance(item, h5py.Dataset):
                datasets.append(name)
            attributes.extend((name, attribute) for attribute in item.attrs)

        file.visititems(visit)
    return datasets, attributes


def checked(path: Path, env: Any) -> ReplayReport | str:
    """The report, or the error's words."""
    try:
        return replay(path, env)
    except DataError as error:
        return str(error)


def test_what_a_check_compares_is_everything_but_what_it_names(recording: Path, env: Any) -> None:
    report = replay(recording, env)
    assert report.exact and report.ok, report.summary()
    assert dict(report.not_compared) == {
        "actions": "they are what is played",
        "options": "the start is made with them",
        "policy": "nothing to compute it from",
        "created": "nothing to compute it from",
    }
    assert set(report.compared) == {
        *("number", "seed", "index", "rewards", "terminated", "truncated", "success", "fail", "state_hash", "flags"),
        *("forces", "reward_terms", "joints", "initial", "states", "observations", "instruction", "health", "mode"),
        "episodes",
    }
    lines = report.summary().splitlines()
    assert lines[0] == "2 of 2 episodes reproduced bit for bit"
    assert lines[1].startswith("compared: number, seed, ") and lines[2].startswith("not compared: actions (they are")


def flipped(value: np.ndarray) -> np.ndarray:
    """The same with the lowest bit of its last number the other way round; other words where it is text."""
    new = value.copy()
    last = (-1,) * new.ndim
    if new.dtype.kind == "b":
        new[last] = ~new[last]
    elif new.dtype.kind in "iuf":
        bits = np.uint8 if new.dtype.itemsize == 1 else np.dtype(f"u{new.dtype.itemsize}")
        new.view(bits)[last] ^= 1
    else:
        text = new[last].decode()
        new[last] = json.dumps({"colour": "blue"}) if text.startswith("{") else text[:-1] + "~"
    return new


def test_every_dataset_that_is_changed_is_found(recording: Path, env: Any, tmp_path: Path) -> None:
    path, passed, tried = tmp_path / "run.h5", [], 0
    for name in places(recording)[0]:
        path.write_bytes(recording.read_bytes())
        with h5py.File(path, "r+") as file:
            if not file[name].size:
                continue
            file[name][...] = flipped(file[name][()])
        tried += 1
        report = checked(path, env)
        if not isinstance(report, str) and report.ok:
            passed.append((name.split("/", 1)[-1], report))
    assert tried > 60
    # a float's last bit need not reach the arm, and this task's start asks for no options: both are named
    for name, report in passed:
        assert name.split("/")[-1] in report.not_compared, name
    assert {name for name, _ in passed} <= {"steps/actions", "episodes/options"}
    with h5py.File(path := tmp_path / "action.h5", "w") as file, h5py.File(recording) as source:
        for name in source:
            source.copy(name, file)
        file.attrs.update(source.attrs)
        file["block_0/steps/actions"][0, 0] += np.float32(1e-3)
    assert not replay(path, env).ok


def test_every_attribute_that_is_changed_is_found(recording: Path, env: Any, tmp_path: Path) -> None:
    path, passed = tmp_path / "run.h5", {}
    for owner, name in places(recording)[1]:
        for change in ("other", "gone"):
            path.write_bytes(recording.read_bytes())
            with h5py.File(path, "r+") as file:
                attributes = file[owner].attrs
                value = attributes.pop(name)
                if isinstance(value, bytes | str):
                    words = value if isinstance(value, str) else value.decode()
                    value = words[:-2] + "~" + words[-1:]
                else:
                    value += 1
                if change == "other":
                    attributes[name] = value
            report = checked(path, env)
            if not isinstance(report, str) and report.ok:
                passed[name, change] = report
    for (name, _), report in passed.items():
        assert name in report.not_compared, name
    assert set(passed) == {("policy", "other"), ("created", "other"), ("recorded", "gone")}


def test_each_value_of_the_fingerprint_is_told_where_it_changed(recording: Path, env: Any, tmp_path: Path) -> None:
    """Also where whoever changed it has changed the attribute of that name with it."""
    path = tmp_path / "run.h5"
    with h5py.File(recording) as file:
        fingerprint = json.loads(file.attrs["fingerprint"])
    for key, value in fingerprint.items():
        path.write_bytes(recording.read_bytes())
        other = value + 1 if isinstance(value, int | float) else {"changed": True}
        other = f"{value}x" if isinstance(value, str) else other
        with h5py.File(path, "r+") as file:
            plain = isinstance(other, str | int | float)
            file.attrs["fingerprint"] = json.dumps({**fingerprint, key: other}, sort_keys=True)
            file.attrs[key] = other if plain else json.dumps(other, sort_keys=True)
        report = checked(path, env)
        if not isinstance(report, str):
            assert any(word.startswith(key) for word in report.changed), key
            assert f"  {key}" in report.summary(), key


def test_what_a_recording_says_against_itself_is_found_on_any_processor(
    recording: Path, env: Any, tmp_path: Path
) -> None:
    """Rounding explains no sum that is not the sum."""
    path = tmp_path / "run.h5"
    path.write_bytes(recording.read_bytes())
    with h5py.File(path, "r+") as file:
        table = file["block_0/episodes"]
        table["return"][0] += 1.0
        table["success_once"][1] = True
        made = {**json.loads(file.attrs["fingerprint"]), "machine": {"processor": "another"}}
        file.attrs["fingerprint"] = json.dumps(made, sort_keys=True)
        file.attrs["machine"], file.attrs["processor"] = json.dumps(made["machine"]), "another"
    report = replay(path, env)
    assert not report.promised and not report.ok and not report.exact
    assert "in the table and" in report.episodes[0].contradictions[0] and "return is" in report.summary()
    assert report.episodes[1].contradictions == ("success_once is True in the table and False by what was recorded",)
    with h5py.File(path, "r+") as file:
        file.attrs["recorded"] = json.dumps({"first_seed": 6, "keep": "success", "states": False})
    assert set(replay(path, env, numbers=[0]).contradictions) == {
        "episode 0 has the seed 7, and episode 0 the seed 6",
        "states were not kept, and episode 0 has some",
        "only success was kept, and episode 0 is none: never_grasped",
    }


def test_what_an_older_recording_lacks_is_named(recording: Path, env: Any, tmp_path: Path) -> None:
    path = tmp_path / "old.h5"
    path.write_bytes(recording.read_bytes())
    with h5py.File(path, "r+") as file:
        for name in ("steps/forces", "steps/flags/clipped", "instants/states", "instants/observations"):
            del file["block_0"][name]
        for name in ("force_sum", "force_peak"):
            del file["block_0/episodes"][name]
        del file["block_0/initial/model/geom_sameframe"]  # and a field that did not vary yet
        del file.attrs["recorded"]
    report = replay(path, env, numbers=[1])
    assert report.exact, report.summary()
    said = {name: why for name, why in report.not_compared.items() if why == "not recorded"}
    assert set(said) == {"forces", "flags/clipped", "states", "observations", "recorded"}
    assert "number" in report.not_compared and report.not_compared["1 more episode"] == "not played"
