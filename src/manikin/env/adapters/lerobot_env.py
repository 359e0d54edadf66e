"""For LeRobot's evaluation: rows of a task as the vector environment that ``lerobot-eval`` steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector.utils import batch_space

from manikin.env.adapters.trainers import leaves
from manikin.env.arrays import to_numpy
from manikin.env.interface import BatchEnv
from manikin.errors import ConfigError

__all__ = ["LeRobotEnv"]

STATES = {"agent_pos": "policy", "environment_state": "privileged"}
"""LeRobot's name of a flat state -> the group of manikin's observation that is in it."""


class LeRobotEnv(gymnasium.vector.VectorEnv):
    """N rows with LeRobot's names: what ``make_env`` of an EnvHub repository returns.

    - ``agent_pos`` (N, S) is what a policy may know, ``environment_state`` (N, P) what only a simulator knows, and
      ``pixels`` the cameras' pictures (N, H, W, 3) uint8. Their numbers are those of a converted dataset
      (``observation.state``, ``observation.environment_state``, ``observation.images.NAME``).
    - ``info["is_success"]`` (N,) bool says after each step whether the task is done.
    - ``call("task_description")`` gives the instructions, ``call("_max_episode_steps")`` the horizon.
    - The seeds of ``reset`` are episode seeds, as in an evaluation of manikin's.

    Args:
        env: from ``manikin.make(TASK, N, observe="state_dict", autoreset="next_step")``, or ``observe="rgb+state"``.

    Raises:
        ConfigError: the observation has no names, or rows do not restart in the next step.
    """

    def __init__(self, env: BatchEnv) -> None:
        space = env.single_observation_space
        if not isinstance(space, gymnasium.spaces.Dict) or not STATES.values() & space.keys():
            raise ConfigError(f"LeRobot needs observe='state_dict' or 'rgb+state', not {env.observe!r}")
        if env.autoreset != "next_step":
            raise ConfigError(f"LeRobot needs autoreset='next_step', not {env.autoreset!r}")
        self.batched, self.num_envs = env, env.num_envs
        self.metadata = {**env.metadata, "render_fps": round(env.control_hz)}
        self.render_mode = env.render_mode
        self.single_action_space, self.action_space = env.single_action_space, env.action_space
        sample = {name: value[None] for name, value in _zeros(space).items()}
        self.single_observation_space = _space(_named(sample))
        self.observation_space = batch_space(self.single_observation_space, env.num_envs)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start episodes of these seeds; of ``options`` those that are LeRobot's own are left out."""
        mine = {name: value for name, value in (options or {}).items() if not name.startswith("lerobot_")}
        observation, _ = self.batched.reset(seed=seed, options=mine or None)
        return _named(_leaves(observation)), {"is_success": np.zeros(self.num_envs, bool)}

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Advance by one control step with actions (N, A), of which the part in [-1, 1] is taken."""
        observation, reward, terminated, truncated, info = self.batched.step(np.clip(actions, -1.0, 1.0))
        ends = to_numpy(terminated), to_numpy(truncated)
        return _named(_leaves(observation)), to_numpy(reward), *ends, {"is_success": to_numpy(info["success"])}

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """For each row what an environment of one row would have or return by this name."""
        if name == "task_description":
            return tuple(self.batched.instruction)
        if name == "render":
            return tuple(self.batched.render() or ())
        own = {"task": self.batched.task.id, "_max_episode_steps": self.batched.horizon}
        value = own[name] if name in own else getattr(self.batched, name)
        return (value(*args, **kwargs) if callable(value) else value,) * self.num_envs

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """As :meth:`call`, of what is no method."""
        return self.call(name)

    def close(self, **kwargs: Any) -> None:
        """Free the simulation."""
        self.batched.close()


def _leaves(observation: Any) -> dict[str, np.ndarray]:
    return {name: to_numpy(value) for name, value in leaves(observation).items()}


def _zeros(space: gymnasium.Space) -> dict[str, np.ndarray]:
    if isinstance(space, gymnasium.spaces.Dict):
        return {
            "/".join(filter(None, (name, rest))): value
            for name, part in space.items()
            for rest, value in _zeros(part).items()
        }
    return {"": np.zeros(space.shape or (), space.dtype)}


def _named(seen: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Observations (N, ...) by path under LeRobot's names."""
    named: dict[str, Any] = {}
    for name, group in STATES.items():
        parts = [value.reshape(len(value), -1) for path, value in seen.items() if path.startswith(f"{group}/")]
        if parts:
            named[name] = np.concatenate(parts, 1, dtype=np.float32)
    pixels = {path.split("/")[1]: value for path, value in seen.items() if path.endswith("/rgb")}
    return {**named, "pixels": pixels} if pixels else named


def _space(sample: Mapping[str, Any]) -> gymnasium.spaces.Dict:
    """The space of one row of a batch of one row."""
    spaces: dict[str, gymnasium.Space] = {}
    for name, value in sample.items():
        if isinstance(value, Mapping):
            spaces[name] = _space(value)
        elif value.dtype == np.uint8:
            spaces[name] = gymnasium.spaces.Box(0, 255, value.shape[1:], np.uint8)
        else:
            spaces[name] = gymnasium.spaces.Box(-np.inf, np.inf, value.shape[1:], np.float32)
    return gymnasium.spaces.Dict(spaces)
