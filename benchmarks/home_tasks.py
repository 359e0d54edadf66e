"""How far do the experts come in the long tasks of homes, and where do they fail? On the CPU, one thread.

    python benchmarks/home_tasks.py                            # 100 episodes of each task; hours
    python benchmarks/home_tasks.py --task TidyHouse-v1 --seeds 24 --navigation teleported
    python benchmarks/home_tasks.py --task TidyHouse-v1 --seeds 63 --navigation teleported --replicacad
    python benchmarks/home_tasks.py --seeds 32 --navigation teleported --written train
    python benchmarks/home_tasks.py --seeds 32 --navigation teleported --simplified
    python benchmarks/home_tasks.py --film tidy.mp4 --navigation teleported    # one episode, and tidy.png, a strip
    python benchmarks/home_tasks.py --task SetTable-v1 --film table.mp4

An episode ends with the first subtask that fails. Progressive completion after k subtasks is the share of episodes that
did the first k. The optimistic bound is the product of the rates of the kinds of subtasks. Beside it stands the product
of the rates that MS-HAB published. ``--replicacad`` plays in the scenes of ``benchmarks/home_scenes.py`` in place of
the built-in apartments; it needs MANIKIN_DATA/replicacad. ``--written`` plays the generator's episodes of a split, with
all objects; a seed is then an episode's number. ``--simplified`` plays MS-HAB's simplified tasks: without a limit of
force, and anywhere on a goal's surface is at the goal. The file is written after every apartment; a run that was
stopped goes on where it was.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import arguments, parsed
from home_scenes import scanned

import manikin
from manikin.data.recording.labels import Tracker
from manikin.env.registry import task_class
from manikin.env.state.provenance import versions
from manikin.env.task import Task
from manikin.eval.stats import completion_rates, optimistic_bound, wilson
from manikin.homes.episodes import SPLITS, HomeEpisode, generate
from manikin.policy.choices import policy_maker
from manikin.render import make_renderer, tile, write_png, write_video
from manikin.render.files.caption import caption
from manikin.spec.camera import CameraSpec
from manikin.tasks.home import in_apartments
from manikin.tasks.home.labels import subtask_labels
from manikin.tasks.home.scene import LAYOUTS
from manikin.tasks.home.written import in_episodes

OUT = Path(__file__).parent / "results" / "home_tasks.json"
SIMPLIFIED = {"force_limit": 1e9, "goal_shape": "zone"}
EVERY = 3  # control steps of a picture of the film, which is so many times faster
# RL-Per, training scenes, teleported; derived from Table 1
PUBLISHED = {"TidyHouse-v1": 0.0449, "PrepareGroceries-v1": 0.0644, "SetTable-v1": 0.1919}


def play(task: str | type[Task], seeds: list[int], config: dict[str, Any], policy: str) -> dict[str, dict[str, Any]]:
    """What became of each episode, by seed: subtasks that were done, and of each what became of it."""
    n = len(seeds)
    env = manikin.make(task, n, config=config, autoreset="disabled", terminate=False, reward="none", observe="state")
    observation, _ = env.reset(seed=seeds)
    actor = policy_maker(policy)(env)
    actor.reset(torch.arange(n))
    kinds = [step.kind for step in env.parts()[0].env.task.steps()]
    labels = {kind: subtask_labels(kind, force_limit=config.get("force_limit")) for kind in set(kinds)}
    trackers = {kind: Tracker(one, n) for kind, one in labels.items()}
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
                mode = labels[kind].label(trackers[kind].story(row))
                told[row].append({"kind": kind, "mode": mode, "steps": int(steps[row]), "done": not failed})
                trackers[kind].reset([row])
                steps[row] = 0
            running[row] = not (failed or info["success"][row])
    env.close()
    return {str(seed): {"subtasks": one} for seed, one in zip(seeds, told, strict=True)}


def film(task: str | type[Task], seed: int, config: dict[str, Any], policy: str, out: Path) -> None:
    """A film of one episode, seen from above the robot, with the subtasks as captions; and eight pictures of it."""
    env = manikin.make(task, 1, config=config, autoreset="disabled", terminate=False, reward="none")
    observation, _ = env.reset(seed=[seed])
    actor = policy_maker(policy)(env)
    actor.reset(torch.arange(1))
    inner, renderer = env.parts()[0].env, make_renderer()
    count, frames = len(inner.task.steps()), []
    for step in range(env.horizon):
        number = min(int(inner.h.subtask.value[0]) + 1, count)
        if step % EVERY == 0:
            x, y, z = inner.h.robot.root_pose[0, :3].tolist()
            view = CameraSpec(name="film", pos=(x, y - 0.9, 4.0), target=(x, y, z + 0.5), fovy=0.75)
            image = renderer.rgb(*inner.model_data(0), view, width=480, height=360)
            frames.append(caption(image, [f"{number} of {count}: {env.instruction[0]}"]))
        action = actor.act(observation, env.instruction)[:, 0]
        observation, _, _, _, info = env.step(action)
        if info["success"][0] or info["fail"][0]:
            break
    frames += [caption(image, ["all done" if info["success"][0] else "failed"])] * 20
    write_video(out, frames, env.control_hz)
    chosen = np.linspace(0, len(frames) - 1, 8).astype(int)
    write_png(out.with_suffix(".png"), tile([frames[k] for k in chosen], 4))
    renderer.close()
    env.close()


def summary(task: str, episodes: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """Rates with Wilson intervals (95 %), and what failed how often."""
    words = [s.kind for s in task_class(task)(config, layout=LAYOUTS[0]).steps()]
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


def groups(task: str, args: Any) -> Iterator[tuple[str | type[Task], dict[int, int]]]:
    """The task in one apartment after the other, and the seeds that play there: by which number each is kept."""
    if args.written:
        kind = task_class(task)
        by_layout: dict[str, list[HomeEpisode]] = {}
        for episode in generate(kind.sequence, range(args.seeds), split=args.written):
            by_layout.setdefault(in_episodes(kind, [episode]).layouts[0], []).append(episode)
        for some in by_layout.values():
            yield in_episodes(kind, some), {seed: one.number for seed, one in enumerate(some)}
        return
    layouts = scanned() if args.replicacad else LAYOUTS
    for k, layout in enumerate(layouts):
        seeds = range(k, args.seeds, len(layouts))
        yield in_apartments(task_class(task), layout) if args.replicacad else task, {seed: seed for seed in seeds}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--task", nargs="+", default=list(PUBLISHED))
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--navigation", nargs="+", default=["driven", "teleported"])
    parser.add_argument("--targets", type=int, default=0, help="only the first so many objects; by default all")
    parser.add_argument("--policy", default="expert", help="or a file skills.toml")
    parser.add_argument("--replicacad", action="store_true", help="in scenes of ReplicaCAD")
    parser.add_argument("--written", choices=SPLITS, help="the generator's episodes of this split")
    parser.add_argument("--simplified", action="store_true", help="no limit of force, and zones as goals")
    parser.add_argument("--film", type=Path, help="write a film of the first seed to this file, and count nothing")
    parser.add_argument("--seed", type=int, default=0, help="of the film")
    args = parsed(parser, OUT)
    options = {"targets": args.targets, **(SIMPLIFIED if args.simplified else {})}
    if args.film is not None:
        shown: str | type[Task] = args.task[0]
        if args.written:
            kind = task_class(args.task[0])
            shown = in_episodes(kind, generate(kind.sequence, [args.seed], split=args.written))
        film(shown, args.seed, {"navigation": args.navigation[0], **options}, args.policy, args.film)
        return
    if args.quick:
        args.seeds, args.navigation, options["targets"] = 1, ["teleported"], 1
    torch.set_num_threads(1)
    found = json.loads(args.out.read_text()) if args.out.exists() else {}
    found |= {"command": "python benchmarks/home_tasks.py", "versions": versions()}
    found["machine"] = f"{platform.machine()}, {os.cpu_count()} cores"
    for task in args.task:
        for navigation in args.navigation:
            words = [task, navigation, args.policy, *([f"{n} targets"] if (n := options["targets"]) else [])]
            words += [word for word in ("replicacad", "simplified") if getattr(args, word)]
            name = ", ".join([*words, *([f"written {args.written}"] if args.written else [])])
            entry = found.setdefault("entries", {}).setdefault(name, {})
            episodes, config = entry.setdefault("by_seed", {}), {"navigation": navigation, **options}
            for alone, seeds in groups(task, args):
                waiting = {seed: str(number) for seed, number in seeds.items() if str(number) not in episodes}
                if not waiting:
                    continue
                began = time.perf_counter()
                played = play(alone, list(waiting), config, args.policy)
                episodes |= {waiting[int(seed)]: one for seed, one in played.items()}
                entry |= summary(task, episodes, config)
                entry["seconds"] = round(entry.get("seconds", 0.0) + time.perf_counter() - began, 1)
                entry["by_seed"] = dict(sorted(episodes.items(), key=lambda item: int(item[0])))
                args.out.write_text(json.dumps(found, indent=1) + "\n")
                print(task, navigation, {k: v for k, v in entry.items() if k != "by_seed"}, flush=True)


if __name__ == "__main__":
    main()
