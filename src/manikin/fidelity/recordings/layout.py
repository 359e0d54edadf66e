"""Recordings of any arm and any task: a folder of CSV files with a header, or one HDF5 file.

    push/recording.toml    what was recorded: :data:`KEYS`
    push/run_01.csv        one file for each repeat; its columns are named after :data:`ARRAYS`

In a CSV file the first row has the names of the columns, in any order: ``time``, ``pos.x``, ``quat.w``, ``qpos.1``,
``cube.pos.x``. A name may be followed by its unit: ``pos.x [m]``. A blank cell is a missing value. An HDF5 file has the
header as attributes, and a group for each repeat with a dataset for each array: ``time`` (N,), ``pos`` (N, 3),
``qpos`` (N, joints), ``cube.pos`` (N, 3).

The arrays that system identification takes have its names here, too: pos, quat, qpos and actions, see
:mod:`manikin.sysid.trajectories`. This layout adds what a score needs: times, loads and objects.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from manikin.errors import DataError

__all__ = [
    "ARRAYS",
    "FORMAT",
    "HEADER",
    "JOINTS",
    "KEYS",
    "NEEDED",
    "VERSION",
    "Column",
    "Repeat",
    "arrays_of",
    "check_repeats",
    "checked_header",
    "columns_of",
    "gathered",
]

FORMAT, VERSION = "manikin-recording", 1
HEADER = "recording.toml"
"""Name of a folder's header."""


@dataclass(frozen=True)
class Column:
    """An array of a recording.

    Attributes:
        parts: names of its columns; "" where they are numbered from 1, or where there is one.
        units: of its numbers, of a joint that turns and of one that slides; "" where it has none, or any.
        about: what it holds.
    """

    parts: str
    units: tuple[str, ...]
    about: str


ARRAYS: dict[str, Column] = {
    "time": Column("", ("s",), "time since the task began; the first row is at 0"),
    "pos": Column("xyz", ("m",), "position of the tool or the wrist"),
    "quat": Column("wxyz", ("",), "its orientation, a unit quaternion"),
    "qpos": Column("", ("rad", "m"), "joint positions"),
    "qvel": Column("", ("rad/s", "m/s"), "joint velocities"),
    "torque": Column("", ("N m", "N"), "joint torques; of a joint that slides its force"),
    "fingers": Column("", ("",), "positions of the fingers, in any unit"),
    "force": Column("xyz", ("N",), "force at the wrist"),
    "moment": Column("xyz", ("N m",), "moment at the wrist"),
    "actions": Column("", ("",), "what the controller was asked for, for system identification"),
}
"""Name -> array. Of an object ``cube`` there are also ``cube.pos`` and ``cube.quat``."""
JOINTS = ("qpos", "qvel", "torque")
"""Arrays that have a column for each joint."""
KEYS: dict[str, tuple[type | tuple[type, ...], str]] = {
    "format": (str, f'"{FORMAT}"'),
    "version": (int, f"{VERSION}"),
    "task": (str, "name of the task; the simulation and the recording of one task have the same"),
    "hz": ((int, float), "rows per second"),
    "robot": (str, "the arm, in words; for system identification a robot word"),
    "source": (str, "who recorded, or which simulator; its row in tables is called so"),
    "objects": (list, 'names of the objects: ["cube"]'),
    "joints": (list, "names of the joints, in the order of their columns"),
    "units": (str, '"SI", the only one'),
    "synthetic": (bool, "true where the numbers are made up. Scores and reports then say SYNTHETIC"),
    "control": (str, "for system identification: the controller's word"),
    "actions": (str, 'for system identification: "card" or "normalized"'),
    "tool": (list, "for system identification: pose of the tracked frame in the robot's TCP frame [m, wxyz]"),
    "notes": (dict, "a table of anything else"),
}
"""Key of the header -> its kind, and what it says. format, version, task and hz are needed."""
NEEDED = ("format", "version", "task", "hz")
_NAME = re.compile(r"[A-Za-z0-9][\w-]*$")
_OFF, _OTHER = 0.05, 0.2  # of a period: a row may be early or late; another rate
_ROWS = 3  # accelerations need so many


@dataclass(frozen=True, kw_only=True, eq=False)
class Repeat:
    """One repeat as it lies in a file.

    Attributes:
        label: name of its file or group.
        place: file, or file and group, for errors.
        first: line of the file that holds row 0; 0 where it has no lines.
        arrays: name -> (N,) of ``time``, (N, width) of the others.
    """

    label: str
    place: str
    first: int
    arrays: Mapping[str, np.ndarray]

    def at(self, row: int, name: str) -> str:
        """``push/run_01.csv: row 5 (line 7), time``."""
        line = f" (line {self.first + row})" if self.first else ""
        return f"{self.place}: row {row}{line}, {name}"


def checked_header(path: Path, said: Mapping[str, Any]) -> dict[str, Any]:
    """The header of a recording.

    Raises:
        DataError: a key is missing, unknown or of another kind, or has a value that cannot be; says which.
    """
    for key in said:
        if key not in KEYS:
            raise DataError(f"{path}: unknown key {key!r}.{_near(key, KEYS)} Valid: {', '.join(KEYS)}")
    for key in NEEDED:
        if key not in said:
            raise DataError(f"{path} does not say {key}: {KEYS[key][1]}")
    for key, value in said.items():
        kind, about = KEYS[key]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise DataError(f"{path}: {key} is {value!r:.40}; it says {about}")
    if said["format"] != FORMAT:
        raise DataError(f"{path} is no recording: its format is {said['format']!r:.40}, not {FORMAT!r}")
    if said["version"] != VERSION:
        raise DataError(f"{path} has version {said['version']}; this manikin reads version {VERSION}")
    if not 0 < said["hz"] < 1e6:
        raise DataError(f"{path}: hz is {said['hz']!r}; it is a rate in rows per second")
    if not said["task"].strip():
        raise DataError(f"{path}: task is empty; it is the name that both sides of a comparison have")
    if said.get("units", "SI") != "SI":
        raise DataError(f'{path}: units is {said["units"]!r}; a recording is in metres, radians, N and N m: "SI"')
    for key in ("objects", "joints"):
        names = said.get(key, [])
        if not all(isinstance(name, str) and _NAME.match(name) for name in names) or len({*names}) < len(names):
            raise DataError(f"{path}: {key} is {names!r:.80}; it is a list of different names of letters and digits")
    tool = said.get("tool", [0.0] * 7)
    if len(tool) != 7 or not all(isinstance(one, int | float) for one in tool):
        raise DataError(f"{path}: tool is {tool!r:.80}; it is a pose of 7 numbers: metres, quaternion w, x, y, z")
    return dict(said)


def arrays_of(objects: Sequence[str]) -> dict[str, Column]:
    """All arrays that a recording of these objects may have, by name."""
    return ARRAYS | {f"{thing}.{of}": ARRAYS[of] for thing in objects for of in ("pos", "quat")}


def columns_of(name: str, width: int, kind: Column) -> list[str]:
    """Names of an array's columns."""
    if name == "time":
        return [name]
    return [f"{name}.{part}" for part in kind.parts or map(str, range(1, width + 1))]


def gathered(place: Path, label: str, first: int, table: np.ndarray, names: Sequence[str], objects: Any) -> Repeat:
    """The arrays of a table (N, columns) whose columns have names.

    Raises:
        DataError: a name that is no column of the layout, is there twice, has another unit, or belongs to an array of
            which another column is missing.
    """
    kinds, found = arrays_of(objects), dict[str, dict[str, int]]()
    for k, cell in enumerate(names):
        name, bracket, rest = (part.strip() for part in cell.partition("["))
        array, _, part = ("time", "", "") if name == "time" else name.rpartition(".")
        if array not in kinds or (name != "time" and part not in (tuple(kinds[array].parts) or _digits(part))):
            valid = [one for key, kind in kinds.items() for one in columns_of(key, 1, kind)]
            raise DataError(f"{place}: unknown column {k} {name!r}.{_near(name, valid)} Valid: {', '.join(valid)}")
        if bracket and rest.rstrip("]") not in kinds[array].units:
            right = " or ".join(kinds[array].units)
            raise DataError(f"{place}: column {k} ({name}) is in {rest.rstrip(']')!r}; the layout has {right!r}")
        if name in found.setdefault(array, {}):
            raise DataError(f"{place}: column {k} ({name}) is there twice")
        found[array][name] = k
    arrays = {}
    for array, at in found.items():
        wanted = columns_of(array, len(at), kinds[array])
        if lost := [name for name in wanted if name not in at]:
            raise DataError(f"{place} has {', '.join(at)}, but no {', '.join(lost)}")
        arrays[array] = table[:, [at[name] for name in wanted]]
    if "time" in arrays:
        arrays["time"] = arrays["time"][:, 0]
    return Repeat(label=label, place=str(place), first=first, arrays=arrays)


def _digits(part: str) -> tuple[str, ...]:
    return (part,) if part.isdecimal() and part[0] != "0" else ()


def _near(name: str, valid: Any) -> str:
    near = get_close_matches(name, list(valid), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def check_repeats(place: Path, header: Mapping[str, Any], repeats: Sequence[Repeat], *, even: bool) -> None:
    """Refuse what cannot be compared.

    Args:
        place: file or folder.
        header: as :func:`checked_header` gives it.
        repeats: what was read.
        even: whether rows must lie at equal distances in time.

    Raises:
        DataError: says which file, row and array.
    """
    objects, joints = header.get("objects", []), header.get("joints", [])
    if not repeats:
        raise DataError(f"{place} holds no repeat: a CSV file for each, or in HDF5 a group")
    for one in repeats:
        if "time" not in one.arrays:
            raise DataError(f"{one.place} has no time; every row needs its time [s] since the task began")
        if len(one.arrays["time"]) < _ROWS:
            raise DataError(f"{one.place} has {len(one.arrays['time'])} rows; accelerations need {_ROWS}")
        for name in list(arrays_of(objects))[len(ARRAYS) :]:
            if name not in one.arrays:
                raise DataError(f"{one.place} has no {name}; the header names the object {name.rpartition('.')[0]}")
        if "quat" in one.arrays and "pos" not in one.arrays:
            raise DataError(f"{one.place} has quat without pos")
        if not {"pos", "qpos", "torque", "force", "moment"} & one.arrays.keys() and not objects:
            raise DataError(f"{one.place} holds nothing to compare: no pose, no joints, no loads and no object")
        widths = {name: one.arrays[name].shape[1] for name in JOINTS if name in one.arrays}
        widths |= {"joints of the header": len(joints)} if joints and widths else {}
        if len({*widths.values()}) > 1:
            said = ", ".join(f"{name} {width}" for name, width in widths.items())
            raise DataError(f"{one.place} has different numbers of joints: {said}")
        _check_times(one, float(header["hz"]), even)
    shapes = {name: values.shape[1:] for name, values in repeats[0].arrays.items()}
    for one in repeats[1:]:
        mine = {name: values.shape[1:] for name, values in one.arrays.items()}
        if mine != shapes:
            other = sorted(name for name in {*mine, *shapes} if mine.get(name) != shapes.get(name))
            raise DataError(f"{one.place} and {repeats[0].place} do not have the same columns: {', '.join(other)}")


def _check_times(one: Repeat, hz: float, even: bool) -> None:
    time = one.arrays["time"]
    if not np.isfinite(time).all():
        raise DataError(f"{one.at(int(np.argmin(np.isfinite(time))), 'time')} is missing")
    if abs(time[0]) > _OFF / hz:
        raise DataError(f"{one.at(0, 'time')} is {time[0]:.6g} s; it counts from the begin of the task, so it is 0")
    step = np.diff(time)
    if (step <= 0).any():
        k = int(np.argmax(step <= 0)) + 1
        raise DataError(f"{one.at(k, 'time')} is {time[k]:.6g} s, after {time[k - 1]:.6g} s; time goes on")
    rate = 1 / float(np.median(step))
    if abs(rate / hz - 1) > _OTHER:
        unit = "; these are milliseconds" if 0.8 < 1000 * rate / hz < 1.25 else ""
        raise DataError(f"{one.place}: the header says {hz:g} Hz, the times are those of {rate:.4g} Hz{unit}")
    off = np.abs(time * hz - np.arange(len(time)))
    if even and off.max() > _OFF:
        k = int(np.argmax(off > _OFF))
        raise DataError(
            f"{one.at(k, 'time')} is {time[k]:.6g} s; at {hz:g} Hz it is {k / hz:.6g} s. Write lost rows with blank "
            "cells, or have uneven times interpolated: --resample HZ (resample= in Python)"
        )
