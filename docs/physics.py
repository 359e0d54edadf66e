"""Fill the tables of docs/physics.md from the committed result of benchmarks/physics.py.

python docs/physics.py            # after benchmarks/physics.py and benchmarks/experts.py
python docs/physics.py --check    # only say whether it is up to date (exit status 1: it is not)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from filling import finish, numbers, sections

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "physics.md"
RESULT = ROOT / "benchmarks" / "results" / "physics.json"
EXPERTS = ROOT / "benchmarks" / "results" / "experts.json"
SPREADS = ("0.2", "0.5", "1")


def settings(result: dict[str, Any]) -> str:
    """What PickCube's cube does in each setting."""
    of = {k: v for k, v in result["entries"]["PickCube-v2"].items() if k.endswith("Hz")}
    pushed = result["entries"].get("PushCube-v2", {})
    head = (
        "physics",
        *(f"shaken {s}: held, slip" for s in SPREADS),
        "grip [N]",
        "stands deep [mm]",
        "pushed, apart [mm]",
    )
    rows = []
    for name, entry in of.items():
        cells = [f"{entry[s]['kept']:.0%}, {entry[s]['slip_mm']:.1f} mm" for s in SPREADS]
        push = pushed.get(name, {}).get("push")
        cells += [f"{entry['grip_N']:.1f}", f"{entry['settle']['depth_mm']:.3f}"]
        cells.append(f"{push['median_mm']:.1f}" if push else "")
        rows.append((name, *cells))
    return numbers(head, rows)


def rate(experts: dict[str, Any], task: str) -> str:
    """Successes of a task's expert; of a task with layouts, of all together."""
    of = [entry for name, entry in experts.items() if name.partition("/")[0] == task]
    return f"{sum(e['successes'] for e in of)} of {sum(e['seeds'] for e in of)}" if of else "-"


def tasks(result: dict[str, Any]) -> str:
    """Each task in its own setting beside the former one."""
    head = ("task", "physics", "slip at 0.5: before, now [mm]", "expert before", "expert now", "steps/s, times before")
    lines = [f"| {' | '.join(head)} |", "|---|---|---:|---:|---:|---:|"]
    experts = json.loads(EXPERTS.read_text())["entries"]
    for name, entry in result["entries"].items():
        was, own, fast = entry["was"], entry["own"], entry["speed"]
        slips = [f"{e['0.5']['slip_mm']:.1f}" if "0.5" in e else "-" for e in (was, own)]
        wins = " | ".join(rate(experts, task) for task in (f"{name.rpartition('-v')[0]}-v1", name))
        speed = f"{fast['times_was']:.1f} ({fast['low']:.1f} to {fast['high']:.1f})"
        lines.append(f"| {name} | {own['setting']} | {', '.join(slips)} | {wins} | {speed} |")
    return "\n".join(lines)


def filled(page: str, result: dict[str, Any]) -> str:
    """The page with its tables made from the result."""
    measured = f"Measured on {result['machine']} by `{result['command']}`."
    made = {"settings": settings(result), "physics-tasks": f"{tasks(result)}\n\n{measured}"}
    return sections(page, made)


if __name__ == "__main__":
    sys.exit(finish(sys.argv[1:], __doc__, lambda: {PAGE: filled(PAGE.read_text(), json.loads(RESULT.read_text()))}))
