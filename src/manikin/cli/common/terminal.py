"""What the commands share on the terminal: a console, progress bars, tables of success rates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from rich.console import Console
from rich.measure import Measurement
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from manikin.eval.evaluation import Evaluation

__all__ = ["INTERRUPTED", "NOT_GOOD", "OK", "bar", "console", "counted", "rates_table", "show_table"]

OK, NOT_GOOD, INTERRUPTED = 0, 1, 130


def console() -> Console:
    """Where commands write for people, as it is: ``:CD:`` of a fingerprint is no emoji."""
    return Console(highlight=False, emoji=False)


class _PerSecond(ProgressColumn):
    """How many per second since the beginning: items are finished in bursts, a batch at a time."""

    def render(self, task: Task) -> Text:
        elapsed = task.finished_time or task.elapsed
        return Text(f"{task.completed / elapsed:,.1f}/s" if task.completed and elapsed else "")


class _Left(ProgressColumn):
    """How long the rest takes at that rate."""

    def render(self, task: Task) -> Text:
        if not task.completed or not task.elapsed or task.total is None:
            return Text("-:--:--", style="progress.remaining")
        left = 0 if task.finished else task.elapsed * (task.total - task.completed) / task.completed
        return Text(str(timedelta(seconds=round(left))), style="progress.remaining")


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
        _Left(),
    )
    with Progress(*columns, console=out, disable=not total) as progress:  # of nothing, nothing is shown
        task = progress.add_task(words, total=total)
        yield lambda: progress.advance(task)


def counted(number: int, thing: str) -> str:
    """``1 task``, ``2,000 tasks``."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def show_table(out: Console, table: Table) -> None:
    """Print a table whole: where the terminal is too narrow its lines go on in the next, rather than lose letters."""
    wide = Console(highlight=False, width=10_000)
    out.width, before = max(out.width, Measurement.get(wide, wide.options, table).maximum), out.width
    out.print(table)
    out.width = before


def rates_table(evaluation: Evaluation) -> Table:
    """Success rates with intervals and the largest contact force of the robot's links, one line per task."""
    rule, confidence = evaluation.protocol.success, evaluation.protocol.confidence
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    words = {"once": "once", "at_end": "at end", "held": "held"}
    interval = f"{confidence:.0%} of\n{words[rule]}"
    for heading in ("task", "n", *words.values(), interval, "peak\nforce", "health"):
        table.add_column(heading, no_wrap=True, justify="left" if heading in ("task", "health") else "right")
    for task in evaluation.tasks:
        rates = [f"[bold]{i.estimate:.1%}[/]" if k == rule else f"{i.estimate:.1%}" for k, i in task.rates.items()]
        head = task.rate(rule)
        health = "ok" if not task.unhealthy else f"[red]{len(task.unhealthy)} unhealthy[/]"
        between = f"{100 * head.low:.1f} to {100 * head.high:.1f}"
        force = max(r.force_peak.get("total", 0.0) for r in task.results)
        table.add_row(task.title, str(len(task.results)), *rates, between, f"{force:.0f} N", health)
    return table
