"""The report as one page of HTML: no script, no font, no file beside it but films. Light and dark as the reader's
system is."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from manikin.data.recording.durable import replace_file
from manikin.eval.film import Reel
from manikin.eval.pages.parts import alarm, details, grid, page, pc, section, track
from manikin.eval.protocol import task_of
from manikin.eval.report import title
from manikin.render.files.video import write_png

__all__ = ["film_element", "render_html", "write_html"]

_RULES = {"once": "at least once", "at_end": "at the end", "held": "held"}
_KINDS = {"": "success, also at the end", "part": "success, lost again", "bad": "no success", "sick": "unhealthy"}
_CHECKED = "dropped contacts, states that are not finite, solver at its limit, singular inertia"


def write_html(report: Mapping[str, Any], path: str | Path, reels: Mapping[str, Sequence[Reel]] | None = None) -> None:
    """Write :func:`render_html` to a file, whole or not at all. Raises OSError where it cannot be written."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    replace_file(Path(path), render_html(report, reels).encode())


def render_html(report: Mapping[str, Any], reels: Mapping[str, Sequence[Reel]] | None = None) -> str:
    """A page that holds all it shows, but the films that episodes of the report name.

    Args:
        report: as ``manikin.eval.report.as_dict`` makes it.
        reels: by the protocol's word for a task, pictures of some episodes.
    """
    tasks = "".join(_task(t, (reels or {}).get(t.get("named", t["task"]), ())) for t in report["per_task"])
    summary = f"{_top(report)}{_overview(report)}{_variants(report)}"
    body = f"{summary}{tasks}{_comparison(report)}{_health(report)}{_again(report)}"
    return page(f"{report['protocol']['name']}: {report['policy']}", body)


# ---- parts of the page -----------------------------------------------------------------------------------------------


def _top(report: Mapping[str, Any]) -> str:
    ran = sum(len(t["per_episode"]) for t in report["per_task"])
    sick = sum(t["unhealthy"] for t in report["per_task"])
    kind, words = "ok", "all episodes ran and are healthy" if ran != 1 else "the episode ran and is healthy"
    alarms = ""
    if report["interrupted"]:
        kind, words = "wrong", "interrupted"
        why = f"It ended by an error: {escape(report['error'])}. " if report.get("error") else ""
        alarms += alarm(
            "Interrupted.",
            f"{why}Only the episodes that finished are counted; short ones finish first, so the rates may be biased.",
        )
    if sick:
        kind, words = "wrong", f"{sick} of {ran} episodes unhealthy"
        alarms += alarm(
            "These rates are not valid.",
            "In some episodes the physics broke down (see Health below); a number computed from broken physics is no "
            "number.",
        )
    digest, day = report["protocol"]["hash"], report["created"][:16].replace("T", " ") + " UTC"
    status = f'<span class="status {kind}">{words}</span>'
    return (
        f'<div class="top"><h1>{escape(report["protocol"]["name"])}</h1>{status}</div>'
        f'<p class="meta">Policy <b>{escape(report["policy"])}</b>, evaluated {escape(day)}{_on(report)} under '
        f'protocol <code title="{digest}">{digest[:12]}</code></p>{alarms}'
    )


def _on(report: Mapping[str, Any]) -> str:
    """Where it was simulated, if not on the CPU."""
    device, late = report.get("device", "cpu"), report.get("inference_ms")
    words = "" if device == "cpu" else f" on <b>{escape(device)}</b>"
    return words + (f", an answer takes <b>{late:g} ms</b> while the world goes on" if late else "")


def _overview(report: Mapping[str, Any]) -> str:
    """A table of all tasks, where there are several."""
    if len(report["per_task"]) < 2:
        return ""
    rule, rows = report["per_task"][0]["success"]["rule"], []
    for t in report["per_task"]:
        r = t["success"][rule]
        share, between = f"<b>{pc(r['rate'])}</b>", f"{pc(r['low'])} to {pc(r['high'])}"
        rows.append((escape(title(t)), f"{r['successes']} of {r['episodes']}", share, track(r), between))
    headings = ("task", "episodes", f"success {_RULES[rule]}", "", "interval")
    return section(grid(headings, rows, wide=3))


def _variants(report: Mapping[str, Any]) -> str:
    """What the variants of a task say together (:func:`manikin.eval.variants.shifts`)."""
    found = (report.get("variants") or {}).get("per_task", ())
    if not found:
        return ""
    kinds = list(dict.fromkeys(kind for one in found for kind in one["delta_success"]))
    rows = []
    for one in found:
        changes = (_delta(one, kind) for kind in kinds)
        rows.append((escape(one["task"]), pc(one["base"]), f"<b>{pc(one['mean'])}</b>", str(one["variants"]), *changes))
    headings = ("task", "as it is", "mean", "variants", *map(escape, kinds))
    return section(
        "<h2>Variants</h2><p>The mean is over the variants that count. The columns behind it are the mean absolute "
        f"changes of success, in points, by what a variant changes, with bootstrap intervals.</p>{grid(headings, rows)}"
    )


def _delta(row: Mapping[str, Any], shift: str) -> str:
    if shift not in row["delta_success"]:
        return ""
    low, high = row.get("interval", {}).get(shift, (None, None))
    between = "" if low is None else f" ({100 * low:.1f} to {100 * high:.1f})"
    return f"{100 * row['delta_success'][shift]:.1f}{between}"


def _task(task: Mapping[str, Any], reels: Sequence[Reel]) -> str:
    success, episodes, made_of = task["success"], task["per_episode"], task["fingerprint"]
    rule, hz = success["rule"], float(task["control_hz"] or 1.0)
    head = success[rule]
    names = {**_RULES, "held": f"held {task['held_steps'] / hz:g} s"}
    named = task.get("named", task["task"])
    place = f"from {named}" if task_of(named) != task["task"] else ""
    settings = (place, made_of.get("robot"), made_of.get("control"), f"{hz:g} Hz", f"{made_of.get('horizon')} steps")
    made = " · ".join(escape(str(x)) for x in settings if x)
    rates = "".join(_rate(names[k], success[k], k == rule) for k in _RULES)
    axis = '<span></span><div class="axis"><span>0</span><span>50</span><span>100 %</span></div><span></span>'
    return (
        f'<section class="task"><div class="top"><h2>{escape(title(task))}</h2><span class="meta">{made}</span></div>'
        f'<div class="lead"><div class="figure">{pc(head["rate"]).replace(" %", "<small> %</small>")}</div>'
        f'<div class="rates">{rates}{axis}</div></div>'
        f'<p class="caption">{head["successes"]} of {head["episodes"]} episodes succeeded {names[rule]}. With '
        f"{head['confidence']:.0%} confidence the rate lies between <b>{pc(head['low'])}</b> and "
        f"<b>{pc(head['high'])}</b> ({_method(task)}).</p>{_made_of(task)}{_facts(task, hz)}{_map(episodes)}"
        f"{_modes(episodes)}{_forces(task)}{_stages(episodes)}{_strips(reels, episodes, hz)}"
        f"{_episodes(episodes, hz)}</section>"
    )


def _method(task: Mapping[str, Any]) -> str:
    """How the intervals were made, and what a sequential evaluation found."""
    if not task.get("sequential"):
        return "Wilson"
    answer = task.get("answer")
    found = escape(answer["words"]) if answer else "the question was not answered within these episodes"
    return f"an interval that holds at every number of episodes; {found}"


def _rate(words: str, rate: Mapping[str, Any], now: bool) -> str:
    kind = ' class="now"' if now else ""
    return f"<span{kind}>{words}</span>{track(rate)}<span{kind}>{pc(rate['rate'])}</span>"


def _made_of(task: Mapping[str, Any]) -> str:
    """Meshes or stand-ins: what the things of the scene are."""
    kinds: dict[str, list[str]] = {}
    for name, source in task.get("made_of", {}).items():
        kinds.setdefault(source, []).append(name)
    said = "; ".join(f"<b>{escape(source)}</b> ({escape(', '.join(names))})" for source, names in kinds.items())
    return f'<p class="caption">Simulated with {said}.</p>' if said else ""


def _facts(task: Mapping[str, Any], hz: float) -> str:
    episodes = task["per_episode"]
    returns = [e["sum_reward"] for e in episodes]
    times = [e["first_success"] / hz for e in episodes if e["first_success"]]
    spread = f" ± {np.std(returns, ddof=1):.3g}" if len(returns) > 1 else ""
    facts = {
        "mean return": f"{fmean(returns):.4g}{spread}",
        "median time to success": f"{median(times):.2f} s" if times else "none",
        "mean length": f"{fmean(e['length'] for e in episodes) / hz:.2f} s",
        "simulated in": f"{task['aggregated']['eval_s']:.1f} s",
    }
    return f'<div class="facts">{"".join(f"<div><strong>{v}</strong>{k}</div>" for k, v in facts.items())}</div>'


def _kind(episode: Mapping[str, Any]) -> str:
    if episode["health"] != "ok":
        return "sick"
    if not episode["success_once"]:
        return "bad"
    return "" if episode["success_at_end"] else "part"


def _map(episodes: Sequence[Mapping[str, Any]]) -> str:
    """One square per episode."""
    if len(episodes) > 2000:
        return ""
    kinds = [_kind(e) for e in episodes]
    cells = "".join(
        f'<a class="{kind}" title="seed {e["seed"]}: {_KINDS[kind]}"></a>'
        for kind, e in zip(kinds, episodes, strict=True)
    )
    counts = {kind: kinds.count(kind) for kind in _KINDS}
    key = "".join(f'<span><i class="{k}"></i>{_KINDS[k]} ({n})</span>' for k, n in counts.items() if n)
    heading = "<h3>Every episode, in order of the protocol</h3>"
    return f'{heading}<div class="map">{cells}</div><div class="key">{key}</div>'


def _modes(episodes: Sequence[Mapping[str, Any]]) -> str:
    """How the runs came about, failures and successes apart, with the commonest story of each."""
    named = [e for e in episodes if e.get("mode")]
    if not named:
        return ""
    rows = []
    for kind, won in (("failure", False), ("success", True)):
        some = [e for e in named if e["success_once"] == won]
        for mode, count in Counter(e["mode"] for e in some).most_common():
            stories = Counter(tuple(e["events"]) for e in some if e["mode"] == mode)
            story = ", ".join(_words(event) for event in stories.most_common(1)[0][0]) or "nothing happened"
            share = f"{pc(count / len(named))}"
            rows.append((kind, escape(_words(mode)), str(count), share, f'<span class="dim">{escape(story)}</span>'))
    headings = ("", "mode", "episodes", "share", "commonest story")
    return f"<h3>How they went</h3>{grid(headings, rows, left=(1, 4))}"


def _forces(task: Mapping[str, Any]) -> str:
    """Contact forces of the robots: the total, then every link that touched something."""
    rows = []
    for name, force in task.get("forces", {}).items():
        if name != "total" and not force["peak"]["worst"]:
            continue
        label = "all links without fingers" if name == "total" else name.replace("fingers/", "finger: ")
        numbers = [f"{force[what][k]:,.1f}" for what in ("peak", "sum") for k in ("mean", "p95", "worst")]
        cells = [escape(label), *numbers[:3], str(force["peak"]["seed"]), *numbers[3:], str(force["sum"]["seed"])]
        rows.append([f"<b>{cell}</b>" for cell in cells] if name == "total" else cells)
    if not rows:
        return ""
    headings = ("contact force [N]", "peak: mean", "95 %", "worst", "seed", "added up: mean", "95 %", "worst", "seed")
    note = (
        '<p class="caption">Net force on each link after every control step: its largest value in an episode, and its '
        "sum over the steps. Links that touched nothing are left out.</p>"
    )
    return f"<h3>How hard it pressed</h3>{grid(headings, rows)}{note}"


def _words(name: str) -> str:
    return name.removeprefix("is_").replace("_", " ")


def _stages(episodes: Sequence[Mapping[str, Any]]) -> str:
    """How far the failures came, from the task's own stage flags."""
    failed = [e for e in episodes if not e["success"] and e["reached"]]
    if not failed:
        return ""
    counts = {name: sum(bool(e["reached"].get(name)) for e in failed) for name in failed[0]["reached"]}
    rows = "".join(
        f"<span>{escape(_words(name))}</span>"
        f'<div class="track"><i style="left:0;width:{count / len(failed):.1%}"></i></div>'
        f"<span>{count} of {len(failed)}</span>"
        for name, count in sorted(counts.items(), key=lambda item: -item[1])
    )
    return f'<h3>How far the failures came</h3><div class="rates">{rows}</div>'


def _strips(reels: Sequence[Reel], episodes: Sequence[Mapping[str, Any]], hz: float) -> str:
    if not reels:
        return ""
    by_number = {e["episode_ix"]: e for e in episodes}
    parts = []
    for reel in reels:
        e = by_number[reel.number]
        outcome = f"success after {e['first_success'] / hz:.2f} s" if e["first_success"] else "no success"
        if e["first_success"] and not e["success_at_end"]:
            outcome += ", lost again"
        if e["health"] != "ok":
            outcome = f"unhealthy: {escape(e['health'])}"
        pictures = "".join(
            f'<figure><img alt="" src="data:image/png;base64,{_base64(image)}">'
            f"<figcaption>{step / hz:.2f} s</figcaption></figure>"
            for step, image in reel.pick(6)
        )
        mode = f"{escape(_words(e['mode']))}, " if e.get("mode") else ""
        words = f"<p><b>Seed {e['seed']}</b>: {mode}{outcome}</p>"
        film = film_element(e["film"]) if e.get("film") else ""
        parts.append(f'<div class="reel">{words}<div class="strip">{pictures}</div>{film}</div>')
    first = ", failures first" if any(not by_number[r.number]["success"] for r in reels) else ""
    return f"<h3>Some episodes{first}</h3>{''.join(parts)}"


def film_element(place: str) -> str:
    """A film on the page, by its file from the page's folder."""
    return f'<video controls muted preload="metadata" src="{escape(place)}"></video>'


def _base64(image: np.ndarray) -> str:
    with TemporaryDirectory() as folder:
        return base64.b64encode(write_png(Path(folder) / "picture.png", image).read_bytes()).decode()


def _episodes(episodes: Sequence[Mapping[str, Any]], hz: float) -> str:
    def tick(value: bool) -> str:
        return '<span class="yes">yes</span>' if value else '<span class="no">no</span>'

    rows = []
    for e in episodes:
        key = str(e["seed"]) if not e["episode_index"] else f"{e['seed']}/{e['episode_index']}"
        first = f"{e['first_success'] / hz:.2f}" if e["first_success"] else '<span class="dim">never</span>'
        health = "ok" if e["health"] == "ok" else f'<span class="no">{escape(e["health"])}</span>'
        flags = [tick(e[name]) for name in ("success_once", "success_at_end", "success_held")]
        times = [f"{e[name] / hz:.2f}" for name in ("longest_success", "length")]
        rows.append((str(e["episode_ix"]), key, *flags, first, *times, f"{e['sum_reward']:.3f}", health))
    headings = ("episode", "seed", "once", "at end", "held", "first success [s]", "longest [s]", "length [s]", "return")
    return details(f"All {len(episodes)} episodes", grid((*headings, "health"), rows))


def _comparison(report: Mapping[str, Any]) -> str:
    if not report.get("comparison"):
        return ""
    first, second = (escape(name) for name in report["comparison"][0]["policies"])
    rows = []
    for c in report["comparison"]:
        counts = [str(c[k]) for k in ("episodes", "both", "only_first", "only_second", "neither")]
        difference = f"<b>{100 * c['difference']:+.1f}</b> ({100 * c['low']:+.1f} to {100 * c['high']:+.1f})"
        p = "< 0.0001" if c["p_value"] < 1e-4 else f"{c['p_value']:.2g}"
        rows.append((escape(c["task"]), *counts, difference, escape(p)))
    headings = ("task", "episodes", "both", f"only {first}", f"only {second}", "neither", "difference [points]", "p")
    where = list(dict.fromkeys(escape(d) for d in report["comparison"][0].get("devices", ())))
    apart = f" Simulated on {' and '.join(where)}, whose physics rounds differently." if len(where) > 1 else ""
    return section(
        f"<h2>{first} against {second}</h2><p>On the same episodes.{apart} Interval of the difference: Newcombe, "
        f"paired. p: McNemar's exact test that both are equally good.{_looked(report)}</p>{grid(headings, rows)}"
    )


def _looked(report: Mapping[str, Any]) -> str:
    """What an evaluation that could stop at any episode takes from a test that was made for a fixed number."""
    if not any(task.get("sequential") for task in report["per_task"]):
        return ""
    return (
        " Interval and p are for a number of episodes that is fixed before. This evaluation may have stopped early: "
        "rely on the answer of each task."
    )


def _health(report: Mapping[str, Any]) -> str:
    sick = [(title(t), e) for t in report["per_task"] for e in t["per_episode"] if e["health"] != "ok"]
    how_many = f"{len(sick)} episodes" if len(sick) != 1 else "One episode"
    body = f"<p>{how_many if sick else 'No episode'} reported a problem. Looked for after every step: {_CHECKED}.</p>"
    if sick:
        rows = [
            (escape(task), str(e["seed"]), str(e["length"]), f'<span class="no">{escape(e["health"])}</span>')
            for task, e in sick[:50]
        ]
        body += grid(("task", "seed", "steps", "what"), rows)
        body += f"<p>and {len(sick) - 50} more</p>" if len(sick) > 50 else ""
        advice = {title(t): t["advice"] for t in report["per_task"] if t.get("advice")}
        body += "".join(f"<p>{escape(task)}: <code>{escape(words)}</code></p>" for task, words in advice.items())
    return section(f"<h2>Health</h2>{body}")


def _again(report: Mapping[str, Any]) -> str:
    command = f"<pre>{escape(report['command'])}</pre>" if report["command"] else ""
    about = {**report["machine"], "device": report.get("device", "cpu"), **report["versions"]}
    facts = [(escape(k), escape(str(v))) for k, v in about.items()]
    return section(
        f'<h2>To get this again</h2>{command}<p class="hash">Protocol <code>{report["protocol"]["hash"]}</code> '
        "(SHA-256). Results are comparable when this is equal. How many environments run side by side is not in it; "
        "results do not depend on that. Equal bits are promised on the same kind of processor.</p>"
        + details("Protocol file", f"<pre>{escape(report['protocol']['toml'])}</pre>")
        + details("Machine and versions", grid(("", ""), facts))
    )
