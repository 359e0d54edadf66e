"""Writing and reading datasets of Minari, the format of Gymnasium's makers for offline reinforcement learning.

A dataset is a folder ``NAME-vN`` with ``data/main_data.hdf5`` and ``data/metadata.json``. Each group ``episode_K`` has
observations (T + 1, ...) in nested groups, actions, rewards, terminations and truncations (T, ...), and attributes id,
seed and total_steps. Layout: Minari's documentation of dataset standards. The library itself is not needed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import h5py
import numpy as np

from manikin.data.recording.durable import replace_file, room_of, sync, try_room
from manikin.data.recording.format import Header, RecordedEpisode, flatten, parted
from manikin.data.recording.outside import open_hdf5, read_json, reading
from manikin.errors import ConfigError, DataError

__all__ = ["MinariEpisode", "MinariExport", "read_minari"]

MAIN, ABOUT = "main_data.hdf5", "metadata.json"
LAYOUT = "0.5.4"
"""The version of Minari whose layout this is."""


class MinariExport:
    """Writes episodes as a Minari dataset. The folder appears when it is whole.

    Args:
        root: the dataset's folder, called ``NAME-vN``; it must not exist. What lies above it is what Minari calls
            ``MINARI_DATASETS_PATH``.
        header: of the recording.
        columns: gives the name of each number of a flat observation, ``policy/qpos[0]``; asked where there is one.

    Raises:
        ConfigError: the folder is not called ``NAME-vN``.
        DataError: the folder exists, or cannot be written.
    """

    def __init__(self, root: str | Path, header: Header, *, columns: Callable[[], Sequence[str]]) -> None:
        self.root, self._header, self._columns = Path(root), header, columns
        if not re.fullmatch(r"[\w-]+-v\d+", self.root.name, re.ASCII):
            raise ConfigError(f"a Minari dataset is called NAME-vN, like {self.root.name.partition('.')[0]}-v0")
        if self.root.exists():
            raise DataError(f"{self.root} exists; choose another name")
        self._temporary = self.root.with_name(f".{self.root.name}.tmp")
        self._steps, self._spaces = 0, dict[str, Any]()
        try:
            shutil.rmtree(self._temporary, ignore_errors=True)
            (self._temporary / "data").mkdir(parents=True)
            self._path = self._temporary / "data" / MAIN
            try_room(self._path, room_of([]))
            self._file = h5py.File(self._path, "w", track_order=True)
        except OSError as error:
            raise DataError(f"cannot write {self.root}: {error}") from None

    def finished(self) -> set[int]:
        """None: a dataset is written in one piece."""
        return set()

    def write(self, episode: RecordedEpisode, place: int) -> None:
        """Add an episode as number ``place``.

        Raises:
            DataError: it holds no observations, or the disk is full; no folder is left.
        """
        if not episode.observations:
            self.abandon()
            raise DataError(
                f"episode {episode.number} holds no observations; convert with what to observe (--observe state_dict, "
                "--observe rgb), which plays the actions again"
            )
        seen = parted(episode.observations, self._columns, self._header.task)
        values = {f"observations/{name}": np.asarray(value) for name, value in seen.items()}
        values |= {"actions": episode.actions, "rewards": np.asarray(episode.rewards, np.float64)}
        values |= {"terminations": episode.terminated, "truncations": episode.truncated}
        values["infos/success"] = episode.success
        try:
            try_room(self._path, room_of(values.values()))
            group = self._file.create_group(f"episode_{place}")
            about = {"id": place, "seed": episode.seed, "total_steps": len(episode)}
            group.attrs.update(about | {f"manikin/{name}": value for name, value in episode.summary.items()})
            for name, value in values.items():
                squeeze = {"compression": "gzip", "compression_opts": 1} if value.dtype == np.uint8 else {}
                group.create_dataset(name, data=value, chunks=True, **squeeze)
            self._file.flush()
        except OSError as error:
            self.abandon()
            raise DataError(f"cannot write {self.root}: {error}; no folder is left") from None
        self._steps += len(episode)
        self._spaces = {name: (value.dtype, value.shape[1:]) for name, value in values.items()}

    def close(self) -> None:
        """Finish the dataset. Raises :class:`DataError` when nothing was written to it, or the disk is full."""
        count = len(self._file)
        if not count:
            self.abandon()
            raise DataError("no episode was converted, so there is no dataset")
        try:
            self._file.close()
            sync(self._path)
            replace_file(self._path.with_name(ABOUT), json.dumps(self._about(count)).encode())
            os.replace(self._temporary, self.root)
            sync(self.root.parent)
        except OSError as error:
            self.abandon()
            raise DataError(f"cannot write {self.root}: {error}; no folder is left") from None

    def _about(self, count: int) -> dict[str, Any]:
        made = self._header.fingerprint
        prefix = "observations/"
        observed = {name.removeprefix(prefix): of for name, of in self._spaces.items() if name.startswith(prefix)}
        given = {name: made.get(name) for name in ("robot", "control", "control_hz")}
        spec = gymnasium.envs.registration.EnvSpec(
            f"manikin/{self._header.task}",
            entry_point="manikin.env.make:make_single",
            kwargs={"task_id": self._header.task, "observe": "state_dict", **given},
        )
        dtype, shape = self._spaces["actions"]
        return {
            "dataset_id": self.root.name,
            "total_episodes": count,
            "total_steps": self._steps,
            "data_format": "hdf5",
            "jpeg_encoding": False,
            "observation_space": json.dumps(_dict_space(observed)),
            "action_space": json.dumps(_box(dtype, shape, -1.0, 1.0)),
            "env_spec": spec.to_json(),
            "algorithm_name": self._header.policy or "unknown",
            "minari_version": LAYOUT,
            "dataset_size": round(self._path.stat().st_size / 1e6, 1),
        }

    def abandon(self) -> None:
        """Leave nothing."""
        self._file.close()
        shutil.rmtree(self._temporary, ignore_errors=True)


def _dict_space(values: Mapping[str, Any]) -> dict[str, Any]:
    """The space of observations by path, as Minari writes it."""
    spaces: dict[str, Any] = {}
    for path, (dtype, shape) in values.items():
        *groups, last = path.split("/")
        inner = spaces
        for name in groups:
            inner = inner.setdefault(name, {"type": "Dict", "subspaces": {}})["subspaces"]
        low, high = (0, 255) if dtype == np.uint8 else (float("-inf"), float("inf"))
        inner[last] = _box(dtype, shape, low, high)
    return {"type": "Dict", "subspaces": spaces}


def _box(dtype: Any, shape: tuple[int, ...], low: float, high: float) -> dict[str, Any]:
    if np.issubdtype(dtype, np.bool_):
        low, high, dtype = 0, 1, np.dtype(np.int8)
    elif np.issubdtype(dtype, np.integer) and dtype != np.uint8:
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    bounds = (np.full(shape, bound).tolist() for bound in (low, high))
    return {"type": "Box", "dtype": str(dtype), "shape": list(shape), **dict(zip(("low", "high"), bounds, strict=True))}


@dataclass(frozen=True, kw_only=True, eq=False)
class MinariEpisode:
    """One episode of T steps.

    Attributes:
        number: its place in the dataset.
        seed: that it was reset with, None where it is not known.
        observations: by path (T + 1, ...); of a dataset without names there is one, ``""``.
        actions: (T, ...) by path likewise. rewards, terminations, truncations: (T,).
    """

    number: int
    seed: int | None
    observations: dict[str, np.ndarray]
    actions: dict[str, np.ndarray]
    rewards: np.ndarray
    terminations: np.ndarray
    truncations: np.ndarray


def read_minari(root: str | Path) -> Iterator[MinariEpisode]:
    """The episodes of a Minari dataset on this disk, one after the other.

    Args:
        root: its folder ``NAME-vN``.

    Raises:
        DataError: it is none, is damaged, is not stored as HDF5, or has pictures in JPEG.
    """
    folder = Path(root) / "data"
    about = read_json(folder / ABOUT, f"{root} is no Minari dataset")
    if about.get("data_format", "hdf5") != "hdf5":
        raise DataError(f"{root} is stored as {about['data_format']!r}; manikin reads Minari datasets in HDF5")
    if about.get("jpeg_encoding", False) and '"uint8"' in str(about.get("observation_space", "")):
        raise DataError(f"{root} has pictures in JPEG; write it with jpeg_encoding=False")
    with open_hdf5(folder / MAIN) as file, reading(f"{root} is damaged"):
        for number in range(int(about["total_episodes"])):
            group = file[f"episode_{number}"]
            seed = group.attrs.get("seed")
            steps = {name: np.asarray(group[name]) for name in ("rewards", "terminations", "truncations")}
            episode = MinariEpisode(
                number=number,
                seed=None if seed is None else int(seed),
                observations=_arrays(group["observations"]),
                actions=_arrays(group["actions"]),
                **steps,
            )
            length = len(episode.rewards)
            lengths = {len(v) for v in (*steps.values(), *episode.actions.values())}
            if lengths != {length} or {len(v) for v in episode.observations.values()} != {length + 1}:
                raise DataError(f"{root}: the arrays of episode {number} have different lengths")
            yield episode


def _arrays(item: Any) -> dict[str, np.ndarray]:
    """What is in a group by path, or the one dataset by the empty path."""
    if isinstance(item, h5py.Dataset):
        return {"": np.asarray(item)}
    return flatten({name: _tree(part) for name, part in item.items()})


def _tree(item: Any) -> Any:
    return np.asarray(item) if isinstance(item, h5py.Dataset) else {name: _tree(part) for name, part in item.items()}
