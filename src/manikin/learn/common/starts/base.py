"""What starts in place of the task's own have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from torch import Tensor

from manikin.env.interface import BatchEnv
from manikin.errors import ConfigError
from manikin.learn.common.random import Streams
from manikin.sim.snapshot import Snapshot

__all__ = ["SavedStarts", "saved"]


class SavedStarts(ABC):
    """Puts rows that begin an episode into states that were saved before.

    Args:
        env: where the policy learns; all rows in one scene.
        seed: of the choices.

    Attributes:
        own_at_first: the first episodes of a run begin as the task says.
    """

    own_at_first = True

    def __init__(self, env: BatchEnv, seed: int) -> None:
        self.env, self._streams = env, Streams(seed, "cpu")

    @property
    @abstractmethod
    def summary(self) -> dict[str, float]:
        """What an iteration reports of them, by name."""

    @abstractmethod
    def begin(self, rows: Tensor, success: Tensor) -> Any:
        """Take note of how the episodes of these rows ended, and put the rows where they begin.

        Args:
            rows: (N,) bool, whose episodes ended; the environment has restarted them.
            success: (N,) bool, those that ever succeeded.

        Returns:
            The observation of all rows, or None where nothing was moved.
        """

    @abstractmethod
    def visit(self, first: Tensor) -> None:
        """Rows (N,) bool succeeded in this step for the first time in their episode."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]: ...

    @abstractmethod
    def load_state_dict(self, state: dict[str, Any]) -> None: ...

    def _put(self, index: np.ndarray, states: Snapshot, elapsed: np.ndarray) -> Any:
        """Put the rows of ``index`` into these states, as if so many control steps had gone by in their own episodes.
        Returns the observation of all rows."""
        own = self.env.save(index).extra
        states.extra = {
            **states.extra,
            **{name: own[name] for name in ("seed", "index")},
            "elapsed": elapsed.astype(own["elapsed"].dtype),
        }
        return self.env.load(states, index)[0]


def saved(env: BatchEnv, index: np.ndarray, what: str) -> Snapshot:
    """The states of some rows.

    Raises:
        ConfigError: rows have several scenes; says that ``what`` needs one.
    """
    states = env.save(index)
    if not isinstance(states, Snapshot):
        raise ConfigError(f"{env.task.id} has layouts: {what} needs rows that share one scene")
    return states
