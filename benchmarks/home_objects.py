"""How do the experts of the home tasks do with each object, drawer and fridge, and how hard do they press? One thread.

    python benchmarks/home_objects.py                # a quarter of an hour; the file is written after every object
    python benchmarks/home_objects.py --only objects/close/fridge --again
    python docs/homes_tables.py                      # then: the tables of docs/homes-tables.md

Every episode is played for its 200 control steps with no limit of force. A limit changes nothing in the physics: it
only says from which step on nothing counts. So what each limit would have said is worked out afterwards, from the same
episodes, see :func:`judged`. The parts:

    objects     the expert with nine objects, one in each episode, by its seed; with drawers, and with fridges
    validation  the same in the built-in apartments 8 to 11
    graded      the expert with faults: noise on its actions, with nine objects and drawers; of Place also a gripper
                that opens by itself. Counted as published, and with no limit and, of Place, the whole surface as the
                goal

Seeds are 0, 1, 2, ..., which spread over the apartments.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from common import ROOT, arguments, parsed

import manikin
from manikin.data.recording.labels import Tracker
from manikin.env.interface import BatchEnv
from manikin.env.registry import task_class
from manikin.env.state.provenance import versions
from manikin.env.task import Task
from manikin.homes.episodes import scene_names
from manikin.homes.objects import OBJECT_SETS
from manikin.policy.choices import policy_maker
from manikin.tasks.home import in_apartments
from manikin.tasks.home.labels import subtask_labels
from manikin.tasks.home.predicates import succeeds
from manikin.tasks.home.rules import RULES

RESULTS = ROOT / "benchmarks" / "results"
OUT, PUSH = RESULTS / "home_objects.json", RESULTS / "home_push.json"
TASKS = {"pick": "HomePick-v1", "place": "HomePlace-v1", "open": "HomeOpen-v1", "close": "HomeClose-v1"}
MECHANISMS = ("drawer", "fridge")
VALIDATION = "validation"
NO_LIMIT = 1e9  # [N]
NOISE = (0.1, 0.2, 0.4)
DROP = 0.01  # chance per control step that the gripper opens
SEEDS, MANY = 32, 320  # of most parts, and of those with nine objects
NINE = OBJECT_SETS["tidy_house"].targets


def parts() -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Of each part of the result: its place, the subtask, who acts, and options of the task."""
    for first in ("objects", VALIDATION):
        for kind in ("pick", "place"):
            yield f"{first}/{kind}/nine", kind, "expert", {}
        yield f"{first}/place/013_apple", "place", "expert", {"objects": ("013_apple",)}
        names = {"drawer": ("024_bowl",), "fridge": ("013_apple",)}  # as in SetTable
        for where, objects in names.items():
            yield f"{first}/pick {where}/{objects[0]}", "pick", "expert", {"objects": objects, "where": where}
        for kind in ("pick", "place"):  # as in PrepareGroceries, each of the objects that fit there
            yield f"{first}/{kind} fridge/all", kind, "expert", {"where": "fridge"}
        for kind in ("open", "close"):
            for name in MECHANISMS:
                yield f"{first}/{kind}/{name}", kind, "expert", {"mechanism": name}
    for noise in (0.0, *NOISE):
        for kind in TASKS:
            yield f"graded/{kind}/noise={noise:g}", kind, f"graded:noise={noise:g}", {}
    yield f"graded/place/drop={DROP:g}", "place", f"graded:drop={DROP:g}", {}


def limits(kind: str) -> dict[str, float]:
    """Limits of force of a subtask [N]: the published one, the one of the reference push, and none."""
    calibrated = json.loads(PUSH.read_text())["limits"][kind]["calibrated"]
    return {"published": RULES[kind].force_limit, "calibrated": float(calibrated), "none": NO_LIMIT}


def play(
    task: str | type[Task], kind: str, policy: str, config: Mapping[str, Any], seeds: list[int]
) -> dict[str, np.ndarray]:
    """Flags of every step, (steps, N) each, of episodes that nothing ends; of Place also ``in_zone``: success where the
    goal is the whole surface. Of Pick and Place ``choice`` (N,): which of its objects each has."""
    options = {"autoreset": "disabled", "terminate": False, "reward": "none", "observe": "state"}
    env = manikin.make(task, len(seeds), config={**config, "force_limit": NO_LIMIT}, **options)
    observation, _ = env.reset(seed=seeds)
    actor = policy_maker(policy)(env)
    actor.reset(torch.arange(len(seeds)))
    told: dict[str, list[np.ndarray]] = {}
    choice = np.zeros(len(seeds), int)
    for part in env.parts() if kind in ("pick", "place") else ():
        choice[part.places] = part.env.h.thing.choice.numpy()[part.rows]
    for _ in range(RULES[kind].horizon):
        observation, _, _, _, info = env.step(actor.act(observation, env.instruction)[:, 0])
        flags = {name: value.numpy().copy() for name, value in info.items() if _is_flag(value, len(seeds))}
        if kind == "place":
            flags["in_zone"] = in_zone(env)
        for name, value in flags.items():
            told.setdefault(name, []).append(value)
    env.close()
    return {"choice": choice, **{name: np.stack(values) for name, values in told.items()}}


def _is_flag(value: Any, n: int) -> bool:
    return isinstance(value, torch.Tensor) and value.shape == (n,)


def in_zone(env: BatchEnv) -> np.ndarray:
    """(N,) bool: success of Place, were the whole surface its goal."""
    found = np.zeros(env.num_envs, bool)
    for part in env.parts():
        task, h = part.env.task, part.env.h
        done = succeeds("place", task.seen(h), task.goal(h), shape="zone", force_limit=NO_LIMIT)
        found[part.places] = done.numpy()[part.rows]
    return found


def judged(kind: str, flags: Mapping[str, np.ndarray], limit: float) -> list[dict[str, Any]]:
    """What each of N episodes that were played without a limit of force is with one.

    Args:
        kind: the subtask.
        flags: (steps, N) each, ``success`` without a limit and ``robot_force`` [N] added up among them, and what
            events ask for.
        limit: [N].

    Returns:
        the mode by the rules of MS-HAB's code, the step of the first success, counted from 1, or None, and whether the
        last step was one.
    """
    over = flags["robot_force"] >= np.float32(limit)
    success = flags["success"] & ~over
    steps, n = over.shape
    tracker = Tracker(subtask_labels(kind, force_limit=limit), n)
    flags = {name: value for name, value in flags.items() if value.shape == over.shape}
    for step in range(steps):
        now = {name: value[step] for name, value in flags.items()}
        tracker.step(np.arange(n), {**now, "success": success[step], "fail": over[step]})
    return [
        {
            "mode": tracker.labels.label(tracker.story(row)),
            "first": int(success[:, row].argmax()) + 1 if success[:, row].any() else None,
            "at_end": bool(success[-1, row]),
        }
        for row in range(n)
    ]


def told(
    kind: str, flags: Mapping[str, np.ndarray], seeds: list[int], names: Sequence[str] = ()
) -> dict[str, dict[str, Any]]:
    """Of each episode, by seed: what it is at each limit; its forces [N]: the sum at its first success and at the end,
    and the largest of a step; of Place, whether it succeeds with a zone as its goal; the object, if there are names."""
    force = flags["robot_force"].astype(np.float64)
    largest = np.diff(force, axis=0, prepend=0.0).max(0)
    by_limit = {name: judged(kind, flags, limit) for name, limit in limits(kind).items()}
    found: dict[str, dict[str, Any]] = {}
    for row, seed in enumerate(seeds):
        first = by_limit["none"][row]["first"]
        found[str(seed)] = {
            **{name: [one[row]["mode"], one[row]["first"], one[row]["at_end"]] for name, one in by_limit.items()},
            "force_at_success": None if first is None else round(float(force[first - 1, row]), 1),
            "force": round(float(force[-1, row]), 1),
            "largest": round(float(largest[row]), 1),
        }
        if "in_zone" in flags:
            found[str(seed)]["in_zone"] = bool(flags["in_zone"][:, row].any())
        if names:
            found[str(seed)]["object"] = names[flags["choice"][row]]
    return found


def text(done: Mapping[str, Any]) -> str:
    """The file: an entry a line, by their order in :func:`parts`."""
    places = [place for place, *_ in parts() if place in done["entries"]]
    lines = ",\n".join(f"  {json.dumps(place)}: {json.dumps(done['entries'][place])}" for place in places)
    head = json.dumps({name: value for name, value in done.items() if name != "entries"}, indent=1)
    return f'{head[:-2]},\n "entries": {{\n{lines}\n }}\n}}\n'


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument(
        "--only", nargs="+", default=[""], help="what the places of parts begin with, such as objects/pick"
    )
    parser.add_argument("--again", action="store_true", help="also what the file has already")
    args = parsed(parser, OUT)
    args.only = ["objects/close/drawer"] if args.quick else args.only
    torch.set_num_threads(1)
    done = json.loads(args.out.read_text()) if args.out.exists() else {}
    done |= {"command": "python benchmarks/home_objects.py", "versions": versions()}
    done["machine"] = f"{platform.machine()}, {os.cpu_count()} cores"
    entries = done.setdefault("entries", {})
    for place, kind, who, config in parts():
        wanted = place.startswith(tuple(args.only))
        if not wanted or (place in entries and not args.again):
            continue
        nine = place.endswith("/nine")
        began, seeds = time.process_time(), list(range(1 if args.quick else MANY if nine else SEEDS))
        task = (
            in_apartments(task_class(TASKS[kind]), *scene_names("val")) if place.startswith(VALIDATION) else TASKS[kind]
        )
        by_seed = told(kind, play(task, kind, who, config, seeds), seeds, NINE if nine else ())
        entries[place] = {"policy": who, "episodes": by_seed, "cpu_seconds": round(time.process_time() - began, 1)}
        args.out.write_text(text(done))
        won = sum(one["published"][1] is not None for one in by_seed.values())
        print(place, f"{won} of {len(seeds)}", f"{entries[place]['cpu_seconds']} s", flush=True)


if __name__ == "__main__":
    main()
