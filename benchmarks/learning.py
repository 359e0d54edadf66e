"""From the command to a tested checkpoint: success on held-out episodes, and the time it took.

    python benchmarks/learning.py                                   # all recipes that have a target, three seeds each
    python benchmarks/learning.py --run ppo:PickCube-v2 --seeds 9351

Each run is the command ``manikin train``, in a process of its own. ``rlpd:TASK`` and ``rfcl:TASK`` are ``sac`` with 100
demonstrations of the task's expert and the sparse reward; to collect them is part of their time. ``seconds`` is the
wall-clock of a run, from its start to its end, with setup, validation and test; ``cpu_seconds`` the processor time of
all its threads and children. On a machine that does nothing else with two cores, half of the latter is a lower bound of
the former. The target holds where the lower end of the interval of the tested rate is above it. The file is written
after every run; what it has already is not run again, unless ``--again``.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import arguments, parsed

from manikin.env.state.provenance import machine, versions
from manikin.learn.run.page import summary_of
from manikin.learn.run.recipe import Recipe, recipe_for
from manikin.learn.run.record import read_progress

OUT = Path(__file__).parent / "results" / "learning.json"
SEEDS = (9351, 4796, 1788)
TARGETS: dict[str, tuple[float, float]] = {  # recipe: success, minutes
    "ppo:PushCube-v2": (0.95, 8.0),
    "ppo:PullCube-v2": (0.95, 8.0),
    "ppo:PickCube-v2": (0.95, 20.0),
    "ppo:LiftPegUpright-v2": (0.95, 30.0),
    "sac:PickCube-v2": (0.95, 30.0),
    "rlpd:PickCube-v2": (0.95, 20.0),
    "rfcl:PegInsertionSide-v2": (0.80, 90.0),
    "distill:PushCube-v2": (0.90, 40.0),  # with the time of its teacher, ppo with seed 9351
    "distill:PickCube-v2": (0.90, 40.0),
}

DEMONSTRATED: dict[str, list[str]] = {"rlpd": [], "rfcl": ["reverse=4"]}  # settings of sac


def manikin(*words: str) -> None:
    """A command, in a process of its own."""
    subprocess.run([sys.executable, "-m", "manikin.cli", *words], check=True)


def train(
    run: str,
    seed: int,
    more: list[str],
    *,
    loaded: bool,
    keep: Path | None,
    quick: bool,
    recipe: Recipe | None = None,
) -> dict[str, Any]:
    """One run of the command, with another recipe than the task's where one is given."""
    name, task = run.split(":")
    algorithm = "sac" if name in DEMONSTRATED else name
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary if keep is None else keep) / f"{name}-{task}-{seed}"
        what, demos = [algorithm, task], None
        if name in DEMONSTRATED:
            demos = Path(temporary) / "demos.h5"
            what += ["--demos", str(demos), *(["--set", *DEMONSTRATED[name]] if DEMONSTRATED[name] else [])]
        if quick:
            recipe = (recipe or recipe_for(algorithm, task)[0]).replace(
                validate_every=1, validation_episodes=4, test_episodes=4
            )
        if recipe is not None:
            what = ["--recipe", str(Path(temporary) / "recipe.toml")]
            Path(what[1]).write_text(recipe.to_toml())
        words = ["train", *what, "--seed", str(seed), "--out", str(folder), "--pictures", "0", *more]
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        if demos is not None:
            manikin("collect", task, "--episodes", "100", "--keep", "success", "--observations", "--out", str(demos))
        manikin(*words)
        seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        found = summary_of(folder)
        rows = read_progress(folder / "progress.csv")
    cpu = sum(getattr(after, name) - getattr(before, name) for name in ("ru_utime", "ru_stime"))
    curve = [
        [
            int(row["steps"]),
            round(row["seconds"], 1),
            *(round(row[f"validated_{name}"], 4) for name in ("success", "return")),
        ]
        for row in rows
        if "validated_success" in row
    ]
    return {
        "seconds": None if loaded else round(seconds, 1),
        "cpu_seconds": round(cpu, 1),
        "steps": found["steps"],
        "tested": {k: round(v, 4) for k, v in found["tested"].items()},
        "validated": round(found["best"], 4),
        "recipe_hash": found["recipe_hash"],
        "curve": curve,
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--run", nargs="+", default=list(TARGETS), help="ALGORITHM:TASK, default all with a target")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--threads", type=int, default=0, help="of the physics; never changes a result")
    parser.add_argument("--loaded", action="store_true", help="other work runs here: keep processor time, not seconds")
    parser.add_argument("--keep", type=Path, help="folder in which the runs stay")
    parser.add_argument("--again", action="store_true", help="also what the file has already")
    args = parsed(parser, OUT)
    more = ["--threads", str(args.threads)] if args.threads else []
    more += ["--minutes", "240"] if args.loaded else []  # the recipe's minutes are those of an idle machine
    if args.quick:
        args.run, args.seeds = ["ppo:PushCube-v2"], [1]
        more += ["--steps", "160", "--set", "env.num_envs=8", "env.horizon=10"]
    done = json.loads(args.out.read_text()) if args.out.exists() else {}
    done |= {"command": "python benchmarks/learning.py", "versions": versions()}
    done["machine"] = {**machine(), "cores": os.cpu_count()}
    runs = done.setdefault("runs", {})
    for run in args.run:
        for seed in args.seeds:
            seeds = runs.setdefault(run, {})
            if str(seed) in seeds and not args.again:
                continue
            seeds[str(seed)] = train(run, seed, more, loaded=args.loaded, keep=args.keep, quick=args.quick)
            args.out.write_text(json.dumps(done, indent=1) + "\n")
            print(run, seed, json.dumps({k: v for k, v in seeds[str(seed)].items() if k != "curve"}), flush=True)


if __name__ == "__main__":
    main()
