"""How many expert episodes of PickCube are recorded in an hour, state only, everything on disk and merged.

    python benchmarks/collect.py
    python benchmarks/collect.py --out benchmarks/results/collect.json

Two runs: episodes that all last 50 control steps, and episodes that end with success as `manikin collect` runs them.
The clock runs from the first reset to the merged file. Beside the time that passed it tells the processors' time, of
all cores and of the main thread alone: on a busy machine the latter says about what a quiet one would take.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from common import arguments, command, write

import manikin
from manikin.data.recorder import Recorder
from manikin.eval.runner import run_episodes
from manikin.policy.expert import ExpertPolicy


def collect(episodes: int, num_envs: int, *, terminate: bool) -> dict[str, Any]:
    """One run, after a short one that warms up."""
    env = manikin.make("PickCube-v2", num_envs, autoreset="disabled", terminate=terminate)
    policy = ExpertPolicy(env)
    run_episodes(env, policy, range(num_envs))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.h5"
        clocks = (time.perf_counter, time.process_time, time.thread_time)
        begin = [clock() for clock in clocks]
        recorder = Recorder(env, path, policy="expert")
        run = run_episodes(env, policy, range(episodes), observers=[recorder])
        middle = time.perf_counter()
        recorder.close()
        wall, cpu, main = (clock() - b for clock, b in zip(clocks, begin, strict=True))
        size = path.stat().st_size
    env.close()
    return {
        "episodes": episodes,
        "control_steps": run.env_steps,
        "successful": sum(result.success_once for result in run.results),
        "episodes_per_hour": round(3600 * episodes / wall),
        "episodes_per_hour_of_main_thread": round(3600 * episodes / main),
        "seconds": round(wall, 2),
        "merge_seconds": round(wall - (middle - begin[0]), 2),
        "processor_seconds": round(cpu, 2),
        "main_thread_seconds": round(main, 2),
        "kb_per_episode": round(size / episodes / 1e3, 1),
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--episodes", type=int, default=2560)
    parser.add_argument("--num-envs", type=int, default=256)
    parser.add_argument("--note", default="", help="about the machine, for the record")
    options = parser.parse_args()
    if options.quick:
        options.episodes, options.num_envs = 4, 2
    torch.set_num_threads(1)
    report = {
        "command": command(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "note": options.note,
        "versions": {p: importlib.metadata.version(p) for p in ("mujoco", "torch", "numpy", "h5py")},
        "num_envs": options.num_envs,
        "fifty_steps_each": collect(options.episodes, options.num_envs, terminate=False),
        "until_success": collect(options.episodes, options.num_envs, terminate=True),
    }
    write(report, options.out)


if __name__ == "__main__":
    main()
