"""What all visual variation shares: an item that varies, its streams, and drawing as declared."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from manikin.rng import EpisodeRng
from manikin.sim.world import World
from manikin.spec.vary import Choice, Normal, Uniform, Vary

__all__ = ["Item", "Rngs", "Values", "counts", "draw", "most", "named"]

Values = dict[tuple[str, tuple[int, ...]], Tensor]
"""(model field, ids) -> (n, ids, ...)."""


class Rngs:
    """Streams of the rows at hand: of their episodes, and of the steps they are at.

    ``within`` an episode only what changes per step need be drawn.
    """

    def __init__(self, episode: EpisodeRng, elapsed: Tensor, *, within: bool) -> None:
        self.n, self.within, self._episode, self._elapsed = episode.n, within, episode, elapsed
        self._step: EpisodeRng | None = None

    def of(self, every: str) -> EpisodeRng:
        """Streams for what changes every ``episode`` or every ``step``."""
        if every == "episode":
            return self._episode
        if self._step is None:
            self._step = self._episode.derive(self._elapsed)
        return self._step


class Item(Protocol):
    """One thing that varies. Making it adds to the scene what it needs."""

    per_step: bool

    def bind(self, world: World) -> None:
        """Look up ids in the compiled model."""

    def draw(self, rngs: Rngs, rows: np.ndarray | None) -> Values:
        """Model fields of the rows, ``rngs.n`` of them."""


def named(elements: Iterable[Any], prefix: str) -> list[str]:
    """Names by which elements of a spec are found in the compiled model; those without one get one. Their own numbers
    do not serve: they are not there when the model was kept on disk."""
    names = []
    for i, element in enumerate(elements):
        element.name = element.name or f"looks/{prefix}/{i}"
        names.append(element.name)
    return names


def draw(rng: EpisodeRng, name: str, how: Vary, width: int, *shape: int) -> Tensor:
    """(n, *shape, width) float32 from the stream ``looks/name``; one range counts for each of ``width`` numbers."""
    name, whole = f"looks/{name}", (*shape, width)
    if isinstance(how, Uniform):
        if isinstance(how.low, int | float) and isinstance(how.high, int | float):
            return rng.uniform(name, how.low, how.high, whole)
        return rng.uniform(name, torch.tensor(how.low), torch.tensor(how.high), whole)
    if isinstance(how, Normal):
        mean, std, low, high = (torch.tensor(v, dtype=torch.float32) for v in (how.mean, how.std, how.low, how.high))
        return torch.minimum(torch.maximum(rng.normal(name, mean, std, whole), low), high)
    options = torch.stack([torch.tensor(v, dtype=torch.float32).expand(width) for v in how.options])
    return options[rng.integers(name, 0, len(options), tuple(shape))]


def counts(rng: EpisodeRng, name: str, count: int | Choice) -> Tensor:
    """(n, 1) how many there are."""
    return draw(rng, name, Choice((float(count),)) if isinstance(count, int) else count, 1)


def most(count: int | Choice) -> int:
    """The largest count that can be drawn."""
    return count if isinstance(count, int) else max(int(k) for k in count.options)  # type: ignore[arg-type]
