"""Writing LeRobotDataset v3.0: parquet and mp4, many episodes to a file, readable by ``lerobot`` itself.

Layout and field names: LeRobot's documentation of dataset format v3.0 (``codebase_version``). While it is being written
every finished episode lies, whole and synced, as one parquet file and one mp4 per camera in ``meta/parts/``; closing
joins them, pictures are not encoded twice, and ``meta/info.json``, without which nothing loads, is written last. A
killed run goes on where it stopped.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from manikin.data.recording.durable import replace_file, sync
from manikin.data.recording.format import flatten
from manikin.data.recording.outside import read_json, reading
from manikin.data.statistics import aggregate, summarize
from manikin.errors import ConfigError, DataError, ManikinError

__all__ = ["OWN", "VERSION", "LeRobotWriter"]

VERSION = "v3.0"
OWN = "manikin/"  # before the names of columns that are not LeRobot's
_DATA_MB, _VIDEO_MB, _CHUNK = 100, 200, 1000  # size of a file, files in a folder: LeRobot's own
_INDEX = {"timestamp": "float32", "frame_index": "int64", "episode_index": "int64", "index": "int64"} | {
    "task_index": "int64"
}
_DATA_PATH = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
_VIDEO_PATH = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
_EPISODES_PATH = "meta/episodes/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"


def _libraries() -> tuple[Any, Any, Any]:
    try:
        import av
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ConfigError(f"LeRobot datasets need pyarrow and PyAV ({error}): pip install 'manikin[data]'") from None
    return av, pyarrow, pyarrow.parquet


class LeRobotWriter:
    """Writes episodes of named per-frame values and camera pictures.

    Args:
        root: a folder that does not exist, or one of an interrupted writer with ``resume``.
        fps: frames per second.
        robot: the dataset's ``robot_type``.
        features: name -> (dtype, shape, names of the numbers or None); dtype ``video`` for (H, W, 3) uint8 pictures.
        source: what it is made of, plain values; what was begun from another source is not resumed.
        resume: go on with what is there.

    Raises:
        ConfigError: pyarrow or PyAV is missing, or a feature is not understood.
        DataError: the folder exists, holds something else, or cannot be written.
    """

    def __init__(
        self,
        root: str | Path,
        *,
        fps: float,
        robot: str,
        features: Mapping[str, tuple[str, tuple[int, ...], Sequence[str] | None]],
        source: Mapping[str, Any] | None = None,
        resume: bool = False,
    ) -> None:
        self._av, self._pa, self._pq = _libraries()
        self.root, self.fps, self.robot = Path(root), fps, robot
        self.features = {name: (dtype, tuple(shape), names) for name, (dtype, shape, names) in features.items()}
        for name, (dtype, shape, _) in self.features.items():
            if dtype not in ("float32", "float64", "int64", "bool", "video") or (dtype == "video" and len(shape) != 3):
                raise ConfigError(f"feature {name!r}: {dtype} {shape} is no float32, float64, int64, bool or video")
            if dtype == "video" and (shape[0] % 2 or shape[1] % 2):
                raise ConfigError(
                    f"{name!r} is {shape[1]} x {shape[0]} pixels; videos have an even number each way: observe the "
                    "episodes anew in another size"
                )
        self.videos = [name for name, (dtype, _, _) in self.features.items() if dtype == "video"]
        self._parts = self.root / "meta" / "parts"
        about = {"fps": fps, "robot": robot, "features": self.features, "source": dict(source or {})}
        if self.root.exists():
            if not resume:
                raise DataError(f"{self.root} exists; choose another name, or resume it")
            _refuse_other(self.root, self._begun(self.root), json.loads(json.dumps(about)))
            return
        # killed in between, nothing of this name may be left that is no dataset
        begun = self.root.with_name(f".{self.root.name}.begun")
        parts = begun / self._parts.relative_to(self.root)
        try:
            parts.mkdir(parents=True, exist_ok=True)
            replace_file(parts / "about.json", json.dumps(about).encode())
            os.replace(begun, self.root)
            sync(self.root.parent)
        except OSError as error:
            raise DataError(f"cannot write {self.root}: {error}") from None

    @classmethod
    def reopen(cls, root: str | Path, *, source: Mapping[str, Any] | None = None) -> LeRobotWriter:
        """The writer of an interrupted dataset, as it was begun.

        Raises:
            DataError: there is none, it is complete, or it was begun from another source than this.
        """
        begun = cls._begun(Path(root))
        with reading(f"{root} is damaged: its about.json does not say how it was begun"):
            return cls(root, resume=True, **(begun if source is None else begun | {"source": source}))

    @staticmethod
    def _begun(root: Path) -> dict[str, Any]:
        parts = root / "meta" / "parts"
        if (root / "meta" / "info.json").is_file():  # killed while it tidied up, if there are parts
            shutil.rmtree(parts, ignore_errors=True)
            if missing := _missing(root):
                raise DataError(
                    f"{root} was completed, but lacks {', '.join(missing)}, which cannot be made from the rest: "
                    "remove the folder and convert again"
                )
            raise DataError(f"{root} is complete: nothing to resume")
        nothing = f"{root} is no interrupted LeRobot dataset of manikin's: nothing to resume"
        return read_json(parts / "about.json", nothing)

    @property
    def finished(self) -> list[int]:
        """Numbers of the episodes that are safe, their videos included."""
        clips = range(len(self.videos))
        parts = [part for part in self._parts.glob("*.parquet") if part.stem.isdecimal()]
        return sorted(int(p.stem) for p in parts if all(p.with_name(f"{p.stem}.{i}.mp4").is_file() for i in clips))

    def write(
        self, number: int, task: str, frames: Mapping[str, np.ndarray], about: Mapping[str, Any] | None = None
    ) -> None:
        """Make one episode durable.

        Args:
            number: any number that is not taken; episodes are joined in their order.
            task: what was asked for, in words.
            frames: every feature, (T, *shape).
            about: further columns of the table of episodes, plain values.

        Raises:
            DataError: a feature is missing, unknown or of another shape, or the disk is full.
        """
        if frames.keys() != self.features.keys():
            raise DataError(
                f"episode {number} has the columns {sorted(frames)}, but the dataset has {sorted(self.features)}"
            )
        length = len(next(iter(frames.values())))
        for name, value in frames.items():
            if value.shape != (length, *self.features[name][1]) or not length:
                raise DataError(f"episode {number}, {name}: {value.shape} is not {(length, *self.features[name][1])}")
        stem = self._parts / f"{number:06d}"
        try:
            for i, key in enumerate(self.videos):
                self._encode(stem.with_name(f"{stem.name}.{i}.mp4"), frames[key])
            columns = {k: self._column(k, v) for k, v in frames.items() if k not in self.videos}
            stats = {k: summarize(v, picture=k in self.videos) for k, v in frames.items()}
            kept = {b"task": task.encode(), b"stats": json.dumps(stats).encode(), b"length": str(length).encode()}
            kept[b"about"] = json.dumps(dict(about or {})).encode()
            table = self._pa.table(columns).replace_schema_metadata(kept)
            temporary = stem.with_suffix(".tmp")
            self._pq.write_table(table, temporary)
            sync(temporary)
            os.replace(temporary, stem.with_suffix(".parquet"))  # last: an episode with this file is whole
            sync(self._parts)
        except (OSError, self._av.FFmpegError) as error:
            for path in self._parts.glob(f"{stem.name}.*"):
                path.unlink(missing_ok=True)
            raise DataError(f"cannot write episode {number}: {error}; what was written before it is safe") from None

    def _column(self, name: str, value: np.ndarray) -> Any:
        dtype, shape, _ = self.features[name]
        kind = {"float32": self._pa.float32(), "float64": self._pa.float64(), "int64": self._pa.int64()}.get(
            dtype, self._pa.bool_()
        )
        flat = self._pa.array(np.ascontiguousarray(value).reshape(-1).astype(dtype), kind)
        size = int(np.prod(shape))
        return flat if shape == (1,) else self._pa.FixedSizeListArray.from_arrays(flat, size)

    def _encode(self, path: Path, pictures: np.ndarray) -> None:
        temporary = path.with_suffix(".tmp")
        with self._av.open(str(temporary), "w", format="mp4") as container:
            stream = container.add_stream(_codec(self._av), rate=Fraction(self.fps).limit_denominator(1001))
            stream.height, stream.width, stream.pix_fmt = *pictures.shape[1:3], "yuv420p"
            # a key picture every second frame, as LeRobot has it: training reads frames in any order
            stream.codec_context.gop_size = 2
            stream.codec_context.thread_count = 1  # so that the same comes out on any number of cores
            # mbtree reads beyond small pictures, so that now and then another film comes out of the same pictures
            x264 = {"crf": "18", "bf": "0", "mbtree": "0"}
            stream.options = x264 if stream.codec_context.name == "libx264" else {}
            for picture in pictures:
                container.mux(stream.encode(self._av.VideoFrame.from_ndarray(picture, format="rgb24")))
            container.mux(stream.encode())
        sync(temporary)
        os.replace(temporary, path)

    @classmethod
    def gathered(cls, root: str | Path, parts: Iterable[str | Path]) -> LeRobotWriter:
        """The writer of a dataset whose episodes others have made durable: they are moved here from their folders.

        Args:
            root: of the dataset; a folder of an earlier call that was interrupted is gone on with.
            parts: the folders, each of a writer with the same features and source that was not closed.

        Raises:
            DataError: the dataset is complete, a folder holds none, or was begun in another way.
        """
        writer = None
        for part in map(Path, parts):
            begun = cls._begun(part)
            with reading(f"{part} is damaged: its about.json does not say how it was begun"):
                writer = cls(root, resume=True, **begun)  # refuses what was begun in another way
            for path in sorted((part / "meta" / "parts").iterdir()):
                if path.name != "about.json":
                    shutil.copyfile(path, writer._parts / f"{path.name}.tmp")
                    os.replace(writer._parts / f"{path.name}.tmp", writer._parts / path.name)
        if writer is None:
            raise DataError(f"{root}: no finished episode, so there is no dataset")
        return writer

    # ---- joining -------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Join the episodes into files and write what describes them. Nothing is removed before that is done.

        Raises:
            DataError: there is no episode, a video is damaged, or the disk is full; with ``resume`` one can go on.
        """
        numbers = self.finished
        if not numbers:
            raise DataError(f"{self.root}: no finished episode, so there is no dataset")
        try:
            self.join_parts(numbers)
        except ManikinError:
            raise
        except Exception as error:
            raise DataError(
                f"cannot complete {self.root}: {error}. Every episode is safe in {self._parts}; remove the cause, "
                "then run the command again with --resume (resume=True)"
            ) from None
        shutil.rmtree(self._parts)

    def join_parts(self, numbers: Sequence[int]) -> None:
        paths = [self._parts / f"{number:06d}.parquet" for number in numbers]
        kept = [self._pq.read_schema(path).metadata for path in paths]
        tasks = list(dict.fromkeys(about[b"task"].decode() for about in kept))
        lengths = [int(about[b"length"]) for about in kept]
        stats = [json.loads(about[b"stats"]) for about in kept]
        more = [json.loads(about.get(b"about", b"{}")) for about in kept]
        columns = dict.fromkeys(name for each in more for name in each)
        rows: list[dict[str, Any]] = []
        start = 0
        for i, (about, length) in enumerate(zip(kept, lengths, strict=True)):
            task = about[b"task"].decode()
            rows.append({"episode_index": i, "tasks": [task], "length": length})
            rows[-1] |= {"dataset_from_index": start, "dataset_to_index": start + length}
            rows[-1] |= {name: more[i].get(name) for name in columns}
            index = self._index(i, length, start, tasks.index(task))
            stats[i] |= {name: summarize(column) for name, column in index.items()}
            start += length
        for at, files in _grouped(paths, _DATA_MB):
            tables = []
            for i in files:
                table = self._pq.read_table(paths[i]).replace_schema_metadata(None)
                row = rows[i]
                row |= {"data/chunk_index": at // _CHUNK, "data/file_index": at % _CHUNK}
                index = self._index(i, row["length"], row["dataset_from_index"], tasks.index(row["tasks"][0]))
                for name, column in index.items():
                    table = table.append_column(name, self._pa.array(column))
                tables.append(table)
            self._table(_DATA_PATH.format(**_place(at)), self._pa.concat_tables(tables))
        for k, key in enumerate(self.videos):
            clips = [path.with_name(f"{path.stem}.{k}.mp4") for path in paths]
            for at, files in _grouped(clips, _VIDEO_MB):
                target = self.root / _VIDEO_PATH.format(video_key=key, **_place(at))
                self._join(target, {clips[i]: rows[i]["length"] for i in files})
                seconds = 0.0
                for i in files:
                    rows[i] |= {f"videos/{key}/chunk_index": at // _CHUNK, f"videos/{key}/file_index": at % _CHUNK}
                    rows[i][f"videos/{key}/from_timestamp"] = seconds
                    seconds += rows[i]["length"] / self.fps
                    rows[i][f"videos/{key}/to_timestamp"] = seconds
        for row, stat in zip(rows, stats, strict=True):
            row |= {f"stats/{name}/{what}": value for name, of in stat.items() for what, value in of.items()}
            row |= {"meta/episodes/chunk_index": 0, "meta/episodes/file_index": 0}
        self._table(_EPISODES_PATH.format(**_place(0)), self._pa.Table.from_pylist(rows))
        self._tasks(tasks)
        replace_file(self.root / "meta" / "stats.json", json.dumps(aggregate(stats), indent=1).encode())
        replace_file(self.root / "meta" / "info.json", json.dumps(self._info(lengths, tasks), indent=1).encode())

    def _index(self, episode: int, length: int, start: int, task: int) -> dict[str, np.ndarray]:
        """The columns that every LeRobot dataset has."""
        frame = np.arange(length)
        return {
            "timestamp": (frame / self.fps).astype(np.float32),
            "frame_index": frame,
            "episode_index": np.full(length, episode),
            "index": start + frame,
            "task_index": np.full(length, task),
        }

    def _table(self, name: str, table: Any) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        self._pq.write_table(table, path)
        sync(path)

    def _tasks(self, tasks: list[str]) -> None:
        """The table of tasks, whose index, in pandas' convention, is the text."""
        table = self._pa.table({"task_index": np.arange(len(tasks)), "task": tasks})
        column = {"field_name": "task_index", "name": "task_index", "pandas_type": "int64", "numpy_type": "int64"}
        text = {"field_name": "task", "name": "task", "pandas_type": "unicode", "numpy_type": "object"}
        pandas = {"index_columns": ["task"], "column_indexes": [], "columns": [column, text]}
        self._table("meta/tasks.parquet", table.replace_schema_metadata({b"pandas": json.dumps(pandas).encode()}))

    def _join(self, target: Path, clips: Mapping[Path, int]) -> None:
        """One film after the other, packets as they are; each with as many pictures as its episode has frames."""
        target.parent.mkdir(parents=True, exist_ok=True)
        with self._av.open(str(target), "w", format="mp4") as out:
            stream, end = None, 0
            for clip, length in clips.items():
                count = 0
                with self._av.open(str(clip), format="mp4") as source:
                    video = source.streams.video[0]
                    if stream is None:
                        stream = out.add_stream_from_template(video)
                        stream.time_base = video.time_base
                    last = 0
                    for packet in source.demux(video):
                        if packet.dts is None:
                            continue
                        count += 1
                        last = max(last, packet.pts + packet.duration)
                        packet.pts, packet.dts, packet.stream = packet.pts + end, packet.dts + end, stream
                        out.mux(packet)
                    end += last
                if count != length:
                    raise DataError(
                        f"the video {clip} is damaged: {count} pictures for {length} frames; remove it and resume, "
                        "which writes its episode again"
                    )
        sync(target)

    def _info(self, lengths: list[int], tasks: list[str]) -> dict[str, Any]:
        features: dict[str, Any] = {}
        for name, (dtype, shape, names) in self.features.items():
            features[name] = {"dtype": dtype, "shape": list(shape), "names": list(names) if names else None}
            if dtype == "video":
                features[name]["names"] = ["height", "width", "channels"]
                features[name]["info"] = {
                    "video.height": shape[0],
                    "video.width": shape[1],
                    "video.codec": "h264" if _codec(self._av) == "libx264" else _codec(self._av),
                    "video.pix_fmt": "yuv420p",
                    "video.is_depth_map": False,
                    "video.fps": _plain(self.fps),
                    "video.channels": 3,
                    "has_audio": False,
                }
        features |= {name: {"dtype": dtype, "shape": [1], "names": None} for name, dtype in _INDEX.items()}
        return {
            "codebase_version": VERSION,
            "robot_type": self.robot,
            "total_episodes": len(lengths),
            "total_frames": sum(lengths),
            "total_tasks": len(tasks),
            "chunks_size": _CHUNK,
            "data_files_size_in_mb": _DATA_MB,
            "video_files_size_in_mb": _VIDEO_MB,
            "fps": _plain(self.fps),
            "splits": {"train": f"0:{len(lengths)}"},
            "data_path": _DATA_PATH,
            "video_path": _VIDEO_PATH if self.videos else None,
            "features": features,
        }

    def __enter__(self) -> LeRobotWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()


def _refuse_other(root: Path, then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise :class:`DataError` where a dataset was begun otherwise; says in what."""
    a, b = flatten(then), flatten(now)
    each = "; ".join(f"{k}: {a.get(k)!r} then, {b.get(k)!r} now" for k in sorted(a | b) if a.get(k) != b.get(k))
    if each:
        raise DataError(
            f"{root} cannot be resumed with other options: {each}. Repeat the first command, or write to another folder"
        )


def _missing(root: Path) -> list[str]:
    """Files of a complete dataset that are not there, or empty."""
    _, _, pq = _libraries()
    damaged = f"{root} was completed, but is damaged (remove it and convert again)"
    info = read_json(root / "meta/info.json", damaged)
    with reading(damaged):
        table = _EPISODES_PATH.format(**_place(0))
        if not (root / table).is_file():
            return [table]
        names = {"meta/tasks.parquet", "meta/stats.json"}
        videos = [name for name, feature in info["features"].items() if feature["dtype"] == "video"]
        for row in pq.read_table(root / table).to_pylist():
            for key, pattern in (("data", _DATA_PATH), *((f"videos/{name}", _VIDEO_PATH) for name in videos)):
                at = {what: row[f"{key}/{what}"] for what in ("chunk_index", "file_index")}
                names.add(pattern.format(video_key=key.removeprefix("videos/"), **at))
    return sorted(name for name in names if not (root / name).is_file() or not (root / name).stat().st_size)


def _plain(number: float) -> float | int:
    return int(number) if float(number).is_integer() else float(number)


def _codec(av: Any) -> str:
    return "libx264" if "libx264" in av.codecs_available else "mpeg4"


def _place(file: int) -> dict[str, int]:
    return {"chunk_index": file // _CHUNK, "file_index": file % _CHUNK}


def _grouped(paths: Sequence[Path], megabytes: int) -> Iterator[tuple[int, list[int]]]:
    """(number of the file, which of the paths go into it): at least one, together at most so large."""
    files: list[int] = []
    file = size = 0
    for i, path in enumerate(paths):
        this = path.stat().st_size
        if files and size + this > megabytes * 1e6:
            yield file, files
            file, files, size = file + 1, [], 0
        files.append(i)
        size += this
    yield file, files
