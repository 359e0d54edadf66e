"""The task's scripted expert as a policy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from manikin.env.interface import BatchEnv
from manikin.env.task import Task
from manikin.errors import ConfigError
from manikin.plan.executor import WaypointExecutor
from manikin.policy.api import Observation

__all__ = ["ExpertPolicy", "PlannerPolicy"]


class ExpertPolicy:
    """Executes the waypoints of ``env.task.expert``. It reads the simulation's state and not the observation.

    Args:
        env: whose episodes are played.

    Raises:
        ConfigError: the task has no scripted expert.
    """

    name = "expert"
    avoid = False

    def __init__(self, env: BatchEnv) -> None:
        if type(env.task).expert is Task.expert:
            raise ConfigError(f"{env.task.id} has no scripted expert; write its expert() or choose another policy")
        self._executor = WaypointExecutor(env, avoid=self.avoid)

    def reset(self, rows: torch.Tensor) -> None:
        """Begin with the first waypoint in these rows."""
        self._executor.reset(rows.cpu().numpy())

    def act(self, observation: Observation, instruction: Sequence[str]) -> torch.Tensor:
        """(N, 1, A)."""
        return self._executor.act()[:, None]

    def way(self, row: int) -> np.ndarray:
        """(k, 3) x, y [m] and turn [rad] of where a row's base still drives; see :meth:`WaypointExecutor.way`."""
        return self._executor.way(row)


class PlannerPolicy(ExpertPolicy):
    """The expert's waypoints but the last, on planned ways around everything where there is room, at the arm's own
    pace. Where a waypoint touches something, and to the last one, it goes straight.

    Args:
        env: whose episodes are played.

    Raises:
        ConfigError: the task has no scripted expert. :meth:`act` raises it where the expert gives no waypoints.
    """

    name = "planner"
    avoid = True
