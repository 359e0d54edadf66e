"""What is done with a shard."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from manikin.errors import ConfigError

__all__ = ["Work", "open_named", "open_work"]


class Work(Protocol):
    """Does items of a run, one shard after the other; holds what that takes, for example an environment.

    What an item comes to is a function of its number and the settings, whoever does it, beside which others, and in
    which order.
    """

    def run(self, numbers: Sequence[int], folder: Path, advance: Callable[[], None]) -> None:
        """Do those of the items that the folder does not hold yet. Each is safe in it as soon as it is finished, and
        ``advance`` is called.
        """

    def finished(self, folder: Path) -> set[int]:
        """Numbers of the items that the folder holds."""

    def facts(self, folder: Path) -> dict[str, Any]:
        """Complete the folder's files and say what they hold, in plain values. ``content`` is the hash of what came
        out: the same for the same items.
        """

    def called(self, number: int) -> str:
        """What people call an item: "episode 12 (seed 1012)"."""

    def close(self) -> None:
        """Let go of everything."""


def open_work(word: str, settings: Mapping[str, Any]) -> Work:
    """The work ``module:Class``, opened with its settings.

    Raises:
        ConfigError: there is none of that name. And what the work raises.
    """
    work: Work = open_named(word, settings)
    return work


def open_named(word: str, settings: Mapping[str, Any]) -> Any:
    """What ``module:Class`` makes of settings.

    Raises:
        ConfigError: there is none of that name. And what it raises.
    """
    module, _, name = word.partition(":")
    try:
        kind = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"the work {word} cannot be loaded: {error}") from None
    return kind(settings)
