"""The policies that come with manikin: small, named, and as good as recorded."""

from __future__ import annotations

import pytest

from manikin import make
from manikin.cli import main
from manikin.errors import UnknownNameError
from manikin.eval.runner import run_episodes
from manikin.learn.common.seeds import TEST
from manikin.learn.run.recipe import Recipe, recipe_for
from manikin.policy.choices import policy_maker
from manikin.policy.shipped import LARGEST, shipped_policies
from manikin.policy.trained import read_about


@pytest.mark.parametrize("name", shipped_policies())
def test_a_policy_is_small_says_where_it_is_from_and_does_what_is_recorded(name):
    file = shipped_policies()[name]
    about = read_about(file)
    assert file.stat().st_size <= LARGEST
    assert name == f"{about['algorithm']}-{about['task']}"
    assert about["command"] == f"manikin train {about['algorithm']} {about['task']} --seed {about['seed']}"
    assert Recipe.from_toml(about["recipe"], source=str(file)) == recipe_for(about["algorithm"], about["task"])[0]
    assert about["tested"]["episodes"] >= 512 and about["tested"]["low"] > 0.9
    env = make(about["task"], num_envs=64, autoreset="disabled")
    run = run_episodes(env, policy_maker(name)(env), range(TEST, TEST + 64))
    env.close()
    # 64 of the recorded episodes: fewer successes than this happen once in a thousand at the lower end
    assert sum(r.success_once for r in run.results) >= 64 * about["tested"]["low"] - 10


def test_all_together_are_small():
    assert sum(file.stat().st_size for file in shipped_policies().values()) <= 5_000_000


def test_the_command_lists_them_and_an_unknown_one_is_named(capsys):
    assert main(["policies"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in shipped_policies())
    assert main(["policies", "--verify", "nobody"]) == 2
    with pytest.raises(UnknownNameError, match="nobody"):
        policy_maker("nobody")
