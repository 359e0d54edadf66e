"""Fill the table of docs/sensing.md on insertion by touch from the committed result of benchmarks/tactile.py.

python docs/tactile.py            # after benchmarks/tactile.py
python docs/tactile.py --check    # only say whether it is up to date (exit status 1: it is not)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from filling import finish, sections

from manikin.author.sheet import table

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "sensing.md"
RESULT = ROOT / "benchmarks" / "results" / "tactile.json"


def cell(found: dict[str, Any]) -> str:
    """Share of successes, and when."""
    when = "" if found["median_s"] is None else f", {found['median_s']:.1f} s"
    return f"{found['successes'] / found['seeds']:.0%}{when}"


def filled(page: str, result: dict[str, Any]) -> str:
    """The page with its table made from the result."""
    rows, errors, seeds = [], [], set()
    for task, searches in result["cells"].items():
        for search, cells in searches.items():
            errors = list(cells)
            seeds |= {found["seeds"] for found in cells.values()}
            rows.append((f"`{task}`", f"`{search}`", *map(cell, cells.values())))
    shown = table(("task", "search", *(f"off by up to {error} mm" for error in errors)), rows)
    (count,) = seeds
    words = f"Success of {count} starts each, and the median time of success, with `{result['command']}`."
    return sections(page, {"tactile": f"{words}\n\n{shown}"})


if __name__ == "__main__":
    sys.exit(finish(sys.argv[1:], __doc__, lambda: {PAGE: filled(PAGE.read_text(), json.loads(RESULT.read_text()))}))
