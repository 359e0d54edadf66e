"""Commands with --on: the same to the bit as in one process, on processes, as an array job, with workers killed."""

from __future__ import annotations

import json
import os
import random
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manikin.cli.collect import CollectOptions
from manikin.cli.collect import run as collect
from manikin.cli.evaluate import EvalOptions
from manikin.cli.evaluate import run as evaluate
from manikin.cli.replay import ReplayOptions
from manikin.cli.replay import run as replay_command
from manikin.cli.spread.run import array_place
from manikin.cli.train import TrainOptions
from manikin.cli.train import run as train
from manikin.data.recording.read import EpisodeFile
from manikin.data.replay.verify import replay
from manikin.errors import ConfigError, DataError
from manikin.eval.protocol import Protocol
from manikin.spread.processes import Processes

POLICY = """
import torch

class Unlucky:
    name = "unlucky"

    def __init__(self, env):
        self.env = env

    def reset(self, rows):
        if {bad} in self.env.save(rows.numpy()).extra["seed"].tolist():
            raise RuntimeError("this policy cannot do seed {bad}")

    def act(self, observation, instruction):
        return torch.zeros(self.env.num_envs, 1, self.env.single_action_space.shape[0])
"""


def collected(out: Path, **more: Any) -> CollectOptions:
    wanted = {"episodes": 10, "num_envs": 3, "horizon": 12, "seed": 5, "policy": "random", "check_disk": False}
    return CollectOptions(task="PickCube-v2", out=out, **{**wanted, **more})


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recording of one process."""
    path = tmp_path_factory.mktemp("alone") / "alone.h5"
    assert collect(collected(path, observations=True)) == 0
    return path


def assert_same(one: Path, other: Path) -> None:
    """All that is recorded is the same, not only what the hash of the content is of."""
    with EpisodeFile(one) as first, EpisodeFile(other) as second:
        assert first.content_hash() == second.content_hash()
        assert first.numbers == second.numbers
        for a, b in zip(first, second, strict=True):
            assert (a.seed, a.index, a.options, a.instruction, a.health, a.mode) == (
                b.seed,
                b.index,
                b.options,
                b.instruction,
                b.health,
                b.mode,
            )
            for name in ("actions", "rewards", "state_hash", "states", "success", "fail", "terminated", "truncated"):
                assert np.array_equal(getattr(a, name), getattr(b, name)), name
            for name in ("flags", "forces", "reward_terms", "joints", "initial", "observations"):
                left, right = getattr(a, name) or {}, getattr(b, name) or {}
                assert left.keys() == right.keys()
                assert all(np.array_equal(left[key], right[key]) for key in left), name


@pytest.mark.parametrize(("workers", "per_shard"), [(1, 4), (2, 3)])
def test_a_recording_is_the_same_from_any_number_of_workers(
    alone: Path, tmp_path: Path, workers: int, per_shard: int
) -> None:
    path = tmp_path / "spread.h5"
    options = collected(path, observations=True, on="local", workers=workers, per_shard=per_shard)
    assert collect(options) == 0
    assert_same(alone, path)
    assert os.listdir(tmp_path) == ["spread.h5"]
    assert replay(path, num_envs=2, numbers=[0, 9]).exact
    with pytest.raises(DataError, match="exists"):
        collect(options)
    assert collect(replace(options, resume=True)) == 0  # nothing is left to do
    assert_same(alone, path)


def test_workers_that_are_killed_change_nothing(alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance, listen, kills = random.Random(3), Processes.listen, []

    def killing(crew: Processes, seconds: float) -> Any:
        words = listen(crew, seconds)
        if len(kills) < 4 and any(word.kind == "step" for word in words):
            kills.append(chance.choice(list(crew.pids.values())))
            os.kill(kills[-1], signal.SIGKILL)
        return words

    monkeypatch.setattr(Processes, "listen", killing)
    path = tmp_path / "killed.h5"
    assert collect(collected(path, observations=True, on="local", workers=2, per_shard=5, num_envs=1)) == 0
    assert len(kills) == 4
    assert_same(alone, path)


def test_what_one_process_began_workers_go_on_with(alone: Path, tmp_path: Path) -> None:
    path = tmp_path / "begun.h5"
    assert collect(collected(path, observations=True, shard="0/3")) == 0
    assert collect(collected(path, observations=True, on="local", workers=1, resume=True)) == 0
    assert_same(alone, path)


def test_an_array_job_records_the_same_and_its_last_task_merges(
    alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "array.h5"
    options = collected(path, observations=True, on="slurm-array", per_shard=2)
    monkeypatch.setenv("SLURM_ARRAY_TASK_COUNT", "2")
    monkeypatch.setenv("SLURM_ARRAY_TASK_MIN", "1")
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "2")
    assert collect(options) == 0 and not path.exists()
    assert "3 shards of other tasks" in capsys.readouterr().out
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "1")
    assert collect(options) == 0
    assert_same(alone, path)
    assert os.listdir(tmp_path) == ["array.h5"]
    assert collect(options) == 0  # a task that is started once more
    assert_same(alone, path)


def test_the_place_in_an_array_job() -> None:
    def place(number: str, count: str = "4", **more: str) -> tuple[int, int]:
        given = {"SLURM_ARRAY_TASK_ID": number, "SLURM_ARRAY_TASK_COUNT": count}
        return array_place({**given, **{f"SLURM_ARRAY_TASK_{k}": v for k, v in more.items()}})

    assert place("3") == (3, 4)
    assert place("10", MIN="4", STEP="2") == (3, 4)
    with pytest.raises(ConfigError, match="not one of 4 tasks"):
        place("4")
    with pytest.raises(ConfigError, match="SLURM_ARRAY_TASK_ID and SLURM_ARRAY_TASK_COUNT"):
        array_place({})


def test_an_episode_that_fails_is_named_with_its_seed_and_the_rest_is_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "policy.py").write_text(POLICY.format(bad=7))
    path, word = tmp_path / "unlucky.h5", f"{tmp_path / 'policy.py'}:Unlucky"
    options = collected(path, policy=word, episodes=5, on="local", workers=1, per_shard=4)
    assert collect(options) == 1
    said = capsys.readouterr().out
    assert said.count("episode 2 (seed 7) failed: RuntimeError: this policy cannot do seed 7") == 1
    with EpisodeFile(path) as file:
        assert file.numbers == [0, 1, 3, 4]
    (tmp_path / "policy.py").write_text(POLICY.format(bad=-1))  # mended
    assert collect(replace(options, resume=True)) == 0
    with EpisodeFile(path) as file:
        assert file.numbers == [0, 1, 2, 3, 4]
    assert sorted(os.listdir(tmp_path)) == ["policy.py", "unlucky.h5"]


def test_an_evaluation_is_the_same_from_workers(tmp_path: Path) -> None:
    protocol = tmp_path / "short.toml"
    tasks = ("PickCube-v2", "PushCube-v2")
    protocol.write_text(Protocol(name="short", tasks=tasks, seeds=tuple(range(5)), horizon=12).to_toml())
    shared: dict[str, Any] = {"protocol": str(protocol), "policy": ("random",), "pictures": 0, "num_envs": 3}
    assert evaluate(EvalOptions(out=tmp_path / "alone", **shared)) == 0
    assert evaluate(EvalOptions(out=tmp_path / "local", on="local", workers=2, per_shard=2, **shared)) == 0
    reports = [json.loads((tmp_path / name / "report.json").read_text()) for name in ("alone", "local")]
    for report in reports:
        del report["created"]
        for told in (report["overall"], *(task["aggregated"] for task in report["per_task"])):
            assert told.pop("eval_s") > 0 and told.pop("eval_ep_s") > 0  # how long it took
    assert reports[0] == reports[1]
    assert sorted(os.listdir(tmp_path / "local")) == ["report.html", "report.json"]


def test_an_evaluation_whose_episode_fails_says_so_and_goes_on(tmp_path: Path) -> None:
    protocol = tmp_path / "short.toml"
    protocol.write_text(Protocol(name="s", tasks=("PickCube-v2",), seeds=(4, 7, 9), horizon=6).to_toml())
    (tmp_path / "policy.py").write_text(POLICY.format(bad=7))
    word = f"{tmp_path / 'policy.py'}:Unlucky"
    options = EvalOptions(protocol=str(protocol), policy=(word,), pictures=0, out=tmp_path / "e", on="local", workers=1)
    assert evaluate(options) == 1
    report = json.loads((tmp_path / "e" / "report.json").read_text())
    assert [e["seed"] for e in report["per_task"][0]["per_episode"]] == [4, 9]
    assert "episode 1 of PickCube-v2 (seed 7) failed" in report["error"]


def test_options_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    for given, said in (
        ({"on": "moon"}, "--on takes local, ray, ray://HOST:PORT or slurm-array"),
        ({"workers": 2}, "--workers is only valid with --on"),
        ({"on": "local", "workers": 0}, "at least 1"),
        ({"on": "local", "worker_gpus": 0.5}, "only valid with --on ray"),
        ({"on": "slurm-array", "workers": 2}, "--array says how many"),
        ({"on": "local", "shard": "0/2"}, "leave it out with --on"),
        ({"on": "local", "deadline": 0.0}, "must be positive"),
    ):
        with pytest.raises(ConfigError, match=said):
            collect(collected(tmp_path / "no.h5", **given))
    assert not os.listdir(tmp_path)


def test_a_new_recording_of_an_old_one_is_the_same_from_workers(alone: Path, tmp_path: Path) -> None:
    wanted: dict[str, Any] = {"file": alone, "observe": "state_dict", "reward": "sparse", "num_envs": 2}
    assert replay_command(ReplayOptions(out=tmp_path / "here.h5", **wanted)) == 0
    path = tmp_path / "spread.h5"
    assert replay_command(ReplayOptions(out=path, on="local", workers=2, per_shard=4, **wanted)) == 0
    assert_same(tmp_path / "here.h5", path)
    assert sorted(os.listdir(tmp_path)) == ["here.h5", "spread.h5"]
    with pytest.raises(ConfigError, match="writes a new recording"):
        replay_command(ReplayOptions(file=alone, check=True, on="local"))


def test_runs_of_a_comparison_are_the_same_from_workers(tmp_path: Path) -> None:
    shared: dict[str, Any] = {"algorithm": "ppo", "task": "PickCube-v2", "steps": 512, "minutes": 0.0, "test": False}
    shared |= {"set": ("env.num_envs=4", "num_steps=16", "hidden=[8]"), "seeds": (0, 1), "pictures": 0}
    assert train(TrainOptions(out=tmp_path / "here", **shared)) == 0
    assert train(TrainOptions(out=tmp_path / "spread", on="local", workers=2, **shared)) == 0
    for seed in (0, 1):
        name = Path(f"as-it-is-{seed}") / "policy.safetensors"
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "spread" / name).read_bytes()
    assert (tmp_path / "spread" / "compared.html").exists() and not (tmp_path / "spread" / "spread").exists()
    with pytest.raises(ConfigError, match="give --vary or --seeds"):
        train(TrainOptions(algorithm="ppo", task="PickCube-v2", on="slurm-array"))
