"""`manikin fidelity export`: episodes of manikin in the layout of recordings of your own."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

import tyro

from manikin.cli.common.terminal import OK, console, counted

__all__ = ["RecordingExportOptions", "export"]


@dataclass(frozen=True, kw_only=True)
class RecordingExportOptions:
    """Write the episodes of a recording of manikin in the layout of your own recordings, to score them."""

    recording: tyro.conf.Positional[Path]
    """A file of manikin collect or teleop, with states."""
    out: Path = Path("simulation")
    """Folder to write, new or empty; or an HDF5 file, NAME.h5."""
    name: str = ""
    """What the task is called; the recordings of the real arm call it so, too. Default: the task's id."""
    episodes: tuple[int, ...] = ()
    """Numbers of the episodes, by default all; each is a repeat."""
    task: str | None = None
    """Where the task is, if it is your own: file.py or file.py:Class."""
    trust: bool = False
    """Run the file of a task of your own that the recording names."""


def export(options: RecordingExportOptions) -> int:
    """Read the episodes and write them."""
    from manikin.fidelity.export import exported
    from manikin.fidelity.recordings.own import write_own

    found = exported(
        options.recording,
        name=options.name,
        numbers=options.episodes or None,
        task=options.task,
        trust=options.trust,
    )
    path, out = write_own(found, options.out), console()
    words = f"{found.task}: {counted(len(found.arm), 'repeat')} at {found.hz:g} Hz, {found.rows} rows at most"
    out.print(words, soft_wrap=True, markup=False)
    words = f"wrote {path}; score it: manikin fidelity score {shlex.quote(str(path))} --reality REAL"
    out.print(words, soft_wrap=True, markup=False)
    return OK
