"""Parts of imitation, against formulas: rates, averages, the likelihood of a mixture, the samplers of diffusion."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import distributions

from manikin.learn.common.numerics.average import Average, decay_at
from manikin.learn.common.numerics.schedule import cosine, warm_up
from manikin.policy.networks.cloned import MixtureCloned
from manikin.policy.networks.sampler import Sampler, squared_cosine

KINDS = [(kind, one) for kind in ("ddpm", "ddim") for one in ("sample", "epsilon")]
KINDS += [("flow", "sample"), ("flow", "velocity")]


def test_the_learning_rate_rises_linearly_and_falls_as_a_cosine():
    assert [warm_up(step, 4) for step in range(6)] == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]
    assert warm_up(0, 0) == 1.0
    for progress in (0.0, 0.25, 0.5, 1.0):
        assert cosine(progress) == pytest.approx(math.cos(math.pi * progress / 2) ** 2)  # half-angle formula
    assert cosine(1.5) == 0.0


def test_the_average_of_weights_is_the_sum_of_them_with_the_weights_of_its_decays():
    assert [decay_at(k, 0.75) for k in (1, 16, 10_000)] == pytest.approx([0.0, 1 - 1 / 8, 0.999])
    assert decay_at(10**9, 0.75) == 0.9999
    module = torch.nn.Linear(1, 1, bias=False)
    average, values = Average(module, 0.5), [3.0, -1.0, 4.0, 1.5]
    for value in values:
        torch.nn.init.constant_(module.weight, value)
        average.update(module)
    decays = [1 - k**-0.5 for k in range(1, 5)]
    expected = sum((1 - decays[i]) * math.prod(decays[i + 1 :]) * value for i, value in enumerate(values))
    assert average.module.weight.item() == pytest.approx(expected, rel=1e-6)


def test_the_likelihood_of_the_mixture_is_that_of_torchs_distributions():
    torch.manual_seed(0)
    network = MixtureCloned(observations=3, actions=2, window=2, hidden=(8,), modes=4)
    seen, actions = torch.randn(7, 2, 3), torch.rand(7, 2) * 2 - 1
    weight, mean, std = network.mixture(seen)
    mixed = distributions.MixtureSameFamily(
        distributions.Categorical(logits=weight), distributions.Independent(distributions.Normal(mean, std), 1)
    )
    torch.testing.assert_close(network.log_likelihood(seen, actions), mixed.log_prob(actions))
    assert torch.equal(network(seen)[0], mean[0, weight[0].argmax()].clamp(-1, 1))


def test_the_squared_cosine_is_that_of_its_formula():
    """Signal that is left after t of T steps, f(t) / f(0) (equation 17 of Nichol and Dhariwal), until beta is cut."""
    kept = torch.cumprod(1 - squared_cosine(100), 0).numpy()
    f = np.cos((np.arange(101) / 100 + 0.008) / 1.008 * np.pi / 2) ** 2
    np.testing.assert_allclose(kept[:99], f[1:100] / f[0], rtol=1e-9)
    assert squared_cosine(100)[-1] == 0.999


@pytest.mark.parametrize("prediction", ["sample", "epsilon"])
@pytest.mark.parametrize("steps", [7, 100])
def test_ddim_with_all_steps_and_as_much_noise_is_ddpm(steps, prediction):
    torch.manual_seed(0)
    ddpm = Sampler("ddpm", train_steps=steps, steps=steps, prediction=prediction)
    ddim = Sampler("ddim", train_steps=steps, steps=steps, eta=1.0, prediction=prediction)
    assert ddpm.times == ddim.times == [float(t) for t in reversed(range(steps))]
    assert ddpm.draws == ddim.draws == steps
    x, predicted, noise = torch.randn(3, 500, 4)
    for k in range(steps):
        torch.testing.assert_close(
            ddim.step(k, x, predicted, noise), ddpm.step(k, x, predicted, noise), atol=1e-4, rtol=1e-4
        )


@pytest.mark.parametrize("prediction", ["sample", "epsilon"])
def test_the_step_of_ddpm_draws_from_the_posterior_by_bayes(prediction):
    """Of x_(t-1) given x_t and x_0, all Gaussian: precisions add up."""
    sampler, beta = Sampler("ddpm", train_steps=20, prediction=prediction), squared_cosine(20).numpy()
    kept = np.cumprod(1 - beta)
    clean, t = 0.3, 11
    x, k = torch.tensor([0.7]), 20 - 1 - t
    prior_mean, prior_var = np.sqrt(kept[t - 1]) * clean, 1 - kept[t - 1]
    precision = 1 / prior_var + (1 - beta[t]) / beta[t]
    mean = (prior_mean / prior_var + np.sqrt(1 - beta[t]) * 0.7 / beta[t]) / precision
    predicted = (x - np.sqrt(kept[t]) * clean) / np.sqrt(1 - kept[t])
    if prediction == "sample":
        predicted = torch.tensor([clean])
    assert sampler.step(k, x, predicted).item() == pytest.approx(mean, rel=1e-5)
    spread = sampler.step(k, x, predicted, torch.ones(1)) - sampler.step(k, x, predicted)
    assert spread.item() == pytest.approx(precision**-0.5, rel=1e-5)


@pytest.mark.parametrize(("kind", "prediction"), KINDS)
def test_a_network_that_knows_the_data_leads_noise_to_it(kind, prediction):
    torch.manual_seed(0)
    sampler = Sampler(kind, train_steps=50, steps=10, prediction=prediction)
    data = torch.rand(6, 4, 2) * 2 - 1
    x = torch.randn_like(data)
    for k, time in enumerate(sampler.times):
        if prediction == "sample":
            predicted = data
        elif kind == "flow":
            predicted = (data - x) / (1 - time / 50)  # the straight line from here to the data
        else:
            kept = torch.cumprod(1 - squared_cosine(50), 0)[int(time)].float()
            predicted = (x - kept.sqrt() * data) / (1 - kept).sqrt()
        x = sampler.step(k, x, predicted, torch.randn_like(x) if sampler.draws > 1 else None)
    torch.testing.assert_close(x, data, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(("kind", "prediction"), KINDS)
def test_noise_is_added_as_the_forward_process_says(kind, prediction):
    sampler = Sampler(kind, train_steps=10, steps=2, prediction=prediction)
    x, noise = torch.ones(2, 1), torch.full((2, 1), 3.0)
    times = torch.tensor([0.0, 6.0])
    if kind == "flow":
        expected = [3.0, 0.4 * 3 + 0.6 * 1]
    else:
        kept = torch.cumprod(1 - squared_cosine(10), 0)
        expected = [float(kept[t].sqrt() + 3 * (1 - kept[t]).sqrt()) for t in (0, 6)]
    torch.testing.assert_close(sampler.noised(x, noise, times)[:, 0], torch.tensor(expected))
    assert sampler.target(x, noise).unique().item() == {"sample": 1.0, "velocity": -2.0, "epsilon": 3.0}[prediction]
