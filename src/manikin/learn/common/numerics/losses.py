"""Losses of an iteration: their means, and an end of the run where one is not finite."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from manikin.errors import DivergedError
from manikin.learn.common.numerics.finite import check_finite

__all__ = ["Losses"]


class Losses:
    """Collects the losses of the batches of an iteration. They stay on their device until :meth:`means` reads them all
    at once, so that no batch waits for it."""

    def __init__(self) -> None:
        self.batches = 0
        self._found: dict[str, list[tuple[int, Tensor]]] = {}  # of each: the batch's number from 1, the loss

    def add(self, losses: Mapping[str, Tensor]) -> None:
        """Of the next batch. Not every batch needs to have all of them."""
        self.batches += 1
        for name, value in losses.items():
            self._found.setdefault(name, []).append((self.batches, value.detach()))

    def means(self, where: str, weights: Iterable[Tensor] = ()) -> dict[str, float]:
        """The mean of each loss over the batches that had it.

        Args:
            where: of the run, for the error.
            weights: that the batches changed.

        Raises:
            DivergedError: a loss or a weight is NaN or infinite; names the first such batch, and its losses.
        """
        means = [torch.stack([value for _, value in values]).mean() for values in self._found.values()]
        means += [torch.stack([one.detach().abs().max() for one in weights]).max()] if (weights := [*weights]) else []
        numbers = torch.stack(means).tolist() if means else []
        if not all(map(math.isfinite, numbers)):
            self._stop(where)
        return dict(zip(self._found, numbers, strict=False))

    def _stop(self, where: str) -> None:
        """Raise the error of the first batch with a loss that is not finite."""
        batches: list[dict[str, float]] = [{} for _ in range(self.batches)]
        for name, values in self._found.items():
            numbers = torch.stack([value for _, value in values]).tolist()
            for (batch, _), number in zip(values, numbers, strict=True):
                batches[batch - 1][name] = number
        for number, losses in enumerate(batches, 1):
            check_finite(f"{where}, batch {number} of {self.batches}", losses)
        raise DivergedError(
            f"{where}, after batch {self.batches} of {self.batches}: a weight is not finite. "
            "Try a smaller learning rate"
        )
