"""What the commands share on the terminal: a console, progress bars, tables of success rates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from manikin.eval.evaluation import Evaluation

__all__ = ["INTERRUPTED", "NOT_GOOD", "OK", "bar", "console", "rates_table"]

OK, NOT_GOOD, INTERRUPTED = 0, 1, 130


def console() -> Console:
    """Where commands write for people."""
    return Console(highlight=False)


class _PerSecond(ProgressColumn):
    """How many per second: lately, and in all when done."""

    def render(self, task: Task) -> Text:
        speed = task.completed / task.finished_time if task.finished_time else task.speed
        return Text("" if speed is None else f"{speed:,.1f}/s")


@contextmanager
def bar(out: Console, words: str, total: int) -> Iterator[Callable[[], None]]:
    """A progress bar with rate and time left; call what it yields once per finished item. On a pipe only its last state
    appears."""
    columns = (
        TextColumn("{task.description:<28}"),
        BarColumn(bar_width=32),
        MofNCompleteColumn(),
        _PerSecond(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=out) as progress:
        task = progress.add_task(words, total=total)
        yield lambda: progress.advance(task)


def rates_table(evaluation: Evaluation) -> Table:
    """Success rates with intervals and the largest contact force of the robot's links, one line per task."""
    rule, confidence = evaluation.protocol.success, evaluation.protocol.confidence
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    words = {"once": "once", "at_end": "at end", "held": "held"}
    interval = f"{confidence:.0%} of {words[rule]}"
    for heading in ("task", "n", *words.values(), interval, "peak force", "health"):
        table.add_column(heading, no_wrap=True, justify="left" if heading in ("task", "health") else "right")
    for task in evaluation.tasks:
        rates = [f"[bold]{i.estimate:.1%}[/]" if k == rule else f"{i.estimate:.1%}" for k, i in task.rates.items()]
        head = task.rate(rule)
        health = "ok" if not task.unhealthy else f"[red]{len(task.unhealthy)} unhealthy[/]"
        between = f"{100 * head.low:.1f} to {100 * head.high:.1f}"
        force = max(r.force_peak.get("total", 0.0) for r in task.results)
        table.add_row(task.task, str(len(task.results)), *rates, between, f"{force:.0f} N", health)
    return table
