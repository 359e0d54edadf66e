"""Making one recording of the parts that writers left beside it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from manikin.data.recording.block import WORDS, Block, blocks_of, chunk_of, keep_order, row_bytes, span_of, store
from manikin.data.recording.durable import sync, try_room
from manikin.data.recording.format import Header, differences, read_dropped, read_header, write_header
from manikin.data.recording.outside import open_hdf5
from manikin.data.recording.text import LIBVER, as_fixed, put_attribute
from manikin.errors import DataError

__all__ = ["merge_blocks", "merge_parts"]

_AT_ONCE = 1 << 24  # [bytes] read or written of a dataset in one go


def merge_parts(path: Path, parts: Path, header: Header, *, memory: int = 1 << 28) -> set[int]:
    """Make one file of a recording, if there is one, and of the parts of it. Who calls it is alone in the folder.

    Args:
        path: the recording.
        parts: the folder of its parts, which are removed.
        header: what all of them must have.
        memory: [bytes] of arrays that are held, so that files are opened once, which is most of the time.

    Returns:
        numbers of all episodes that were run, kept or not.

    Raises:
        DataError: they were recorded differently or are damaged, or there is no room. Every episode stays where it is.
    """
    pieces = sorted(parts.glob("*.h5"))
    sources = [*([path] if path.exists() else []), *pieces]
    dropped: set[int] = set()

    def check(file: Any, source: Path) -> None:
        if different := differences(header, read_header(file, source)):
            raise DataError(
                f"{source} and {path} were recorded differently and are not merged: {'; '.join(different)}; "
                "every episode stays where it is"
            )
        dropped.update(read_dropped(file, source))

    if not pieces:  # nothing was finished, or another process has merged it
        there: set[int] = set()
        for source in sources:
            with open_hdf5(source) as file:
                check(file, source)
                there.update(number for block in blocks_of(file, str(source)).values() for number in block.numbers)
        with suppress(OSError):  # it has begun again
            parts.rmdir()
        return there | dropped
    temporary = path.with_name(path.name + ".tmp")
    temporary.unlink(missing_ok=True)  # of a merge that was killed
    needed = sum(source.stat().st_size for source in sources)
    try:
        try_room(temporary, needed)
        with h5py.File(temporary, "w", libver=LIBVER) as target:
            write_header(target, header)
            there = merge_blocks(target, sources, check=check, memory=memory)
            if dropped:
                store(target, "dropped", np.array(sorted(dropped), np.int64))
        sync(temporary)
        os.replace(temporary, path)
    except OSError as error:
        free = shutil.disk_usage(path.parent).free
        raise DataError(
            f"cannot merge into {path}: {error}. {free / 1e6:.1f} MB are free, up to {needed / 1e6:.1f} MB are needed; "
            f"every episode is safe in {parts} and reads from there"
        ) from None
    finally:
        temporary.unlink(missing_ok=True)
    sync(path.parent)
    for source in pieces:
        source.unlink()
    with suppress(OSError):  # not empty: another process is still writing
        parts.rmdir()
    return there | dropped


def merge_blocks(
    target: Any,
    sources: Sequence[Path],
    *,
    check: Callable[[Any, Path], None] = lambda file, source: None,
    memory: int = 1 << 28,
) -> set[int]:
    """Write what the files hold into an open empty one, one block for each shape, file after file.

    An episode that lies in several files is taken from the first.

    Args:
        target: the open file.
        sources: files that hold blocks.
        check: called with each of them, open, before it is read.
        memory: as :func:`merge_parts`.

    Returns:
        numbers of the episodes written.

    Raises:
        DataError: a file is damaged.
    """
    plan = _Plan(memory)
    for source in sources:
        with open_hdf5(source) as file:
            check(file, source)
            plan.add(file, source)
    plan.write(target)
    return plan.numbers


@dataclass(frozen=True)
class _Piece:
    """Episodes of one block of one file."""

    source: Path
    block: int
    chosen: np.ndarray  # which of its episodes
    steps: np.ndarray  # where each of its episodes begins
    held: dict[str, list[np.ndarray]] | None  # their arrays; None to read them when they are written

    def arrays(self, names: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
        """Their arrays by name, some megabytes at a time."""
        if self.held is not None:
            yield from ((name, values) for name in names for values in self.held[name])
            return
        with open_hdf5(self.source, again=True) as file:
            yield from _read(blocks_of(file, str(self.source))[self.block], self.chosen, names)


class _Plan:
    """What files hold, on its way into one: a block for each shape, file after file.

    An episode that lies in several files is taken from the first.

    Attributes:
        numbers: of the episodes so far.
    """

    def __init__(self, memory: int) -> None:
        self.numbers: set[int] = set()
        self._pieces: dict[Any, list[_Piece]] = {}
        self._tables: dict[Any, list[dict[str, Any]]] = {}
        self._room = memory

    def add(self, file: Any, source: Path) -> None:
        """Note the episodes of an open file, and hold their arrays if there is room.

        Raises:
            DataError: the file is damaged.
        """
        for i, block in blocks_of(file, str(source)).items():
            new = np.array([k for k, number in enumerate(block.numbers) if number not in self.numbers], np.int64)
            self.numbers.update(block.numbers)
            if not len(new):
                continue
            alike = block.shape(), tuple(block.table)
            size = sum(int(data.nbytes) for data in block.datasets.values())  # uncompressed, as they are held
            if hold := size <= self._room:
                self._room -= size
            held: dict[str, list[np.ndarray]] | None = None
            if hold:
                held = {name: [] for name in block.datasets}
                for name, values in _read(block, new, list(held)):
                    held[name].append(values)
            self._pieces.setdefault(alike, []).append(_Piece(source, i, new, block.steps, held))
            self._tables.setdefault(alike, []).append({n: column[new] for n, column in block.table.items()})

    def write(self, target: Any) -> None:
        """Write all of it into an open empty file.

        Raises:
            DataError: a file is damaged.
        """
        for i, (alike, pieces) in enumerate(self._pieces.items()):
            shape, named = alike
            group = target.create_group(f"block_{i}")
            table = {name: np.concatenate([t[name] for t in self._tables[alike]]) for name in named}
            for name, column in table.items():
                store(group, f"episodes/{name}", as_fixed(column) if name in WORDS else column)
            episodes, steps = len(table["length"]), int(table["length"].sum())
            rows = {"steps": steps, "instants": steps + episodes, "initial": episodes}
            keep_order(group, (name for name, *_ in shape))
            for name, dtype, one, columns in shape:
                size = (rows[name.split("/", 1)[0]], *one)
                made = _create(group, name, size, np.dtype(dtype))
                if columns:
                    put_attribute(made, "columns", json.dumps(columns))
            _fill(group, pieces, [name for name, *_ in shape])


def _create(group: Any, name: str, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """A dataset with a checksum, which needs chunks, which need something to hold; large rows are compressed."""
    if 0 in shape:
        return group.create_dataset(name, shape, dtype)
    chunk = chunk_of(shape, dtype)
    squeeze = {"compression": "gzip", "compression_opts": 1, "shuffle": True} if row_bytes(shape, dtype) > 64 else {}
    return group.create_dataset(name, shape, dtype, chunks=chunk, fletcher32=True, **squeeze)


def _read(block: Block, chosen: np.ndarray, names: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
    """Arrays of some episodes of a block by name, some megabytes at a time; neighbours are read as one."""
    runs = np.split(chosen, np.flatnonzero(np.diff(chosen) != 1) + 1)
    for name in names:
        for run in runs:
            span = span_of(block.steps, name, int(run[0]), int(run[-1]))
            data = block.datasets[name]
            step = max(1, _AT_ONCE // row_bytes(data.shape, data.dtype))
            for first in range(span.start, span.stop, step):
                rows = slice(first, min(first + step, span.stop))
                yield name, block.read(name, rows, f"rows {rows.start} to {rows.stop}")


def _fill(target: Any, pieces: Sequence[_Piece], names: Sequence[str]) -> None:
    """Fill the datasets of a block with episodes of others, one behind the other, some megabytes at a time: a few rows
    more in a compressed chunk cost as much as the chunk."""
    waiting: dict[str, list[np.ndarray]] = {name: [] for name in names}
    at, size = dict.fromkeys(names, 0), dict.fromkeys(names, 0)

    def put(name: str) -> None:
        if waiting[name]:
            values = np.concatenate(waiting[name])
            target[name][at[name] : at[name] + len(values)] = values
            at[name] += len(values)
            waiting[name], size[name] = [], 0

    for piece in pieces:
        for name, values in piece.arrays(names):
            waiting[name].append(values)
            size[name] += values.nbytes
            if size[name] >= _AT_ONCE:
                put(name)
    for name in names:
        put(name)
