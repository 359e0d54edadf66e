"""Scores as one page of HTML: tables beside the published rows, and each task with what was recorded and simulated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

import numpy as np

from manikin.eval.pages.curves import Panel, curves_svg
from manikin.eval.pages.parts import alarm, details, grid, page, section
from manikin.fidelity.metrics.modes import COLUMNS, METRICS
from manikin.fidelity.metrics.paper import final, mean_arm, moving_times
from manikin.fidelity.numerics import median, speeds
from manikin.fidelity.protocol import HZ, REPEATS, SUBGROUPS, benchmark_task
from manikin.fidelity.recordings.recording import ARM, Recording
from manikin.fidelity.score import Score, TaskScore, published

__all__ = ["NOT_COMPARED", "compared", "drawn", "overlay", "render_page", "unit"]

RECORDED, SIMULATED = "#8a929b", "#2f6fd0"
NOT_COMPARED = (
    "Files say that they are synthetic. Such a score says nothing about a simulator, and it is not put beside the "
    "published rows."
)


def unit(name: str, mode: str) -> str:
    """Unit of a metric in a mode; "" without one."""
    metric = METRICS[name]
    return metric.released_unit if mode == "released" and metric.released_unit else metric.unit


def compared(scores: Sequence[Score]) -> dict[int, dict[str, dict[str, float]]]:
    """Subgroup -> row -> error -> value: the published rows, unless something is synthetic, then these scores."""
    known = {} if any(one.synthetic for one in scores) else published()
    found: dict[int, dict[str, dict[str, float]]] = {}
    for group in SUBGROUPS:
        rows = {f"{name} (published)": values for name, values in known.get(group, {}).items()}
        for one in scores:
            if group in one.subgroups:
                same = sum(name.startswith(one.name) for name in rows)
                rows[f"{one.name} ({same + 1})" if one.name in rows else one.name] = one.subgroups[group]
        found[group] = rows
    return found


def render_page(scores: Sequence[Score], films: Mapping[int, str] | None = None) -> str:
    """A page of one or more scores, self-contained but for ``films``: links by task."""
    names = ", ".join(one.name for one in scores)
    mode = scores[0].mode
    how = {"paper": "the paper's formulas", "released": "the released script's formulas, with its errors"}[mode]
    title = f"Distance from reality: {names}"
    parts = [f'<div class="top"><h1>{escape(title)}</h1></div><p class="meta">By {how}. 20 repeats per task.</p>']
    if any(one.synthetic for one in scores):
        parts.append(alarm("SYNTHETIC.", NOT_COMPARED))
    elif mode == "paper":
        note = "The published rows are of the released script; other formulas stand behind this page's rows."
        parts.append(f"<p>{note}</p>")
    for group, rows in compared(scores).items():
        parts.append(section(f"<h2>Subgroup {group}</h2>{_subgroup(group, rows, scores)}"))
    for one in scores:
        for number, task in one.tasks.items():
            about = benchmark_task(number)
            name = f"{one.name}, " if len(scores) > 1 else ""
            body = f"<h2>{escape(name)}task {number}: {about.title}</h2>{drawn(task)}{_moving(task)}"
            if films and number in films:
                body += f"<p>First repeat; spheres: where wrist and object were recorded.</p>{_film(films[number])}"
            parts.append(section(body + _metrics(task, mode) + _defects(task)))
    style = "<style>svg {width: 100%; display: block; font-size: 11px} svg text {fill: currentColor}</style>"
    return page(title, style + "".join(parts))


def _subgroup(group: int, rows: Mapping[str, Mapping[str, float]], scores: Sequence[Score]) -> str:
    lacking = [
        f"<p>{escape(one.name)} lacks task {', '.join(map(str, one.lacking(group)))}; the subgroup needs all.</p>"
        for one in scores
        if one.lacking(group)
    ]
    if not rows:
        return "".join(lacking)
    mode = scores[0].mode
    heads = ["simulator", *(_head(name, mode) for name in COLUMNS[group])]
    cells = [[escape(name), *(_cell(values.get(column)) for column in COLUMNS[group])] for name, values in rows.items()]
    return grid(heads, cells) + "".join(lacking)


def _head(name: str, mode: str) -> str:
    said = unit(name, mode)
    return escape(name.replace("_", " ") + (f" [{said}]" if said else ""))


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _film(link: str) -> str:
    return f'<video src="{escape(link)}" controls loop muted width="480"></video>'


def _moving(task: TaskScore) -> str:
    """How long the object moves on either side."""
    if not (len(task.real.objects) and len(task.sim.objects)):
        return ""
    said = []
    for word, one in (("recorded", task.real), ("simulated", task.sim)):
        times = moving_times(one.cut(min(task.real.rows, task.sim.rows)))
        said.append(f"{word} {times.mean():.1f} s (deviation {times.std():.1f} s)")
    return f"<p>The object moves: {', '.join(said)}; speeds above 0.02 m/s after a median of 5 samples.</p>"


def _metrics(task: TaskScore, mode: str) -> str:
    rows = [
        [escape(METRICS[name].title), f"<b>{value:.4g}</b>", unit(name, mode), METRICS[name].tells]
        for name, value in task.values.items()
    ]
    notes = "".join(f"<p>{escape(note)}</p>" for note in task.notes)
    return details(
        f"{len(rows)} metrics", grid(("metric", "value", "unit", "what it tells"), rows, left=(2, 3)) + notes
    )


def _defects(task: TaskScore) -> str:
    rows = [
        [who, escape(one.kind), escape(one.where), str(len(one.rows)), escape(str(one))]
        for who, found in (("recording", task.real_defects), ("simulation", task.sim_defects))
        for one in found
    ]
    return (
        details(f"{len(rows)} defects", grid(("of", "kind", "track", "rows", "what"), rows, left=(1, 2, 4)))
        if rows
        else ""
    )


# ---- drawings --------------------------------------------------------------------------------------------------------


def drawn(task: TaskScore) -> str:
    """The task's curves, and where the object ends."""
    legend = ((RECORDED, "recorded"), (SIMULATED, "simulated"))
    body = curves_svg(overlay(task.real, task.sim), HZ, legend)
    if len(task.real.objects) and len(task.sim.objects):
        body += _ends(task)
    return body


def overlay(real: Recording, sim: Recording) -> list[Panel]:
    """Position and speed of the wrist, and sums of absolute torques, forces and moments, of both means over repeats."""
    rows = min(real.rows, sim.rows)
    means = [(colour, mean_arm(one)[:rows]) for colour, one in ((RECORDED, real), (SIMULATED, sim))]
    panels: list[Panel] = [
        (f"wrist {axis} [m]", [(colour, arm[:, k]) for colour, arm in means]) for k, axis in enumerate("xyz")
    ]
    panels.append(("wrist speed [m/s]", [(colour, speeds(arm[:, :3], HZ)) for colour, arm in means]))
    for name, said in (("torque", "N m"), ("force", "N"), ("moment", "N m")):
        panels.append((f"{name} [{said}]", [(colour, np.abs(arm[:, ARM[name]]).sum(1)) for colour, arm in means]))
    things = [(colour, one) for colour, one in ((RECORDED, real), (SIMULATED, sim)) if len(one.objects)]
    if len(things) == 2:
        pace = [(colour, median(speeds(one.objects[:REPEATS, :rows, :3], HZ).T)) for colour, one in things]
        panels.append(("object speed, median [m/s]", pace))
    return panels


def _ends(task: TaskScore) -> str:
    """Ends of the object from above, with ellipses of two standard deviations."""
    rows = min(task.real.rows, task.sim.rows)
    groups = [
        (colour, word, final(one.cut(rows).objects[:REPEATS])[:, :2])
        for colour, word, one in ((RECORDED, "recorded", task.real), (SIMULATED, "simulated", task.sim))
    ]
    groups = [(colour, word, ends[np.isfinite(ends).all(1)]) for colour, word, ends in groups]
    every = np.concatenate([ends for *_, ends in groups])
    if not len(every):
        return ""
    middle, half = (every.max(0) + every.min(0)) / 2, max(0.02, float(np.ptp(every, axis=0).max()) * 0.65)
    size = 260.0

    def at(x: float, y: float) -> tuple[float, float]:
        return 30 + size * (x - middle[0] + half) / (2 * half), 10 + size * (middle[1] + half - y) / (2 * half)

    parts = [f'<rect x="30" y="10" width="{size}" height="{size}" fill="none" stroke="currentColor" opacity=".3"/>']
    for colour, _, ends in groups:
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in (at(*end) for end in ends)]
        if len(ends) > 2:
            outline = "L".join(f"{x:.1f},{y:.1f}" for x, y in (at(*one) for one in _ellipse(ends)))
            parts.append(f'<path d="M{outline}Z" fill="none" stroke="{colour}" stroke-width="1.6"/>')
    words = f"end of the object from above, {1000 * half:.0f} mm from the middle to an edge; ellipses: 2 deviations"
    svg = f'<svg viewBox="0 0 920 290" role="img" xmlns="http://www.w3.org/2000/svg">{"".join(parts)}'
    return f'{svg}<text x="30" y="284">{words}</text></svg>'


def _ellipse(ends: np.ndarray) -> Iterable[np.ndarray]:
    values, axes = np.linalg.eigh(np.cov(ends.T))
    turn = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    circle = np.stack([np.cos(turn), np.sin(turn)], 1)
    return ends.mean(0) + 2 * (circle * np.sqrt(np.maximum(values, 0))) @ axes.T
