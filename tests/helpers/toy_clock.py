"""A tiny batched environment that restarts by itself, whose returns can be written down. And training libraries' base
classes, for where these are not installed."""

from __future__ import annotations

import types
from typing import Any

import gymnasium
import numpy as np
import torch


class ToyClock:
    """Rows that count. Odd seeds end by the task after 3 steps, even ones by the time limit after ``horizon``.

    The observation is (steps since the start, 100 seed + episode index). The reward of step t, counted from 0, is
    1 + t. Both ends at once are a termination and a time-out, as in manikin.
    """

    autoreset, horizon, control_hz, render_mode = "same_step", 5, 20.0, None
    device = torch.device("cpu")
    observe = "state"

    def __init__(self, num_envs: int = 4, *, horizon: int = 5, named: bool = False) -> None:
        self.num_envs, self.horizon, self.named = num_envs, horizon, named
        box = gymnasium.spaces.Box
        self.single_action_space = box(-1.0, 1.0, (2,), np.float32)
        flat = box(-np.inf, np.inf, (2,), np.float32)
        parts = {"policy": gymnasium.spaces.Dict({"clock": flat}), "privileged": gymnasium.spaces.Dict({"key": flat})}
        self.single_observation_space = gymnasium.spaces.Dict(parts) if named else flat
        self.seed, self.index = torch.zeros(num_envs, dtype=torch.int64), torch.full((num_envs,), -1)
        self.elapsed = torch.zeros(num_envs, dtype=torch.int64)
        self.actions: list[torch.Tensor] = []
        self.closed = False

    @property
    def unwrapped(self) -> ToyClock:
        return self

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        rows = torch.as_tensor((options or {}).get("reset_mask", torch.ones(self.num_envs, dtype=torch.bool)))
        if seed is not None:
            self.seed = torch.arange(self.num_envs) + seed if isinstance(seed, int) else torch.tensor(seed)
            self.index[:] = -1
        self._start(rows)
        return self._observe(), {}

    def step(self, actions: Any) -> tuple[Any, ...]:
        self.actions.append(torch.as_tensor(actions).clone())
        reward = 1.0 + self.elapsed.float()
        self.elapsed = self.elapsed + 1
        terminated = (self.elapsed >= 3) & (self.seed % 2 == 1)
        truncated = self.elapsed >= self.horizon
        ended, info = terminated | truncated, {"success": terminated.clone()}
        if bool(ended.any()):
            info = {"final_obs": self._observe(), "final_info": info, "success": torch.zeros_like(ended)}
            self._start(ended)
        return self._observe(), reward, terminated, truncated, info

    def _start(self, rows: torch.Tensor) -> None:
        self.index, self.elapsed = self.index + rows.long(), self.elapsed.masked_fill(rows, 0)

    def _observe(self) -> Any:
        flat = torch.stack([self.elapsed.float(), (100 * self.seed + self.index).float()], 1)
        return {"policy": {"clock": flat}, "privileged": {"key": flat + 0.5}} if self.named else flat

    def fingerprint(self) -> dict[str, Any]:
        return {"task": "Clock-v1"}

    def render(self) -> None:
        return None

    def close(self) -> None:
        self.closed = True


def episodes_of(seed: int, steps: int, *, horizon: int = 5) -> list[tuple[int, bool, bool]]:
    """Of the first ``steps`` steps of a row: which step of its episode, whether the task ends it, whether time does."""
    length = 3 if seed % 2 and horizon >= 3 else horizon
    return [
        (k % length, k % length == length - 1 and seed % 2 == 1, k % length == length - 1 and length == horizon)
        for k in range(steps)
    ]


def written_returns(seed: int, steps: int, gamma: float, *, before: bool = False, horizon: int = 5) -> list[float]:
    """Discounted returns of each step where an observation is worth its first number, the steps since the start.

    After a time-out follows the worth of the last observation, or by ``before`` that of the one before it, as rsl_rl
    has it. After a termination follows nothing. The steps break off with the worth of where the row is then.
    """
    row = episodes_of(seed, steps, horizon=horizon)
    clock, ended, out = row[-1]
    following = 0.0 if ended or out else clock + 1.0
    found = []
    for clock, ended, out in reversed(row):
        if ended:
            following = 0.0
        elif out:
            following = float(clock if before else clock + 1)
        following = 1.0 + clock + gamma * following
        found.append(following)
    return found[::-1]


class _VecEnv:
    """As much of Stable-Baselines3's class as an adapter inherits."""

    def __init__(self, num_envs: int, observation_space: Any, action_space: Any) -> None:
        self.num_envs, self.observation_space, self.action_space = num_envs, observation_space, action_space
        self._reset_seeds()
        self._reset_options()
        self.render_mode = self.get_attr("render_mode")[0]  # type: ignore[attr-defined]

    def _reset_seeds(self) -> None:
        self._seeds: list[int | None] = [None] * self.num_envs

    def _reset_options(self) -> None:
        self._options: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]

    def seed(self, seed: int) -> None:
        self._seeds = [seed + row for row in range(self.num_envs)]

    def set_options(self, options: Any) -> None:
        self._options = [options] * self.num_envs if isinstance(options, dict) else options

    def _get_indices(self, indices: Any) -> Any:
        return range(self.num_envs) if indices is None else [indices] if isinstance(indices, int) else indices

    def step(self, actions: Any) -> Any:
        self.step_async(actions)  # type: ignore[attr-defined]
        return self.step_wait()  # type: ignore[attr-defined]


class _Wrapper:
    """As much of skrl's class as an adapter inherits."""

    def __init__(self, env: Any) -> None:
        self._env = env

    @property
    def num_envs(self) -> int:
        return int(self._env.num_envs)


def _flattened(tree: Any) -> torch.Tensor:
    if isinstance(tree, torch.Tensor):
        return tree.reshape(len(tree), -1)
    return torch.cat([_flattened(tree[name]) for name in sorted(tree)], -1)


class _TensorDict(dict):  # type: ignore[type-arg]
    def __init__(self, groups: Any, batch_size: Any) -> None:
        super().__init__(groups)
        self.batch_size = torch.Size(batch_size)


def _module(name: str, **contents: Any) -> types.ModuleType:
    made = types.ModuleType(name)
    vars(made).update(contents)
    return made


STAND_INS = {
    "sb3_env": {"stable_baselines3.common.vec_env": {"VecEnv": _VecEnv}},
    "skrl_env": {
        "skrl.envs.wrappers.torch": {"Wrapper": _Wrapper},
        "skrl.utils.spaces.torch": {"flatten_tensorized_space": _flattened},
    },
    "rsl_rl_env": {"rsl_rl.env": {"VecEnv": object}, "tensordict": {"TensorDict": _TensorDict}},
}


def stand_ins(adapter: str) -> dict[str, types.ModuleType]:
    """Modules by name, with the packages above them, that take the place of the adapter's library."""
    found: dict[str, types.ModuleType] = {}
    for name, contents in STAND_INS[adapter].items():
        words = name.split(".")
        for k in range(1, len(words)):
            found.setdefault(".".join(words[:k]), _module(".".join(words[:k])))
        found[name] = _module(name, **contents)
    return found
