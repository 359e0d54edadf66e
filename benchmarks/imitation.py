"""Imitation: success on held-out episodes by task, algorithm and number of demonstrations.

    python benchmarks/imitation.py                                                   # by state, every cell: hours
    python benchmarks/imitation.py --tasks PickCube-v2 --algorithms bc --demonstrations 1000
    python benchmarks/imitation.py --pictures --algorithms diffusion                 # 64 x 64 pixels, PickCube-v2

Each cell is the command ``manikin train``, which records the expert first. ``tested`` is the checkpoint that validated
best, ``tested_last`` the network at the end; both play the same episodes, which nothing else has seen. Horizons are
those of ManiSkill3's and robomimic's tables, and so are controllers: an action moves the tool, not the joints. The file
is written after every cell; what it has already is not run again, unless ``--again``.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from common import arguments, parsed
from learning import once, train

from manikin.data.dataset import Dataset
from manikin.env.state.provenance import versions
from manikin.eval.evaluation import evaluate
from manikin.eval.protocol import load_protocol
from manikin.learn.run.demos import DEMOS
from manikin.learn.run.recipe import recipe_for
from manikin.learn.run.train import PROTOCOL
from manikin.machine import machine
from manikin.policy.trained import LAST, trained_policy

OUT = Path(__file__).parent / "results" / "imitation.json"
TASKS = {  # horizon [control steps], controller
    "PickCube-v2": (100, "ee_delta_pos"),
    "PushCube-v2": (100, "ee_delta_pos"),
    "StackCube-v2": (200, "ee_delta_pose"),
    "PegInsertionSide-v2": (300, "ee_delta_pose"),
    "PlaceSphere-v2": (200, "ee_delta_pos"),
    "Lift-v2": (400, "osc_pose"),
    "PickPlaceCan-v2": (400, "osc_pose"),
    "NutAssemblySquare-v4": (400, "osc_pose"),
}
NEAR = '[{ name = "near", pos = [0.45, 0.0, 0.3], target = [0.0, 0.0, 0.08], fovy = 0.8 }]'
PICTURES = {  # what a policy is shown and told in place of the state
    "PickCube-v2": (
        *('env.observe="rgb"', f"env.cameras={NEAR}", "env.size=[64,64]", 'env.renderer="gl"'),
        *('numbers=["tcp_pose","goal_pos","is_grasped"]', "hide=[]"),
    )
}
AIMS = {  # task, algorithm, demonstrations: share of successes that was aimed for
    ("PickCube-v2", "diffusion", 100): 0.95,
    ("StackCube-v2", "diffusion", 100): 0.85,
    ("PegInsertionSide-v2", "diffusion", 100): 0.40,
    ("PegInsertionSide-v2", "diffusion", 1000): 0.70,
    ("PushCube-v2", "bc", 1000): 0.95,
    ("PickCube-v2", "bc", 1000): 0.80,
}
ALGORITHMS = ("bc", "diffusion", "act")
COUNTS = (100, 1000)  # demonstrations
STEPS = 10_000  # gradient steps where a task has no recipe
LONGER = 2  # times as many for chunks of actions with 1,000 demonstrations, which are not soon known by heart


def cell(
    task: str,
    algorithm: str,
    count: int,
    seed: int,
    more: list[str],
    *,
    pictures: bool,
    keep: Path | None,
    **given: Any,
) -> dict[str, Any]:
    """Train and test one cell."""
    recipe, own = recipe_for(algorithm, task)
    horizon, control = TASKS[task]
    words = [f"demonstrations={count}", f"env.horizon={horizon}", f"env.control={control}"]
    words += PICTURES[task] if pictures else ()
    limits = [] if own else ["--minutes", "0", "--steps", str(STEPS)]
    if algorithm != "bc" and count >= 1000:
        limits = ["--minutes", "0", "--steps", str(LONGER * (recipe.steps if own else STEPS))]
    with tempfile.TemporaryDirectory() as temporary:
        place = (keep or Path(temporary)) / str(count)
        found = train(f"{algorithm}:{task}", seed, [*limits, "--set", *words, *more], keep=place, **given)
        folder = place / f"{algorithm}-{task}-{seed}"
        last = evaluate(
            load_protocol(folder / PROTOCOL), trained_policy(folder / LAST), num_envs=64 if pictures else 128
        )
        with Dataset(folder / DEMOS, observations=["policy/tcp_pose" if pictures else "value"]) as data:
            length = data.frames / data.episodes
    return {
        **found,
        "tested_last": once(last),
        "horizon": horizon,
        "control": control,
        "demonstration_length": round(length, 1),
        "pushes": recipe.config.pushes,
        "recipe_of_task": own,
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--algorithms", nargs="+", default=list(ALGORITHMS), choices=ALGORITHMS)
    parser.add_argument("--demonstrations", nargs="+", type=int, default=list(COUNTS))
    parser.add_argument("--pictures", action="store_true", help=f"learn from pictures: {', '.join(PICTURES)}")
    parser.add_argument("--seeds", nargs="+", type=int, default=[9351])
    parser.add_argument("--threads", type=int, default=0, help="of the physics; never changes a result")
    parser.add_argument("--loaded", action="store_true", help="other work runs here: keep processor time, not seconds")
    parser.add_argument("--keep", type=Path, help="folder in which the runs stay")
    parser.add_argument("--again", action="store_true", help="also what the file has already")
    args = parsed(parser, OUT)
    more, limits = [], ["--threads", str(args.threads)] if args.threads else []
    if args.quick:
        task = "PickCube-v2" if args.pictures else "PushCube-v2"
        args.tasks, args.algorithms, args.demonstrations, args.seeds = [task], ["bc"], [3], [1]
        more, limits = ["updates=2"], [*limits, "--steps", "4"]
    if args.pictures:
        args.tasks = [task for task in args.tasks if task in PICTURES]
    done = json.loads(args.out.read_text()) if args.out.exists() else {}
    part, word = ("pictures", "_pictures") if args.pictures else ("cells", "")
    command = "python benchmarks/imitation.py" + " --pictures" * args.pictures
    done |= {f"command{word}": command, "versions": versions()}
    done["machine"] = {**machine(), "cores": os.cpu_count()}
    cells = done.setdefault(part, {})
    for task in args.tasks:
        for algorithm in args.algorithms:
            for count in args.demonstrations:
                for seed in args.seeds:
                    of = cells.setdefault(task, {}).setdefault(algorithm, {}).setdefault(str(count), {})
                    if str(seed) in of and not args.again:
                        continue
                    given = {"loaded": args.loaded, "keep": args.keep, "quick": args.quick, "pictures": args.pictures}
                    of[str(seed)] = cell(task, algorithm, count, seed, [*more, *limits], **given)
                    args.out.write_text(json.dumps(done, indent=1) + "\n")
                    brief = {k: v for k, v in of[str(seed)].items() if k != "curve"}
                    print(task, algorithm, count, seed, json.dumps(brief), flush=True)


if __name__ == "__main__":
    main()
