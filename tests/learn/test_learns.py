"""A minute of training is better than chance."""

from __future__ import annotations

import pytest

from manikin import make
from manikin.eval.runner import run_episodes
from manikin.eval.stats import wilson
from manikin.learn.common.seeds import VALIDATION
from manikin.learn.run.recipe import recipe_for
from manikin.learn.run.train import train
from manikin.policy.choices import policy_maker


def _successes(word: str, count: int) -> int:
    env = make("PushCube-v2", num_envs=count, autoreset="disabled")
    run = run_episodes(env, policy_maker(word)(env), range(VALIDATION + 1000, VALIDATION + 1000 + count))
    env.close()
    return sum(result.success_once for result in run.results)


@pytest.mark.slow
def test_a_minute_of_ppo_on_push_cube_is_better_than_chance(tmp_path):
    recipe, own = recipe_for("ppo", "PushCube-v2")
    assert own
    train(recipe.replace(steps=320_000, minutes=0, validate_every=10), folder=tmp_path, seed=1)
    learned, chance = _successes(str(tmp_path), 128), _successes("random", 128)
    assert wilson(learned, 128).low > wilson(chance, 128).high + 0.1, (learned, chance)
