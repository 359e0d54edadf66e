"""What robosuite's three human demonstrations of Lift bring where the reward is success alone, at equal steps.

    MANIKIN_DATA=... python benchmarks/human_lift.py --threads 1

Two runs of ``manikin train sac Lift-v2`` with the same settings, those of the task's recipe for demonstrations: one
with the demonstrations (RLPD), one without. What is kept of each is that of benchmarks/learning.py; its processor time
is that of the training loop.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from common import arguments, command, write
from few_demonstrations import learned
from learning import record

from manikin.env.state.provenance import versions
from manikin.learn.run.recipe import recipe_for
from manikin.learn.run.record import read_progress
from manikin.machine import machine

TASK = "Lift-v2"
DEMOS = Path("demos") / "robosuite_1.4.1" / "lift_demo.hdf5"  # in MANIKIN_DATA


def trained(folder: Path, demos: Path | None, steps: int, seed: int, more: list[str], *, small: bool) -> dict[str, Any]:
    """One run of the command, and what is kept of it."""
    recipe = recipe_for("sac", TASK, demos=True)[0]
    if small:
        recipe = recipe.replace(validate_every=50, validation_episodes=2, test_episodes=4)
    asked = folder.with_suffix(".toml")
    asked.write_text(recipe.to_toml())
    what = ["--recipe", asked, *([] if demos is None else ["--demos", demos])]
    what += ["--set", "env.num_envs=4", "env.horizon=20"] if small else []
    learned(folder, what, steps, ["--seed", seed, "--minutes", 600, "--pictures", 0, *more])
    return record(folder, None, read_progress(folder / "progress.csv")[-1]["cpu_seconds"])


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--demos", type=Path, help="default: robosuite's, in MANIKIN_DATA")
    parser.add_argument("--steps", type=int, default=100_000, help="control steps of each run")
    parser.add_argument("--seed", type=int, default=9351)
    parser.add_argument("--threads", type=int, default=0, help="of the physics; never changes a result")
    parser.add_argument("--keep", type=Path, help="folder in which the runs stay; one that was interrupted goes on")
    args = parser.parse_args()
    demos = args.demos or Path(os.environ.get("MANIKIN_DATA", "")) / DEMOS
    if not demos.is_file():
        parser.error(f"{demos} is not there: set MANIKIN_DATA, or name the file with --demos")
    more = ["--threads", str(args.threads)] if args.threads else []
    steps = 600 if args.quick else args.steps
    with tempfile.TemporaryDirectory() as temporary:
        root = args.keep or Path(temporary)
        root.mkdir(parents=True, exist_ok=True)
        runs = {
            name: trained(root / name, given, steps, args.seed, more, small=args.quick)
            for name, given in (("with", demos), ("without", None))
        }
    about = {"command": command(), "versions": versions(), "machine": {**machine(), "cores": os.cpu_count()}}
    write({**about, "task": TASK, "seed": args.seed, "runs": runs}, args.out)


if __name__ == "__main__":
    main()
