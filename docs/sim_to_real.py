"""Fill the tables of docs/sim-to-real.md and draw its curve, from benchmarks/results/sim_to_real.json.

python docs/sim_to_real.py            # after benchmarks/sim_to_real.py
python docs/sim_to_real.py --check    # only say whether they are up to date (exit status 1: they are not)
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from filling import alone, finish, sections

from manikin.eval.stats import wilson
from manikin.learn.run.chart import chart

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "sim-to-real.md"
PLOT = ROOT / "docs" / "images" / "sim-to-real-checkpoints.svg"
RESULT = ROOT / "benchmarks" / "results" / "sim_to_real.json"
MEAN, LEAST = 0.8, 0.5  # what is wanted over all settings, and in each
ACROSS = 4  # settings in a row of the table


def span(rate: float, low: float | None = None, high: float | None = None) -> str:
    """In percent, with its interval where there is one."""
    return f"{100 * rate:.1f} %" + (f" [{100 * low:.1f}, {100 * high:.1f}]" if low is not None and high else "")


def runs(result: dict[str, Any], earlier: dict[str, Any]) -> str:
    """The runs of the present recipes, then those before them."""
    lines = ["| run | success | processor time |", "|---|---:|---:|"]
    words = {
        "teacher": "teacher, `manikin train ppo GraspCube-v1 --seed 1`",
        "student": "student, `manikin train distill GraspCube-v1 --seed 1 --set teacher=runs/teacher`",
    }
    for name, said in words.items():
        one, tested = result[name], result[name]["tested"]
        steps = one["validated"][-1][0]
        rate = span(tested["rate"], tested["low"], tested["high"])
        lines.append(f"| {said}, {steps:,} steps | {rate} of {tested['episodes']} starts | {_minutes(one)} |")
    lines += ["", "| earlier run | success | processor time |", "|---|---:|---:|"]
    for one in earlier["runs"]:
        rate = span(one["rate"], one.get("low"), one.get("high"))
        lines.append(f"| {one['run']} | {rate} of {one['of']} | {one['cpu_minutes']:g} min |")
    return "\n".join(lines)


def _minutes(one: Mapping[str, Any]) -> str:
    return f"{one['cpu_seconds'] / 60:.0f} min"


def settings(result: dict[str, Any], earlier: dict[str, Any]) -> str:
    """Success in each of the suite's settings, beside the students before, and whether the target is met."""
    suite, before = result["suite"], list(earlier["suites"].values())
    count, won = suite["episodes"], suite["settings"]
    whole = wilson(sum(won.values()), count * len(won))
    worst = min(won, key=lambda name: won[name])
    met = whole.estimate >= MEAN and won[worst] / count >= LEAST
    rate = span(whole.estimate, whole.low, whole.high)
    said = (
        f"The student succeeds in **{rate}** of all {count * len(won)} episodes. "
        f"It does worst in `{worst}`, {100 * won[worst] / count:.0f} %. The target is **{'met' if met else 'missed'}**."
    )
    rates = "; ".join(
        f"{words}: {span(one['rate'], one['low'], one['high'])}" for words, one in earlier["suites"].items()
    )
    cells = [
        f"| `{name}` | {100 * number / count:.0f} % ({', '.join(str(one['settings'][name]) for one in before)}) "
        for name, number in won.items()
    ]
    head = f"{'| setting | success ' * ACROSS}|\n{'|---|---:' * ACROSS}|"
    rows = ["".join(cells[k : k + ACROSS]) + "|" for k in range(0, len(cells), ACROSS)]
    return "\n".join([said, "", f"In brackets are the students before, in percent ({rates}):", "", head, *rows])


def chosen(result: dict[str, Any]) -> str:
    """Success in settings that neither training nor the suite draws."""
    found = result["choosing"]
    lines = ["| setting | success |", "|---|---:|"]
    lines += [f"| `{name}` | {100 * won / found['episodes']:.0f} % |" for name, won in found["settings"].items()]
    return "\n".join([*lines, f"| mean | {100 * found['mean']:.1f} % |"])


def handed(result: dict[str, Any]) -> str:
    """What the teacher makes of the starts in which the student has had no success."""
    left, solved = (sum(pair[k] for pair in result["handed_over"].values()) for k in (0, 1))
    return (
        f"In {left} of all {result['suite']['episodes'] * len(result['handed_over'])} starts the student has had no "
        f"success after 40 steps. The teacher takes over there, and ends {solved} of them with success."
    )


def curve(result: dict[str, Any]) -> str:
    """Success of each checkpoint over training, in simulation and in the suite's settings."""
    points = {int(steps): one for steps, one in result["checkpoints"].items()}
    curves = {
        words: [[(steps, points[steps][kind]["rate"]) for steps in sorted(points)]]
        for words, kind in (("in simulation, as declared", "simulation"), ("in the 20 settings", "reality"))
    }
    return alone(chart(curves, across="control steps of training", up="success", top=1.0)) + "\n"


def made() -> dict[Path, str]:
    """The text of each file."""
    result = json.loads(RESULT.read_text())
    earlier = result["earlier"]
    parts = {"runs": runs(result, earlier), "settings": settings(result, earlier), "choosing": chosen(result)}
    parts["handed"] = handed(result)
    page = sections(PAGE.read_text(), {f"sim-to-real-{name}": text for name, text in parts.items()})
    return {PAGE: page, PLOT: curve(result)}


if __name__ == "__main__":
    sys.exit(finish(sys.argv[1:], __doc__, made))
