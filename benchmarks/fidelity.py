r"""How far manikin's own simulation is from the recordings of Collins et al. with some choices of settings, and how
long all ten tasks take. Needs MANIKIN_DATA.

    python benchmarks/fidelity.py --out benchmarks/results/fidelity.json

``found`` is what this command found, with ``smooth`` as its config: on both tasks together for the other eight, and for
tasks 3 and 9 on the other one.

    manikin fidelity improve --tasks 3 9 --candidates 40 --repeats 3 --config smooth.toml --vary \
        table_friction=0.1:0.6 hand_friction=0.1:1 hand_mass=0.3:1.2 arm_mass=0.5:1.2

Wall time depends on what else the machine does; processor time less so.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

from common import arguments, command, write

from manikin.fidelity import fidelity_metrics, find_defects, masked, published, read_reality, subgroup_scores
from manikin.fidelity.metrics.paper import moving_times
from manikin.fidelity.protocol import REPEATS, TASKS
from manikin.fidelity.recordings.defects import MASKED
from manikin.fidelity.recordings.synthetic import averaged, synthetic_recording
from manikin.fidelity.simulation.run import run_tasks
from manikin.fidelity.simulation.settings import Settings

FITTED: dict[str, Any] = {"cap": "fitted", "delay": "fitted", "times": "recorded"}
ALIGNED: dict[str, Any] = {**FITTED, "base_yaw": 3.31, "base_x": -0.0011, "base_y": 0.0162, "base_z": -0.0101}
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "fitted": FITTED,
    "aligned": ALIGNED,
    "smooth": {**ALIGNED, "table_friction": 0.25},
    "found": {**ALIGNED, "table_friction": 0.2374, "hand_friction": 0.8957, "hand_mass": 0.7354, "arm_mass": 0.7960},
}
HELD_OUT: dict[str, dict[int, dict[str, Any]]] = {
    "found": {
        3: {"table_friction": 0.2856, "hand_friction": 0.5355, "hand_mass": 1.0366, "arm_mass": 0.6093},
        9: {"table_friction": 0.1517, "hand_friction": 0.4536, "hand_mass": 0.6550, "arm_mass": 0.8932},
    }
}
"""Settings of tasks that the others were found on."""


def main() -> None:
    options = arguments(__doc__).parse_args()
    if options.quick:
        real = {9: averaged(synthetic_recording(9))}
    else:
        folder = Path(os.environ["MANIKIN_DATA"]) / "collins2020" / "real_mean_10hz"
        real = {task: read_reality(folder, task) for task in TASKS}
    seen = {task: masked(one, find_defects(one), MASKED) for task, one in real.items()}
    result: dict[str, Any] = {"command": command(), "repeats": REPEATS, "settings": {}, "published": published()}
    for name, chosen in SETTINGS.items():
        run = run_tasks(Settings(**chosen), tuple(real))
        found: dict[str, Any] = {"changed": chosen, "modes": {}, "moving_s": {}}
        found["seconds"], found["processor_seconds"] = round(run.seconds, 1), round(run.processor_seconds, 1)
        made = dict(run.recordings)
        for task, other in HELD_OUT.get(name, {}).items():
            if task in made:
                made |= run_tasks(Settings(**{**chosen, **other}), (task,)).recordings
        for mode, sides in (("released", real), ("paper", seen)):
            values = {task: fidelity_metrics(sides[task], one, mode)[0] for task, one in made.items()}
            groups = {str(group): rounded(row) for group, row in subgroup_scores(values).items()}
            found["modes"][mode] = {"tasks": {str(t): rounded(row) for t, row in values.items()}, "subgroups": groups}
        for task, one in made.items():
            if len(one.objects):
                rows = min(one.rows, seen[task].rows)
                both = [float(moving_times(side.cut(rows)).mean()) for side in (seen[task], one)]
                found["moving_s"][str(task)] = [round(time, 1) for time in both]
        result["settings"][name] = found
    result["machine"] = {"cores": os.cpu_count(), "processor": platform.machine()}
    write(result, options.out)


def rounded(row: Any) -> dict[str, float]:
    return {name: float(f"{value:.4g}") for name, value in row.items()}


if __name__ == "__main__":
    main()
