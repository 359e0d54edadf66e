"""The benchmark of robosuite's nine tasks: every cell's environment can be made."""

from __future__ import annotations

import pytest

from manikin.env.make import make
from script import script

BENCH = script("robosuite")


@pytest.mark.parametrize("task", BENCH.TASKS)
def test_every_cell_has_an_environment(task):
    for robot, control in BENCH.CELLS:
        recipe = BENCH.recipe(task, robot, control, 1000)
        env = make(recipe.task, options=recipe.env_options(num_envs=1))
        env.reset(seed=0)
        assert (env.task.id, recipe.env["control"]) == (task, control)
        assert len(env.robots) == (2 if "TwoArm" in task else 1)
        env.close()
