"""`manikin results`: what was measured, as rows that can be found again."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from manikin.cli.common.remember import FOLDER
from manikin.cli.common.terminal import OK, console, counted, show_table

if TYPE_CHECKING:
    from rich.console import Console

    from manikin.results import Store

__all__ = ["ResultsOptions", "main", "run"]

_KEY = "MANIKIN_RESULTS_KEY"
_WORDS = {  # action -> how many words it takes at least and at most, and what they are
    "add": (1, None, "folders of runs, reports, or results of benchmarks"),
    "list": (0, 0, "nothing"),
    "query": (1, 1, "a question in SQL"),
    "compare": (2, 2, "two policies, or beginnings of two ids"),
    "export": (1, 1, "a file that ends in .parquet or .csv"),
    "import": (1, None, "files that were exported as .parquet or .csv"),
    "page": (1, 1, "a folder"),
    "serve": (0, 0, "nothing"),
}


@dataclass(frozen=True, kw_only=True)
class ResultsOptions:
    """Options of `manikin results`."""

    action: tyro.conf.Positional[Literal["add", "list", "query", "compare", "export", "import", "page", "serve"]]
    """What to do."""
    words: tyro.conf.Positional[tuple[str, ...]] = ()
    """add: folders of evaluations and trainings, report.json, benchmarks' results. query: SQL about the tables runs,
    episodes and metrics. compare: two policies, or beginnings of two ids. export: FILE.parquet or FILE.csv. import:
    such files. page: a folder for the leaderboard."""
    store: Path | None = None
    """Folder of the results; by default $MANIKIN_RESULTS, else ./results. It may lie on a shared disk."""
    to: tuple[str, ...] = ()
    """add: also to tensorboard:FOLDER, mlflow:ADDRESS or wandb:PROJECT."""
    host: str = "127.0.0.1"
    """serve: address to listen on. By default only this machine can connect."""
    port: int = 0
    """serve: port to listen on; by default the first free one from 8080 on."""


def main(options: Annotated[ResultsOptions, tyro.conf.arg(name="")]) -> int:
    """Add results to a store, list them, ask in SQL, compare two, export, or show them as a leaderboard.

    With MANIKIN_RESULTS set, `manikin eval` and `manikin train` add what they measure by themselves.
    """
    return run(options)


def run(options: ResultsOptions) -> int:
    """Do what the action says."""
    from manikin.errors import ConfigError

    least, most, what = _WORDS[options.action]
    if len(options.words) < least or (most is not None and len(options.words) > most):
        raise ConfigError(f"manikin results {options.action} takes {what}; got {len(options.words)} words")
    try:
        from manikin.results import Store
    except ImportError:
        raise ConfigError("the store of results needs DuckDB and Parquet: pip install 'manikin[results]'") from None
    store = Store(options.store or Path(os.environ.get(FOLDER) or "results"))
    out = console()
    if options.action == "add":
        return _add(out, store, options)
    if options.action == "list":
        return _list(out, store)
    if options.action == "query":
        return _query(out, store, options.words[0])
    if options.action == "compare":
        return _compare(out, store, *options.words)
    if options.action == "serve":
        return _serve(out, store, options)
    if options.action == "import":
        count = sum(store.take_in(file) for file in options.words)
        out.print(f"{counted(count, 'result')} now in {store.folder}", soft_wrap=True)
    elif options.action == "export":
        store.export(options.words[0])
        out.print(f"wrote {options.words[0]}", soft_wrap=True)
    else:
        from manikin.results.board import write_board

        out.print(f"page: {write_board(store, options.words[0])}", soft_wrap=True)
    return OK


def _add(out: Console, store: Store, options: ResultsOptions) -> int:
    from manikin.results.intake import results_of
    from manikin.results.sinks import open_sink, send

    found = [result for word in options.words for result in results_of(word)]  # all or none
    sinks = [open_sink(word) for word in options.to]
    for result in found:
        name = store.add(result)
        for sink in sinks:
            send(result, sink)
        if result.note:
            out.print(result.note, soft_wrap=True)
        out.print(f"{name[:8]}  {result.run['kind']}  {result.run['name']}  {result.run.get('policy', '')}")
    return OK


def _list(out: Console, store: Store) -> int:
    from rich.table import Table

    from manikin.results.compare import rates

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("id", "protocol", "task", "policy", "success", "episodes", "device", "when"):
        table.add_column(heading, no_wrap=True)
    tables = store.read()
    found = rates(tables)
    for rate in found:
        run = rate.run
        table.add_row(
            run["run"][:8],
            f"{run['name']} ({run['protocol_hash'][:6]})",
            rate.task,
            run["policy"],
            str(rate.interval),
            str(rate.episodes),
            run["device"],
            run["created"][:10],
        )
    runs = tables.runs()
    if found:
        show_table(out, table)
    kinds = {kind: sum(run["kind"] == kind for run in runs) for kind in ("evaluation", "training", "benchmark")}
    said = ", ".join(counted(number, kind) for kind, number in kinds.items() if number)
    out.print(f"{store.folder}: {said or 'no results yet; add some with: manikin results add FOLDER'}", soft_wrap=True)
    return OK


def _query(out: Console, store: Store, sql: str) -> int:
    from rich.table import Table

    found = store.read().table(sql)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in found.column_names:
        table.add_column(heading, no_wrap=True)
    for row in found.to_pylist():
        table.add_row(*["" if value is None else str(value) for value in row.values()])
    show_table(out, table)
    return OK


def _compare(out: Console, store: Store, first: str, second: str) -> int:
    from rich.table import Table

    from manikin.results.compare import compare_runs

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("task", "episodes", "both", f"only {first}", f"only {second}", "neither", "difference", "p"):
        table.add_column(heading, no_wrap=True)
    alone = 0
    for one in compare_runs(store, first, second):
        p = one.paired
        counts = (p.both, p.only_first, p.only_second, p.neither)
        table.add_row(one.task, str(sum(counts)), *map(str, counts), str(p.difference), f"{p.p_value:.2g}")
        alone += one.alone
    show_table(out, table)
    if alone:
        out.print(f"{counted(alone, 'episode')} that only one of them played left out")
    return OK


def _serve(out: Console, store: Store, options: ResultsOptions) -> int:
    import threading

    from manikin.results.board import Board

    board = Board(store, host=options.host, port=options.port, key=os.environ.get(_KEY) or None)
    board.open()
    out.print(f"leaderboard: {board.url}{'?key=...' if board.key else ''}; stop with Ctrl-C", soft_wrap=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        pass
    finally:
        board.close()
    return OK
