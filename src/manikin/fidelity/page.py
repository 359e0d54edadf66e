"""Scores as one page of HTML: tables beside the published rows, and each task with what was recorded and simulated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape

import numpy as np

from manikin.eval.pages.curves import Panel, curves_svg
from manikin.eval.pages.parts import alarm, details, grid, page, section
from manikin.fidelity.metrics.modes import COLUMNS, METRICS, FidelityMetric
from manikin.fidelity.metrics.paper import final, mean_parts, moving_times
from manikin.fidelity.numerics import median, speeds
from manikin.fidelity.protocol import SUBGROUPS, benchmark_task
from manikin.fidelity.recordings.recording import Recording
from manikin.fidelity.score import Score, TaskScore, published

__all__ = [
    "NOT_COMPARED",
    "OTHERS",
    "columns",
    "compared",
    "drawn",
    "ends",
    "omitted",
    "overlay",
    "render_page",
    "unit",
]

RECORDED, SIMULATED = "#8a929b", "#2f6fd0"
OTHERS = ("#d9622b", "#2e9e6b", "#8e4ec6", "#b8860b")  # of further simulators
NOT_COMPARED = (
    "Files say that they are synthetic. Such a score says nothing about a simulator, and it is not put beside the "
    "published rows."
)


Told = Sequence[tuple[str, TaskScore]]
"""One task of each simulator: its name, and its score."""


def _metric(name: str) -> FidelityMetric:
    """By its name, of one of several objects ``object_translation/cube``."""
    return METRICS[name.partition("/")[0]]


def unit(name: str, mode: str) -> str:
    """Unit of a metric in a mode; "" without one."""
    one = _metric(name)
    return one.released_unit if mode == "released" and one.released_unit else one.unit


def columns(group: int | str, rows: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Errors that the table of a subgroup, or of a task of your own, has."""
    if isinstance(group, int):
        return list(COLUMNS[group])
    named = [name for row in rows.values() for name in row]
    return list(dict.fromkeys(name for name in named if name.partition("/")[0] in COLUMNS[2]))


def compared(scores: Sequence[Score]) -> dict[int | str, dict[str, dict[str, float]]]:
    """Subgroup -> row -> error -> value: the published rows, unless something is synthetic, then these scores. Of tasks
    of your own: task -> simulator -> metric -> value."""
    if any(one.own for one in scores):
        tasks = dict.fromkeys(task for one in scores for task in one.tasks)
        return {k: _rows({}, [(one.name, one.tasks[k].values) for one in scores if k in one.tasks]) for k in tasks}
    known = {} if any(one.synthetic for one in scores) else published()
    found: dict[int | str, dict[str, dict[str, float]]] = {}
    for group in SUBGROUPS:
        rows = {f"{name} (published)": values for name, values in known.get(group, {}).items()}
        found[group] = _rows(rows, [(one.name, one.subgroups[group]) for one in scores if group in one.subgroups])
    return found


def _rows(
    rows: dict[str, dict[str, float]], more: Sequence[tuple[str, Mapping[str, float]]]
) -> dict[str, dict[str, float]]:
    """Rows and more of them; of two with one name the second gets a number."""
    for name, values in more:
        same = sum(one.startswith(name) for one in rows)
        rows[f"{name} ({same + 1})" if name in rows else name] = dict(values)
    return rows


def render_page(scores: Sequence[Score], films: Mapping[int, str] | None = None) -> str:
    """A page of one or more scores, self-contained but for ``films``: links by task."""
    names = ", ".join(one.name for one in scores)
    mode, own = scores[0].mode, any(one.own for one in scores)
    how = {"paper": "the paper's formulas", "released": "the released script's formulas, with its errors"}[mode]
    title = f"Distance from reality: {names}"
    many = "" if own else " 20 repeats per task."
    parts = [f'<div class="top"><h1>{escape(title)}</h1></div><p class="meta">By {how}.{many}</p>']
    if any(one.synthetic for one in scores):
        parts.append(alarm("SYNTHETIC.", NOT_COMPARED))
    elif mode == "paper" and not own:
        note = "The published rows are of the released script; other formulas stand behind this page's rows."
        parts.append(f"<p>{note}</p>")
    for group, rows in compared(scores).items():
        head = f"Subgroup {group}" if isinstance(group, int) else f"Errors: {group}"
        parts.append(section(f"<h2>{escape(head)}</h2>{_table(group, rows, scores)}"))
    for task in dict.fromkeys(task for one in scores for task in one.tasks):
        told = [(one.name, one.tasks[task]) for one in scores if task in one.tasks]
        body = f"<h2>{escape(_titled(task, told[0][1]))}</h2>{drawn(told)}{_moving(told)}"
        if films and isinstance(task, int) and task in films:
            body += f"<p>First repeat; spheres: where wrist and object were recorded.</p>{_film(films[task])}"
        parts.append(section(body + _metrics(told, mode) + _defects(told)))
    style = "<style>svg {width: 100%; display: block; font-size: 11px} svg text {fill: currentColor}</style>"
    return page(title, style + "".join(parts))


def _titled(task: int | str, one: TaskScore) -> str:
    if isinstance(task, int):
        return f"task {task}: {benchmark_task(task).title}"
    robot = one.real.header.get("robot", "")
    many = f"{len(one.real.arm)} recorded repeats, {one.real.rows} rows at {one.real.hz:g} Hz"
    return f"{task}{f', {robot}' if robot else ''}: {many}"


def _table(group: int | str, rows: Mapping[str, Mapping[str, float]], scores: Sequence[Score]) -> str:
    lacking = [
        f"<p>{escape(one.name)} lacks task {', '.join(map(str, one.lacking(group)))}; the subgroup needs all.</p>"
        for one in scores
        if isinstance(group, int) and one.lacking(group)
    ]
    if not rows:
        return "".join(lacking)
    heads = ["simulator", *(_head(name, scores[0].mode) for name in columns(group, rows))]
    cells = [[escape(name), *(_cell(row.get(one)) for one in columns(group, rows))] for name, row in rows.items()]
    return grid(heads, cells) + "".join(lacking)


def _head(name: str, mode: str) -> str:
    said = unit(name, mode)
    return escape(name.replace("_", " ") + (f" [{said}]" if said else ""))


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _film(link: str) -> str:
    return f'<video src="{escape(link)}" controls loop muted width="480"></video>'


def _moving(told: Told) -> str:
    """How long each object moves on either side."""
    real, said = told[0][1].real, []
    for thing in real.things if len(real.objects) else ():
        sides = [("recorded", real), *((_called(name, told), one.sim) for name, one in told)]
        rows, times = _common(told), []
        for word, one in sides:
            if len(one.objects) and thing in one.things:
                each = moving_times(one.cut(rows), thing)
                times.append(f"{escape(word)} {each.mean():.1f} s (deviation {each.std():.1f} s)")
        if len(times) > 1:
            name = "object" if thing == "object" else escape(thing)
            said.append(f"The {name} moves: {', '.join(times)}; speeds above 0.02 m/s after a median of half a second.")
    return "".join(f"<p>{one}</p>" for one in said)


def _called(name: str, told: Told) -> str:
    return name if len(told) > 1 else "simulated"


def _common(told: Told) -> int:
    """Rows that all have."""
    return min(min(one.real.rows, one.sim.rows) for _, one in told)


def omitted(one: TaskScore) -> list[str]:
    """``torque, max_torque: the recordings have no joint torques``: metrics that do not apply, by the reason."""
    reasons = dict.fromkeys(one.left_out.values())
    return [f"{', '.join(k for k, why in one.left_out.items() if why == reason)}: {reason}" for reason in reasons]


def _metrics(told: Told, mode: str) -> str:
    names = list(dict.fromkeys(name for _, one in told for name in one.values))
    ordered = sorted(names, key=lambda name: (name.partition("/")[2], list(METRICS).index(name.partition("/")[0])))
    rows = []
    for name in ordered:
        title, thing = _metric(name).title, name.partition("/")[2]
        values = [f"<b>{_cell(one.values.get(name))}</b>" for _, one in told]
        rows.append([escape(f"{title}, {thing}" if thing else title), *values, unit(name, mode), _metric(name).tells])
    heads = ["metric", *(escape(name) if len(told) > 1 else "value" for name, _ in told), "unit", "what it tells"]
    notes = ""
    for name, one in told:
        whose = f"{escape(name)}: " if len(told) > 1 else ""
        notes += "".join(f"<p>{whose}{escape(note)}</p>" for note in one.notes)
        notes += "".join(f"<p>{whose}left out: {escape(note)}</p>" for note in omitted(one))
    last = (len(heads) - 2, len(heads) - 1)
    return details(f"{len(rows)} metrics", grid(heads, rows, left=last) + notes)


def _defects(told: Told) -> str:
    sides = [("recording", told[0][1].real_defects)]
    sides += [(escape(name) if len(told) > 1 else "simulation", one.sim_defects) for name, one in told]
    rows = [
        [who, escape(one.kind), escape(one.where), str(len(one.rows)), escape(str(one))]
        for who, found in sides
        for one in found
    ]
    heads = ("of", "kind", "track", "rows", "what")
    return details(f"{len(rows)} defects", grid(heads, rows, left=(1, 2, 4))) if rows else ""


# ---- drawings --------------------------------------------------------------------------------------------------------


def drawn(told: Told) -> str:
    """The task's curves, and where the objects and your own tool end."""
    real, sims = told[0][1].real, [one.sim for _, one in told]
    legend = [(RECORDED, "recorded"), *zip(_colours(sims), (_called(name, told) for name, _ in told), strict=True)]
    return curves_svg(overlay(real, *sims), real.hz, legend) + ends(real, *sims)


def _colours(sims: Sequence[Recording]) -> list[str]:
    return [SIMULATED if k == 0 else OTHERS[(k - 1) % len(OTHERS)] for k in range(len(sims))]


def overlay(real: Recording, *sims: Recording) -> list[Panel]:
    """Position and speed of the wrist, sums of absolute torques, forces and moments, and joints, of the means over
    repeats; and medians of the objects' speeds. What nobody recorded is left out."""
    rows = min(one.rows for one in (real, *sims))
    sides = [(RECORDED, real), *zip(_colours(sims), sims, strict=True)]
    means = [(colour, one, mean_parts(one, rows)) for colour, one in sides]
    word, panels = "tool" if real.own else "wrist", list[Panel]()

    def add(title: str, part: str, curve: Callable[[np.ndarray], np.ndarray]) -> None:
        curves = [(colour, curve(mean[part])) for colour, one, mean in means if part in one.columns]
        panels.extend([(title, curves)] if curves else [])

    for k, axis in enumerate("xyz"):
        add(f"{word} {axis} [m]", "pos", lambda pos, k=k: pos[:, k])  # type: ignore[misc]
    add(f"{word} speed [m/s]", "pos", lambda pos: speeds(pos, real.hz))
    for name, said in (("torque", "N m"), ("force", "N"), ("moment", "N m")):
        add(f"{name} [{said}]", name, lambda load: np.abs(load).sum(1))
    for thing in real.things if len(real.objects) else ():
        tracks = [(colour, one.cut(rows).track(thing)) for colour, one in sides if thing in one.things]
        pace = [(colour, median(speeds(one[..., :3], real.hz).T)) for colour, one in tracks if len(one)]
        panels.extend([(f"{thing} speed, median [m/s]", pace)] if len(pace) > 1 else [])
    for k in range(real.part("qpos").shape[-1] if "qpos" in real.columns else 0):
        add(f"joint {k + 1} [rad]", "qpos", lambda q, k=k: q[:, k])  # type: ignore[misc]
    return panels


_SIDE, _ROW = 260.0, 300.0  # of a square, and from one to the next


def ends(real: Recording, *sims: Recording) -> str:
    """Where objects, and of your own tasks the tool, end: seen from above, a square for each, a point per repeat, with
    ellipses of two standard deviations. "" without any."""
    rows = min(one.rows for one in (real, *sims))
    sides = [(RECORDED, real), *zip(_colours(sims), sims, strict=True)]
    tracks: dict[str, list[tuple[str, np.ndarray]]] = {}
    for thing in real.things if len(real.objects) else ():
        some = [(colour, one) for colour, one in sides if len(one.objects) and thing in one.things]
        tracks[thing] = [(colour, final(one.cut(rows).track(thing), one.hz)) for colour, one in some]
    if real.own:
        some = [(colour, one) for colour, one in sides if "pos" in one.columns]
        tracks["tool"] = [(colour, final(one.cut(rows).part("pos"), one.hz)) for colour, one in some]
    known = {k: [(c, one[np.isfinite(one).all(1)][:, :2]) for c, one in each] for k, each in tracks.items()}
    known = {k: each for k, each in known.items() if len(each) > 1 and any(len(one) for _, one in each)}
    if not known:
        return ""
    parts = []
    for k, (name, each) in enumerate(known.items()):
        parts += _square(name, each, 30 + _ROW * (k % 3), 10 + _ROW * (k // 3))
    height = _ROW * -(-len(known) // 3) + 6
    head = 'role="img" font-family="system-ui, sans-serif" font-size="11" xmlns="http://www.w3.org/2000/svg"'
    words = "ends from above; ellipses: 2 deviations"
    svg = f'<svg viewBox="0 0 920 {height:.0f}" {head}>{"".join(parts)}'
    return f'{svg}<text x="30" y="{height - 4:.0f}">{words}</text></svg>'


def _square(name: str, groups: Sequence[tuple[str, np.ndarray]], left: float, top: float) -> list[str]:
    around = [(colour, _ellipse(ends)) for colour, ends in groups if len(ends) > 2]
    every = np.concatenate([ends for _, ends in (*groups, *around)])
    middle, half = (every.max(0) + every.min(0)) / 2, max(0.02, float(np.ptp(every, axis=0).max()) * 0.55)

    def at(x: float, y: float) -> tuple[float, float]:
        across, up = x - middle[0] + half, middle[1] + half - y
        return left + _SIDE * across / (2 * half), top + _SIDE * up / (2 * half)

    frame = f'x="{left:g}" y="{top:g}" width="{_SIDE:g}" height="{_SIDE:g}"'
    parts = [f'<rect {frame} fill="none" stroke="currentColor" opacity=".3"/>']
    for colour, ends in groups:
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in (at(*end) for end in ends)]
    for colour, ellipse in around:
        outline = "L".join(f"{x:.1f},{y:.1f}" for x, y in (at(*one) for one in ellipse))
        parts.append(f'<path d="M{outline}Z" fill="none" stroke="{colour}" stroke-width="1.6"/>')
    words = f"end of the {name}, {1000 * half:.0f} mm from the middle to an edge"
    return [*parts, f'<text x="{left:g}" y="{top + _SIDE + 14:g}">{escape(words)}</text>']


def _ellipse(ends: np.ndarray) -> np.ndarray:
    """(60, 2) points of an ellipse of two standard deviations around ends (R, 2)."""
    values, axes = np.linalg.eigh(np.cov(ends.T))
    turn = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    circle = np.stack([np.cos(turn), np.sin(turn)], 1)
    return np.asarray(ends.mean(0) + 2 * (circle * np.sqrt(np.maximum(values, 0))) @ axes.T)
