"""What trainers share, against formulas written apart."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from manikin.errors import ConfigError, DivergedError
from manikin.learn.common.numerics.advantage import advantages
from manikin.learn.common.numerics.finite import check_finite
from manikin.learn.common.numerics.losses import Losses
from manikin.learn.common.numerics.moments import Moments
from manikin.learn.common.random import Streams
from manikin.learn.common.seeds import TEST, VALIDATION, training_seeds
from manikin.learn.run.chart import spread
from manikin.policy.networks.scaling import Scaling


def _by_definition(rewards, values, next_values, dones, gamma, lam):
    """A_t as the sum over k of (gamma lambda)^k delta_(t+k) up to the end of t's episode."""
    steps, rows = rewards.shape
    found = np.zeros((steps, rows))
    for row in range(rows):
        for t in range(steps):
            for k in range(t, steps):
                delta = rewards[k, row] + gamma * next_values[k, row] - values[k, row]
                found[t, row] += (gamma * lam) ** (k - t) * delta
                if dones[k, row]:
                    break
    return found


@pytest.mark.parametrize("lam", [0.0, 0.9, 1.0])
def test_advantages_are_discounted_sums_of_errors(lam):
    rng = np.random.default_rng(0)
    rewards, values, following = rng.normal(size=(3, 13, 5))
    dones = rng.random((13, 5)) < 0.2
    found = advantages(
        rewards=torch.from_numpy(rewards),
        values=torch.from_numpy(values),
        next_values=torch.from_numpy(following),
        dones=torch.from_numpy(dones),
        gamma=0.8,
        gae_lambda=lam,
    )
    np.testing.assert_allclose(found, _by_definition(rewards, values, following, dones, 0.8, lam), atol=1e-12)


def test_with_lambda_1_returns_are_what_was_earned_and_what_is_left():
    """Time ran out in row 0, where the last observation is worth 7; the task ended row 1, which is worth 0 after."""
    rewards = torch.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    values = torch.tensor([[0.5, 0.5], [0.1, 0.1], [0.2, 0.2]])
    following = torch.tensor([[0.1, 0.1], [0.2, 0.2], [7.0, 0.0]])
    dones = torch.tensor([[False, False], [False, False], [True, True]])
    gains = advantages(rewards=rewards, values=values, next_values=following, dones=dones, gamma=0.5, gae_lambda=1.0)
    returns = gains + values
    torch.testing.assert_close(returns[0], torch.tensor([1 + 1 + 0.75 + 7 / 8, 1 + 1 + 0.75]))


def test_moments_of_batches_are_those_of_all_rows():
    rng = np.random.default_rng(1)
    rows = rng.normal(3.0, 20.0, size=(1000, 4)) + 1e4
    moments = Moments(4)
    for part in np.split(rows, [1, 2, 50, 700]):
        moments.add(torch.from_numpy(part))
    np.testing.assert_allclose(moments.mean, rows.mean(0), rtol=1e-12)
    np.testing.assert_allclose(moments.variance, rows.var(0), rtol=1e-9)


def test_scaling_shifts_scales_and_clips_and_leaves_a_still_column_its_scale():
    rows = torch.tensor([[1.0, 5.0], [3.0, 5.0]])
    moments, scaling = Moments(2), Scaling(2, limit=2.0)
    moments.add(rows)
    moments.write(scaling)
    torch.testing.assert_close(scaling(rows), torch.tensor([[-1.0, 0.0], [1.0, 0.0]]))
    torch.testing.assert_close(scaling(torch.tensor([[100.0, 6.0]])), torch.tensor([[2.0, 1.0]]))


def test_streams_follow_from_seed_and_name_and_go_on_where_they_were():
    def draw(streams, name):
        return torch.rand(4, generator=streams[name])

    first, again, other = Streams(1), Streams(1), Streams(2)
    one = draw(first, "a")
    assert torch.equal(one, draw(again, "a"))
    assert not torch.equal(one, draw(again, "b"))
    assert not torch.equal(one, draw(other, "a"))
    state = first.state_dict()
    after = draw(first, "a")
    fresh = Streams(5)
    fresh.load_state_dict(state)
    assert torch.equal(after, draw(fresh, "a"))


def test_training_validation_and_test_share_no_seed():
    sets = [set(training_seeds(seed, 2048)) for seed in (0, 1, 999_999)]
    sets += [set(range(VALIDATION, VALIDATION + 10_000)), set(range(TEST, TEST + 10_000)), set(range(100_000))]
    assert len(set.union(*sets)) == sum(len(one) for one in sets)


@pytest.mark.parametrize("seed, rows", [(-1, 4), (1_000_000, 4), (0, 0), (0, 1_000_001)])
def test_seeds_that_would_overlap_are_refused(seed, rows):
    with pytest.raises(ConfigError, match="must be between"):
        training_seeds(seed, rows)


def test_a_loss_that_is_not_finite_is_named():
    with pytest.raises(DivergedError, match="iteration 3: critic_loss is nan"):
        check_finite("iteration 3", {"actor_loss": torch.tensor(1.0), "critic_loss": torch.tensor(float("nan"))})


def test_losses_are_means_over_the_batches_that_had_them():
    losses = Losses()
    for k in range(4):
        losses.add({"critic_loss": torch.tensor(float(k)), **({"actor_loss": torch.tensor(7.0 + k)} if k % 2 else {})})
    assert losses.means("iteration 3", [torch.ones(2)]) == {"critic_loss": 1.5, "actor_loss": 9.0}
    assert Losses().means("iteration 3") == {}


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_the_first_batch_with_a_loss_that_is_not_finite_is_named(bad):
    losses = Losses()
    for k in range(1, 6):
        actor = {"actor_loss": torch.tensor(bad if k == 4 else 1.0)} if k % 2 == 0 else {}
        losses.add({"critic_loss": torch.tensor(float("nan") if k > 4 else 1.0), **actor})
    with pytest.raises(DivergedError, match=rf"iteration 3, batch 4 of 5: actor_loss is {bad}\. Try a smaller"):
        losses.means("iteration 3", [torch.full((2,), torch.nan)])


def test_weights_that_are_not_finite_end_a_run_whose_losses_still_are():
    """The gradient of a square root at 0: the loss is 0, and the weight behind it NaN."""
    weight = torch.zeros(1, requires_grad=True)
    losses, optimizer = Losses(), torch.optim.SGD([weight], lr=0.1)
    loss = (weight * 0).sqrt().sum()
    loss.backward()
    optimizer.step()
    losses.add({"loss": loss})
    assert losses.means("iteration 3") == {"loss": 0.0}
    with pytest.raises(DivergedError, match="iteration 3, after batch 1 of 1: a weight is not finite"):
        losses.means("iteration 3", [torch.ones(3), weight])


def test_the_spread_of_curves_is_least_middle_and_most_at_each_place():
    curves = [[(0.0, 1.0), (10.0, 4.0)], [(0.0, 2.0), (10.0, 0.0)], [(0.0, 3.0), (10.0, 9.0), (20.0, 1.0)]]
    assert spread(curves, points=2) == [(0.0, 1.0, 2.0, 3.0), (10.0, 0.0, 4.0, 9.0)]
