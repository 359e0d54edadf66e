"""Finished episodes of an evaluation, on disk as soon as they end, so that one that is killed goes on where it stopped.

A text file of one JSON object a line, each with the CRC-32 of its content: first what was evaluated, then for each
task its fingerprint, followed by its results. A line that was cut or changed is left out, and its episode runs again.
Numbers come back to the bit. The file is removed once the report holds everything.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from manikin.data.recording.format import Header, differences
from manikin.data.recording.lines import CheckedLines
from manikin.errors import DataError
from manikin.eval.runner import EpisodeResult
from manikin.moved import old_names

__all__ = ["Journal", "JournaledTask"]


@dataclasses.dataclass
class JournaledTask:
    """What a journal has of one task.

    Attributes:
        results: by the episode's number.
        seconds: that they took, over all runs.
    """

    results: dict[int, EpisodeResult] = dataclasses.field(default_factory=dict)
    seconds: float = 0.0


class Journal(CheckedLines):
    """Writes results as they come, and gives those of an earlier run back.

    Args:
        path: the file; its folder is made.
        settings: what the results depend on beside the tasks: protocol's hash, policy, ... as plain values.
        resume: go on with a file that exists; otherwise it is an error. Where there is none, begin one.

    Raises:
        DataError: as :class:`~manikin.data.recording.lines.CheckedLines`.
    """

    def __init__(self, path: str | Path, settings: Mapping[str, Any], *, resume: bool = False) -> None:
        self._tasks: dict[str, JournaledTask] = {}
        self._prints: dict[str, dict[str, Any]] = {}
        self._task, self._before = "", 0.0
        super().__init__(path, "evaluation", "episodes", settings, resume=resume)

    def read_back(self, lines: Sequence[Mapping[str, Any]]) -> None:
        task, before = "", 0.0
        for line in lines:
            if "task" in line:
                task = line["task"]
                self._prints.setdefault(task, line["fingerprint"])
                before = self._tasks.setdefault(task, JournaledTask()).seconds
            elif "episode" in line and task:
                result = _result(line["episode"])
                self._tasks[task].results[result.number] = result
                self._tasks[task].seconds = before + line["seconds"]

    def __len__(self) -> int:
        """How many episodes it holds, over all tasks."""
        return sum(len(kept.results) for kept in self._tasks.values())

    def begin(self, task: str, fingerprint: Mapping[str, Any]) -> JournaledTask:
        """What is there of a task already; the results that are added next are its own.

        Raises:
            DataError: the task's environment, its versions or the machine are not those of the results that are there.
        """
        now: dict[str, Any] = json.loads(json.dumps(fingerprint))
        then = self._prints.setdefault(task, now)
        if said := differences(Header(fingerprint=then), Header(fingerprint=now)):
            raise DataError(
                f"{self.path} cannot be resumed: {task} has run with other settings or versions: {'; '.join(said)}. "
                "Restore them, or write to another folder"
            )
        self._task = task
        self.write([{"task": task, "fingerprint": now}])
        kept = self._tasks.setdefault(task, JournaledTask())
        self._before = kept.seconds
        return JournaledTask(dict(kept.results), kept.seconds)

    def absorb(self, other: Journal) -> None:
        """Take in the results of another journal of this evaluation.

        Raises:
            DataError: they are of other environments, or cannot be written.
        """
        for task, found in other._tasks.items():
            there = self.begin(task, other._prints[task]).results
            new = [result for number, result in sorted(found.results.items()) if number not in there]
            each = found.seconds / max(1, len(found.results))
            lines = [{"episode": dataclasses.asdict(result), "seconds": each * (i + 1)} for i, result in enumerate(new)]
            self.write(lines)
            self._tasks[task].results |= {result.number: result for result in new}
            self._tasks[task].seconds = self._before + each * len(new)

    def results(self, task: str) -> dict[int, EpisodeResult]:
        """What it holds of a task, by the episode's number."""
        return dict(self._tasks[task].results) if task in self._tasks else {}

    def add(self, result: EpisodeResult, seconds: float) -> None:
        """Bring a result to the disk.

        Args:
            result: of the task that was begun last.
            seconds: since then.

        Raises:
            DataError: it cannot be written, for example because the disk is full.
        """
        self.write([{"episode": dataclasses.asdict(result), "seconds": seconds}])
        self._tasks[self._task].results[result.number] = result
        self._tasks[self._task].seconds = self._before + seconds


def _result(values: dict[str, Any]) -> EpisodeResult:
    return EpisodeResult(**{**values, "events": tuple(values["events"])})


__getattr__ = old_names(__name__)
