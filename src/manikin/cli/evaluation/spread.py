"""`manikin eval --on`: the episodes of a protocol on workers, whose results come into the evaluation's journal."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manikin.cli.spread.options import SpreadOptions
from manikin.cli.spread.run import PER_ROW, spread

if TYPE_CHECKING:
    from rich.console import Console

    from manikin.eval.protocol import Protocol

__all__ = ["Failed", "evaluate_on_workers"]

Failed = dict[str, dict[int, str]]
"""Task -> number of an episode -> why it cannot be run."""


def evaluate_on_workers(
    out: Console,
    options: SpreadOptions,
    protocol: Protocol,
    *,
    folder: Path,
    settings: Mapping[str, Any],
    same: Mapping[str, Any],
    num_envs: int,
    device: str,
    resume: bool,
    files: Sequence[str | None],
) -> Failed | None:
    """Run the episodes that the evaluation's journal lacks, and write their results into it.

    Args:
        out: where to say how it goes.
        options: how to spread.
        protocol: what to run.
        folder: of the evaluation.
        settings: of the work, see :class:`manikin.cli.evaluation.worker.EvalWork`.
        same: the journal's settings.
        num_envs: rows of a worker.
        device: that simulates.
        resume: go on with what is there.
        files: that the command names.

    Returns:
        what failed; None where something is left to do, or another process does the rest.

    Raises:
        DataError, ConfigError: as :func:`manikin.cli.spread.run.spread`.
    """
    from manikin.eval.journal import Journal

    path = folder / "episodes.jsonl"
    held: dict[str, set[int]] = {task: set() for task in protocol.tasks}
    if options.on != "slurm-array":  # whose tasks begin at the same time, and each with the whole protocol
        with Journal(path, same, resume=resume or (folder / "spread").exists()) as journal:
            held = {task: set(journal.results(task)) for task in protocol.tasks}
            journal.close(remove=not len(journal))
    counts = [len(protocol.seeds_of(task)) for task in protocol.tasks]
    first = [0, *itertools.accumulate(counts)]
    places = list(zip(protocol.tasks, first, counts, strict=False))
    numbers = [at + n for task, at, count in places for n in range(count) if n not in held[task]]
    ledger, complete = spread(
        out,
        options,
        folder=folder / "spread",
        work="manikin.cli.evaluation.worker:EvalWork",
        settings=settings,
        same=same,
        numbers=numbers,
        size=PER_ROW * min(num_envs, max(counts)),
        resume=resume,
        words="evaluating",
        edges=first,
        device=device,
        files=files,
    )
    if not complete:
        return None
    with ledger.merging() as mine:
        if not mine:
            return None
        with Journal(path, same, resume=True) as journal:
            for _, place in ledger.results():
                with Journal(place / path.name, same, resume=True) as part:
                    journal.absorb(part)
        failed: Failed = {}
        for item in ledger.failed:
            task, at, _ = next(one for one in reversed(places) if one[1] <= item["number"])
            failed.setdefault(task, {})[item["number"] - at] = f"{item['what']} failed: {item['error']}"
    return failed
