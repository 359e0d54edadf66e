"""Recordings of your own, read and written in the layout of :mod:`manikin.fidelity.recordings.layout`."""

from __future__ import annotations

import io
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from manikin.data.recording.durable import write_file
from manikin.data.recording.outside import open_hdf5, reading
from manikin.errors import ConfigError, DataError
from manikin.fidelity.recordings.cells import cells_of, is_number, table_of
from manikin.fidelity.recordings.layout import (
    ARRAYS,
    FORMAT,
    HEADER,
    KEYS,
    VERSION,
    Repeat,
    arrays_of,
    check_repeats,
    checked_header,
    columns_of,
    gathered,
)
from manikin.fidelity.recordings.recording import Recording
from manikin.fidelity.recordings.resample import resampled

__all__ = ["is_own", "layouts_in", "read_own", "read_tasks", "recording_of", "write_own"]

_HDF5 = (".h5", ".hdf5")
_OF_RECORDING = ("format", "version", "task", "hz", "objects", "units", "synthetic")


# ---- reading ---------------------------------------------------------------------------------------------------------


def layouts_in(path: str | Path) -> list[Path]:
    """The recordings of a path: itself, or those that lie in a folder, a task each; empty where there is none."""
    path = Path(path)
    if path.suffix.lower() in _HDF5 and path.is_file():
        return [path]
    if not path.is_dir():
        return []
    if (path / HEADER).is_file():
        return [path]
    inside = sorted(path.iterdir())
    return [one for one in inside if (one / HEADER).is_file() or (one.suffix.lower() in _HDF5 and one.is_file())]


def is_own(path: str | Path) -> bool:
    """Whether a path has recordings in this layout."""
    return bool(layouts_in(path))


def read_tasks(path: str | Path, *, resample: float | None = None) -> dict[str, Recording]:
    """The recordings of a path by task; arguments and errors as of :func:`read_own`."""
    found: dict[str, Recording] = {}
    for one in layouts_in(path):
        recording = read_own(one, resample=resample)
        name = str(recording.task)
        if name in found:
            raise DataError(f"{found[name].source} and {recording.source} are both of the task {name!r}")
        found[name] = recording
    if not found:
        raise DataError(f"{path} has no recording: a folder with {HEADER}, or an HDF5 file")
    return found


def read_own(path: str | Path, *, resample: float | None = None) -> Recording:
    """One recording: a folder with ``recording.toml``, or an HDF5 file.

    Blank cells and NaN stay NaN. A repeat that ends earlier than the longest has NaN after its end.

    Args:
        path: the folder or the file.
        resample: interpolate all repeats to so many rows per second, at most the recording's own rate; None takes the
            rows as they are, at equal distances in time.

    Raises:
        DataError: it cannot be read, or is not of the layout; says which file, row and column.
        ConfigError: a rate to resample to that cannot be.
    """
    path = Path(path)
    if path.suffix.lower() in _HDF5:
        header, repeats = _read_hdf5(path)
    else:
        header, repeats = _read_folder(path)
    check_repeats(path, header, repeats, even=resample is None)
    hz = float(header["hz"])
    if resample is not None:
        repeats, hz = [resampled(one, resample, hz) for one in repeats], float(resample)
    first = repeats[0].first if resample is None else 0
    return recording_of(header, repeats, hz=hz, source=str(path), first_line=first)


def recording_of(
    header: Mapping[str, Any], repeats: Sequence[Repeat], *, hz: float, source: str, first_line: int = 0
) -> Recording:
    """Repeats that :func:`manikin.fidelity.recordings.layout.check_repeats` accepts, as one recording.

    Args:
        header: of the layout.
        repeats: at least one.
        hz: rows per second.
        source: where they come from.
        first_line: line of a file that holds row 0.
    """
    most = max(len(one.arrays["time"]) for one in repeats)
    here, objects = repeats[0].arrays, tuple(header.get("objects", []))
    names = [name for name in ARRAYS if name in here and name != "time"]
    ends = np.cumsum([0, *(here[name].shape[1] for name in names)]).tolist()
    things = [f"{thing}.{of}" for thing in objects for of in ("pos", "quat")]
    return Recording(
        task=header["task"],
        arm=_stacked(repeats, names, most),
        objects=_stacked(repeats, things, most) if objects else np.zeros((0, most, 0)),
        columns={name: slice(a, b) for name, a, b in zip(names, ends, ends[1:], strict=False)},
        things=objects,
        hz=hz,
        labels=tuple(one.label for one in repeats),
        header=header,
        synthetic=bool(header.get("synthetic", False)),
        source=source,
        first_line=first_line,
    )


def _stacked(repeats: Sequence[Repeat], names: Sequence[str], rows: int) -> np.ndarray:
    """(R, rows, columns) arrays side by side, NaN after the end of a repeat."""
    every = []
    for one in repeats:
        table = np.concatenate([np.zeros((len(one.arrays["time"]), 0)), *(one.arrays[name] for name in names)], axis=1)
        every.append(np.pad(table, ((0, rows - len(table)), (0, 0)), constant_values=np.nan))
    return np.stack(every)


def _read_folder(path: Path) -> tuple[dict[str, Any], list[Repeat]]:
    place = path / HEADER
    try:
        said = tomllib.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{place} cannot be read: {error}") from None
    header = checked_header(place, said)
    files = [one for one in sorted(path.iterdir()) if one.name.lower().endswith((".csv", ".csv.xz"))]
    return header, [_read_csv(one, header.get("objects", [])) for one in files]


def _read_csv(path: Path, objects: Sequence[str]) -> Repeat:
    lines = cells_of(path)
    top = 0
    while top < len(lines) and (not any(lines[top]) or lines[top][0].lstrip().startswith("#")):
        top += 1
    if top == len(lines):
        raise DataError(f"{path} is empty")
    names, rows, first = lines[top], lines[top + 1 :], top + 2
    if any(is_number(cell) for cell in names):
        raise DataError(f"{path}: line {top + 1} has numbers; the first row names the columns: time, pos.x and so on")
    for k, cells in enumerate(rows):
        if len(cells) != len(names):
            said = f"row {k} (line {first + k}) has {len(cells)} columns, the row of names has {len(names)}"
            raise DataError(f"{path}: {said}")
    if not rows:
        raise DataError(f"{path} has no rows below the names of the columns")
    table = table_of(path, rows, first, lambda column: f"column {column} ({names[column].strip()})")
    label = path.name.rpartition(".xz")[0] or path.name
    return gathered(path, label.rpartition(".")[0], first, table, names, objects)


def _read_hdf5(path: Path) -> tuple[dict[str, Any], list[Repeat]]:
    with open_hdf5(path) as file:
        with reading(f"{path} cannot be read"):
            said = {key: _plain(value) for key, value in file.attrs.items()}
            if said.get("format") == "manikin-episodes":
                words = f"manikin fidelity export {path.name} --out FOLDER"
                raise DataError(f"{path} holds episodes of manikin; first: {words}")
            if isinstance(said.get("notes"), str):
                said["notes"] = json.loads(said["notes"])
        header = checked_header(path, said)
        with reading(f"{path} cannot be read"):
            objects = header.get("objects", [])
            return header, [_read_group(path, label, file[label], objects) for label in sorted(file)]


def _plain(value: Any) -> Any:
    """An attribute as TOML would have it."""
    if isinstance(value, h5py.Empty):
        return []
    if isinstance(value, np.ndarray):
        return [_plain(one) for one in value.tolist()]
    value = value.item() if isinstance(value, np.generic) else value
    return value.decode() if isinstance(value, bytes) else value


def _read_group(path: Path, label: str, group: Any, objects: Sequence[str]) -> Repeat:
    place = f"{path}: {label}"
    if not isinstance(group, h5py.Group):
        raise DataError(f"{place} is no group; each repeat is a group of arrays")
    kinds, arrays = arrays_of(objects), dict[str, np.ndarray]()
    rows = len(group["time"]) if "time" in group and group["time"].shape else 0
    for name in group:
        kind, data = kinds.get(name), group[name]
        if kind is None or not isinstance(data, h5py.Dataset):
            raise DataError(f"{place}/{name} is no array of the layout. Valid: {', '.join(kinds)}")
        if data.dtype.kind not in "fiu":
            raise DataError(f"{place}/{name} holds {data.dtype}, not numbers")
        width = len(kind.parts) or "columns"
        shape = (rows,) if name == "time" else (rows, width)
        if len(data.shape) != len(shape) or data.shape[0] != rows or (kind.parts and data.shape[1] != width):
            raise DataError(f"{place}/{name} has shape {data.shape}; there are {rows} times, so it is {shape}")
        for key, right in (("units", kind.units), ("columns", (" ".join(kind.parts),))):
            if key in data.attrs and (given := _plain(data.attrs[key])) not in right:
                said = " or ".join(right)
                raise DataError(f"{place}/{name}: its attribute {key} is {given!r}; the layout has {said!r}")
        arrays[name] = data[()].astype(np.float64)
        if np.isinf(arrays[name]).any():
            k = int(np.argwhere(np.isinf(arrays[name]))[0][0])
            raise DataError(f"{place}: row {k}, {name} is infinite")
    return Repeat(label=label, place=place, first=0, arrays=arrays)


# ---- writing ---------------------------------------------------------------------------------------------------------


def write_own(recording: Recording, path: str | Path) -> Path:
    """Write a recording as a folder, or as an HDF5 file where the path ends in .h5; numbers come back to the bit.

    Args:
        recording: of a task of your own. Row k is at k / hz; rows after the end of a repeat are left out.
        path: what does not exist yet, or an empty folder. Returned.

    Raises:
        ConfigError: a recording of the benchmark, or something is there. DataError: it cannot be written.
    """
    path = Path(path)
    if not recording.own:
        raise ConfigError(f"{recording.source} is of the benchmark's task {recording.task}; write_repeats writes it")
    if path.is_file() or (path.exists() and any(path.iterdir())):
        raise ConfigError(f"{path} is there already and not empty; choose another name")
    said = {key: value for key, value in recording.header.items() if key not in _OF_RECORDING}
    header = {"format": FORMAT, "version": VERSION, "task": recording.task, "hz": float(recording.hz), **said}
    header |= {"objects": list(recording.things), "units": "SI"}
    header |= {"synthetic": True} if recording.synthetic else {}
    header = {key: header[key] for key in KEYS if key in checked_header(path, header)}
    repeats = [(label, _arrays(recording, k)) for k, label in enumerate(recording.labels)]
    if path.suffix.lower() in _HDF5:
        write_file(path, _as_hdf5(header, repeats))
        return path
    write_file(path / HEADER, _as_toml(header).encode())
    for label, arrays in repeats:
        write_file(path / f"{label}.csv", _as_csv(arrays).encode())
    return path


def _arrays(recording: Recording, k: int) -> dict[str, np.ndarray]:
    """Name -> (N, columns) of one repeat."""
    end = recording.lengths[k]
    found = {"time": np.arange(end)[:, None] / recording.hz}
    found |= {name: recording.arm[k, :end, at] for name, at in recording.columns.items()}
    for thing in recording.things:
        track = recording.track(thing)[k, :end]
        found |= {f"{thing}.pos": track[:, :3], f"{thing}.quat": track[:, 3:]}
    return found


def _kind(name: str) -> Any:
    return ARRAYS[name.rpartition(".")[2]]


def _as_csv(arrays: Mapping[str, np.ndarray]) -> str:
    names = [column for name, values in arrays.items() for column in columns_of(name, values.shape[1], _kind(name))]
    rows = np.concatenate(list(arrays.values()), axis=1).tolist()
    lines = [",".join("" if cell != cell else repr(cell) for cell in row) for row in rows]  # NaN is not itself
    return "\n".join([",".join(names), *lines]) + "\n"


def _as_hdf5(header: Mapping[str, Any], repeats: Sequence[tuple[str, Mapping[str, np.ndarray]]]) -> bytes:
    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        for key, value in header.items():
            if isinstance(value, list) and all(isinstance(one, str) for one in value):
                value = np.array(value, h5py.string_dtype())
            file.attrs[key] = json.dumps(value) if isinstance(value, dict) else value
        for label, arrays in repeats:
            group = file.create_group(label)
            for name, values in arrays.items():
                data = group.create_dataset(name, data=values[:, 0] if name == "time" else values)
                data.attrs["units"], data.attrs["columns"] = _kind(name).units[0], " ".join(_kind(name).parts)
    return content.getvalue()


def _as_toml(header: Mapping[str, Any]) -> str:
    lines = [f"{key} = {json.dumps(value)}" for key, value in header.items() if not isinstance(value, dict)]
    for key, table in header.items():
        if isinstance(table, dict):
            lines += ["", f"[{key}]", *(f"{json.dumps(name)} = {json.dumps(value)}" for name, value in table.items())]
    return "\n".join(lines) + "\n"
