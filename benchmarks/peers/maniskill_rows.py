"""Rows of ManiSkill3's PickCube-v1 on the CPU for a trainer in another Python.

maniskill_rows.py SECONDS      # control steps per second of two rows
maniskill_rows.py serve ROWS   # rows behind standard input and output, see serve()
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

SIZES = {"terminated": np.uint8, "truncated": np.uint8, "success": np.uint8, "elapsed": np.int64}


def make_env() -> Any:
    """One environment with ManiSkill3's defaults: joint delta positions, normalized dense reward, 50 steps."""
    warnings.filterwarnings("ignore")
    import gymnasium
    import mani_skill.envs  # noqa: F401
    import torch

    torch.set_num_threads(1)
    return gymnasium.make("PickCube-v1", obs_mode="state", sim_backend="physx_cpu", render_backend="none")


def serve(make: Callable[[], Any], rows: int, source: BinaryIO, target: BinaryIO) -> None:
    """First a line of JSON with the sizes. Then ``r`` and a seed (int64) per row answers with observations, and ``s``
    and actions (rows, A) float32 with a step: observations, those before rows restarted, rewards, and ``SIZES``. A row
    that ends restarts in the same step."""
    envs = [make() for _ in range(rows)]
    columns = int(np.prod(envs[0].observation_space.shape))
    actions = int(envs[0].action_space.shape[-1])
    target.write(json.dumps({"observations": columns, "actions": actions}).encode() + b"\n")
    target.flush()
    seen = np.zeros((rows, columns), np.float32)
    while word := source.read(1):
        if word == b"r":
            for row, seed in enumerate(np.frombuffer(source.read(8 * rows), np.int64)):
                seen[row] = np.asarray(envs[row].reset(seed=int(seed) % 2**32)[0]).reshape(-1)
            target.write(seen.tobytes())
        else:
            given = np.frombuffer(source.read(4 * rows * actions), np.float32).reshape(rows, actions)
            final, rewards = np.zeros_like(seen), np.zeros(rows, np.float32)
            flags = {name: np.zeros(rows, kind) for name, kind in SIZES.items()}
            for row, env in enumerate(envs):
                observation, reward, terminated, truncated, info = env.step(given[row])
                final[row] = seen[row] = np.asarray(observation).reshape(-1)
                rewards[row] = float(reward)
                found = {"terminated": terminated, "truncated": truncated, "success": info["success"]}
                for name, value in {**found, "elapsed": info["elapsed_steps"]}.items():
                    flags[name][row] = int(value)
                if terminated or truncated:
                    seen[row] = np.asarray(env.reset()[0]).reshape(-1)
            for part in (seen, final, rewards, *flags.values()):
                target.write(part.tobytes())
        target.flush()


def main() -> None:
    if sys.argv[1] == "serve":
        target = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)  # what libraries print does not come between
        serve(make_env, int(sys.argv[2]), sys.stdin.buffer, target)
        return
    envs = [make_env() for _ in range(2)]
    for env in envs:
        env.reset(seed=0)
    steps, began = 0, time.perf_counter()
    while time.perf_counter() - began < float(sys.argv[1]):
        for env in envs:
            env.step(env.action_space.sample())
            steps += 1
    print(steps / (time.perf_counter() - began))


if __name__ == "__main__":
    main()
