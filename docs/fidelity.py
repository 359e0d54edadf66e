"""Fill the tables of docs/fidelity.md from the library, and draw its picture from synthetic recordings.

python docs/fidelity.py            # after a change of the metrics, the defects or the synthetic recordings
python docs/fidelity.py --check    # only say whether both are up to date (exit status 1: they are not)
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

from filling import finish, sections

from manikin.eval.pages.curves import curves_svg
from manikin.fidelity import KINDS, METRICS
from manikin.fidelity.page import RECORDED, SIMULATED, overlay, unit
from manikin.fidelity.recordings.defects import MASKED
from manikin.fidelity.recordings.synthetic import averaged, synthetic_recording
from manikin.fidelity.simulation.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benchmarks" / "results" / "fidelity.json"
PAGE = ROOT / "docs" / "fidelity.md"
SHOWN = ("euclidean", "velocity", "torque", "force", "object_translation", "object_rotation")
SAID = {
    "default": "as released",
    "fitted": "cap, delay and times as recorded",
    "aligned": "also the base as recorded",
    "smooth": "also table friction 0.25",
    "found": "masses and friction found on tasks 3 and 9",
}
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


def settings() -> str:
    """Every setting with its default."""
    lines = ["| setting | default | what it is |", "| --- | --- | --- |"]
    for field in dataclasses.fields(Settings):
        value = field.default
        many = isinstance(value, tuple) and len(value) > 1
        shown = ", ".join(f"{one:g}" for one in value) if many else value[0] if isinstance(value, tuple) else value
        lines.append(f"| `{field.name}` | {str(shown).lower()} | {field.metadata['about']} |")
    return "\n".join(lines)


def with_unit(name: str) -> str:
    said = unit(name, "released")
    return METRICS[name].title + (f" [{said}]" if said else "")


def measured() -> str:
    """Subgroups of the released mode, with the published rows, and how long objects move."""
    found = json.loads(RESULT.read_text())
    lines = []
    for group, shown in (("1", SHOWN[:4]), ("2", SHOWN)):
        heads = [with_unit(name) for name in shown]
        lines += [f"| subgroup {group} | {' | '.join(heads)} |", "| --- |" + " ---: |" * len(shown)]
        rows = {f"{name} (published)": row for name, row in found["published"][group].items() if "V-Rep" not in name}
        best = {c: min(row[c] for row in found["published"][group].values()) for c in shown}
        rows["best of the six published, each column"] = best
        rows |= {
            f"manikin, {SAID[k]}": one["modes"]["released"]["subgroups"][group] for k, one in found["settings"].items()
        }
        lines += [f"| {name} | {' | '.join(f'{row[c]:.3g}' for c in shown)} |" for name, row in rows.items()] + [""]
    heads = [f"task {task}" for task in found["settings"]["default"]["moving_s"]]
    lines += [f"| object moves [s] | {' | '.join(heads)} |", "| --- |" + " ---: |" * len(heads)]
    rows = {"recorded": {t: both[0] for t, both in found["settings"]["default"]["moving_s"].items()}}
    rows |= {
        f"manikin, {SAID[k]}": {t: b[1] for t, b in one["moving_s"].items()} for k, one in found["settings"].items()
    }
    lines += [f"| {name} | {' | '.join(f'{x:.1f}' for x in row.values())} |" for name, row in rows.items()]
    most = max(one["processor_seconds"] for one in found["settings"].values())
    lines += [
        "",
        f"All ten tasks with 20 repeats take at most {most:.0f} s of processor time. Command: `{found['command']}`.",
    ]
    return "\n".join(lines)


def picture() -> str:
    """Task 3, recorded and simulated: both synthetic."""
    real = averaged(synthetic_recording(3))
    sim = synthetic_recording(3, seed=1, delay=0.5, push=0.6)
    legend = ((RECORDED, "synthetic recording"), (SIMULATED, "simulation, also synthetic"))
    return curves_svg(overlay(real, sim), real.hz, legend) + "\n"


def made() -> dict[Path, str]:
    """The text of each file."""
    tables = {"metrics": metrics(), "kinds": kinds(), "settings": settings(), "measured": measured()}
    return {PAGE: sections(PAGE.read_text(), tables), PICTURE: picture()}


if __name__ == "__main__":
    sys.exit(finish(sys.argv[1:], __doc__, made))
