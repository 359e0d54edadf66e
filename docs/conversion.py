"""Fill the table of docs/replay.md from benchmarks/results/conversion.json.

python docs/conversion.py            # after benchmarks/conversion.py
python docs/conversion.py --check    # only say whether it is up to date (exit status 1: it is not)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from filling import finish, sections

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "replay.md"
RESULTS = ROOT / "benchmarks" / "results" / "conversion.json"


def table(result: dict[str, Any]) -> str:
    """A line per controller, a column per task: successes and new steps per recorded one; then the tool's residual."""
    tasks = result["demonstrations"]
    controls = list(dict.fromkeys(control for entries in tasks.values() for control in entries))
    names = [task.removesuffix("-v1") for task in tasks]
    lines = [f"| to | {' | '.join(names)} | tool [mm]: median, 95 % |", "|---|" + "---:|" * (len(tasks) + 1)]
    for control in controls:
        cells, medians, tails = [f"`{control}`"], [], []
        for entries in tasks.values():
            one = entries.get(control)
            if one is None:
                cells.append("")
                continue
            rate = f"{one['success']} of {one['episodes']}"
            rate = rate if one["success"] >= 0.95 * one["episodes"] else f"**{rate}**"
            cells.append(rate + (f" ({one['steps']:.1f})" if one["steps"] > 1.05 else ""))
            medians.append(1e3 * one["residual"]["tool"][0])
            tails.append(1e3 * one["residual"]["tool"][1])
        cells.append(f"{max(medians):.2g}, {max(tails):.2g}")
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", f"Bold: below 95 %. The residual is that of the worst task. mujoco {result['versions']['mujoco']}."]
    return "\n".join(lines)


def pairs(result: dict[str, Any]) -> str:
    """A line per controller that recorded, a column per controller converted to: successes."""
    lines = []
    for task, sources in result.get("pairs", {}).items():
        controls = list(dict.fromkeys(control for entries in sources.values() for control in entries))
        columns = [f"`{control}`" for control in controls]
        lines += [f"| {task.removesuffix('-v1')}: from, to | {' | '.join(columns)} |", "|---|" + "---:|" * len(columns)]
        for source, entries in sources.items():
            cells = [f"`{source}`"]
            for one in (entries.get(control) for control in controls):
                rate = "" if one is None else f"{one['success']}/{one['episodes']}"
                cells.append(f"**{rate}**" if one and one["success"] < 0.95 * one["episodes"] else rate)
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def filled(page: str, result: dict[str, Any]) -> str:
    """The page with its tables made new."""
    return sections(page, {"conversion": table(result), "pairs": pairs(result)})


if __name__ == "__main__":
    sys.exit(finish(sys.argv[1:], __doc__, lambda: {PAGE: filled(PAGE.read_text(), json.loads(RESULTS.read_text()))}))
