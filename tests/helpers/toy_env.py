"""A tiny environment with the interface of manikin's Env: a point that is pushed to a goal. No physics engine."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import torch

from manikin.sim.snapshot import Snapshot


class ToyEnv:
    """Rows follow x' = x + 0.1 a from a start that depends on (seed, index) only. Success within 0.15 of the goal."""

    metadata = {"autoreset_mode": gymnasium.vector.AutoresetMode.DISABLED}

    def __init__(
        self,
        num_envs: int,
        *,
        horizon: int = 20,
        stop_at_success: bool = True,
        unhealthy: Sequence[int] = (),
        processor: str = "toy",
    ) -> None:
        self.num_envs, self.horizon = num_envs, horizon
        self.stop_at_success, self.unhealthy, self.processor = stop_at_success, set(unhealthy), processor
        self.control_hz = 20.0
        self.single_action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
        self.state = np.zeros((num_envs, 4))
        self.seed = np.zeros(num_envs, np.int64)
        self.index = np.zeros(num_envs, np.int64)
        self.elapsed = np.zeros(num_envs, np.int64)
        self.done = np.ones(num_envs, bool)
        self.started: list[tuple[int, int]] = []
        self.instruction = ["push the point to the goal"] * num_envs
        self.force_names, self.joint_names = ("total", "arm", "fingers/tip"), ("x", "y")

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[torch.Tensor, dict[str, Any]]:
        options = options or {}
        mask = np.asarray(options.get("reset_mask", np.ones(self.num_envs, bool)))
        for row in np.flatnonzero(mask).tolist():
            self.seed[row], self.index[row] = seed[row], options["episode_index"][row]
            key = (int(self.seed[row]), int(self.index[row]))
            self.state[row] = np.random.Generator(np.random.Philox(key[0] * 1000 + key[1])).uniform(-0.6, 0.6, 4)
            self.elapsed[row], self.done[row] = 0, False
            self.started.append(key)
        return self._observe(), {}

    def step(self, action: torch.Tensor, active: torch.Tensor | None = None) -> tuple[Any, ...]:
        rows = np.arange(self.num_envs) if active is None else np.flatnonzero(np.asarray(active))
        assert not self.done[rows].any(), "stepped a finished row"
        self.state[rows, :2] += 0.1 * action.numpy()[rows].astype(np.float64)
        self.elapsed[rows] += 1
        distance = np.abs(self.state[:, :2] - self.state[:, 2:]).max(1)
        success = distance < 0.15
        health = np.array([1 if int(s) in self.unhealthy else 0 for s in self.seed], np.int32)
        terminated = success & self.stop_at_success
        truncated = self.elapsed >= self.horizon
        self.done[rows] = (terminated | truncated)[rows]
        info = {
            "success": torch.from_numpy(success),
            "health": torch.from_numpy(health),
        }
        reward = torch.from_numpy((1 - distance).astype(np.float32))
        return self._observe(), reward, torch.from_numpy(terminated), torch.from_numpy(truncated), info

    def _observe(self) -> torch.Tensor:
        return torch.from_numpy(self.state.astype(np.float32))

    def save(self, rows: np.ndarray | None = None) -> Snapshot:
        index = np.arange(self.num_envs) if rows is None else np.asarray(rows)
        return Snapshot(
            scene_hash="toy",
            kind="toy",
            state=self.state[index].copy(),
            health=np.zeros(len(index), np.int32),
            extra={
                "elapsed": self.elapsed[index].copy(),
                "seed": self.seed[index].copy(),
                "index": self.index[index].copy(),
            },
        )

    def state_hash(self, rows: np.ndarray | None = None) -> torch.Tensor:
        index = np.arange(self.num_envs) if rows is None else np.asarray(rows)
        words = [hashlib.blake2b(self.state[i].tobytes(), digest_size=8).digest() for i in index]
        return torch.from_numpy(np.frombuffer(b"".join(words), np.int64).copy())

    def physics_states(self, rows: np.ndarray) -> list[np.ndarray]:
        return list(self.state[rows])

    @property
    def joints(self) -> torch.Tensor:
        return torch.from_numpy(self.state[:, :2].astype(np.float32))

    def watch(self, rows: torch.Tensor | None) -> None:
        """It has no pictures that could be left out."""

    @property
    def forces(self) -> torch.Tensor:
        """As if the point pressed the harder the nearer it is to x = 1."""
        arm = np.abs(self.state[:, 0]) * 10
        return torch.from_numpy(np.stack([arm, arm, np.abs(self.state[:, 1])], 1).astype(np.float32))

    def fingerprint(self) -> dict[str, Any]:
        return {
            "task": "Toy-v1",
            "config": {"horizon": self.horizon},
            "versions": {"toy": "1.0"},
            "machine": {"processor": self.processor},
        }

    def budget_advice(self) -> str:
        return ""

    def close(self) -> None:
        pass


class Chase:
    """Moves towards the goal; answers chunks of ``horizon`` equal actions."""

    name = "chase"

    def __init__(self, horizon: int = 1, *, stateless: bool = False) -> None:
        self.horizon, self.stateless, self.asked = horizon, stateless, 0

    def reset(self, rows: torch.Tensor) -> None:
        pass

    def act(self, observation: torch.Tensor, instruction: Sequence[str]) -> torch.Tensor:
        assert len(observation) == len(instruction)
        self.asked += len(observation)
        direction = (observation[:, 2:] - observation[:, :2]).clamp(-1, 1)
        return direction[:, None].expand(-1, self.horizon, -1).clone()
