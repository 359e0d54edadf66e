"""From a few demonstrations to many, and from those to a policy: the route of ManiSkill3's demonstrations.

    python benchmarks/few_demonstrations.py PickCube-v2 --demonstrations 20
    python benchmarks/few_demonstrations.py PickCube-v2 --demonstrations 20 --reverse 4

Four commands of manikin, one after the other:

1. ``collect``: the task's expert shows a few episodes. ``--demos`` takes a recording of your own instead.
2. ``train sac --demos``: a teacher learns from them and from the sparse reward, which is success alone. With
   ``--reverse`` its episodes begin along the demonstrations.
3. ``collect --policy``: the teacher plays other episodes. Only its successes are kept.
4. ``train ALGORITHM --demos``: a policy imitates these.

The result has the success of teacher and student on the same held-out episodes, and how many episodes were kept.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import arguments, command, write

from manikin.cli import main as manikin
from manikin.data.recording.read import EpisodeFile
from manikin.env.state.provenance import versions
from manikin.learn.run.page import summary_of
from manikin.learn.run.train import CHECKPOINT
from manikin.machine import machine

OTHER = 100_000  # first seed of the teacher's episodes, apart from those of the expert


def run(*words: object) -> None:
    """A command of manikin that has to succeed."""
    if code := manikin([str(word) for word in words]):
        raise SystemExit(f"manikin {words[0]} ended with {code}")


def episodes_in(recording: Path) -> int:
    with EpisodeFile(recording) as file:
        return len(file)


def learned(folder: Path, what: Sequence[object], steps: int, learn: Sequence[object]) -> None:
    """A run that is trained and tested. One that has begun goes on, and one that has its report is left as it is."""
    if (folder / "report.json").exists():
        return
    begun = (folder / CHECKPOINT).exists()
    words = ["--resume", folder] if begun else [*what, "--out", folder]
    run("train", *words, "--steps", steps, *learn)


def brief(folder: Path) -> dict[str, Any]:
    """What a run reached."""
    found = summary_of(folder)
    return {"steps": found["steps"], "recipe_hash": found["recipe_hash"], "tested": found["tested"]}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("task", nargs="?", default="PickCube-v2")
    parser.add_argument("--demos", type=Path, help="a recording with observations, in place of the expert's")
    parser.add_argument("--demonstrations", type=int, default=20, help="episodes that the expert shows")
    parser.add_argument("--reverse", type=int, default=0, help="control steps by which starts move back; 0: no (RLPD)")
    parser.add_argument("--teacher-steps", type=int, default=300_000, help="control steps")
    parser.add_argument("--episodes", type=int, default=1000, help="that the teacher plays")
    parser.add_argument("--algorithm", default="diffusion", choices=("bc", "diffusion", "act"))
    parser.add_argument("--student-steps", type=int, default=20_000, help="gradient steps")
    parser.add_argument("--seed", type=int, default=9351)
    parser.add_argument("--threads", type=int, default=0, help="of the physics; never changes a result")
    parser.add_argument(
        "--keep", type=Path, help="folder in which recordings and runs stay; finished steps are not run again"
    )
    args = parser.parse_args()
    settings, imitation = [f"reverse={args.reverse}"] if args.reverse else [], []
    plays = None  # the teacher
    if args.quick:
        args.task, args.demonstrations, args.episodes = "PushCube-v2", 3, 6
        args.teacher_steps, args.student_steps = 160, 4
        horizon = 60 if args.reverse else 10  # an episode begins in a demonstration that ends in time
        settings += ["env.num_envs=8", f"env.horizon={horizon}", "start_steps=16", "updates=1"]
        imitation = ["updates=2", "env.horizon=10"]
        plays = "ppo-PushCube-v2"  # who learned for a moment succeeds nowhere
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        few, many, teacher, student = (folder / name for name in ("few.h5", "many.h5", "teacher", "student"))
        if args.demos:
            shutil.copy(args.demos, few)
        threads = ["--threads", args.threads] if args.threads else []
        # where a recording was interrupted, only what is missing is played
        record = ["--resume", "--observations", "--keep", "success", "--num-envs", min(64, args.episodes)]
        learn = ["--seed", args.seed, "--minutes", 0, "--pictures", 0, *threads]
        if not args.demos:
            run("collect", args.task, "--episodes", args.demonstrations, *record, "--out", few)
        more = ["--set", *settings] if settings else []
        learned(teacher, ["sac", args.task, "--demos", few, *more], args.teacher_steps, learn)
        words = ["--policy", plays or teacher, "--episodes", args.episodes, "--seed", OTHER, "--no-states"]
        run("collect", args.task, *words, *record, "--out", many)
        more = ["--set", f"demonstrations={args.episodes}", *imitation]
        learned(student, [args.algorithm, args.task, "--demos", many, *more], args.student_steps, learn)
        found = {
            "command": command(),
            "versions": versions(),
            "machine": {**machine(), "cores": os.cpu_count()},
            "few": episodes_in(few),
            "teacher": brief(teacher),
            "played": args.episodes,
            "kept": episodes_in(many),
            "student": brief(student),
        }
    write(found, args.out)


if __name__ == "__main__":
    main()
