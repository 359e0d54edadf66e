"""A minute of training is better than chance."""

from __future__ import annotations

import pytest

from manikin import make
from manikin.eval.runner import run_episodes
from manikin.eval.stats import wilson
from manikin.learn.common.seeds import VALIDATION
from manikin.learn.run.recipe import recipe_for
from manikin.learn.run.record import read_progress
from manikin.learn.run.train import train
from manikin.policy.random_policy import RandomPolicy


@pytest.mark.slow
def test_a_minute_of_ppo_on_push_cube_is_better_than_chance(tmp_path):
    """The episodes that trained last, with the spread of actions that training has: the mean alone takes longer."""
    recipe, own = recipe_for("ppo", "PushCube-v2")
    assert own
    train(recipe.replace(steps=256_000, minutes=0, validate_every=20), folder=tmp_path, seed=1)
    last = read_progress(tmp_path / "progress.csv")[-3:]
    episodes = round(sum(row["episodes"] for row in last))
    learned = round(sum(row["episodes"] * row["success"] for row in last))
    env = make("PushCube-v2", num_envs=128, autoreset="disabled")
    run = run_episodes(env, RandomPolicy(env), range(VALIDATION + 1000, VALIDATION + 1128))
    env.close()
    chance = sum(result.success_once for result in run.results)
    assert wilson(learned, episodes).low > wilson(chance, 128).high + 0.1, (learned, episodes, chance)
