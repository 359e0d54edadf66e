"""One attempt at a shard: all items together, and where that fails, each alone, so that one bad item is one item."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from manikin.data.recording.durable import sync, write_file
from manikin.errors import ManikinError
from manikin.spread.ledger import Ledger, Manifest
from manikin.spread.shards import Shard
from manikin.spread.work import Work, open_work

__all__ = ["LostShardError", "Opened", "UnableError", "attempt"]

TOGETHER = 3
"""Attempts at a shard as a whole that may end without a word, before its items are tried alone."""
ALONE = 3
"""Attempts at one item that may end without a word, before it counts as failed."""
_ROOM = 1 << 20  # [bytes] that a worker must be able to write
_NOTES = "attempts.json"


class UnableError(ManikinError, RuntimeError):
    """This worker cannot do the work, for example because its disk is full; another one may."""


class LostShardError(ManikinError, RuntimeError):
    """Another worker has taken the shard over."""


class Opened:
    """A work that can be opened again, which is needed after an error: nobody knows in which state it is."""

    def __init__(self, word: str, settings: Mapping[str, Any]) -> None:
        self._word, self._settings = word, settings
        self._work: Work | None = open_work(word, settings)

    @property
    def work(self) -> Work:
        """It, open."""
        if self._work is None:
            self._work = open_work(self._word, self._settings)
        return self._work

    def close(self) -> None:
        """Let go of it; what goes wrong then is no matter any more."""
        if self._work is not None:
            with suppress(Exception):
                self._work.close()
            self._work = None


@dataclass
class _Notes:
    """What is known of earlier attempts, in a file beside what they left.

    Attributes:
        began: how many attempts began.
        raised: one of them failed as a whole.
        trying: the item that is being tried alone.
        ended: item -> attempts at it alone that ended without a word.
        failed: item -> why it is not tried again.
    """

    path: Path
    began: int = 0
    raised: bool = False
    trying: int | None = None
    ended: dict[int, int] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> _Notes:
        notes = cls(path)
        with suppress(OSError, ValueError, TypeError, KeyError):  # of a process that was killed while it wrote
            plain = json.loads(path.read_text())
            notes.began, notes.raised, notes.trying = plain["began"], plain["raised"], plain["trying"]
            notes.ended = {int(n): count for n, count in plain["ended"].items()}
            notes.failed = {int(n): why for n, why in plain["failed"].items()}
        if notes.trying is not None:
            count = notes.ended[notes.trying] = notes.ended.get(notes.trying, 0) + 1
            if count >= ALONE:
                notes.failed[notes.trying] = f"the process ended, or was out of time, in {count} attempts at it alone"
            notes.trying = None
        return notes

    def write(self) -> None:
        write_file(self.path, json.dumps({k: v for k, v in vars(self).items() if k != "path"}).encode())


def attempt(ledger: Ledger, shard: Shard, opened: Opened, advance: Callable[[], None]) -> None:
    """Do a shard, from what is there of it to its end.

    Items that raise an error, alone too, or at which processes keep ending, are named in the manifest; the others are
    complete.

    Args:
        ledger: the run.
        shard: which.
        opened: the work.
        advance: called after each item.

    Raises:
        UnableError: this worker cannot write, or the shard cannot be completed here.
        LostShardError: somebody else has taken it over.
    """
    began, used = time.monotonic(), time.process_time()
    folder = ledger.claim(shard)
    try:
        notes = _Notes.read(folder / _NOTES)
        notes.began += 1
        notes.write()
        if not notes.raised and notes.began <= TOGETHER and not notes.failed:
            try:
                opened.work.run(shard.numbers, folder, advance)
            except Exception as error:
                opened.close()
                _refuse(folder, error)
                notes.raised = True
        if notes.raised or notes.began > TOGETHER or notes.failed:
            _each_alone(shard, opened, folder, notes, advance)
        facts = opened.work.facts(folder)
        failed = [{"number": n, "what": opened.work.called(n), "error": why} for n, why in sorted(notes.failed.items())]
        manifest = Manifest(
            shard=shard.index,
            facts=facts,
            failed=tuple(failed),
            seconds=time.monotonic() - began,
            processor_seconds=time.process_time() - used,
            began=notes.began,
            host=platform.node(),
        )
        ledger.finish(shard, folder, manifest)
    except (UnableError, LostShardError):
        raise
    except Exception as error:
        opened.close()
        _refuse(folder, error)
        raise UnableError(f"shard {shard.index} cannot be completed here: {_words(error)}") from error


def _each_alone(shard: Shard, opened: Opened, folder: Path, notes: _Notes, advance: Callable[[], None]) -> None:
    """What is left of a shard, one item at a time."""
    there = opened.work.finished(folder)
    for number in shard.numbers:
        if number in there or number in notes.failed:
            continue
        notes.trying = number
        notes.write()
        try:
            opened.work.run([number], folder, advance)
        except Exception as error:
            opened.close()
            _refuse(folder, error)
            notes.failed[number] = _words(error)
    notes.trying = None
    notes.write()


def _refuse(folder: Path, error: Exception) -> None:
    """Raise where an error is not the item's: the folder was taken over, or nothing can be written."""
    if not folder.is_dir():
        raise LostShardError(f"{folder.name} was taken over by another worker") from None
    trial = folder / "room.tmp"
    try:
        with trial.open("wb") as file:
            file.write(b"\0" * _ROOM)
        sync(trial)
    except OSError as no:
        raise UnableError(f"cannot write in {folder}: {no.strerror} ({_words(error)})") from None
    finally:
        with suppress(OSError):
            os.unlink(trial)


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, ManikinError) else f"{type(error).__name__}: {error}"
