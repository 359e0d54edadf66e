"""How often does each task's scripted expert succeed? With the task's own robot, controller and time, on the CPU.

    python benchmarks/experts.py                     # all tasks; twenty minutes on two cores
    python benchmarks/experts.py --task Lift-v2      # one
    python benchmarks/experts.py --task HomeOpen-v1 --config mechanism=fridge --seeds 64
    python benchmarks/experts.py --task RotateValve-v1 --config level=1 --seeds 64

Success is success at some step of the episode, of the seeds 0, 1, 2, ... Of a task with layouts, such as the eight
apartments, the seed chooses which; ``--task ID/LAYOUT`` has one of them. The file is written after every task; a run
that was stopped goes on where it was, and ``--again`` measures anew. The overview of the tasks in the documentation
shows what it says.
"""

from __future__ import annotations

import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import torch
from common import arguments, parsed
from parity import has_expert, make, play_expert, with_layouts

import manikin
from manikin.env.interface import BatchEnv
from manikin.env.registry import task_class
from manikin.env.state.provenance import versions
from manikin.eval.stats import wilson
from manikin.sim.health import Health

BATCH = 32  # rows of a task without layouts
OUT = Path(__file__).parent / "results" / "experts.json"


def rows_of(task: str, seeds: int, config: dict[str, Any]) -> BatchEnv:
    """An environment that ends nothing. In that of a task with layouts the seed chooses the layout of a row, as for its
    users; ``ID/LAYOUT`` has one of them."""
    if "/" not in task and task_class(task).layouts:
        kept: dict[str, Any] = {"autoreset": "disabled", "terminate": False, "reward": "none", "horizon": 10**6}
        return manikin.make(task, seeds, config=config, **kept)
    return make(task, None, "cpu", min(BATCH, seeds), config=config)


def rate(task: str, seeds: int, config: dict[str, Any]) -> dict[str, Any]:
    """Successes of the expert of a task with these options."""
    began, env = time.perf_counter(), rows_of(task, seeds, config)
    first_success, health = play_expert(env, seeds)
    steps = round(env.task.horizon_s * env.control_hz)
    env.close()
    times = sorted(k for k in first_success if k)
    interval = wilson(len(times), seeds)
    return {
        "seeds": seeds,
        "successes": len(times),
        "low": round(interval.low, 4),
        "high": round(interval.high, 4),
        "median_steps": times[len(times) // 2] if times else None,
        "horizon_steps": steps,
        "diverged": sum(bool(bits & int(Health.DIVERGED)) for bits in health),
        "failed": [seed for seed, k in enumerate(first_success) if not k],
        "seconds": round(time.perf_counter() - began, 1),
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument(
        "--task",
        nargs="+",
        help="default all that have an expert; ID/LAYOUT for one layout",
    )
    parser.add_argument("--config", nargs="+", default=[], metavar="NAME=WORD", help="options of the task")
    parser.add_argument("--seeds", type=int, default=64)
    parser.add_argument("--again", action="store_true", help="also what the file has already")
    args = parsed(parser, OUT)
    if args.quick:
        args.task, args.seeds = ["PickCube-v2"], 2
    torch.set_num_threads(1)
    done = json.loads(args.out.read_text()) if args.out.exists() else {}
    done |= {"command": f"python benchmarks/experts.py --seeds {args.seeds}", "versions": versions()}
    done["machine"] = f"{platform.machine()}, {os.cpu_count()} cores"
    entries = done.setdefault("entries", {})
    words = dict(option.split("=", 1) for option in args.config)
    flags = {"true": True, "false": False}
    config: dict[str, Any] = {name: flags.get(w, int(w) if w.isdigit() else w) for name, w in words.items()}
    for task in args.task or with_layouts():
        name = "/".join([task, *args.config])
        if (name in entries and not args.again) or not has_expert(task, None):
            continue
        entries[name] = rate(task, args.seeds, config)
        args.out.write_text(json.dumps(done, indent=2) + "\n")
        print(name, json.dumps(entries[name]), flush=True)


if __name__ == "__main__":
    main()
