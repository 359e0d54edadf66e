"""PPO: the same run from the same seed, also where it was interrupted, and what it refuses."""

from __future__ import annotations

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


def test_the_same_seed_is_the_same_run_whatever_the_threads_of_the_physics():
    one, numbers = _train(threads=1)
    two, again = _train(threads=2)
    assert torch.equal(_weights(one), _weights(two))
    assert numbers == again
    assert not torch.equal(_weights(one), _weights(_train(seed=4)[0]))


def test_a_run_that_goes_on_is_the_run_that_was_not_interrupted():
    whole, numbers = _train(iterations=4)
    half, _ = _train(iterations=2)
    state = half.state_dict()
    rest, _ = _train(iterations=0)
    rest.load_state_dict(state)
    assert [rest.iterate(), rest.iterate()] == numbers[2:]
    assert torch.equal(_weights(rest), _weights(whole))
    assert rest.steps == whole.steps == 4 * 6 * 6


def test_the_values_of_last_observations_follow_the_options():
    """With rewards set to 0, a critic that says 1 everywhere, and gamma 1: an advantage is 0 where the episode goes on
    or ran out of time, and -1 where it ended by success that is not bootstrapped."""

    class Ended:
        """Row 0 goes on, row 1 runs out of time, row 2 succeeds, row 3 fails."""

        def __init__(self, env):
            self.env, self.num_envs, self.horizon, self.device = env, 4, 8, env.device
            self.single_observation_space = env.single_observation_space
            self.single_action_space = env.single_action_space

        def reset(self, **given):
            return self.env.reset(**given)

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
        last = trainer.critic[-1]
        torch.nn.init.zeros_(last.weight)
        torch.nn.init.ones_(last.bias)
        assert trainer.collect()[0]["gains"].tolist() == expected


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
