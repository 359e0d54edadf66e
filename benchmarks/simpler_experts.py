"""The scripted experts on SIMPLER's suites: success at the end of every trial, per task and setting.

    python benchmarks/simpler_experts.py --out benchmarks/results/simpler_experts.json    # about 40 minutes of one core
    python docs/simpler_experts.py                                                        # then fills docs/simpler.md

Every trial of a suite is played once, by the suite's protocol. An expert reads the state and no pictures, so none are
drawn; ``--pictures`` draws them as ``manikin eval`` does, which changes no result and takes ten times as long.
``kinds`` says what the objects are: "stand-ins" are primitives, as without MANIKIN_DATA; "meshes" are the original's,
and need it. ``--again`` keeps what the file of results has of the other suites.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from common import arguments, command, write

from manikin.assets.paths import data_root
from manikin.eval.evaluation import evaluate
from manikin.eval.protocol import Protocol, load_protocol, setting_of, task_of
from manikin.eval.variants import vary
from manikin.policy.expert import ExpertPolicy

OBJECT = Protocol(
    name="GooglePickObject-v1",
    tasks=("GooglePickObject-v1",),
    seeds=tuple(range(25)),
    success="at_end",
    config={"GooglePickObject-v1": {"trials": "grid"}},
)
SUITES = ("simpler_google", "simpler_widowx", OBJECT.name, "simpler_google_matched", "simpler_google_aggregated")
SUITES = (*SUITES, "simpler_widowx_matched")
VARIED = {"simpler_google_aggregated": "simpler"}
BOTH = (OBJECT.name, "simpler_google", "simpler_widowx")  # with stand-ins, too


def protocol_of(suite: str, *, pictures: bool, quick: bool) -> Protocol:
    """What is played."""
    protocol = OBJECT if suite == OBJECT.name else load_protocol(suite)
    if suite in VARIED:
        protocol = vary(protocol, VARIED[suite])
    if not pictures:
        protocol = dataclasses.replace(protocol, observe="state", renderer=None)
    if quick:
        task = protocol.tasks[0]
        protocol = dataclasses.replace(
            protocol,
            tasks=(task,),
            seeds=(0,),
            episodes={},
            config={task: protocol.config[task]},
            variants={task: protocol.variants[task]} if protocol.variants else {},
            horizon=2,
        )
    return protocol


def shown(suite: str) -> str:
    """The command that evaluates it, pictures and all."""
    if suite == OBJECT.name:
        return ""
    variants = f" --variants {VARIED[suite]}" if suite in VARIED else ""
    return f"manikin eval {suite}{variants} --policy expert"


def played(suite: str, kind: str, options: Any) -> dict[str, Any]:
    """Every trial of a suite."""
    protocol, began = protocol_of(suite, pictures=options.pictures, quick=options.quick), time.process_time()
    result = evaluate(protocol, ExpertPolicy, num_envs=options.num_envs, on_task=lambda task: print(suite, task))
    result.raise_if_unhealthy()
    tasks = [
        {
            "task": task_of(task.task),
            "setting": setting_of(task.task),
            "trials": len(task.results),
            "solved": sum(r.success_at_end for r in task.results),
            "failed": [r.seed for r in task.results if not r.success_at_end],
        }
        for task in result.tasks
    ]
    return {
        "suite": suite,
        "kinds": kind,
        "evaluates": shown(suite),
        "pictures": options.pictures,
        "cpu_s": round(time.process_time() - began),
        "trials": sum(task["trials"] for task in tasks),
        "solved": sum(task["solved"] for task in tasks),
        "tasks": tasks,
    }


@contextmanager
def objects(kind: str) -> Iterator[None]:
    """Meshes where MANIKIN_DATA has them, or stand-ins everywhere."""
    root = os.environ.get("MANIKIN_DATA")
    if kind == "stand-ins":
        os.environ.pop("MANIKIN_DATA", None)
    try:
        yield
    finally:
        if root is not None:
            os.environ["MANIKIN_DATA"] = root


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--suite", action="append", choices=SUITES, help="only this one; may be repeated")
    parser.add_argument("--num-envs", type=int, default=16)
    parser.add_argument("--pictures", action="store_true", help="draw what a policy would see")
    parser.add_argument("--again", action="store_true", help="keep the other suites of --out")
    options = parser.parse_args()
    torch.set_num_threads(1)
    there = data_root() is not None and (data_root() / "simpler").is_dir()
    if not there and not options.quick:
        parser.error("set MANIKIN_DATA to a folder with simpler/ and menagerie/: the suites play with its meshes")
    chosen = [(suite, "stand-ins") for suite in BOTH] + ([(suite, "meshes") for suite in SUITES] if there else [])
    chosen = [one for one in chosen if options.suite is None or one[0] in options.suite]
    kept = []
    if options.again and options.out is not None and options.out.exists():
        before = json.loads(options.out.read_text())["suites"]
        kept = [entry for entry in before if (entry["suite"], entry["kinds"]) not in chosen]
    made = []
    for suite, kind in chosen:
        with objects(kind):
            made.append(played(suite, kind, options))
        entries = [*kept, *made]
        entries.sort(key=lambda entry: (SUITES.index(entry["suite"]), entry["kinds"] != "stand-ins"))
        write({"command": command(), "suites": entries}, options.out)


if __name__ == "__main__":
    main()
