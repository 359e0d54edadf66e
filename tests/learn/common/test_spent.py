"""Where the time of a run goes."""

from __future__ import annotations

import contextlib

from manikin.learn.common.spent import Spent
from manikin.learn.run.page import shares, summary_of
from manikin.learn.run.recipe import Recipe
from manikin.learn.run.record import read_progress
from manikin.learn.run.train import train


def test_inner_blocks_are_taken_off_the_outer_one():
    now = [100.0]
    spent = Spent(lambda: now[0])

    def wait(seconds):
        now[0] += seconds

    wait(5)  # nobody's
    with spent.on("policy"):
        wait(1)
        with spent.on("environment"):
            wait(10)
        wait(2)
        with contextlib.suppress(KeyError), spent.on("environment"):
            wait(20)
            raise KeyError
        wait(3)
    wait(7)
    with spent.on("update"):
        wait(4)
    assert spent.taken() == {"policy_seconds": 6.0, "environment_seconds": 30.0, "update_seconds": 4.0}
    assert spent.taken() == {}


def test_shares_add_up_largest_first():
    assert shares({"update": 1.0, "environment": 3.0}, 4.0) == "environment 75 %, update 25 %"
    assert shares({}, 0.0) == ""


def test_a_run_says_where_its_time_went_and_it_is_the_whole_time(tmp_path):
    recipe = Recipe(
        algorithm="ppo",
        task="PushCube-v2",
        env={"num_envs": 16, "horizon": 10},
        settings={"num_steps": 20, "hidden": [32], "critic_hidden": [32]},
        steps=16 * 20 * 6,
        minutes=0,
        validate_every=3,
        validation_episodes=4,
    )
    train(recipe, folder=tmp_path, seed=1)
    rows = read_progress(tmp_path / "progress.csv")
    names = {"environment", "policy", "update", "validation"}
    spent = summary_of(tmp_path)["spent"]
    assert set(spent) == names and all(seconds > 0 for seconds in spent.values())
    whole = rows[-1]["seconds"]
    assert 0.8 * whole < sum(spent.values()) <= whole
    assert all("validation_seconds" in row for row in rows[2::3])
