"""Environments in actors of a Ray cluster: the rows of one process, also where an actor or the cluster is killed."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest
import torch

from manikin import make
from manikin.learn.run.recipe import recipe_for
from manikin.learn.run.spread_rows import Workers, spread_rows, training_options
from manikin.spread.cluster import Cluster
from manikin.spread.servants import ServantActors

pytest.importorskip("ray", reason="needs pip install 'manikin[ray]'")


def killed(name: str) -> None:
    """Kill the processes of this name below this one."""
    every = subprocess.run(["ps", "-eww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True)
    rows = [line.split(None, 2) for line in every.stdout.splitlines()]
    below = {str(os.getpid())}
    for _ in range(4):
        below |= {pid for pid, parent, _ in rows if parent in below}
    found = [int(pid) for pid, _, command in rows if pid in below and name in command]
    assert found, f"no process {name}"
    for pid in found[:1]:
        os.kill(pid, signal.SIGKILL)


def test_rows_in_actors_are_those_of_one_process_also_when_they_are_killed() -> None:
    recipe = recipe_for("ppo", "PushCube-v2")[0].replace(env={"num_envs": 3, "horizon": 4})
    one = make(recipe.task, options=training_options(recipe))
    workers = Workers(lambda word, settings: ServantActors(Cluster(most=2), word, settings), 2, recipe.task)
    rows = spread_rows(recipe, workers, device="cpu")
    try:
        assert torch.equal(rows.reset(seed=[7, 8, 11])[0], one.reset(seed=[7, 8, 11])[0])
        for step in range(6):
            if step == 2:
                killed("ray::Held")
            if step == 4:
                killed("raylet")
            actions = torch.full((3, one.single_action_space.shape[0]), 0.1 * step)
            for ours, theirs in zip(rows.step(actions)[:4], one.step(actions)[:4], strict=True):
                assert torch.equal(ours, theirs), f"step {step}"
    finally:
        rows.close()
        one.close()
