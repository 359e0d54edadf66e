"""The folder of a run that is spread over workers: what is to be done, what is being done, and what is finished.

    plan.json                   shards, settings, kind of machine; written once, whole
    work/000007.1f0c.../        an attempt at shard 7
    done/000007/manifest.json   shard 7 is finished: its files with their hashes, who made them, which items failed

A folder's name changes in one step. An attempt that another worker takes over is renamed: what the first one still
writes finds no folder. A finished attempt is renamed into ``done``: it is there as a whole or not at all, and once.
So nobody needs to be asked who does what, and any process that sees the folder can go on.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from manikin.data.recording.durable import alone, sync, write_file
from manikin.data.recording.outside import read_json
from manikin.errors import DataError
from manikin.spread.shards import Shard, runs_of

__all__ = ["Intent", "Ledger", "Manifest"]

_FORMAT = 2
_MANIFEST = "manifest.json"


@dataclass(frozen=True, kw_only=True)
class Intent:
    """What a run is to do.

    Attributes:
        work: ``module:Class`` of a :class:`~manikin.spread.work.Work`.
        settings: that it is opened with, plain values.
        same: what must be the same where the run is gone on with, plain values; of the settings those that decide what
            comes out.
        shards: all of them.
        machine: kind that all of it is to be done on, as :func:`~manikin.machine.exact_machine` has it.
    """

    work: str
    settings: Mapping[str, Any]
    same: Mapping[str, Any]
    shards: tuple[Shard, ...]
    machine: Mapping[str, Any]

    @property
    def plain(self) -> dict[str, Any]:
        """For a file."""
        shards = [runs_of(shard.numbers) for shard in self.shards]
        told = {"work": self.work, "settings": self.settings, "same": self.same, "machine": self.machine}
        plain: dict[str, Any] = json.loads(json.dumps({"format": _FORMAT, **told, "shards": shards}))
        return plain


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What is said of a finished shard.

    Attributes:
        shard: its index.
        facts: what the work says of it, plain values; ``content`` is the hash of what came out.
        failed: items that could not be done: number, what it is ("episode 12, seed 12") and the error.
        seconds: that the last attempt took. processor_seconds: of the worker's processor time.
        began: how many attempts there were.
        host: name of the machine of the last one.
        files: name -> bytes and SHA-256.
    """

    shard: int
    facts: Mapping[str, Any]
    failed: tuple[Mapping[str, Any], ...] = ()
    seconds: float = 0.0
    processor_seconds: float = 0.0
    began: int = 1
    host: str = ""
    files: Mapping[str, Any] = field(default_factory=dict)


class Ledger:
    """The folder of a run.

    Args:
        folder: it, with a plan; on storage that all workers see.

    Raises:
        DataError: there is no plan, or it cannot be read.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).absolute()
        plain = read_json(self.folder / "plan.json", f"{self.folder} is not the folder of a run that was spread")
        if plain.get("format") != _FORMAT:
            raise DataError(f"{self.folder} has format {plain.get('format')}; this manikin reads {_FORMAT}")
        shards = [
            Shard(index, tuple(n for first, last in runs for n in range(first, last + 1)))
            for index, runs in enumerate(plain["shards"])
        ]
        told = {name: plain[name] for name in ("work", "settings", "same", "machine")}
        self.intent = Intent(shards=tuple(shards), **told)

    @classmethod
    def begin(cls, folder: str | Path, intent: Intent, *, resume: bool = False) -> Ledger:
        """Write a plan, or go on with the one that is there, whose shards then hold.

        Raises:
            DataError: there is a plan and ``resume`` is off, or it is of another run; or it cannot be written.
        """
        folder = Path(folder).absolute()
        fresh = folder.with_name(f"{folder.name}.{uuid.uuid4().hex}")
        if not (folder / "plan.json").exists():
            try:
                write_file(fresh / "plan.json", json.dumps(intent.plain).encode())
                for part in ("work", "done", "log"):
                    (fresh / part).mkdir()
                with suppress(OSError):  # another process was first: its plan holds
                    os.rename(fresh, folder)
                    resume = True
            except OSError as error:
                raise DataError(f"cannot write {folder}: {error.strerror}") from None
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
        ledger = cls(folder)
        if not resume:
            raise DataError(
                f"{folder} holds an unfinished run: {len(ledger.left())} of {len(ledger.intent.shards)} shards are "
                "left. Repeat the first command with --resume, or remove the folder"
            )
        then, now = ledger.intent.plain, intent.plain
        if then["work"] != now["work"] or then["same"] != now["same"]:
            keys = sorted({*then["same"], *now["same"]})
            said = [
                f"{key}: {then['same'].get(key)!r} there, {now['same'].get(key)!r} here"
                for key in keys
                if then["same"].get(key) != now["same"].get(key)
            ]
            raise DataError(
                f"{folder} is of another run: {'; '.join(said) or then['work']}. Repeat the first command with "
                "--resume, or write to another place"
            )
        return ledger

    # what a worker does

    def claim(self, shard: Shard) -> Path:
        """A folder for an attempt at a shard. What an earlier attempt left is in it, and is not any more where it was:
        a worker that is still at it can write nothing."""
        place = self.folder / "work"
        mine = place / f"{shard.name}.{uuid.uuid4().hex}"
        for earlier in sorted(place.glob(f"{shard.name}.*")):
            try:
                os.rename(earlier, mine)
            except OSError:  # somebody else took it over
                continue
            for half in mine.glob("*.tmp"):  # of a process that was killed while it wrote
                half.unlink(missing_ok=True)
            return mine
        mine.mkdir(parents=True)
        return mine

    def finish(self, shard: Shard, attempt: Path, manifest: Manifest) -> None:
        """An attempt is complete: from now on the shard is done.

        Raises:
            DataError: another attempt was complete before, and something else came out of it; or it cannot be written.
        """
        # one that was killed a moment before its end has left its manifest
        files = {p.name: _stamp(p) for p in sorted(attempt.iterdir()) if p.is_file() and p.name != _MANIFEST}
        told = {**vars(manifest), "files": files}
        write_file(attempt / _MANIFEST, json.dumps(told).encode())
        for name in files:
            sync(attempt / name)
        done = self.folder / "done" / shard.name
        try:
            os.rename(attempt, done)
        except OSError as error:
            if not (done / _MANIFEST).is_file():
                raise DataError(f"cannot finish {done}: {error.strerror}") from None
            first = self.manifest(shard)
            if first is not None and first.facts.get("content") != manifest.facts.get("content"):
                raise DataError(
                    f"shard {shard.index} came out differently on {first.host} and {manifest.host}: what it computes "
                    "is no function of its numbers"
                ) from None
            shutil.rmtree(attempt, ignore_errors=True)
            return
        sync(done.parent)

    # what who hands out and who merges does

    def manifest(self, shard: Shard) -> Manifest | None:
        """What is said of a shard; None while it is not finished."""
        path = self.folder / "done" / shard.name / _MANIFEST
        if not path.is_file():
            return None
        plain = read_json(path, f"{path} cannot be read")
        return Manifest(**{**plain, "failed": tuple(plain["failed"])})

    def left(self) -> list[Shard]:
        """Shards that are not finished, in order."""
        there = {path.parent.name for path in (self.folder / "done").glob(f"*/{_MANIFEST}")}
        return [shard for shard in self.intent.shards if shard.name not in there]

    def manifests(self) -> list[Manifest]:
        """Of the shards that are finished, in order."""
        return [found for shard in self.intent.shards if (found := self.manifest(shard)) is not None]

    def results(self) -> Iterator[tuple[Manifest, Path]]:
        """The finished shards in order, and where their files lie, whose hashes are compared before.

        Raises:
            DataError: a file is not what the manifest says. The shard is set back, so that ``--resume`` does it again.
        """
        for manifest in self.manifests():
            shard = self.intent.shards[manifest.shard]
            folder = self.folder / "done" / shard.name
            for name, stamp in manifest.files.items():
                if not (folder / name).is_file() or _stamp(folder / name) != stamp:
                    os.rename(folder, self.folder / f"damaged-{shard.name}.{uuid.uuid4().hex}")
                    raise DataError(f"{folder / name} was changed or damaged; --resume does its shard again")
            yield manifest, folder

    def retry(self) -> None:
        """Set back the shards of which items failed, so that these are tried again. What went well is kept."""
        for manifest in self.manifests():
            if manifest.failed:
                shard = self.intent.shards[manifest.shard]
                folder = self.folder / "work" / f"{shard.name}.{uuid.uuid4().hex}"
                os.rename(self.folder / "done" / shard.name, folder)
                for name in (_MANIFEST, "attempts.json"):
                    (folder / name).unlink(missing_ok=True)

    @property
    def failed(self) -> list[Mapping[str, Any]]:
        """Items that could not be done, in order."""
        return [item for manifest in self.manifests() for item in manifest.failed]

    @cached_property
    def logs(self) -> Path:
        """Folder of what the workers print."""
        return self.folder / "log"

    @contextmanager
    def merging(self) -> Iterator[bool]:
        """One process at a time: whether there is still something to merge. Afterwards all of it is removed, unless
        something failed that may be tried again."""
        if not self.folder.is_dir():
            yield False
            return
        with alone(self.folder):
            there = (self.folder / "plan.json").is_file()
            yield there
            if there and not self.failed:
                (self.folder / "plan.json").unlink(missing_ok=True)  # first: without it there is no run
                shutil.rmtree(self.folder, ignore_errors=True)


def _stamp(path: Path) -> list[Any]:
    """Bytes of a file, and their SHA-256."""
    with path.open("rb") as file:
        return [path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()]
