"""Action chunking with transformers, ACT (Zhao et al., 2023, arXiv:2304.13705).

Demonstrations differ in style: the same start, another way. In training, an encoder reads a demonstration's chunk of
actions and describes it by a latent vector; the policy must reproduce the chunk from this and the observation. The
vector is kept close to a standard Gaussian by its divergence, with a large weight, so that it holds no more than
the observation leaves open. The trained policy acts with the vector 0, and without the encoder.

Overlapping chunks are averaged when the policy acts (``ensemble``): see :class:`~manikin.policy.chunk.Execution`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from manikin.learn.common.imitation import ChunkConfig, Imitation
from manikin.policy.networks.transformer import EncoderLayer, sinusoids

__all__ = ["ACT", "Config", "StyleEncoder", "divergence", "masked_l1"]

_NETWORK = ("predict", "width", "heads", "inner", "encoder_layers", "decoder_layers", "latent", "dropout")


@dataclass(frozen=True, kw_only=True)
class Config(ChunkConfig):
    """Settings of ACT, and those of :class:`~manikin.learn.common.imitation.ChunkConfig`.

    Attributes:
        kl_weight: of the divergence of the latent vector, beside the mean absolute error of scaled actions.
        latent: numbers of the latent vector.
        width, heads, inner, dropout: of the transformer's layers. encoder_layers, decoder_layers: how many; the
            encoder of chunks has ``encoder_layers`` too.
    """

    batch_size: int = 64
    weight_decay: float = 1e-4
    average: float = 0.75
    ensemble: bool = True
    kl_weight: float = 10.0
    latent: int = 16
    width: int = 128
    heads: int = 4
    inner: int = 256
    encoder_layers: int = 1
    decoder_layers: int = 2
    dropout: float = 0.1


class StyleEncoder(nn.Module):
    """Mean and logarithm of the variance of the latent vector, from an observation and the actions that followed.

    Args:
        observations, actions: columns.
        predict: actions of a chunk.
        layers: how many. width, heads, inner, dropout: of each.
        latent: numbers of the vector.
    """

    places: Tensor

    def __init__(
        self,
        *,
        observations: int,
        actions: int,
        predict: int,
        layers: int,
        width: int,
        heads: int,
        inner: int,
        dropout: float,
        latent: int,
    ) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.randn(width))  # house: random, as weights, under a run's seed
        self.observation, self.action = nn.Linear(observations, width), nn.Linear(actions, width)
        self.register_buffer("places", sinusoids(2 + predict, width), persistent=False)
        self.layers = nn.ModuleList(EncoderLayer(width, heads, inner, dropout) for _ in range(layers))
        self.last = nn.Linear(width, 2 * latent)

    def forward(self, seen: Tensor, actions: Tensor, padded: Tensor) -> tuple[Tensor, Tensor]:
        """(B, latent) each, of scaled observations (B, D), scaled actions (B, predict, A) and padding (B, predict)."""
        first = self.first.expand(len(seen), 1, -1)
        x = torch.cat([first, self.observation(seen).unsqueeze(1), self.action(actions)], 1)
        present = torch.cat([padded.new_zeros(len(padded), 2), padded], 1).logical_not()
        for layer in self.layers:
            x = layer(x, self.places, present)
        mean, log_variance = self.last(x[:, 0]).chunk(2, 1)
        return mean, log_variance


def divergence(mean: Tensor, log_variance: Tensor) -> Tensor:
    """Kullback-Leibler divergence of Gaussians (B, latent) from the standard one [nat], mean over B."""
    return 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(1).mean()


def masked_l1(found: Tensor, wanted: Tensor, padded: Tensor) -> Tensor:
    """Mean absolute error of chunks (B, predict, A) where ``padded`` (B, predict) is False."""
    counts = padded.logical_not().unsqueeze(2)
    return ((found - wanted).abs() * counts).sum() / (counts.sum() * found.shape[2])


class ACT(Imitation):
    """Trains a :class:`~manikin.policy.networks.chunked.ChunkTransformer`. Arguments are those of
    :class:`~manikin.learn.common.imitation.Imitation`.

    Raises:
        ConfigError: sizes that do not go together.
    """

    config: Config
    network = "act"
    takes_pictures = False

    def options(self) -> dict[str, Any]:
        return {name: getattr(self.config, name) for name in _NETWORK}

    def made_helper(self) -> nn.Module:
        config, sizes = self.config, ("predict", "width", "heads", "inner", "dropout", "latent")
        return StyleEncoder(
            observations=self.network_options["observations"],
            actions=self.network_options["actions"],
            layers=config.encoder_layers,
            **{name: getattr(config, name) for name in sizes},
        ).to(self.device)

    def losses(self, seen: Tensor, actions: Tensor, padded: Tensor, pushed: Tensor) -> dict[str, Tensor]:
        scaling, padded = self.module.scaling, padded | pushed
        mean, log_variance = self.helper(scaling(seen[:, -1]), actions, padded)
        drawn = torch.randn(mean.shape, generator=self.streams["style"], device=self.device)
        found = self.module.answer(seen, mean + (0.5 * log_variance).exp() * drawn)
        error, apart = masked_l1(found, actions, padded), divergence(mean, log_variance)
        return {"loss": error + self.config.kl_weight * apart, "l1": error, "kl": apart}
