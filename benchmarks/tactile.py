"""What touch is worth: a peg and a key inserted by experts that feel the rim of the hole, and by ones that do not.

    python benchmarks/tactile.py

TactilePeg-v1 and TactileLock-v1 with three experts (``search`` of their configuration), and holes that are off by up to
so many millimetres along x and y. Every cell has the same seeds. ``median_s`` is the time of success, of those that
succeed. The file is written after every cell; what it has already is not run again, unless ``--again``.
"""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any

import torch
from common import arguments, parsed

import manikin
from manikin.env.state.provenance import versions
from manikin.eval.stats import wilson
from manikin.plan.executor import WaypointExecutor
from manikin.tasks.insertion.tactile_insert import SEARCHES

OUT = Path(__file__).parent / "results" / "tactile.json"
TASKS = ("TactilePeg-v1", "TactileLock-v1")
ERRORS = (0.0, 1.0, 2.0, 4.0, 6.0)  # [mm]


def cell(task: str, search: str, error: float, seeds: int) -> dict[str, Any]:
    """Successes of an expert where holes are off by up to ``error`` [mm]."""
    config = {"search": search, "error": error / 1000}
    env = manikin.make(
        task, seeds, config=config, observe="state", reward="none", autoreset="disabled", terminate=False
    )
    env.reset(seed=list(range(seeds)))
    expert, first = WaypointExecutor(env), torch.full((seeds,), torch.nan)
    for step in range(env.horizon):
        *_, info = env.step(expert.act())
        first = torch.where(info["success"] & first.isnan(), torch.tensor((step + 1) / env.control_hz), first)
    env.close()
    solved = ~first.isnan()
    count = int(solved.sum())
    interval = wilson(count, seeds)
    return {
        "seeds": seeds,
        "successes": count,
        "low": round(interval.low, 4),
        "high": round(interval.high, 4),
        "median_s": round(float(first[solved].median()), 2) if count else None,
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=128)
    parser.add_argument("--again", action="store_true", help="also what the file has already")
    args = parsed(parser, OUT)
    tasks, errors = (TASKS, ERRORS) if not args.quick else (TASKS[:1], ERRORS[:1])
    if args.quick:
        args.seeds = 2
    torch.set_num_threads(1)
    done = json.loads(args.out.read_text()) if args.out.exists() else {}
    done |= {"command": "python benchmarks/tactile.py", "versions": versions()}
    done["machine"] = f"{platform.machine()}, {os.cpu_count()} cores"
    cells = done.setdefault("cells", {})
    for task in tasks:
        for search in SEARCHES:
            of = cells.setdefault(task, {}).setdefault(search, {})
            for error in errors:
                if f"{error:g}" in of and not args.again:
                    continue
                of[f"{error:g}"] = cell(task, search, error, args.seeds)
                args.out.write_text(json.dumps(done, indent=1) + "\n")
                print(task, search, error, json.dumps(of[f"{error:g}"]), flush=True)


if __name__ == "__main__":
    main()
