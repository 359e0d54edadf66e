"""Episodes of one shape as a few large arrays in an HDF5 group; the layout is described in ``format.py``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import h5py
import numpy as np

from manikin.data.recording.format import PER_STEP, TABLES, RecordedEpisode, check_lengths, is_per_step
from manikin.data.recording.outside import reading
from manikin.data.recording.text import as_fixed, attribute, put_attribute
from manikin.errors import DataError
from manikin.moved import old_names

__all__ = [
    "WORDS",
    "Block",
    "blocks_of",
    "by_shape",
    "chunk_of",
    "keep_order",
    "row_bytes",
    "span_of",
    "store",
    "table_of",
    "write_block",
]

WORDS = ("options", "instruction", "mode")  # columns of the table of episodes that are text
_NUMBERS = {"number": np.int64, "seed": np.int64, "index": np.int64, "length": np.int64, "health": np.int64}
_VERDICTS = {"success_once": np.bool_, "success_at_end": np.bool_, "return": np.float64}
_FORCES = ("force_sum", "force_peak")  # of the total, where forces were recorded
# dataset -> type and number of dimensions of what always has the same
_FORMS: dict[str, tuple[np.dtype, int]] = {
    **{f"steps/{name}": (np.dtype(kind), 1) for name, kind in PER_STEP.items()},
    "steps/actions": (np.dtype(np.float32), 2),
    "instants/state_hash": (np.dtype(np.int64), 1),
    "instants/states": (np.dtype(np.float64), 2),
    **{f"{place}/{name}": (np.dtype(np.float32), 2) for name, place in TABLES.items()},
}
_CHUNK = 1 << 14  # [bytes] of a chunk at most: what one flipped bit makes unreadable


def by_shape(episodes: Iterable[RecordedEpisode]) -> list[list[RecordedEpisode]]:
    """The episodes in groups that can share a block: the same arrays with the same shapes and types."""
    groups: dict[Any, list[RecordedEpisode]] = {}
    for episode in episodes:
        groups.setdefault(_shape(episode), []).append(episode)
    return list(groups.values())


def _shape(episode: RecordedEpisode) -> tuple[Any, ...]:
    arrays = _arrays(episode)
    shapes = tuple(
        (name, value.dtype.str, value.shape if name.startswith("initial/") else value.shape[1:])
        for name, value in arrays.items()
    )
    return shapes, tuple(tuple(getattr(episode, name)) for name in TABLES)


def _arrays(episode: RecordedEpisode) -> dict[str, np.ndarray]:
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


def table_of(episodes: Sequence[RecordedEpisode]) -> dict[str, Any]:
    """Columns of the table of episodes of one shape, each as long as there are episodes.

    Raises:
        DataError: reset options that are not plain values.
    """
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
    return {k: np.asarray(v, types[k]) if k in types else v for k, v in table.items()}


def write_block(group: Any, episodes: Sequence[RecordedEpisode]) -> None:
    """Write episodes of one shape into an empty group, uncompressed.

    Raises:
        DataError: arrays of different lengths, or reset options that are not plain values.
    """
    every = [_arrays(e) for e in episodes]
    joined: dict[str, Any] = {f"episodes/{name}": column for name, column in table_of(episodes).items()}
    for name in every[0]:
        parts = [arrays[name] for arrays in every]
        joined[name] = np.stack(parts) if name.startswith("initial/") else np.concatenate(parts)
    keep_order(group, joined)
    for name, value in joined.items():
        store(group, name, value if isinstance(value, np.ndarray) else as_fixed(value))
    for name, place in TABLES.items():
        if columns := list(getattr(episodes[0], name)):
            put_attribute(group[f"{place}/{name}"], "columns", json.dumps(columns))


def keep_order(group: Any, names: Iterable[str]) -> None:
    """Make the groups of these observations; they keep the order of what is made in them, which HDF5 by itself does
    not: it is the order of the numbers that a policy is shown."""
    for name in names:
        if name.startswith("instants/observations/"):
            at = group
            for part in name.split("/")[:-1]:
                at = at[part] if part in at else at.create_group(part, track_order=True)


def store(group: Any, name: str, value: np.ndarray) -> None:
    """Write an array, not compressed, by HDF5's own calls: h5py's conveniences take longer than small arrays do."""
    parents, layout = h5py.h5p.create(h5py.h5p.LINK_CREATE), h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    parents.set_create_intermediate_group(True)
    if 0 not in value.shape:
        layout.set_chunk(chunk_of(value.shape, value.dtype))
        layout.set_fletcher32()
    kind, space = h5py.h5t.py_create(value.dtype, logical=True), h5py.h5s.create_simple(value.shape)
    made = h5py.h5d.create(group.id, name.encode(), kind, space, layout, parents)
    made.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(value))


def row_bytes(shape: tuple[int, ...], dtype: np.dtype) -> int:
    """[bytes], at least 1."""
    return max(1, dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64)))


def chunk_of(shape: tuple[int, ...], dtype: np.dtype) -> tuple[int, ...]:
    """The shape of the chunks of a dataset, rows of it that are together at most 16 KiB."""
    return max(1, min(shape[0], _CHUNK // row_bytes(shape, dtype))), *shape[1:]


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
        with reading(f"{where} is damaged: its table of episodes cannot be read"):
            table = group["episodes"]
            self.table: dict[str, Any] = {n: _column(table, n, t) for n, t in {**_NUMBERS, **_VERDICTS}.items()}
            self.table |= {name: table[name].asstr()[()] for name in WORDS}
            self.table |= {name: _column(table, name, np.float64) for name in _FORCES if name in table}
            for name, column in self.table.items():
                if np.shape(column) != self.table["number"].shape:
                    raise ValueError(f"{name} has shape {np.shape(column)}, number {self.table['number'].shape}")
            if len(set(self.numbers)) < len(self) or min(self.numbers, default=0) < 0:
                raise ValueError("a number is negative, or there twice")
            if self.table["length"].min(initial=0) < 0 or self.table["length"].sum(dtype=np.float64) > 2**53:
                raise ValueError("a length is negative, or all together are beyond any file")
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
        """The large arrays by name, without the table; observations in the order in which they were given."""
        found: dict[str, Any] = {}

        def visit(group: Any, path: str) -> None:
            for name, item in group.items():
                if hasattr(item, "shape"):
                    found[path + name] = item
                else:
                    visit(item, f"{path}{name}/")

        with reading(f"{self.where} is damaged: its list of arrays cannot be read"):
            for kind in ("initial", "instants", "steps"):
                visit(self.group.get(kind, {}), f"{kind}/")
        return found

    def read(self, name: str, rows: slice, whose: str) -> np.ndarray:
        """Rows of a dataset; ``whose`` they are is for errors.

        Raises:
            DataError: there is none of that name, it is damaged, holds something else, or fewer rows.
        """
        with reading(f"{self.where} is damaged: {whose}, {name}"):
            data = self.datasets[name]
            dtype = _checked_form(name, data)
            if rows.stop > len(data):
                raise ValueError(f"its shape is {data.shape}, but at least {rows.stop} rows are needed")
            return np.asarray(data[rows], dtype.newbyteorder("="))

    def span(self, name: str, k: int) -> slice:
        """The rows of a dataset that belong to the k-th episode."""
        return span_of(self.steps, name, k, k)

    def columns(self, name: str) -> tuple[str, ...]:
        """Names of the columns of a dataset that has such; empty for others."""
        with reading(f"{self.where} is damaged: names of the columns of {name}"):
            found = json.loads(attribute(self.datasets[name], "columns", "[]"))
            if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
                raise TypeError(f"they are {found!r}, not a list of words")
            return tuple(found)

    def row(self, name: str, k: int, at: int) -> np.ndarray:
        """Row ``at`` of one array of the k-th episode."""
        whose = f"episode {self.table['number'][k]}"
        where = f"{self.where}: {whose}"
        if name not in self.datasets:
            raise DataError(f"{where} has no {name}")
        span = self.span(name, k)
        if not 0 <= at < span.stop - span.start:
            raise DataError(f"{where} has no row {at} of {name}; there are {span.stop - span.start}")
        return np.asarray(self.read(name, slice(span.start + at, span.start + at + 1), whose)[0])

    def episode(self, k: int, *, observations: bool = True) -> RecordedEpisode:
        """The k-th episode, with or without ``observations``.

        Raises:
            DataError: naming the episode and the dataset that is missing or damaged.
        """
        row = self.attributes(k)
        whose = f"episode {row['number']}"
        where = f"{self.where} is damaged: {whose}"
        tree: dict[str, dict[str, np.ndarray]] = {"steps": {}, "instants": {}, "initial": {}}
        for path in self.datasets:
            if path.startswith("instants/observations/") and not observations:
                continue
            values = self.read(path, self.span(path, k), whose)
            kind, _, name = path.partition("/")
            with reading(f"{where}, {path}"):
                tree[kind][name] = values[0] if kind == "initial" else values
        steps, instants, tables = tree["steps"], tree["instants"], dict[str, Any]()
        for name, kind in TABLES.items():
            tables[name] = {}
            if name in tree[kind]:
                named = self.columns(f"{kind}/{name}")
                with reading(f"{where}, {kind}/{name}"):
                    tables[name] = dict(zip(named, tree[kind][name].T, strict=True))
        with reading(f"{where}, options"):
            options = json.loads(row["options"])
            if not isinstance(options, dict):
                raise TypeError(f"they are {options!r}, not an object")
        for name in (*PER_STEP, "state_hash"):
            if name not in steps and name not in instants:
                raise DataError(f"{where}, {name}: it has none")
        required: dict[str, Any] = {name: steps[name] for name in PER_STEP} | {"state_hash": instants["state_hash"]}
        check_lengths(steps | instants, int(row["length"]), where)

        def under(prefix: str, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            return {name.removeprefix(prefix): v for name, v in values.items() if name.startswith(prefix)}

        return RecordedEpisode(
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
        parts = []
        for name, data in self.datasets.items():
            with reading(f"{self.where} is damaged: {name}"):
                dtype = _checked_form(name, data)
            columns = self.columns(name) if name.partition("/")[2] in TABLES else ()
            parts.append((name, dtype.str, data.shape[1:], columns))
        return tuple(parts)


def span_of(steps: np.ndarray, name: str, first: int, last: int) -> slice:
    """The rows of a dataset that belong to neighbouring episodes; ``steps`` is where each begins and the last ends."""
    start, stop = int(steps[first]), int(steps[last + 1])
    if name.startswith("steps/"):
        return slice(start, stop)
    return slice(first, last + 1) if name.startswith("initial/") else slice(start + first, stop + last + 1)


def _checked_form(name: str, data: Any) -> np.dtype:
    """The type of a dataset. Raises TypeError unless it has the form of its name, or of numbers."""
    form, dtype = _FORMS.get(name), data.dtype
    good = (dtype, data.ndim) == form if form else dtype.kind in "biuf" and dtype.itemsize <= 8 and data.ndim
    if not good:
        valid = f"{form[0]} in {form[1]} dimensions" if form else "numbers in rows"
        raise TypeError(f"it holds {dtype} of shape {data.shape}, not {valid}")
    return np.dtype(dtype)


def _column(table: Any, name: str, kind: type) -> np.ndarray:
    """A column of numbers of the table of episodes."""
    values = table[name][()]
    if values.ndim != 1 or values.dtype != kind:
        raise TypeError(f"{name} holds {values.dtype} of shape {values.shape}, not {np.dtype(kind)} in one dimension")
    return np.asarray(values)


def blocks_of(file: Any, where: str, damaged: list[str] | None = None) -> dict[int, Block]:
    """The blocks of an open HDF5 file by their place in it.

    Args:
        file: the file.
        where: how errors call it.
        damaged: takes what is wrong with blocks that are left out; None to raise it.

    Raises:
        DataError: a block is damaged, or which there are cannot be read.
    """
    with reading(f"{where} is damaged: its list of blocks cannot be read"):
        names = sorted((name for name in file if name.startswith("block_")), key=lambda name: int(name[6:]))
    blocks = {}
    for i, name in enumerate(names):
        try:
            blocks[i] = Block(file[name], where)
        except DataError as error:
            if damaged is None:
                raise
            damaged.append(str(error))
    return blocks


__getattr__ = old_names(__name__)
