"""For Stable-Baselines3: rows as its ``VecEnv``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from manikin.env.adapters.trainers import leaves, missing_library, restarting
from manikin.env.arrays import to_numpy
from manikin.env.interface import BatchEnv
from manikin.errors import ConfigError

try:
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:
    raise missing_library("Stable-Baselines3", "stable-baselines3", error) from error

__all__ = ["Sb3Env"]


class Sb3Env(VecEnv):  # type: ignore[misc]
    """Rows of a task for Stable-Baselines3: ``PPO("MlpPolicy", Sb3Env(manikin.make("PushCube-v2", 64)))``.

    - A row that ended restarts in the same step. Its ``info`` has the last observation as ``terminal_observation``.
    - ``TimeLimit.truncated`` is True where only time ran out. Stable-Baselines3 then adds the value of that
      observation.
    - ``is_success`` of the last step is in ``info`` where an episode ended; Stable-Baselines3 logs its mean.
    - The seeds of :meth:`seed` are those of the next :meth:`reset`, row i with ``seed + i``.
    - A flat observation is an array (N, D). One with names is a flat dictionary, for ``MultiInputPolicy``, with
      ``cameras/base_camera/rgb`` and so on as names.

    Args:
        env: from ``manikin.make(TASK, N)``, on any device.

    Attributes:
        batched: the environment.

    Raises:
        ConfigError: rows do not restart in the same step.
    """

    def __init__(self, env: BatchEnv) -> None:
        self.batched = restarting(env, "Stable-Baselines3")
        self._actions: Any = None
        space = env.single_observation_space
        if isinstance(space, gymnasium.spaces.Dict):
            space = gymnasium.spaces.Dict(leaves(space))
        super().__init__(env.num_envs, space, env.single_action_space)

    def reset(self) -> Any:
        """Start episodes in all rows. Returns observations (N, ...) as arrays.

        Raises:
            ConfigError: :meth:`set_options` gave rows different options.
        """
        if any(one != self._options[0] for one in self._options):
            raise ConfigError("all rows start with the same options: give set_options one dictionary")
        seed = None if self._seeds[0] is None else self._seeds
        observation, _ = self.batched.reset(seed=seed, options=self._options[0])
        self._reset_seeds()
        self._reset_options()
        return _arrays(observation)

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions (N, A) in [-1, 1] for :meth:`step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Advance by one control step: observations, rewards (N,), dones (N,) bool and a dictionary for each row."""
        observation, reward, terminated, truncated, info = self.batched.step(self._actions)
        ended = to_numpy(terminated | truncated)
        infos: list[dict[str, Any]] = [
            {"TimeLimit.truncated": out} for out in to_numpy(truncated & ~terminated).tolist()
        ]
        if "final_obs" in info:
            final, success = _arrays(info["final_obs"]), to_numpy(info["final_info"]["success"])
            for row in np.flatnonzero(ended).tolist():
                infos[row]["terminal_observation"] = _row(final, row)
                infos[row]["is_success"] = bool(success[row])
        return _arrays(observation), to_numpy(reward), ended, infos

    def close(self) -> None:
        """Free the simulation."""
        self.batched.close()

    def get_images(self) -> list[np.ndarray | None]:
        """Of each row a picture (H, W, 3) uint8; None without ``render_mode``."""
        return list(self.batched.render() or [None] * self.num_envs)

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The environment's attribute, once for each of the rows ``indices``, by default all."""
        return [getattr(self.batched, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Not possible: rows share one environment. Raises :class:`ConfigError`."""
        raise ConfigError(f"rows cannot differ in {attr_name!r}: they share one environment, which is .batched")

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """Not possible: rows share one environment. Raises :class:`ConfigError`."""
        raise ConfigError(f"{method_name!r} cannot be called for single rows: they share one environment, .batched")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """False for each of the rows: there are no single environments to wrap."""
        return [False for _ in self._get_indices(indices)]


def _arrays(observation: Any) -> Any:
    if isinstance(observation, Mapping):
        return {name: to_numpy(value) for name, value in leaves(observation).items()}
    return to_numpy(observation)


def _row(arrays: Any, row: int) -> Any:
    return {name: value[row] for name, value in arrays.items()} if isinstance(arrays, dict) else arrays[row]
