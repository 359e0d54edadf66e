"""A line chart as SVG: curves, or the median of several with their spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import floor, log10
from statistics import median

__all__ = ["COLOURS", "chart", "spread"]

COLOURS = ("#2f6fd0", "#d9622b", "#2a9d5c", "#9a4fc0", "#b38a00", "#c23b5e", "#158a9c", "#6b6b6b")

Curve = Sequence[tuple[float, float]]


def chart(
    curves: Mapping[str, Sequence[Curve]],
    *,
    across: str,
    up: str,
    top: float | None = None,
    width: int = 640,
    height: int = 300,
) -> str:
    """SVG of named curves. Of a name with several, each is drawn thin and their median bold.

    Args:
        curves: by name, curves of (x, y) with rising x.
        across: what the horizontal axis is, with its unit.
        up: what the vertical one is.
        top: upper end of the vertical axis; None for the largest value.
        width: of the picture [pixels].
        height: of the picture [pixels].
    """
    points = [point for several in curves.values() for curve in several for point in curve]
    if not points:
        return ""
    left, right, below, above = 58, 12, 40, 12
    most_x = max(x for x, _ in points) or 1.0
    low = min(0.0, min(y for _, y in points))
    high = max(top if top is not None else max(y for _, y in points), low + 1e-9)

    def place(x: float, y: float) -> str:
        across_px = left + (width - left - right) * x / most_x
        up_px = height - below - (height - below - above) * (y - low) / (high - low)
        return f"{across_px:.1f},{up_px:.1f}"

    parts = [f'<svg viewBox="0 0 {width} {height}" role="img" class="chart">']
    for value in _ticks(low, high):
        a, b = place(0, value), place(most_x, value)
        parts.append(f'<path d="M{a}L{b}" stroke="currentColor" opacity=".15"/>')
        x, y = a.split(",")
        parts.append(f'<text x="{float(x) - 6:.0f}" y="{float(y) + 4:.0f}" text-anchor="end">{_said(value)}</text>')
    for value in _ticks(0, most_x):
        x, y = place(value, low).split(",")
        parts.append(f'<text x="{x}" y="{float(y) + 16:.0f}" text-anchor="middle">{_said(value)}</text>')
    parts.append(f'<text x="{width / 2:.0f}" y="{height - 4}" text-anchor="middle">{escape(across)}</text>')
    middle_px = f"{height / 2:.0f}"
    turned = f'transform="rotate(-90 12 {middle_px})" text-anchor="middle"'
    parts.append(f'<text x="12" y="{middle_px}" {turned}>{escape(up)}</text>')
    for number, (name, several) in enumerate(curves.items()):
        colour = COLOURS[number % len(COLOURS)]
        thin = len(several) > 1
        for curve in several:
            line = "L".join(place(x, y) for x, y in curve)
            if line:
                style = 'stroke-width="1" opacity=".35"' if thin else 'stroke-width="2"'
                parts.append(f'<path d="M{line}" fill="none" stroke="{colour}" {style}/>')
        if thin and (middle := [(x, m) for x, _, m, _ in spread(several)]):
            line = "L".join(place(x, y) for x, y in middle)
            parts.append(f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        at = height - below - 10 - 15 * (len(curves) - 1 - number)  # names below on the right, where curves seldom are
        end = width - right - 8
        parts.append(f'<path d="M{end - 18},{at - 4}L{end},{at - 4}" stroke="{colour}" stroke-width="2.5"/>')
        parts.append(f'<text x="{end - 24}" y="{at}" text-anchor="end">{escape(name)}</text>')
    return "".join([*parts, "</svg>"])


def spread(curves: Sequence[Curve], points: int = 100) -> list[tuple[float, float, float, float]]:
    """Smallest, middle and largest of several curves: (x, low, median, high) at ``points`` places up to the shortest's
    end. Between two points of a curve it holds the first one's value."""
    curves = [curve for curve in curves if curve]
    if not curves:
        return []
    begin, end = max(curve[0][0] for curve in curves), min(curve[-1][0] for curve in curves)
    if end < begin:
        return []
    found = []
    for i in range(points):
        x = begin + (end - begin) * i / max(1, points - 1)
        values = [_held(curve, x) for curve in curves]
        found.append((x, min(values), median(values), max(values)))
    return found


def _held(curve: Curve, x: float) -> float:
    value = curve[0][1]
    for at, y in curve:
        if at > x:
            break
        value = y
    return value


def _ticks(low: float, high: float, about: int = 5) -> list[float]:
    step = 10.0 ** floor(log10((high - low) / about))
    step *= next(m for m in (1, 2, 5, 10) if (high - low) / (step * m) <= about)
    first = -(-low // step) + 0.0  # no -0
    found = []
    while (first * step) <= high + 1e-9 * step:
        found.append(first * step)
        first += 1
    return found


def _said(value: float) -> str:
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value / 1e3:g}k" if abs(value) >= 1e3 else f"{value:.3g}"
