"""Do demonstrations survive in another action space? Every core task's expert, converted to every controller.

    python benchmarks/conversion.py                                  # all of it, about half an hour on two cores
    python benchmarks/conversion.py --task PickCube-v2 --episodes 20
    python benchmarks/conversion.py --pairs                          # every controller to every other, on one task

For each task the expert's successful episodes are recorded with the task's own controller and converted with
``manikin.data.retarget.conversion``, as ``manikin replay FILE --control NAME`` does. What is counted: how many of them
still succeed, how many new steps a recorded one takes, and the residual after a step. The file is written after every
conversion, so that a run that was stopped goes on where it was.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import arguments, parsed

from manikin.data.recorder import Recorder
from manikin.data.recording.format import RESIDUALS
from manikin.data.recording.read import read_episodes
from manikin.data.retarget.conversion import retarget
from manikin.env.make import make
from manikin.env.state.provenance import versions
from manikin.eval.runner import run_episodes
from manikin.eval.stats import wilson
from manikin.machine import processor
from manikin.policy.expert import ExpertPolicy

OUT = Path(__file__).parent / "results" / "conversion.json"
TASKS = (
    *("PickCube-v2", "PushCube-v2", "PullCube-v2", "StackCube-v2"),
    *("PlaceSphere-v2", "LiftPegUpright-v2", "PegInsertionSide-v2"),
)
CONTROLS = (
    *("joint_pos", "joint_delta_pos", "joint_target_delta_pos", "joint_vel"),
    *("ee_pose", "ee_delta_pose", "ee_delta_pos", "ik_pose", "osc_pose", "osc_position"),
    *("joint_impedance:step=0.2", "joint_vel_pid", "joint_torque:step=20"),
)


def demonstrations(task: str, episodes: int, folder: Path, first_seed: int = 0) -> Path:
    """The expert's first successful episodes from a seed on, with the task's own controller."""
    path = folder / f"{task}.h5"
    env = make(task, 25, autoreset="disabled")
    recorder = Recorder(env, path, policy="expert", keep="success")
    run_episodes(env, ExpertPolicy(env), range(first_seed, first_seed + 2 * episodes), observers=[recorder])
    recorder.close()
    env.close()
    return path


def converted(path: Path, control: str, episodes: int, out: Path) -> dict[str, Any] | None:
    """What came out of a recording's successful episodes; None where it has none."""
    with read_episodes(path) as file:
        numbers = [n for n in file.numbers if file.attributes(n)["success_once"]][:episodes]
    if not numbers:
        return None
    began = time.perf_counter()
    report = retarget(path, out, control=control, numbers=numbers, num_envs=25)
    then, now = report.success
    interval = wilson(now, then)
    residual = {name: [float(f"{v:.3g}") for v in report.quantiles(name)] for name in RESIDUALS}
    return {
        "episodes": then,
        "success": now,
        "low": round(interval.low, 4),
        "high": round(interval.high, 4),
        "steps": round(report.steps, 3),
        "commands": report.commands,
        "residual": residual,
        "seconds": round(time.perf_counter() - began, 1),
        "failed": [e.number for e in report.episodes if e.success[0] and not e.success[1]],
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--task", nargs="*", default=TASKS)
    parser.add_argument("--control", nargs="*", default=CONTROLS)
    parser.add_argument("--episodes", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0, help="other than 0 with --out, to try other episodes")
    parser.add_argument("--pairs", action="store_true", help="from every controller, each made of the demonstrations")
    parser.add_argument("--fresh", action="store_true", help="measure again what the file has")
    options = parsed(parser, OUT)
    if options.quick:
        options.task, options.control, options.episodes = ["PickCube-v2"], ["joint_pos"], 2
    found: dict[str, Any] = json.loads(options.out.read_text()) if options.out.exists() else {}
    pairs = " --pairs" if options.pairs else ""
    others = f" --seed {options.seed}" if options.seed else ""
    found |= {
        f"command{pairs}": f"python benchmarks/conversion.py --episodes {options.episodes}{others}{pairs}",
        "versions": versions(),
        "machine": processor("cpu"),
    }
    part = found.setdefault("pairs" if options.pairs else "demonstrations", {})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for task in options.task:
            sources = {"": demonstrations(task, options.episodes, folder, options.seed)}
            if options.pairs:
                for control in options.control:
                    sources[control] = folder / f"{task}-{control}.h5"
                    converted(sources[""], control, options.episodes, sources[control])
                del sources[""]
            for source, path in sources.items():
                table = part.setdefault(task, {})
                table = table.setdefault(source, {}) if source else table
                for control in options.control:
                    if control in table and not options.fresh:
                        continue
                    out = folder / "new.h5"
                    one = converted(path, control, options.episodes, out)
                    if one is None:
                        print(f"{task} {source} -> {control}: nothing to convert", flush=True)
                        continue
                    table[control] = one
                    out.unlink()
                    tool = 1e3 * np.array(one["residual"]["tool"])
                    words = f"{task} {source} -> {control}: {one['success']}/{one['episodes']}"
                    print(f"{words}, {one['steps']:.2f} steps, tool {tool.round(2)} mm, {one['seconds']} s", flush=True)
                    options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
