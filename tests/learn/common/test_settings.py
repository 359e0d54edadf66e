"""The ranges of settings: every number of every algorithm has one, every recipe keeps to them, and errors name them."""

import dataclasses

import pytest

from manikin.errors import ConfigError
from manikin.learn.common.settings import RANGES
from manikin.learn.run.recipe import ALGORITHMS, Recipe, recipe_for, settings_class, shipped_recipes


def _wrong(algorithm, **settings):
    with pytest.raises(ConfigError) as caught:
        Recipe(algorithm=algorithm, task="PickCube-v2", settings=settings)
    return str(caught.value)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_number_of_every_algorithm_has_a_range(algorithm):
    def is_number(value):
        return isinstance(value, int | float) and not isinstance(value, bool)

    for field in dataclasses.fields(settings_class(algorithm)):
        value = field.default
        if is_number(value) or (isinstance(value, tuple) and value and is_number(value[0])):
            assert field.name in RANGES, f"{field.name} needs a range in manikin.learn.common.settings"


@pytest.mark.parametrize("algorithm, task", shipped_recipes())
def test_recipes_that_come_along_keep_to_the_ranges(algorithm, task):
    recipe, own = recipe_for(algorithm, task)
    assert own and recipe.config


@pytest.mark.parametrize(
    "algorithm, settings, said",
    [
        ("ppo", {"num_steps": 0}, "num_steps must be 1 or more, got 0"),
        ("ppo", {"minibatches": 0}, "minibatches must be 1 or more, got 0"),
        ("ppo", {"epochs": 0}, "epochs must be 1 or more, got 0"),
        ("ppo", {"hidden": [64, 0]}, "each of hidden must be 1 or more, got [64, 0]"),
        ("ppo", {"gamma": 2}, "gamma must be from 0 to 1, got 2.0"),
        ("ppo", {"learning_rate": -1}, "learning_rate must be above 0, got -1.0"),
        ("ppo", {"learning_rate": float("nan")}, "learning_rate must be above 0, got nan"),
        ("ppo", {"learning_rate": float("inf")}, "learning_rate must be above 0, got inf"),
        ("ppo", {"log_std": float("inf")}, "log_std must be a finite number, got inf"),
        ("ppo", {"max_grad_norm": 0}, "max_grad_norm must be above 0, got 0.0"),
        ("ppo", {"lag": 2}, "lag must be 0 or 1, got 2"),
        ("ppo", {"jitter": 1}, "jitter must be 0 or more and below 1, got 1.0"),
        ("sac", {"follow": 0}, "follow must be above 0 and at most 1, got 0.0"),
        ("sac", {"log_std_range": [1, -1]}, "log_std_range must be two numbers that rise, got [1, -1]"),
        ("sac", {"value_range": [1, -1]}, "value_range must be two numbers that rise, or none, got [1, -1]"),
        ("tdmpc2", {"gamma": 1}, "gamma must be from 0 (of the horizon) to below 1, got 1.0"),
        ("tdmpc2", {"group": 0}, "group must be 1 or more, got 0"),
        ("bc", {"demonstrations": -1}, "demonstrations must be 0 or more, got -1"),
        ("bc", {"after_success": -2}, "after_success must be 0 or more, or -1 for all frames, got -2"),
        ("act", {"heads": 0}, "heads must be 1 or more, got 0"),
        ("diffusion", {"train_steps": 0}, "train_steps must be 1 or more, got 0"),
        ("voxel", {"bins": 0}, "bins must be 1 or more, got 0"),
        ("distill", {"find_weight": -1}, "find_weight must be 0 or more, got -1.0"),
    ],
)
def test_a_number_out_of_its_range_is_named_with_the_range(algorithm, settings, said):
    assert said in _wrong(algorithm, **settings)


@pytest.mark.parametrize(
    "algorithm, settings",
    [
        ("ppo", {"target_kl": 0, "critic_rate": 0, "critic_first": 0, "gamma": 1, "gae_lambda": 0}),
        ("sac", {"start_steps": 0, "temperature_rate": 0, "demo_share": 0}),
        ("tdmpc2", {"gamma": 0, "proposals": 0}),
        ("bc", {"demonstrations": 0, "after_success": -1, "max_grad_norm": 0, "average": 0, "recurrent": 0}),
        ("voxel", {"corner": 0, "yaw": 0, "shift": 0}),
        ("distill", {"lead": 0, "average": 0}),
    ],
)
def test_values_that_switch_something_off_are_taken(algorithm, settings):
    assert Recipe(algorithm=algorithm, task="PickCube-v2", settings=settings).config
