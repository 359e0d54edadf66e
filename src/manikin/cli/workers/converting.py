"""What a worker of `manikin convert --on` does: writes a LeRobot dataset, or a recording of what it observes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from manikin.cli.collecting.spread import FILE, recording_facts, recording_numbers
from manikin.cli.convert import DATASET, ConvertOptions, chosen
from manikin.cli.spread.options import restored

__all__ = ["ConvertWork", "ObserveWork"]


class ConvertWork:
    """Converts episodes, each for itself. A :class:`~manikin.spread.work.Work`; ``settings`` are the command's
    options."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._options = restored(ConvertOptions, settings)

    def run(self, numbers: Sequence[int], folder: Path, advance: Callable[[], None]) -> None:
        from manikin.data.formats.convert import to_lerobot

        done = self.finished(folder)
        to_lerobot(
            self._options.file,
            folder / DATASET,
            numbers=sorted({*done, *numbers}),
            resume=(folder / DATASET).exists(),
            join=False,
            on_episode=advance,
            **chosen(self._options),
        )

    def finished(self, folder: Path) -> set[int]:
        from manikin.data.formats.lerobot import LeRobotWriter

        if not (folder / DATASET).exists():
            return set()
        return set(LeRobotWriter.reopen(folder / DATASET).finished)

    def facts(self, folder: Path) -> dict[str, Any]:
        done = {f"{number:06d}" for number in self.finished(folder)}
        content = hashlib.sha256()
        if not done:
            return {"content": content.hexdigest()}
        for path in sorted((folder / DATASET / "meta" / "parts").iterdir()):
            if path.name.partition(".")[0] in done:
                content.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
        return {"content": content.hexdigest()}

    def called(self, number: int) -> str:
        return f"episode {number}"

    def close(self) -> None:
        pass


class ObserveWork(ConvertWork):
    """Observes episodes anew, of which another format is made."""

    def run(self, numbers: Sequence[int], folder: Path, advance: Callable[[], None]) -> None:
        from manikin.data.replay.rerecord import rerecord

        again = {**chosen(self._options), "observations": True, "exact": True}
        rerecord(self._options.file, folder / FILE, numbers=numbers, resume=True, on_episode=advance, **again)

    def finished(self, folder: Path) -> set[int]:
        return recording_numbers(folder / FILE)

    def facts(self, folder: Path) -> dict[str, Any]:
        return recording_facts(folder / FILE)
