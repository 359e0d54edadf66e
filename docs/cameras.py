"""Fill the tables of speed of docs/cameras.md from the benchmark's committed result.

python docs/cameras.py            # after benchmarks/render.py --out benchmarks/results/render.json
python docs/cameras.py --check    # only say whether it is up to date (exit status 1: it is not)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from filling import finish, sections

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "cameras.md"
RESULT = ROOT / "benchmarks" / "results" / "render.json"


def section(result: dict[str, Any]) -> str:
    """Images per second beside peers, what the time goes to, and the renderers against each other."""
    cases: dict[str, dict[str, Any]] = {}
    for label, row in result["manikin"].items():
        robot, n, case = label.split(", ", 2)
        cases.setdefault(case, {})[f"manikin, {robot}, {n}"] = row
    peers: dict[str, dict[str, float]] = {}
    for label, rate in result["peers_images_per_s"].items():
        title, case = label.rsplit(", ", 1)
        peers.setdefault(title, {})[case] = rate
    names = list(dict.fromkeys(name for rows in cases.values() for name in rows))
    lines = [f"| images per second | {' | '.join(cases)} |", "|---|" + "---:|" * len(cases)]
    for name in names:
        cells = [f"**{rows[name]['images_per_s']:.0f}**" if name in rows else "" for rows in cases.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    for title, rates in peers.items():
        cells = [f"{rates[case]:.0f}" if case in rates else "" for case in cases]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    splits = {f"{name}, {case}": rows[name] for case, rows in cases.items() for name in names if name in rows}
    parts = list(dict.fromkeys(part for row in splits.values() for part in row.get("split_ms", {})))
    if parts:
        lines += [
            "",
            f"| milliseconds per image, one drawing thread | {' | '.join(parts)} |",
            "|---|" + "---:|" * len(parts),
        ]
    for label, row in splits.items():
        if "split_ms" in row:
            cells = [f"{row['split_ms'][part]:.2f}" for part in parts]
            lines.append(f"| {label.removeprefix('manikin, ')} | {' | '.join(cells)} |")
    for robot, table in result["crossover_ms"].items():
        sizes = list(dict.fromkeys(size for row in table.values() for size in row))
        lines += ["", f"| {robot}, N=8, milliseconds per image | {' | '.join(sizes)} |", "|---|" + "---:|" * len(sizes)]
        lines += [f"| {name} | {' | '.join(f'{row[size]:.1f}' for size in sizes)} |" for name, row in table.items()]
    words = f"Measured on {result['machine']}, without a graphics card, by `{result['command']}`: "
    words += "the whole environment step, one camera, all in one run."
    return "\n".join([*lines, "", words])


def filled(page: str, result: dict[str, Any] | None) -> str:
    """The page with its section made new; without a result it says so."""
    return sections(page, {"render-speed": section(result) if result else "Unmeasured."})


if __name__ == "__main__":
    sys.exit(
        finish(
            sys.argv[1:],
            __doc__,
            lambda: {PAGE: filled(PAGE.read_text(), json.loads(RESULT.read_text()) if RESULT.exists() else None)},
        )
    )
