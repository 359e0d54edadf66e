"""Fill the tables of docs/your-simulator.md from the library, and draw its pictures from made-up recordings.

python docs/your_simulator.py            # after a change of the layout, the page or the made-up recordings
python docs/your_simulator.py --check    # only say whether all are up to date (exit status 1: they are not)
"""

from __future__ import annotations

import sys
from pathlib import Path

from filling import finish, sections

from manikin.eval.pages.curves import curves_svg
from manikin.fidelity.page import OTHERS, RECORDED, SIMULATED, ends, overlay
from manikin.fidelity.recordings.layout import ARRAYS, KEYS, NEEDED, columns_of
from manikin.fidelity.recordings.made_up import made_up

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "your-simulator.md"
IMAGES = ROOT / "docs" / "images"


def columns() -> str:
    """Every array with its columns."""
    lines = ["| columns | unit | content |", "| --- | --- | --- |"]
    for name, kind in ARRAYS.items():
        named = [f"`{column}`" for column in columns_of(name, 2, kind)]
        shown = ", ".join(named) + ("" if kind.parts or name == "time" else " and so on")
        units = kind.units[0] + "".join(f", or {unit} of a joint that slides" for unit in kind.units[1:])
        lines.append(f"| {shown} | {units} | {kind.about} |")
    lines.append("| `cube.pos.x`, ..., `cube.quat.z` | m | pose of the object `cube`, seven columns for each object |")
    return "\n".join(lines)


def keys() -> str:
    """Every key of the header."""
    lines = ["| key | needed | what it says |", "| --- | --- | --- |"]
    lines += [f"| `{key}` | {'yes' if key in NEEDED else ''} | {about} |" for key, (_, about) in KEYS.items()]
    return "\n".join(lines)


def pictures() -> dict[Path, str]:
    """A task as a lab recorded it and two simulators did it: all made up."""
    real, early, late = (
        made_up(seed=k, late=late, push=push, hz=10)
        for k, (late, push) in enumerate(((0.1, 1.0), (0.0, 0.9), (0.4, 0.6)))
    )
    legend = ((RECORDED, "recording, made up"), (SIMULATED, "engine, early"), (OTHERS[0], "engine, late"))
    curves = curves_svg(overlay(real, early, late), real.hz, legend)
    return {
        IMAGES / "your-simulator.svg": curves + "\n",
        IMAGES / "your-simulator-ends.svg": ends(real, early, late) + "\n",
    }


def made() -> dict[Path, str]:
    """The text of each file."""
    return {PAGE: sections(PAGE.read_text(), {"columns": columns(), "keys": keys()}), **pictures()}


if __name__ == "__main__":
    sys.exit(finish(sys.argv[1:], __doc__, made))
