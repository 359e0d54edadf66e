"""Networks that make chunks of actions from noise (Chi et al., 2023, arXiv:2303.04137)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from manikin.errors import ConfigError
from manikin.policy.networks.cloned import windowed
from manikin.policy.networks.pictures import input_layers
from manikin.policy.networks.sampler import Sampler
from manikin.policy.networks.scaling import Span

__all__ = ["Denoiser", "MlpDenoiser", "UNetDenoiser"]


class Denoiser(nn.Module):
    """Actions (B, predict, A) in [-1, 1] from observations (B, window, D): a chunk that denoising makes.

    The noise that it begins with is drawn once, when the network is made, and saved with its weights: the same for
    every row and every call. So the policy is a function of the observation, and a row's answer depends on that row.

    Args:
        observations, actions, window: as :class:`~manikin.policy.networks.cloned.Cloned`.
        predict: actions of a chunk, from the present on.
        sampler, train_steps, steps, prediction: see :class:`~manikin.policy.networks.sampler.Sampler`.

    Raises:
        ConfigError: ``predict`` below 1.
    """

    noise: Tensor

    def __init__(
        self,
        *,
        observations: int | Mapping[str, Any],
        actions: int,
        window: int = 1,
        predict: int = 16,
        sampler: str = "ddim",
        train_steps: int = 100,
        steps: int = 10,
        prediction: str,
    ) -> None:
        super().__init__()
        if predict < 1:
            raise ConfigError(f"predict must be 1 or more, got {predict}")
        self.actions, self.predict = actions, predict
        self.scaling, self.encoder, columns = input_layers(observations)
        self.columns, self.span = columns * window, Span(actions)
        self.sampler = Sampler(sampler, train_steps=train_steps, steps=steps, prediction=prediction)
        noise = torch.randn(self.sampler.draws, predict, actions)  # house: random, as weights, under a run's seed
        self.register_buffer("noise", noise)

    def predicted(self, noisy: Tensor, times: Tensor, seen: Tensor) -> Tensor:
        """What the sampler asks for, (B, predict, A), of a noisy chunk, at levels (B,), and of scaled observations
        (B, window * D)."""
        raise NotImplementedError

    def seen(self, observation: Any) -> Tensor:
        """Scaled observations, pictures as features, flat: (B, window * D)."""
        return windowed(self.encoder(self.scaling(observation))).flatten(1)

    def forward(self, observation: Any) -> Tensor:
        seen = self.seen(observation)
        x = self.noise[0].expand(seen.shape[0], -1, -1)
        for k, time in enumerate(self.sampler.times):
            predicted = self.predicted(x, torch.full_like(seen[:, 0], time), seen)
            x = self.sampler.step(k, x, predicted, self.noise[k + 1] if k + 1 < self.sampler.draws else None)
        actions: Tensor = self.span.restore(x)
        return actions.clamp(-1.0, 1.0)


class _Time(nn.Module):
    """Levels (B,) as sines and cosines of geometric frequencies, and two layers: (B, size)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        half = size // 2
        frequencies = torch.exp(-math.log(10_000.0) * torch.arange(half) / max(half - 1, 1))
        self.register_buffer("frequencies", frequencies, persistent=False)
        self.layers = nn.Sequential(nn.Linear(2 * half, 4 * size), nn.Mish(), nn.Linear(4 * size, size))

    frequencies: Tensor

    def forward(self, times: Tensor) -> Tensor:
        angle = times.unsqueeze(1) * self.frequencies
        found: Tensor = self.layers(torch.cat([angle.sin(), angle.cos()], 1))
        return found


class MlpDenoiser(Denoiser):
    """Layers with skips on the flat chunk: fits two processor cores.

    Args:
        width: of each layer. blocks: how many. time: numbers that describe the level.
        given: as :class:`Denoiser`.
    """

    def __init__(self, *, width: int = 512, blocks: int = 3, time: int = 64, **given: Any) -> None:
        super().__init__(**given)
        columns = self.columns
        flat = self.predict * self.actions
        self.time = _Time(time)
        self.first = nn.Linear(flat + columns + time, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Mish(), nn.Linear(width, width)) for _ in range(blocks)
        )
        self.last = nn.Sequential(nn.LayerNorm(width), nn.Mish(), nn.Linear(width, flat))

    def predicted(self, noisy: Tensor, times: Tensor, seen: Tensor) -> Tensor:
        x = self.first(torch.cat([noisy.flatten(1), seen, self.time(times)], 1))
        for block in self.blocks:
            x = x + block(x)
        flat: Tensor = self.last(x)
        return flat.unflatten(1, (self.predict, self.actions))


def _convolved(inputs: int, outputs: int, kernel: int, groups: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv1d(inputs, outputs, kernel, padding=kernel // 2), nn.GroupNorm(groups, outputs), nn.Mish()
    )


class _Residual(nn.Module):
    """Two convolutions; between them the condition scales and shifts each channel."""

    def __init__(self, inputs: int, outputs: int, condition: int, kernel: int, groups: int) -> None:
        super().__init__()
        self.first = _convolved(inputs, outputs, kernel, groups)
        self.second = _convolved(outputs, outputs, kernel, groups)
        self.condition = nn.Sequential(nn.Mish(), nn.Linear(condition, 2 * outputs))
        self.skip = nn.Conv1d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        scale, shift = self.condition(condition).unsqueeze(2).chunk(2, 1)
        found: Tensor = self.second(self.first(x) * scale + shift) + self.skip(x)
        return found


class _Two(nn.Module):
    def __init__(self, first: _Residual, second: _Residual) -> None:
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        found: Tensor = self.second(self.first(x, condition), condition)
        return found


class UNetDenoiser(Denoiser):
    """Convolutions along the chunk at halving lengths, and back with what was seen at each.

    Args:
        channels: at each length, a multiple of ``groups``; the chunk is halved between two of them.
        kernel: of the convolutions. groups: of group normalization. time: numbers that describe the level.
        given: as :class:`Denoiser`.

    Raises:
        ConfigError: the chunk cannot be halved so often, or channels that the groups do not divide.
    """

    def __init__(
        self,
        *,
        channels: Sequence[int] = (64, 128, 256),
        kernel: int = 5,
        groups: int = 8,
        time: int = 64,
        **given: Any,
    ) -> None:
        super().__init__(**given)
        if self.predict % 2 ** (len(channels) - 1):
            raise ConfigError(f"predict must be a multiple of {2 ** (len(channels) - 1)}, got {self.predict}")
        if any(count % groups for count in channels):
            raise ConfigError(f"channels must be multiples of {groups}, got {list(channels)}")
        columns = self.columns
        condition, deepest = time + columns, channels[-1]
        self.time = _Time(time)

        def two(inputs: int, outputs: int) -> _Two:
            return _Two(*(_Residual(a, outputs, condition, kernel, groups) for a in (inputs, outputs)))

        sizes = list(pairwise([self.actions, *channels]))
        self.down = nn.ModuleList(two(a, b) for a, b in sizes)
        self.halving = nn.ModuleList(nn.Conv1d(b, b, 3, stride=2, padding=1) for b in channels[:-1])
        self.middle = two(deepest, deepest)
        self.up = nn.ModuleList(two(2 * b, a) for a, b in reversed(sizes[1:]))
        self.doubling = nn.ModuleList(nn.ConvTranspose1d(a, a, 4, stride=2, padding=1) for a, _ in reversed(sizes[1:]))
        self.last = nn.Sequential(
            _convolved(channels[0], channels[0], kernel, groups), nn.Conv1d(channels[0], self.actions, 1)
        )

    def predicted(self, noisy: Tensor, times: Tensor, seen: Tensor) -> Tensor:
        condition = torch.cat([self.time(times), seen], 1)
        x, kept = noisy.transpose(1, 2), []
        for i, blocks in enumerate(self.down):
            x = blocks(x, condition)
            kept.append(x)
            if i < len(self.halving):
                x = self.halving[i](x)
        x = self.middle(x, condition)
        for blocks, doubling in zip(self.up, self.doubling, strict=True):
            x = doubling(blocks(torch.cat([x, kept.pop()], 1), condition))
        found: Tensor = self.last(x)
        return found.transpose(1, 2)
