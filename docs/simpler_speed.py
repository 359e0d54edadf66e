"""Fill the tables of speed and of the physics' rate in docs/simpler.md from the committed results.

python docs/simpler_speed.py            # after benchmarks/simpler_speed.py or simpler_rate.py
python docs/simpler_speed.py --check    # only say whether they are up to date (exit status 1: they are not)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from filling import finish, sections

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "simpler.md"
RESULT = ROOT / "benchmarks" / "results" / "simpler_speed.json"
RATE = ROOT / "benchmarks" / "results" / "simpler_rate.json"
RATES = {
    (90.0, 100.0): "90 Hz, `impratio` 100 (the tasks')",
    (513.0, 100.0): "513 Hz, `impratio` 100",
    (90.0, 10.0): "90 Hz, `impratio` 10 (the library's default)",
}
HEADS = ("task", "trials", "seconds", "steps/s, all at once", "without pictures", "one at a time", "times as fast")
MISSING = "not measured"


def span(figure: dict[str, float], form: str) -> str:
    """A figure with the lowest and the highest of its rounds."""
    return f"{figure['median']:{form}} [{figure['low']:{form}}–{figure['high']:{form}}]"


def section(result: dict[str, Any] | None) -> str:
    """The table as Markdown, with the command and machine that measured it."""
    lines = [f"| {' | '.join(HEADS)} |", "|---|" + "---:|" * (len(HEADS) - 1)]
    if result is None:
        lines.append(f"| the suite | 96 | {' | '.join([MISSING] * 5)} |")
        return "\n".join(lines)
    for name, entry in (*result["tasks"].items(), ("the suite", result["suite"])):
        cells = [str(entry["trials"]), span(entry["all"]["seconds"], ".0f")]
        cells += [span(entry[kind]["steps_per_s"], ".1f") for kind in ("all", "states", "one")]
        title = name if name == "the suite" else f"`{name}`"
        lines.append(f"| {' | '.join((title, *cells, span(entry['times_one'], '.1f')))} |")
    words = f"Median of {result['rounds']} rounds; brackets hold the lowest and the highest. Measured on "
    words += (
        f"{result['machine']} with `{result['command']}`. A control step has 100 physics steps, so the suite makes "
    )
    words += f"{span(result['physics_steps_per_s'], ',.0f')} physics steps per second."
    return "\n".join([*lines, "", words])


def rates(result: dict[str, Any]) -> str:
    """What the expert does with the can at each rate of the physics, by orientation."""
    heads = (
        "cans lifted: horizontal, vertical, standing",
        "slip in about 20 s of holding, median",
        "pushed before the grasp, median",
        f"processor time of {result['trials']} trials",
    )
    lines = [f"| physics | {' | '.join(heads)} |", "|---|" + "---:|" * len(heads)]
    for setting, words in RATES.items():
        rows = [row for row in result["rows"] if (row["hz"], row["impratio"]) == setting]
        lengths = [f"{', '.join(f'{row[what][0]:.1f}' for row in rows)} mm" for what in ("slip", "pushed")]
        spent = sum(row["cpu_s"] for row in rows) / len(rows)
        cells = (", ".join(str(row["solved"]) for row in rows), *lengths, f"{spent:.0f} s")
        lines.append(f"| {words} | {' | '.join(cells)} |")
    return "\n".join(lines)


def filled(page: str, result: dict[str, Any] | None) -> str:
    """The page with its sections made new."""
    return sections(page, {"simpler-speed": section(result), "simpler-rate": rates(json.loads(RATE.read_text()))})


if __name__ == "__main__":
    sys.exit(
        finish(
            sys.argv[1:],
            __doc__,
            lambda: {PAGE: filled(PAGE.read_text(), json.loads(RESULT.read_text()) if RESULT.exists() else None)},
        )
    )
