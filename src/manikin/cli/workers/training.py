"""What a worker of `manikin train --vary --on` does: runs of a comparison, each in the folder that it has there."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from manikin.cli.common.terminal import OK, console
from manikin.cli.spread.options import restored
from manikin.cli.train import TrainOptions, runs_of_comparison, train_as_part
from manikin.data.recording.durable import write_file
from manikin.errors import ManikinError

__all__ = ["TrainWork"]


class TrainWork:
    """Trains. A :class:`~manikin.spread.work.Work` whose item k is the k-th run of the comparison; ``settings`` are the
    command's options. A run that was killed goes on from its checkpoint."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._options = restored(TrainOptions, settings)
        self._runs = runs_of_comparison(self._options)

    def run(self, numbers: Sequence[int], folder: Path, advance: Callable[[], None]) -> None:
        there = self.finished(folder)
        for number in numbers:
            if number not in there:
                run = self._runs[number]
                status = train_as_part(console(), self._options, run)
                if status != OK:
                    raise ManikinError(f"{run.folder} ended with status {status}; the log of the worker says why")
                write_file(folder / f"{number}.json", json.dumps({"folder": str(run.folder)}).encode())
                advance()

    def finished(self, folder: Path) -> set[int]:
        return {int(path.stem) for path in folder.glob("*.json") if path.stem.isdecimal()}

    def facts(self, folder: Path) -> dict[str, Any]:
        return {"content": sorted(self.finished(folder))}

    def called(self, number: int) -> str:
        return f"run {self._runs[number].folder}"

    def close(self) -> None:
        pass
