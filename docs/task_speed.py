"""Fill the table of docs/task-speed.md from the committed result of benchmarks/task_speed.py.

python docs/task_speed.py            # after benchmarks/task_speed.py
python docs/task_speed.py --check    # only say whether it is up to date (exit status 1: it is not)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from filling import finish, sections

from manikin.author.sheet import table
from manikin.env.registry import family_title, task_families

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "task-speed.md"
RESULT = ROOT / "benchmarks" / "results" / "task_speed.json"
BAR = 0.75  # share of raw physics at 256 rows that a task should have
BUSY = 2.5  # [threads] that wanted to run, the benchmark's own two among them: more is other work
HEAD = (
    "task",
    "1 row",
    "256 rows",
    "share of raw",
    "torch calls",
    "images/s",
    "times before",
    "below the bar, because",
)


def reason(found: dict[str, Any]) -> str:
    """Where the time of a step of 256 rows goes, for a task below the bar."""
    many = found["256"]
    if many["share"] >= BAR:
        return ""
    physics, whole = (256e3 / many[of] for of in ("raw", "env"))
    return f"{physics:.1f} ms of physics beside {whole - physics:.1f} ms of everything else"


def row(task: str, found: dict[str, Any] | None) -> tuple[str, ...]:
    """A task's line."""
    if found is None:
        return (f"`{task}`", "not measured", *[""] * (len(HEAD) - 2))
    one, many = found["1"], found["256"]
    beside = "~ " if found["load"] > BUSY else ""
    rates = [f"{beside}{each['env']:,}" for each in (one, many)]
    figures = (*rates, f"{many['share']:.2f}", str(found["calls"]))
    gain = found.get("gain")
    before = f"{gain['times']:.1f} ({gain['over'].rpartition('-')[2]})" if gain else ""
    return (f"`{task}`", *figures, f"{beside}{found['images']:,.0f}", before, reason(found))


def filled(page: str, result: dict[str, Any]) -> str:
    """The page with its table made from the result."""
    parts = []
    for family, tasks in task_families().items():
        rows = [row(task, result["tasks"].get(task)) for task in tasks]
        parts.append(f"### {family_title(family)}\n\n{table(HEAD, rows)}")
    measured = f"Measured on {result['machine']} with `{result['command']}`."
    loads = [found["load"] for found in result["tasks"].values()]
    if max(loads, default=0.0) > BUSY:
        most = max(loads) - 2.0
        measured += f" A rate behind ~ was measured beside other work, up to {most:.0f} threads: trust its share alone."
    return sections(page, {"task-speed": "\n\n".join([measured, *parts])})


if __name__ == "__main__":
    sys.exit(finish(sys.argv[1:], __doc__, lambda: {PAGE: filled(PAGE.read_text(), json.loads(RESULT.read_text()))}))
