"""What a run says and leaves that is stopped early: before its first checkpoint, and while it collects."""

from __future__ import annotations

import os
import signal

import pytest
import torch

from manikin.cli import main
from manikin.data.recording.read import EpisodeFile
from manikin.errors import DivergedError
from manikin.learn.ppo import PPO
from manikin.learn.run import demos
from manikin.learn.run.recipe import Recipe
from manikin.learn.run.train import CHECKPOINT, train

RECIPE = Recipe(
    algorithm="ppo",
    task="PushCube-v2",
    env={"num_envs": 4, "horizon": 8},
    settings={"num_steps": 6, "epochs": 1, "minibatches": 2, "hidden": [8], "critic_hidden": [8]},
    steps=4 * 24,
    minutes=0,
    validation_episodes=2,
)


def test_a_loss_that_is_not_finite_says_whether_there_is_a_checkpoint(tmp_path, monkeypatch):
    collect, left = PPO.collect, [1]

    def poisoned(trainer):
        batch = collect(trainer)
        left[0] -= 1
        if left[0] < 0:
            batch[0]["returns"][0] = torch.nan
        return batch

    monkeypatch.setattr(PPO, "collect", poisoned)
    with pytest.raises(DivergedError, match=r"loss is nan.* smaller learning rate\. There is no checkpoint yet$"):
        train(RECIPE, folder=tmp_path / "none", seed=5)
    assert not (tmp_path / "none" / CHECKPOINT).exists()
    left[0] = 1
    with pytest.raises(DivergedError, match=r"smaller learning rate\. The last good checkpoint is kept$"):
        train(RECIPE, folder=tmp_path / "one", seed=5, save_every=0)
    assert (tmp_path / "one" / CHECKPOINT).exists()


def test_ctrl_c_while_demonstrations_are_collected_is_an_interruption(tmp_path, monkeypatch, capsys):
    played = demos.run_episodes

    def interrupted(*given, **named):
        os.kill(os.getpid(), signal.SIGINT)
        return played(*given, **named)

    words = ["train", "bc", "PushCube-v2", "--out", str(tmp_path), "--steps", "1", "--minutes", "0", "--no-test"]
    words += ["--set", "demonstrations=3", "updates=1", "hidden=[8]", "env.horizon=40"]
    with monkeypatch.context() as patch:
        patch.setattr(demos, "run_episodes", interrupted)
        assert main(words) == 130
    said = " ".join(capsys.readouterr().out.split())
    assert "interrupted while demonstrations were collected; the same command goes on" in said
    assert main(words) == 0
    with EpisodeFile(tmp_path / demos.DEMOS) as file:
        assert len(file) == 3
