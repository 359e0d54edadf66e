"""Fill the tables and curves of docs/training.md from benchmarks/results/learning.json.

python docs/training.py            # after benchmarks/learning.py
python docs/training.py --check    # only say whether it is up to date (exit status 1: it is not)
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from statistics import median
from typing import Any

from manikin.learn.run.chart import chart

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "training.md"
PICTURE = ROOT / "docs" / "images" / "training.svg"
RESULT = ROOT / "benchmarks" / "results" / "learning.json"
sys.path.insert(0, str(ROOT / "benchmarks"))


def table(result: dict[str, Any]) -> str:
    """A line for each recipe and seed, and its median."""
    from learning import TARGETS

    heads = ("recipe", "seed", "tested success [95 %]", "at the end", "control steps", "minutes", "CPU minutes / 2")
    lines = [f"| {' | '.join(heads)} |", "|---|" + "---:|" * (len(heads) - 1)]
    for run, seeds in result["runs"].items():
        for seed, one in seeds.items():
            tested = one["tested"]
            rate = f"{100 * tested['rate']:.1f} % [{100 * tested['low']:.1f}, {100 * tested['high']:.1f}]"
            wall = "-" if one["seconds"] is None else f"{one['seconds'] / 60:.1f}"
            cells = (
                *(f"`{run.replace(':', ' ')}`", seed, rate, f"{100 * tested['at_end']:.1f} %", f"{one['steps']:,}"),
                *(wall, f"{one['cpu_seconds'] / 120:.1f}"),
            )
            lines.append(f"| {' | '.join(cells)} |")
        if run in TARGETS:
            target, minutes = TARGETS[run]
            low = median(one["tested"]["low"] for one in seeds.values())
            took = median((one["seconds"] or one["cpu_seconds"] / 2) / 60 for one in seeds.values())
            met = "met" if low > target and took <= minutes and len(seeds) >= 3 else "not met"
            words = f"target: lower end above {100 * target:.0f} % in {minutes:.0f} min"
            lines.append(f"| | median | lower end {100 * low:.1f} % | {words}: **{met}** | | {took:.1f} | |")
    return "\n".join(lines)


def curves(result: dict[str, Any]) -> str:
    found = {
        run.replace(":", " "): [[(at[0], at[2]) for at in one["curve"]] for one in seeds.values()]
        for run, seeds in result["runs"].items()
    }
    svg = chart(found, across="control steps", up="success in validation", top=1.0)
    style = "<style>text{font:11px sans-serif;fill:#777}</style>"
    return svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1).replace(">", f">{style}", 1)


def filled(page: str, result: dict[str, Any]) -> str:
    """The page with its table."""
    pattern = r"(<!-- table of learning -->\n).*?(<!-- end -->)"
    return re.sub(pattern, lambda found: f"{found[1]}\n{table(result)}\n\n{found[2]}", page, flags=re.DOTALL)


def main() -> int:
    result = json.loads(RESULT.read_text())
    page, picture = filled(PAGE.read_text(), result), curves(result) + "\n"
    if "--check" in sys.argv:
        current = page == PAGE.read_text() and PICTURE.exists() and picture == PICTURE.read_text()
        print("up to date" if current else "not up to date: run python docs/training.py")
        return 0 if current else 1
    PAGE.write_text(page)
    PICTURE.write_text(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
