"""Fill the table of docs/replay.md from benchmarks/results/conversion.json.

python docs/conversion.py         # after benchmarks/conversion.py
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

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


def main() -> None:
    """Write the page anew."""
    page = PAGE.read_text()
    filled = re.sub(
        r"(<!-- conversion[^\n]*-->\n).*?(<!-- end -->\n)",
        lambda match: match[1] + table(json.loads(RESULTS.read_text())) + "\n" + match[2],
        page,
        flags=re.DOTALL,
    )
    PAGE.write_text(filled)


if __name__ == "__main__":
    main()
