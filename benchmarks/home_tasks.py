"""How far do the experts come in the long tasks of homes, and where do they fail? On the CPU, one thread.

    python benchmarks/home_tasks.py                            # 100 episodes of each task; hours
    python benchmarks/home_tasks.py --task TidyHouse-v1 --seeds 24 --navigation teleported

An episode ends with the first subtask that fails. Progressive completion after k subtasks is the share of episodes that
did the first k. The optimistic bound is the product of the rates that the kinds of subtasks have on their own. The
published best of each task stands beside it: the product of the published rates, which its authors call optimistic.
The file is written after every apartment; a run that was stopped goes on where it was.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import arguments, parsed

import manikin
from manikin.data.recording.labels import Tracker
from manikin.env.state.provenance import versions
from manikin.eval.stats import completion_rates, optimistic_bound, wilson
from manikin.policy.choices import policy_maker
from manikin.tasks.home.labels import subtask_labels
from manikin.tasks.home.scene import LAYOUTS

OUT = Path(__file__).parent / "results" / "home_tasks.json"
TASKS = ("TidyHouse-v1",)
PUBLISHED = {"TidyHouse-v1": 0.0449}  # RL-Per, training scenes, teleported; derived from Table 1


def play(task: str, seeds: list[int], navigation: str, policy: str) -> dict[str, dict[str, Any]]:
    """What became of each episode, by seed: subtasks that were done, and of each what became of it."""
    n, config = len(seeds), {"navigation": navigation}
    env = manikin.make(task, n, config=config, autoreset="disabled", terminate=False, reward="none", observe="state")
    observation, _ = env.reset(seed=seeds)
    actor = policy_maker(policy)(env)
    actor.reset(torch.arange(n))
    kinds = [step.kind for step in env.parts()[0].env.task.steps()]
    trackers = {kind: Tracker(subtask_labels(kind), n) for kind in set(kinds)}
    told: list[list[dict[str, Any]]] = [[] for _ in seeds]
    running, steps = np.ones(n, bool), np.zeros(n, int)
    while running.any():
        action = actor.act(observation, env.instruction)[:, 0]
        observation, _, _, truncated, info = env.step(action, active=running)
        flags = {name: value.numpy() for name, value in info.items() if isinstance(value, torch.Tensor)}
        flags |= {"success": flags["subtask_done"], "fail": np.zeros(n, bool)}
        at = flags["subtask"].astype(int)
        for row in np.flatnonzero(running).tolist():
            kind, steps[row] = kinds[at[row]], steps[row] + 1
            trackers[kind].step(np.array([row]), flags)
            failed = bool(info["fail"][row] | truncated[row])
            if flags["subtask_done"][row] or failed:
                mode = subtask_labels(kind).label(trackers[kind].story(row))
                told[row].append({"kind": kind, "mode": mode, "steps": int(steps[row]), "done": not failed})
                trackers[kind].reset([row])
                steps[row] = 0
            running[row] = not (failed or info["success"][row])
    env.close()
    return {str(seed): {"subtasks": one} for seed, one in zip(seeds, told, strict=True)}


def summary(task: str, episodes: dict[str, Any], navigation: str) -> dict[str, Any]:
    """Rates with Wilson intervals (95 %), and what failed how often."""
    words = [s.kind for s in manikin.make(task, 1, config={"navigation": navigation}, reward="none").task.steps()]
    done = [sum(one["done"] for one in episode["subtasks"]) for episode in episodes.values()]
    tried = [one for episode in episodes.values() for one in episode["subtasks"]]
    alone = {kind: [one["done"] for one in tried if one["kind"] == kind] for kind in dict.fromkeys(words)}
    rates = {kind: wilson(sum(found), len(found)) for kind, found in alone.items() if found}
    failed = Counter((one["kind"], one["mode"]) for one in tried if not one["done"])
    completion = completion_rates(done, len(words))
    estimates = {kind: rate.estimate for kind, rate in rates.items()}
    return {
        "episodes": len(episodes),
        "successes": sum(k == len(words) for k in done),
        "success": [round(v, 4) for v in (completion[-1].estimate, completion[-1].low, completion[-1].high)],
        "completion": [round(one.estimate, 4) for one in completion],
        "subtasks": {
            kind: {"tried": len(alone[kind]), "rate": [round(v, 4) for v in (rate.estimate, rate.low, rate.high)]}
            for kind, rate in rates.items()
        },
        "optimistic_bound": round(optimistic_bound(words, estimates)[-1], 4) if len(estimates) == len(alone) else None,
        "published_optimistic_bound": PUBLISHED[task],
        "failures": {f"{kind}: {mode}": count for (kind, mode), count in failed.most_common()},
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--task", nargs="+", default=TASKS)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--navigation", nargs="+", default=["driven", "teleported"])
    parser.add_argument("--policy", default="expert", help="or a file skills.toml")
    args = parsed(parser, OUT)
    if args.quick:
        args.seeds, args.navigation = 1, ["teleported"]
    torch.set_num_threads(1)
    found = json.loads(args.out.read_text()) if args.out.exists() else {}
    found |= {"command": "python benchmarks/home_tasks.py", "versions": versions()}
    found["machine"] = f"{platform.machine()}, {os.cpu_count()} cores"
    for task in args.task:
        for navigation in args.navigation:
            entry = found.setdefault("entries", {}).setdefault(f"{task}, {navigation}, {args.policy}", {})
            episodes = entry.setdefault("by_seed", {})
            for apartment in range(len(LAYOUTS)):
                seeds = [k for k in range(apartment, args.seeds, len(LAYOUTS)) if str(k) not in episodes]
                if not seeds:
                    continue
                began = time.perf_counter()
                episodes |= play(task, seeds, navigation, args.policy)
                entry |= summary(task, episodes, navigation)
                entry["seconds"] = round(entry.get("seconds", 0.0) + time.perf_counter() - began, 1)
                entry["by_seed"] = dict(sorted(episodes.items(), key=lambda item: int(item[0])))
                args.out.write_text(json.dumps(found, indent=1) + "\n")
                print(task, navigation, {k: v for k, v in entry.items() if k != "by_seed"}, flush=True)


if __name__ == "__main__":
    main()
