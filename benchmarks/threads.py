"""How much slower a training loop is where the threads of physics and torch are not kept apart.

    python benchmarks/threads.py

``ppo`` trains on PickCube-v2 with its recipe. Three trainers with the same seed take turns, iteration by iteration, so
that what else the machine does meets all of them:

- ``turns``: as the library has it. Torch has one thread while the physics steps, and all cores in an update.
- ``all``: torch has all cores throughout, as it has by default.
- ``one``: torch has one thread throughout.

``times_turns`` is the wall-clock time of an iteration over that of ``turns`` in the same round. ``load`` is how many
processes wanted to run on average in the minute before and after; the benchmark itself is up to as many as there are
cores.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from common import arguments, parsed, spread, write

from manikin.env.make import make
from manikin.env.state.provenance import machine, versions
from manikin.learn import ppo
from manikin.learn.common.threads import CORES
from manikin.learn.run.recipe import recipe_for

OUT = Path(__file__).parent / "results" / "threads.json"
WAYS: dict[str, int | None] = {"turns": None, "all": CORES, "one": 1}  # torch's threads; None: as the library has it
TASK, SEED = "PickCube-v2", 9351


@contextlib.contextmanager
def torch_has(threads: int | None) -> Iterator[None]:
    """Within this block trainers leave torch so many threads."""
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


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="iterations of each")
    args = parsed(parser, OUT)
    recipe = recipe_for("ppo", TASK)[0]
    if args.quick:
        args.rounds = 2
        recipe = recipe.replace(env={"num_envs": 8}, settings={"num_steps": 4, "minibatches": 2})
    load = [round(os.getloadavg()[0], 1)]
    torch.set_num_threads(CORES)
    trainers = {}
    for way in WAYS:
        env = make(recipe.task, options=recipe.env_options(autoreset="same_step"))
        trainers[way] = ppo.PPO(env, recipe.config, SEED)
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    parts: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for number in range(args.rounds + 1):
        for way, trainer in trainers.items():
            with torch_has(WAYS[way]):
                began = time.perf_counter()
                trainer.iterate()
                took = time.perf_counter() - began
            spent = trainer.spent.taken()
            if number:  # the first one also makes what later ones find
                seconds[way].append(took)
                parts[way].append(spent)
    load.append(round(os.getloadavg()[0], 1))
    for trainer in trainers.values():
        trainer.env.close()
    ways: dict[str, Any] = {}
    for way, values in seconds.items():
        times = [one / turns for one, turns in zip(values, seconds["turns"], strict=True)]
        ways[way] = {"seconds": spread(values, 3), "times_turns": spread(times, 2)}
        ways[way] |= {name: spread([part[name] for part in parts[way]], 3) for name in parts[way][0]}
    result = {"command": "python benchmarks/threads.py", "task": TASK, "rounds": args.rounds, "cores": CORES}
    result |= {"machine": machine(), "versions": versions(), "load": load, "ways": ways}
    write(result, args.out)


if __name__ == "__main__":
    main()
