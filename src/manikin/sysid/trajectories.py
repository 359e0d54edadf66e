"""Recorded motions of a robot: what was asked of it, and where it was. Read and written as JSON, NPZ or HDF5.

A file holds one robot under one controller at one rate:

    robot, control   words as ``manikin.make`` takes them
    control_hz       actions per second
    tool             (7,) [m, wxyz] pose of the tracked frame in the robot's TCP frame; default the same frame
    units            of actions: "card" as the controller's action card has them, or "normalized" to [-1, 1]
    source           where the recordings come from, for people
    and of each trajectory of T actions
    actions          (T, A), the gripper's left out or not
    pos              (T, 3) [m] the tracked frame in the robot's base frame, before each action
    quat             (T, 4) wxyz, likewise; may be left out
    qpos             (T, joints) [rad or m] before each action; may stand beside ``pos`` or in its place
    start            (joints,) [rad or m] where the joints begin, where ``pos`` and ``quat`` do not say it

JSON has ``{"format": ..., "robot": ..., "trajectories": [{"name": ..., "actions": [[...]], ...}]}``. In NPZ an array is
called ``NAME/actions`` and ``header`` is the rest as JSON. HDF5 has a group for each trajectory, and attributes.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from manikin.data.recording.durable import write_file
from manikin.errors import DataError, UnknownNameError

__all__ = ["FORMAT", "VERSION", "Trajectories", "Trajectory", "read_trajectories"]

FORMAT, VERSION = "manikin-trajectories", 1
ARRAYS = {"actions": 2, "pos": 2, "quat": 2, "qpos": 2, "start": 1}  # name: dimensions
_ENDINGS = (".json", ".npz", ".h5", ".hdf5")
UNITS = ("card", "normalized")
_HERE = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Trajectory:
    """One recorded motion of T steps; arrays as the module describes them, float64.

    Raises:
        DataError: nothing was tracked, arrays of another shape or length, NaN, or quaternions that are none.
    """

    name: str
    actions: np.ndarray
    pos: np.ndarray | None = None
    quat: np.ndarray | None = None
    qpos: np.ndarray | None = None
    start: np.ndarray | None = None

    def __post_init__(self) -> None:
        for key, dimensions in ARRAYS.items():
            value = getattr(self, key)
            if value is None:
                continue
            try:
                array = np.array(value, np.float64)
            except (TypeError, ValueError):
                raise DataError(f"trajectory {self.name!r}: {key} are not numbers") from None
            if array.ndim != dimensions:
                raise DataError(f"trajectory {self.name!r}: {key} must have {dimensions} dimensions, not {array.ndim}")
            bad = ~np.isfinite(array).reshape(len(array), -1).all(1)
            if bad.any():
                raise DataError(
                    f"trajectory {self.name!r}: {key} are not finite at step {np.flatnonzero(bad)[0]}; leave such "
                    "steps out"
                )
            object.__setattr__(self, key, array)
        steps = len(self.actions)
        if steps < 2:
            raise DataError(f"trajectory {self.name!r} has {steps} steps; it needs at least 2")
        if self.pos is None and self.qpos is None:
            raise DataError(f"trajectory {self.name!r} tracks nothing: give pos (T, 3), or qpos (T, joints)")
        if self.quat is not None and self.pos is None:
            raise DataError(f"trajectory {self.name!r} has quat without pos")
        for key, width in {"pos": 3, "quat": 4, "qpos": None}.items():
            value = getattr(self, key)
            if value is not None and (len(value) != steps or (width is not None and value.shape[1] != width)):
                raise DataError(
                    f"trajectory {self.name!r}: {key} must be ({steps}, {width or 'joints'}), as there are {steps} "
                    f"actions, not {value.shape}"
                )
        if self.quat is not None:
            length = np.linalg.norm(self.quat, axis=1)
            if (np.abs(length - 1) > 1e-2).any():
                at = int(np.argmax(np.abs(length - 1)))
                raise DataError(f"trajectory {self.name!r}: quat at step {at} has length {length[at]:.3g}, not 1")
            exact = (np.abs(length - 1) < 1e-12)[:, None]  # what was written so comes back to the bit
            object.__setattr__(self, "quat", np.where(exact, self.quat, self.quat / length[:, None]))

    def __len__(self) -> int:
        return len(self.actions)

    def arrays(self) -> dict[str, np.ndarray]:
        """What it has, by name."""
        return {key: getattr(self, key) for key in ARRAYS if getattr(self, key) is not None}


@dataclass(frozen=True, kw_only=True, eq=False)
class Trajectories:
    """Recorded motions of one robot under one controller.

    Raises:
        DataError: there is none, two have one name, they track different things or have actions of different size,
            or the rate is no rate.
    """

    robot: str
    control: str
    control_hz: float
    items: tuple[Trajectory, ...]
    tool: tuple[float, ...] = _HERE
    units: str = "card"
    source: str = ""
    notes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", tuple(self.items))
        if not self.items:
            raise DataError("there are no trajectories: a search needs at least one")
        if self.units not in UNITS:
            raise UnknownNameError("unit of actions", self.units, UNITS)
        names = [one.name for one in self.items]
        if twice := {name for name in names if names.count(name) > 1}:
            raise DataError(f"two trajectories are called {sorted(twice)[0]!r}")
        if isinstance(self.control_hz, bool) or not 0 < float(self.control_hz) < 1e6:
            raise DataError(f"control_hz must be a rate in Hz, not {self.control_hz!r}")
        object.__setattr__(self, "control_hz", float(self.control_hz))
        tool = np.array(self.tool, np.float64)
        if tool.shape != (7,) or not np.isfinite(tool).all() or abs(np.linalg.norm(tool[3:]) - 1) > 1e-3:
            raise DataError(f"tool must be a pose (7,) of metres and a unit quaternion wxyz, not {self.tool!r}")
        object.__setattr__(self, "tool", tuple(tool.tolist()))
        for key in ("pos", "quat", "qpos"):
            if len({getattr(one, key) is None for one in self.items}) > 1:
                raise DataError(f"some trajectories have {key} and some do not; split them into two files")
        for key in ("actions", "qpos"):
            widths = {value.shape[1] for one in self.items if (value := getattr(one, key)) is not None}
            if len(widths) > 1:
                raise DataError(f"{key} of the trajectories have {sorted(widths)} columns; they are of several robots")

    def __len__(self) -> int:
        return len(self.items)

    @property
    def tracks(self) -> tuple[str, ...]:
        """Which of pos, quat and qpos there are."""
        return tuple(key for key in ("pos", "quat", "qpos") if getattr(self.items[0], key) is not None)

    @property
    def digest(self) -> str:
        """SHA-256 of everything that a search depends on."""
        header = [self.robot, self.control, self.control_hz, self.tool, self.units]
        content = hashlib.sha256(json.dumps(header).encode())
        for one in self.items:
            for key, value in one.arrays().items():
                content.update(f"{key}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
        return content.hexdigest()

    def some(self, names: Sequence[str]) -> Trajectories:
        """Those of the given names, in that order. Raises :class:`DataError` for one that is not there."""
        known = {one.name: one for one in self.items}
        for name in names:
            if name not in known:
                raise DataError(f"there is no trajectory {name!r}; there are: {', '.join(known)}")
        return Trajectories(**{**self._header(), "items": [known[name] for name in names]})

    def _header(self) -> dict[str, Any]:
        keys = ("robot", "control", "control_hz", "tool", "units", "source", "notes")
        return {key: getattr(self, key) for key in keys}

    def save(self, path: str | Path) -> Path:
        """Write a file that :func:`read_trajectories` reads. Its ending says how: .json, .npz, .h5.

        Raises:
            DataError: another ending, or the file cannot be written.
        """
        path, header = Path(path), {"format": FORMAT, "version": VERSION, **self._header()}
        header["notes"] = dict(self.notes)
        if _ending(path) == ".json":
            items = [{"name": t.name, **{k: v.tolist() for k, v in t.arrays().items()}} for t in self.items]
            write_file(path, json.dumps({**header, "trajectories": items}, indent=1).encode())
            return path
        content = io.BytesIO()
        if _ending(path) == ".npz":
            header["names"] = [t.name for t in self.items]
            named: Any = {f"{k}/{key}": v for k, t in enumerate(self.items) for key, v in t.arrays().items()}
            np.savez_compressed(content, header=np.array(json.dumps(header)), **named)
        else:
            import h5py

            with h5py.File(content, "w", track_order=True) as file:
                file.attrs.update({key: json.dumps(value) for key, value in header.items()})
                for k, one in enumerate(self.items):
                    group = file.create_group(str(k))
                    group.attrs["name"] = one.name
                    for key, value in one.arrays().items():
                        group.create_dataset(key, data=value)
        write_file(path, content.getvalue())
        return path


def read_trajectories(path: str | Path) -> Trajectories:
    """Read a file of trajectories; see the module for the three forms.

    Raises:
        DataError: there is no such file, it is none of these forms or damaged; and as :class:`Trajectories`.
    """
    path = Path(path)
    ending = _ending(path)
    if not path.is_file():
        raise DataError(f"there is no file {path}")
    try:
        header, items = {".json": _read_json, ".npz": _read_npz}.get(ending, _read_hdf5)(path)
    except (OSError, KeyError, TypeError, ValueError, UnicodeError, zipfile.BadZipFile) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} cannot be read as trajectories: {type(error).__name__}: {error}") from None
    if header.get("format") != FORMAT:
        raise DataError(f"{path} is no file of trajectories: its format is {header.get('format')!r}, not {FORMAT!r}")
    if header.get("version") != VERSION:
        raise DataError(f"{path} has version {header.get('version')!r}; this manikin reads version {VERSION}")
    for key, kinds in {"robot": (str,), "control": (str,), "control_hz": (int, float)}.items():
        if not isinstance(header.get(key), kinds):
            raise DataError(f"{path} does not say {key}, or not rightly: {header.get(key)!r}")
    more = {key: header[key] for key in ("tool", "units", "source", "notes") if key in header}
    made = []
    for name, arrays in items:
        if unknown := sorted(set(arrays) - set(ARRAYS)):
            raise DataError(f"{path}: trajectory {name!r} has {', '.join(unknown)}; valid: {', '.join(ARRAYS)}")
        if "actions" not in arrays:
            raise DataError(f"{path}: trajectory {name!r} has no actions")
        made.append(Trajectory(name=name, **arrays))
    return Trajectories(**{k: header[k] for k in ("robot", "control", "control_hz")}, **more, items=tuple(made))


Items = list[tuple[str, dict[str, Any]]]


def _read_json(path: Path) -> tuple[dict[str, Any], Items]:
    header = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(header, dict):
        raise DataError(f"{path} is JSON, but no file of trajectories")
    items = header.pop("trajectories", [])
    return header, [(str(t.pop("name", k)), t) for k, t in enumerate(items)]


def _read_npz(path: Path) -> tuple[dict[str, Any], Items]:
    with np.load(path, allow_pickle=False) as file:
        header = json.loads(str(file["header"]))
        items: Items = [(name, {}) for name in header.pop("names")]
        for word in file.files:
            if word != "header":
                number, _, key = word.partition("/")
                items[int(number)][1][key] = file[word]
    return header, items


def _read_hdf5(path: Path) -> tuple[dict[str, Any], Items]:
    import h5py

    with h5py.File(path, "r") as file:
        header = {key: json.loads(value) for key, value in file.attrs.items()}
        groups = [file[number] for number in sorted(file, key=int)]
        return header, [(str(g.attrs["name"]), {key: g[key][()] for key in g}) for g in groups]


def _ending(path: Path) -> str:
    ending = path.suffix.lower()
    if ending not in _ENDINGS:
        raise DataError(f"trajectories are in files that end in {', '.join(_ENDINGS)}, not {path.name!r}")
    return ending
