"""Drawings of a ranking as SVG, in the colours of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["COLOURS", "Point", "bars", "scatter"]

COLOURS = ("#14746f", "#b8442f", "#c98b1b", "#3d5a98", "#7a4b8f", "#5d6670", "#2f8f4e", "#a0522d")
SIZE, EDGE = 300.0, 44.0


@dataclass(frozen=True)
class Point:
    """One policy: rates with intervals; ``real`` and ``sim`` are (rate, low, high). ``published``: by others."""

    name: str
    real: tuple[float, float, float]
    sim: tuple[float, float, float]
    colour: str = COLOURS[0]
    published: bool = False


def scatter(points: Sequence[Point], title: str) -> str:
    """Simulation over reality, with the line on which both agree. Published points are hollow."""

    def at(real: float, sim: float) -> tuple[str, str]:
        return f"{EDGE + SIZE * real:.1f}", f"{12 + SIZE * (1 - sim):.1f}"

    parts = [_line(*at(0, 0), *at(1, 1), dash=True)]
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        (x, _), (_, y) = at(tick, 0), at(0, tick)
        low, left = f"{12 + SIZE:.1f}", f"{EDGE:.1f}"
        parts += [_line(x, low, x, f"{12 + SIZE + 4:.1f}"), _line(f"{EDGE - 4:.1f}", y, left, y)]
        parts += [_text(x, f"{12 + SIZE + 16:.1f}", f"{100 * tick:.0f}", "middle")]
        parts += [_text(f"{EDGE - 7:.1f}", f"{float(y) + 3.5:.1f}", f"{100 * tick:.0f}", "end")]
    parts.append(
        f'<rect x="{EDGE}" y="12" width="{SIZE}" height="{SIZE}" fill="none" stroke="currentColor" opacity="0.35"/>'
    )
    for point in sorted(points, key=lambda one: not one.published):
        x, y = at(point.real[0], point.sim[0])
        body = ""
        if not point.published:
            spans = (*at(point.real[1], point.sim[0]), *at(point.real[2], point.sim[0]))
            rises = (*at(point.real[0], point.sim[1]), *at(point.real[0], point.sim[2]))
            body = _line(*spans, colour=point.colour) + _line(*rises, colour=point.colour)
        fill = "none" if point.published else point.colour
        body += f'<circle cx="{x}" cy="{y}" r="4.5" fill="{fill}" stroke="{point.colour}" stroke-width="1.5"/>'
        words = f"{point.name}{' (published)' if point.published else ''}"
        said = f"{words}: {point.real[0]:.1%} in reality, {point.sim[0]:.1%} in simulation"
        parts.append(f"<g><title>{escape(said)}</title>{body}</g>")
    parts.append(_text(f"{EDGE + SIZE / 2:.1f}", f"{12 + SIZE + 34:.1f}", "success in reality [%]", "middle"))
    turn = f'transform="rotate(-90 11 {12 + SIZE / 2:.1f})"'
    parts.append(_text("11", f"{12 + SIZE / 2:.1f}", "success in simulation [%]", "middle", turn))
    width, height = SIZE + EDGE + 12, SIZE + 52
    heading = _text(f"{EDGE + 8:.1f}", "28", title, "start", 'font-weight="600"')
    return _svg(width, height, "".join([*parts, heading]), f"{title}: success in simulation over success in reality")


def bars(changes: Mapping[str, Sequence[tuple[str, str, float, float, float]]]) -> str:
    """Groups of bars of changes of success.

    Args:
        changes: heading of a group -> (what, colour, change, low, high) of its bars.
    """
    row, name, half = 20.0, 210.0, 190.0
    middle, y, parts = name + half, 18.0, []
    most = max((max(abs(low), abs(high)) for group in changes.values() for *_, low, high in group), default=1.0)
    most = max(0.1, min(1.0, most))

    def x(change: float) -> float:
        return middle + half * max(-1.0, min(1.0, change / most))

    for heading, group in changes.items():
        parts.append(_text("0", f"{y:.1f}", heading, "start", 'font-weight="600"'))
        y += 8
        for what, colour, change, low, high in group:
            left, right = sorted((middle, x(change)))
            tall = f'height="10" fill="{colour}" opacity="0.75"'
            said = f"<title>{escape(what)}: {100 * change:+.1f} points [{100 * low:+.1f}, {100 * high:+.1f}]</title>"
            box = f'<rect x="{left:.1f}" y="{y:.1f}" width="{max(right - left, 1):.1f}" {tall}>{said}</rect>'
            whisker = _line(f"{x(low):.1f}", f"{y + 5:.1f}", f"{x(high):.1f}", f"{y + 5:.1f}", colour="currentColor")
            parts += [box, whisker, _text(f"{name - 8:.1f}", f"{y + 9:.1f}", what, "end")]
            parts.append(_text(f"{middle + half + 10:.1f}", f"{y + 9:.1f}", f"{100 * change:+.1f}", "start"))
            y += row
        y += 18
    parts.append(_line(f"{middle:.1f}", "4", f"{middle:.1f}", f"{y - 20:.1f}"))
    for end in (-most, most):
        parts.append(_text(f"{x(end):.1f}", f"{y - 6:.1f}", f"{100 * end:+.0f} points", "middle"))
    return _svg(middle + half + 60, y, "".join(parts), "change of success by distribution shift")


def _line(x1: str, y1: str, x2: str, y2: str, *, colour: str = "", dash: bool = False) -> str:
    look = f'stroke="{colour}" stroke-width="1.5"' if colour else 'stroke="currentColor" opacity="0.4"'
    look += ' stroke-dasharray="4 4"' if dash else ""
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" {look}/>'


def _text(x: str, y: str, words: str, anchor: str, more: str = "") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" {more}>{escape(words)}</text>'


def _svg(width: float, height: float, body: str, words: str) -> str:
    style = 'font-size="11" fill="currentColor" font-family="system-ui, sans-serif"'
    return (
        f'<svg role="img" aria-label="{escape(words)}" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'style="max-width:100%;height:auto" {style}>{body}</svg>'
    )
