r"""How far manikin's own simulation is from the recordings of Collins et al. with some choices of settings, beside a
perfect replay, PyBullet, and settings that were searched for. Needs MANIKIN_DATA.

    python benchmarks/fidelity.py --out benchmarks/results/fidelity.json           # ten minutes on two cores
    python benchmarks/fidelity.py --out FILE --rows smooth pybullet                # only these rows anew
    python benchmarks/fidelity.py --out FILE --search calibrated=FOLDER            # what a search found

``calibrated`` and ``wide`` are what these commands found, both with ``--config examples/fidelity/rocking.toml --repeats
2``. A task is scored with what was found without it.

    manikin fidelity improve --candidates 60 --vary table_friction=0.1:0.6 hand_friction=0.1:1 hand_mass=0.9:1.1 \
        arm_mass=0.9:1.1 torque_scale=0.5:1.2 torque_scale_rolling=0.5:1.2 rolling_friction=1e-5:2e-4:log \
        time_constant=0.005:0.05:log
    manikin fidelity improve --candidates 48 --vary table_friction=0.1:0.6 hand_friction=0.1:1 hand_mass=0.3:1.2 \
        arm_mass=0.5:1.2 damping=0:3 armature=0.01:0.3:log time_constant=0.005:0.03:log

PyBullet's row needs PyBullet. What the file has already of other rows stays. Wall time depends on what else the machine
does; processor time less so.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import platform
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from common import ROOT, arguments, command, write
from scipy.optimize import least_squares

from manikin.fidelity import (
    Recording,
    fidelity_metrics,
    find_defects,
    masked,
    published,
    read_reality,
    subgroup_scores,
)
from manikin.fidelity.arm import wrist_pose
from manikin.fidelity.metrics.paper import final, moving_times, rolling_times
from manikin.fidelity.protocol import REPEATS, TASKS
from manikin.fidelity.recordings.defects import MASKED
from manikin.fidelity.recordings.recording import ARM
from manikin.fidelity.recordings.synthetic import averaged, synthetic_recording
from manikin.fidelity.simulation.run import run_tasks
from manikin.fidelity.simulation.settings import ROLLING, Settings, read_settings

FITTED: dict[str, Any] = {"cap": "fitted", "delay": "fitted", "times": "recorded"}
ALIGNED: dict[str, Any] = {**FITTED, "base_yaw": 3.31, "base_x": -0.0011, "base_y": 0.0162, "base_z": -0.0101}
FILES = {name: ROOT / "examples" / "fidelity" / f"{name}.toml" for name in ("smooth", "rocking")}
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "fitted": FITTED,
    "aligned": ALIGNED,
    "smooth": read_settings(FILES["smooth"]).changed,
    "released_hand": {**read_settings(FILES["smooth"]).changed, "hand": "released"},
    # as objects and robots of manikin's own tasks are: friction of spec/prop.py and of links, 100 Hz
    "library": {**ALIGNED, "table_friction": 1.0, "hand_friction": 1.0, "physics_hz": 100.0},
    "rocking": read_settings(FILES["rocking"]).changed,
}
ROLLED: dict[int, dict[str, Any]] = {
    5: {"rolling_friction": 1.5e-5},
    6: {"rolling_friction": 5.5e-5},
    7: {"rolling_friction": 1e-5, "time_constant": 0.04},
    8: {"rolling_friction": 1e-5, "time_constant": 0.02},
}
"""Task -> settings with which its object rolls as long as the recorded one; besides ``rocking``, and the base where the
recording of that task has it."""
SEARCHES = ("calibrated", "wide")
PARTS = ("settings", "searches", "replay", "pybullet", "rolled", "reality", "reality_left_out")
ROWS = (*SETTINGS, *SEARCHES, "replay", "pybullet", "rolled", "reality")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=ROWS)
    parser.add_argument("--search", nargs="+", default=[], metavar="NAME=FOLDER", help="of manikin fidelity improve")
    options = parser.parse_args()
    if options.quick:
        real = {task: averaged(synthetic_recording(task)) for task in (9,)}
        options.rows = ("default", "replay", "reality")
    else:
        folder = Path(os.environ["MANIKIN_DATA"]) / "collins2020" / "real_mean_10hz"
        real = {task: read_reality(folder, task) for task in TASKS}
    known = json.loads(options.out.read_text()) if options.out and options.out.exists() and not options.quick else {}
    result: dict[str, Any] = {"command": command(), "repeats": REPEATS} | {name: {} for name in PARTS} | known
    result |= {"published": published(), "machine": {"cores": os.cpu_count(), "processor": platform.machine()}}
    for word in options.search:
        name, _, where = word.partition("=")
        result["searches"][name] = searched(Path(where) / "improved.json")
    bench = Bench(real)
    for name in options.rows:
        print(name, flush=True)
        if name in SETTINGS:
            result["settings"][name] = bench.run(SETTINGS[name])
        elif name in SEARCHES and name in result["searches"]:
            result["settings"][name] = bench.run(**result["searches"][name]["settings"])
        elif name == "replay":
            result["replay"] = bench.scores({task: replayed(one) for task, one in real.items()})
        elif name == "pybullet" and importlib.util.find_spec("pybullet"):
            result["pybullet"] = bench.pybullet()
        elif name == "rolled":
            result["rolled"] = {str(task): bench.rolled(task, chosen) for task, chosen in ROLLED.items()}
        elif name == "reality":
            result["reality"] = {str(task): bench.measured(task) for task in real if task not in bench.foreign}
            result["reality_left_out"] = {str(task): said for task, said in bench.foreign.items()}
        if options.out:  # so that what was measured is not lost where a later row fails
            options.out.write_text(json.dumps(result, indent=2) + "\n")
    write(result, options.out)


def searched(path: Path) -> dict[str, Any]:
    """What a search found, without what it began with."""
    told = json.loads(path.read_text())
    start = told["start"]

    def found(settings: Mapping[str, Any]) -> dict[str, Any]:
        changed = Settings(**{k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()}).changed
        return {k: v if isinstance(v, str | bool) else rounded(v) for k, v in changed.items()}

    varied = sorted(told["profile"])
    held = {
        task: {k: found(one["settings"]).get(k, start[k]) for k in varied} for task, one in told["held_out"].items()
    }
    kept = ("loss", "profile", "candidates", "seconds", "processor_seconds", "candidates_per_minute", "masked")
    first = json.loads((path.parent / "candidates.jsonl").read_text().splitlines()[0])["line"]["search"]
    return {
        **{name: told[name] for name in kept},
        "asked": first["method"]["candidates"],
        "settings": {"chosen": found(told["settings"]), "held_out": held},
    }


def replayed(real: Recording) -> Recording:
    """A recording as twenty simulated repeats: its mean arm, and its objects."""
    one = real.cut(TASKS[real.task].rows)
    return dataclasses.replace(one, arm=np.repeat(one.arm, REPEATS, 0), objects=one.objects[:REPEATS], summary=False)


class Bench:
    """The recordings, as they are and masked. ``foreign`` has the tasks whose arm does not begin at home, with the
    defect: their means hold foreign repeats, so that they do not tell where the base stood."""

    def __init__(self, real: Mapping[int, Recording]) -> None:
        self.real = real
        found = {task: find_defects(one) for task, one in real.items()}
        self.seen = {task: masked(one, found[task], MASKED) for task, one in real.items()}
        self.foreign = {task: str(one) for task, all_ in found.items() for one in all_ if one.kind == "start"}

    def run(self, chosen: Mapping[str, Any], held_out: Mapping[str, Mapping[str, Any]] | None = None) -> dict[str, Any]:
        """All tasks with some settings; ``held_out`` are those of single tasks."""
        run = run_tasks(Settings(**chosen), tuple(self.real))
        made = dict(run.recordings)
        for task, other in (held_out or {}).items():
            made |= run_tasks(Settings(**{**chosen, **other}), (int(task),)).recordings
        found = {"changed": dict(chosen), **self.scores(made)}
        found["seconds"], found["processor_seconds"] = round(run.seconds, 1), round(run.processor_seconds, 1)
        return found

    def scores(self, made: Mapping[int, Recording]) -> dict[str, Any]:
        """Both modes, tasks and subgroups; how long objects move and roll; where they end."""
        found: dict[str, Any] = {"modes": {}, "moving_s": {}, "rolling_s": {}, "end_m": {}}
        for mode, sides in (("released", self.real), ("paper", self.seen)):
            values = {task: fidelity_metrics(sides[task], one, mode)[0] for task, one in made.items()}  # type: ignore[arg-type]
            groups = {str(group): each(row) for group, row in subgroup_scores(values).items()}
            found["modes"][mode] = {"tasks": {str(t): each(row) for t, row in values.items()}, "subgroups": groups}
        for task, one in made.items():
            if not len(one.objects):
                continue
            sides = [side.cut(min(one.rows, self.seen[task].rows)) for side in (self.seen[task], one)]
            found["moving_s"][str(task)] = [round(float(moving_times(side).mean()), 1) for side in sides]
            if task in ROLLING:
                found["rolling_s"][str(task)] = [round(float(np.median(rolling_times(side))), 1) for side in sides]
            ends = [np.nanmean(final(side.objects[:REPEATS])[:, :2], axis=0) for side in sides]
            found["end_m"][str(task)] = [end.round(4).tolist() for end in ends]
        return found

    def rolled(self, task: int, chosen: Mapping[str, Any]) -> dict[str, Any]:
        """A rolling task with settings of its own."""
        base = self.measured(task)["base"]
        settings = {**SETTINGS["rocking"], **{f"base_{k}": v for k, v in base.items() if k != "rest_m"}, **chosen}
        found = self.scores(run_tasks(Settings(**settings), (task,)).recordings)
        return {"changed": dict(chosen)} | {name: found[name][str(task)] for name in ("moving_s", "rolling_s", "end_m")}

    def measured(self, task: int) -> dict[str, Any]:
        """Of a recording: where its base stands, from the wrist at rest; and the joints' torques there, as shares of
        those of the described masses."""
        rests, targets = self.rests(task)
        pos = wrist_pose(np.radians(targets))[0]
        wrist = np.array([self.seen[task].arm[0, k - 1 : k + 1, ARM["pos"]].mean(0) for k in rests])

        def away(x: np.ndarray) -> np.ndarray:
            cos, sin = np.cos(np.radians(x[0])), np.sin(np.radians(x[0]))
            return np.asarray((pos @ np.array([[cos, sin, 0], [-sin, cos, 0], [0, 0, 1]]) + x[1:] - wrist).ravel())

        fit = least_squares(away, np.zeros(4))
        rest = float(np.linalg.norm(fit.fun.reshape(-1, 3), axis=1).mean())
        base = dict(zip(("yaw", "x", "y", "z"), fit.x.round(4).tolist(), strict=True)) | {"rest_m": round(rest, 4)}
        sim = run_tasks(Settings(**ALIGNED, spread=0.0), (task,), repeats=1).recordings[task].arm[0]
        torque = [one[np.array(rests)[1:], ARM["torque"]] for one in (self.seen[task].arm[0], sim)]
        shares = {f"joint{j + 1}": round(float(np.mean(torque[0][:, j] / torque[1][:, j])), 3) for j in (1, 2)}
        header = self.real[task].header
        return {
            "base": base,
            "torque_share": shares,
            "date": f"{header.get('Date', '')} {header.get('Time', '')}".strip(),
        }

    def rests(self, task: int) -> tuple[list[int], np.ndarray]:
        """Rows in which the arm is at rest, home first, and its joints there (K, 6) [degrees]."""
        rows, targets = [1], [(0.0,) * 6]
        for end, target in Settings(**FITTED).segments_of(task):
            k = min(round(10 * end) - 1, TASKS[task].rows - 3)
            if not (task == 2 and end == 3) and np.isfinite(self.seen[task].arm[0, k - 1 : k + 1, ARM["pos"]]).all():
                rows.append(k)  # in its first segment task 2 does not go where it should
                targets.append(target)
        return rows, np.array(targets, float)

    def pybullet(self) -> dict[str, Any]:
        from manikin.fidelity.bullet import simulated

        began = time.process_time()
        found = self.scores({task: simulated(task) for task in self.real})
        return found | {"processor_seconds": round(time.process_time() - began, 1)}


def each(row: Mapping[str, float]) -> dict[str, float]:
    return {name: rounded(value) for name, value in row.items()}


def rounded(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    return float(f"{value:.4g}")


if __name__ == "__main__":
    main()
