"""Behaviour cloning: an observation, or a window of the last few, to the action that the demonstrator took.

Three heads. ``mse`` answers with the mean of what was shown, which between two ways is neither. ``gmm`` fits a mixture
of Gaussians and answers with the mean of the heaviest (Mandlekar et al., 2021, arXiv:2108.03298). ``recurrent`` lets an
LSTM read the window, with either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from manikin.errors import ConfigError
from manikin.learn.common.imitation import Imitation, ImitationConfig
from manikin.policy.networks.cloned import MixtureCloned

__all__ = ["BC", "Config"]

_NETWORKS = {"mse": "bc", "gmm": "bc_gmm"}


@dataclass(frozen=True, kw_only=True)
class Config(ImitationConfig):
    """Settings of behaviour cloning, and those of :class:`~manikin.learn.common.imitation.ImitationConfig`.

    Attributes:
        head: mse, or gmm.
        modes: of the mixture. min_std: least deviation of each, of actions scaled to [-1, 1].
        hidden: sizes of the layers between. activation: tanh, relu, elu or silu.
        recurrent: units of an LSTM over the window in place of these layers, as many layers as ``hidden`` has; 0 none.
    """

    batch_size: int = 1024
    head: str = "mse"
    modes: int = 5
    min_std: float = 0.01
    hidden: tuple[int, ...] = (256, 256)
    activation: str = "relu"
    recurrent: int = 0


class BC(Imitation):
    """Trains a :class:`~manikin.policy.networks.cloned.Cloned` or ``MixtureCloned``. Arguments are those of
    :class:`~manikin.learn.common.imitation.Imitation`.

    Raises:
        ConfigError: no such head.
    """

    config: Config

    def options(self) -> dict[str, Any]:
        config = self.config
        if config.head not in _NETWORKS:
            raise ConfigError(f"bc's head must be one of {', '.join(_NETWORKS)}, got {config.head!r}")
        self.network = _NETWORKS[config.head]
        mixture = {"modes": config.modes, "min_std": config.min_std} if config.head == "gmm" else {}
        layers = {"hidden": list(config.hidden), "activation": config.activation, "recurrent": config.recurrent}
        return {**layers, **mixture}

    def losses(self, seen: Any, actions: Tensor, padded: Tensor, pushed: Tensor) -> dict[str, Tensor]:
        wanted = actions[:, 0]
        if isinstance(self.module, MixtureCloned):
            return {"loss": -self.module.log_likelihood(seen, wanted).mean()}
        return {"loss": (self.module.answer(seen) - wanted).square().mean()}
