"""Fill the tables of docs/fidelity.md from the library, and draw its picture from synthetic recordings.

python docs/fidelity.py            # after a change of the metrics, the defects or the synthetic recordings
python docs/fidelity.py --check    # only say whether both are up to date (exit status 1: they are not)
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

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
FRICTION = ROOT / "benchmarks" / "results" / "friction.json"
SHOWN = ("euclidean", "velocity", "torque", "force", "object_translation")
TURNED = ("rotation", "pose", "object_rotation")
SAID = {
    "default": "as released",
    "fitted": "cap, delay and times as recorded",
    "aligned": "also the base as recorded",
    "smooth": "also table friction 0.25 (`smooth.toml`)",
    "released_hand": "also the released hand",
    "library": "base as recorded, friction 1.0 and 100 Hz as in manikin's own tasks",
    "rocking": "`smooth.toml`, and mass off the axis (`rocking.toml`)",
    "wide": "masses and friction searched for, `wide` below",
    "calibrated": "masses within 10 %, torque sensors calibrated, `calibrated` below",
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


def with_unit(name: str, mode: str = "released") -> str:
    said = unit(name, mode)
    return METRICS[name].title + (f" [{said}]" if said else "")


def table(heads: Sequence[str], rows: Mapping[str, Sequence[str]]) -> list[str]:
    """Rows by their first cell; numbers stand to the right."""
    lines = [f"| {' | '.join(heads)} |", "| --- |" + " ---: |" * (len(heads) - 1)]
    return [*lines, *(f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items()), ""]


def result() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RESULT.read_text())
    return found


def subgroups(columns: Sequence[str], mode: str, chosen: Sequence[str], *, more: Sequence[str] = ()) -> str:
    """Both subgroups; with the published rows in the mode of the script. ``more``: ``replay`` and ``pybullet``."""
    found, lines = result(), []
    extra = {"replay": "a perfect replay", "pybullet": "PyBullet, run here"}
    for group in ("1", "2"):
        shown = [name for name in columns if group == "2" or not name.startswith("object_")]
        rows: dict[str, dict[str, float]] = {}
        if mode == "released":
            theirs = found["published"][group]
            rows["PyBullet (published)"] = theirs["PyBullet"]
            rows["best of the six published, each column"] = {c: min(one[c] for one in theirs.values()) for c in shown}
        rows |= {extra[name]: found[name]["modes"][mode]["subgroups"][group] for name in more}
        rows |= {f"manikin, {SAID[k]}": found["settings"][k]["modes"][mode]["subgroups"][group] for k in chosen}
        cells = {name: [f"{row[c]:.3g}" for c in shown] for name, row in rows.items()}
        lines += table([f"subgroup {group}", *(with_unit(name, mode) for name in shown)], cells)
    return "\n".join(lines).rstrip()


def measured() -> str:
    """Subgroups of the released mode, with the published rows."""
    found = result()
    most = max(one["processor_seconds"] for one in found["settings"].values())
    return (
        subgroups(SHOWN, "released", list(found["settings"]))
        + f"\n\nAll ten tasks with 20 repeats take at most {most:.0f} s of processor time. "
        f"Command: `{found['command']}`."
    )


def turned() -> str:
    return subgroups(TURNED, "released", ("default", "aligned", "smooth", "calibrated"), more=("replay",))


def paper() -> str:
    columns = (*SHOWN[:4], "moment", "object_translation", *TURNED)
    return subgroups(columns, "paper", ("default", "smooth", "calibrated"), more=("pybullet",))


def pybullet() -> str:
    """The published row and ours; ours also by the paper's formulas."""
    found, columns = (
        result(),
        ("euclidean", "velocity", "acceleration", "torque", "force", "moment", "rotation", "pose"),
    )
    rows = {}
    for group in ("1", "2"):
        here = found["pybullet"]["modes"]
        for word, row in (
            ("published", found["published"][group]["PyBullet"]),
            ("here, `released`", here["released"]["subgroups"][group]),
            ("here, `paper`", here["paper"]["subgroups"][group]),
        ):
            rows[f"subgroup {group}, {word}"] = [f"{row[c]:.3g}" for c in columns]
    seconds = found["pybullet"]["processor_seconds"]
    ends = {
        mode: found["pybullet"]["modes"][mode]["subgroups"]["2"]["object_translation"] for mode in ("released", "paper")
    }
    lines = table(["", *(METRICS[c].title for c in columns)], rows)
    lines += [
        f"Object translation is {ends['released']:.3g} (`paper`: {ends['paper']:.3g}). Twenty repeats of all tasks "
        f"take {seconds / 60:.1f} minutes of processor time."
    ]
    return "\n".join(lines)


def replay() -> str:
    """What even a perfect replay has."""
    found, rows = result()["replay"]["modes"]["released"]["subgroups"], {}
    named = ("pose", "rotation", "object_translation", "object_rotation")
    for group, row in found.items():
        others = max(value for name, value in row.items() if name not in named)
        rows[f"subgroup {group}, a perfect replay"] = [
            *(f"{row[name]:.3f}" if name in row else "" for name in named),
            f"at most {others:.1g}",
        ]
    return "\n".join(table(["", *(with_unit(name) for name in named), "all other errors"], rows)).rstrip()


def moving() -> str:
    """How long objects move, by the mode paper."""
    found = result()["settings"]
    rows = {"recorded": [f"{both[0]:.1f}" for both in found["default"]["moving_s"].values()]}
    rows |= {f"manikin, {SAID[k]}": [f"{b[1]:.1f}" for b in one["moving_s"].values()] for k, one in found.items()}
    heads = [f"task {task}" for task in found["default"]["moving_s"]]
    return "\n".join(table(["`object_moving_time`, `paper` [s]", *heads], rows)).rstrip()


def rolling() -> str:
    """Rolling times of tasks 5 to 8."""
    found = result()
    tasks = list(found["rolled"])
    rows = {"recorded": [f"{found['rolled'][t]['rolling_s'][0]:.1f}" for t in tasks]}
    for name in ("default", "smooth", "rocking", "calibrated"):
        rows[f"manikin, {SAID[name]}"] = [f"{found['settings'][name]['rolling_s'][t][1]:.1f}" for t in tasks]
    rows["manikin, with settings of its own"] = [f"{found['rolled'][t]['rolling_s'][1]:.1f}" for t in tasks]
    rows["difference of the last row"] = [
        f"{100 * (b / a - 1):+.0f} %" for a, b in (found["rolled"][t]["rolling_s"] for t in tasks)
    ]
    rows["its end, from the recorded one [m]"] = [f"{math.dist(*found['rolled'][t]['end_m']):.2f}" for t in tasks]
    rows["its settings"] = [
        ", ".join(f"`{k} = {v:g}`" for k, v in found["rolled"][t]["changed"].items()) for t in tasks
    ]
    return "\n".join(table(["rolling time [s]", *(f"task {t}" for t in tasks)], rows)).rstrip()


def reality() -> str:
    """Where the base stands and what the torque sensors say, in the order of recording."""
    found = result()["reality"]
    order = sorted(found, key=lambda task: datetime.strptime(when(found[task]["date"]), "%d/%m/%Y %I:%M%p"))
    rows = {
        f"task {task}": [
            found[task]["date"],
            f"{found[task]['base']['yaw']:.2f}",
            *(f"{1000 * found[task]['base'][axis]:.0f}" for axis in "xyz"),
            f"{1000 * found[task]['base']['rest_m']:.0f}",
            *(f"{found[task]['torque_share'][f'joint{k}']:.2f}" for k in (2, 3)),
        ]
        for task in order
    }
    heads = [
        "",
        "recorded",
        "yaw [degrees]",
        "x [mm]",
        "y [mm]",
        "z [mm]",
        "rest [mm]",
        "torque of joint 2",
        "of joint 3",
    ]
    left = result()["reality_left_out"]
    lines = table(heads, rows)
    if left:
        lines.append(f"Left out are tasks {' and '.join(left)}: their wrist does not begin at home.")
    return "\n".join(lines).rstrip()


def when(date: str) -> str:
    """``16/04/2019 2:04pm`` of how the recordings have it; 12:45am is past noon, as the order of files says."""
    return date.replace(" pm", "pm").replace(" am", "am").replace("12:45am", "12:45pm")


def search() -> str:
    """What searches found, what the recordings determine, and how fast they were."""
    found, lines = result()["searches"], []
    for name, one in found.items():
        chosen, rows = one["settings"]["chosen"], {}
        usual = {field.name: field.default for field in dataclasses.fields(Settings)}
        for setting, (low, high) in one["profile"].items():
            value = chosen.get(setting, usual[setting])
            value = value[0] if isinstance(value, list | tuple) else value
            held = [each[setting] for each in one["settings"]["held_out"].values()]
            held = [each[0] if isinstance(each, list) else each for each in held]
            rows[f"`{setting}`"] = [f"{value:.3g}", f"{min(held):.3g} to {max(held):.3g}", f"{low:.3f}", f"{high:.3f}"]
        heads = [f"`{name}`, loss {one['loss']:.3f}", "found", "without a task", "a tenth lower", "a tenth higher"]
        lines += table(heads, rows)
        simulated = one["candidates_per_minute"] * one["seconds"] / 60  # without those of a search that it went on with
        rate = one["processor_seconds"] / simulated
        lines += [
            f"{one['candidates']} candidates with two repeats, {rate:.1f} s of processor time for each: 200 candidates "
            f"take {200 * rate / 60:.0f} minutes. The search on all tasks and those without each task asked for "
            f"{11 * one['asked']}, many of them the same.",
            "",
        ]
    return "\n".join(lines).rstrip()


def library() -> str:
    """Where cubes stop with the library's friction, and whether experts mind."""
    found, lines = result()["settings"], []
    rows = {}
    for name in ("library", "aligned", "smooth"):
        cells = []
        for task in ("3", "4", "9", "10"):
            real, sim = found[name]["end_m"][task]
            cells.append(f"{1000 * math.dist(real, sim):.0f}")
        rows[{"library": "1.0, and 100 Hz", "aligned": "0.5", "smooth": "0.25"}[name]] = cells
    heads = [
        "friction",
        *(f"{word} [mm]" for word in ("plastic cube", "wooden cube", "plastic cuboid", "wooden cuboid")),
    ]
    lines += table(heads, rows)
    experts = json.loads(FRICTION.read_text())
    rows = {
        task: [f"{one['successes']} ({100 * one['low']:.0f} to {100 * one['high']:.0f} %)" for one in cells.values()]
        for task, cells in experts["tasks"].items()
    }
    lines += table(
        [f"successes of {experts['seeds']}", *(f"friction {f}" for f in experts["tasks"]["PushCube-v2"])], rows
    )
    return "\n".join([*lines, f"Command: `{experts['command']}`."])


def picture() -> str:
    """Task 3, recorded and simulated: both synthetic."""
    real = averaged(synthetic_recording(3))
    sim = synthetic_recording(3, seed=1, delay=0.5, push=0.6)
    legend = ((RECORDED, "synthetic recording"), (SIMULATED, "simulation, also synthetic"))
    return curves_svg(overlay(real, sim), real.hz, legend) + "\n"


def made() -> dict[Path, str]:
    """The text of each file."""
    each = (
        metrics,
        kinds,
        settings,
        measured,
        moving,
        turned,
        paper,
        rolling,
        reality,
        search,
        pybullet,
        replay,
        library,
    )
    tables = {one.__name__: one() for one in each}
    return {PAGE: sections(PAGE.read_text(), tables), PICTURE: picture()}


if __name__ == "__main__":
    sys.exit(finish(sys.argv[1:], __doc__, made))
