"""A picture policy for a real arm: success of its checkpoints over training, in simulation and in a shifted "reality".

    python benchmarks/sim_to_real.py --folder runs/sim-to-real
    python benchmarks/sim_to_real.py --choose runs/distill/policy.safetensors    # in other settings than the suite's
    python docs/sim_to_real.py                                                   # then fills docs/sim-to-real.md

A teacher is trained by ``manikin train ppo GraspCube-v1``, a student by ``manikin train distill GraspCube-v1``; the
network of every validation is kept. Each of these plays 64 starts of the task as declared (simulation), and the first
``--episodes`` starts of each setting of the suite ``sim-to-real`` (reality). The network that validated best plays all
starts of the suite, as ``manikin eval sim-to-real --policy runs/sim-to-real/student`` does. Episodes end at success.
What the folder and the file have already is not made again.

Recipes can be compared in the settings of ``CHOOSING``, which neither training nor the suite draws.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import resource
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from common import arguments, write

from manikin.env.make import make
from manikin.env.state.provenance import versions
from manikin.eval.evaluation import evaluate
from manikin.eval.protocol import Protocol, load_protocol, task_of
from manikin.eval.runner import run_episodes
from manikin.eval.stats import wilson
from manikin.learn.common.teacher import Teacher
from manikin.learn.run.recipe import Recipe, recipe_for
from manikin.learn.run.record import read_progress
from manikin.learn.run.train import CHECKPOINT, LOG, PROTOCOL, State, train
from manikin.machine import machine
from manikin.policy.trained import FILE, LAST, PROGRAM, trained_policy

OUT = Path(__file__).parent / "results" / "sim_to_real.json"
KEPT = "checkpoints"
TASK = "GraspCube-v1"
SIMULATED = 64  # starts of the task as declared
CHOOSING: dict[str, dict[str, Any]] = {
    "teal-robot": {"robot_tint": (-0.7, -0.1, 0.45), "robot_colour": 0.0},
    "dark-robot": {"robot_tint": (-0.5, -0.45, 0.0), "robot_colour": 0.0},
    "pink-robot": {"robot_tint": (0.0, -0.45, 0.42), "robot_colour": 0.0},
    "camera-back": {"camera_offset": (0.0, 0.05, 0.0)},
    "camera-rolled": {"camera_turn": (0.0, 0.05, -0.06)},
    "narrower-lens": {"camera_fovy": (-0.09, -0.05)},
    "lit-from-behind": {"light_turn": (-0.9, -0.6)},
    "pale-table": {"table_low": (0.92, 0.92, 0.92), "table_high": (1.0, 1.0, 1.0)},
    "red-table": {"table_low": (0.7, 0.0, 0.0), "table_high": (0.9, 0.15, 0.15)},
    "four-things": {"distractors": 4},
    "smaller": {"side": (0.0135, 0.015)},
}
"""Settings in which recipes may be compared."""
EARLIER: dict[str, Any] = {
    "runs": [
        {
            "run": "teacher by `ppo`, open jaws and `gamma=0.9`, 1,728,000 steps (seed 1)",
            "rate": 0.969,
            "low": 0.95,
            "high": 0.981,
            "of": "512 starts",
            "cpu_minutes": 6.2,
        },
        {
            "run": "teacher, `manikin train bc GraspCube-v1 --seed 1`",
            "rate": 0.977,
            "low": 0.959,
            "high": 0.987,
            "of": "512 starts",
            "cpu_minutes": 1.1,
        },
        {
            "run": "the same with `pushes=0.06`",
            "rate": 0.947,
            "low": 0.924,
            "high": 0.964,
            "of": "512 starts",
            "cpu_minutes": 1.1,
        },
        {
            "run": "student of the `bc` teacher, 32,000 of 48,000 steps (seed 1)",
            "rate": 0.09,
            "of": "64 validation starts",
            "cpu_minutes": 4,
        },
        {
            "run": "student of the `ppo` teacher, 16,000 steps, `lead=5000 noise=0.05` (seed 2)",
            "rate": 0.016,
            "of": "64 validation starts",
            "cpu_minutes": 2,
        },
        {
            "run": "the same with `updates=24 shift=2` and a loss for what the teacher observes, 38,400 steps",
            "rate": 0.0,
            "of": "64 validation starts",
            "cpu_minutes": 7,
        },
        {
            "run": "student of the `ppo` teacher, 144,000 steps, on plain tables, arm N(0, 0.08) (seed 1)",
            "rate": 0.73,
            "low": 0.69,
            "high": 0.767,
            "of": "512 starts",
            "cpu_minutes": 20,
        },
        {
            "run": "the same on textured tables, arm N(0, 0.13), two things, with `jitter=0.2`",
            "rate": 0.625,
            "of": "64 validation starts",
            "cpu_minutes": 22,
        },
        {
            "run": "the same with three things, arm within 0.35, `saturation=0.8`, 288,000 steps",
            "rate": 0.734,
            "of": "64 validation starts",
            "cpu_minutes": 42,
        },
    ],
    "suites": {
        "144,000 steps, plain tables, arm N(0, 0.08)": {
            "rate": 0.723,
            "low": 0.697,
            "high": 0.746,
            "settings": {
                "camera-right": 83,
                "camera-left": 73,
                "camera-high": 83,
                "camera-tilted": 67,
                "wider-lens": 91,
                "dim": 91,
                "bright": 86,
                "lit-from-elsewhere": 89,
                "wooden-table": 12,
                "white-tiles": 47,
                "dark-table": 67,
                "distractors": 77,
                "grey-robot": 3,
                "slippery": 83,
                "rough": 91,
                "heavy": 91,
                "light": 80,
                "small": 66,
                "large": 77,
                "soft-servos": 91,
            },
        },
        "144,000 steps, textured tables, arm N(0, 0.13), `jitter`": {
            "rate": 0.752,
            "low": 0.727,
            "high": 0.774,
            "settings": {
                "camera-right": 77,
                "camera-left": 81,
                "camera-high": 84,
                "camera-tilted": 84,
                "wider-lens": 78,
                "dim": 83,
                "bright": 89,
                "lit-from-elsewhere": 83,
                "wooden-table": 73,
                "white-tiles": 56,
                "dark-table": 73,
                "distractors": 61,
                "grey-robot": 11,
                "slippery": 81,
                "rough": 92,
                "heavy": 91,
                "light": 80,
                "small": 56,
                "large": 80,
                "soft-servos": 89,
            },
        },
    },
}
"""Runs of former recipes, as they were measured: success in percent of each of the suite's settings, 64 starts."""
HANDED = 40  # control steps after which a teacher takes over
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
    protocol = load_protocol(folder / PROTOCOL)
    if quick:
        protocol = dataclasses.replace(protocol, seeds=protocol.seeds[:2])
    tested = evaluate(protocol, trained_policy(folder)).tasks[0].results
    return {
        "recipe": f"{algorithm} {TASK}",
        "recipe_hash": recipe.hash,
        "seed": seed,
        "cpu_seconds": round(rows[-1]["cpu_seconds"], 1),
        "validated": [[int(row["steps"]), round(row["validated_success"], 4)] for row in rows],
        "tested": rate(sum(one.success_once for one in tested), len(tested)),
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


def handed_over(teacher: Path, student: Path, suite: Protocol, word: str) -> tuple[int, int]:
    """In how many starts of a setting the student has no success in :data:`HANDED` steps, and how many of these the
    teacher then ends with one."""
    seeds = suite.seeds_of(word)
    options = dataclasses.replace(suite.make_options(word, num_envs=len(seeds)), terminate=False)
    with contextlib.closing(make(task_of(word), options=options)) as env:
        pupil = trained_policy(student)(env)
    with contextlib.closing(make(task_of(word), options=dataclasses.replace(options, observe="rgb+state"))) as env:
        leader = Teacher(str(teacher), env)
        observation, _ = env.reset(seed=seeds)
        pupil.reset(torch.ones(len(seeds), dtype=torch.bool))
        solved = torch.zeros(len(seeds), dtype=torch.bool)
        left = len(seeds)
        for step in range(env.horizon):
            led = step >= min(HANDED, env.horizon // 2)
            told = leader(observation) if led else pupil.act(observation, [""] * len(seeds))[:, 0]
            observation, _, _, _, info = env.step(told)
            solved |= info["success"]
            left = left if led else int((~solved).sum())
        return left, left - int((~solved).sum())


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


def chosen_by(
    policy: Path, suite: Protocol, *, episodes: int = SIMULATED, names: Sequence[str] = tuple(CHOOSING)
) -> dict[str, Any]:
    """Success of a network in the settings of :data:`CHOOSING`."""
    words = {f"{TASK}#{name}": CHOOSING[name] for name in names}
    other = dataclasses.replace(suite, name="choosing", tasks=tuple(words), config=words)
    found = {word.partition("#")[2]: successes(policy, other, word, episodes) for word in words}
    return {"episodes": episodes, "mean": round(sum(found.values()) / len(found) / episodes, 4), "settings": found}


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--folder", type=Path, default=Path("runs/sim-to-real"), help="of the teacher and the student")
    parser.add_argument("--seed", type=int, default=1, help="of both trainings")
    parser.add_argument("--episodes", type=int, default=8, help="starts of each of the suite's settings")
    parser.add_argument("--choose", type=Path, nargs="+", help="play these networks in other settings, and no more")
    args = parser.parse_args()
    out = args.out or (None if args.quick else OUT)
    suite = load_protocol("sim-to-real")
    if args.choose:
        write({str(policy): chosen_by(policy, suite) for policy in args.choose}, args.out)
        return
    if args.quick:
        two, args.episodes = suite.tasks[:2], 1
        few = {word: suite.config[word] for word in two}
        suite = dataclasses.replace(suite, tasks=two, config=few, renderer="rays", horizon=8)
    done = json.loads(out.read_text()) if out is not None and out.exists() else {}
    done |= {"command": "python benchmarks/sim_to_real.py", "versions": versions(), "machine": machine()}
    done["earlier"] = EARLIER
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
        done["handed_over"] = {
            word.partition("#")[2]: handed_over(args.folder / "teacher", best, suite, word) for word in suite.tasks
        }
        done["choosing"] = chosen_by(best, suite, **({"episodes": 1, "names": ["smaller"]} if args.quick else {}))
        write(done, out)


if __name__ == "__main__":
    main()
