"""Finished episodes of an evaluation, on disk as soon as they end, so that one that is killed goes on where it stopped.

A text file of one JSON object a line, each with the CRC-32 of its content: first what was evaluated, then for each
task its fingerprint, followed by its results. A line that was cut or changed is left out, and its episode runs again.
Numbers come back to the bit. The file is removed once the report holds everything.
"""

from __future__ import annotations

import dataclasses
import errno
import json
import logging
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manikin.data.recording.durable import sync
from manikin.data.recording.format import Header, differences
from manikin.errors import DataError
from manikin.eval.runner import EpisodeResult
from manikin.moved import old_names

__all__ = ["Journal", "JournaledTask"]

log = logging.getLogger("manikin.eval")


@dataclasses.dataclass
class JournaledTask:
    """What a journal has of one task.

    Attributes:
        results: by the episode's number.
        seconds: that they took, over all runs.
    """

    results: dict[int, EpisodeResult] = dataclasses.field(default_factory=dict)
    seconds: float = 0.0


class Journal:
    """Writes results as they come, and gives those of an earlier run back.

    Args:
        path: the file; its folder is made.
        settings: what the results depend on beside the tasks: protocol's hash, policy, ... as plain values.
        resume: go on with a file that exists; otherwise it is an error. Where there is none, begin one.

    Raises:
        DataError: the file exists and ``resume`` is off, was begun with other settings, is being written by another
            process, or cannot be read or written.
    """

    def __init__(self, path: str | Path, settings: Mapping[str, Any], *, resume: bool = False) -> None:
        self.path = Path(path)
        self._tasks: dict[str, JournaledTask] = {}
        self._prints: dict[str, dict[str, Any]] = {}
        self._task, self._before = "", 0.0
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise DataError(f"cannot write {self.path}: {error.strerror}") from None
        try:
            self._lock()
            self._open(json.loads(json.dumps(settings)), resume)
        except BaseException:
            os.close(self._handle)
            raise

    def _lock(self) -> None:
        try:
            import fcntl
        except ImportError:
            return
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise DataError(
                f"another evaluation is writing {self.path}; wait until it ends, or give another folder"
            ) from None

    def _open(self, settings: dict[str, Any], resume: bool) -> None:
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if not whole:
            os.ftruncate(self._handle, 0)
            self._write({"evaluation": settings})
            sync(self.path.parent)
            return
        lines = [_read(line) for line in whole.splitlines()]
        first = lines[0] or {}
        if "evaluation" not in first:
            raise DataError(
                f"{self.path} is not a journal of an evaluation, or its first line is damaged; write to another "
                "folder, or remove the file"
            )
        self._replay([line for line in lines if line is not None])
        if not resume:
            raise DataError(
                f"{self.path} contains {len(self)} episodes of an unfinished evaluation. Continue it with --resume "
                "(resume=True), write to another folder, or remove the file"
            )
        then = first["evaluation"]
        keys = sorted({*then, *settings})
        if said := [
            f"{k}: {then.get(k)!r} in the file, {settings.get(k)!r} now" for k in keys if then.get(k) != settings.get(k)
        ]:
            raise DataError(
                f"{self.path} cannot be resumed with other settings: {'; '.join(said)}. Repeat the first command with "
                "--resume, or write to another folder"
            )
        if damaged := lines.count(None):
            log.warning("%s: %d damaged lines; their episodes run again", self.path, damaged)
        os.ftruncate(self._handle, len(whole))  # a line that was cut off

    def _replay(self, lines: list[dict[str, Any]]) -> None:
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
        self._write({"task": task, "fingerprint": now})
        kept = self._tasks.setdefault(task, JournaledTask())
        self._before = kept.seconds
        return JournaledTask(dict(kept.results), kept.seconds)

    def add(self, result: EpisodeResult, seconds: float) -> None:
        """Bring a result to the disk.

        Args:
            result: of the task that was begun last.
            seconds: since then.

        Raises:
            DataError: it cannot be written, for example because the disk is full.
        """
        self._write({"episode": dataclasses.asdict(result), "seconds": seconds})
        self._tasks[self._task].results[result.number] = result
        self._tasks[self._task].seconds = self._before + seconds

    def _write(self, content: dict[str, Any]) -> None:
        text = _dump(content)
        line = _dump({"crc32": zlib.crc32(text.encode()), "line": content}).encode() + b"\n"
        try:
            if os.write(self._handle, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._handle)
        except OSError as error:
            raise DataError(
                f"cannot write {self.path}: {error.strerror}; the {len(self)} episodes written before are safe"
            ) from None

    def close(self, *, remove: bool = False) -> None:
        """Let go of the file; ``remove`` it where the report holds all of it. Idempotent."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
        if remove:
            self.path.unlink(missing_ok=True)


def _dump(content: Mapping[str, Any]) -> str:
    return json.dumps(content, separators=(",", ":"))


def _read(line: bytes) -> dict[str, Any] | None:
    """The content of a line; None for one that is damaged."""
    try:
        read = json.loads(line)
        content: dict[str, Any] = read["line"]
        return content if read["crc32"] == zlib.crc32(_dump(content).encode()) else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _result(values: dict[str, Any]) -> EpisodeResult:
    return EpisodeResult(**{**values, "events": tuple(values["events"])})


__getattr__ = old_names(__name__)
