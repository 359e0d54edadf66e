"""Diffusion policy (Chi et al., 2023, arXiv:2303.04137): a network learns to take noise out of chunks of actions.

The network answers with the clean actions (``prediction = "sample"``); the paper's answers with the noise.

A chunk begins with the present action. Of the ``predict`` actions that it holds the first ``execute`` are executed.
Then the policy is asked again. Behind the end of a demonstration its last action is repeated, and counts like any
other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from manikin.errors import ConfigError
from manikin.learn.common.imitation import ChunkConfig, Imitation

__all__ = ["Config", "Diffusion"]

_NETWORKS = {"mlp": "denoiser_mlp", "unet": "denoiser_unet"}


@dataclass(frozen=True, kw_only=True)
class Config(ChunkConfig):
    """Settings of diffusion policy, and those of :class:`~manikin.learn.common.imitation.ChunkConfig`.

    Attributes:
        sampler: ddpm, ddim or flow. train_steps: levels of noise in training. steps: when the policy acts; ddpm makes
            all levels. prediction: sample, epsilon or velocity, see
            :class:`~manikin.policy.networks.sampler.Sampler`. Actions that an observation decides are far easier to
            learn as the sample than as the noise.
        denoiser: mlp, or unet.
        width, blocks: of the mlp. unet_channels, kernel: of the unet.
    """

    learning_rate: float = 3e-4
    weight_decay: float = 1e-6
    warm_up: int = 500
    average: float = 0.75
    execute: int = 8
    sampler: str = "ddim"
    train_steps: int = 100
    steps: int = 10
    prediction: str = "sample"
    denoiser: str = "mlp"
    width: int = 512
    blocks: int = 3
    unet_channels: tuple[int, ...] = (64, 128, 256)
    kernel: int = 5


class Diffusion(Imitation):
    """Trains a :class:`~manikin.policy.networks.denoiser.Denoiser`. Arguments are those of
    :class:`~manikin.learn.common.imitation.Imitation`.

    Raises:
        ConfigError: no such denoiser or sampler, or sizes that do not go together.
    """

    config: Config

    def options(self) -> dict[str, Any]:
        config = self.config
        if config.denoiser not in _NETWORKS:
            raise ConfigError(f"diffusion's denoiser must be one of {', '.join(_NETWORKS)}, got {config.denoiser!r}")
        self.network = _NETWORKS[config.denoiser]
        sizes: dict[str, Any] = {"width": config.width, "blocks": config.blocks}
        if config.denoiser == "unet":
            sizes = {"channels": list(config.unet_channels), "kernel": config.kernel}
        names = ("predict", "sampler", "train_steps", "steps", "prediction")
        return {name: getattr(config, name) for name in names} | sizes

    def losses(self, seen: Any, actions: Tensor, padded: Tensor, pushed: Tensor) -> dict[str, Tensor]:
        sampler, drawn = self.module.sampler, self.streams["noise"]
        times = sampler.draw_times(len(actions), drawn)
        noise = torch.randn(actions.shape, generator=drawn, device=self.device)
        predicted = self.module.predicted(sampler.noised(actions, noise, times), times, self.module.seen(seen))
        error = (predicted - sampler.target(actions, noise)).square().mean(2)
        counts = pushed.logical_not()
        return {"loss": (error * counts).sum() / counts.sum()}
