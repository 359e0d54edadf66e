"""Fill the tables of docs/fidelity.md from the library, and draw its picture from synthetic recordings.

python docs/fidelity.py            # after a change of the metrics, the defects or the synthetic recordings
python docs/fidelity.py --check    # only say whether both are up to date (exit status 1: they are not)
"""

from __future__ import annotations

import sys
from pathlib import Path

from filling import finish, sections

from manikin.eval.pages.curves import curves_svg
from manikin.fidelity import KINDS, METRICS
from manikin.fidelity.page import RECORDED, SIMULATED, overlay, unit
from manikin.fidelity.recordings.defects import MASKED
from manikin.fidelity.recordings.synthetic import averaged, synthetic_recording

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "fidelity.md"
PICTURE = ROOT / "docs" / "images" / "fidelity.svg"


def metrics() -> str:
    """All 23 with their units; in the script's mode in brackets where it differs."""
    lines = ["| name | unit | what it tells |", "| --- | --- | --- |"]
    for name, one in METRICS.items():
        released = unit(name, "released")
        said = one.unit if released == one.unit else f"{one.unit} ({released} in the script)"
        lines.append(f"| `{name}` | {said} | {one.tells} |")
    return "\n".join(lines)


def kinds() -> str:
    """Every kind of defect."""
    lines = ["| defect | what it is | masked |", "| --- | --- | --- |"]
    for name, what in KINDS.items():
        masked = "by default" if name in MASKED else "if named" if name == "orientation" else ""
        lines.append(f"| `{name}` | {what} | {masked} |")
    return "\n".join(lines)


def picture() -> str:
    """Task 3, recorded and simulated: both synthetic."""
    real = averaged(synthetic_recording(3))
    sim = synthetic_recording(3, seed=1, delay=0.5, push=0.6)
    legend = ((RECORDED, "synthetic recording"), (SIMULATED, "simulation, also synthetic"))
    return curves_svg(overlay(real, sim), real.hz, legend) + "\n"


def made() -> dict[Path, str]:
    """The text of each file."""
    return {PAGE: sections(PAGE.read_text(), {"metrics": metrics(), "kinds": kinds()}), PICTURE: picture()}


if __name__ == "__main__":
    sys.exit(finish(sys.argv[1:], __doc__, made))
