"""How much slower a training loop is where the threads of physics and torch are not kept apart.

    python benchmarks/threads.py

``ppo`` trains on PickCube-v2 with its recipe. Three trainers with the same seed take turns, iteration by iteration, so
that what else the machine does meets all of them:

- ``turns``: as the library has it. Torch has one thread while the physics steps, and all cores in an update.
- ``all``: torch has all cores throughout, as it has by default.
- ``one``: torch has one thread throughout.

They do so in three processes, one after the other. In ``briefly`` threads of torch that wait for each other spin in a
loop a thousand times before they sleep, as manikin has it; in ``spins`` 300,000 times, the default of GNU's OpenMP; in
``sleeps`` not at all (``GOMP_SPINCOUNT``).

``times_turns`` is the wall-clock time of an iteration over that of ``turns`` in the same round, ``cpu_seconds`` the
processor time of its threads, those that wait in a loop included. ``load`` is how many threads of the whole machine
wanted to run, on average over the minute before the beginning and before the end. The figures are those of an idle
machine only where the first of these is far below the number of cores.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common import arguments, command, parsed, spread, write

OUT = Path(__file__).parent / "results" / "threads.json"
WAITS = {
    "briefly": {"GOMP_SPINCOUNT": "1000"},
    "spins": {"GOMP_SPINCOUNT": "300000"},
    "sleeps": {"GOMP_SPINCOUNT": "0"},
}
TASK, SEED = "PickCube-v2", 9351


@contextlib.contextmanager
def torch_has(threads: int | None) -> Iterator[None]:
    """Within this block trainers leave torch so many threads; None: as the library has it."""
    import torch

    from manikin.learn import ppo

    if threads is None:
        yield
        return
    trainer: Any = ppo  # the module, which sets torch's threads by this function
    before, own = torch.get_num_threads(), trainer.torch_threads
    torch.set_num_threads(threads)
    trainer.torch_threads = lambda count: contextlib.nullcontext()
    try:
        yield
    finally:
        trainer.torch_threads = own
        torch.set_num_threads(before)


def measured(rounds: int, quick: bool) -> dict[str, Any]:
    """In this process: each way, by its name."""
    import torch

    from manikin.env.make import make
    from manikin.learn.common.threads import CORES
    from manikin.learn.ppo import PPO
    from manikin.learn.run.recipe import recipe_for

    recipe = recipe_for("ppo", TASK)[0]
    if quick:
        recipe = recipe.replace(env={"num_envs": 8}, settings={"num_steps": 4, "minibatches": 2})
    torch.set_num_threads(CORES)
    threads = {"turns": None, "all": CORES, "one": 1}
    options = recipe.env_options(autoreset="same_step")
    trainers = {way: PPO(make(recipe.task, options=options), recipe.config, SEED) for way in threads}
    rows: dict[str, list[dict[str, float]]] = {way: [] for way in threads}
    for number in range(rounds + 1):
        for way, trainer in trainers.items():
            with torch_has(threads[way]):
                began, used = time.perf_counter(), time.process_time()
                trainer.iterate()
                row = {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - used}
            row |= trainer.spent.taken()
            if number:  # the first one also makes what later ones find
                rows[way].append(row)
    for trainer in trainers.values():
        trainer.env.close()
    found: dict[str, Any] = {}
    for way, own in rows.items():
        times = [one["seconds"] / turns["seconds"] for one, turns in zip(own, rows["turns"], strict=True)]
        found[way] = {"times_turns": spread(times, 2)}
        found[way] |= {name: spread([row[name] for row in own], 3) for name in own[0]}
    return found


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="iterations of each")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parsed(parser, OUT)
    args.rounds = 2 if args.quick else args.rounds
    if args.worker:
        args.out.write_text(json.dumps(measured(args.rounds, args.quick)))
        return
    from manikin.env.state.provenance import versions
    from manikin.machine import machine

    result: dict[str, Any] = {"command": command(), "task": TASK, "rounds": args.rounds}
    result |= {"machine": {**machine(), "cores": os.cpu_count()}, "versions": versions()}
    load, part = [round(os.getloadavg()[0], 1)], args.out.with_suffix(".part")
    words = [sys.executable, __file__, "--worker", "--rounds", str(args.rounds), "--out", str(part)]
    words += ["--quick"] if args.quick else []
    for name, setting in WAITS.items():
        plain = {key: value for key, value in os.environ.items() if key not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
        subprocess.run(words, check=True, env={**plain, **setting})
        result[name] = json.loads(part.read_text())
        part.unlink()
    write({**result, "load": [*load, round(os.getloadavg()[0], 1)]}, args.out)


if __name__ == "__main__":
    main()
