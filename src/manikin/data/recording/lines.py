"""A text file that grows by checked lines, so that work that is killed goes on where it stopped.

Each line is one JSON object with the CRC-32 of its content. The first says what the work is and with which settings. A
line that was cut or changed is left out. Numbers come back to the bit.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from manikin.data.recording.durable import sync
from manikin.errors import DataError

__all__ = ["CheckedLines"]

log = logging.getLogger("manikin.data")


class CheckedLines:
    """Appends lines, and gives those of an earlier run back.

    Args:
        path: the file; its folder is made.
        work: what the file is of, for example "evaluation"; also the key of its first line.
        items: what its lines are, for example "episodes".
        settings: what the results depend on, as plain values.
        resume: go on with a file that exists; otherwise it is an error. Where there is none, begin one.

    Attributes:
        found: the lines of the earlier run, without the first.
        damaged: how many of its lines cannot be read.

    Raises:
        DataError: the file exists and ``resume`` is off, was begun with other settings, is being written by another
            process, or cannot be read or written.
    """

    def __init__(
        self, path: str | Path, work: str, items: str, settings: Mapping[str, Any], *, resume: bool = False
    ) -> None:
        self.path, self._work, self._items = Path(path), work, items
        self.found: list[dict[str, Any]] = []
        self.damaged, self._written = 0, 0
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
                f"another {self._work} is writing {self.path}; wait until it ends, or give another folder"
            ) from None

    def _open(self, settings: dict[str, Any], resume: bool) -> None:
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if not whole:
            os.ftruncate(self._handle, 0)
            self._append([{self._work: settings}])
            sync(self.path.parent)
            return
        lines = [_read(line) for line in whole.splitlines()]
        first = lines[0] or {}
        article = "an" if self._work[0] in "aeiou" else "a"
        if self._work not in first:
            raise DataError(
                f"{self.path} is not a journal of {article} {self._work}, or its first line is damaged; write to "
                "another folder, or remove the file"
            )
        self.found = [line for line in lines[1:] if line is not None]
        self.read_back(self.found)
        if not resume:
            raise DataError(
                f"{self.path} contains {len(self)} {self._items} of an unfinished {self._work}. Continue "
                "it with --resume (resume=True), write to another folder, or remove the file"
            )
        then = first[self._work]
        keys = sorted({*then, *settings})
        if said := [
            f"{k}: {then.get(k)!r} in the file, {settings.get(k)!r} now" for k in keys if then.get(k) != settings.get(k)
        ]:
            raise DataError(
                f"{self.path} cannot be resumed with other settings: {'; '.join(said)}. Repeat the first command with "
                "--resume, or write to another folder"
            )
        self.damaged = lines.count(None)
        if self.damaged:
            log.warning("%s: %d damaged lines; their %s run again", self.path, self.damaged, self._items)
        os.ftruncate(self._handle, len(whole))  # a line that was cut off

    def read_back(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Take in the lines of the earlier run; for those who count something else than lines."""

    def __len__(self) -> int:
        """How many items it holds; a line is one unless said otherwise."""
        return len(self.found) + self._written

    def write(self, contents: Sequence[Mapping[str, Any]]) -> None:
        """Bring lines to the disk.

        Raises:
            DataError: they cannot be written, for example because the disk is full.
        """
        self._append(contents)
        self._written += len(contents)

    def _append(self, contents: Iterable[Mapping[str, Any]]) -> None:
        lines = b"".join(_line(content) for content in contents)
        try:
            if os.write(self._handle, lines) < len(lines):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._handle)
        except OSError as error:
            raise DataError(
                f"cannot write {self.path}: {error.strerror}; the {len(self)} {self._items} written before are safe"
            ) from None

    def close(self, *, remove: bool = False) -> None:
        """Let go of the file; ``remove`` it where it is not needed any more. Idempotent."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
        if remove:
            self.path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _dump(content: Mapping[str, Any]) -> str:
    return json.dumps(content, separators=(",", ":"))


def _line(content: Mapping[str, Any]) -> bytes:
    return _dump({"crc32": zlib.crc32(_dump(content).encode()), "line": content}).encode() + b"\n"


def _read(line: bytes) -> dict[str, Any] | None:
    """The content of a line; None for one that is damaged."""
    try:
        read = json.loads(line)
        content: dict[str, Any] = read["line"]
        return content if read["crc32"] == zlib.crc32(_dump(content).encode()) else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
