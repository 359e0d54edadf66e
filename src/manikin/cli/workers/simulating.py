"""What a worker of `manikin fidelity run --on` does: simulates tasks of the benchmark, each into files of its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from manikin.cli.fidelity.simulate import RunOptions, device_of, settings_of
from manikin.cli.spread.options import restored
from manikin.data.recording.durable import write_file

__all__ = ["FidelityWork"]


class FidelityWork:
    """Simulates. A :class:`~manikin.spread.work.Work` whose item k is the benchmark's task k; ``settings`` are the
    command's options, of one engine."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._options = restored(RunOptions, settings)

    def run(self, numbers: Sequence[int], folder: Path, advance: Callable[[], None]) -> None:
        from manikin.fidelity.recordings.recording import write_repeats
        from manikin.fidelity.simulation.run import run_tasks

        (engine,) = self._options.engine
        for number in sorted(set(numbers) - self.finished(folder)):
            ran = run_tasks(
                settings_of(self._options),
                [number],
                seed=self._options.seed,
                device=device_of(self._options, engine),
                threads=self._options.threads,
            )
            write_repeats(ran.recordings[number], folder)
            told = {"seconds": ran.seconds, "processor_seconds": ran.processor_seconds}
            write_file(folder / f"{number}.json", json.dumps(told).encode())  # last: a task with this file is whole
            advance()

    def finished(self, folder: Path) -> set[int]:
        return {int(path.stem) for path in folder.glob("*.json") if path.stem.isdecimal()}

    def facts(self, folder: Path) -> dict[str, Any]:
        content, spent = hashlib.sha256(), {"seconds": 0.0, "processor_seconds": 0.0}
        for number in sorted(self.finished(folder)):
            for path in sorted(folder.glob(f"task{number:02d}_*.csv")):
                content.update(path.name.encode() + path.read_bytes())
            told = json.loads((folder / f"{number}.json").read_text())
            spent = {name: value + told[name] for name, value in spent.items()}
        return {"content": content.hexdigest(), **spent}

    def called(self, number: int) -> str:
        return f"task {number}"

    def close(self) -> None:
        """Nothing is held."""
