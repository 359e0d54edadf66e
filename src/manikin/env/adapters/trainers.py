"""What the adapters for training libraries share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from manikin.env.interface import BatchEnv
from manikin.errors import ConfigError

__all__ = ["leaves", "missing_library", "of_ended", "restarting"]


def missing_library(library: str, package: str, error: ImportError) -> ConfigError:
    """The error to raise where a training library cannot be imported; ``package`` is what pip installs."""
    return ConfigError(f"this adapter needs {library} ({error}): pip install {package}")


def restarting(env: BatchEnv, library: str) -> BatchEnv:
    """The environment, if a row that ended restarts in the same step: the libraries expect that.

    Raises:
        ConfigError: it is not manikin's, or another ``autoreset`` was chosen.
    """
    if not hasattr(env, "autoreset") or not hasattr(env, "horizon"):
        raise ConfigError(f"{library}'s adapter takes what manikin.make(TASK, N) returns, not {type(env).__name__}")
    if env.autoreset != "same_step":
        raise ConfigError(
            f"{library} needs rows that restart in the same step: autoreset='same_step', not {env.autoreset!r}"
        )
    return env


def of_ended(ended: Tensor, final: Any, following: Any) -> Any:
    """``final`` in the rows that ``ended`` (N,) bool, ``following`` in the others: tensors (N, ...) in nested dicts."""
    if isinstance(following, Mapping):
        return {name: of_ended(ended, final[name], value) for name, value in following.items()}
    return torch.where(ended.view(-1, *[1] * (following.ndim - 1)), final, following)


def leaves(tree: Any, prefix: str = "") -> dict[str, Any]:
    """What is in nested mappings, by path: ``{"a": {"b": x}}`` -> ``{"a/b": x}``."""
    found: dict[str, Any] = {}
    for name, value in tree.items():
        path = f"{prefix}{name}"
        found |= leaves(value, f"{path}/") if isinstance(value, Mapping) else {path: value}
    return found
