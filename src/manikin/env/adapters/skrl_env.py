"""For skrl: rows as its ``Wrapper``, and agents that record where an episode ended."""

from __future__ import annotations

from typing import Any

import gymnasium
import torch
from torch import Tensor

from manikin.env.adapters.trainers import missing_library, of_ended, restarting
from manikin.env.interface import BatchEnv

try:
    from skrl.envs.wrappers.torch import Wrapper
    from skrl.utils.spaces.torch import flatten_tensorized_space
except ImportError as error:
    raise missing_library("skrl", '"skrl[torch]"', error) from error

__all__ = ["SkrlEnv", "recording_ends"]

_FINAL = "final_observation"


class SkrlEnv(Wrapper):  # type: ignore[misc]
    """Rows of a task for skrl: ``SequentialTrainer(env=SkrlEnv(manikin.make("PushCube-v2", 64)), agents=...)``.

    A row that ended restarts in the same step, so the observation of a step is where the *next* episode begins. skrl
    takes it for the end of the last one, whose value it adds where time ran out. Make the agent's class with
    :func:`recording_ends`, which gives it the real end. ``time_limit_bootstrap=True`` in the agent's configuration lets
    PPO add that value.

    ``infos["episode"]`` has the share of success of the episodes that ended, which skrl logs. Observations with names
    are joined to one row each, as skrl's models take them apart.

    Args:
        env: from ``manikin.make(TASK, N)``, on any device.
        seed: of the first reset, row i with ``seed + i``; None draws one.

    Attributes:
        batched: the environment.

    Raises:
        ConfigError: rows do not restart in the same step.
    """

    def __init__(self, env: BatchEnv, *, seed: int | None = None) -> None:
        self.batched = restarting(env, "skrl")
        super().__init__(env)
        self._seed = seed
        self._now: tuple[Tensor, dict[str, Any]] | None = None

    @property
    def observation_space(self) -> gymnasium.Space:
        """Of one row."""
        return self.batched.single_observation_space

    @property
    def action_space(self) -> gymnasium.spaces.Box:
        """Of one row: (A,) in [-1, 1]."""
        return self.batched.single_action_space

    def reset(self) -> tuple[Tensor, dict[str, Any]]:
        """Start all rows the first time; later say where they are, since they restart by themselves."""
        if self._now is None:
            observation, info = self.batched.reset(seed=self._seed)
            self._now = flatten_tensorized_space(observation), info
        return self._now

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, dict[str, Any]]:
        """Advance by one control step with actions (N, A), cut to [-1, 1]. Rewards and ends are (N, 1)."""
        observation, reward, terminated, truncated, info = self.batched.step(actions)
        following = flatten_tensorized_space(observation)
        if "final_obs" in info:
            ended = terminated | truncated
            info[_FINAL] = of_ended(ended, flatten_tensorized_space(info["final_obs"]), following)
            info["episode"] = {"success": info["final_info"]["success"][ended].float().mean()}
        self._now = following, info
        return following, reward[:, None], terminated[:, None], truncated[:, None], info

    def state(self) -> Tensor | None:
        """None: there is no state besides the observation."""
        return None

    def render(self, *args: Any, **kwargs: Any) -> Any:
        """A picture (H, W, 3) uint8 of each row; None without ``render_mode``."""
        return self.batched.render()

    def close(self) -> None:
        """Free the simulation."""
        self.batched.close()


def recording_ends(agent: type[Any]) -> type[Any]:
    """A class of skrl's agents that records the last observation of an episode where it ended.

    ``recording_ends(PPO)(models=..., memory=..., cfg=...)`` is PPO in all else. Without it, skrl takes the first
    observation of the next episode instead, in targets of SAC and in the values of episodes that ran out of time.

    Args:
        agent: a class of :mod:`skrl.agents.torch`.
    """

    class _RecordingEnds(agent):  # type: ignore[misc]
        def record_transition(self, *, next_observations: Tensor, infos: Any, **others: Any) -> None:
            last = infos.get(_FINAL)
            seen = next_observations if last is None else torch.as_tensor(last)
            super().record_transition(next_observations=seen, infos=infos, **others)

    _RecordingEnds.__name__ = _RecordingEnds.__qualname__ = agent.__name__
    return _RecordingEnds
