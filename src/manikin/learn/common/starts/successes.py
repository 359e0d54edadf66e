"""Starts where earlier episodes of the same run succeeded.

A policy that comes to success by chance leaves it in the next step, since it has not learned what to do there, and so
success is worth little to it. Episodes that begin there show it how to stay. Then it pays to come there. Demonstrations
are not needed; see :mod:`~manikin.learn.common.starts.reverse` for starts along them, and Ecoffet et al., 2021,
arXiv:2004.12919, on returns to states that were seldom seen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from manikin.env.interface import BatchEnv
from manikin.errors import ConfigError
from manikin.learn.common.starts.base import SavedStarts, saved
from manikin.sim.snapshot import Snapshot

__all__ = ["SuccessStarts"]


class SuccessStarts(SavedStarts):
    """Remembers the states in which episodes first succeeded, and puts rows that begin an episode into them.

    An episode from there has as many steps left as the one that succeeded, and at least half of the horizon.

    Args:
        env: where the policy learns; its episodes go on after success, and all rows are in one scene.
        share: of the episodes that begin so, above 0 and below 1, as soon as any has succeeded.
        most: so many states are remembered; the oldest is forgotten first.
        seed: of the choices.

    Raises:
        ConfigError: ``share`` is out of range, or success ends an episode.
    """

    def __init__(self, env: BatchEnv, *, share: float, most: int = 1024, seed: int = 0) -> None:
        if not 0 < share < 1:
            raise ConfigError(f"success_starts must be 0 or more and below 1, got {share}")
        if env.terminates:
            raise ConfigError("success_starts needs episodes that go on after success: env.terminate=false")
        super().__init__(env, seed)
        self.share, self.most = share, most
        self._states: list[Snapshot] = []
        self._next = 0  # where the next state goes
        self._placed = np.zeros(env.num_envs, bool)  # rows whose episode began in such a state

    @property
    def summary(self) -> dict[str, float]:
        return {"success_starts": float(len(self._states))}

    def visit(self, first: Tensor) -> None:
        """Remember where these rows are."""
        index = np.flatnonzero(first.cpu().numpy() & ~self._placed)
        if not len(index):
            return
        states = saved(self.env, index, "success_starts")
        for place in range(len(index)):
            self._states[self._next : self._next + 1] = [states.rows(np.array([place]))]
            self._next = (self._next + 1) % self.most

    def begin(self, rows: Tensor, success: Tensor) -> Any:
        ended = np.flatnonzero(rows.cpu().numpy())
        self._placed[ended] = False
        if not len(ended) or not self._states:
            return None
        draw = self._streams["starts"]
        index = ended[(torch.rand(len(ended), generator=draw) < self.share).numpy()]
        if not len(index):
            return None
        chosen = torch.randint(len(self._states), (len(index),), generator=draw).tolist()
        states = Snapshot.joined([self._states[one] for one in chosen])
        self._placed[index] = True
        return self._put(index, states, np.minimum(states.extra["elapsed"], self.env.horizon // 2))

    def state_dict(self) -> dict[str, Any]:
        states = Snapshot.joined(self._states) if self._states else None
        return {"states": states, "next": self._next, "placed": self._placed, "streams": self._streams.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        states, self._next = state["states"], int(state["next"])
        self._states = [] if states is None else [states.rows(np.array([one])) for one in range(len(states))]
        self._placed = np.array(state["placed"])
        self._streams.load_state_dict(state["streams"])
