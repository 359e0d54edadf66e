"""TD-MPC2: its parts against formulas, the same run from the same seed, and that it learns."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from manikin import make
from manikin.errors import ConfigError, DivergedError
from manikin.learn.common.data.replay import Replay
from manikin.learn.run.recipe import Recipe
from manikin.learn.run.train import train
from manikin.learn.tdmpc2 import TDMPC2, Config
from manikin.policy.choices import policy_maker
from manikin.policy.network import NetworkPolicy
from manikin.policy.networks.world_model import Bins, WorldModel
from manikin.policy.trained import load_trained

SMALL = {"batch": 8, "buffer": 300, "start_steps": 24, "updates": 2, "latent": 16, "hidden": (12, 12), "samples": 12}
SMALL |= {"elites": 4, "proposals": 2, "iterations": 2, "critics": 3}


def _train(iterations=8, *, threads=0, seed=3, device="cpu", rows=6, **settings):
    env = make("PushCube-v2", num_envs=rows, threads=threads, device=device, horizon=8, autoreset="same_step")
    trainer = TDMPC2(env, Config(**{**SMALL, **settings}), seed)
    return trainer, [trainer.iterate() for _ in range(iterations)]


def _weights(trainer):
    return torch.cat([p.detach().flatten() for p in (*trainer.parameters, *trainer.actor.actor.parameters())])


# ---- parts -----------------------------------------------------------------------------------------------------------


def test_a_number_is_the_mean_of_its_two_nearest_values():
    bins = Bins(101, 10.0)
    numbers = torch.tensor([0.0, 0.3, -0.3, 1.0, 17.5, -250.0, 22_000.0])
    weights = bins.weights(numbers)
    at = np.linspace(-10, 10, 101)
    placed = np.sign(numbers.numpy()) * np.log1p(np.abs(numbers.numpy()))
    assert (weights > 0).sum(-1).max() <= 2
    np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-5)
    np.testing.assert_allclose(weights.numpy() @ at, placed, atol=1e-5)
    torch.testing.assert_close(bins.values((weights + 1e-30).log()), numbers, rtol=2e-3, atol=1e-4)
    logits = torch.randn(7, 101, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        bins.loss(logits, numbers), torch.nn.functional.cross_entropy(logits, weights, reduction="none")
    )


def test_critics_as_one_are_the_critics_one_by_one():
    torch.manual_seed(1)
    model = WorldModel(observations=5, actions=2, latent=8, hidden=(6, 7), critics=3)
    many = model.critics
    with torch.no_grad():
        for p in many.parameters():
            p.add_(0.3 * torch.randn(p.shape))
    x = torch.randn(11, 10)
    apart = []
    for k in range(3):
        layers = []
        for i, (a, b) in enumerate(((10, 6), (6, 7), (7, 101))):
            layer = torch.nn.Linear(a, b)
            layer.weight.data, layer.bias.data = many.weights[i][k].T, many.biases[i][k, 0]
            layers.append(layer)
            if i < 2:
                norm = torch.nn.LayerNorm(b)
                norm.weight.data, norm.bias.data = many.gains[i][k, 0], many.shifts[i][k, 0]
                layers += [norm, torch.nn.SiLU()]
        apart.append(torch.nn.Sequential(*layers)(x))
    torch.testing.assert_close(many(x), torch.stack(apart))
    torch.testing.assert_close(many(x, [2, 0]), torch.stack([apart[2], apart[0]]))


def test_the_planner_finds_the_best_action_of_a_model_that_is_known():
    """The model's reward is 10 - 8 |a - wanted|^2 and nothing else matters: the plan begins with the wanted action."""
    torch.manual_seed(0)
    model = WorldModel(observations=4, actions=2, latent=8, hidden=(8,), samples=256, elites=24, iterations=8)
    wanted = torch.tensor([[0.5, -0.2], [-0.7, 0.9], [0.0, 0.1]])
    shown = torch.cat([wanted, torch.zeros(3, 6)], 1)  # the latent state says what is wanted

    def reward_of(latent, action):
        worth = 10 - 8 * (latent[:, :2] - action).square().sum(-1)
        return (model.bins.weights(worth) + 1e-30).log()

    model.after = lambda latent, action: latent
    model.reward_of = reward_of
    mean, std = model.planned(shown)
    assert (mean - wanted).abs().max() < 0.1 and std.max() < 0.3


def test_the_planners_noise_leans_to_no_side():
    model = WorldModel(observations=4, actions=2, samples=38, proposals=6, elites=8)
    assert model.noise.shape == (6, 32, 3, 2)
    torch.testing.assert_close(model.noise.mean(1), torch.zeros(6, 3, 2))
    assert model.noise.std() > 0.8


def test_a_plan_looks_ahead_and_counts_the_value_behind_it():
    """With no reward, the worth of a sequence is gamma^plan times the critics' mean at its end."""
    torch.manual_seed(0)
    model = WorldModel(observations=4, actions=1, latent=8, hidden=(8,), plan=2, gamma=0.5, critics=2)
    model.after = lambda latent, action: latent + action
    model.reward_of = lambda latent, action: (model.bins.weights(torch.ones(len(latent))) + 1e-30).log()
    ends = torch.tensor([[2.0], [6.0]])
    model.values = lambda latent, action: (model.bins.weights(ends * latent[:, 0]) + 1e-30).log()
    worth = model.worth(torch.ones(1, 8), torch.full((1, 2, 1), 0.5))
    assert float(worth) == pytest.approx(1 + 0.5 + 0.25 * (2.0 + 6.0) / 2 * 2.0, rel=2e-3)


def test_windows_are_the_steps_of_one_row_and_weigh_nothing_behind_an_episodes_end():
    replay = Replay(rows=2, steps=7, observations=1, actions=1, gamma=0.9)
    for t in range(10):  # the oldest three steps are overwritten
        at = torch.tensor([[t], [100 + t]], dtype=torch.float32)
        ended = torch.tensor([t == 6, False])
        replay.add(seen=at, actions=-at, rewards=at[:, 0] / 10, following=at + 0.5, ended=ended, kept=~ended)
    drawn = replay.windows(500, 3, torch.Generator().manual_seed(0))
    seen, weights = drawn["seen"][..., 0], drawn["weights"]
    first = seen[0]
    assert set(first.tolist()) == {*range(3, 10), *range(103, 110)}
    for b in range(500):
        start, row = int(first[b]) % 100, int(first[b]) // 100
        end = 6 if row == 0 and start <= 6 else 9
        for k in range(3):
            inside = start + k <= end
            assert weights[k, b] == float(inside)
            assert seen[k, b] == 100 * row + min(start + k, end)
    torch.testing.assert_close(drawn["following"][..., 0], seen + 0.5)
    torch.testing.assert_close(drawn["actions"][..., 0], -seen)
    torch.testing.assert_close(drawn["rewards"], seen / 10)
    assert ((drawn["kept"] == 0) == (seen == 6)).all()
    with pytest.raises(ConfigError, match="empty replay"):
        Replay(rows=2, steps=7, observations=1, actions=1, gamma=0.9).windows(3, 2, torch.Generator())


def test_a_fail_cuts_the_value_and_time_that_ran_out_does_not():
    """The critics' goal is the reward where ``kept`` is 0, else reward and discounted target."""
    trainer, _ = _train(5)
    part = trainer.replay.windows(8, 3, torch.Generator().manual_seed(0))
    goals = []
    for kept in (0.0, 1.0):
        part["kept"] = torch.full_like(part["kept"], kept)
        trainer.value_of = lambda latent: torch.full((len(latent),), 5.0)
        noted = []
        trainer.actor.bins.loss = lambda logits, values, noted=noted: (noted.append(values), logits.sum(-1) * 0)[1]
        trainer.improve_model(part)
        goals.append(noted[1].view_as(part["rewards"]))
    torch.testing.assert_close(goals[0], part["rewards"])
    torch.testing.assert_close(goals[1], part["rewards"] + trainer.gamma * 5.0)


# ---- runs ------------------------------------------------------------------------------------------------------------


def test_the_discount_follows_from_the_horizon_unless_it_is_given():
    assert _train(0)[0].gamma == 0.95  # 8 steps: 1 - 5 / 8 would be less
    assert _train(0, gamma=0.7)[0].gamma == 0.7
    env = make("CartpoleBalance-v1", num_envs=2, autoreset="same_step")
    assert TDMPC2(env, Config(**SMALL), 0).gamma == pytest.approx(1 - 5 / 1000)


def test_the_same_seed_is_the_same_run_and_a_run_that_goes_on_is_the_one_that_was_not_interrupted():
    whole, numbers = _train(14, threads=1)
    half, _ = _train(6, threads=2)
    rest, _ = _train(0)
    rest.load_state_dict(half.state_dict())
    assert [rest.iterate() for _ in range(8)] == numbers[6:]
    assert torch.equal(_weights(rest), _weights(whole)) and "value_loss" in numbers[-1]
    assert not torch.equal(_weights(whole), _weights(_train(14, seed=4)[0]))


def test_its_policy_comes_back_from_its_file_and_a_row_answers_for_itself(tmp_path):
    recipe = Recipe(
        algorithm="tdmpc2",
        task="PushCube-v2",
        env={"num_envs": 6, "horizon": 8},
        settings={name: list(value) if isinstance(value, tuple) else value for name, value in SMALL.items()},
        steps=60,
        minutes=0,
        validate_every=4,
        validation_episodes=4,
    )
    train(recipe, folder=tmp_path / "run", seed=5)
    module, _ = load_trained(tmp_path / "run")
    env = make("PushCube-v2", num_envs=5)
    seen, _ = env.reset(seed=0)
    actions = NetworkPolicy(module).act(seen, env.instruction)
    assert actions.shape == (5, 1, 8) and actions.abs().max() <= 1
    assert torch.equal(NetworkPolicy(module).act(seen[2:3], env.instruction[2:3])[0], actions[2])
    program = policy_maker(str(tmp_path / "run/policy.pt2"))(env)
    torch.testing.assert_close(program.act(seen, env.instruction), actions, rtol=0, atol=1e-5)


def test_a_model_learns_what_actions_bring():
    """From random steps: the loss of the reward and of the dynamics falls far below that of the beginning."""
    trainer, _ = _train(
        40, rows=8, start_steps=10**9, latent=32, hidden=(32, 32), batch=64, gamma=0.5, learning_rate=2e-3
    )
    losses = []
    for _ in range(120):
        found, _ = trainer.improve_model(trainer.replay.windows(64, 3, trainer.streams["replay"]))
        losses.append([float(found["reward_loss"].detach()), float(found["value_loss"].detach())])
    first, last = np.mean(losses[:5], 0), np.mean(losses[-5:], 0)
    assert (last < 0.6 * first).all()


@pytest.mark.parametrize("device", ["warp:cpu"])
def test_it_runs_on_a_warp_device_unchanged(device):
    trainer, numbers = _train(14, device=device, rows=2)
    assert trainer.steps == 28 and "policy_loss" in numbers[-1]
    assert all(value == value for value in numbers[-1].values())


def test_a_loss_that_is_not_finite_stops_the_run():
    trainer, _ = _train(5)
    with torch.no_grad():
        trainer.targets.weights[0][:, 0, 0] = float("nan")
    with pytest.raises(DivergedError, match=r"iteration 6, after 36 steps, batch 1 of \d: .*_loss is nan"):
        trainer.iterate()


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"updates": 0}, "updates must be 1 or more"),
        ({"gamma": 1.0}, "gamma must be from 0"),
        ({"latent": 20}, "multiple of group = 8, got 20"),
        ({"elites": 13}, "1 to samples = 12 elites"),
        ({"buffer": 10**13}, r"replay of .* needs .* GB"),
    ],
)
def test_settings_that_do_not_go_together_say_what_can(settings, said):
    with pytest.raises(ConfigError, match=said):
        _train(0, **settings)
