"""Networks as policies, with the same bits whatever the number of environments."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from manikin.errors import ConfigError
from manikin.policy.api import Observation
from manikin.policy.chunk import Execution

__all__ = ["WIDTH", "NetworkPolicy"]

WIDTH = 64
"""Rows per micro-batch where nobody says."""

log = logging.getLogger("manikin.policy")


class NetworkPolicy:
    """A torch module as a policy, always run on batches of exactly ``width`` rows.

    Matrix products choose other kernels at other batch sizes and give other last bits; after some contacts that is
    another episode. So rows are fed in padded micro-batches of one fixed width. That a row's bits do not depend on its
    *place* in the micro-batch either is tried once, on the first observation; where it does not hold, rows are fed one
    by one and the log says so. Results then are equal at any number of environments, on one kind of machine.

    Args:
        module: maps an observation of B rows to actions (B, A) or (B, horizon, A). It is put into evaluation mode.
        width: rows per micro-batch.
        prepare: applied to each micro-batch first (normalizing, choosing entries); must treat rows independently.
        device: where the module runs; None leaves it where it is.
        fixed: the module takes batches of ``width`` rows only; one row then is fed as a batch of copies.
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
        width: int = WIDTH,
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
        self._rows, self._fixed = width, fixed  # fed at a time
        self._checked = width == 1
        first = next(module.parameters(), None)
        self._device = torch.device(device) if device is not None else (first.device if first is not None else None)

    def reset(self, rows: torch.Tensor) -> None:
        """Nothing: a plain module has no memory of the episode."""

    @torch.no_grad()
    def act(self, observation: Observation, instruction: Sequence[str]) -> torch.Tensor:
        """Actions (N, horizon, A) for any number of rows."""
        if not self._checked:
            self._check_places(observation)
        rows = len(instruction)
        starts = range(0, rows, self._rows)
        actions = torch.cat([self._micro(observation, a, min(a + self._rows, rows)) for a in starts])
        return actions[:, None] if actions.ndim == 2 else actions

    def _micro(self, observation: Observation, start: int, stop: int) -> torch.Tensor:
        batch = _map(lambda t: _pad(t[start:stop], self.width), observation)
        return self._forward(batch)[: stop - start]

    def _forward(self, batch: Observation) -> torch.Tensor:
        if self._device is not None:
            batch = _map(lambda t: t.to(self._device), batch)
        actions: torch.Tensor = self.module(batch if self.prepare is None else self.prepare(batch))
        return actions.float()

    def _check_places(self, observation: Observation) -> None:
        """One row repeated in every place must give one answer."""
        self._checked = True
        same = _map(lambda t: t[:1].expand(self.width, *t.shape[1:]).contiguous(), observation)
        # the others differ from it, so that a mistake like normalizing over the batch shows as well
        mixed = _map(lambda t: _pad(t, self.width)[: self.width].contiguous(), observation)
        answer, other = self._forward(same), self._forward(mixed)
        if not (torch.equal(answer, answer[:1].expand_as(answer)) and torch.equal(other[0], answer[0])):
            log.warning(
                "%s gives a row other last bits in another place of the batch; it is run one row at a time, "
                "which is slower but makes results independent of the number of environments",
                self.name,
            )
            self._rows = 1
            self.width = self.width if self._fixed else 1


def _map(function: Callable[[torch.Tensor], torch.Tensor], tree: Any) -> Any:
    if isinstance(tree, Mapping):
        return {key: _map(function, value) for key, value in tree.items()}
    return function(tree)


def _pad(rows: torch.Tensor, width: int) -> torch.Tensor:
    missing = width - len(rows)
    return torch.cat([rows, rows[:1].expand(missing, *rows.shape[1:])]) if missing > 0 else rows
