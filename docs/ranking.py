"""Fill the tables of the proof in docs/rank-policies.md and draw its pictures, from three committed results.

python docs/ranking.py            # after benchmarks/ranking.py, ranking_varied.py and policy_conditions.py
python docs/ranking.py --check    # only say whether tables and plot are up to date (exit status 1: they are not)

Without ``--check`` it draws the realities, too.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from filling import finish, sections

from manikin.eval.ranking.plots import COLOURS, Point, scatter
from manikin.eval.stats import wilson
from manikin.render import tile, write_png
from manikin.render.files.caption import caption

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "rank-policies.md"
PLOT = ROOT / "docs" / "images" / "matching.svg"
PICTURE = ROOT / "docs" / "images" / "realities.png"
RESULT = ROOT / "benchmarks" / "results" / "ranking.json"
VARIED = ROOT / "benchmarks" / "results" / "ranking_varied.json"
CONDITIONS = ROOT / "benchmarks" / "results" / "policy_conditions.json"
TITLES = {
    "before": "before matching",
    "identified": "with the robot identified",
    "matched": "with camera and pictures matched",
    "both": "with both",
}
GROUPS = {
    "identified": "servos' stiffness wrong by one factor",
    "pictures": "what of the picture is matched",
    "colours": "the same, four colours of the arm averaged",
    "world": "MuJoCo Warp",
}
UNMEASURED = "Not measured yet."
SHOWN = 3  # realities in the picture
sys.path.insert(0, str(ROOT / "benchmarks"))


def table(result: dict[str, Any]) -> str:
    """Agreement of each simulator with reality, and the rates behind it."""
    lines = ["| simulator | MMRV | its change | Pearson | its change |", "|---|---:|---:|---:|---:|"]
    for name, found in result["agreement"].items():
        cells = [TITLES[name]]
        for metric in ("mmrv", "pearson"):
            change = found.get(f"{metric}_change")
            said = f"{change[0]:+.3f} [{change[1]:+.3f}, {change[2]:+.3f}]" if change else ""
            cells += [f"{found[metric]:.3f}", said]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", f"| policy | reality | {' | '.join(TITLES.values())} |", "|---|---:|" + "---:|" * len(TITLES)]
    for k, policy in enumerate(result["policies"]):
        tables = (result["reality"], *(result["simulated"][name] for name in TITLES))
        rates = [f"{100 * np.mean([row[k] for row in rows]):.0f} %" for rows in tables]
        lines.append(f"| `{policy}` | {' | '.join(rates)} |")
    return "\n".join(lines)


def varied(result: dict[str, Any]) -> str:
    """Agreement of the matched simulators with one thing changed, and networks along their training."""
    cells = result["cells"]
    grid = {name: _agreement(found) for name, found in cells["physics"].items()}
    masses, frictions = (list(dict.fromkeys(name.split(", ")[k] for name in grid)) for k in (0, 1))
    lines = [f"| MMRV, Pearson | {' | '.join(frictions)} |", "|---|" + "---:|" * len(frictions)]
    lines += [f"| {m} | {' | '.join(', '.join(grid[f'{m}, {f}']) for f in frictions)} |" for m in masses]
    lines += ["", "| changed | to | MMRV | Pearson |", "|---|---|---:|---:|"]
    for group, words in GROUPS.items():
        lines += [f"| {words} | {name} | {' | '.join(_agreement(one))} |" for name, one in cells.get(group, {}).items()]
    lines += ["", "| network | reality | matched simulators |", "|---|---:|---:|"]
    for name, rates in result["checkpoints"].items():
        lines.append(f"| `{name}` | {' | '.join(f'{100 * np.mean(rate):.0f} %' for rate in rates)} |")
    return "\n".join(lines)


def offline(result: dict[str, Any], changed: dict[str, Any]) -> str:
    """Ranking by the error of actions, beside the simulators."""
    if (found := changed.get("offline")) is None:
        return UNMEASURED
    lines = ["| ranked by | MMRV | Pearson |", "|---|---:|---:|"]
    cells = ["{:.3f} [{:.3f}, {:.3f}]".format(*found[metric]) for metric in ("mmrv", "pearson")]
    lines.append(f"| error of actions on demonstrations | {' | '.join(cells)} |")
    simulated = {name: " | ".join(_agreement(result["agreement"][name])) for name in ("before", "both")}
    lines += [f"| success in simulation, {TITLES[name]} | {said} |" for name, said in simulated.items()]
    lines += ["", "| policy | reality | error of actions |", "|---|---:|---:|"]
    for k, policy in enumerate(result["policies"]):
        rate = np.mean([row[k] for row in result["reality"]])
        lines.append(f"| `{policy}` | {100 * rate:.0f} % | {found['errors'][policy]:.3f} |")
    return "\n".join(lines)


def cabinet(changed: dict[str, Any]) -> str:
    """Agreement with the cabinet as declared, by the friction of its joints."""
    from ranking_varied import AT_DRAWERS

    if (found := changed.get("cabinet")) is None:
        return UNMEASURED
    names = list(found["cells"])
    lines = [f"| | reality | {' | '.join(names)} |", "|---|---:|" + "---:|" * len(names)]
    for k, metric in enumerate(("MMRV", "Pearson")):
        lines.append(f"| {metric} | | {' | '.join(_agreement(found['cells'][name])[k] for name in names)} |")
    for policy, rate in found["reality"].items():
        rates = [rate, *(found["cells"][name]["rates"][policy] for name in names)]
        lines.append(f"| `{AT_DRAWERS[policy]}` | {' | '.join(f'{100 * one:.0f} %' for one in rates)} |")
    return "\n".join(lines)


def conditions(result: dict[str, Any]) -> str:
    """Seeds of a policy, time of an answer, and words of an instruction."""
    lines = ["| policy | each seed | all, runs of an episode together | all, as if independent | correlation |"]
    lines.append("|---|---|---:|---:|---:|")
    for word, one in result["seeds"].items():
        each = ", ".join(f"{100 * rate:.0f}" for rate in one["seeds"])
        spans = [f"{100 * one[how]['low']:.1f} to {100 * one[how]['high']:.1f} %" for how in ("clustered", "apart")]
        lines.append(f"| `{word}` | {each} % | {' | '.join(spans)} | {one['correlation']:.2f} |")
    executed = result["slow"]
    times = list(next(iter(executed.values())))
    lines += ["", f"| actions executed of a chunk | {' | '.join(f'{ms} ms' for ms in times)} |"]
    lines.append("|---|" + "---:|" * len(times))
    lines += [f"| {count} | {' | '.join(_percent(rates[ms]) for ms in times)} |" for count, rates in executed.items()]
    read = result["instructions"]
    words = list(next(iter(read.values())))
    lines += ["", f"| policy | {' | '.join(words)} |", "|---|" + "---:|" * len(words)]
    lines += [f"| {name} | {' | '.join(_percent(rates[one]) for one in words)} |" for name, rates in read.items()]
    return "\n".join(lines)


def _percent(rate: dict[str, float]) -> str:
    return f"{100 * rate['rate']:.0f} % [{100 * rate['low']:.0f}, {100 * rate['high']:.0f}]"


def _agreement(found: dict[str, float]) -> list[str]:
    return [f"{found[metric]:.3f}" for metric in ("mmrv", "pearson")]


def plot(result: dict[str, Any]) -> str:
    """Simulation over reality before and after matching, a point for each policy and reality."""
    count, parts = result["episodes"], []
    for at, name in enumerate(("before", "both")):
        points = [
            Point(policy, _span(row[k], count), _span(there[k], count), COLOURS[k])
            for row, there in zip(result["reality"], result["simulated"][name], strict=True)
            for k, policy in enumerate(result["policies"])
        ]
        parts.append(scatter(points, TITLES[name]).replace("<svg ", f'<svg x="{370 * at}" ', 1))
    for k, policy in enumerate(result["policies"]):
        y = 30 + 18 * k
        parts.append(
            f'<circle cx="750" cy="{y}" r="4.5" fill="{COLOURS[k]}"/><text x="762" y="{y + 4}">{policy}</text>'
        )
    style = "<style>text{font:11px sans-serif;fill:#777}svg{color:#777}</style>"
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 890 356">{style}{"".join(parts)}</svg>\n'


def _span(rate: float, count: int) -> tuple[float, float, float]:
    found = wilson(round(rate * count), count)
    return rate, found.low, found.high


def picture() -> np.ndarray:
    """What a policy sees at the same start: in realities, before matching, and after it."""
    from realities import Simulator, drawn, matched, nominal, real

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for k, one in enumerate(drawn()[:SHOWN]):
            place = Path(folder) / str(k)
            camera, photograph, looks, _ = matched(one, place)
            twin = Simulator(camera=camera, photograph=photograph, looks=looks)
            kinds = {"reality": real(one, place), "before matching": nominal(), "matched": twin}
            rows += [caption(_seen(simulator), [words]) for words, simulator in kinds.items()]
    return tile(rows, columns=3)


def _seen(simulator: Any) -> np.ndarray:
    env = simulator.make(1, sees=True)
    observation, _ = env.reset(seed=4)
    pixels: np.ndarray = observation["cameras"]["near"]["rgb"][0].numpy().repeat(4, 0).repeat(4, 1)
    env.close()
    return pixels


def made() -> dict[Path, str]:
    """The text of each file."""
    result, changed = json.loads(RESULT.read_text()), json.loads(VARIED.read_text())
    parts = {
        "ranking": table(result),
        "varied": varied(changed),
        "offline": offline(result, changed),
        "cabinet": cabinet(changed),
        "conditions": conditions(json.loads(CONDITIONS.read_text())),
    }
    page = sections(PAGE.read_text(), parts)
    return {PAGE: page, PLOT: plot(result)}


if __name__ == "__main__":
    status = finish(sys.argv[1:], __doc__, made)
    if not sys.argv[1:]:
        write_png(PICTURE, picture())
    sys.exit(status)
