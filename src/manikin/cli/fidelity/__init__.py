"""`manikin fidelity`: how far simulations are from the recordings of a real arm."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from manikin.cli.common.own_recordings import RecordingExportOptions, export
from manikin.cli.common.terminal import OK, console, counted
from manikin.cli.fidelity.improve import ImproveOptions, improve
from manikin.cli.fidelity.score import ScoreOptions, score
from manikin.cli.fidelity.simulate import RunOptions, simulate

__all__ = ["ImproveOptions", "PackOptions", "RunOptions", "ScoreOptions", "main", "run"]


@dataclass(frozen=True, kw_only=True)
class PackOptions:
    """Write a submission: the files of a simulation, what was tuned, what is immutable, how long it ran and where."""

    folder: tyro.conf.Positional[Path]
    """Folder of simulated repeats."""
    about: Path | None = None
    """TOML file with simulator, run_time_s, system, [tuned] and [immutable]. Default: about.toml in the folder, as
    manikin fidelity run writes it."""
    out: Path = Path("submission")
    """Folder to write, new or empty."""


_Commands = (
    Annotated[ScoreOptions, tyro.conf.subcommand("score")]
    | Annotated[RunOptions, tyro.conf.subcommand("run")]
    | Annotated[ImproveOptions, tyro.conf.subcommand("improve")]
    | Annotated[PackOptions, tyro.conf.subcommand("pack")]
    | Annotated[RecordingExportOptions, tyro.conf.subcommand("export")]
)


def main(options: Annotated[_Commands, tyro.conf.arg(name="")]) -> int:
    """Simulate the tasks of the CSIRO manipulation benchmark, score simulations on it or on recordings of your own,
    search for settings, pack a submission, or export episodes of manikin."""
    return run(options)


def run(options: ScoreOptions | RunOptions | ImproveOptions | PackOptions | RecordingExportOptions) -> int:
    """Score, simulate, search, pack or export."""
    if isinstance(options, RunOptions):
        return simulate(options)
    if isinstance(options, RecordingExportOptions):
        return export(options)
    if isinstance(options, ImproveOptions):
        return improve(options)
    return score(options) if isinstance(options, ScoreOptions) else _pack(options)


def _pack(options: PackOptions) -> int:
    from manikin.fidelity.submission import pack

    said = pack(options.folder, options.about, options.out)
    out = console()
    out.print(f"{said['simulator']}: {counted(len(said['tasks']), 'task')}, {counted(len(said['sha256']), 'file')}")
    out.print(f"wrote {options.out / 'submission.json'}", soft_wrap=True, markup=False)
    return OK
