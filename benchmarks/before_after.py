"""Is this version of manikin slower than another one? Both are measured in turns, in processes of their own.

    git worktree add DIR COMMIT
    python benchmarks/before_after.py --before DIR
    python benchmarks/before_after.py --before DIR --case "step PickCube, 256 rows" --rounds 15

Each round measures every case once with each version; which of the two begins alternates. The ratio is the rate after
over the rate before, above 1 where this version is faster. Its 95 % interval is Student's, of the logarithms of the
rounds' ratios.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from common import ROOT, arguments, command, spread, write

ROUNDS = 9
STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228,
           11: 2.201, 12: 2.179, 13: 2.160, 14: 2.145}  # fmt: skip
"""97.5 % quantile of Student's distribution by degrees of freedom."""


def stepping(task: str, rows: int, seconds: float, **options: Any) -> float:
    """Control steps per second of all rows, random actions."""
    import torch

    import manikin

    torch.set_num_threads(1)
    env = manikin.make(task, rows, horizon=10**6, terminate=False, **options)
    env.reset(seed=0)
    moves = torch.rand(16, rows, *env.single_action_space.shape) * 2 - 1
    for move in moves[:4]:
        env.step(move)
    steps, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        env.step(moves[steps % 16])
        steps += 1
    return rows * steps / (time.perf_counter() - began)


def making(seconds: float) -> float:
    """Environments made, reset and closed in a second."""
    import manikin

    def one() -> None:
        env = manikin.make("PickCube-v2", 16)
        env.reset(seed=0)
        env.close()

    one()
    made, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        one()
        made += 1
    return made / (time.perf_counter() - began)


def collecting(seconds: float) -> float:
    """Episodes per second of the whole command ``manikin collect``, its start included."""
    episodes = max(2, round(64 * seconds))
    with tempfile.TemporaryDirectory() as folder:
        words = ["collect", "PickCube-v2", "--episodes", str(episodes), "--num-envs", "64", "--out", f"{folder}/a.h5"]
        began = time.perf_counter()
        start = "import sys; from manikin.cli import main; sys.exit(main(sys.argv[1:]))"
        subprocess.run([sys.executable, "-c", start, *words], stdout=subprocess.DEVNULL, check=True)
        return episodes / (time.perf_counter() - began)


CASES: dict[str, Callable[[float], float]] = {
    **{f"step PickCube, {n} rows": partial(stepping, "PickCube-v2", n) for n in (1, 256, 1024)},
    **{f"step Lift, osc_pose, {n} rows": partial(stepping, "Lift-v2", n, control="osc_pose") for n in (1, 256)},
    "step PickCube, pictures, 16 rows": partial(stepping, "PickCube-v2", 16, observe="rgb"),
    "make, reset and close PickCube, 16 rows": making,
    "manikin collect PickCube": collecting,
}


def ratio(logarithms: list[float]) -> dict[str, float | None]:
    """Geometric mean and its 95 % interval, of the logarithms of ratios."""
    n, middle = len(logarithms), statistics.fmean(logarithms)
    half = STUDENT[n - 1] * statistics.stdev(logarithms) / math.sqrt(n) if n > 1 else math.inf
    found = {"ratio": middle, "low": middle - half, "high": middle + half}
    return {name: round(math.exp(value), 3) if math.isfinite(value) else None for name, value in found.items()}


def measured(tree: Path, case: str, seconds: float) -> float:
    """A case in a process of its own, with the package in ``tree``."""
    words = [sys.executable, __file__, "--worker", case, str(seconds)]
    with_it = {**os.environ, "PYTHONPATH": str(tree / "src")}
    done = subprocess.run(words, env=with_it, stdout=subprocess.PIPE, check=True)
    return float(done.stdout)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--before", type=Path, help="a checkout of the other version")
    parser.add_argument("--case", nargs="+", choices=list(CASES), metavar="CASE", help=f"of {'; '.join(CASES)}")
    parser.add_argument("--rounds", type=int, default=ROUNDS, choices=range(1, 16), metavar="1..15")
    parser.add_argument("--seconds", type=float, default=2.0, help="of stepping per measurement")
    parser.add_argument("--worker", nargs=2, metavar=("CASE", "SECONDS"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        print(CASES[args.worker[0]](float(args.worker[1])))
        return
    if args.before is None or not (args.before / "src" / "manikin").is_dir():
        parser.error("--before DIR: a checkout of the other version, with src/manikin in it")
    if args.quick:
        args.case, args.rounds, args.seconds = [next(iter(CASES))], 1, 0.05
    trees = {"before": args.before.resolve(), "after": ROOT}
    rates: dict[str, dict[str, list[float]]] = {case: {"before": [], "after": []} for case in args.case or CASES}
    for turn in range(args.rounds):
        for case, found in rates.items():
            for name in list(trees) if turn % 2 else list(trees)[::-1]:
                found[name].append(measured(trees[name], case, args.seconds))
    commits = {
        name: subprocess.run(
            ["git", "-C", str(tree), "rev-parse", "--short", "HEAD"], stdout=subprocess.PIPE, text=True, check=False
        ).stdout.strip()
        for name, tree in trees.items()
    }
    result = {
        "command": command(),
        "commits": commits,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "rounds": args.rounds,
        "cases": {
            case: ratio([math.log(b / a) for a, b in zip(found["before"], found["after"], strict=True)])
            | {f"{name}_per_s": spread(found[name]) for name in trees}
            for case, found in rates.items()
        },
    }
    write(result, args.out)


if __name__ == "__main__":
    main()
