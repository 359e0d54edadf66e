"""Multilayer perceptrons: the layers, and actors with a Gaussian around their answer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from manikin.errors import UnknownNameError
from manikin.policy.networks.pictures import input_layers

__all__ = ["ACTIVATIONS", "GaussianActor", "TanhGaussianActor", "mlp"]

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU, "elu": nn.ELU, "silu": nn.SiLU}


def mlp(
    inputs: int,
    hidden: Sequence[int],
    outputs: int,
    *,
    activation: str = "tanh",
    norm: bool = False,
    last_gain: float = 1.0,
    generator: torch.Generator | None = None,
) -> nn.Sequential:
    """Linear layers with an activation between them; weights orthogonal with gain sqrt 2, biases zero.

    Args:
        inputs: columns that come in.
        outputs: columns that go out.
        hidden: sizes between.
        activation: tanh, relu, elu or silu.
        norm: layer normalization before each activation.
        last_gain: gain of the last layer's weights.
        generator: draws the weights.

    Raises:
        UnknownNameError: no such activation.
    """
    if activation not in ACTIVATIONS:
        raise UnknownNameError("activation", activation, ACTIVATIONS)
    sizes = [inputs, *hidden, outputs]
    layers: list[nn.Module] = []
    for i, (a, b) in enumerate(pairwise(sizes)):
        last = i == len(sizes) - 2
        layer = nn.Linear(a, b)
        nn.init.orthogonal_(layer.weight, last_gain if last else 2**0.5, generator=generator)
        nn.init.zeros_(layer.bias)
        layers.append(layer)
        if not last:
            layers += [nn.LayerNorm(b)] if norm else []
            layers.append(ACTIVATIONS[activation]())
    return nn.Sequential(*layers)


class GaussianActor(nn.Module):
    """An action from a flat observation: the mean of a Gaussian whose spread is a parameter of its own.

    Called, it gives the mean (B, A), clipped to [-1, 1]: what a trained policy does. :meth:`distribution` gives mean
    and logarithm of the spread, for training.

    Args:
        observations: columns of a flat observation; with pictures, see
            :class:`~manikin.policy.networks.pictures.PictureEncoder`.
        actions: dimensions of the action.
        hidden, activation: see :func:`mlp`.
        log_std: logarithm of the spread at the beginning.
        state_std: the spread depends on the observation: the last layer gives what is added to its logarithm, too.
        generator: draws the weights.

    Attributes:
        scaling: brings observations to mean 0 and standard deviation 1; part of the network, saved with it.
        encoder: makes features of pictures; changes nothing of flat observations.
        columns: that the encoder gives.
    """

    log_std_limits = (-4.0, 0.5)
    """Of the logarithm of the spread, where that depends on the observation."""

    def __init__(
        self,
        *,
        observations: int | Mapping[str, Any],
        actions: int,
        hidden: Sequence[int] = (256, 256),
        activation: str = "tanh",
        log_std: float = -0.5,
        state_std: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.actions, self.state_std = actions, state_std
        self.scaling, self.encoder, self.columns = input_layers(observations)
        outputs = 2 * actions if state_std else actions
        self.mean = mlp(
            self.columns, hidden, outputs, activation=activation, last_gain=0.01 * 2**0.5, generator=generator
        )
        self.log_std = nn.Parameter(torch.full((actions,), float(log_std)))

    def distribution(self, scaled: Any) -> tuple[Tensor, Tensor]:
        """Mean (B, A) and log of the spread (A,), or (B, A) with ``state_std``, for observations that :attr:`scaling`
        has scaled."""
        return self.of_features(self.encoder(scaled))

    def of_features(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """The same, for what the encoder gives."""
        answer = self.mean(features)
        if not self.state_std:
            return answer, self.log_std
        mean, more = answer.split(self.actions, -1)
        return mean, (self.log_std + more).clamp(*self.log_std_limits)

    def forward(self, observation: Any) -> Tensor:
        mean, _ = self.distribution(self.scaling(observation))
        return mean.clamp(-1.0, 1.0)


class TanhGaussianActor(nn.Module):
    """An action from a flat observation: tanh of a Gaussian whose mean and spread both follow from the observation.

    Called, it gives tanh of the mean (B, A): what a trained policy does. :meth:`sample` draws an action and says how
    likely it was, for training. The logarithm of the spread is mapped into a range by tanh.

    Args:
        observations: columns of a flat observation; with pictures, see
            :class:`~manikin.policy.networks.pictures.PictureEncoder`.
        actions: dimensions of the action.
        hidden, activation, norm: see :func:`mlp`.
        log_std_range: least and largest logarithm of the spread.
        generator: draws the weights.

    Attributes:
        scaling: brings observations to mean 0 and standard deviation 1; part of the network, saved with it.
        encoder: makes features of pictures; changes nothing of flat observations.
        columns: that the encoder gives.
    """

    def __init__(
        self,
        *,
        observations: int | Mapping[str, Any],
        actions: int,
        hidden: Sequence[int] = (256, 256),
        activation: str = "relu",
        norm: bool = False,
        log_std_range: Sequence[float] = (-5.0, 2.0),
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.scaling, self.encoder, self.columns = input_layers(observations)
        low, high = log_std_range
        if not low < high:
            raise ValueError(f"log_std_range must rise, got {low}, {high}")
        self.middle, self.reach = (high + low) / 2, (high - low) / 2
        self.layers = mlp(
            self.columns, hidden, 2 * actions, activation=activation, norm=norm, last_gain=0.01, generator=generator
        )

    def distribution(self, scaled: Any) -> tuple[Tensor, Tensor]:
        """Mean and log of the spread (B, A), before tanh, for observations that :attr:`scaling` has scaled."""
        return self.of_features(self.encoder(scaled))

    def of_features(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """The same, for what the encoder gives."""
        mean, spread = self.layers(features).chunk(2, -1)
        return mean, self.middle + self.reach * spread.tanh()

    def sample(self, scaled: Any, drawn: Tensor) -> tuple[Tensor, Tensor]:
        """Actions (B, A) and the logarithm of their density (B,), for normal numbers ``drawn`` (B, A).

        With ``u = mean + std * drawn`` and ``action = tanh(u)``, the density is that of ``u`` divided by the product of
        ``1 - tanh(u)^2``. The logarithm of a factor is ``2 (log 2 - u - softplus(-2 u))``, exact also near 1.
        """
        return self.sample_of_features(self.encoder(scaled), drawn)

    def sample_of_features(self, features: Tensor, drawn: Tensor) -> tuple[Tensor, Tensor]:
        """The same, for what the encoder gives."""
        mean, log_std = self.of_features(features)
        u = mean + log_std.exp() * drawn
        normal = -0.5 * drawn.square() - log_std - 0.5 * math.log(2 * math.pi)
        change = 2.0 * (math.log(2.0) - u - nn.functional.softplus(-2.0 * u))
        return u.tanh(), (normal - change).sum(-1)

    def forward(self, observation: Any) -> Tensor:
        mean, _ = self.layers(self.encoder(self.scaling(observation))).chunk(2, -1)
        action: Tensor = mean.tanh()
        return action
