"""Networks of behaviour cloning: one action from an observation, or from a window of the last few."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from manikin.errors import ConfigError
from manikin.policy.networks.mlp import mlp
from manikin.policy.networks.pictures import PictureEncoder, input_layers
from manikin.policy.networks.scaling import Span

__all__ = ["Cloned", "MixtureCloned", "windowed"]


def windowed(observation: Tensor) -> Tensor:
    """(B, window, D) of an observation (B, D), whose window is 1, or (B, window, D); the last is the present."""
    return observation.unsqueeze(1) if observation.ndim == 2 else observation


class Cloned(nn.Module):
    """Actions (B, A) in [-1, 1] from observations (B, D) or (B, window, D).

    Args:
        observations: columns D of a flat observation; with pictures, see
            :class:`~manikin.policy.networks.pictures.PictureEncoder`.
        actions: dimensions A.
        window: observations that are seen together.
        hidden: sizes of the layers between. activation: as :func:`~manikin.policy.networks.mlp.mlp` has them.
        recurrent: an LSTM runs over the window, with so many units in each of as many layers as ``hidden`` has, in
            place of layers that see the window at once; 0 for none. It begins anew with every window, so the
            policy needs no memory.

    Attributes:
        scaling: brings observations to mean 0 and standard deviation 1. span: actions to [-1, 1].
        encoder: makes features of pictures; changes nothing of flat observations.
    """

    def __init__(
        self,
        *,
        observations: int | Mapping[str, Any],
        actions: int,
        window: int = 1,
        hidden: Sequence[int] = (256, 256),
        activation: str = "relu",
        recurrent: int = 0,
    ) -> None:
        super().__init__()
        self.actions, self.window = actions, window
        self.scaling, self.encoder, columns = input_layers(observations)
        self.span = Span(actions)
        sizes = [columns, *[recurrent] * len(hidden)] if recurrent else []
        self.cells = nn.ModuleList(nn.LSTMCell(a, b) for a, b in pairwise(sizes))
        if recurrent:
            self.layers: nn.Module = nn.Linear(recurrent, self._outputs())
        else:
            self.layers = mlp(columns * window, hidden, self._outputs(), activation=activation)

    def _outputs(self) -> int:
        return self.actions

    def features(self, observation: Any) -> Tensor:
        """What goes into the last layers, (B, columns)."""
        return self._remembered(self.encoder(self.scaling(observation)))

    def located(self, observation: Any) -> tuple[Tensor, dict[str, Tensor]]:
        """As :meth:`features`, and where in the pictures the channels are, as
        :meth:`~manikin.policy.networks.pictures.PictureEncoder.located` gives it.

        Raises:
            ConfigError: the network sees no pictures, or has another encoder than ``keypoints``.
        """
        if not isinstance(self.encoder, PictureEncoder):
            raise ConfigError("a network that sees no pictures finds nothing in them")
        joined, chances = self.encoder.located(self.scaling(observation))
        return self._remembered(joined), chances

    def _remembered(self, encoded: Tensor) -> Tensor:
        seen = windowed(encoded)
        for cell in self.cells:
            memory, out = None, []
            for frame in seen.unbind(1):
                memory = cell(frame, memory)
                out.append(memory[0])
            seen = torch.stack(out, 1)
        if len(self.cells):
            seen = seen[:, -1]
        return seen.flatten(1)

    def answer(self, observation: Any) -> Tensor:
        """What the last layer gives, (B, outputs): for scaled actions."""
        found: Tensor = self.layers(self.features(observation))
        return found

    def forward(self, observation: Any) -> Tensor:
        return self.span.restore(self.answer(observation)).clamp(-1.0, 1.0)


class MixtureCloned(Cloned):
    """A mixture of Gaussians over actions. Called, it gives the mean of the component with the most weight.

    Args:
        modes: components K.
        min_std: the least standard deviation, of scaled actions.
        given: as :class:`Cloned`.
    """

    def __init__(self, *, modes: int = 5, min_std: float = 1e-2, **given: Any) -> None:
        self.modes, self.min_std = modes, min_std
        super().__init__(**given)

    def _outputs(self) -> int:
        return self.modes * (1 + 2 * self.actions)

    def mixture(self, observation: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Logarithms of the weights (B, K), means (B, K, A) within [-1, 1] and deviations (B, K, A)."""
        logits, rest = self.answer(observation).split([self.modes, 2 * self.modes * self.actions], 1)
        mean, raw = rest.unflatten(1, (2, self.modes, self.actions)).unbind(1)
        return logits.log_softmax(1), mean.tanh(), functional.softplus(raw) + self.min_std

    def log_likelihood(self, observation: Any, scaled: Tensor) -> Tensor:
        """(B,) of scaled actions (B, A)."""
        weight, mean, std = self.mixture(observation)
        gap = (scaled.unsqueeze(1) - mean) / std
        each = -0.5 * gap.square() - std.log() - 0.5 * torch.log(torch.tensor(2 * torch.pi))
        return torch.logsumexp(weight + each.sum(-1), 1)

    def forward(self, observation: Any) -> Tensor:
        weight, mean, _ = self.mixture(observation)
        best = mean[torch.arange(mean.shape[0], device=mean.device), weight.argmax(1)]
        return self.span.restore(best).clamp(-1.0, 1.0)
