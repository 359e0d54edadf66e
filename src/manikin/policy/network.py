"""Networks as policies, with the same bits whatever the number of environments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from manikin.errors import ConfigError
from manikin.policy.api import Observation
from manikin.policy.chunk import Execution

__all__ = ["WIDTH", "NetworkPolicy"]

WIDTH = 64
"""Rows that are asked together where nobody says: on a GPU, and in the validation of a run."""


class NetworkPolicy:
    """A torch module as a policy. Each row is asked alone, so that its action has the same bits in any company.

    Matrix products give other last bits at other batch sizes, and in other places of one batch: which kernel runs, and
    where its vectors begin, depends on both. After some contacts that is another episode. So a row is copied to memory
    of its own and is a batch of one. Results then are equal at any number of environments, on one kind of machine.

    Args:
        module: maps an observation of B rows to actions (B, A) or (B, horizon, A). It is put into evaluation mode.
        width: rows that are asked together; missing ones are padded. With more than 1 many rows take less time, but
            their last bits depend on how many there are and on their order: for a GPU, which promises no bits, and
            where number and order never change.
        prepare: applied to each batch first (normalizing, choosing entries).
        device: where the module runs; None leaves it where it is.
        fixed: the module takes batches of ``width`` rows only. A row is fed as a batch of its copies.
        name: for reports.
        execution: how its chunks are executed; None for the whole chunk.

    Raises:
        ConfigError: ``width`` below 1.
    """

    stateless = True

    def __init__(
        self,
        module: torch.nn.Module,
        *,
        width: int = 1,
        prepare: Callable[[Any], Any] | None = None,
        device: str | torch.device | None = None,
        fixed: bool = False,
        name: str = "",
        execution: Execution | None = None,
    ) -> None:
        if width < 1:
            raise ConfigError(f"width must be at least 1 row, got {width}")
        self.module = module.eval() if device is None else module.eval().to(device)
        self.width, self.prepare, self.name = width, prepare, name or type(module).__name__
        self.execution = execution or Execution()
        self._rows = 1 if fixed else width  # asked together
        first = next(module.parameters(), None)
        self._device = torch.device(device) if device is not None else (first.device if first is not None else None)

    def reset(self, rows: torch.Tensor) -> None:
        """Nothing: a plain module has no memory of the episode."""

    @torch.no_grad()
    def act(self, observation: Observation, instruction: Sequence[str]) -> torch.Tensor:
        """Actions (N, horizon, A) for any number of rows."""
        rows = len(instruction)
        starts = range(0, rows, self._rows)
        actions = torch.cat([self._batch(observation, a, min(a + self._rows, rows)) for a in starts])
        return actions[:, None] if actions.ndim == 2 else actions

    def _batch(self, observation: Observation, start: int, stop: int) -> torch.Tensor:
        batch = _map(lambda t: _pad(t[start:stop], self.width), observation)
        if self._device is not None:
            batch = _map(lambda t: t.to(self._device), batch)
        actions: torch.Tensor = self.module(batch if self.prepare is None else self.prepare(batch))
        return actions[: stop - start].float()


def _map(function: Callable[[torch.Tensor], torch.Tensor], tree: Any) -> Any:
    if isinstance(tree, Mapping):
        return {key: _map(function, value) for key, value in tree.items()}
    return function(tree)


def _pad(rows: torch.Tensor, width: int) -> torch.Tensor:
    """``width`` rows in memory of their own: a view of a larger tensor may begin where vectors of numbers do not."""
    missing = width - len(rows)
    if missing:
        return torch.cat([rows, rows[:1].expand(missing, *rows.shape[1:])])
    return rows.clone(memory_format=torch.contiguous_format)
