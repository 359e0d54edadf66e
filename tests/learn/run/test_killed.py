"""A run in a process of its own that is killed, and goes on; and its log for TensorBoard."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
import torch

from manikin.cli import main
from manikin.learn.run import store
from manikin.learn.run.recipe import Recipe
from manikin.learn.run.record import read_progress
from manikin.learn.run.train import train
from manikin.policy.trained import load_trained

RECIPE = Recipe(
    algorithm="ppo",
    task="PushCube-v2",
    env={"num_envs": 4, "horizon": 8},
    settings={"num_steps": 6, "epochs": 1, "minibatches": 2, "hidden": [8], "critic_hidden": [8]},
    steps=24 * 250,
    minutes=0,
    validate_every=50,
    validation_episodes=4,
    test_episodes=4,
)


def _lines(folder):
    return [{k: v for k, v in row.items() if "seconds" not in k} for row in read_progress(folder / "progress.csv")]


def _leaves(tree, path=""):
    if hasattr(tree, "__dict__") and not isinstance(tree, torch.Tensor):
        tree = vars(tree)
    if isinstance(tree, dict):
        return {name: leaf for key, one in tree.items() for name, leaf in _leaves(one, f"{path}/{key}").items()}
    if isinstance(tree, list | tuple):
        return {name: leaf for i, one in enumerate(tree) for name, leaf in _leaves(one, f"{path}/{i}").items()}
    return {path: tree}


def _same(one, other):
    return bool((one == other).all()) if hasattr(one, "shape") else one == other


def test_a_process_that_is_killed_goes_on_to_the_bits_of_one_that_was_not(tmp_path):
    recipe, whole, part = tmp_path / "recipe.toml", tmp_path / "whole", tmp_path / "part"
    recipe.write_text(RECIPE.to_toml())
    train(RECIPE, folder=whole, seed=5)
    command = ["train", "--recipe", str(recipe), "--seed", "5", "--out", str(part), "--no-test", "--save-every", "0"]
    running = subprocess.Popen([sys.executable, "-m", "manikin.cli", *command], stdout=subprocess.DEVNULL)
    try:
        begin = time.monotonic()
        while not (part / "checkpoint.safetensors").exists() or len(read_progress(part / "progress.csv")) < 3:
            assert running.poll() is None, "it ended before it was killed"
            assert time.monotonic() - begin < 240, "it did not begin"
            time.sleep(0.002)
        running.send_signal(signal.SIGKILL)
        assert running.wait() == -signal.SIGKILL
    finally:
        running.kill()
        running.wait()
    logged = len(read_progress(part / "progress.csv"))
    saved = store.read(part / "checkpoint.safetensors")[0]["state"]["iteration"]
    assert 1 <= saved <= logged < 250 and not (part / "policy.pt2").exists()
    assert main(["train", "--resume", str(part), "--no-test"]) == 0
    assert _lines(part) == _lines(whole) and len(_lines(part)) == 250
    ours, theirs = (_leaves(store.read(folder / "checkpoint.safetensors")[0]["trainer"]) for folder in (part, whole))
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if not _same(ours[name], theirs[name])] == []
    ours, theirs = (load_trained(folder)[0].state_dict() for folder in (part, whole))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert not [name for name in os.listdir(part) if name.endswith(".tmp")]


def test_a_checkpoint_is_as_old_as_was_asked_for(tmp_path, monkeypatch):
    """With a clock that advances a second whenever it is read."""
    clock = iter(range(10**6))
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(clock)))
    written, write = [], store.write
    monkeypatch.setattr(store, "write", lambda path, *rest: written.append(path.name) or write(path, *rest))
    counts = {}
    for every in (1e9, 0.0):
        written.clear()
        train(RECIPE.replace(steps=24 * 60), folder=tmp_path / str(every), seed=5, save_every=every)
        counts[every] = len(written)
    assert counts[1e9] == 1 < counts[0.0]


def test_tensorboard_shows_the_numbers_of_the_log(tmp_path):
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed: pip install 'manikin[learn]'")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    train(RECIPE.replace(steps=24 * 4, validate_every=2), folder=tmp_path, seed=5, tensorboard=True)
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    rows = read_progress(tmp_path / "progress.csv")
    shown = {name for row in rows for name in row} - {"iteration", "steps"}
    assert set(events.Tags()["scalars"]) == shown and {"loss", "validated_success", "seconds"} <= shown
    for name in shown:
        found = [(event.step, event.value) for event in events.Scalars(name)]
        assert found == [(row["steps"], pytest.approx(row[name], rel=1e-6)) for row in rows if name in row]
