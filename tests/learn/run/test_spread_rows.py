"""Environments in workers: the same rows and the same training as in one process, whatever happens to the workers."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch

from manikin import make
from manikin.cli import main
from manikin.errors import ConfigError, DataError
from manikin.learn.run import store
from manikin.learn.run.recipe import Recipe, recipe_for
from manikin.learn.run.record import read_progress
from manikin.learn.run.spread_rows import Workers, spread_rows, training_options
from manikin.learn.run.train import train
from manikin.machine import exact_machine
from manikin.spread.servants import ServantProcesses

SMALL = {"hidden": [8], "critic_hidden": [8]}
PPO = Recipe(
    algorithm="ppo",
    task="PushCube-v2",
    env={"num_envs": 5, "horizon": 8},
    settings={**SMALL, "num_steps": 6, "epochs": 1, "minibatches": 2},
    steps=5 * 6 * 4,
    minutes=0,
    validate_every=2,
    validation_episodes=4,
    test_episodes=4,
)
SAC = recipe_for("sac", "PushCube-v2")[0].replace(
    env={"num_envs": 5, "horizon": 8},
    settings={**SMALL, "num_steps": 4, "updates": 2, "batch": 16, "buffer": 1000, "start_steps": 40},
    steps=5 * 4 * 6,
    minutes=0,
    validate_every=3,
    validation_episodes=4,
)


def workers_of(recipe: Recipe, log: Path, count: int, opened: list[ServantProcesses] | None = None) -> Workers:
    def start(word, settings):
        servants = ServantProcesses(word, settings, log=log)
        if opened is not None:
            opened.append(servants)
        return servants

    return Workers(start, count, recipe.task)


def equal(ours, theirs, path=""):
    """Two trees of values, to the bit."""
    if hasattr(ours, "__dict__") and not isinstance(ours, torch.Tensor):
        ours, theirs = vars(ours), vars(theirs)
    if isinstance(ours, dict):
        assert list(ours) == list(theirs), path
        for name in ours:
            equal(ours[name], theirs[name], f"{path}/{name}")
    elif isinstance(ours, list | tuple):
        for k, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            equal(one, other, f"{path}/{k}")
    elif isinstance(ours, torch.Tensor | np.ndarray):
        assert ours.dtype == theirs.dtype and bool((ours == theirs).all()), path
    else:
        assert ours == theirs, path


def trained(folder: Path):
    """All that a run has come to."""
    checkpoint = store.read(folder / "checkpoint.safetensors")[0]
    log = [{k: v for k, v in row.items() if "seconds" not in k} for row in read_progress(folder / "progress.csv")]
    return checkpoint["trainer"], log


# ---- rows ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["PushCube-v2", "OpenCabinetDrawer-v2"])  # rows with one scene, and with several
def test_rows_are_those_of_one_process_also_when_workers_are_killed(task: str, tmp_path: Path) -> None:
    recipe = PPO.replace(task=task, env={"num_envs": 3, "horizon": 4})
    one = make(task, options=training_options(recipe))
    opened: list[ServantProcesses] = []
    rows = spread_rows(recipe, workers_of(recipe, tmp_path / "log.txt", 2, opened), device="cpu")
    noise = torch.Generator().manual_seed(1)
    try:
        assert rows.num_envs == 3 and rows.single_observation_space == one.single_observation_space
        equal(rows.reset(seed=[7, 8, 11])[0], one.reset(seed=[7, 8, 11])[0])
        saved = None
        for step in range(8):
            if step in (2, 5):
                os.kill(next(iter(opened[0].pids.values())), signal.SIGKILL)
            actions = 2 * torch.rand((3, one.single_action_space.shape[0]), generator=noise) - 1
            ours, theirs = rows.step(actions), one.step(actions)
            equal(list(ours[:4]), list(theirs[:4]), f"step {step}")
            equal(ours[4]["success"], theirs[4]["success"])
            assert ("final_obs" in ours[4]) == ("final_obs" in theirs[4]) == (step in (3, 6, 7))
            if "final_obs" in ours[4]:
                ended = theirs[4]["_final_obs"]
                equal(ours[4]["final_obs"][ended], theirs[4]["final_obs"][ended])
                equal(ours[4]["final_info"]["elapsed"][ended], theirs[4]["final_info"]["elapsed"][ended])
            if step == 2:  # so that not all end together
                mask = {"reset_mask": torch.tensor([False, True, False])}
                equal(rows.reset(options=mask)[0], one.reset(options=mask)[0])
            if step == 4:
                saved = (rows.save(), one.save())
                equal(saved[0].extra["seed"], saved[1].extra["seed"])
        assert rows.seconds > 0
        equal(rows.load(saved[1])[0], one.load(saved[0])[0])  # each takes what the other saved
        actions = torch.zeros((3, one.single_action_space.shape[0]))
        equal(rows.step(actions)[0], one.step(actions)[0])
    finally:
        rows.close()
        one.close()
    assert opened[0].pids == {}


def test_what_workers_cannot_do_is_said(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    with pytest.raises(ConfigError, match="of ppo and sac in workers, not of tdmpc2"):
        spread_rows(recipe_for("tdmpc2", "PushCube-v2")[0], workers_of(PPO, log, 2), device="cpu")
    with pytest.raises(ConfigError, match="6 workers cannot share 5 environments"):
        spread_rows(PPO, workers_of(PPO, log, 6), device="cpu")
    opened: list[ServantProcesses] = []
    with pytest.raises(ConfigError, match="NoTask"):
        spread_rows(PPO, Workers(workers_of(PPO, log, 2, opened).open, 2, "NoTask-v1"), device="cpu")
    assert opened[0].pids == {}, "a worker was left behind"
    recipe = PPO.replace(env={"num_envs": 2})
    rows = spread_rows(recipe, workers_of(recipe, log, 2), device="cpu")
    try:
        with pytest.raises(ConfigError, match="these rows are in workers"):
            rows.part(0)
        with pytest.raises(ConfigError, match="a seed for each row"):
            rows.reset(seed=3)
        with pytest.raises(ConfigError, match="there are 2"):
            rows.load(rows_of_another())
    finally:
        rows.close()


def rows_of_another():
    env = make("PushCube-v2", num_envs=1)
    env.reset(seed=0)
    saved = env.save()
    env.close()
    return saved


def test_a_worker_that_always_ends_is_given_up(tmp_path: Path) -> None:
    class Dying(ServantProcesses):
        def start(self) -> int:
            servant = super().start()
            os.kill(self.pids[servant], signal.SIGKILL)
            return servant

    start = lambda word, settings: Dying(word, settings, log=tmp_path / "log.txt")  # noqa: E731
    with pytest.raises(DataError, match="3 workers in a row ended at the same request"):
        spread_rows(PPO, Workers(start, 1, PPO.task), device="cpu")


def test_a_worker_that_hangs_is_replaced(tmp_path: Path) -> None:
    recipe = PPO.replace(env={"num_envs": 2})
    opened: list[ServantProcesses] = []

    class Patient(ServantProcesses):
        """Whoever begins has time."""

        def start(self) -> int:
            self.deadline = 120.0
            return super().start()

    def start(word, settings):
        opened.append(Patient(word, settings, log=tmp_path / "log.txt"))
        return opened[-1]

    rows = spread_rows(recipe, Workers(start, 1, PPO.task), device="cpu")
    try:
        first = rows.reset(seed=[1, 2])[0]
        (before,) = opened[0].pids.values()
        os.kill(before, signal.SIGSTOP)
        opened[0].deadline = 0.5
        assert torch.equal(rows.reset(seed=[1, 2])[0], first)
        assert before not in opened[0].pids.values()
    finally:
        rows.close()


# ---- training --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recipe", [PPO, SAC], ids=["ppo", "sac"])
def test_a_run_is_that_of_one_process(recipe: Recipe, tmp_path: Path) -> None:
    train(recipe, folder=tmp_path / "one", seed=5)
    workers = workers_of(recipe, tmp_path / "log.txt", 2)
    count = iter(range(10))
    part = train(recipe, folder=tmp_path / "two", seed=5, workers=workers, stop=lambda: next(count) == 2)
    assert part.why == "interrupted"
    train(recipe, folder=tmp_path / "two", seed=5, resume=True)  # goes on without workers
    equal(trained(tmp_path / "one"), trained(tmp_path / "two"))
    assert {row["behind"] for row in trained(tmp_path / "one")[1]} == {0.0}


@pytest.mark.parametrize("recipe", [PPO, SAC], ids=["ppo", "sac"])
def test_with_a_lag_the_same_comes_out_each_time_and_it_is_said(recipe: Recipe, tmp_path: Path) -> None:
    behind = recipe.replace(settings={"lag": 1})
    train(behind, folder=tmp_path / "one", seed=5)
    workers = workers_of(recipe, tmp_path / "log.txt", 2)
    count = iter(range(10))
    part = train(behind, folder=tmp_path / "two", seed=5, stop=lambda: next(count) == 2)
    assert part.why == "interrupted"
    train(behind, folder=tmp_path / "two", seed=5, resume=True, workers=workers)
    equal(trained(tmp_path / "one"), trained(tmp_path / "two"))
    train(recipe, folder=tmp_path / "zero", seed=5)
    lagging, prompt = trained(tmp_path / "one")[1], trained(tmp_path / "zero")[1]
    assert [row["behind"] for row in lagging] == [0.0] + [1.0] * (len(lagging) - 1)
    assert [row["steps"] for row in lagging] == [row["steps"] for row in prompt]
    assert lagging[0]["episodes"] == prompt[0]["episodes"]
    assert lagging != prompt, "older networks act otherwise"


def test_a_checkpoint_from_before_there_were_lags_goes_on(tmp_path: Path) -> None:
    count = iter(range(10))
    train(PPO, folder=tmp_path / "run", seed=5, stop=lambda: next(count) == 2)
    file = tmp_path / "run" / "checkpoint.safetensors"
    tree, about = store.read(file)
    del tree["trainer"]["ahead"], tree["others"]
    store.write(file, tree, about)
    assert train(PPO, folder=tmp_path / "run", seed=5, resume=True).why == "steps"


def test_a_lag_is_none_or_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="lag must be 0 or 1, got 2"):
        train(PPO.replace(settings={"lag": 2}), folder=tmp_path / "run")


def test_the_command_takes_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipe.toml").write_text(PPO.to_toml())
    run = ["train", "--recipe", "recipe.toml", "--no-test", "--seed", "5"]
    assert main([*run, "--out", "one"]) == 0
    assert main([*run, "--out", "two", "--on", "local", "--workers", "2"]) == 0
    equal(trained(tmp_path / "one"), trained(tmp_path / "two"))
    assert main([*run, "--out", "three", "--on", "slurm-array"]) == 2
    assert "--on slurm-array spreads the runs of a comparison" in capsys.readouterr().err
    assert main([*run, "--out", "three", "--on", "local", "--per-shard", "2"]) == 2
    assert "leave --per-shard and --threads out" in " ".join(capsys.readouterr().err.split())
    assert main([*run, "--out", "three", "--on", "ray://head:10001"]) == 2
    assert "say with --workers how many actors" in " ".join(capsys.readouterr().err.split())


def test_workers_on_another_kind_of_machine_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = PPO.replace(env={"num_envs": 2, "horizon": 4})
    there = {**exact_machine(), "cpu": "another"}
    monkeypatch.setattr("manikin.learn.run.spread_rows.exact_machine", lambda device: there)
    with pytest.warns(UserWarning, match="a worker is of another kind than this process.* cpu: .* here, another there"):
        spread_rows(recipe, workers_of(recipe, tmp_path / "log.txt", 1), device="cpu").close()
