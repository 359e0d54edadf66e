"""Pieces of reports as HTML: page, tables, tracks of rates. No script, no font, no file beside it; light and dark as
the reader's system is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any

__all__ = ["alarm", "details", "grid", "page", "pc", "section", "track"]


def page(title: str, body: str) -> str:
    """A whole page."""
    style = (resources.files("manikin.eval.pages") / "report.css").read_text(encoding="utf-8")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body><main>{body}</main></body></html>\n"
    )


def alarm(title: str, words: str) -> str:
    """A warning."""
    return f'<div class="alarm"><b>{title}</b> {words}</div>'


def section(body: str) -> str:
    """A part of a page."""
    return f'<section class="plain">{body}</section>'


def details(summary: str, body: str) -> str:
    """What opens on a click."""
    return f"<details><summary>{summary}</summary>{body}</details>"


def grid(
    headings: Sequence[str], rows: Iterable[Sequence[str]], *, wide: int | None = None, left: Sequence[int] = ()
) -> str:
    """A table of ready HTML cells; the first column and those in ``left`` to the left, the others to the right;
    ``wide`` takes the room."""
    kinds = [" class=wide" if i == wide else " class=left" if i in left else "" for i in range(len(headings))]
    head = "".join(f"<th{kind}>{heading}</th>" for kind, heading in zip(kinds, headings, strict=True))
    cells = ("".join(f"<td{kind}>{cell}</td>" for kind, cell in zip(kinds, row, strict=True)) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'


def track(rate: Mapping[str, Any]) -> str:
    """A rate and its interval on a scale from 0 to 1."""
    low, high, at = rate["low"], rate["high"], rate["rate"]
    band = f'<i style="left:{low:.2%};width:{high - low:.2%}"></i><b style="left:{at:.2%}"></b>'
    return f'<div class="track" title="{pc(at)}, interval {pc(low)} to {pc(high)}">{band}</div>'


def pc(share: float) -> str:
    """A share in per cent."""
    return f"{100 * share:.1f} %" if 0 < share < 1 else f"{100 * share:.0f} %"
