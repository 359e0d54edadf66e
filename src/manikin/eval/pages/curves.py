"""Curves over time as SVG: panels side by side, each with the same few ways in their colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np

__all__ = ["Panel", "curves_svg"]

Panel = tuple[str, Sequence[tuple[str, np.ndarray]]]
"""Title with unit, and (colour, values (N,)) of each curve; NaN breaks it. The first is drawn wide and lowest."""
_WIDTH, _HEIGHT = 230, 150


def curves_svg(panels: Sequence[Panel], hz: float, legend: Sequence[tuple[str, str]], columns: int = 4) -> str:
    """Panels in rows, and below them what the colours mean.

    Args:
        panels: what is drawn.
        hz: values per second.
        legend: (colour, word).
        columns: most panels in a row.
    """
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    size = f"0 0 {_WIDTH * columns} {_HEIGHT * rows + 18}"
    head = 'role="img" font-family="system-ui, sans-serif" font-size="11" xmlns="http://www.w3.org/2000/svg"'
    parts = [f'<svg viewBox="{size}" {head}>']
    for k, (title, curves) in enumerate(panels):
        parts += _panel(title, curves, hz, (k % columns) * _WIDTH, (k // columns) * _HEIGHT)
    at, y = 40, _HEIGHT * rows + 10
    for colour, word in legend:
        parts.append(f'<path d="M{at},{y}h22" stroke="{colour}" stroke-width="2.5"/>')
        parts.append(f'<text x="{at + 28}" y="{y + 4}">{escape(word)}</text>')
        at += max(100, 36 + 8 * len(word))
    return "".join([*parts, "</svg>"])


def _panel(title: str, curves: Sequence[tuple[str, np.ndarray]], hz: float, x: int, y: int) -> list[str]:
    values = np.concatenate([curve[np.isfinite(curve)] for _, curve in curves] or [np.zeros(1)])
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
    high = max(high, low + 1e-3)
    digits = max(0, 2 - math.floor(math.log10(high - low)))
    left, right, top, below = x + 44, x + _WIDTH - 8, y + 20, y + _HEIGHT - 18
    steps = max(len(curve) for _, curve in curves)

    def place(k: int, value: float) -> str:
        across = left + (right - left) * k / max(1, steps - 1)
        return f"{across:.1f},{below - (below - top) * (value - low) / (high - low):.1f}"

    parts = [f'<text x="{left}" y="{y + 12}">{escape(title)}</text>']
    for value in (low, high):
        up = place(0, value).split(",")[1]
        parts.append(f'<path d="M{left},{up}H{right}" stroke="currentColor" opacity=".15"/>')
        parts.append(f'<text x="{left - 4}" y="{float(up) + 4:.0f}" text-anchor="end">{value:.{digits}f}</text>')
    parts.append(f'<text x="{right}" y="{below + 13}" text-anchor="end">{(steps - 1) / hz:.3g} s</text>')
    for number, (colour, curve) in enumerate(curves):
        known = np.flatnonzero(np.isfinite(curve))
        for run in np.split(known, np.flatnonzero(np.diff(known) > 1) + 1):
            if len(run):
                line = "L".join(place(int(k), float(curve[k])) for k in run)
                parts.append(f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="{1.6 if number else 4}"/>')
    return parts
