"""The page of a search: motions before and after over the recorded ones, losses, parameters, what is not determined. No
script, no font, no file beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any

import numpy as np
import torch

from manikin.eval.pages.curves import Panel, curves_svg
from manikin.math import quat_angle
from manikin.sysid.search import Identified, Overlay

__all__ = ["overlay_svg", "page"]

RECORDED, BEFORE, AFTER = "#8a929b", "#d9622b", "#2f6fd0"
_MOST = 12  # trajectories that are drawn
_VERDICTS = {
    "open": "not determined: anything in the range does as well",
    "weak": "weakly determined",
    "fixed": "determined",
}


def page(found: Identified, said: Mapping[str, Any]) -> str:
    """A self-contained page of HTML; ``said`` is the result as plain values."""
    style = (resources.files("manikin.eval.pages") / "report.css").read_text(encoding="utf-8")
    title = f"{found.robot} under {found.control}"
    unit = {"pose": "m + half rad", "position": "m", "joints": "rad"}[found.loss]
    times = found.loss_before / max(found.loss_after, 1e-300)
    about, ways = said["provenance"], escape(" then ".join(name for name, *_ in found.stages))
    top = (
        f'<div class="top"><h1>{escape(title)}</h1></div><p class="meta">System identification from '
        f"{len(found.overlays)} trajectories at {found.control_hz:g} Hz, physics at {found.physics_hz:g} Hz. "
        f"{escape(about['source'])}</p>"
        f'<section class="task"><div class="lead"><div class="figure">{times:.1f}<small> times</small></div>'
        f"<p>The {found.loss} loss fell from <b>{found.loss_before:.4g}</b> to <b>{found.loss_after:.4g}</b> {unit}, "
        f"in {about['candidates']:,} candidates by {ways}.</p></div>"
    )
    if found.outside:
        names = escape(", ".join(found.outside))
        top += f"<p>The robot has these outside their range, and begins at its end: {names}.</p>"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, '
        f'initial-scale=1"><title>{escape(title)}</title><style>{style} svg {{width: 100%; display: block; '
        "font-size: 11px}} svg text {fill: currentColor}</style></head><body><main>".replace("}}", "}")
        + f"{top}{_parameters(found)}{_directions(found)}{_motions(found)}</section></main></body></html>\n"
    )


def _parameters(found: Identified) -> str:
    rows = []
    for k, name in enumerate(found.names):
        width = found.identifiability.deviations[k]
        between = f"{found.low[k]:g} to {found.high[k]:g}"
        rows.append((escape(name), f"{found.before[k]:.4g}", f"<b>{found.after[k]:.4g}</b>", between, f"{width:.1%}"))
    head = ("parameter", "before", "found", "range", "standard deviation, of the range")
    note = (
        '<p class="caption">A parameter of which nothing is known but its range has 29 %. Residuals of neighbouring '
        "steps are alike, so these are lower bounds.</p>"
    )
    return f"<h3>Parameters, SI units</h3>{_grid(head, rows)}{note}"


def _directions(found: Identified) -> str:
    rows = []
    for one in found.identifiability.directions:
        width = "any" if one.width > 10 else f"{one.width:.1%}"
        rows.append((f"{one.singular_value:.3g}", width, _VERDICTS[one.verdict], escape(one.words)))
    head = ("singular value", "width, of the ranges", "", "direction")
    return f"<h3>What the recordings determine</h3>{_grid(head, rows)}"


def _motions(found: Identified) -> str:
    out = ["<h3>Recorded, before and after</h3>"]
    order = np.argsort(-np.array(found.each_before), kind="stable")
    for e in sorted(order[:_MOST].tolist()):
        one = found.overlays[e]
        out.append(f"<p><b>{escape(one.name)}</b>: {found.each_before[e]:.4g} to {found.each_after[e]:.4g}</p>")
        out.append(overlay_svg(one, found.control_hz))
    if len(found.overlays) > _MOST:
        out.append(f"<p>The {_MOST} with the largest loss before, of {len(found.overlays)}.</p>")
    return "".join(out)


def _grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{word}</th>" for word in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def overlay_svg(one: Overlay, hz: float) -> str:
    """Panels of one trajectory over time: x, y, z [m] and the angle to the recorded turn, or the joints."""
    panels: list[Panel] = []
    ways = ((RECORDED, one.recorded), (BEFORE, one.before), (AFTER, one.after))
    if "pos" in one.recorded:
        for axis, name in enumerate("xyz"):
            panels.append((f"{name} [m]", [(colour, way["pos"][:, axis]) for colour, way in ways]))
        if "quat" in one.recorded:
            turned = [(colour, _angle(way["quat"], one.recorded["quat"])) for colour, way in ways]
            panels.append(("angle to recorded [rad]", turned))
    else:
        joints = range(one.recorded["qpos"].shape[1])
        panels = [(f"joint {j + 1} [rad]", [(colour, way["qpos"][:, j]) for colour, way in ways]) for j in joints]
    return curves_svg(panels, hz, ((RECORDED, "recorded"), (BEFORE, "before"), (AFTER, "after")))


def _angle(quat: np.ndarray, other: np.ndarray) -> np.ndarray:
    found: np.ndarray = quat_angle(torch.from_numpy(quat), torch.from_numpy(other)).numpy()
    return found
