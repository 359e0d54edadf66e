"""Batches for training, read from recordings as they go: chunks of actions, stacks of frames, bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manikin.data.recording.block import Block
from manikin.data.recording.outside import reading
from manikin.data.recording.read import EpisodeFile
from manikin.data.replay.environment import keep_recorded
from manikin.data.statistics import aggregate, summarize
from manikin.errors import ConfigError, DataError, UnknownNameError
from manikin.rng import EpisodeRng

__all__ = ["Dataset", "Normalizer"]

_PARTS = 8  # runs of episodes that are shuffled together
_COPIES = 3  # of what is shuffled together, at a time: runs as read, joined, and the batches made of them


@dataclass(frozen=True)
class _Run:
    """Neighbouring episodes of a block, read as one."""

    block: Block
    first: int
    last: int  # inclusive
    source: int


class Dataset:
    """Frames of recordings for imitation learning; iterating gives the batches of one epoch after another.

    A batch is a dictionary: ``observations`` by name, each (B, stack, ...), the last of a stack is the present;
    ``actions`` (B, chunk, A) float32, from the present on, as the controller took them: within [-1, 1]; ``padded``
    (B, chunk) bool, behind the end of the episode, where the last action is repeated; ``source``, ``episode`` and
    ``step`` (B,) int64, where the frame is from. Before an episode's beginning its first observation is repeated.

    In an epoch each frame comes once. Runs of neighbouring episodes are read as a whole in random order, and the frames
    of several runs are shuffled together, so that memory is bounded however long the recordings are; recordings that
    fit are shuffled throughout. The order depends on ``seed`` and the number of the epoch alone.

    Args:
        paths: one recording or several of the same robot and controller.
        batch_size: frames in a batch.
        chunk: actions per frame.
        stack: observations per frame.
        observations: names as in :attr:`available`; default all that a policy may see, nothing privileged. A flat
            ``value`` recorded with ``state`` mixes both, so it has to be named.
        keep: ``all``; ``success``, episodes that succeeded at any time; ``failure``; ``label:MODE,MODE``.
        shuffle: otherwise frames come in the order of the recording.
        drop_last: leave out an epoch's last batch where it is smaller.
        seed: of the order.
        memory_mb: bound on what is held at a time [MB]; a single episode is always read as a whole.

    Attributes:
        available: names of all observations recorded, in their order.
        observations: those in a batch.
        episodes, frames: how many.
        epoch: number of the epoch that the next iteration plays; set it to go on where a run was interrupted.

    Raises:
        DataError: nothing recorded, no observations in it, no episode to keep, or recordings that do not go together.
        UnknownNameError: an observation, or a mode, that is not there.
        ConfigError: an option that makes no sense.
    """

    def __init__(
        self,
        paths: str | Path | Sequence[str | Path],
        *,
        batch_size: int = 256,
        chunk: int = 1,
        stack: int = 1,
        observations: Sequence[str] | None = None,
        keep: str = "all",
        shuffle: bool = True,
        drop_last: bool = False,
        seed: int = 0,
        memory_mb: float = 1024.0,
    ) -> None:
        for name, value in (("batch_size", batch_size), ("chunk", chunk), ("stack", stack)):
            if not _is_whole(value) or not 1 <= value <= 1_000_000:
                raise ConfigError(f"{name} must be a positive integer, a million at most; got {value!r:.80}")
        if isinstance(memory_mb, bool) or not isinstance(memory_mb, int | float) or not memory_mb > 0:
            raise ConfigError(f"memory_mb must be positive; got {memory_mb!r:.80}")
        if not _is_whole(seed) or not 0 <= seed < 2**63:
            raise ConfigError(f"seed must be an integer between 0 and 2^63 - 1; got {seed!r:.80}")
        for name, value in (("shuffle", shuffle), ("drop_last", drop_last)):
            if not isinstance(value, bool):
                raise ConfigError(f"{name} must be True or False; got {value!r:.80}")
        given = [paths] if isinstance(paths, str | Path) else paths
        if not isinstance(given, Sequence) or not all(isinstance(path, str | Path) for path in given):
            raise ConfigError(f"paths must be one recording or several; got {paths!r:.80}")
        self.paths = [Path(path) for path in given]
        if not self.paths:
            raise DataError("paths is empty; give at least one recording, for example Dataset('run.h5')")
        self.batch_size, self.chunk, self.stack, self.seed = batch_size, chunk, stack, seed
        self.shuffle, self.drop_last, self.epoch = shuffle, drop_last, 0
        self._files = [EpisodeFile(path) for path in self.paths]
        _check_alike(self._files)
        blocks = [(i, block, ks) for i, file in enumerate(self._files) for block, ks in file.blocks()]
        shapes = {_shapes(block) for _, block, _ in blocks}
        if not shapes:
            self._files[0].needed_header()  # says why there is no episode
        if len(shapes) > 1:
            raise DataError(
                "the recordings' arrays differ in shape (other robots, sizes or objects); make one Dataset for each "
                "recording"
            )
        self.available = [name for name, _ in next(iter(shapes)) if name != "actions"]
        if not self.available:
            raise DataError(
                f"{self.paths[0]} holds no observations: record with --observations, or observe its episodes anew with "
                f"'manikin replay {self.paths[0].name} --observe state_dict --out NEW.h5'"
            )
        if isinstance(observations, str) or not isinstance(observations, Sequence | None):
            raise ConfigError(f"observations must be a list of names; got {observations!r:.80}")
        self.observations = tuple(self._shown() if observations is None else observations)
        for name in self.observations:
            if name not in self.available:
                raise UnknownNameError("observation", name, self.available)
        modes = (str(mode) for _, block, _ in blocks for mode in block.table["mode"])
        wanted = keep_recorded(keep, modes, (file.header for file in self._files))

        def kept(block: Block, k: int) -> bool:
            return wanted(bool(block.table["success_once"][k]), str(block.table["mode"][k]))

        chosen = [(i, block, [k for k in ks if kept(block, k)]) for i, block, ks in blocks]
        self.episodes = sum(len(ks) for *_, ks in chosen)
        self.frames = sum(int(block.table["length"][k]) for _, block, ks in chosen for k in ks)
        if not self.frames:
            raise DataError(
                f"no episode of {', '.join(map(str, self.paths))} matches keep={keep!r}; valid: all, success, "
                "failure, label:MODE"
            )
        most = memory_mb * 1e6 / (_COPIES * _PARTS)
        self._runs = [run for i, block, ks in chosen for run in self._split(i, block, ks, most)]

    def _shown(self) -> list[str]:
        """What a policy may see."""
        headers = [file.header for file in self._files if file.header is not None]
        mixed = any(header.fingerprint.get("observe") == "state" for header in headers)
        hidden = ("privileged/", "value") if mixed else ("privileged/",)
        shown = [name for name in self.available if not name.startswith(hidden)]
        if not shown:
            raise DataError(
                f"all observations in {self.paths[0]} may be privileged: {', '.join(self.available)}. To read them "
                f"anyway, name them: observations=[{self.available[0]!r}]. To record others: manikin replay "
                f"{self.paths[0].name} --observe state_dict --out NEW.h5"
            )
        return shown

    def _split(self, source: int, block: Block, episodes: list[int], most: float) -> Iterator[_Run]:
        """Runs of neighbours that take at most so many bytes."""
        with reading(f"{block.where} is damaged"):
            data = [block.datasets[self._place(name)] for name in self._names]
            frame = sum(one.dtype.itemsize * _size(one) for one in data)
        first = last = -1
        for k in episodes:
            if first >= 0 and k == last + 1 and (block.steps[k + 1] - block.steps[first]) * frame <= most:
                last = k
                continue
            if first >= 0:
                yield _Run(block, first, last, source)
            first = last = k
        if first >= 0:
            yield _Run(block, first, last, source)

    @property
    def _names(self) -> tuple[str, ...]:
        return (*self.observations, "actions")

    @staticmethod
    def _place(name: str) -> str:
        """Where in a block it is."""
        return "steps/actions" if name == "actions" else f"instants/observations/{name}"

    def __len__(self) -> int:
        """Batches in an epoch."""
        return self.frames // self.batch_size if self.drop_last else -(-self.frames // self.batch_size)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The batches of epoch :attr:`epoch`, which counts on when they are through."""
        order = np.arange(len(self._runs))
        if self.shuffle:
            order = _shuffled(len(order), self.seed, self.epoch, 0)
        left: dict[str, np.ndarray] | None = None
        for turn, at in enumerate(range(0, len(order), _PARTS)):
            pool = FramePool([self._read(self._runs[i]) for i in order[at : at + _PARTS]], self.chunk, self.stack)
            frames = np.arange(pool.frames)
            if self.shuffle:
                frames = _shuffled(pool.frames, self.seed, self.epoch, turn + 1)
            start = 0
            if left is not None:  # frames that were left of the pool before fill the first batch
                start = self.batch_size - len(left["step"])
                left = _joined([left, pool.take(frames[:start])])
                if len(left["step"]) < self.batch_size:
                    continue
                yield _batch(left)
                left = None
            for a in range(start, len(frames), self.batch_size):
                taken = pool.take(frames[a : a + self.batch_size])
                if len(taken["step"]) < self.batch_size:
                    left = taken
                else:
                    yield _batch(taken)
        if left is not None and not self.drop_last:
            yield _batch(left)
        self.epoch += 1

    def _read(self, run: _Run) -> dict[str, np.ndarray]:
        """Arrays of a run. Observations are without the last of each episode, which has no action."""
        block, first, last = run.block, run.first, run.last
        lengths = block.table["length"][first : last + 1]
        whose = f"episodes {block.numbers[first]} to {block.numbers[last]}"
        out: dict[str, np.ndarray] = {}
        for name in self._names:
            place = self._place(name)
            rows = slice(block.span(place, first).start, block.span(place, last).stop)
            values = block.read(place, rows, whose)
            if name == "actions":
                out[name] = np.clip(values, -1.0, 1.0)
            else:  # one instant more than steps in every episode: leave the last out
                out[name] = np.delete(values, np.cumsum(lengths + 1) - 1, 0)
        out["length"] = lengths
        out["episode"] = block.table["number"][first : last + 1].astype(np.int64)
        out["source"] = np.full(len(lengths), run.source, np.int64)
        return out

    @cached_property
    def statistics(self) -> dict[str, dict[str, Any]]:
        """Of ``actions`` and each observation that is not a picture: min, max, mean, std, quantiles, count.

        Lists of the shape of one frame. Exact but for quantiles, the mean of the episodes' own. Reads everything once.
        """
        found = []
        for run in self._runs:
            arrays = self._read(run)
            ends = np.cumsum(arrays["length"])
            for a, b in zip(ends - arrays["length"], ends, strict=True):
                values = {name: arrays[name][a:b] for name in self._names if arrays[name].dtype != np.uint8}
                found.append({name: summarize(value) for name, value in values.items()})
        return aggregate(found)

    def close(self) -> None:
        """Close the files. Idempotent."""
        for file in self._files:
            file.close()

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Normalizer(torch.nn.Module):
    """Brings observations and actions to a common scale, and back. Its numbers are buffers: saved with a policy.

    Args:
        statistics: of :attr:`Dataset.statistics`.
        kind: ``mean_std``: mean 0 and standard deviation 1; ``min_max``: from -1 to 1. What never changes is only
            shifted.

    Raises:
        UnknownNameError: no such kind.
    """

    def __init__(self, statistics: Mapping[str, Mapping[str, Any]], kind: str = "mean_std") -> None:
        super().__init__()
        if kind not in ("mean_std", "min_max"):
            raise UnknownNameError("kind of normalization", kind, ("mean_std", "min_max"))
        self.names = tuple(statistics)
        for i, of in enumerate(statistics.values()):
            low, high = (torch.tensor(of[k], dtype=torch.float64) for k in ("min", "max"))
            if kind == "min_max":
                shift, scale = (low + high) / 2, (high - low) / 2
            else:
                shift, scale = (torch.tensor(of[k], dtype=torch.float64) for k in ("mean", "std"))
            still = (scale <= 1e-6 * torch.maximum(low.abs(), high.abs())) | (scale == 0)
            self.register_buffer(f"shift{i}", shift.float())
            self.register_buffer(f"scale{i}", torch.where(still, 1.0, scale).float())

    def _numbers(self, name: str) -> tuple[Tensor, Tensor]:
        if name not in self.names:
            raise UnknownNameError("normalized value", name, self.names)
        i = self.names.index(name)
        return self.get_buffer(f"shift{i}"), self.get_buffer(f"scale{i}")

    def normalize(self, name: str, value: Tensor) -> Tensor:
        """``value`` (..., of one frame) of an observation or of ``actions``, scaled."""
        shift, scale = self._numbers(name)
        return (value - shift) / scale

    def restore(self, name: str, value: Tensor) -> Tensor:
        """The inverse of :meth:`normalize`: from what a network gives to an action."""
        shift, scale = self._numbers(name)
        return value * scale + shift

    def forward(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """A batch of :class:`Dataset` with everything scaled but pictures."""
        seen = batch["observations"].items()
        scaled = {name: self.normalize(name, v) if name in self.names else v for name, v in seen}
        return {**batch, "observations": scaled, "actions": self.normalize("actions", batch["actions"])}


class FramePool:
    """Frames of several runs, any of which can be taken."""

    def __init__(self, parts: Sequence[dict[str, np.ndarray]], chunk: int, stack: int) -> None:
        self._arrays = _joined(parts)
        length = self._arrays.pop("length")
        end = np.cumsum(length)
        self.frames = int(end[-1])
        self._first, self._last = np.repeat(end - length, length), np.repeat(end - 1, length)
        self._episode, self._source = (np.repeat(self._arrays.pop(k), length) for k in ("episode", "source"))
        self._ahead, self._back = np.arange(chunk), np.arange(1 - stack, 1)

    def take(self, frames: np.ndarray) -> dict[str, np.ndarray]:
        first, last = self._first[frames], self._last[frames]
        ahead = frames[:, None] + self._ahead
        back = np.maximum(frames[:, None] + self._back, first[:, None])
        within = np.minimum(ahead, last[:, None])
        out = {name: values[within if name == "actions" else back] for name, values in self._arrays.items()}
        where = {"source": self._source[frames], "episode": self._episode[frames], "step": frames - first}
        return {**out, "padded": ahead > last[:, None], **where}


def _joined(parts: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return parts[0] if len(parts) == 1 else {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}


def _batch(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    tensors = {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in arrays.items()}
    rest = {name: tensors.pop(name) for name in ("actions", "padded", "source", "episode", "step")}
    return {"observations": tensors, **rest}


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _size(data: Any) -> int:
    return int(np.prod(data.shape[1:], dtype=np.int64))


def _shapes(block: Block) -> tuple[Any, ...]:
    """What the blocks of a dataset have in common."""
    prefix = "instants/observations/"
    with reading(f"{block.where} is damaged"):
        return tuple(
            (name.removeprefix(prefix) if name.startswith(prefix) else "actions", (d.dtype.str, d.shape[1:]))
            for name, d in block.datasets.items()
            if name.startswith(prefix) or name == "steps/actions"
        )


def _check_alike(files: Sequence[EpisodeFile]) -> None:
    headers = []
    for file in files:
        if file.header is None:
            raise DataError(f"{file.path} has no finished episode")
        headers.append(file.header.fingerprint)
    versions: dict[str, dict[str, Path]] = {}
    for h, f in zip(headers, files, strict=True):
        task = str(h.get("task", ""))
        versions.setdefault(task.rpartition("-v")[0] or task, {}).setdefault(task, f.path)
    for tasks in versions.values():
        if len(tasks) > 1:
            each = "; ".join(f"{task} in {path}" for task, path in tasks.items())
            raise DataError(f"recordings of one dataset are of the same version of a task: {each}")
    for name in ("robot", "control", "control_hz"):
        found = {str(h.get(name)): f.path for h, f in zip(headers, files, strict=True)}
        if len(found) > 1:
            each = "; ".join(f"{value} in {path}" for value, path in found.items())
            raise DataError(f"recordings of one dataset have the same {name}: {each}")


def _shuffled(count: int, seed: int, epoch: int, turn: int) -> np.ndarray:
    rng = EpisodeRng(torch.tensor([seed]), torch.tensor([epoch]))
    return rng.permutation(f"dataset/{turn}", count)[0].numpy()
