"""Does a task's scripted expert still succeed where objects slide as the recorded ones did? (docs/fidelity.md)

    python benchmarks/friction.py        # four tasks, three frictions; some minutes on two cores

The sliding friction is that of everything that moves freely, on the table and on one another. What a finger's pad holds
has the pad's friction, which stays. Success is success at some step of the episode, of the seeds 0, 1, 2, ...
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from common import arguments, command, parsed
from parity import play_expert

import manikin
from manikin import Part, SceneBuilder
from manikin.env.registry import task_class
from manikin.env.state.provenance import versions
from manikin.env.task import Task
from manikin.eval.stats import wilson
from manikin.machine import machine

OUT = Path(__file__).parent / "results" / "friction.json"
TASKS = ("PushCube-v2", "PullCube-v2", "PickCube-v2", "StackCube-v2")
FRICTIONS = (0.25, 0.5, 1.0)


def sliding(kind: type[Task], friction: float) -> type[Task]:
    """A task whose free objects have another sliding friction."""

    class Sliding(kind):  # type: ignore[valid-type, misc]
        def scene(self, b: SceneBuilder) -> Any:
            handles = super().scene(b)
            for part in b.handles:
                if isinstance(part, Part) and part.kind == "dynamic":
                    for name in part.geom_names:
                        b.spec.geom(name).friction[0] = friction
            return handles

    return Sliding


def rate(task: str, friction: float, seeds: int) -> dict[str, Any]:
    env = manikin.Env(
        sliding(task_class(task), friction),
        num_envs=min(32, seeds),
        autoreset="disabled",
        terminate=False,
        reward="none",
        horizon=10**6,
    )
    first_success, _ = play_expert(env, seeds)
    env.close()
    won = sum(step > 0 for step in first_success)
    interval = wilson(won, seeds)
    return {"successes": won, "low": round(interval.low, 4), "high": round(interval.high, 4)}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=64)
    args = parsed(parser, OUT)
    tasks, frictions = TASKS, FRICTIONS
    if args.quick:
        tasks, frictions, args.seeds = TASKS[:1], FRICTIONS[:1], 2
    torch.set_num_threads(1)
    done: dict[str, Any] = {
        "command": command(),
        "seeds": args.seeds,
        "versions": versions(),
        "machine": machine("cpu"),
    }
    done["tasks"] = {task: {} for task in tasks}
    for task in tasks:
        for friction in frictions:
            done["tasks"][task][f"{friction:g}"] = rate(task, friction, args.seeds)
            print(task, friction, done["tasks"][task][f"{friction:g}"], flush=True)
    args.out.write_text(json.dumps(done, indent=2) + "\n")


if __name__ == "__main__":
    main()
