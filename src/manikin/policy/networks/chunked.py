"""The network of ACT: a transformer from what is seen to a chunk of actions (Zhao et al., 2023, arXiv:2304.13705)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from manikin.errors import ConfigError
from manikin.policy.networks.cloned import windowed
from manikin.policy.networks.scaling import Scaling, Span
from manikin.policy.networks.transformer import DecoderLayer, EncoderLayer

__all__ = ["ChunkTransformer"]


class ChunkTransformer(nn.Module):
    """Actions (B, predict, A) in [-1, 1] from observations (B, D) or (B, window, D).

    One token stands for the style of a demonstration, a latent vector, and one for each observation of the window.
    An encoder mixes them. A decoder with one query per action reads them. When the policy acts, the latent vector is 0,
    the mean of its prior; so the policy is a function of the observation.

    Args:
        observations, actions, window: as :class:`~manikin.policy.networks.cloned.Cloned`.
        predict: actions of a chunk, from the present on.
        width, heads, inner, dropout: of the layers, see :mod:`manikin.policy.networks.transformer`.
        encoder_layers, decoder_layers: how many.
        latent: numbers of the style.

    Attributes:
        scaling: brings observations to mean 0 and standard deviation 1. span: actions to [-1, 1].

    Raises:
        ConfigError: fewer than one action or layer, or ``heads`` do not divide ``width``.
    """

    def __init__(
        self,
        *,
        observations: int,
        actions: int,
        window: int = 1,
        predict: int = 16,
        width: int = 128,
        heads: int = 4,
        inner: int = 256,
        encoder_layers: int = 1,
        decoder_layers: int = 2,
        latent: int = 16,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        for name, value in (
            ("predict", predict),
            ("encoder_layers", encoder_layers),
            ("decoder_layers", decoder_layers),
            ("latent", latent),
        ):
            if value < 1:
                raise ConfigError(f"{name} must be 1 or more, got {value}")
        self.latent = latent
        self.scaling, self.span = Scaling(observations), Span(actions)
        self.observation, self.style = nn.Linear(observations, width), nn.Linear(latent, width)
        self.places = nn.Parameter(torch.randn(1 + window, width))  # house: random, as weights, under a run's seed
        self.queries = nn.Parameter(torch.randn(predict, width))  # house: random, as weights, under a run's seed
        self.encoder = nn.ModuleList(EncoderLayer(width, heads, inner, dropout) for _ in range(encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(width, heads, inner, dropout) for _ in range(decoder_layers))
        self.norm, self.last = nn.LayerNorm(width), nn.Linear(width, actions)

    def answer(self, observation: Tensor, style: Tensor) -> Tensor:
        """Scaled actions (B, predict, A) in the ``style`` (B, latent)."""
        seen = self.scaling(windowed(observation))
        memory = torch.cat([self.style(style).unsqueeze(1), self.observation(seen)], 1)
        for layer in self.encoder:
            memory = layer(memory, self.places)
        x = torch.zeros_like(self.queries).expand(seen.shape[0], -1, -1)
        for layer in self.decoder:
            x = layer(x, self.queries, memory, self.places)
        found: Tensor = self.last(self.norm(x))
        return found

    def forward(self, observation: Tensor) -> Tensor:
        style = observation.new_zeros(observation.shape[0], self.latent)
        return self.span.restore(self.answer(observation, style)).clamp(-1.0, 1.0)
