"""Processes of torchrun that train one network together."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from manikin.env.state.packed import unpack
from manikin.errors import ConfigError
from manikin.learn.common.parallel.ranks import Ranks
from manikin.learn.run import store
from manikin.learn.run.recipe import Recipe
from manikin.learn.run.record import read_progress
from manikin.learn.run.train import train

RECIPE = Recipe(
    algorithm="ppo",
    task="PushCube-v2",
    env={"num_envs": 4, "horizon": 8},
    settings={"num_steps": 6, "epochs": 1, "minibatches": 1, "hidden": [8], "critic_hidden": [8], "target_kl": 0.0},
    steps=2 * 24 * 4,
    minutes=0,
    validate_every=2,
    validation_episodes=4,
)


def together(recipe: Path, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    run += ["-m", "manikin.cli", "train", *more]
    begin = [] if more else ["--recipe", str(recipe), "--out", str(out), "--seed", "5", "--no-test"]
    return subprocess.run([*run, *begin], capture_output=True, text=True, timeout=300)


def test_two_processes_train_one_network_with_the_rows_of_both(tmp_path: Path) -> None:
    """Together they have the episodes of one process, count all steps, and hold the same network; and they go on."""
    file = tmp_path / "recipe.toml"
    file.write_text(RECIPE.to_toml())
    ran = together(file, tmp_path / "two")
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert ran.stdout.count("seed 5: recipe") == 1, "only the first process speaks"
    train(RECIPE.replace(env={"num_envs": 8}), folder=tmp_path / "one", seed=5)
    one, two = (read_progress(tmp_path / name / "progress.csv") for name in ("one", "two"))
    assert [row["steps"] for row in two] == [row["steps"] for row in one] == [48, 96, 144, 192]
    ours, theirs = (store.read(tmp_path / name / "checkpoint.safetensors")[0]["trainer"] for name in ("two", "one"))
    assert float(ours["moments"]["count"]) == float(theirs["moments"]["count"]) == 8 + 192
    starts = ours["episodes"]["env"].extra["seed"].tolist()
    assert starts == theirs["episodes"]["env"].extra["seed"].tolist()[:4]
    (other,) = store.read(tmp_path / "two" / "checkpoint.safetensors")[0]["others"]
    second = unpack(other.numpy().tobytes())
    for part in ("actor", "critic", "moments"):
        for name, value in ours[part].items():
            assert torch.equal(value, second[part][name]), f"{name}: the processes hold different networks"
    assert second["episodes"]["env"].extra["seed"].tolist() == theirs["episodes"]["env"].extra["seed"].tolist()[4:]

    again = together(file, tmp_path / "two", "--resume", str(tmp_path / "two"), "--steps", "288", "--no-test")
    assert again.returncode == 0, again.stderr[-3000:]
    longer = RECIPE.replace(steps=288)
    file.write_text(longer.to_toml())
    assert together(file, tmp_path / "whole").returncode == 0
    ours, theirs = (store.read(tmp_path / name / "checkpoint.safetensors")[0]["trainer"] for name in ("two", "whole"))
    for name, value in ours["actor"].items():
        assert torch.equal(value, theirs["actor"][name]), f"{name}: a resumed run parts from one that was not"
    with pytest.raises(ConfigError, match="begun by 2 of torchrun's processes, and there are 1 now"):
        train(longer, folder=tmp_path / "two", seed=5, resume=True)


EXCHANGE = """
import torch
from manikin.learn.common.parallel.ranks import Ranks
ranks = Ranks.here()
one, other = torch.full((2, 2), 1.0 + ranks.rank), torch.tensor(10.0 * ranks.rank)
ranks.average([one, other])
assert one.tolist() == [[1.5, 1.5], [1.5, 1.5]] and other.item() == 5.0
assert ranks.joined(torch.tensor([[ranks.rank, 7]])).tolist() == [[0, 7], [1, 7]]
assert ranks.gathered(b"ab" * (1 + ranks.rank)) == [b"ab", b"abab"]
if ranks.rank == 0:
    ranks.say("0.25")
else:
    assert ranks.hear() == "0.25"
ranks.close()
"""


def test_what_processes_exchange(tmp_path: Path) -> None:
    (tmp_path / "exchange.py").write_text(EXCHANGE)
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    ran = subprocess.run([*run, str(tmp_path / "exchange.py")], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr[-3000:]


def test_alone_nothing_changes() -> None:
    ranks, rows = Ranks(), torch.rand(3, 2)
    kept = rows.clone()
    ranks.average([rows])
    assert ranks.joined(rows) is rows and torch.equal(rows, kept) and ranks.gathered(b"a") == [b"a"]
    assert Ranks.here().size == 1


def test_others_than_ppo_train_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ranks, "here", classmethod(lambda cls, device: cls(0, 2)))
    recipe = Recipe.from_toml(RECIPE.to_toml().replace('"ppo"', '"sac"').split("[settings]")[0])
    with pytest.raises(ConfigError, match="torchrun trains ppo, without --on"):
        train(recipe, folder=tmp_path / "run")
