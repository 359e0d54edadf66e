"""SIMPLER's WidowX suite on this machine: all trials of a task at once, beside one environment that plays them in turn.

    python benchmarks/simpler_speed.py --out benchmarks/results/simpler_speed.json    # to be run alone; half an hour
    python docs/simpler_speed.py                                                      # then fills docs/simpler.md
    python benchmarks/simpler_speed.py --look matched        # over the real photographs, with meshes: MANIKIN_DATA

The policy stands still. Each control step has 100 physics steps, a picture of 640 x 480 for every trial, success and
metrics. Seconds are those of reset and episode, of all four tasks; making the environments is apart. ``all`` has all
trials of a task at once. ``one`` is one environment that plays a share of them and stays open in between. ``states`` is
``all`` without pictures. They are measured in turn in every round, and who comes first changes; figures are medians
beside the least and the most.
"""

from __future__ import annotations

import os
import platform
import time
from typing import Any

import torch
from common import arguments, command, spread, write

import manikin
from manikin.env.registry import task_class
from manikin.sim.device import processors

TASKS = ("WidowXSpoonOnTowel-v2", "WidowXCarrotOnPlate-v2", "WidowXStackCube-v2", "WidowXEggplantInBasket-v2")
KINDS = ("all", "one", "states")
ROUNDS = 5
ORIGINAL = 3500  # physics steps per second of the original, one environment on an RTX 4090 (arXiv 2405.05941)
TIMES = 10  # as many times that are wanted on a GPU


def made(task: str, kind: str, num_envs: int, options: Any) -> tuple[manikin.Env, float]:
    """The task as one of the :data:`KINDS`, and the seconds that this took."""
    began = time.perf_counter()
    matched = options.look == "matched"
    env = manikin.make(
        task,
        num_envs=num_envs,
        robot="widowx_bridge:menagerie" if matched else "widowx_bridge",
        observe="state" if kind == "states" else "rgb",
        config={"trials": "grid", **({} if kind == "states" else {"look": options.look})},
        autoreset="disabled",
        device=options.device,
    )
    return env, time.perf_counter() - began


def played(env: manikin.Env, trials: list[int], steps: int | None) -> tuple[float, int]:
    """Seconds to play trials, as many at once as there are rows, and how many control steps they had together."""
    began, count = time.perf_counter(), 0
    for first in range(0, len(trials), env.num_envs):
        env.reset(seed=trials[first : first + env.num_envs])
        still = env.hold()
        for _ in range(steps or env.horizon):
            observation = env.step(still)[0]
            count += env.num_envs
    if isinstance(observation, dict):
        (camera,) = observation["cameras"].values()
        assert tuple(camera["rgb"].shape[1:3]) == (480, 640)
    if still.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - began, count


def rates(seconds: list[float], count: int) -> dict[str, Any]:
    """Seconds and control steps per second of the rounds."""
    return {"seconds": spread(seconds, 2), "steps_per_s": spread([count / one for one in seconds], 2)}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"at least {ROUNDS}")
    parser.add_argument("--share", type=int, default=3, help="trials of each task that one environment plays in turn")
    parser.add_argument(
        "--look", default="plain", choices=("plain", "matched"), help="what is behind robot and objects"
    )
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    if not options.quick and options.rounds < ROUNDS:
        parser.error(f"--rounds {options.rounds}: a figure is the median of at least {ROUNDS} rounds; or take --quick")
    torch.set_num_threads(1)
    steps = 2 if options.quick else None
    found: dict[str, dict[str, Any]] = {}
    took: dict[str, list[list[float]]] = {kind: [] for kind in KINDS}  # per task the rounds
    counts: dict[str, list[int]] = {kind: [] for kind in KINDS}
    for task in TASKS[: 1 if options.quick else None]:
        trials = list(range(2 if options.quick else task_class(task).trial_count))
        share = trials[:: max(1, len(trials) // options.share)][: options.share]
        envs, make_s = {}, {}
        for kind in KINDS:
            rows = 1 if kind == "one" else len(trials)
            envs[kind], make_s[kind] = made(task, kind, rows, options)
            played(envs[kind], trials[:rows], 1)  # the first picture costs what later ones do not
        seconds: dict[str, list[float]] = {kind: [] for kind in KINDS}
        count = {}
        for number in range(1 if options.quick else options.rounds):
            for k in range(len(KINDS)):
                kind = KINDS[(k + number) % len(KINDS)]
                spent, count[kind] = played(envs[kind], share if kind == "one" else trials, steps)
                seconds[kind].append(spent)
        drawn = {kind: env.rig.backend for kind, env in envs.items() if env.rig is not None}
        for env in envs.values():
            env.close()
        times = [(count["all"] / a) / (count["one"] / b) for a, b in zip(seconds["all"], seconds["one"], strict=True)]
        found[task] = {
            "trials": len(trials),
            "share": share,
            "make_s": {kind: round(value, 2) for kind, value in make_s.items()},
            "renderer": drawn["all"],
            **{kind: rates(seconds[kind], count[kind]) for kind in KINDS},
            "times_one": spread(times, 2),
        }
        for kind in KINDS:
            took[kind].append(seconds[kind])
            counts[kind].append(count[kind])
    suite: dict[str, Any] = {"trials": sum(entry["trials"] for entry in found.values())}
    whole = {kind: [sum(rounds) for rounds in zip(*took[kind], strict=True)] for kind in took}
    suite |= {kind: rates(whole[kind], sum(counts[kind])) for kind in whole}
    ratios = zip(whole["all"], whole["one"], strict=True)
    suite["times_one"] = spread([(sum(counts["all"]) / a) / (sum(counts["one"]) / b) for a, b in ratios], 2)
    first = task_class(TASKS[0])
    per_step = round(float(first.physics.hz or 0.0) / first.control_hz)
    rate = {name: round(per_step * value) for name, value in suite["all"]["steps_per_s"].items()}
    here = f"{platform.machine()}, {processors()} of {os.cpu_count()} cores"
    result = {
        "command": command(),
        "machine": options.device if options.device != "cpu" else here,
        "look": options.look,
        "device": options.device,
        "rounds": 1 if options.quick else options.rounds,
        "suite": suite,
        "physics_steps_per_s": rate,
        "wanted_on_gpu": {
            "physics_steps_per_s": TIMES * ORIGINAL,
            "measured": rate if options.device != "cpu" else None,
        },
        "tasks": found,
    }
    write(result, options.out)


if __name__ == "__main__":
    main()
