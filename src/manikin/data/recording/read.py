"""Reads recorded episodes from finished, interrupted and partly damaged files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from manikin.data.recording.block import Block, blocks_of
from manikin.data.recording.format import (
    PER_STEP,
    Header,
    RecordedEpisode,
    differences,
    parts_folder,
    read_dropped,
    read_header,
)
from manikin.data.recording.outside import open_hdf5, reading
from manikin.errors import DataError

__all__ = ["EpisodeFile", "ranges", "read_episodes"]

_HANDLES = 64  # files open at a time
_WHERE = ("device", "machine", "versions")  # of a fingerprint: where it was recorded, and with what
_KEPT = ("first_seed", "keep", "states", "observations")  # of what was recorded: which episodes, and what of each


class EpisodeFile:
    """A recording, opened for reading. Episodes are loaded one at a time; iterate, or index by number.

    Args:
        path: the recording, for example ``run.h5``. An interrupted recording (only ``run.h5.parts`` exists) opens the
            same way.
        strict: raise for a damaged part. If false, list it in ``damaged`` and read the others.

    Attributes:
        header: what the episodes have in common. None before the first episode is finished.
        numbers: the numbers of the episodes, ascending.
        dropped: the numbers of the episodes that ``keep`` excluded.
        damaged: one sentence for each file, or block of a file, that cannot be read.

    Raises:
        DataError: the file is missing, is not a recording, is damaged, or has a newer format.
    """

    def __init__(self, path: str | Path, *, strict: bool = True) -> None:
        with reading(f"{str(path)[:200]} cannot be opened"):
            path, sources = _sources(Path(path))
        self.path = path
        self.header: Header | None = None
        self.damaged: list[str] = []
        self.dropped: set[int] = set()
        self._where: dict[int, tuple[Path, int, int]] = {}  # number: file, block, place in it
        self._open: dict[Path, tuple[Any, dict[int, Block]]] = {}
        self._strict = strict
        for source in sources:
            try:
                self._index(source)
            except DataError as error:
                self.damaged.append(str(error))
                if strict or (source == path == sources[-1] and not self._where):
                    self.close()
                    others = len(sources) - 1
                    rest = (
                        f". Move {source.name} to another folder to read the {others} other files of this recording; "
                        "--resume then runs its episodes again. In Python, strict=False skips damaged files"
                    )
                    raise DataError(f"{error}{rest if others else ''}") from None
        self.numbers = sorted(self._where)

    def _index(self, source: Path) -> None:
        file, blocks = self._file(source)
        header = read_header(file, source)
        if self.header is None:
            self.header = header
        elif different := differences(self.header, header):
            raise DataError(f"{source} was recorded differently from the rest of {self.path}: {'; '.join(different)}")
        numbers, counts = np.unique([n for block in blocks.values() for n in block.numbers], return_counts=True)
        if (counts > 1).any():
            raise DataError(f"{source} is damaged: it holds episode {numbers[counts > 1][0]} twice")
        for i, block in blocks.items():
            for k, number in enumerate(block.numbers):
                self._where.setdefault(number, (source, i, k))
        self.dropped |= read_dropped(file, source)

    def _file(self, source: Path) -> tuple[Any, dict[int, Block]]:
        """The open file and its blocks; a few at a time, so that ten thousand parts do not need as many handles."""
        if source not in self._open:
            while len(self._open) >= _HANDLES:
                self._open.pop(next(iter(self._open)))[0].close()
            file = open_hdf5(source)
            try:
                read_header(file, source)
                damaged: list[str] = []
                self._open[source] = (file, blocks_of(file, str(source), None if self._strict else damaged))
                self.damaged += [said for said in damaged if said not in self.damaged]
            except DataError:
                file.close()
                raise
        return self._open[source]

    def _block(self, number: int) -> tuple[Block, int]:
        if number not in self._where:
            raise DataError(f"{self.path} has no episode {number}; it has {ranges(self.numbers)}")
        source, block, k = self._where[number]
        return self._file(source)[1][block], k

    def needed_header(self) -> Header:
        """The header of a recording that has episodes to play.

        Raises:
            DataError: it has none; says why.
        """
        if self.header is None:
            raise DataError(f"{self.path} has no finished episode")
        if not self.numbers:
            gone = len(self.dropped)
            raise DataError(
                f"{self.path} has no episode{f': --keep has dropped all {gone}' if gone else ''}; record again, for "
                "example with --keep all"
            )
        return self.header

    def blocks(self) -> list[tuple[Block, list[int]]]:
        """The blocks and the places in them that hold this recording's episodes, for readers of whole arrays.

        Raises:
            DataError: an interrupted recording of very many parts, which cannot be open at a time.
        """
        sources = dict.fromkeys(source for source, _, _ in self._where.values())
        if len(sources) > _HANDLES:
            raise DataError(
                f"{self.path} is unfinished and in {len(sources)} parts; first run manikin collect again with "
                "--resume, which merges them"
            )
        places: dict[tuple[Path, int], list[int]] = {}
        for source, block, k in self._where.values():
            places.setdefault((source, block), []).append(k)
        return [(self._file(source)[1][block], sorted(ks)) for (source, block), ks in places.items()]

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, number: int) -> RecordedEpisode:
        """The episode of that number.

        Raises:
            DataError: there is none, or it is damaged (names the dataset).
        """
        block, k = self._block(number)
        return block.episode(k)

    def __iter__(self) -> Iterator[RecordedEpisode]:
        return (self[number] for number in self.numbers)

    def episode(self, number: int, *, observations: bool = True) -> RecordedEpisode:
        """Load one episode; ``observations=False`` leaves out what the policy was shown, pictures above all.

        Raises:
            DataError: there is none of that number, or naming what is damaged.
        """
        block, k = self._block(number)
        return block.episode(k, observations=observations)

    def shapes(self, number: int) -> dict[str, tuple[int, ...]]:
        """What there is of an episode: place in the block (``instants/observations/...``) -> shape."""
        block, k = self._block(number)
        spans = {name: block.span(name, k) for name in block.datasets}
        return {name: (span.stop - span.start, *(block.datasets[name].shape or ())[1:]) for name, span in spans.items()}

    def array(self, number: int, name: str, at: int) -> np.ndarray:
        """Row ``at`` of one array of an episode, without loading the others.

        Raises:
            DataError: no such episode, array or row, or it is damaged.
        """
        block, k = self._block(number)
        return block.row(name, k, at)

    def attributes(self, number: int) -> dict[str, Any]:
        """Seed, index, length, success and so on of one episode, without loading its arrays."""
        block, k = self._block(number)
        return block.attributes(k)

    def content_hash(self) -> str:
        """SHA-256 of what was recorded, 64 hex digits: the options of the environment, and of each episode its seed,
        actions, rewards, flags, the hashes of its states, and its observations.

        A copy has the same, and so has a recording that comes out alike elsewhere and at another time.

        Raises:
            DataError: there is no episode, or one is damaged.
        """
        header = self.needed_header()
        about = {
            "fingerprint": {key: value for key, value in header.fingerprint.items() if key not in _WHERE},
            "recorded": {key: value for key, value in header.recorded.items() if key not in _KEPT},
        }
        digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
        always = {*(f"steps/{name}" for name in PER_STEP), "instants/state_hash"}
        for number in self.numbers:
            block, k = self._block(number)
            digest.update(json.dumps([number, *(int(block.table[name][k]) for name in ("seed", "index"))]).encode())
            for name in sorted(block.datasets):
                if name in always or name.startswith("instants/observations/"):
                    values = block.read(name, block.span(name, k), f"episode {number}")
                    digest.update(f"{name} {values.dtype.str} {values.shape}".encode())
                    digest.update(np.ascontiguousarray(values).tobytes())
        return digest.hexdigest()

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1][0].close()

    def __enter__(self) -> EpisodeFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _sources(path: Path) -> tuple[Path, list[Path]]:
    """A recording's path without ``.parts``, and its files."""
    if path.name.endswith(".parts"):
        path = path.with_name(path.name.removesuffix(".parts"))
    parts = parts_folder(path)
    if not path.is_file() and not parts.is_dir():
        if (path / "meta" / "info.json").is_file():
            raise DataError(f"{path} is a LeRobot dataset, not a manikin recording; manikin view {path} shows it")
        what = f"{path} is a folder, not a recording" if path.is_dir() else f"there is no recording {path}"
        raise DataError(f"{what}, and no unfinished one in {parts.name}; give a file that manikin collect wrote")
    return path, ([path] if path.is_file() else []) + (sorted(parts.glob("*.h5")) if parts.is_dir() else [])


def read_episodes(path: str | Path, *, strict: bool = True) -> EpisodeFile:
    """Open a recording. See :class:`EpisodeFile`.

    Example:
        with read_episodes("run.h5") as episodes:
            for episode in episodes:
                print(episode.seed, len(episode), episode.success_once)
    """
    return EpisodeFile(path, strict=strict)


def ranges(numbers: list[int]) -> str:
    """``0-7, 9`` for [0, ..., 7, 9]."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and n == runs[-1][1] + 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return ", ".join(f"{a}-{b}" if b > a else str(a) for a, b in runs) or "none"
