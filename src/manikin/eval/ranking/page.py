"""A ranking as one page of HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from manikin.data.recording.durable import replace_file
from manikin.eval.agreement.published import PUBLISHED
from manikin.eval.pages.parts import alarm, details, grid, page, pc, section, track
from manikin.eval.ranking.plots import COLOURS, Point, bars, scatter
from manikin.eval.stats import wilson

__all__ = ["render_page", "write_page"]

METRICS = {"mmrv": "MMRV (0 is best)", "pearson": "Pearson (1 is best)", "spearman": "Spearman (1 is best)"}


def write_page(summary: Mapping[str, Any], path: str | Path, links: Mapping[str, Sequence[str]] | None = None) -> None:
    """Write :func:`render_page` to a file, whole or not at all. Raises OSError where it cannot be written."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    replace_file(Path(path), render_page(summary, links).encode())


def render_page(summary: Mapping[str, Any], links: Mapping[str, Sequence[str]] | None = None) -> str:
    """A self-contained page.

    Args:
        summary: as :func:`manikin.eval.ranking.summary.summary` makes it.
        links: by policy, addresses of its own reports and films.
    """
    name, digest = summary["protocol"]["name"], summary["protocol"]["hash"]
    count = f"{len(summary['policies'])} policies" if len(summary["policies"]) != 1 else "one policy"
    top = (
        f'<div class="top"><h1>{escape(name)}: {count}</h1></div>'
        f'<p class="meta">Under protocol <code title="{digest}">{digest[:12]}</code>, intervals at '
        f"{summary['confidence']:.0%} confidence</p>"
    )
    if not summary["healthy"]:
        top += alarm("These rates are not valid.", "Some episodes are unhealthy; see the reports of the policies.")
    parts = [top, _ranking(summary), _reality(summary), _tasks(summary), _modes(summary)]
    parts += [_films(summary, links or {}), _shifts(summary), _offline(summary)]
    return page(f"{name}: {count}", "".join(parts))


def _colour(summary: Mapping[str, Any], policy: str) -> str:
    return COLOURS[summary["policies"].index(policy) % len(COLOURS)]


def _named(summary: Mapping[str, Any], policy: str) -> str:
    dot = f'<i class="dot" style="background:{_colour(summary, policy)}"></i>'
    return f"{dot}{escape(policy)}"


def _ranking(summary: Mapping[str, Any]) -> str:
    rows, ranked = [], summary["ranking"]
    several = any(one["seeds"] > 1 for one in ranked)
    for place, one in enumerate(ranked, 1):
        rate = {"rate": one["rate"]["estimate"], "low": one["rate"]["low"], "high": one["rate"]["high"]}
        ranks = str(one["first"]) if one["first"] == one["last"] else f"{one['first']} to {one['last']}"
        above = "" if one["above_next"] is None else pc(one["above_next"])
        row = [_named(summary, one["policy"]), str(place), track(rate), f"<b>{pc(rate['rate'])}</b>"]
        row += [f"{pc(rate['low'])} to {pc(rate['high'])}", ranks, pc(one["best"]), above]
        row += [f"{one['seeds']}: {pc(one['lowest'])} to {pc(one['highest'])}"] if several else []
        rows.append(row)
    headings = ["policy", "rank", "", "success", "interval", "rank lies in", "is the best", "beats the next"]
    headings += ["policy seeds: rates"] if several else []
    words = (
        "<p>Success is the mean over tasks. Episodes are drawn anew 10,000 times, the same ones for all policies. "
        "<i>Is the best</i> and <i>beats the next</i> say in which share of draws.</p>"
    )
    return section(f"<h2>Ranking</h2>{words}{grid(headings, rows, wide=2)}")


def _films(summary: Mapping[str, Any], links: Mapping[str, Sequence[str]]) -> str:
    """Addresses by policy; the films' names say task, outcome and seed."""
    rows = []
    for policy in summary["policies"]:
        pages, films = ([_link(at) for at in links.get(policy, ()) if at.endswith(".mp4") == film] for film in (0, 1))
        rows.append((_named(summary, policy), ", ".join(pages), "<br>".join(films)))
    heading, columns = ("Reports and films of every outcome", 3) if any(row[2] for row in rows) else ("Reports", 2)
    table = grid(("policy", "reports", "films")[:columns], [row[:columns] for row in rows], left=(1, 2))
    return section(f"<h2>{heading}</h2>{table}") if any(row[1] for row in rows) else ""


def _link(at: str) -> str:
    return f'<a href="{escape(at)}">{escape(Path(at).stem if at.endswith(".mp4") else "report")}</a>'


def _tasks(summary: Mapping[str, Any]) -> str:
    parts = []
    for task in summary["per_task"]:
        rows = []
        for policy, r in task["rates"].items():
            counts, between = f"{r['successes']} of {r['episodes']}", f"{pc(r['low'])} to {pc(r['high'])}"
            rows.append((_named(summary, policy), counts, track(r), f"<b>{pc(r['rate'])}</b>", between))
        headings = ("policy", "episodes", "", "success", "interval")
        parts.append(f"<h3>{escape(task['setting'])}</h3>{grid(headings, rows, wide=2)}")
    return section(f"<h2>Tasks</h2>{''.join(parts)}")


def _modes(summary: Mapping[str, Any]) -> str:
    """How episodes ended: a table per task, a column per policy."""
    parts = []
    for task in summary["per_task"]:
        totals: dict[str, int] = {}
        for modes in task["modes"].values():
            for mode, count in modes.items():
                totals[mode] = totals.get(mode, 0) + count
        if not totals:
            continue
        rows = []
        for mode in sorted(totals, key=lambda one: -totals[one]):
            shares = [modes.get(mode, 0) / max(1, sum(modes.values())) for modes in task["modes"].values()]
            rows.append([escape(mode.removeprefix("is_").replace("_", " ")), *(pc(share) for share in shares)])
        headings = ["mode", *(_named(summary, policy) for policy in task["modes"])]
        parts.append(f"<h3>{escape(task['setting'])}</h3>{grid(headings, rows)}")
    return section(f"<h2>How episodes went</h2>{''.join(parts)}") if parts else ""


def _reality(summary: Mapping[str, Any]) -> str:
    if not summary["reality"]:
        return ""
    confidence, plots, rows = summary["confidence"], [], []
    for task, found in summary["reality"]["tasks"].items():
        points = []
        for policy, real, sim in zip(found["policies"], found["real"], found["sim"], strict=True):
            there = _around(real, found["real_trials"][policy], confidence)
            rates = next((t["rates"][policy] for t in summary["per_task"] if t["task"] == task), None)
            alone = sum(t["task"] == task for t in summary["per_task"]) == 1
            here = (sim, rates["low"], rates["high"]) if rates and alone else _simulated(summary, task, policy, sim)
            points.append(Point(policy, there, here, _colour(summary, policy)))
        for policy, (real, sim) in PUBLISHED.get(task, {}).items():
            colour = _colour(summary, policy) if policy in found["policies"] else "#8a929b"
            points.append(Point(policy, (real,) * 3, (sim,) * 3, colour, published=True))
        plots.append(scatter(points, task))
        cells = [_metric(found["metrics"][name]) for name in METRICS]
        differ = [policy for policy, test in found["kruskal"].items() if test["p_value"] < 0.05]
        rows.append([escape(task), *cells, _differ(differ, found["untested"])])
    headings = ("task", *METRICS.values(), "differ (Kruskal-Wallis p < 0.05)")
    key = "".join(f"<span>{_named(summary, policy)}</span>" for policy in summary["policies"])
    hollow = any(task in PUBLISHED for task in summary["reality"]["tasks"])
    note = " Hollow points are the policies that SIMPLER published." if hollow else ""
    if left := summary["reality"]["left_out"]:
        note += f" Tasks that were not simulated count for nothing: {escape(', '.join(left))}."
    return section(
        f"<h2>Against reality</h2><p>Real results from <code>{escape(summary['reality']['file'])}</code>. Filled "
        f"points are the policies of this page, with intervals.{note}</p>{grid(headings, rows, left=(1, 2, 3, 4))}"
        f'<div class="key">{key}</div><div class="plots">{"".join(plots)}</div>'
    )


def _simulated(summary: Mapping[str, Any], task: str, policy: str, sim: float) -> tuple[float, float, float]:
    """Rate with an interval over several settings, and of all tasks from the ranking."""
    settings = [t["rates"][policy] for t in summary["per_task"] if t["task"] == task]
    if settings:
        return _around(sim, sum(one["episodes"] for one in settings), summary["confidence"])
    (one,) = (one for one in summary["ranking"] if one["policy"] == policy)
    return sim, min(sim, one["rate"]["low"]), max(sim, one["rate"]["high"])


def _around(rate: float, trials: int, confidence: float) -> tuple[float, float, float]:
    interval = wilson(round(rate * trials), trials, confidence=confidence)
    return rate, min(rate, interval.low), max(rate, interval.high)


def _differ(differ: Sequence[str], untested: Mapping[str, str]) -> str:
    """Policies that differ, and those that were not tested, with the reason."""
    said = escape(", ".join(differ)) or ("none" if not untested else "")
    reasons: dict[str, list[str]] = {}
    for policy, why in untested.items():
        reasons.setdefault(why, []).append(policy)
    for why, policies in reasons.items():
        said += f'<span class="dim"> undefined for {escape(", ".join(policies))}: {escape(why)}</span>'
    return said


def _metric(metric: Mapping[str, Any]) -> str:
    if metric["value"] is None:
        return f'<span class="dim">undefined: {escape(metric["why"])}</span>'
    return f"<b>{metric['value']:.3f}</b> ({metric['low']:.3f} to {metric['high']:.3f})"


def _shifts(summary: Mapping[str, Any]) -> str:
    if not summary["shifts"]:
        return ""
    groups: dict[str, list[tuple[str, str, float, float, float]]] = {}
    for one in summary["shifts"]:
        change, setting = one["change"], one["setting"]
        what = f"{one['policy']}, {setting['title']}"
        bar = (what, _colour(summary, one["policy"]), change["estimate"], change["low"], change["high"])
        groups.setdefault(f"{one['shift']}: {one['variant']}", []).append(bar)
    rows = []
    for one in summary["delta_success"]:
        delta, title = one["delta"], one["setting"]["title"]
        told = (escape(one["shift"]), _named(summary, one["policy"]), escape(title), str(one["variants"]))
        rows.append((*told, f"{100 * delta['estimate']:.1f}", f"{100 * delta['low']:.1f} to {100 * delta['high']:.1f}"))
    headings = ("shift", "policy", "task", "variants", "delta success [points]", "interval")
    table = grid(headings, rows, left=(1, 2))
    return section(
        "<h2>Distribution shifts</h2><p>Success under a variant minus success under the base protocol. Delta success "
        f"is the mean of the absolute changes.</p>{bars(groups)}{details('Delta success', table)}"
    )


def _offline(summary: Mapping[str, Any]) -> str:
    found = summary.get("offline")
    if not found:
        return ""
    rows = []
    for place, one in enumerate(found["policies"], 1):
        between = f"{one['low']:.4g} to {one['high']:.4g}"
        rows.append((escape(one["policy"]), str(place), f"{one['error']:.4g}", between))
    return section(
        f"<h2>By action error alone</h2><p>Mean squared error of actions on the demonstrations of "
        f"<code>{escape(found['file'])}</code>, the smallest first. It does not say how often a policy succeeds.</p>"
        f"{grid(('policy', 'rank', 'error', 'interval'), rows)}"
    )
