"""Recordings as their page needs them: a list, an episode without its pictures, a picture. No simulator."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from manikin.data.recording.format import RecordedEpisode
from manikin.data.recording.outside import read_json, reading
from manikin.data.recording.read import EpisodeFile
from manikin.errors import ConfigError, DataError
from manikin.moved import old_names

__all__ = ["LeRobotSource", "RecordingSource", "EpisodeSource", "is_recording", "open_source"]

_SEEN = "instants/observations/"
_OWN = "manikin/"  # columns of the table of episodes that this project adds
_INDEX = ("timestamp", "frame_index", "episode_index", "index", "task_index")


class EpisodeSource(Protocol):
    """Episodes of a file or folder. Called from many threads."""

    def about(self) -> dict[str, Any]:
        """What they have in common, and ``episodes``: a dict of each."""

    def episode(self, number: int) -> dict[str, Any]:
        """Everything of one but its pictures: ``plots`` of named lines, and which ``cameras`` there are."""

    def picture(self, number: int, camera: str, at: int) -> np.ndarray:
        """(H, W, 3) uint8 at an instant: 0 is before the first action."""

    def close(self) -> None:
        """Close the files."""


def is_recording(word: str) -> bool:
    """Whether a word of the command line means a recording and not a task: an HDF5 file, or a LeRobot folder."""
    path = Path(word)
    return path.suffix in (".h5", ".hdf5", ".parts") or (path.is_dir() and (path / "meta").is_dir())


def open_source(path: str | Path) -> EpisodeSource:
    """A recording of this project, or a LeRobotDataset v3.0.

    Raises:
        DataError: it cannot be read; says why.
    """
    return LeRobotSource(path) if Path(path).is_dir() and Path(path).suffix != ".parts" else RecordingSource(path)


def _plot(title: str, unit: str, lines: Mapping[str, Any], *, start: int, bold: str = "") -> dict[str, Any]:
    """Lines over the instants of an episode; the first value of each stands at instant ``start``."""
    values = {name: np.asarray(line, np.float64).reshape(-1).tolist() for name, line in lines.items()}
    return {"title": title, "unit": unit, "start": start, "bold": bold, "lines": values}


class RecordingSource:
    """HDF5 of this project; what is damaged is listed and the rest is shown."""

    def __init__(self, path: str | Path) -> None:
        self._file = EpisodeFile(path, strict=False)
        if self._file.header is None:
            self._file.close()
            raise DataError(f"{path} has no finished episode")
        self._header, self._lock = self._file.header, threading.Lock()  # HDF5 takes one reader at a time

    def about(self) -> dict[str, Any]:
        made = self._header.fingerprint
        names = {"number", "seed", "index", "length", "return", "mode", "success_once", "success_at_end", "health"}
        names |= {"force_peak", "force_sum", "instruction"}
        with self._lock:
            rows = [self._file.attributes(number) for number in self._file.numbers]
        return {
            "name": self._file.path.name,
            "facts": [
                *(str(made[k]) for k in ("task", "robot", "control") if made.get(k)),
                *([f"policy {self._header.policy}"] if self._header.policy else []),
                *([f"{made['control_hz']:g} Hz"] if made.get("control_hz") else []),
                *([self._header.created] if self._header.created else []),
            ],
            "hz": made.get("control_hz") or 20.0,
            "damaged": self._file.damaged,
            "dropped": len(self._file.dropped),
            "episodes": [{k: _plain(v) for k, v in row.items() if k in names} for row in rows],
        }

    def episode(self, number: int) -> dict[str, Any]:
        with self._lock:
            e = self._file.episode(number, observations=False)
            shapes = self._file.shapes(number)
        cameras = [
            n.removeprefix(_SEEN) for n, shape in shapes.items() if n.startswith(_SEEN) and _is_picture(n, shape)
        ]
        missing = ""
        if not cameras:
            missing = (
                "This recording holds no pictures. To make some: "
                f"manikin replay {self._file.path} --observe rgb --out {self._file.path.stem}-rgb.h5"
            )
        flags = {"success": e.success, "fail": e.fail, **e.flags}
        on = {name: np.asarray(v).tolist() for name, v in flags.items() if np.asarray(v).dtype == bool}
        return {
            "number": number,
            "length": len(e),
            "instruction": e.instruction,
            "options": dict(e.options),
            "cameras": sorted(cameras),
            "missing": missing,
            "plots": self._plots(e),
            "flags": on,
        }

    def _plots(self, e: RecordedEpisode) -> list[dict[str, Any]]:
        names = self._header.fingerprint.get("action_names") or []
        names = names if len(names) == e.actions.shape[1] else [f"action {i}" for i in range(e.actions.shape[1])]
        actions = dict(zip(names, e.actions.T, strict=True))
        numbers = {name: v for name, v in e.flags.items() if np.asarray(v).dtype != bool}
        plots = [
            _plot("actions", "", actions, start=0),
            _plot("joints", "rad or m", e.joints, start=0),
            _plot("contact force", "N", e.forces, start=1, bold="total"),
            _plot("reward", "", {"reward": e.rewards}, start=1, bold="reward"),
            _plot("reward terms", "", e.reward_terms, start=1),
            _plot("numbers", "", numbers, start=1),
        ]
        return [plot for plot in plots if plot["lines"]]

    def picture(self, number: int, camera: str, at: int) -> np.ndarray:
        with self._lock:
            image = self._file.array(number, _SEEN + camera, at)
            first = image if image.dtype == np.uint8 else self._file.array(number, _SEEN + camera, 0)
        return _shown(image, first)

    def close(self) -> None:
        self._file.close()


class LeRobotSource:
    """A LeRobotDataset v3.0: parquet and mp4. Pictures are decoded when they are asked for."""

    def __init__(self, root: str | Path) -> None:
        self._root, self._lock = Path(root), threading.Lock()
        try:
            import pyarrow.parquet as parquet
        except ImportError as error:
            raise ConfigError(f"LeRobot datasets need pyarrow ({error}): pip install 'manikin[data]'") from None
        self._parquet, meta = parquet, self._root / "meta"
        if (meta / "parts").is_dir() and not (meta / "info.json").is_file():
            raise DataError(f"{root} is not complete: manikin convert ... {root} --resume goes on with it")
        cannot = f"{root} is no LeRobotDataset v3.0 that can be read"
        self._info = read_json(meta / "info.json", cannot)
        with reading(cannot):
            version = str(self._info["codebase_version"])
            if version.split(".")[0] != "v3":
                raise ValueError(f"it is of version {version}")
            self._info["fps"] = fps = float(self._info["fps"])
            if not 0 < fps < math.inf:
                raise ValueError(f"it has {fps} frames per second")
            files = sorted((meta / "episodes").rglob("*.parquet"))
            rows = [row for file in files if file.is_file() for row in parquet.read_table(file).to_pylist()]
            self._rows = {int(row["episode_index"]): row for row in rows}
            self._features: dict[str, Any] = dict(self._info["features"])
            if not self._rows:
                raise ValueError(f"{meta / 'episodes'} lists no episode")
            self._videos = [name for name, f in self._features.items() if f["dtype"] == "video"]
            self._listed = [self._line(number, row) for number, row in sorted(self._rows.items())]

    @staticmethod
    def _line(number: int, row: Mapping[str, Any]) -> dict[str, Any]:
        """An episode in the list."""
        own = {k.removeprefix(_OWN): v for k, v in row.items() if k.startswith(_OWN) and v is not None}
        return {**own, "number": number, "length": int(row["length"]), "instruction": ", ".join(row["tasks"])}

    def about(self) -> dict[str, Any]:
        info = self._info
        return {
            "name": self._root.name,
            "facts": [
                f"LeRobotDataset {info['codebase_version']}",
                *([str(info["robot_type"])] if info.get("robot_type") else []),
                f"{info['fps']:g} Hz",
            ],
            "hz": info["fps"],
            "damaged": [],
            "dropped": 0,
            "episodes": self._listed,
        }

    def episode(self, number: int) -> dict[str, Any]:
        with reading(f"episode {number} of {self._root} is damaged"):
            return self._episode(number, self._row(number))

    def _episode(self, number: int, row: Mapping[str, Any]) -> dict[str, Any]:
        length, start = int(row["length"]), int(row["dataset_from_index"])
        path = self._place(self._info["data_path"], row, "data")
        wanted = [("index", ">=", start), ("index", "<", start + length)]
        table = self._parquet.read_table(path, filters=wanted)
        if len(table) != length:
            raise DataError(f"episode {number}: {path} holds {len(table)} of its {length} frames")
        plots, flags = [], {}
        for name, feature in self._features.items():
            if feature["dtype"] in ("video", "image", "string") or name in _INDEX:
                continue
            values = np.array(table[name].to_pylist()).reshape(length, -1)
            if feature["dtype"] == "bool":
                flags[name] = values[:, 0].tolist()
            else:
                names = _flat(feature.get("names")) or [f"{name}[{i}]" for i in range(values.shape[1])]
                names = names if len(names) == values.shape[1] else [str(i) for i in range(values.shape[1])]
                lines = dict(zip(names, values.T, strict=True))
                plots.append(_plot(name, "", lines, start=0))
        return {
            "number": number,
            "length": length - 1,
            "instruction": ", ".join(row["tasks"]),
            "options": {},
            "cameras": self._videos,
            "missing": "" if self._videos else "This dataset holds no video.",
            "plots": plots,
            "flags": flags,
        }

    def picture(self, number: int, camera: str, at: int) -> np.ndarray:
        row = self._row(number)
        if camera not in self._videos or not 0 <= at < int(row["length"]):
            raise DataError(f"episode {number} has no picture {at} of {camera!r}")
        try:
            import av
        except ImportError as error:
            raise ConfigError(f"videos need PyAV ({error}): pip install 'manikin[video]'") from None
        fps = float(self._info["fps"])
        with reading(f"episode {number} of {self._root}: a picture of {camera} cannot be read"):
            path = self._place(self._info["video_path"], row, f"videos/{camera}", video_key=camera)
            wanted = float(row[f"videos/{camera}/from_timestamp"]) + at / fps
            # as mp4 and nothing else: a playlist would lead to other files
            with self._lock, av.open(str(path), format="mp4") as container:
                stream = container.streams.video[0]
                assert stream.time_base is not None
                container.seek(int(wanted / stream.time_base), stream=stream)
                for frame in container.decode(stream):
                    if frame.time is not None and frame.time >= wanted - 0.5 / fps:
                        return np.asarray(frame.to_ndarray(format="rgb24"))
        raise DataError(f"episode {number}: the video {path} ends before {wanted:.2f} s")

    def close(self) -> None:
        pass

    def _row(self, number: int) -> dict[str, Any]:
        if number not in self._rows:
            raise DataError(f"{self._root} has no episode {number}")
        return self._rows[number]

    def _place(self, pattern: str, row: Mapping[str, Any], prefix: str, **more: str) -> Path:
        """The file of an episode. Raises DataError where it is missing, or not in the dataset's folder."""
        chunk, file = int(row[f"{prefix}/chunk_index"]), int(row[f"{prefix}/file_index"])
        path = self._root / pattern.format(chunk_index=chunk, file_index=file, **more)
        if ".." in path.parts or not path.is_relative_to(self._root):
            raise DataError(f"{self._root} names a file outside itself: {path}")
        if not path.is_file():
            what = "the video" if prefix.startswith("videos/") else "the table"
            raise DataError(f"episode {row['episode_index']}: {what} {path} is missing")
        return path


def _flat(names: Any) -> list[str]:
    """LeRobot writes names as a list, or as a dict of lists."""
    if isinstance(names, Mapping):
        return [name for value in names.values() for name in _flat(value)]
    return [str(name) for name in names] if isinstance(names, Iterable) and not isinstance(names, str) else []


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _is_picture(name: str, shape: tuple[int, ...]) -> bool:
    return (len(shape) == 4 and shape[-1] == 3 and name.endswith("rgb")) or name.endswith("/depth")


def _shown(image: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Colours as they are; depth in grey, near is bright, the scale that of the episode's ``first`` picture."""
    if image.dtype == np.uint8 and image.ndim == 3 and image.shape[2] == 3:
        return image
    far = float(np.nan_to_num(first.astype(np.float64), posinf=0.0).max()) or 1.0
    near = 1.0 - np.clip(np.nan_to_num(image.astype(np.float64), posinf=far) / far, 0.0, 1.0)
    grey = (255 * near).astype(np.uint8).reshape(image.shape[0], image.shape[1], 1)
    return np.repeat(grey, 3, 2)


__getattr__ = old_names(__name__)
