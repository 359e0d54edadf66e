"""The experts of the home tasks in ReplicaCAD's training scenes, beside MS-HAB's Table 1. On the CPU, one thread.

    python benchmarks/home_scenes.py                              # 21 scenes, 210 seeds of each subtask
    python benchmarks/home_scenes.py --subtasks pick --seeds 21
    python benchmarks/home_scenes.py --validation --seeds 200     # in the built-in apartments 8 to 11; no data needed

It needs MANIKIN_DATA/replicacad, but for ``--validation``. The scenes are every third of the 63 with which MS-HAB
trains. Episode k has seed k, and is in scene k modulo their number. ``no_place`` are scenes in which nothing can be
reached. The file is written after every scene; what it has already is not played again.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from common import arguments, parsed

import manikin
from manikin.env.registry import task_class
from manikin.env.state.provenance import versions
from manikin.errors import SceneError
from manikin.eval.runner import run_episodes
from manikin.eval.stats import wilson
from manikin.homes.episodes import scene_names
from manikin.machine import machine
from manikin.policy.expert import ExpertPolicy
from manikin.tasks.home import in_apartments

OUT = Path(__file__).parent / "results" / "home_scenes.json"
EVERY = 3  # of the training scenes one


class Subtask(NamedTuple):
    """What is played: a task with options."""

    task: str
    config: dict[str, Any]


SUBTASKS = {
    "navigate": Subtask("HomeNavigate-v1", {}),
    "pick": Subtask("HomePick-v1", {}),
    "place": Subtask("HomePlace-v1", {}),
    "pick drawer": Subtask("HomePick-v1", {"where": "drawer"}),
    "pick fridge": Subtask("HomePick-v1", {"where": "fridge"}),
    "place drawer": Subtask("HomePlace-v1", {"where": "drawer"}),
    "place fridge": Subtask("HomePlace-v1", {"where": "fridge"}),
    "open drawer": Subtask("HomeOpen-v1", {"mechanism": "drawer"}),
    "open fridge": Subtask("HomeOpen-v1", {"mechanism": "fridge"}),
    "close drawer": Subtask("HomeClose-v1", {"mechanism": "drawer"}),
    "close fridge": Subtask("HomeClose-v1", {"mechanism": "fridge"}),
}


def scanned() -> tuple[str, ...]:
    """The scenes that are played in."""
    return scene_names("train", "replicacad")[::EVERY]


def play(subtask: Subtask, scene: str, seeds: list[int]) -> dict[str, list[Any]]:
    """Of each seed the apartment, success at least once, and what became of it."""
    task = in_apartments(task_class(subtask.task), scene)
    env = manikin.make(task, len(seeds), config=subtask.config, autoreset="disabled", threads=1)
    run = run_episodes(env, ExpertPolicy(env), seeds)
    env.close()
    return {str(one.seed): [scene, bool(one.success_once), one.mode] for one in run.results}


def summary(episodes: dict[str, list[Any]]) -> dict[str, Any]:
    """The rate with its Wilson interval (95 %), what became of the others, and the rate of each scene."""
    won = [one for one in episodes.values() if one[1]]
    rate = wilson(len(won), len(episodes))
    failed = Counter(mode for _, success, mode in episodes.values() if not success)
    tried = Counter(scene for scene, *_ in episodes.values())
    alone = Counter(scene for scene, *_ in won)
    return {
        "episodes": len(episodes),
        "successes": len(won),
        "rate": [round(v, 4) for v in (rate.estimate, rate.low, rate.high)],
        "failed": dict(failed.most_common()),
        "scenes": {scene: f"{alone[scene]} of {count}" for scene, count in sorted(tried.items())},
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--subtasks", nargs="+", default=list(SUBTASKS), choices=list(SUBTASKS), metavar="SUBTASK")
    parser.add_argument("--seeds", type=int, default=210)
    parser.add_argument("--validation", action="store_true", help="in built-in apartments of the validation split")
    parser.add_argument("--again", action="store_true", help="also what the file has already")
    args = parsed(parser, OUT)
    scenes = scene_names("val") if args.validation else scanned()
    part, key, words = (
        ("validation", "command_validation", " --validation --seeds 200")
        if args.validation
        else ("subtasks", "command", "")
    )
    if args.quick:
        scenes, args.seeds, args.subtasks = scenes[:1], 1, args.subtasks[:1]
    done: dict[str, Any] = json.loads(args.out.read_text()) if args.out.exists() else {}
    done |= {key: f"python benchmarks/home_scenes.py{words}", "versions": versions(), "machine": machine()}
    for name in args.subtasks:
        entry = done.setdefault(part, {}).setdefault(name, {"episodes": {}})
        if args.again:
            entry["episodes"] = {}
        for k, scene in enumerate(scenes):
            seeds = [seed for seed in range(k, args.seeds, len(scenes)) if str(seed) not in entry["episodes"]]
            if seeds and scene not in entry.get("no_place", {}):
                try:
                    entry["episodes"] |= play(SUBTASKS[name], scene, seeds)
                except SceneError as error:
                    entry.setdefault("no_place", {})[scene] = str(error)
                entry["summary"] = summary(entry["episodes"])
                args.out.write_text(json.dumps(done, indent=1) + "\n")
        print(name, json.dumps({k: v for k, v in entry["summary"].items() if k != "scenes"}), flush=True)


if __name__ == "__main__":
    main()
