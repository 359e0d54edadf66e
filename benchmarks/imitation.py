"""Imitation by state: success on held-out episodes by task, algorithm and number of demonstrations.

    python benchmarks/imitation.py                                                   # every cell: days on two cores
    python benchmarks/imitation.py --tasks PickCube-v2 --algorithms bc --demonstrations 1000

Each cell is the command ``manikin train``, which records the expert first. ``tested`` is the checkpoint that validated
best, ``tested_last`` the network at the end; both play the same episodes, which nothing else has seen. Horizons are
those of ManiSkill3's and robomimic's tables. The file is written after every cell; what it has already is not run
again, unless ``--again``.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from common import arguments, parsed
from learning import train

from manikin.data.dataset import Dataset
from manikin.env.state.provenance import machine, versions
from manikin.eval.evaluation import evaluate
from manikin.eval.protocol import load_protocol
from manikin.learn.run.demos import DEMOS
from manikin.learn.run.recipe import recipe_for
from manikin.learn.run.train import PROTOCOL
from manikin.policy.trained import LAST, trained_policy

OUT = Path(__file__).parent / "results" / "imitation.json"
TASKS = {  # horizon [control steps]
    "PickCube-v2": 100,
    "PushCube-v2": 100,
    "StackCube-v2": 200,
    "PegInsertionSide-v2": 300,
    "PlaceSphere-v2": 200,
    "Lift-v2": 400,
    "PickPlaceCan-v2": 400,
    "NutAssemblySquare-v3": 400,
}
ALGORITHMS = ("bc", "diffusion", "act")
COUNTS = (100, 1000)  # demonstrations
STEPS = 10_000  # gradient steps where a task has no recipe


def cell(
    task: str, algorithm: str, count: int, seed: int, more: list[str], *, keep: Path | None, **given: Any
) -> dict[str, Any]:
    """Train and test one cell."""
    recipe, own = recipe_for(algorithm, task)
    words = [f"demonstrations={count}", f"env.horizon={TASKS[task]}"]
    limits = [] if own else ["--minutes", "0", "--steps", str(STEPS)]
    with tempfile.TemporaryDirectory() as temporary:
        place = (keep or Path(temporary)) / str(count)
        found = train(f"{algorithm}:{task}", seed, [*limits, "--set", *words, *more], keep=place, **given)
        folder = place / f"{algorithm}-{task}-{seed}"
        last = evaluate(load_protocol(folder / PROTOCOL), trained_policy(folder / LAST), num_envs=128)
        with Dataset(folder / DEMOS, observations=["value"]) as data:
            length = data.frames / data.episodes
    rate = last.tasks[0].rate("once")
    return {
        **found,
        "tested_last": {"rate": round(rate.estimate, 4), "low": round(rate.low, 4), "high": round(rate.high, 4)},
        "horizon": TASKS[task],
        "demonstration_length": round(length, 1),
        "pushes": recipe.config.pushes,
        "recipe_of_task": own,
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--algorithms", nargs="+", default=list(ALGORITHMS), choices=ALGORITHMS)
    parser.add_argument("--demonstrations", nargs="+", type=int, default=list(COUNTS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[9351])
    parser.add_argument("--threads", type=int, default=0, help="of the physics; never changes a result")
    parser.add_argument("--loaded", action="store_true", help="other work runs here: keep processor time, not seconds")
    parser.add_argument("--keep", type=Path, help="folder in which the runs stay")
    parser.add_argument("--again", action="store_true", help="also what the file has already")
    args = parsed(parser, OUT)
    more, limits = [], ["--threads", str(args.threads)] if args.threads else []
    if args.quick:
        args.tasks, args.algorithms, args.demonstrations, args.seeds = ["PushCube-v2"], ["bc"], [3], [1]
        more, limits = ["updates=2"], [*limits, "--steps", "4"]
    done = json.loads(args.out.read_text()) if args.out.exists() else {}
    done |= {"command": "python benchmarks/imitation.py", "versions": versions()}
    done["machine"] = {**machine(), "cores": os.cpu_count()}
    cells = done.setdefault("cells", {})
    for task in args.tasks:
        for algorithm in args.algorithms:
            for count in args.demonstrations:
                for seed in args.seeds:
                    of = cells.setdefault(task, {}).setdefault(algorithm, {}).setdefault(str(count), {})
                    if str(seed) in of and not args.again:
                        continue
                    given = {"loaded": args.loaded, "keep": args.keep, "quick": args.quick}
                    of[str(seed)] = cell(task, algorithm, count, seed, [*more, *limits], **given)
                    args.out.write_text(json.dumps(done, indent=1) + "\n")
                    brief = {k: v for k, v in of[str(seed)].items() if k != "curve"}
                    print(task, algorithm, count, seed, json.dumps(brief), flush=True)


if __name__ == "__main__":
    main()
