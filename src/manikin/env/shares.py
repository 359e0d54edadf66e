"""Which numbers of actions and observations belong to which robot of an environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor

from manikin.env import arguments
from manikin.errors import ActionError
from manikin.scene.handles import Robot
from manikin.spec.action import ActionDim

__all__ = ["Shares"]


class Shares:
    """Which numbers of observations and actions belong to which robot.

    A robot's own are those whose names begin with its name, such as ``robot0_qpos`` or ``robot0/joint1``. What begins
    with no robot's name belongs to all of them: objects, goals, cameras of the scene.

    Attributes:
        agents: names of the robots.
        observation_names, action_names: agent -> the name of every number; of observations only where they are flat.
        columns, dims: agent -> where these are in the flat observation and in the action.
    """

    def __init__(
        self, robots: Sequence[Robot], names: Sequence[str], actions: Sequence[ActionDim], device: torch.device
    ) -> None:
        self.agents = tuple(robot.name for robot in robots)
        dims = [dim.name for dim in actions]
        owners = [self.owner(name.partition("/")[2]) for name in names]
        movers = [self.owner(name) for name in dims]
        self.columns = {a: [i for i, owner in enumerate(owners) if owner in (a, None)] for a in self.agents}
        self.dims = {a: [i for i, owner in enumerate(movers) if owner in (a, None)] for a in self.agents}
        self.observation_names = {a: [names[i] for i in at] for a, at in self.columns.items()}
        self.action_names = {a: [dims[i] for i in at] for a, at in self.dims.items()}
        self.size = len(dims)
        self._at = {a: torch.tensor(at, device=device) for a, at in self.columns.items()}
        self._into = {a: torch.tensor(at, device=device) for a, at in self.dims.items()}

    def owner(self, name: str) -> str | None:
        """The robot that a name begins with, None for what belongs to all."""
        return next((a for a in self.agents if name.startswith((f"{a}_", f"{a}/"))), None)

    def whole(self, actions: Any, rows: int, device: torch.device) -> Tensor:
        """(rows, A) float32 from each agent's actions (rows, its own).

        Raises:
            ActionError: an agent has none, or of the wrong shape, or there is no such agent.
        """
        if not isinstance(actions, Mapping) or {*actions} != {*self.agents}:
            got = f"{sorted(map(str, actions))}" if isinstance(actions, Mapping) else f"{type(actions).__name__}"
            raise ActionError(f"step needs the actions of each of {list(self.agents)}, got {got}")
        out = torch.zeros(rows, self.size, device=device)
        for agent, dims in self.dims.items():
            name = f"actions of {agent} ({', '.join(self.action_names[agent])})"
            out[:, self._into[agent]] = arguments.numbers(name, actions[agent], (rows, len(dims)), device)
        return out

    def parted(self, observation: Any) -> dict[str, Any]:
        """What each agent observes, new tensors: of a flat observation its columns, of a named one its entries."""
        if not isinstance(observation, Mapping):
            return {agent: observation.index_select(-1, at) for agent, at in self._at.items()}
        return {agent: self._own(observation, agent) for agent in self.agents}

    def _own(self, tree: Mapping[str, Any], agent: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in tree.items():
            if self.owner(name) in (agent, None):
                found[name] = self._own(value, agent) if isinstance(value, Mapping) else value
        return found

    def spaces(self, space: gymnasium.Space) -> dict[str, gymnasium.Space]:
        """Of what each agent observes, from the space of one row."""
        if isinstance(space, gymnasium.spaces.Dict):
            return {agent: self._own_space(space, agent) for agent in self.agents}
        shape = space.shape
        assert shape is not None
        box = gymnasium.spaces.Box
        return {a: box(-np.inf, np.inf, (*shape[:-1], len(at)), np.float32) for a, at in self.columns.items()}

    def _own_space(self, space: gymnasium.spaces.Dict, agent: str) -> gymnasium.Space:
        kept = [(name, one) for name, one in space.items() if self.owner(name) in (agent, None)]
        return gymnasium.spaces.Dict(
            {n: self._own_space(s, agent) if isinstance(s, gymnasium.spaces.Dict) else s for n, s in kept}
        )
