"""Fill the tables of docs/system-identification.md from the committed result of benchmarks/sysid.py.

python docs/sysid.py            # after benchmarks/sysid.py --out benchmarks/results/sysid.json
python docs/sysid.py --check    # only say whether they are up to date (exit status 1: they are not)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from filling import finish, sections

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "system-identification.md"
RESULT = ROOT / "benchmarks" / "results" / "sysid.json"
ROBOTS = {"google_robot_rt1": "Google Robot", "widowx_bridge": "WidowX"}
GAINS = {"limit_on_servos": "limit on the servos", "robot": "the robot as it is", "fitted": "fitted"}


def speed(runs: dict[str, Any]) -> str:
    """What the batched search does in a second, as rows of a table."""
    found = runs["speed"]

    def span(name: str, digits: int) -> str:
        return "{median:,.{n}f} [{low:,.{n}f}, {high:,.{n}f}]".format(**found[name], n=digits)

    rows = {
        "three rounds of 400 candidates": f"{runs['search']['search_seconds'] / 60:.1f} minutes",
        f"physics steps per second, {found['rows'] // 12} candidates at a time ({found['rows']} rows)": (
            f"{found['physics_steps_per_second']['batch']['median']:,.0f}"
        ),
        "share of the same rows under the controller alone": span("batch_over_raw", 2),
        "times one candidate at a time (12 rows)": span("batch_over_one_candidate", 1),
        "times one trajectory at a time (1 row), as SIMPLER's script runs": span("batch_over_one_row", 1),
    }
    return "\n".join(["| what | figure |", "| --- | ---: |", *(f"| {what} | {said} |" for what, said in rows.items())])


def recovered(runs: dict[str, Any]) -> str:
    """How near the known parameters are found again."""
    found, loss = runs["recover"], runs["recover"]["loss"]
    rows = {
        "known": found["lag_kd_over_kp_true_s"],
        "found": found["lag_kd_over_kp_found_s"],
    }
    joints = len(rows["known"])
    lines = [
        f"| lag `kd` / `kp` [s] | {' | '.join(f'joint {k + 1}' for k in range(joints))} |",
        "|---|" + "---:|" * joints,
    ]
    lines += [f"| {name} | {' | '.join(f'{lag:.3f}' for lag in lags)} |" for name, lags in rows.items()]
    said = f"The loss falls {loss['times']:.0f} times, from {loss['before']:.4f} to {loss['after']:.4f} m + half rad."
    return "\n".join([said, "", *lines])


def drive(runs: dict[str, Any]) -> str:
    """Errors of each joint against the drive law."""
    lines = [f"| robot | joint | {' | '.join(GAINS.values())} |", "|---|---|" + "---:|" * len(GAINS)]
    for word, title in ROBOTS.items():
        found = runs["drive"]["robots"][word]
        for k, joint in enumerate(found["joints"]):
            errors = [f"{found['error_mrad'][name][k]:.2f}" for name in GAINS]
            lines.append(f"| {title} | `{joint}` | {' | '.join(errors)} |")
    return "\n".join(lines)


def recordings(runs: dict[str, Any]) -> str:
    """The searches on real recordings."""
    bridge, collins = runs["bridge"], runs["collins"]
    lines = ["| recordings | varied | loss before | after |", "|---|---|---:|---:|"]
    names = {
        f"BridgeData, {bridge['trajectories']} clips of 10 steps, `widowx_bridge` with SIMPLER's gains": (
            bridge,
            "`kp=200:3000:log kd=20:600:log`",
            "m + half rad",
        ),
        "Collins et al., tasks 3, 4, 9, 10": (collins, "`kd=0.2:60:log friction=0:5:tied delay=0:0.5`", "m"),
    }
    for name, (found, vary, unit) in names.items():
        before, after = (f"{found['loss'][when]:.4f}" for when in ("before", "after"))
        lines.append(f"| {name} | {vary} | {before} {unit} | {after} |")
    lines.append("")
    lines.append(
        f"With the published force limit on what the WidowX's stiffness gives alone, the loss before is "
        f"{bridge['limit_on_servos']:.4f}."
    )
    return "\n".join(lines)


def made() -> dict[Path, str]:
    """The text of the page."""
    runs = json.loads(RESULT.read_text())["runs"]
    parts = {"speed": speed, "recovered": recovered, "drive": drive, "recordings": recordings}
    return {PAGE: sections(PAGE.read_text(), {f"sysid-{name}": part(runs) for name, part in parts.items()})}


if __name__ == "__main__":
    sys.exit(finish(sys.argv[1:], __doc__, made))
