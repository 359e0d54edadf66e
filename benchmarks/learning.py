"""From the command to a tested checkpoint: success on held-out episodes, and the time it took.

    python benchmarks/learning.py                                   # all recipes that have a target, three seeds each
    python benchmarks/learning.py --run ppo:PickCube-v2 --seeds 9351

Each run is the command ``manikin train``, in a process of its own. ``rlpd:TASK`` and ``rfcl:TASK`` are ``sac`` with 100
demonstrations of the task's expert and the sparse reward; to collect them is part of their time. ``clone:TASK`` is
``bc``, and then ``ppo --from`` that: its time is that of both and of the expert's demonstrations, all else is that of
``ppo``. ``seconds`` is the wall-clock of a run, from its start to its end, with setup, validation and test;
``cpu_seconds`` the processor time of all its threads and children. On a machine that does nothing else with two cores,
half of the latter is a lower bound of the former. A run of ``distill`` has a teacher, and one with ``begin_from`` a
policy that it begins from; that policy is trained first, its time is part of both, and ``teacher`` or ``begin_from``
says how much. ``loop`` is the training loop alone: its wall-clock, and what that was spent on.

``--finished`` takes in what ``manikin train`` left in a folder: its processor time is that of the loop alone, added up
over ``--resume``, and that of the run it needs first where the file has it; to collect demonstrations is not part of
it. A run that is not tested yet has its validation alone.

The target of a rate holds where the lower end of the tested interval is above it. That of a return holds where the mean
return in the validations of the last tenth of a run is as large. The file is written after every run; what it has
already is not run again, unless ``--again``.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from common import arguments, parsed

from manikin.env.state.provenance import versions
from manikin.eval.evaluation import Evaluation
from manikin.learn.run.page import summary_of
from manikin.learn.run.recipe import Recipe, recipe_for
from manikin.learn.run.record import read_progress
from manikin.machine import machine
from manikin.policy.shipped import shipped_policies
from manikin.policy.trained import read_about

OUT = Path(__file__).parent / "results" / "learning.json"
SEEDS = (9351, 4796, 1788)


class Target(NamedTuple):
    """What a run has to reach: at least so high a share of successes, or so large a return, in so many minutes."""

    least: float
    minutes: float
    of: str = "success"


TARGETS = {
    "ppo:PushCube-v2": Target(0.95, 8),
    "ppo:PullCube-v2": Target(0.95, 8),
    "ppo:PickCube-v2": Target(0.95, 20),
    "ppo:LiftPegUpright-v2": Target(0.95, 30),
    "ppo:StackCube-v2": Target(0.80, 60),
    "sac:PickCube-v2": Target(0.95, 30),
    "sac:Lift-v2": Target(425, 120, "return"),  # as robosuite's benchmark, with its 1.25 million steps
    "sac:Door-v2": Target(452, 120, "return"),
    "rlpd:PickCube-v2": Target(0.95, 20),
    "rfcl:PegInsertionSide-v2": Target(0.80, 90),
    "distill:PushCube-v2": Target(0.90, 40),  # with the time of its teacher
    "distill:PickCube-v2": Target(0.90, 40),
}
LAST = 0.1  # of a run, whose validations make its final return
DEMONSTRATED: dict[str, list[str]] = {"rlpd": [], "rfcl": ["reverse=4"]}  # settings of sac
CLONED = "clone"  # bc, then ppo
TRAINS = {**dict.fromkeys(DEMONSTRATED, "sac"), CLONED: "ppo"}  # where a run is not named after its algorithm


def manikin(*words: str) -> None:
    """A command, in a process of its own."""
    subprocess.run([sys.executable, "-m", "manikin.cli", *words], check=True)


def limits(run: str, *, loaded: bool, most: float | None = None) -> list[str]:
    """Minutes of a run, where they are not the recipe's: those of an idle machine, or ``most``."""
    if most is not None:
        return ["--minutes", f"{most:g}"]
    name, task = run.split(":")
    algorithm, demos = TRAINS.get(name, name), name in DEMONSTRATED
    minutes = TARGETS[run].minutes if run in TARGETS else recipe_for(algorithm, task, demos=demos)[0].minutes
    if loaded:
        return ["--minutes", f"{max(240, 4 * minutes):g}"]
    return [] if name == CLONED or recipe_for(algorithm, task, demos=demos)[1] else ["--minutes", f"{minutes:g}"]


def named(about: Mapping[str, Any]) -> str:
    """What a run of this file is called here."""
    settings = Recipe.from_toml(about["recipe"], source="the recipe of a policy").settings
    shown = "rfcl" if settings.get("reverse") else "rlpd"
    return f"{shown if settings.get('demos') else about['algorithm']}:{about['task']}"


def needed_first(run: str) -> tuple[str, str, int] | None:
    """What the policy is to a run that it needs first (``teacher`` or ``begin_from``), the run that makes that policy
    again, and its seed; None without one that comes with manikin."""
    name, task = run.split(":")
    if name in TRAINS:
        return None
    settings = recipe_for(name, task)[0].settings
    for setting in ("teacher", "begin_from"):
        if (policy := shipped_policies().get(settings.get(setting, ""))) is not None:
            about = read_about(policy)
            return setting, f"{about['algorithm']}:{about['task']}", int(about["seed"])
    return None


def with_first(one: Mapping[str, Any], first: Mapping[str, Any], setting: str) -> dict[str, Any]:
    """A run with the time of the one that made the policy which ``setting`` names, which both were measured with."""
    times = {name: first[name] for name in ("seconds", "cpu_seconds")}
    whole = {
        name: None if value is None or one[name] is None else round(one[name] + value, 1)
        for name, value in times.items()
    }
    return {**one, **whole, setting: times}


def final_return(curve: Sequence[Sequence[float]], share: float = LAST) -> float | None:
    """Mean return in the validations of the last ``share`` of a run, at least of the last one; None without any."""
    if not curve:
        return None
    first = (1 - share) * curve[-1][0]
    last = [one[3] for one in curve if one[0] > first]
    return round(sum(last) / len(last), 1)


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
    algorithm = TRAINS.get(name, name)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary if keep is None else keep) / f"{name}-{task}-{seed}"
        what, shown, demos = [algorithm, task], list[str](), None
        if name in DEMONSTRATED:
            demos = Path(temporary) / "demos.h5"
            shown = ["--demos", str(demos), *(["--set", *DEMONSTRATED[name]] if DEMONSTRATED[name] else [])]
        clone = folder.with_name(f"bc-{task}-{seed}") if name == CLONED else None
        if clone is not None:
            shown = ["--from", str(clone)]
        if quick:
            recipe = (recipe or recipe_for(algorithm, task, demos=demos is not None)[0]).replace(
                validate_every=1, validation_episodes=4, test_episodes=4
            )
        if recipe is not None:
            what = ["--recipe", str(Path(temporary) / "recipe.toml")]
            Path(what[1]).write_text(recipe.to_toml())
        words = ["train", *what, *shown, "--seed", str(seed), "--out", str(folder), "--pictures", "0", *more]
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        if demos is not None:
            manikin("collect", task, "--episodes", "100", "--keep", "success", "--observations", "--out", str(demos))
        if clone is not None:
            manikin("train", "bc", task, "--seed", str(seed), "--out", str(clone), "--no-test")
        manikin(*words)
        seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = sum(getattr(after, name) - getattr(before, name) for name in ("ru_utime", "ru_stime"))
        return record(folder, None if loaded else seconds, cpu)


def once(result: Evaluation) -> dict[str, float]:
    """Success once of an evaluation of one task, with its interval."""
    rate = result.tasks[0].rate("once")
    return {"rate": round(rate.estimate, 4), "low": round(rate.low, 4), "high": round(rate.high, 4)}


def record(folder: Path, seconds: float | None, cpu_seconds: float) -> dict[str, Any]:
    """What is kept of a finished run."""
    found = summary_of(folder)
    curve = [
        [
            int(row["steps"]),
            round(row["seconds"], 1),
            *(round(row[f"validated_{name}"], 4) for name in ("success", "return")),
        ]
        for row in read_progress(folder / "progress.csv")
        if "validated_success" in row
    ]
    return {
        "seconds": None if seconds is None else round(seconds, 1),
        "cpu_seconds": round(cpu_seconds, 1),
        "steps": found["steps"],
        "tested": found["tested"] and {k: round(v, 4) for k, v in found["tested"].items()},
        "validated": round(found["best"], 4),
        "recipe_hash": found["recipe_hash"],
        "loop": {
            "seconds": round(found["seconds"], 1),
            "spent": {name: round(taken, 1) for name, taken in found["spent"].items()},
        },
        "curve": curve,
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--run", nargs="+", default=list(TARGETS), help="ALGORITHM:TASK, default all with a target")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--threads", type=int, default=0, help="of the physics; never changes a result")
    parser.add_argument("--loaded", action="store_true", help="other work runs here: keep processor time, not seconds")
    parser.add_argument("--minutes", type=float, help="wall-clock limit of a run, default that of its target")
    parser.add_argument("--keep", type=Path, help="folder in which the runs stay")
    parser.add_argument("--again", action="store_true", help="also what the file has already")
    parser.add_argument(
        "--finished", nargs="+", type=Path, default=[], help="folders of runs to take in; trains nothing"
    )
    args = parsed(parser, OUT)
    more = ["--threads", str(args.threads)] if args.threads else []
    if args.quick:
        args.run, args.seeds = ["ppo:PushCube-v2"], [1]
        more += ["--steps", "160", "--set", "env.num_envs=8", "env.horizon=10"]
    done = json.loads(args.out.read_text()) if args.out.exists() else {}
    done |= {"command": "python benchmarks/learning.py", "versions": versions()}
    done["machine"] = {**machine(), "cores": os.cpu_count()}
    runs = done.setdefault("runs", {})
    for folder in args.finished:
        about = read_about(folder / "policy.safetensors")
        spent = read_progress(folder / "progress.csv")[-1]["cpu_seconds"]
        run, seed = named(about), str(about["seed"])
        one, needs = record(folder, None, spent), needed_first(run)
        if needs is not None and (first := runs.get(needs[1], {}).get(str(needs[2]))) is not None:
            one = with_first(one, first, needs[0])
        runs.setdefault(run, {})[seed] = one
        print(run, seed, json.dumps({k: v for k, v in runs[run][seed].items() if k != "curve"}), flush=True)
        args.out.write_text(json.dumps(done, indent=1) + "\n")
    if args.finished:
        return

    def measured(run: str, seed: int, *, again: bool) -> dict[str, Any]:
        seeds = runs.setdefault(run, {})
        if str(seed) in seeds and not again:
            return dict(seeds[str(seed)])
        needs = needed_first(run)
        first = None if needs is None else measured(*needs[1:], again=False)
        words = [*limits(run, loaded=args.loaded, most=args.minutes), *more]
        one = train(run, seed, words, loaded=args.loaded, keep=args.keep, quick=args.quick)
        seeds[str(seed)] = one if needs is None or first is None else with_first(one, first, needs[0])
        args.out.write_text(json.dumps(done, indent=1) + "\n")
        print(run, seed, json.dumps({k: v for k, v in seeds[str(seed)].items() if k != "curve"}), flush=True)
        return dict(seeds[str(seed)])

    for run in args.run:
        for seed in args.seeds:
            measured(run, seed, again=args.again)


if __name__ == "__main__":
    main()
