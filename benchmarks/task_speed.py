"""How fast is each task? Control steps per second, the share of raw physics, torch calls, and images per second.

    python benchmarks/task_speed.py                          # every task; 35 minutes on two idle cores
    python benchmarks/task_speed.py --task PickCube-v2 --again

Each task has its own robot, controller and rates, and all of its layouts. Random actions, full reward and success; no
episode ends. ``env`` counts control steps per second of all rows together, ``share`` is that over raw physics with the
same controls, which take turns with the environment. ``calls`` are the torch calls of one step at one row. ``gain`` is
the rate at the most rows over that of the oldest version of the task that still plays, in the same round. ``images``
counts pictures of 128 x 128 pixels per second, each with a step, of 16 rows; ``renderer`` says who drew them.

Every round is a process of its own, and figures are medians over the rounds. ``load`` is how many threads of the whole
machine wanted to run in the minute before: rates are those of an idle machine only where it is below the number of
cores. The file is written after every task; what it has already is not measured again, unless ``--again``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from common import arguments, parsed

from manikin.env.registry import task_families
from manikin.env.state.provenance import versions
from manikin.tasks.former import FORMER

OUT = Path(__file__).parent / "results" / "task_speed.json"
ROWS = (1, 256)
ROUNDS = 3  # of which a figure is the median
PICTURE, SEEN = 128, 16  # [pixels] side of a picture, rows that are drawn


def oldest(task: str) -> str | None:
    """The first version of a task that still plays, where it is not the newest."""
    stem = task.rpartition("-v")[0]
    return min((name for name in FORMER if name.rpartition("-v")[0] == stem), default=None)


def images(task: str, seconds: float) -> tuple[float, str]:
    """Pictures per second, all rows together, and who draws them."""
    import torch

    import manikin
    from manikin.env.observe.vision import Vision

    torch.set_num_threads(1)
    vision = Vision(size=(PICTURE, PICTURE))
    options = {"horizon": 10**9, "terminate": False, "reward": "none"}
    env = manikin.make(task, num_envs=SEEN, observe="rgb", vision=vision, **options)
    env.reset(seed=0)
    actions = torch.rand(8, SEEN, env.single_action_space.shape[0]) * 2 - 1
    env.step(actions[0])
    begin, steps = time.perf_counter(), 0
    while (spent := time.perf_counter() - begin) < seconds:
        env.step(actions[steps % 8])
        steps += 1
    return SEEN * steps / spent, env.parts()[0].env.rig.backend


def one_round(task: str, seconds: float) -> dict[str, Any]:
    """All figures of a task, measured in this process."""
    import manikin
    from manikin.author.speed import measure_speed
    from manikin.author.under_test import calls_of_a_step

    out: dict[str, Any] = {"load": os.getloadavg()[0]}
    out["calls"] = calls_of_a_step(manikin.make(task, num_envs=1, autoreset="disabled")).count
    for n in ROWS:
        found = measure_speed(task, n, seconds=seconds)
        out |= {f"env{n}": found.env, f"raw{n}": found.raw, f"share{n}": found.share}
    if (former := oldest(task)) is not None:
        out["gain"] = out[f"env{ROWS[-1]}"] / measure_speed(former, ROWS[-1], seconds=seconds).env
    out["images"], out["renderer"] = images(task, seconds)
    return out


def measured(task: str, rounds: int, seconds: float) -> dict[str, Any]:
    """Medians over the rounds."""
    runs = []
    for _ in range(rounds):
        words = [sys.executable, __file__, "--worker", task, "--seconds", str(seconds)]
        runs.append(json.loads(subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout))

    def median(name: str, digits: int | None = None) -> float:
        return round(statistics.median(run[name] for run in runs), digits)

    out: dict[str, Any] = {"rounds": rounds, "load": median("load", 1), "calls": runs[0]["calls"]}
    for n in ROWS:
        out[str(n)] = {"env": median(f"env{n}"), "raw": median(f"raw{n}"), "share": median(f"share{n}", 3)}
    if "gain" in runs[0]:
        out["gain"] = {"over": oldest(task), "times": median("gain", 2)}
    return out | {"images": median("images", 1), "renderer": runs[0]["renderer"]}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--task", nargs="+", help="default all")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seconds", type=float, default=0.5, help="of stepping per measurement")
    parser.add_argument("--again", action="store_true", help="also what the file has already")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parsed(parser, OUT)
    if args.worker:
        print(json.dumps(one_round(args.worker, args.seconds)))
        return
    if args.quick:
        args.task, args.rounds, args.seconds = ["PushCube-v2"], 1, 0.05
    done = json.loads(args.out.read_text()) if args.out.exists() else {}
    rounds = f" --rounds {args.rounds}" if args.rounds != ROUNDS else ""
    done |= {"command": f"python benchmarks/task_speed.py{rounds}", "versions": versions()}
    done["machine"] = f"{platform.machine()}, {os.cpu_count()} cores"
    tasks = done.setdefault("tasks", {})
    for task in args.task or [one for family in task_families().values() for one in family]:
        if task in tasks and not args.again:
            continue
        tasks[task] = measured(task, args.rounds, args.seconds)
        args.out.write_text(json.dumps(done, indent=1) + "\n")
        print(task, json.dumps(tasks[task]), flush=True)


if __name__ == "__main__":
    main()
