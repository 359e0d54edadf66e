"""Fill the table of the scripted experts in docs/simpler.md from the result of benchmarks/simpler_experts.py.

python docs/simpler_experts.py            # after benchmarks/simpler_experts.py
python docs/simpler_experts.py --check    # only say whether it is up to date (exit status 1: it is not)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from filling import finish, sections

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "simpler.md"
RESULT = ROOT / "benchmarks" / "results" / "simpler_experts.json"
COLUMNS = {  # head -> what is played, and with which objects
    "stand-ins": (("simpler_google", "simpler_widowx", "GooglePickObject-v1"), "stand-ins"),
    "meshes": (("simpler_google", "simpler_widowx", "GooglePickObject-v1"), "meshes"),
    "over photographs": (("simpler_google_matched", "simpler_widowx_matched"), "meshes"),
    "variant aggregation": (("simpler_google_aggregated",), "meshes"),
}
ORIENTATIONS = ("horizontal", "vertical", "standing")


def row_of(task: dict[str, Any]) -> str:
    """What a task's row is called: the can has one for each orientation."""
    first = task["setting"].split("-")[0]
    return f"`{task['task']}`" + (f" {first}" if first in ORIENTATIONS else "")


def section(result: dict[str, Any]) -> str:
    """The table as Markdown, with the command that measured it."""
    rows: dict[str, dict[str, tuple[int, int]]] = {}
    for head, (suites, kind) in COLUMNS.items():
        for suite in suites:
            for entry in result["suites"]:
                if (entry["suite"], entry["kinds"]) != (suite, kind):
                    continue
                for task in entry["tasks"]:
                    solved, trials = rows.setdefault(row_of(task), {}).get(head, (0, 0))
                    rows[row_of(task)][head] = (solved + task["solved"], trials + task["trials"])
    lines = [f"| task | {' | '.join(COLUMNS)} |", "|---|" + "---:|" * len(COLUMNS)]
    for name, cells in rows.items():
        shown = [f"{cells[head][0]} of {cells[head][1]}" if head in cells else "" for head in COLUMNS]
        lines.append(f"| {name} | {' | '.join(shown)} |")
    return "\n".join([*lines, "", f"Measured with `{result['command']}`."])


def filled(page: str, result: dict[str, Any]) -> str:
    """The page with its section made new."""
    return sections(page, {"simpler-experts": section(result)})


if __name__ == "__main__":
    sys.exit(finish(sys.argv[1:], __doc__, lambda: {PAGE: filled(PAGE.read_text(), json.loads(RESULT.read_text()))}))
