"""What a task with many layouts costs at the start: 8 rows of 100 layouts beside 8 rows of 8 layouts.

    python benchmarks/layouts.py --out benchmarks/results/layouts.json

Each layout is a kitchen: a Panda before three cabinets whose sizes, drawers and doors differ from layout to layout. An
environment of 8 rows is made and reset with the seeds 0 to 7, which are 8 layouts. Measured are the time until the
first observation, and the rise of the process's peak memory. The third case compiles every layout at the start. Each
measurement has a process of its own with an empty cache of compiled scenes; the cases take turns.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import arguments, command, parsed, spread, write

from manikin.arenas.table import table
from manikin.env.task import Quantity, Task
from manikin.props.cabinet import Cabinet

COUNT, ROWS, ROUNDS, CABINETS = 100, 8, 5, 3
FRONTS = (("drawer",), ("door", "drawer"), ("drawer", "drawer"), ("drawer", "door", "drawer"))
OUT = Path(__file__).parent / "results" / "layouts.json"
CASES = {"layouts_8": (ROWS, False), "layouts_100": (COUNT, False), "layouts_100_all_compiled": (COUNT, True)}


class Kitchen(Task):
    """Three cabinets stand about the arm.

    Success: never; this is a place to start in.
    """

    id = "Kitchen-v0"
    horizon_s = 10.0
    instruction = "look around"
    layouts = tuple(f"kitchen_{k}" for k in range(COUNT))
    observations = {"tcp_pos": Quantity("m", "world"), "fronts": Quantity("m, rad", padded_to=(18,))}

    def scene(self, b):
        import numpy as np

        table(b)
        number = self.layouts.index(self.layout)
        handles = {"robot": b.robot()}
        for k in range(CABINETS):
            kind = (number // 4**k + k) % 4
            size = (0.12 + 0.0005 * number, 0.1 + 0.001 * (number % 20), 0.09 * len(FRONTS[kind]))
            spec = Cabinet(columns=(FRONTS[kind],) * (1 + (number + k) % 2), half_size=size)
            turn = np.pi * (0.5 * k - 0.5)
            handles[f"cabinet{k}"] = b.articulation(
                f"cabinet{k}",
                spec.build(),
                pos=(-0.6 + 0.9 * float(np.cos(turn)), 0.9 * float(np.sin(turn)), 0.0),
                quat=(float(np.cos(turn / 2)), 0.0, 0.0, float(np.sin(turn / 2))),
            )
        return handles

    def start(self, h, ep):
        h.robot.set_qpos(h.robot.keyframe())

    def evaluate(self, h):
        import torch

        return {"success": torch.zeros(h.n, dtype=torch.bool)}

    def observe(self, h):
        import torch

        fronts = [getattr(h, f"cabinet{k}").qpos for k in range(CABINETS)]
        return {"policy": {"tcp_pos": h.robot.tcp_pos}, "privileged": {"fronts": torch.cat(fronts, 1)}}


def measured(layouts: int, every: bool) -> dict[str, float]:
    """Time until the first observation [s] and by how much it raises the peak of memory [MB], in this process."""
    import torch

    from manikin.env.layouts.env import LayoutEnv

    torch.set_num_threads(1)
    Kitchen.layouts = Kitchen.layouts[:layouts]
    LayoutEnv(Kitchen, num_envs=1).close()  # what the first environment of a process loads is not counted
    before, begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    env = LayoutEnv(Kitchen, num_envs=ROWS)
    env.reset(seed=0)
    for seed in range(layouts if every else 0):
        env.env_for(seed)
    spent = time.perf_counter() - begin
    return {"seconds": spent, "megabytes": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024}


def apart(case: str) -> dict[str, float]:
    """:func:`measured` in a process of its own."""
    with tempfile.TemporaryDirectory() as cache:
        words = [sys.executable, __file__, "--case", case]
        done = subprocess.run(words, env={**os.environ, "MANIKIN_CACHE": cache}, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--case", choices=CASES, help="measure this case alone, here, and print it")
    if "--case" in sys.argv:
        print(json.dumps(measured(*CASES[parser.parse_args().case])))
        return
    options = parsed(parser, OUT)
    rounds = [{case: apart(case) for case in CASES} for _ in range(1 if options.quick else options.rounds)]
    result: dict[str, object] = {
        "command": command(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "versions": {p: importlib.metadata.version(p) for p in ("mujoco", "torch", "numpy")},
        "rows": ROWS,
        "rounds": len(rounds),
    }
    for case in CASES:
        result[case] = {
            "seconds": spread([one[case]["seconds"] for one in rounds], 2),
            "megabytes": spread([one[case]["megabytes"] for one in rounds]),
        }
    for what in ("seconds", "megabytes"):
        ratios = [one["layouts_100"][what] / one["layouts_8"][what] for one in rounds]
        result[f"{what}_100_over_8"] = spread(ratios, 2)
    write(result, options.out)


if __name__ == "__main__":
    main()
