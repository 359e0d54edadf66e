"""Writing episodes so that a killed process loses at most those in flight. The scheme is explained in ``format.py``."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

import h5py
import numpy as np
import torch

from manikin.data.block import by_shape, merge_blocks, write_block
from manikin.data.durable import replace_file, sync, try_room
from manikin.data.format import (
    PER_STEP,
    Episode,
    Header,
    differences,
    flatten,
    parts_folder,
    read_header,
    write_header,
)
from manikin.data.labels import Keep, Tracker
from manikin.data.read import EpisodeFile
from manikin.env.arrays import to_numpy
from manikin.errors import DataError
from manikin.spec.labels import PLAIN

__all__ = ["EpisodeWriter", "Recorder", "check_room", "initial_state", "largest_episode", "outcome_of"]


class EpisodeWriter:
    """Append episodes to a recording. Each is on disk, whole and synced, when :meth:`write` returns.

    Several processes may write different numbers to one recording, each with ``resume=True``.

    Args:
        path: the recording, for example ``run.h5``.
        header: what the episodes have in common.
        resume: continue a recording that exists (an interrupted one, or a finished one); otherwise it is an error.

    A file is made by the first episode that is written, kept or dropped; without one there is none.

    Raises:
        DataError: the recording exists and ``resume`` is off, or it was made by another environment, or otherwise; or
            the folder cannot be written to.
    """

    def __init__(self, path: str | Path, header: Header, *, resume: bool = False) -> None:
        self.path = Path(path)
        self.header = header
        self._parts = parts_folder(self.path)
        self.finished: set[int] = set()
        self.dropped: set[int] = set()
        try:
            self._begin(resume)
        except OSError as error:
            raise DataError(f"cannot write {self.path}: {error}") from None
        if not self.header.created:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            self.header = dataclasses.replace(self.header, created=now)

    def _begin(self, resume: bool) -> None:
        """Make the folder of parts, and look at what there is already."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(self.path.parent):  # while another process merges, parts are on their way
            exists = self.path.exists() or any(self._parts.glob("*.h5"))
            if exists and not resume:
                raise DataError(f"{self.path} exists; choose another name, or resume it")
            if exists:
                with EpisodeFile(self.path) as old:
                    if old.header is not None:
                        if different := differences(old.header, self.header):
                            said = "; ".join(different)
                            raise DataError(
                                f"{self.path} cannot be resumed, it was recorded differently: {said}. "
                                "Resume it as it was begun, or write to another file"
                            )
                        self.header = old.header
                    self.dropped = set(old.dropped)
                    self.finished = set(old.numbers) | self.dropped
            self._parts.mkdir(exist_ok=True)

    def write(self, *episodes: Episode, dropped: Sequence[int] = ()) -> None:
        """Make finished episodes durable (a few milliseconds, however many).

        Args:
            episodes: whole ones, with numbers that are not taken.
            dropped: numbers of episodes that were run and are not kept, so that a resumed run leaves them out.

        Raises:
            DataError: a number is taken, arrays differ in length, or the disk is full.
        """
        numbers = [*(e.number for e in episodes), *dropped]
        for number in numbers:
            if number in self.finished:
                raise DataError(f"{self.path} already has episode {number}")
        if not numbers:
            return
        # made in memory: no HDF5 file is ever open for writing on disk
        with h5py.File(f"{numbers[0]}.h5", "w", driver="core", backing_store=False) as file:
            write_header(file, self.header)
            for i, group in enumerate(by_shape(episodes)):
                write_block(file.create_group(f"block_{i}"), group)
            if dropped:
                file["dropped"] = np.asarray(dropped, np.int64)
            file.flush()
            image = file.id.get_file_image()
        with _alone(self.path.parent):
            _put(self._parts / f"{min(numbers):06d}.h5", image)
        self.finished.update(numbers)
        self.dropped.update(dropped)

    def close(self, *, merge: bool = True) -> None:
        """Merge the parts into one file. ``merge=False`` leaves them, which the reader takes as well."""
        if merge and self._parts.exists():
            with _alone(self.path.parent):
                _merge(self.path, self._parts, self.header)

    def __enter__(self) -> EpisodeWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _merge(path: Path, parts: Path, header: Header) -> None:
    sources = [*([path] if path.exists() else []), *sorted(parts.glob("*.h5"))]
    if not sources:  # nothing was finished
        with suppress(OSError):  # another process has begun, or is done
            parts.rmdir()
        return
    dropped: set[int] = set()
    for source in sources:
        with h5py.File(source, "r") as file:
            if different := differences(header, read_header(file, source)):
                raise DataError(
                    f"{source} and {path} were recorded differently and are not merged: {'; '.join(different)}; "
                    "every episode stays where it is"
                )
            dropped.update(file["dropped"][()].tolist() if "dropped" in file else ())
    temporary = path.with_name(path.name + ".tmp")
    temporary.unlink(missing_ok=True)  # of a merge that was killed
    needed = sum(source.stat().st_size for source in sources)
    try:
        try_room(temporary, needed)
        with h5py.File(temporary, "w") as target:
            write_header(target, header)
            merge_blocks(target, sources)
            if dropped:
                target["dropped"] = np.array(sorted(dropped), np.int64)
        sync(temporary)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        free = shutil.disk_usage(path.parent).free
        raise DataError(
            f"cannot merge into {path}: {error}. {free / 1e6:.1f} MB are free, up to {needed / 1e6:.1f} MB are needed; "
            f"every episode is safe in {parts} and reads from there"
        ) from None
    os.replace(temporary, path)
    sync(path.parent)
    for source in sources:
        if source.parent == parts:
            source.unlink()
    with suppress(OSError):  # not empty: another process is still writing
        parts.rmdir()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a lock on the folder, so that of several processes one merges at a time. Where there is none, go on."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _put(path: Path, content: bytes) -> None:
    """Make a part durable."""
    try:
        path.parent.mkdir(exist_ok=True)  # another process may have merged and removed it
        replace_file(path, content)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error}; what was written before it is safe") from None


def initial_state(snapshot: Any) -> list[dict[str, np.ndarray]]:
    """One row after the other of a snapshot as named arrays, ready for a file.

    Args:
        snapshot: what ``Env.save`` gave.

    Returns:
        per row: name -> array without the row dimension. Values that are not per row are left out.
    """
    found: dict[int, dict[str, np.ndarray]] = {}
    for which, piece in snapshot.pieces:
        tree = {name: getattr(piece, name) for name in ("state", "model", "served", "health", "extra")}
        leaves = {}
        for name, leaf in flatten(tree).items():
            array = to_numpy(leaf)
            if array.ndim and len(array) == len(piece) and array.dtype.kind in "biuf":
                leaves[name] = array
        found |= {row: {name: array[i] for name, array in leaves.items()} for i, row in enumerate(which.tolist())}
    return [found[i] for i in range(len(snapshot))]


def outcome_of(reward: Any, terminated: Any, truncated: Any, info: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """What observers are told of a control step, from what ``Env.step`` gave: rewards, terminated, truncated, success
    and fail, each (N,), as ``flags/NAME`` each boolean or number per row that the task says, and as
    ``reward_terms/NAME`` what the reward is made of.
    """
    outcome = {
        "rewards": to_numpy(reward),
        "terminated": to_numpy(terminated),
        "truncated": to_numpy(truncated),
        "success": to_numpy(info["success"]),
        "fail": to_numpy(info["fail"]) if "fail" in info else np.zeros(len(reward), bool),
    }
    flags = {name: value for name, value in info.items() if name not in ("success", "fail") and _is_flag(value)}
    outcome |= {f"flags/{name}": to_numpy(value) for name, value in flags.items()}
    return outcome | {f"reward_terms/{k}": to_numpy(v) for k, v in info.get("reward_terms", {}).items()}


def _is_flag(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.ndim == 1 and not value.dtype.is_complex


def largest_episode(env: Any, *, observations: bool = False, states: bool = True) -> int:
    """Bytes that an episode of an environment takes at most while it is being recorded: one that lasts to the horizon,
    not compressed.

    Args:
        env: the environment.
        observations: whether what the policy is shown is kept.
        states: whether the physics state is.
    """
    state = max(8 * len(one.physics_states([0])[0]) for one in env.buckets)
    seen = _space_bytes(env.single_observation_space) if observations else 0
    step = 4 * (env.single_action_space.shape[0] + len(env.force_names) + len(env.joint_names) + 32)
    return int((env.horizon + 1) * (step + (state if states else 0) + seen) + 4 * state + 4096)


def _space_bytes(space: Any) -> int:
    if isinstance(space, Mapping):  # gymnasium's Dict is one
        return sum(_space_bytes(inner) for inner in space.values())
    return int(np.prod(space.shape, dtype=np.int64)) * space.dtype.itemsize


def check_room(path: Path, needed: int) -> None:
    """Refuse what the disk has no room for.

    Raises:
        DataError: less than ``needed`` bytes are free where ``path`` will be; says how many there are.
    """
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise DataError(
            f"{path} may need {needed / 1e9:.2f} GB while it is written, and {free / 1e9:.2f} GB are free on its disk; "
            "record fewer episodes or less of each (no observations, no states), or write to another disk"
        )


class Recorder:
    """Collects what happens in every row and writes each episode when it ends. An observer of the runner.

    Args:
        env: the environment whose episodes are recorded (autoreset "disabled").
        path: the recording.
        policy: name of who acts.
        observations: also keep what the policy was shown.
        states: also keep the float64 physics state of every step (about 0.5 kB per step), which lets a failed
            verification say by how much it differs.
        keep: "all" episodes, only those with "success" at any time, "failure", or the modes named in "label:A,B".
        first_seed: episode k is to have the seed ``first_seed`` + k; a resumed recording must have the same.
        resume: continue a recording that exists; ``finished`` says which numbers it has.
        source: of which recording this one is a replay, see :class:`~manikin.data.format.Header`.

    Attributes:
        tracker: follows what happens in every row.

    Raises:
        UnknownNameError: unknown ``keep``.
        DataError: as :class:`EpisodeWriter`.
    """

    def __init__(
        self,
        env: Any,
        path: str | Path,
        *,
        policy: str = "",
        observations: bool = False,
        states: bool = True,
        keep: str = "all",
        first_seed: int | None = None,
        resume: bool = False,
        source: Mapping[str, Any] | None = None,
    ) -> None:
        labels = getattr(getattr(env, "task", None), "labels", PLAIN)
        self._keep = Keep(keep, labels.modes)
        self.tracker = Tracker(labels, env.num_envs)
        self.env = env
        self._with = {"observations": observations, "states": states}
        recorded = {**self._with, "keep": keep} | ({} if first_seed is None else {"first_seed": first_seed})
        header = Header(fingerprint=env.fingerprint(), policy=policy, recorded=recorded, source=source or {})
        self.writer = EpisodeWriter(path, header, resume=resume)
        self._number = np.full(env.num_envs, -1)
        self._step = np.zeros(env.num_envs, np.int64)
        self._buffers: dict[str, np.ndarray] = {}
        self._start: dict[int, dict[str, Any]] = {}
        self._states: dict[int, list[np.ndarray]] = {}  # of rows whose layouts differ, these differ in length

    @property
    def finished(self) -> set[int]:
        """Numbers of the episodes that need not run again: those on disk, and those run and not kept."""
        return self.writer.finished

    @property
    def kept(self) -> set[int]:
        """Numbers of the episodes on disk."""
        return self.writer.finished - self.writer.dropped

    def start(self, rows: np.ndarray, numbers: np.ndarray, observation: Any, options: Mapping[str, Any]) -> None:
        """Episodes ``numbers`` begin in ``rows`` with these reset options; ``observation`` is that of all rows."""
        snapshot = self.env.save(rows)
        instructions = self.env.instruction
        for i, (row, initial) in enumerate(zip(rows.tolist(), initial_state(snapshot), strict=True)):
            self._number[row], self._step[row] = numbers[i], 0
            self.tracker.reset([row])
            self._states[row] = []
            self._start[row] = {
                "seed": int(initial["extra/seed"]),
                "index": int(initial["extra/index"]),
                "options": dict(options),
                "initial": initial,
                "instruction": instructions[row],
            }
        self._store_instant(rows, observation)

    def step(self, rows: np.ndarray, actions: Any, observation: Any, outcome: Mapping[str, Any]) -> None:
        """One control step of ``rows``; ``outcome`` as the runner gives it."""
        at = self._step[rows]
        self._put("actions", self.env.horizon, rows, at, to_numpy(actions)[rows].astype(np.float32))
        prefix = "flags/"
        flags = {k.removeprefix(prefix): v for k, v in outcome.items() if k.startswith(prefix)}
        self.tracker.step(rows, {**flags, "success": outcome["success"], "fail": outcome["fail"]})
        for name, value in outcome.items():
            self._put(name, self.env.horizon, rows, at, to_numpy(value)[rows])
        self._put("forces", self.env.horizon, rows, at, to_numpy(self.env.forces)[rows])
        self._step[rows] += 1
        self._store_instant(rows, observation)

    def finish(self, rows: np.ndarray, health: np.ndarray) -> None:
        """The episodes in ``rows`` have ended: write them."""
        made = [self._episode(row, int(bits)) for row, bits in zip(rows.tolist(), health, strict=True)]
        self._number[rows] = -1
        kept = [e for e in made if self._keep(e.success_once, e.mode)]
        self.writer.write(*kept, dropped=[e.number for e in made if e not in kept])

    def _episode(self, row: int, health: int) -> Episode:
        """What the buffers hold of the episode in a row; views."""
        length, b = int(self._step[row]), self._buffers

        def under(prefix: str, count: int) -> dict[str, np.ndarray]:
            return {k.removeprefix(prefix): v[row, :count] for k, v in b.items() if k.startswith(prefix)}

        steps: dict[str, Any] = {k: b[k][row, :length] for k in PER_STEP}
        story = self.tracker.story(row)
        return Episode(
            number=int(self._number[row]),
            **self._start.pop(row),
            **steps,
            state_hash=b["state_hash"][row, : length + 1],
            states=np.stack(self._states.pop(row)) if self._with["states"] else None,
            observations=under("observations/", length + 1) or None,
            flags=under("flags/", length),
            forces=dict(zip(self.env.force_names, b["forces"][row, :length].T, strict=True)),
            reward_terms=under("reward_terms/", length),
            joints=dict(zip(self.env.joint_names, b["joints"][row, : length + 1].T, strict=True)),
            health=health,
            mode=self.tracker.labels.label(story),
        )

    def close(self, *, merge: bool = True) -> None:
        """Merge what is finished into one file; episodes in flight are dropped."""
        self.writer.close(merge=merge)

    def _store_instant(self, rows: np.ndarray, observation: Any) -> None:
        at, most = self._step[rows], self.env.horizon + 1
        self._put("state_hash", most, rows, at, to_numpy(self.env.state_hash(rows)))
        self._put("joints", most, rows, at, to_numpy(self.env.joints)[rows])
        if self._with["states"]:
            for row, state in zip(rows.tolist(), self.env.physics_states(rows), strict=True):
                self._states[row].append(state)
        if self._with["observations"]:
            for name, value in flatten(observation).items():
                self._put(f"observations/{name}", most, rows, at, to_numpy(value)[rows])

    def _put(self, name: str, length: int, rows: np.ndarray, at: np.ndarray, value: np.ndarray) -> None:
        buffer = self._buffers.get(name)
        if buffer is None:
            buffer = np.zeros((self.env.num_envs, length, *value.shape[1:]), value.dtype)
            self._buffers[name] = buffer
        buffer[rows, at] = value
