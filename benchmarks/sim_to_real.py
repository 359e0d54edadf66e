"""A picture policy for a real arm: success of its checkpoints over training, in simulation and in a shifted "reality".

    python benchmarks/sim_to_real.py --folder runs/sim-to-real

A teacher is trained by ``manikin train ppo GraspCube-v1``, a student by ``manikin train distill GraspCube-v1``; the
network of every validation is kept. Each of these plays 64 starts of the task as declared (simulation), and the first
``--episodes`` starts of each setting of the suite ``sim-to-real`` (reality). The network that validated best plays all
starts of the suite, as ``manikin eval sim-to-real --policy runs/sim-to-real/student`` does. Episodes end at success.
What the folder and the file have already is not made again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import resource
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common import arguments, write

from manikin.env.make import make
from manikin.env.state.provenance import machine, versions
from manikin.eval.protocol import Protocol, load_protocol, task_of
from manikin.eval.runner import run_episodes
from manikin.eval.stats import wilson
from manikin.learn.run.recipe import Recipe, recipe_for
from manikin.learn.run.record import read_progress
from manikin.learn.run.train import CHECKPOINT, LOG, State, train
from manikin.policy.trained import FILE, LAST, PROGRAM, trained_policy

OUT = Path(__file__).parent / "results" / "sim_to_real.json"
KEPT = "checkpoints"
TASK = "GraspCube-v1"
SIMULATED = 64  # starts of the task as declared
SMALL: dict[str, dict[str, Any]] = {
    "ppo": {"steps": 320, "validate_every": 1, "env": {"num_envs": 16}, "settings": {"num_steps": 10}},
    "distill": {"steps": 64, "validate_every": 2, "env": {"num_envs": 4, "horizon": 8, "renderer": "rays"}},
}


def trained(algorithm: str, folder: Path, *, seed: int, quick: bool, **settings: str) -> dict[str, Any]:
    """Run a recipe, or go on with it; copy the network of every validation. Returns what the run says of itself."""
    recipe: Recipe = recipe_for(algorithm, TASK)[0].replace(settings=settings)
    if quick:
        recipe = recipe.replace(validation_episodes=2, **SMALL[algorithm])

    def keep(state: State, numbers: Mapping[str, float]) -> None:
        if "validated_success" in numbers:
            (folder / KEPT).mkdir(parents=True, exist_ok=True)
            shutil.copy(folder / LAST, folder / KEPT / f"{state.steps:08d}.safetensors")
            print(f"{algorithm}, {state.steps:,} steps: {100 * numbers['validated_success']:.1f} %", flush=True)

    if not (folder / PROGRAM).exists():  # the last file of a run
        resume = (folder / CHECKPOINT).exists()
        train(recipe, folder=folder, seed=seed, threads=1, resume=resume, on_iteration=keep, say=print)
    rows = [row for row in read_progress(folder / LOG) if "validated_success" in row]
    return {
        "recipe": f"{algorithm} {TASK}",
        "recipe_hash": recipe.hash,
        "seed": seed,
        "cpu_seconds": round(rows[-1]["cpu_seconds"], 1),
        "validated": [[int(row["steps"]), round(row["validated_success"], 4)] for row in rows],
    }


def successes(policy: Path, protocol: Protocol, word: str, episodes: int | None) -> int:
    """Successes among the first episodes of a setting, or all of them."""
    seeds = protocol.seeds_of(word)[:episodes]
    options = protocol.make_options(word, num_envs=min(len(seeds), 64))
    env = make(task_of(word), options=dataclasses.replace(options, terminate=True))
    try:
        run = run_episodes(env, trained_policy(policy)(env), seeds)
        return sum(one.success_once for one in run.results)
    finally:
        env.close()


def rate(count: int, episodes: int) -> dict[str, float]:
    """A success rate with its 95 % interval."""
    interval = wilson(count, episodes)
    low, high = round(interval.low, 4), round(interval.high, 4)
    return {"rate": round(count / episodes, 4), "low": low, "high": high, "episodes": episodes}


def played(policy: Path, suite: Protocol, episodes: int) -> dict[str, Any]:
    """Success of a checkpoint in simulation and in reality."""
    began = _cpu_seconds()
    declared = dataclasses.replace(suite, tasks=(TASK,), config={})
    simulated = successes(policy, declared, TASK, min(SIMULATED, episodes * len(suite.tasks)))
    by_setting = {word.partition("#")[2]: successes(policy, suite, word, episodes) for word in suite.tasks}
    return {
        "simulation": rate(simulated, min(SIMULATED, episodes * len(suite.tasks))),
        "reality": rate(sum(by_setting.values()), episodes * len(suite.tasks)),
        "settings": by_setting,
        "cpu_seconds": round(_cpu_seconds() - began, 1),
    }


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--folder", type=Path, default=Path("runs/sim-to-real"), help="of the teacher and the student")
    parser.add_argument("--seed", type=int, default=1, help="of both trainings")
    parser.add_argument("--episodes", type=int, default=8, help="starts of each of the suite's settings")
    args = parser.parse_args()
    out = args.out or (None if args.quick else OUT)
    suite = load_protocol("sim-to-real")
    if args.quick:
        two, args.episodes = suite.tasks[:2], 1
        few = {word: suite.config[word] for word in two}
        suite = dataclasses.replace(suite, tasks=two, config=few, renderer="rays", horizon=8)
    done = json.loads(out.read_text()) if out is not None and out.exists() else {}
    done |= {"command": "python benchmarks/sim_to_real.py", "versions": versions(), "machine": machine()}
    done["teacher"] = trained("ppo", args.folder / "teacher", seed=args.seed, quick=args.quick)
    student = args.folder / "student"
    done["student"] = trained(
        "distill", student, seed=args.seed, quick=args.quick, teacher=str(args.folder / "teacher")
    )
    done["suite_hash"] = suite.hash
    points = done.setdefault("checkpoints", {})
    for policy in sorted((student / KEPT).glob("*.safetensors")):
        if (steps := str(int(policy.stem))) not in points:
            points[steps] = played(policy, suite, args.episodes)
            write(done, out)
    best = student / FILE
    if done.setdefault("suite", {}).get("policy") != (digest := hashlib.sha256(best.read_bytes()).hexdigest()):
        count = args.episodes if args.quick else None
        settings = {word.partition("#")[2]: successes(best, suite, word, count) for word in suite.tasks}
        done["suite"] = {"policy": digest, "episodes": count or len(suite.seeds), "settings": settings}
        write(done, out)


if __name__ == "__main__":
    main()
