"""SAC: its parts against formulas, the same run from the same seed, and what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from manikin import make
from manikin.errors import ConfigError, DataError, DivergedError
from manikin.learn.common.numerics.average import follow
from manikin.learn.common.numerics.critics import Ensemble
from manikin.learn.run.recipe import Recipe
from manikin.learn.run.train import train
from manikin.learn.sac import SAC, Config
from manikin.policy.networks import build
from manikin.policy.networks.mlp import TanhGaussianActor
from toy_sac import SMALL, train_sac


def _weights(trainer):
    return torch.cat([p.detach().flatten() for p in trainer.parameters])


# ---- parts -----------------------------------------------------------------------------------------------------------


def test_the_density_of_an_action_is_that_of_the_gaussian_carried_through_tanh():
    """Against torch's own transformed distribution, also where tanh is so near 1 that its inverse has lost digits."""
    actor = TanhGaussianActor(observations=5, actions=3, generator=torch.Generator().manual_seed(0)).double()
    with torch.no_grad():
        actor.layers[-1].weight.mul_(100)
    seen, drawn = (torch.randn(200, n, dtype=torch.float64) for n in (5, 3))
    mean, log_std = actor.distribution(seen)
    assert log_std.min() > -5 and log_std.max() < 2 and (log_std.max() - log_std.min()) > 1
    actions, chances = actor.sample(seen, drawn)
    normal = torch.distributions.Normal(mean, log_std.exp())
    carried = torch.distributions.TransformedDistribution(normal, torch.distributions.TanhTransform(cache_size=1))
    before = mean + log_std.exp() * drawn
    torch.testing.assert_close(actions, before.tanh())
    near = before.abs().amax(1) < 15  # beyond, float64's tanh is 1
    expected = carried.log_prob(carried.transforms[0](before)).sum(1)
    torch.testing.assert_close(chances[near], expected[near])
    torch.testing.assert_close(actor(seen), actor.distribution(actor.scaling(seen))[0].tanh())


def test_the_density_adds_up_to_one():
    actor = TanhGaussianActor(observations=1, actions=1)
    drawn = torch.linspace(-8, 8, 40_001)[:, None]
    actions, chances = actor.sample(torch.full((len(drawn), 1), 0.3), drawn)
    assert float(torch.trapezoid(chances.exp(), actions[:, 0]).detach()) == pytest.approx(1.0, abs=1e-3)


def test_an_actor_is_built_from_its_options_and_a_range_that_falls_is_refused():
    made = build("tanh_gaussian", {"observations": 4, "actions": 2, "hidden": [8], "log_std_range": [-3, 1]})
    assert made(torch.zeros(5, 4)).shape == (5, 2)
    with pytest.raises(DataError, match="log_std_range must rise"):
        build("tanh_gaussian", {"observations": 4, "actions": 2, "log_std_range": [1, -3]})


@pytest.mark.parametrize("norm", [True, False])
def test_an_ensemble_is_its_critics_one_by_one(norm):
    many = Ensemble(3, 5, (8, 7), norm=norm, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        for p in many.parameters():
            p.add_(0.1 * torch.randn(p.shape))
    x = torch.randn(11, 5)
    for k, found in enumerate(many(x)):
        layers = []
        for i, (a, b) in enumerate(((5, 8), (8, 7), (7, 1))):
            layer = torch.nn.Linear(a, b)
            layer.weight.data, layer.bias.data = many.weights[i][k].T, many.biases[i][k, 0]
            layers.append(layer)
            if i < 2 and norm:
                one = torch.nn.LayerNorm(b)
                one.weight.data, one.bias.data = many.gains[i][k, 0], many.shifts[i][k, 0]
                layers.append(one)
            if i < 2:
                layers.append(torch.nn.ReLU())
        torch.testing.assert_close(found, torch.nn.Sequential(*layers)(x)[:, 0])


def test_targets_follow_as_a_moving_average():
    ours, theirs = Ensemble(2, 3, (4,)), Ensemble(2, 3, (4,))
    before = [p.detach().clone() for p in ours.parameters()]
    follow(ours, theirs, 0.25)
    for was, now, source in zip(before, ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(now, 0.75 * was + 0.25 * source)


@pytest.mark.parametrize("entropy, limits", [(True, ()), (False, ()), (False, (-1.0, 1.0))])
def test_critics_are_drawn_to_the_reward_and_the_value_behind_it(entropy, limits):
    """With critics that say one number everywhere, the loss is that of the formula."""
    trainer, _ = train_sac(3, entropy_in_target=entropy, temperature=0.5, temperature_rate=0.0, value_range=limits)
    for critics, value in ((trainer.critics, 2.0), (trainer.targets, 7.0)):
        torch.nn.init.zeros_(critics.weights[-1])
        torch.nn.init.constant_(critics.biases[-1], value)
    part = next(trainer.batches())
    stream = trainer.streams["updates"].get_state()
    _, chances = trainer.act_with_chances(part["following"])
    trainer.streams["updates"].set_state(stream)
    following = 7.0 - (0.5 * chances.detach() if entropy else 0.0)
    goal = part["returns"] + part["discounts"] * following
    if limits:
        assert (goal > 1.0).any()
        goal = goal.clamp(-1.0, 1.0)
    torch.testing.assert_close(trainer.improve_critics(part), (2.0 - goal).square().mean())


def test_the_temperature_falls_where_actions_are_wilder_than_wanted_and_rises_otherwise():
    for wanted, sign in ((-5.0, -1), (5.0, 1)):
        trainer, _ = train_sac(3, target_entropy=wanted, temperature=0.5)
        assert np.sign(float(trainer.log_temperature.detach()) - math.log(0.5)) == sign


# ---- runs ------------------------------------------------------------------------------------------------------------


def test_the_same_seed_is_the_same_run_whatever_the_threads_of_the_physics():
    one, numbers = train_sac(threads=1)
    two, again = train_sac(threads=2)
    assert torch.equal(_weights(one), _weights(two))
    assert numbers == again and "critic_loss" in numbers[-1] and "critic_loss" not in numbers[0]
    assert not torch.equal(_weights(one), _weights(train_sac(seed=4)[0]))


@pytest.mark.parametrize("memory", [0.0, 0.8])
def test_noise_is_as_wide_whatever_it_remembers(memory):
    """Standard deviation 1, and the correlation of an AR(1) process over k steps: memory to the power of k."""
    trainer, _ = train_sac(0, rows=40, num_steps=1, start_steps=0, updates=1, noise_memory=memory)
    seen = []
    for _ in range(60):
        trainer.iterate()
        seen.append(trainer.noise.clone())
    noise = torch.stack(seen)[12:]  # (48, 40, 8); it begins at 0
    assert noise.std() == pytest.approx(1.0, abs=0.04)
    for k in (1, 3):
        assert (noise[k:] * noise[:-k]).mean() == pytest.approx(memory**k, abs=0.05)


def test_before_learning_begins_actions_are_uniform_and_last_as_long_as_later_noise():
    trainer, _ = train_sac(100, rows=40, num_steps=1, start_steps=10**6, buffer=4000, noise_memory=0.7)
    actions = trainer.replay.actions.double()
    middle, spread = float(actions.mean()), float(actions.std())
    assert abs(middle) < 0.03 and abs(spread - 3**-0.5) < 0.015
    normal = torch.erfinv(actions.clamp(-0.999999, 0.999999)) * 2**0.5
    assert abs(float((normal[1:] * normal[:-1]).mean()) - 0.7) < 0.03


@pytest.mark.parametrize("settings", [{}, {"critics": 4, "actor_every": 2, "n_step": 3, "noise_memory": 0.5}])
def test_a_run_that_goes_on_is_the_run_that_was_not_interrupted(settings):
    whole, numbers = train_sac(20, **settings)  # the replay has gone round once
    for stopped in (1, 17):  # while rows are restarted one after another, and later
        half, _ = train_sac(stopped, **settings)
        rest, _ = train_sac(0, **settings)
        rest.load_state_dict(half.state_dict())
        assert [rest.iterate() for _ in range(20 - stopped)] == numbers[stopped:]
        assert torch.equal(_weights(rest), _weights(whole))
        assert rest.steps == whole.steps == 20 * 3 * 6


def test_a_killed_run_of_the_command_goes_on_to_the_same_bits(tmp_path):
    settings = {name: list(value) if isinstance(value, tuple) else value for name, value in SMALL.items()}
    recipe = Recipe(
        algorithm="sac",
        task="PushCube-v2",
        env={"num_envs": 6, "horizon": 8},
        settings=settings,
        steps=18 * 5,
        minutes=0,
        validate_every=2,
        validation_episodes=4,
        test_episodes=4,
    )
    whole = train(recipe, folder=tmp_path / "whole", seed=5)
    count = iter(range(10))
    part = train(recipe, folder=tmp_path / "part", seed=5, stop=lambda: next(count) == 3)
    assert (part.why, whole.why) == ("interrupted", "steps")
    train(recipe, folder=tmp_path / "part", seed=5, resume=True)
    assert (tmp_path / "part/policy.safetensors").read_bytes() == (tmp_path / "whole/policy.safetensors").read_bytes()


def test_a_loss_that_is_not_finite_stops_the_run_and_says_where():
    trainer, _ = train_sac(2)
    with torch.no_grad():
        trainer.critics.weights[0][0, 0, 0] = float("nan")
    with pytest.raises(DivergedError, match=r"iteration 3, after 54 steps, batch 1 of 2: critic_loss is nan"):
        trainer.iterate()


def test_of_several_batches_the_one_that_went_wrong_is_named(monkeypatch):
    trainer, _ = train_sac(2, updates=5)
    improve, calls = trainer.improve_critics, iter(range(1, 6))
    monkeypatch.setattr(trainer, "improve_critics", lambda part: improve(part) * (torch.nan if next(calls) == 4 else 1))
    with pytest.raises(DivergedError, match=r"iteration 3, after 54 steps, batch 4 of 5: critic_loss is nan\."):
        trainer.iterate()


def test_it_learns_to_reach_what_pays():
    """A task whose reward is high where the hand is: after 18,000 steps the return is well above that of chance."""

    def returns(start_steps, iterations):
        env = make("PushCube-v2", num_envs=32, autoreset="same_step")
        sizes = {"hidden": (64, 64), "critic_hidden": (64, 64), "batch": 128}
        config = Config(
            **sizes,
            num_steps=5,
            updates=8,
            start_steps=start_steps,
            learning_rate=1e-3,
            temperature=0.02,
            follow=0.02,
        )
        trainer = SAC(env, config, 1)
        found = [trainer.iterate().get("return") for _ in range(iterations)]
        return [value for value in found if value is not None]

    assert np.mean(returns(1600, 115)[-20:]) > 1.4 * np.mean(returns(10**9, 40))


@pytest.mark.parametrize("device", ["warp:cpu"])
def test_it_runs_on_a_warp_device_unchanged(device):
    trainer, numbers = train_sac(4, device=device, rows=2, start_steps=6)
    assert trainer.steps == 4 * 2 * 3
    assert all(value == value for value in numbers[-1].values()) and "critic_loss" in numbers[-1]


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"min_of": 3}, r"min_of must be at most critics \(2\), got 3"),
        ({"updates": 0}, "updates must be 1 or more"),
        ({"log_std_range": (1.0, -1.0)}, "two numbers that rise"),
        ({"value_range": (1.0,)}, r"value_range must be two numbers that rise, or none, got \[1.0\]"),
        ({"temperature": 0.0}, "temperature must be above 0"),
        ({"demo_share": 1.5}, "demo_share must be from 0 to 1"),
        ({"noise_memory": 1.0}, "noise_memory must be 0 or more and below 1"),
        ({"buffer": 10**13}, r"replay of .* needs .* GB"),
    ],
)
def test_settings_that_do_not_go_together_say_what_can(settings, said):
    with pytest.raises(ConfigError, match=said):
        train_sac(0, **settings)
