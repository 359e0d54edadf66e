"""What a worker of `manikin replay --on` does: plays episodes again, into a recording of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from manikin.cli.collecting.spread import FILE, recording_facts, recording_numbers
from manikin.cli.common.options import register_robot_file
from manikin.cli.replay import ReplayOptions, overrides
from manikin.cli.spread.options import restored
from manikin.data.recording.durable import write_file

__all__ = ["ReplayWork"]

_COMPARED = "compared.json"


class ReplayWork:
    """Plays episodes again. A :class:`~manikin.spread.work.Work`; ``settings`` are the command's options."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._options = restored(ReplayOptions, settings)
        register_robot_file(self._options.robot)
        self._overrides = overrides(self._options)

    def run(self, numbers: Sequence[int], folder: Path, advance: Callable[[], None]) -> None:
        from manikin.data.replay.rerecord import rerecord

        report = rerecord(
            self._options.file,
            folder / FILE,
            way=self._options.way,
            numbers=numbers,
            num_envs=self._options.num_envs,
            resume=True,
            on_episode=advance,
            **self._overrides,
        )
        if report is not None:
            told = self._compared(folder) | {str(e.number): e.exact for e in report.episodes}
            write_file(folder / _COMPARED, json.dumps(told).encode())

    def finished(self, folder: Path) -> set[int]:
        return recording_numbers(folder / FILE)

    def facts(self, folder: Path) -> dict[str, Any]:
        return recording_facts(folder / FILE) | {"exact": self._compared(folder)}

    def called(self, number: int) -> str:
        return f"episode {number}"

    def close(self) -> None:
        pass

    def _compared(self, folder: Path) -> dict[str, bool]:
        """Number of an episode -> whether it came out as recorded; of those of an attempt that was killed, nothing."""
        path = folder / _COMPARED
        found: dict[str, bool] = json.loads(path.read_text()) if path.exists() else {}
        return found
