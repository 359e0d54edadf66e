"""Writing episodes so that a killed process loses at most those in flight. The scheme is explained in ``format.py``."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

import h5py
import numpy as np

from manikin.data.recording.block import by_shape, store, write_block
from manikin.data.recording.durable import alone, replace_file
from manikin.data.recording.format import (
    Header,
    RecordedEpisode,
    differences,
    parts_folder,
    read_header,
    write_header,
)
from manikin.data.recording.merge import merge_parts
from manikin.data.recording.outside import open_hdf5
from manikin.data.recording.read import EpisodeFile, ranges
from manikin.data.recording.text import LIBVER
from manikin.errors import DataError

__all__ = ["EpisodeWriter", "check_room", "join_parts"]


class EpisodeWriter:
    """Append episodes to a recording. Each is on disk, whole and synced, when :meth:`write` returns.

    Several processes may write different numbers to one recording, each with ``resume=True``.

    Args:
        path: the recording, for example ``run.h5``.
        header: what the episodes have in common.
        resume: continue a recording that exists (an interrupted one, or a finished one); otherwise it is an error.

    A file is made by the first episode that is written, kept or dropped; without one there is none. As a context
    manager it closes; after an error, what goes wrong then is a note of that error.

    Attributes:
        finished: numbers of the episodes that need not run again.
        dropped: those of them that are not kept.
        lost: numbers of those that were finished and whose files somebody removed, known once it is closed.

    Raises:
        DataError: the recording exists and ``resume`` is off, or it was made by another environment, or otherwise; or
            the folder cannot be written to.
    """

    def __init__(self, path: str | Path, header: Header, *, resume: bool = False) -> None:
        self.path = Path(path)
        self.header = header
        self._parts = parts_folder(self.path)
        self.finished: set[int] = set()
        self.dropped: set[int] = set()
        self.lost: set[int] = set()
        try:
            self._begin(resume)
        except OSError as error:
            raise DataError(f"cannot write {self.path}: {error}") from None
        if not self.header.created:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            self.header = dataclasses.replace(self.header, created=now)

    def _begin(self, resume: bool) -> None:
        """Make the folder of parts, and look at what there is already."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with alone(self.path.parent):  # while another process merges, parts are on their way
            exists = self.path.exists() or any(self._parts.glob("*.h5"))
            if exists and not resume:
                raise DataError(f"{self.path} exists; choose another name, or resume it")
            if exists:
                with EpisodeFile(self.path) as old:
                    if old.header is not None:
                        if different := differences(old.header, self.header):
                            said = "; ".join(different)
                            raise DataError(
                                f"{self.path} cannot be resumed with other settings: {said}. Repeat the first command "
                                "with --resume, or write to another file"
                            )
                        self.header = old.header
                    self.dropped = set(old.dropped)
                    self.finished = set(old.numbers) | self.dropped
            self._parts.mkdir(exist_ok=True)

    def write(self, *episodes: RecordedEpisode, dropped: Sequence[int] = ()) -> None:
        """Make finished episodes durable (a few milliseconds, however many).

        Args:
            episodes: whole ones, with numbers that are not taken.
            dropped: numbers of episodes that were run and are not kept, so that a resumed run leaves them out.

        Raises:
            DataError: a number is taken, arrays differ in length, or the disk is full.
        """
        numbers = [*(e.number for e in episodes), *dropped]
        for number in numbers:
            if number in self.finished:
                raise DataError(f"{self.path} already has episode {number}")
        if not numbers:
            return
        # made in memory: no HDF5 file is ever open for writing on disk
        with h5py.File(f"{numbers[0]}.h5", "w", driver="core", backing_store=False, libver=LIBVER) as file:
            write_header(file, self.header)
            for i, group in enumerate(by_shape(episodes)):
                write_block(file.create_group(f"block_{i}"), group)
            if dropped:
                store(file, "dropped", np.asarray(dropped, np.int64))
            file.flush()
            image = file.id.get_file_image()
        try:
            with alone(self.path.parent):
                self._parts.mkdir(exist_ok=True)  # another process may have merged and removed it
                replace_file(self._parts / f"{min(numbers):06d}.h5", image)
        except OSError as error:
            safe = "; what was written before it is safe" if self.path.parent.is_dir() else ": its folder is gone"
            raise DataError(f"cannot write {self.path}: {error}{safe}") from None
        self.finished.update(numbers)
        self.dropped.update(dropped)

    def close(self, *, merge: bool = True) -> None:
        """Merge the parts into one file. ``merge=False`` leaves them, which the reader takes as well.

        Raises:
            DataError: there is no room, or the parts cannot be read; or finished episodes are not there any more, which
                somebody removed: the others are merged, and ``lost`` says which.
        """
        if not merge:
            return
        there: set[int] = set()
        if self.path.parent.is_dir():
            with alone(self.path.parent):
                there = merge_parts(self.path, self._parts, self.header)
        if lost := self.finished - there:
            self.lost |= lost
            self.finished -= lost
            self.dropped -= lost
            raise DataError(
                f"{self.path} lacks {len(lost)} of {len(lost) + len(self.finished)} finished episodes "
                f"({ranges(sorted(lost))}): something has removed their files. --resume runs them again"
            )

    def __enter__(self) -> EpisodeWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except DataError as error:
            if value is None:
                raise
            value.add_note(str(error))


def join_parts(path: str | Path) -> bool:
    """Make one file of the parts that writers left beside a recording; whether there is a recording now.

    It reads each part once less than a writer that resumes the recording and closes.

    Raises:
        DataError: they were recorded differently or are damaged, or there is no room. Every episode stays where it is.
    """
    path = Path(path)
    parts = parts_folder(path)
    if not parts.is_dir():
        return path.exists()
    with alone(path.parent):
        first = path if path.exists() else min(parts.glob("*.h5"), default=None)
        if first is None:
            return False
        with open_hdf5(first) as file:
            header = read_header(file, first)
        merge_parts(path, parts, header)
    return True


def check_room(path: Path, needed: int) -> None:
    """Refuse what the disk has no room for.

    Raises:
        DataError: less than ``needed`` bytes are free where ``path`` will be; says how many there are.
    """
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise DataError(
            f"{path} may need {needed / 1e9:.2f} GB while it is written, and {free / 1e9:.2f} GB are free on its disk; "
            "record fewer episodes or less of each (no observations, no states), or write to another disk"
        )
