"""dm_control's tolerance functions."""

from __future__ import annotations

import math

import pytest
import torch

import dm_control
from manikin.errors import ConfigError, UnknownNameError
from manikin.toolkit import TOLERANCES, tolerance


@pytest.mark.parametrize("shape", TOLERANCES)
def test_a_tolerance_is_the_published_one(shape: str) -> None:
    xs = torch.linspace(-7.0, 9.0, 161, dtype=torch.float64)
    for low, high, margin in ((-1.0, 2.0, 1.5), (0.0, 0.0, 3.0), (1.0, math.inf, 0.4), (-0.5, 0.5, 0.0)):
        for v in (0.1, 0.7):
            got = tolerance(xs, low=low, high=high, margin=margin, shape=shape, at_margin=v)
            wanted = [dm_control.tolerance(float(x), low, high, margin, shape, v) for x in xs]
            assert got.tolist() == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("shape", TOLERANCES)
def test_at_the_margin_it_is_what_was_asked_for(shape: str) -> None:
    at = tolerance(torch.tensor([-2.0, 5.0, 1.0]), low=0.0, high=3.0, margin=2.0, shape=shape, at_margin=0.25)
    assert at.tolist() == pytest.approx([0.25, 0.25, 1.0], abs=1e-6)


@pytest.mark.parametrize("shape", ["cosine", "linear", "quadratic"])
def test_three_shapes_reach_zero(shape: str) -> None:
    got = tolerance(torch.tensor([0.0, 1.0, 4.0]), margin=1.0, shape=shape, at_margin=0.0)
    assert got.tolist() == [1.0, 0.0, 0.0]


def test_a_tolerance_that_cannot_be_is_refused() -> None:
    x = torch.zeros(2)
    with pytest.raises(ConfigError, match=r"low <= high and margin >= 0, got 1\.0, 0\.0 and 0\.0"):
        tolerance(x, low=1.0)
    with pytest.raises(ConfigError, match="margin >= 0"):
        tolerance(x, margin=-1.0)
    with pytest.raises(
        ConfigError, match=r"between 0 and 1, for cosine, linear, quadratic also 0; got 0\.0 for gaussian"
    ):
        tolerance(x, margin=1.0, at_margin=0.0)
    with pytest.raises(ConfigError, match=r"got 1\.0 for linear"):
        tolerance(x, margin=1.0, shape="linear", at_margin=1.0)
    with pytest.raises(UnknownNameError, match="quadratic"):
        tolerance(x, margin=1.0, shape="quadratik")
