"""PPO: the same run from the same seed, also where it was interrupted, and what it refuses."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from manikin import make
from manikin.errors import ConfigError, DivergedError
from manikin.learn.ppo import PPO, Config

SMALL = Config(num_steps=6, epochs=2, minibatches=3, hidden=(16,), critic_hidden=(16,))


def _train(config=SMALL, *, iterations=3, threads=0, seed=3, device="cpu", rows=6):
    env = make("PushCube-v2", num_envs=rows, threads=threads, device=device, horizon=8)
    trainer = PPO(env, config, seed)
    numbers = [trainer.iterate() for _ in range(iterations)]
    return trainer, numbers


def _weights(trainer):
    return torch.cat([p.detach().flatten() for p in trainer.parameters])


def _says_one(critic):
    torch.nn.init.zeros_(critic[-1].weight)
    torch.nn.init.ones_(critic[-1].bias)


class Around:
    """An environment of four rows, whose steps a test changes."""

    def __init__(self, env):
        self.env, self.num_envs, self.horizon, self.device = env, 4, 8, env.device
        self.single_observation_space = env.single_observation_space
        self.single_action_space = env.single_action_space

    def reset(self, **given):
        return self.env.reset(**given)


def test_the_same_seed_is_the_same_run_whatever_the_threads_of_the_physics():
    one, numbers = _train(threads=1)
    two, again = _train(threads=2)
    assert torch.equal(_weights(one), _weights(two))
    assert numbers == again
    assert not torch.equal(_weights(one), _weights(_train(seed=4)[0]))


@pytest.mark.parametrize("config", [SMALL, replace(SMALL, noise_memory=0.9)], ids=["", "lasting noise"])
def test_a_run_that_goes_on_is_the_run_that_was_not_interrupted(config):
    whole, numbers = _train(config, iterations=4)
    half, _ = _train(config, iterations=2)
    state = half.state_dict()
    rest, _ = _train(config, iterations=0)
    rest.load_state_dict(state)
    assert [rest.iterate(), rest.iterate()] == numbers[2:]
    assert torch.equal(_weights(rest), _weights(whole))
    assert rest.steps == whole.steps == 4 * 6 * 6


def test_the_values_of_last_observations_follow_the_options():
    """With rewards set to 0, a critic that says 1 everywhere, and gamma 1: an advantage is 0 where the episode goes on
    or ran out of time, and -1 where it ended by success that is not bootstrapped."""

    class Ended(Around):
        """Row 0 goes on, row 1 runs out of time, row 2 succeeds, row 3 fails."""

        def step(self, actions):
            observation, _, _, _, info = self.env.step(actions)
            flag = lambda *rows: torch.tensor([row in rows for row in range(4)])  # noqa: E731
            done = flag(1, 2, 3)
            final = {**info, "success": flag(2), "fail": flag(3)}
            info |= {"final_obs": observation, "_final_obs": done, "final_info": final, "_final_info": done}
            return observation, torch.zeros(4), flag(2, 3), flag(1), info

    for bootstrap, expected in ((True, [0.0, 0.0, 0.0, -1.0]), (False, [0.0, 0.0, -1.0, -1.0])):
        config = Config(
            num_steps=1,
            minibatches=1,
            gamma=1.0,
            hidden=(4,),
            critic_hidden=(4,),
            stagger=False,
            normalize=False,
            bootstrap_at_success=bootstrap,
        )
        trainer = PPO(Ended(make("PushCube-v2", num_envs=4)), config, 0)
        _says_one(trainer.critic)
        assert trainer.collect()[0]["gains"].tolist() == expected


@pytest.mark.parametrize("end", [False, True])
def test_a_row_that_fails_may_end_there_where_episodes_go_on(end):
    """Rewards and values are 1 and gamma is 1: what a step gained is 1 where the episode goes on, 0 where it ended."""

    class Fails(Around):
        """Row 3 fails in step 2; no episode ends."""

        def step(self, actions):
            observation, _, terminated, truncated, info = self.env.step(actions)
            info["fail"] = (self.env.elapsed == 2) & (torch.arange(4) == 3)
            return observation, torch.ones(4), terminated, truncated, info

    env = make("PushCube-v2", num_envs=4, terminate=False)
    shared = {"gamma": 1.0, "gae_lambda": 0.0, "hidden": (4,), "critic_hidden": (4,), "stagger": False}
    trainer = PPO(Fails(env), Config(num_steps=3, minibatches=1, normalize=False, end_at_fail=end, **shared), 0)
    _says_one(trainer.critic)
    batch, summary = trainer.collect()
    wanted = torch.ones(3, 4)
    if end:
        wanted[1, 3] = 0.0
    assert torch.equal(batch["gains"].reshape(3, 4), wanted)
    assert env.elapsed.tolist() == [3, 3, 3, 1 if end else 3]
    ended = {"episodes": 1.0, "return": 2.0, "length": 2.0, "success": 0.0}
    assert summary == (ended if end else {"episodes": 0.0})


def test_rows_end_at_different_times_from_the_beginning():
    env = make("PushCube-v2", num_envs=8, horizon=8, terminate=False)
    trainer = PPO(env, Config(num_steps=8, hidden=(4,), critic_hidden=(4,), epochs=1, minibatches=1), 0)
    trainer.iterate()
    assert sorted(env.elapsed.tolist()) == list(range(8))


def test_a_loss_that_is_not_finite_stops_the_run_and_says_where():
    trainer, _ = _train(iterations=1)
    with torch.no_grad():
        trainer.critic[0].weight[0, 0] = float("nan")
    with pytest.raises(DivergedError, match=r"iteration 2, after 72 steps, batch 1 of \d+: .*loss is nan"):
        trainer.iterate()


@pytest.mark.parametrize(("steps", "rows", "parts"), [(25, 1, 16), (5, 2, 10), (25, 1, 12)])
def test_a_minibatch_of_one_step_is_refused(steps, rows, parts):
    """Its gain minus its mean over its spread is 0 / 0."""
    env = make("PushCube-v2", num_envs=rows, horizon=8)
    with pytest.raises(ConfigError, match=f"of {steps * rows} steps .* in {parts} minibatches one holds a single step"):
        PPO(env, Config(num_steps=steps, minibatches=parts), 0)


def test_a_spread_that_depends_on_the_observation_is_the_one_actions_were_drawn_with():
    """Before the first step of the optimizer no action is more or less likely than when it was drawn."""
    trainer, _ = _train(replace(SMALL, state_std=True, normalize=False), iterations=0)
    with torch.no_grad():
        trainer.actor.mean[-1].weight.mul_(100)  # so that observations differ
    batch, _ = trainer.collect()
    mean, log_std = trainer.actor.of_features(batch["seen"])
    assert mean.shape == log_std.shape == batch["actions"].shape and log_std.std(0).min() > 0.01
    chances = torch.distributions.Normal(mean, log_std.exp()).log_prob(batch["actions"]).sum(1)
    constant = 0.5 * math.log(2 * math.pi) * mean.shape[1]
    torch.testing.assert_close(batch["chances"], chances + constant, atol=1e-4, rtol=1e-5)
    torch.testing.assert_close(trainer.actor(batch["seen"]), mean.clamp(-1, 1))  # nothing scales here
    numbers = trainer.iterate()
    assert numbers["spread"] == pytest.approx(float(log_std.exp().mean()), rel=0.3)
    assert trainer.network_options["state_std"] and "state_std" not in _train(iterations=0)[0].network_options


@pytest.mark.parametrize("memory", [0.0, 0.8])
def test_noise_lasts_as_long_as_it_is_told_and_is_as_wide_as_ever(memory):
    """The correlation of a row's noise with that of the step before is the share that is kept."""
    config = replace(SMALL, num_steps=60, noise_memory=memory, log_std=-1.0, normalize=False, stagger=False)
    trainer = _train(config, iterations=0, rows=64)[0]
    with torch.no_grad():
        for layer in (trainer.actor.mean[-1].weight, trainer.actor.mean[-1].bias):
            layer.zero_()
    noise = trainer.collect()[0]["actions"].reshape(60, 64, -1)[20:] / math.exp(-1.0)  # it begins at 0
    assert noise.std() == pytest.approx(1.0, abs=0.05)
    assert (noise[1:] * noise[:-1]).mean() == pytest.approx(memory, abs=0.05)


@pytest.mark.parametrize("memory", [-0.1, 1.0])
def test_noise_that_never_changes_is_refused(memory):
    with pytest.raises(ConfigError, match=r"noise_memory must be 0 or more and below 1, got"):
        _train(replace(SMALL, noise_memory=memory), iterations=0)


def test_mean_actions_outside_of_their_range_cost_what_the_weight_says():
    losses = []
    for weight in (0.0, 0.5):
        trainer, _ = _train(replace(SMALL, epochs=1, minibatches=1, bounds_weight=weight), iterations=0)
        last = trainer.actor.mean[-1]
        with torch.no_grad():
            last.weight.zero_()
            last.bias.zero_()
            last.bias[:3] = torch.tensor([-3.0, 1.5, 1.0])
        losses.append(trainer.iterate()["loss"])
    assert losses[1] - losses[0] == pytest.approx(0.5 * (2.0**2 + 0.5**2), abs=1e-5)


def test_the_critic_learns_at_a_rate_of_its_own():
    """Adam's first step is as long as its rate, for each weight that has a gradient."""
    config = replace(SMALL, epochs=1, minibatches=1, learning_rate=1e-4, critic_rate=1e-2, max_grad_norm=1e9)
    trainer, _ = _train(config, iterations=0)
    actor, critic = (one[-1].bias.detach().clone() for one in (trainer.actor.mean, trainer.critic))
    trainer.iterate()
    assert (trainer.critic[-1].bias - critic).detach().abs().max() == pytest.approx(1e-2, rel=0.01)
    assert (trainer.actor.mean[-1].bias - actor).detach().abs().max() == pytest.approx(1e-4, rel=0.01)
    trainer.config, trainer.progress = replace(config, anneal=True), 0.75
    trainer.iterate()
    assert [group["lr"] for group in trainer.optimizer.param_groups] == [2.5e-5, 2.5e-3]


def test_it_learns_to_reach_what_pays():
    """A task whose reward is high where the hand is: after a few iterations the return is well above that of chance."""
    env = make("PushCube-v2", num_envs=64)
    trainer = PPO(env, Config(num_steps=25, minibatches=8), 1)
    returns = [trainer.iterate().get("return") for _ in range(12)]
    assert returns[-1] > 1.8 * returns[1]


@pytest.mark.parametrize("device", ["warp:cpu"])
def test_it_runs_on_a_warp_device_unchanged(device):
    trainer, numbers = _train(device=device, iterations=2, rows=2)
    assert trainer.steps == 2 * 2 * 6
    assert all(value == value for value in numbers[-1].values())
