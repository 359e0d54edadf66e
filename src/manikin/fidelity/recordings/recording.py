"""Recordings in the layout of the benchmark: files of one repeat, and summaries of all repeats of a task.

A row of a file is an instant, 10 of them a second. Its columns, numbered from 0:

| columns | content |
| --- | --- |
| 0-2 | wrist x, y, z [m] |
| 3-6 | wrist quaternion w, x, y, z |
| 7-12 | torques of joints 1 to 6 [N m] |
| 13-15 | positions of the fingers [encoder counts] |
| 16-18 | force Fx, Fy, Fz [N] at the wrist |
| 19-21 | moment Mx, My, Mz [N m] at the wrist |
| 22-28 | object x, y, z [m] and quaternion w, x, y, z; in a summary such a block for each repeat |

A submitted file ``taskTT_RR.csv`` holds one repeat: 22 columns, or 29 with an object, and comments. A summary
``TaskTT_mean10Hz.csv`` begins with lines ``##Task: 3`` and two rows of labels. Its arm is the mean over repeats.
Files may be compressed (``.csv.xz``). Rows are numbered from 0 as in the arrays; errors name the line, too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from manikin.errors import ConfigError, DataError
from manikin.fidelity.protocol import HZ, REPEATS, benchmark_task
from manikin.fidelity.recordings.cells import cells_of, is_number, table_of

__all__ = [
    "ARM",
    "LABELS",
    "Recording",
    "read_reality",
    "read_recording",
    "read_repeats",
    "tasks_in",
    "write_repeats",
    "write_summary",
]

ARM: dict[str, slice] = {
    "pos": slice(0, 3),
    "quat": slice(3, 7),
    "torque": slice(7, 13),
    "fingers": slice(13, 16),
    "force": slice(16, 19),
    "moment": slice(19, 22),
}
"""Columns of the arm by what they hold."""
LABELS = ("x y z w x y z " + "J1 J2 J3 J4 J5 J6 F1 F2 F3 Fx Fy Fz Mx My Mz").split()
"""Names of the arm's columns."""
_GROUPS = {0: "Kinova Wrist", 7: "Joint Torques", 13: "Finger Positions", 16: "Force Torque Sensor"}
_OBJECT = LABELS[:7]
_FILE = re.compile(r"task(\d\d)_(\d\d)\.csv(\.xz)?$", re.IGNORECASE)
_SUMMARY = re.compile(r"(?:synthetic_)?task(\d\d)_mean10hz\.csv(\.xz)?$", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, eq=False)
class Recording:
    """Repeats of one task: of the benchmark, or of your own (:mod:`manikin.fidelity.recordings.layout`).

    Attributes:
        task: its number, 1 to 10; of a task of your own its name.
        arm: (A, N, C) what the arm's columns hold; A is 1 where a file has the mean over repeats.
        objects: (R, N, 7 K) position [m] and quaternion (w, x, y, z) of the K objects in each repeat; R is 0 without
            one.
        columns: which of the arm's C columns hold what; C is 22 in the benchmark.
        things: (K,) names of the objects.
        hz: rows per second.
        labels: (R,) names of the object's repeats; of your own tasks (A,) of all repeats.
        header: what the lines ``##name: value``, or recording.toml, say.
        synthetic: whether it says that it was made up, not measured.
        source: file or folder.
        first_line: line of the file that holds row 0; 0 where the file has no lines.
        summary: whether the arm is a mean over repeats.
    """

    task: int | str
    arm: np.ndarray
    objects: np.ndarray
    columns: Mapping[str, slice] = field(default_factory=lambda: ARM)
    things: tuple[str, ...] = ("object",)
    hz: float = HZ
    labels: tuple[str, ...] = ()
    header: Mapping[str, Any] = field(default_factory=dict)
    synthetic: bool = False
    source: str = ""
    first_line: int = 1
    summary: bool = False

    @property
    def rows(self) -> int:
        """Instants N."""
        return int(self.arm.shape[1])

    @property
    def own(self) -> bool:
        """Whether it is of a task of your own, not of the benchmark."""
        return isinstance(self.task, str)

    @property
    def lengths(self) -> tuple[int, ...]:
        """(A,) rows until each repeat ends: after that all is NaN."""
        known = np.isfinite(self.arm).any(-1)
        if len(self.objects) == len(self.arm):
            known |= np.isfinite(self.objects).any(-1)
        return tuple(int(np.flatnonzero(one)[-1]) + 1 if one.any() else 0 for one in known)

    def part(self, name: str) -> np.ndarray:
        """(A, N, width) what the arm's columns hold of ``name``; (A, N, 1) of NaN where it was not recorded."""
        return self.arm[..., self.columns[name]] if name in self.columns else np.full((*self.arm.shape[:2], 1), np.nan)

    def track(self, thing: str) -> np.ndarray:
        """(R, N, 7) an object in the repeats that count: the first 20 of the benchmark, all of your own tasks."""
        at = 7 * self.things.index(thing)
        return self.objects[: None if self.own else REPEATS, :, at : at + 7]

    @property
    def repeats(self) -> int:
        """Repeats that it holds singly."""
        return max(len(self.objects), 0 if self.summary else len(self.arm))

    def at_benchmark_rate(self, hz: float) -> Recording:
        """Every so many rows that 10 Hz are left.

        Args:
            hz: rate of this recording, a multiple of 10.

        Raises:
            ConfigError: no multiple of 10 Hz. DataError: the file says another rate.
        """
        step = round(hz / HZ) if math.isfinite(hz) else 0
        if step < 1 or abs(step * HZ - hz) > 1e-9:
            raise ConfigError(f"a recording at {hz:g} Hz cannot be cut to {HZ:g} Hz; a multiple of {HZ:g} can")
        if self.hz not in (HZ, hz):
            raise DataError(f"{self.source} is at {self.hz:g} Hz, as it says itself, not at {hz:g} Hz")
        return replace(self, arm=self.arm[:, ::step], objects=self.objects[:, ::step], hz=HZ)

    def cut(self, rows: int) -> Recording:
        """The first rows."""
        return replace(self, arm=self.arm[:, :rows], objects=self.objects[:, :rows])


# ---- reading ---------------------------------------------------------------------------------------------------------


def read_recording(path: str | Path, task: int | None = None) -> Recording:
    """One file: a summary, or one repeat.

    Blank cells and ``nan`` become NaN; nothing else is changed, see :mod:`manikin.fidelity.recordings.defects`.

    Args:
        path: the file.
        task: its task, where neither its name nor its header says it.

    Raises:
        DataError: it cannot be read, or a row, a column or a label is not of the layout; says which.
        UnknownNameError: no task of the benchmark.
    """
    path = Path(path)
    header: dict[str, str] = {}
    rows: list[list[str]] = []
    labels: list[list[str]] = []
    first = 0
    for number, cells in enumerate(cells_of(path), 1):
        if cells and cells[0].lstrip().startswith("#"):
            name, _, value = ",".join(cells).strip(" #,").partition(":")
            header[name.strip()] = value.strip()
        elif not any(cell.strip() for cell in cells) and not first:
            continue
        elif not first and not any(is_number(cell) for cell in cells):
            labels.append(cells)
        else:
            first = first or number
            rows.append(cells)
    if len(rows) < 3:
        raise DataError(f"{path} has {len(rows)} rows of numbers; accelerations need 3")
    width = len(rows[0])
    for k, cells in enumerate(rows):
        if len(cells) != width:
            said = f"row {k} (line {first + k}) has {len(cells)} columns, row 0 has {width}"
            raise DataError(f"{path}: {said}")
    number = _task(path, header, task)
    count = _repeats(path, width, number)
    names = _check_labels(path, labels, count)
    table = table_of(path, rows, first, _named)
    return Recording(
        task=number,
        arm=table[None, :, :22],
        objects=np.ascontiguousarray(table[:, 22:].reshape(len(table), count, 7).transpose(1, 0, 2)),
        hz=_rate(path, header),
        labels=names,
        header=header,
        synthetic=header.get("SYNTHETIC", "").lower() == "true",
        source=str(path),
        first_line=first,
        summary=_SUMMARY.search(path.name) is not None or count > 1 or len(labels) > 0,
    )


def _task(path: Path, header: Mapping[str, str], task: int | None) -> int:
    named = next((int(m[1]) for pattern in (_FILE, _SUMMARY) if (m := pattern.search(path.name))), None)
    said = header.get("Task")
    if said is not None and not said.isdigit():
        raise DataError(f"{path}: the header says Task: {said!r}; it is a number from 1 to 10")
    found = [one for one in (task, named, None if said is None else int(said)) if one is not None]
    if not found:
        raise DataError(f"{path}: which task is it? Call it taskTT_RR.csv, or begin it with the line ##Task: 3")
    if len(set(found)) > 1:
        raise DataError(f"{path}: header, file name and caller say different tasks: {', '.join(map(str, found))}")
    return benchmark_task(found[0]).number


def _repeats(path: Path, width: int, task: int) -> int:
    """How many repeats of an object a file of so many columns has."""
    has = benchmark_task(task).thing is not None
    if width < 22 or (width - 22) % 7:
        raise DataError(
            f"{path} has {width} columns; the layout has 22, or 29 with an object, or 22 + 7 R in a summary of R "
            "repeats"
        )
    count = (width - 22) // 7
    if count and not has:
        raise DataError(f"{path} has {width} columns; task {task} has no object, so 22 are right")
    return count


def _check_labels(path: Path, labels: Sequence[Sequence[str]], count: int) -> tuple[str, ...]:
    """Names of the object's repeats, after the labels were compared with the layout."""
    numbered = tuple(f"repeat {k + 1}" for k in range(count))
    if not labels:
        return numbered
    if len(labels) > 2:
        raise DataError(f"{path}: {len(labels)} rows of text before the numbers; a summary has two rows of labels")
    expected = [*LABELS, *_OBJECT * count]
    said = [cell.strip() for cell in labels[-1]]
    for k, name in enumerate(expected):
        found = said[k] if k < len(said) else ""
        typo = k == 20 and found == "Mz"  # as published
        if found.lower() != name.lower() and not typo:
            raise DataError(f"{path}: column {k} is called {found!r}; the layout has {name!r} there")
    groups = labels[0] if len(labels) == 2 else ()
    return tuple((groups[22 + 7 * k].strip() if len(groups) > 22 + 7 * k else "") or numbered[k] for k in range(count))


def _rate(path: Path, header: Mapping[str, str]) -> float:
    """What a line such as ``##Mean data sampled at 10Hz`` or ``##Rate: 100 Hz`` says; 10 Hz without one."""
    for name, value in header.items():
        if found := re.search(r"([\d.]+)\s*Hz", f"{name} {value}", re.IGNORECASE):
            hz = float(found[1])
            if not hz > 0:
                raise DataError(f"{path}: the header says a rate of {hz:g} Hz")
            return hz
    return HZ


def _named(column: int) -> str:
    name = LABELS[column] if column < 22 else f"object {_OBJECT[(column - 22) % 7]}"
    return f"column {column} ({name})"


def tasks_in(folder: str | Path) -> tuple[int, ...]:
    """Numbers of the tasks of which a folder holds files.

    Raises:
        DataError: it is no folder, or holds none.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder")
    found = {int(m[1]) for one in folder.iterdir() for p in (_FILE, _SUMMARY) if (m := p.match(one.name))}
    if not found:
        raise DataError(f"{folder} has no files of the benchmark: task03_01.csv to task03_20.csv, and so on")
    return tuple(sorted(found))


def _files(folder: Path, task: int, pattern: re.Pattern[str]) -> list[Path]:
    return sorted(one for one in folder.iterdir() if (m := pattern.match(one.name)) and int(m[1]) == task)


def read_repeats(folder: str | Path, task: int, count: int | None = REPEATS) -> Recording:
    """Repeats ``taskTT_01.csv`` to ``taskTT_20.csv`` of one task as one recording.

    Args:
        folder: where they lie.
        task: its number.
        count: how many there are; None takes those that are there, whatever their numbers.

    Raises:
        DataError: one is missing, malformed or there twice, there are more, or they differ in rows, columns or rate;
            says which.
    """
    folder = Path(folder)
    files: dict[int, Path] = {}
    for path in _files(folder, task, _FILE):
        number = int(path.name[7:9])
        if number in files:
            raise DataError(f"{folder} has repeat {number} of task {task} twice: {files[number].name}, {path.name}")
        files[number] = path
    if not files or (count is not None and max(files) > count):
        said = f"repeats {', '.join(map(str, files))}" if files else "no recording"
        raise DataError(f"{folder} has {said} of task {task}" + (f"; need repeats 1 to {count}" if count else ""))
    lost = [k for k in range(1, (count or 0) + 1) if k not in files]
    if lost:
        said = ", ".join(f"task{task:02d}_{k:02d}.csv" for k in lost[:3]) + (" and others" if len(lost) > 3 else "")
        raise DataError(f"{folder} has {len(files)} of the {count} repeats of task {task}; it lacks {said}")
    read = [read_recording(files[k], task) for k in sorted(files)]
    for one in read:
        if one.rows != read[0].rows:
            raise DataError(f"{one.source} has {one.rows} rows, {read[0].source} has {read[0].rows}")
        if one.hz != read[0].hz:
            raise DataError(f"{one.source} is at {one.hz:g} Hz, {read[0].source} at {read[0].hz:g} Hz")
        if len(one.objects) != len(read[0].objects) or len(one.objects) > 1:
            widths = [22 + 7 * len(each.objects) for each in (one, read[0])]
            raise DataError(
                f"{one.source} has {widths[0]} columns, {read[0].source} has {widths[1]}; a repeat has 22 or 29"
            )
    return replace(
        read[0],
        arm=np.concatenate([one.arm for one in read]),
        objects=np.concatenate([one.objects for one in read]),
        labels=tuple(Path(one.source).name for one in read),
        synthetic=any(one.synthetic for one in read),
        source=str(folder),
        summary=False,
    )


def read_reality(folder: str | Path, task: int) -> Recording:
    """The recordings of a real arm: the summary of a task, else its repeats.

    Raises:
        DataError: neither is there, or as :func:`read_recording` says.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder")
    found = _files(folder, task, _SUMMARY)
    if len(found) > 1:
        raise DataError(f"{folder} has several summaries of task {task}: {', '.join(one.name for one in found)}")
    if found:
        return read_recording(found[0], task)
    return read_repeats(folder, task, None)


# ---- writing ---------------------------------------------------------------------------------------------------------


def write_repeats(recording: Recording, folder: str | Path, count: int | None = None) -> list[Path]:
    """Write ``taskTT_RR.csv``, one for each repeat, as the benchmark wants a submission. Returns the files.

    A recording whose arm is a mean gives each file that mean: with a ``count`` of 20, a perfect replay of a summary.

    Args:
        recording: what to write.
        folder: made where it is missing.
        count: how many repeats, by default all that it has, or 20 where it is a mean without an object.

    Raises:
        ConfigError: more than it has. UnknownNameError: no task of the benchmark. OSError: they cannot be written.
    """
    folder, written, task = Path(folder), list[Path](), benchmark_task(recording.task).number
    has = recording.repeats or REPEATS
    if count is not None and not 1 <= count <= has:
        raise ConfigError(f"{count} repeats: {recording.source or 'the recording'} has 1 to {has}")
    folder.mkdir(parents=True, exist_ok=True)
    for k in range(has if count is None else count):
        arm = recording.arm[0 if recording.summary else k]
        table = np.concatenate([arm, *recording.objects[k : k + 1]], axis=1)
        lines = [f"# Task: {task}", f"# Repeat: {k + 1}", f"# Rate: {recording.hz:g} Hz"]
        lines += ["##SYNTHETIC: true"] if recording.synthetic else []
        path = folder / f"task{task:02d}_{k + 1:02d}.csv"
        _write(path, lines, table)
        written.append(path)
    return written


def write_summary(recording: Recording, folder: str | Path) -> Path:
    """Write ``TaskTT_mean10Hz.csv``: the mean arm and each repeat's object. Synthetic ones are called so in their name.

    Raises:
        OSError: it cannot be written.
    """
    task, count = benchmark_task(recording.task), len(recording.objects)
    said = {"Task": str(task.number), "Description": task.title, "Duration": f"{task.seconds:g} seconds"}
    said |= {name: value for name, value in recording.header.items() if name not in said and not _is_rate(name, value)}
    said |= {"SYNTHETIC": "true"} if recording.synthetic else {}
    lines = [f"##Mean data sampled at {recording.hz:g}Hz", *(f"##{name}: {value}" for name, value in said.items())]
    groups = [_GROUPS.get(k, "") for k in range(22)]
    for name in recording.labels:
        groups += [name, *[""] * 6]
    lines += [",".join(groups), ",".join([*LABELS, *_OBJECT * count])]
    name = f"Task{task.number:02d}_mean10Hz.csv"
    path = Path(folder) / (f"synthetic_{name}" if recording.synthetic else name)
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, lines, np.concatenate([recording.arm.mean(0), *recording.objects], axis=1))
    return path


def _is_rate(name: str, value: str) -> bool:
    return re.search(r"[\d.]+\s*Hz", f"{name} {value}", re.IGNORECASE) is not None


def _write(path: Path, lines: Sequence[str], table: np.ndarray) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\n".join(lines) + "\n")
        np.savetxt(file, table, fmt="%.9g", delimiter=",")
