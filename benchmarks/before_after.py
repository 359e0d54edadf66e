"""Is this version of manikin slower than another one? Both are measured in turns, in processes of their own.

    git worktree add DIR COMMIT
    python benchmarks/before_after.py --before DIR
    python benchmarks/before_after.py --before DIR --case "step PickCube, 256 rows" --rounds 15

In each round and case both versions are made ready, then measured in turns, ten short slices each, so that what else
the machine does meets both. The ratio is the rate after over the rate before, above 1 where this version is faster: of
a round the geometric mean of its slices' ratios, then that of the rounds. Its 95 % interval is Student's, of the
logarithms of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from common import ROOT, arguments, command, spread, write

ROUNDS, SLICES = 9, 10
STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228,
           11: 2.201, 12: 2.179, 13: 2.160, 14: 2.145}  # fmt: skip
"""97.5 % quantile of Student's distribution by degrees of freedom."""


Slice = Callable[[float], float]
"""Measures for so many seconds; gives a rate per second."""


def stepping(task: str, rows: int, **options: Any) -> Slice:
    """Control steps per second of all rows, random actions."""
    import torch

    import manikin

    torch.set_num_threads(1)
    env = manikin.make(task, rows, horizon=10**6, terminate=False, **options)
    env.reset(seed=0)
    moves = torch.rand(16, rows, *env.single_action_space.shape) * 2 - 1
    for move in moves[:4]:
        env.step(move)
    steps = itertools.count()
    return partial(rate, lambda: env.step(moves[next(steps) % 16]), rows)


def making() -> Slice:
    """Environments made, reset and closed in a second."""
    import manikin

    def one() -> None:
        env = manikin.make("PickCube-v2", 16)
        env.reset(seed=0)
        env.close()

    one()
    return partial(rate, one, 1)


def collecting() -> Slice:
    """Episodes per second of the whole command ``manikin collect``, its start included."""
    start = "import sys; from manikin.cli import main; sys.exit(main(sys.argv[1:]))"

    def collected(seconds: float) -> float:
        episodes = max(2, round(64 * seconds))
        with tempfile.TemporaryDirectory() as folder:
            words = ["collect", "PickCube-v2", "--episodes", str(episodes), "--num-envs", "64"]
            began = time.perf_counter()
            done = [sys.executable, "-c", start, *words, "--out", f"{folder}/a.h5"]
            subprocess.run(done, stdout=subprocess.DEVNULL, check=True)
            return episodes / (time.perf_counter() - began)

    return collected


def rate(one: Callable[[], object], counts: int, seconds: float) -> float:
    """How often per second ``one`` is done, times ``counts``."""
    times, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        one()
        times += 1
    return counts * times / (time.perf_counter() - began)


CASES: dict[str, Callable[[], Slice]] = {
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


class Worker:
    """A case in a process of its own, with the package in ``tree``, ready to be measured."""

    def __init__(self, tree: Path, case: str) -> None:
        words = [sys.executable, __file__, "--worker", case]
        with_it = {**os.environ, "PYTHONPATH": str(tree / "src")}
        self.process = subprocess.Popen(words, env=with_it, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._heard()  # that it is ready

    def measured(self, seconds: float) -> float:
        print(seconds, file=self.process.stdin, flush=True)
        return float(self._heard())

    def close(self) -> None:
        self.process.communicate()

    def _heard(self) -> str:
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a measurement failed; what it wrote is above")
        return line


def work(case: str) -> None:
    """What a worker does: makes its case ready, then measures for as long as each line on standard input says."""
    measure = CASES[case]()
    print("ready", flush=True)
    for line in sys.stdin:
        print(measure(float(line)), flush=True)


def round_of(case: str, trees: Mapping[str, Path], seconds: float, turn: int) -> dict[str, list[float]]:
    """Rates by version, of slices in turns; which of the two begins alternates."""
    order = list(trees) if turn % 2 else list(trees)[::-1]
    slices = 1 if case.startswith("manikin collect") else SLICES
    workers = {name: Worker(trees[name], case) for name in order}
    found: dict[str, list[float]] = {name: [] for name in trees}
    for k in range(slices):
        for name in order if k % 2 else order[::-1]:
            found[name].append(workers[name].measured(seconds / slices))
    for worker in workers.values():
        worker.close()
    return found


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--before", type=Path, help="a checkout of the other version")
    parser.add_argument("--case", nargs="+", choices=list(CASES), metavar="CASE", help=f"of {'; '.join(CASES)}")
    parser.add_argument("--rounds", type=int, default=ROUNDS, choices=range(1, 16), metavar="1..15")
    parser.add_argument("--seconds", type=float, default=2.0, help="per round, case and version")
    parser.add_argument("--worker", metavar="CASE", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        work(args.worker)
        return
    if args.before is None or not (args.before / "src" / "manikin").is_dir():
        parser.error("--before DIR: a checkout of the other version, with src/manikin in it")
    if args.quick:
        args.case, args.rounds, args.seconds = [next(iter(CASES))], 1, 0.05
    trees = {"before": args.before.resolve(), "after": ROOT}
    rates: dict[str, dict[str, list[float]]] = {case: {"before": [], "after": []} for case in args.case or CASES}
    for turn in range(args.rounds):
        for case, found in rates.items():
            for name, slices in round_of(case, trees, args.seconds, turn).items():
                found[name].append(statistics.geometric_mean(slices))
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
