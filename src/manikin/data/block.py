"""Episodes of one shape as a few large arrays in an HDF5 group; the layout is described in ``format.py``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from manikin.data.format import PER_STEP, TABLES, Episode, check_lengths, is_per_step
from manikin.errors import DataError

__all__ = ["Block", "blocks_of", "by_shape", "merge_blocks", "write_block"]

_NUMBERS = {"number": np.int64, "seed": np.int64, "index": np.int64, "length": np.int64, "health": np.int64}
_VERDICTS = {"success_once": np.bool_, "success_at_end": np.bool_, "return": np.float64}
_FORCES = ("force_sum", "force_peak")  # of the total, where forces were recorded
_WORDS = ("options", "instruction", "mode")
_TEXT = h5py.string_dtype()
_CHUNK = 1 << 14  # [bytes] of a chunk at most: what one flipped bit makes unreadable
_AT_ONCE = 1 << 24  # [bytes] read or written of a dataset in one go
_DAMAGE = (OSError, KeyError, RuntimeError, ValueError, TypeError)


def by_shape(episodes: Iterable[Episode]) -> list[list[Episode]]:
    """The episodes in groups that can share a block: the same arrays with the same shapes and types."""
    groups: dict[Any, list[Episode]] = {}
    for episode in episodes:
        groups.setdefault(_shape(episode), []).append(episode)
    return list(groups.values())


def _shape(episode: Episode) -> tuple[Any, ...]:
    arrays = _arrays(episode)
    shapes = tuple(
        (name, value.dtype.str, value.shape if name.startswith("initial/") else value.shape[1:])
        for name, value in sorted(arrays.items())
    )
    return shapes, tuple(tuple(getattr(episode, name)) for name in TABLES)


def _arrays(episode: Episode) -> dict[str, np.ndarray]:
    """Everything of an episode but the row of the table, by its place in the block.

    Raises:
        DataError: arrays of different lengths.
    """
    values: dict[str, np.ndarray] = {k: np.asarray(getattr(episode, k), dtype=t) for k, t in PER_STEP.items()}
    values["state_hash"] = np.asarray(episode.state_hash, dtype=np.int64)
    if episode.states is not None:
        values["states"] = np.asarray(episode.states, dtype=np.float64)
    for name, value in (episode.observations or {}).items():
        values[f"observations/{name}"] = np.asarray(value)
    values |= {f"flags/{name}": np.asarray(value) for name, value in episode.flags.items()}
    where = f"episode {episode.number}"
    for name in TABLES:
        columns = {
            f"{name}/{column}": np.asarray(value, np.float32) for column, value in getattr(episode, name).items()
        }
        check_lengths(columns, len(episode), where)
        if columns:
            values[name] = np.stack(list(columns.values()), 1)
    check_lengths(values, len(episode), where)
    placed = {f"{'steps' if is_per_step(name) else 'instants'}/{name}": value for name, value in values.items()}
    return placed | {f"initial/{name}": np.asarray(value) for name, value in episode.initial.items()}


def _table(episodes: Sequence[Episode]) -> dict[str, Any]:
    """Columns of the table of episodes."""
    table: dict[str, Any] = {
        "number": [e.number for e in episodes],
        "seed": [e.seed for e in episodes],
        "index": [e.index for e in episodes],
        "length": [len(e) for e in episodes],
        "health": [e.health for e in episodes],
        "success_once": [e.success_once for e in episodes],
        "success_at_end": [e.success_at_end for e in episodes],
        "return": [e.return_ for e in episodes],
        "instruction": [e.instruction for e in episodes],
        "mode": [e.mode for e in episodes],
    }
    if episodes[0].forces:
        total = next(iter(episodes[0].forces))
        traces = [np.asarray(e.forces[total], np.float64) for e in episodes]
        table["force_sum"] = [trace.sum() for trace in traces]
        table["force_peak"] = [trace.max(initial=0.0) for trace in traces]
    try:
        table["options"] = [json.dumps(dict(e.options), sort_keys=True) for e in episodes]
    except TypeError as error:
        raise DataError(f"reset options must be plain values: {error}") from None
    types = {**_NUMBERS, **_VERDICTS, **dict.fromkeys(_FORCES, np.float64)}
    return {f"episodes/{k}": np.asarray(v, types[k]) if k in types else v for k, v in table.items()}


def write_block(group: Any, episodes: Sequence[Episode]) -> None:
    """Write episodes of one shape into an empty group, uncompressed.

    Raises:
        DataError: arrays of different lengths, or reset options that are not plain values.
    """
    every = [_arrays(e) for e in episodes]
    joined: dict[str, Any] = _table(episodes)
    for name in every[0]:
        parts = [arrays[name] for arrays in every]
        joined[name] = np.stack(parts) if name.startswith("initial/") else np.concatenate(parts)
    for name, value in joined.items():
        if isinstance(value, np.ndarray):
            _store(group, name, value)
        else:
            group.create_dataset(name, data=value, dtype=_TEXT)
    for name, place in TABLES.items():
        if columns := list(getattr(episodes[0], name)):
            group[f"{place}/{name}"].attrs["columns"] = json.dumps(columns)


def _store(group: Any, name: str, value: np.ndarray) -> None:
    """Write an array, not compressed, by HDF5's own calls: h5py's conveniences take longer than small arrays do."""
    parents, layout = h5py.h5p.create(h5py.h5p.LINK_CREATE), h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    parents.set_create_intermediate_group(True)
    if 0 not in value.shape:
        layout.set_chunk(_chunk(value.shape, value.dtype))
        layout.set_fletcher32()
    kind, space = h5py.h5t.py_create(value.dtype, logical=True), h5py.h5s.create_simple(value.shape)
    made = h5py.h5d.create(group.id, name.encode(), kind, space, layout, parents)
    made.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(value))


def _create(group: Any, name: str, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """A dataset with a checksum, which needs chunks, which need something to hold; large rows are compressed."""
    if 0 in shape:
        return group.create_dataset(name, shape, dtype)
    chunk = _chunk(shape, dtype)
    squeeze = {"compression": "gzip", "compression_opts": 1, "shuffle": True} if _row(shape, dtype) > 64 else {}
    return group.create_dataset(name, shape, dtype, chunks=chunk, fletcher32=True, **squeeze)


def _row(shape: tuple[int, ...], dtype: np.dtype) -> int:
    """[bytes], at least 1."""
    return max(1, dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64)))


def _chunk(shape: tuple[int, ...], dtype: np.dtype) -> tuple[int, ...]:
    return max(1, min(shape[0], _CHUNK // _row(shape, dtype))), *shape[1:]


class Block:
    """A block opened for reading: the table of its episodes, and each episode on request.

    Args:
        group: an open HDF5 group.
        where: how errors call it.

    Raises:
        DataError: its table cannot be read.
    """

    def __init__(self, group: Any, where: str) -> None:
        self.group, self.where = group, where
        try:
            table = group["episodes"]
            self.table: dict[str, Any] = {name: table[name][()] for name in (*_NUMBERS, *_VERDICTS)}
            self.table |= {name: table[name].asstr()[()] for name in _WORDS}
            self.table |= {name: table[name][()] for name in _FORCES if name in table}
        except _DAMAGE as error:
            raise DataError(f"{where} is damaged: its table of episodes cannot be read ({error})") from None
        self.steps = np.concatenate([[0], np.cumsum(self.table["length"])])

    def __len__(self) -> int:
        return len(self.table["number"])

    @property
    def numbers(self) -> list[int]:
        return [int(n) for n in self.table["number"]]

    def attributes(self, k: int) -> dict[str, Any]:
        """One row of the table."""
        return {name: column[k] for name, column in self.table.items()}

    @cached_property
    def datasets(self) -> dict[str, Any]:
        """The large arrays by name, without the table."""
        found: dict[str, Any] = {}

        def visit(group: Any, path: str) -> None:
            for name, item in group.items():
                if hasattr(item, "shape"):
                    found[path + name] = item
                elif path + name != "episodes":
                    visit(item, f"{path}{name}/")

        visit(self.group, "")
        return found

    def span(self, name: str, k: int) -> slice:
        """The rows of a dataset that belong to the k-th episode."""
        return _span(self.steps, name, k, k)

    def columns(self, name: str) -> tuple[str, ...]:
        """Names of the columns of a dataset that has such; empty for others."""
        return tuple(json.loads(self.datasets[name].attrs.get("columns", "[]")))

    def row(self, name: str, k: int, at: int) -> np.ndarray:
        """Row ``at`` of one array of the k-th episode."""
        where = f"{self.where}: episode {self.table['number'][k]}"
        if name not in self.datasets:
            raise DataError(f"{where} has no {name}")
        span = self.span(name, k)
        if not 0 <= at < span.stop - span.start:
            raise DataError(f"{where} has no row {at} of {name}; there are {span.stop - span.start}")
        try:
            return np.asarray(self.datasets[name][span.start + at])
        except _DAMAGE as error:
            raise DataError(f"{where}, {name} is damaged: {error}") from None

    def episode(self, k: int, *, observations: bool = True) -> Episode:
        """The k-th episode, with or without ``observations``.

        Raises:
            DataError: naming the episode and the dataset that is missing or damaged.
        """
        row, part = self.attributes(k), "list of arrays"
        where = f"{self.where} is damaged: episode {row['number']}"
        tree: dict[str, dict[str, np.ndarray]] = {"steps": {}, "instants": {}, "initial": {}}
        try:
            for part, data in self.datasets.items():
                if part.startswith("instants/observations/") and not observations:
                    continue
                kind, name = part.split("/", 1)
                values = data[self.span(part, k)]
                tree[kind][name] = values[0] if kind == "initial" else values
            tables: dict[str, Any] = {name: {} for name in TABLES}
            for name, kind in TABLES.items():
                part = f"{kind}/{name}"
                if name in tree[kind]:
                    tables[name] = dict(zip(self.columns(part), tree[kind][name].T, strict=True))
            part = "options"
            options = json.loads(row["options"])
            steps, instants = tree["steps"], tree["instants"]
            part = next((name for name in PER_STEP if name not in steps), "state_hash")
            required: dict[str, Any] = {name: steps[name] for name in PER_STEP} | {"state_hash": instants["state_hash"]}
        except _DAMAGE as error:
            raise DataError(f"{where}, {part}: {error}") from None
        check_lengths(steps | instants, int(row["length"]), where)

        def under(prefix: str, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            return {name.removeprefix(prefix): v for name, v in values.items() if name.startswith(prefix)}

        return Episode(
            number=int(row["number"]),
            seed=int(row["seed"]),
            index=int(row["index"]),
            options=options,
            instruction=str(row["instruction"]),
            health=int(row["health"]),
            mode=str(row["mode"]),
            flags=under("flags/", steps),
            initial=tree["initial"],
            states=instants.get("states"),
            observations=under("observations/", instants) or None,
            **required,
            **tables,
        )

    def shape(self) -> tuple[Any, ...]:
        """What two blocks must share to become one."""
        return tuple((name, d.dtype.str, d.shape[1:], self.columns(name)) for name, d in sorted(self.datasets.items()))


def _span(steps: np.ndarray, name: str, first: int, last: int) -> slice:
    """The rows of a dataset that belong to neighbouring episodes; ``steps`` is where each begins and the last ends."""
    start, stop = int(steps[first]), int(steps[last + 1])
    if name.startswith("steps/"):
        return slice(start, stop)
    return slice(first, last + 1) if name.startswith("initial/") else slice(start + first, stop + last + 1)


def blocks_of(file: Any, where: str) -> list[Block]:
    """The blocks of an open HDF5 file, in their order."""
    try:
        names = sorted((name for name in file if name.startswith("block_")), key=lambda name: int(name[6:]))
    except _DAMAGE as error:
        raise DataError(f"{where} is damaged: its list of blocks cannot be read ({error})") from None
    return [Block(file[name], where) for name in names]


def merge_blocks(target: Any, sources: Sequence[Path]) -> None:
    """Write what the files hold into an open empty one, one block for each shape, file after file.

    An episode that lies in several files is taken from the first.
    """
    seen: set[int] = set()
    # shape: (file, block, which of its episodes, where they begin)
    plan: dict[Any, list[tuple[Path, int, np.ndarray, np.ndarray]]] = {}
    tables: dict[Any, list[dict[str, Any]]] = {}
    for source in sources:
        with h5py.File(source, "r") as file:
            for i, block in enumerate(blocks_of(file, str(source))):
                new = np.array([k for k, number in enumerate(block.numbers) if number not in seen], np.int64)
                seen.update(block.numbers)
                if len(new):
                    shape = block.shape()
                    plan.setdefault(shape, []).append((source, i, new, block.steps))
                    tables.setdefault(shape, []).append({n: column[new] for n, column in block.table.items()})
    for i, (shape, pieces) in enumerate(plan.items()):
        group = target.create_group(f"block_{i}")
        table = {name: np.concatenate([t[name] for t in tables[shape]]) for name in tables[shape][0]}
        for name, column in table.items():
            if name in _WORDS:
                group.create_dataset(f"episodes/{name}", data=column, dtype=_TEXT)
            else:
                _store(group, f"episodes/{name}", column)
        episodes, steps = len(table["length"]), int(table["length"].sum())
        rows = {"steps": steps, "instants": steps + episodes, "initial": episodes}
        for name, dtype, one, columns in shape:
            size = (rows[name.split("/", 1)[0]], *one)
            made = _create(group, name, size, np.dtype(dtype))
            if columns:
                made.attrs["columns"] = json.dumps(columns)
        _copy(group, pieces, [name for name, *_ in shape])


def _copy(target: Any, pieces: Sequence[tuple[Path, int, np.ndarray, np.ndarray]], names: Sequence[str]) -> None:
    """Fill the datasets of a block with episodes of others, one behind the other, some megabytes at a time: a few rows
    more in a compressed chunk cost as much as the chunk."""
    waiting: dict[str, list[np.ndarray]] = {name: [] for name in names}
    at, size = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    at_once = {name: max(1, _AT_ONCE // _row(target[name].shape, target[name].dtype)) for name in names}

    def put(name: str) -> None:
        if waiting[name]:
            values = np.concatenate(waiting[name])
            target[name][at[name] : at[name] + len(values)] = values
            at[name] += len(values)
            waiting[name], size[name] = [], 0

    for source, number, chosen, steps in pieces:
        with h5py.File(source, "r") as file:
            group = file[f"block_{number}"]
            runs = np.split(chosen, np.flatnonzero(np.diff(chosen) != 1) + 1)  # neighbours are read as one
            for name in names:
                data = group[name]
                for run in runs:
                    span = _span(steps, name, int(run[0]), int(run[-1]))
                    for first in range(span.start, span.stop, at_once[name]):
                        waiting[name].append(data[first : min(first + at_once[name], span.stop)])
                        size[name] += waiting[name][-1].nbytes
                        if size[name] >= _AT_ONCE:
                            put(name)
    for name in names:
        put(name)
