"""The file format of recorded episodes: HDF5, one file with many episodes, documented in docs/data.md.

Root attributes
    format = "manikin-episodes", format_version = 1
    task, robot, control, observe (str), physics_hz, control_hz (float), horizon (int, control steps), model_hash,
    processor (str), config, versions (JSON), fingerprint (JSON: everything needed to build the environment again),
    policy (str: who acted), created (str: UTC, ISO 8601)
Group ``episodes/000000`` (its number in the list of episodes), with T control steps and A action dimensions
    attributes: seed, index (int64: the key of all randomness), options (JSON: what reset was given beside them),
        length = T, instruction, health (bits, 0 is healthy), success_once, success_at_end (bool), return (float)
    actions (T, A) float32     rewards (T,) float32     terminated, truncated, success, fail (T,) bool
    state_hash (T+1,) int64    hash of the physics state before step 0 and after every step
    initial/...                the complete snapshot of the start, float64 physics state included
    states (T+1, S) float64    optional: physics state at the same instants as state_hash
    observations/... (T+1, ..) optional: what the policy was shown, and last what it would have been shown

Datasets carry Fletcher-32 checksums, so that a flipped bit is an error and not another number.

Why episodes are written as they are: HDF5 keeps its tables in memory and a process killed while a file is open for
writing can leave the whole file unreadable. So an open HDF5 file never holds anything that was not safe before. Every
finished episode becomes a complete small file of this same format, made in memory, written under a temporary name,
synced, and renamed into ``NAME.h5.parts/``. Closing merges the parts into ``NAME.h5`` in the same way (temporary name,
sync, rename) and only then removes them. At every instant each finished episode is in at least one complete file, and
the reader takes both places.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from manikin.errors import DataError

__all__ = [
    "FORMAT",
    "FORMAT_VERSION",
    "PER_STEP",
    "Episode",
    "Header",
    "flatten",
    "group_name",
    "parts_folder",
    "read_episode",
    "read_header",
    "to_numpy",
    "write_episode",
    "write_header",
]

FORMAT = "manikin-episodes"
FORMAT_VERSION = 1

# name -> dtype of what every episode has, (T, ...) or (T + 1, ...)
PER_STEP: dict[str, type] = {
    "actions": np.float32,
    "rewards": np.float32,
    "terminated": np.bool_,
    "truncated": np.bool_,
    "success": np.bool_,
    "fail": np.bool_,
}


@dataclass(frozen=True, kw_only=True)
class Header:
    """What is common to all episodes of a file. ``fingerprint`` is ``Env.fingerprint()``: plain JSON values."""

    fingerprint: Mapping[str, Any]
    policy: str = ""
    created: str = ""

    @property
    def task(self) -> str:
        """Id with version, for example ``PickCube-v1``."""
        return str(self.fingerprint.get("task", ""))

    @property
    def processor(self) -> str:
        """Kind of processor that recorded; the same bits are promised on the same kind only."""
        return str(self.fingerprint.get("machine", {}).get("processor", ""))


@dataclass(frozen=True, kw_only=True, eq=False)
class Episode:
    """One recorded episode of T control steps. NumPy arrays; see the module for shapes and types."""

    number: int
    seed: int
    index: int = 0
    actions: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    success: np.ndarray
    fail: np.ndarray
    state_hash: np.ndarray
    initial: Mapping[str, np.ndarray] = field(default_factory=dict)
    states: np.ndarray | None = None
    observations: Mapping[str, np.ndarray] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    instruction: str = ""
    health: int = 0

    def __len__(self) -> int:
        return len(self.actions)

    @property
    def success_once(self) -> bool:
        return bool(self.success.any())

    @property
    def success_at_end(self) -> bool:
        return bool(len(self.success) and self.success[-1])

    @property
    def return_(self) -> float:
        """Sum of rewards, added in float64 and in order, so that it does not depend on how many are kept."""
        return float(np.add.accumulate(self.rewards, dtype=np.float64)[-1]) if len(self) else 0.0


def parts_folder(path: Path) -> Path:
    """Where finished episodes of an open recording lie."""
    return path.with_name(path.name + ".parts")


def group_name(number: int) -> str:
    """Where an episode lies in the file."""
    return f"episodes/{number:06d}"


def to_numpy(value: Any) -> np.ndarray:
    """A torch tensor (any device) or array-like as NumPy, without importing torch."""
    return value.detach().cpu().numpy() if hasattr(value, "detach") else np.asarray(value)


def flatten(tree: Any, prefix: str = "") -> dict[str, Any]:
    """Leaves of nested mappings by path: ``{"a": {"b": x}}`` -> ``{"a/b": x}``; a bare leaf is ``{"value": x}``."""
    if not isinstance(tree, Mapping):
        return {prefix or "value": tree}
    leaves: dict[str, Any] = {}
    for key, value in tree.items():
        leaves |= flatten(value, f"{prefix}/{key}" if prefix else str(key))
    return leaves


def write_header(file: Any, header: Header) -> None:
    """Root attributes of an open h5py file."""
    fingerprint = dict(header.fingerprint)
    file.attrs["format"] = FORMAT
    file.attrs["format_version"] = FORMAT_VERSION
    for key, value in fingerprint.items():
        file.attrs[key] = value if isinstance(value, str | int | float) else json.dumps(value, sort_keys=True)
    file.attrs["fingerprint"] = json.dumps(fingerprint, sort_keys=True)
    file.attrs["processor"] = header.processor
    file.attrs["policy"] = header.policy
    file.attrs["created"] = header.created
    file.require_group("episodes")


def read_header(file: Any, path: Path) -> Header:
    """Check that an open h5py file is a recording that can be read here.

    Raises:
        DataError: another program's file, or a newer format.
    """
    found = file.attrs.get("format")
    if found != FORMAT:
        inside = ", ".join(sorted(file)[:4]) or "nothing"
        raise DataError(
            f"{path} is HDF5 but not a manikin recording: attribute 'format' is {found!r} instead of {FORMAT!r} "
            f"(it holds: {inside})"
        )
    version = int(file.attrs.get("format_version", 0))
    if not 1 <= version <= FORMAT_VERSION:
        raise DataError(
            f"{path} has format version {version}; this manikin reads 1 to {FORMAT_VERSION}. "
            "It was written by a newer manikin: update to read it."
        )
    try:
        fingerprint = json.loads(file.attrs["fingerprint"])
        return Header(fingerprint=fingerprint, policy=str(file.attrs["policy"]), created=str(file.attrs["created"]))
    except (KeyError, ValueError, TypeError) as error:
        raise DataError(f"{path} is damaged: its header cannot be read ({error})") from None


def write_episode(file: Any, episode: Episode) -> None:
    """Add one episode to an open h5py file.

    Raises:
        DataError: arrays of different lengths.
    """
    length = len(episode)
    group = file.create_group(group_name(episode.number))
    values: dict[str, np.ndarray] = {k: np.asarray(getattr(episode, k), dtype=t) for k, t in PER_STEP.items()}
    values["state_hash"] = np.asarray(episode.state_hash, dtype=np.int64)
    if episode.states is not None:
        values["states"] = np.asarray(episode.states, dtype=np.float64)
    for name, value in (episode.observations or {}).items():
        values[f"observations/{name}"] = np.asarray(value)
    _check_lengths(values, length, f"episode {episode.number}")
    values |= {f"initial/{name}": np.asarray(value) for name, value in episode.initial.items()}
    for name, value in values.items():
        if value.ndim and value.size:
            # whole-array chunks: an episode is read as a whole, and the checksum needs chunks
            big = value.nbytes > 4096
            group.create_dataset(
                name,
                data=value,
                chunks=value.shape if value.nbytes < 1 << 20 else True,
                fletcher32=True,
                compression="gzip" if big else None,
                compression_opts=1 if big else None,
                shuffle=big,
            )
        else:
            group.create_dataset(name, data=value)
    group.attrs["seed"] = np.int64(episode.seed)
    group.attrs["index"] = np.int64(episode.index)
    try:
        group.attrs["options"] = json.dumps(dict(episode.options), sort_keys=True)
    except TypeError as error:
        raise DataError(f"episode {episode.number}: reset options must be plain values: {error}") from None
    group.attrs["length"] = length
    group.attrs["instruction"] = episode.instruction
    group.attrs["health"] = episode.health
    group.attrs["success_once"] = episode.success_once
    group.attrs["success_at_end"] = episode.success_at_end
    group.attrs["return"] = episode.return_


def read_episode(file: Any, number: int, path: Path) -> Episode:
    """Read one episode of an open h5py file.

    Raises:
        DataError: missing or damaged; names the episode and the dataset.
    """
    name = group_name(number)
    part = name
    try:
        group = file[name]
        values = {}
        for part in [*PER_STEP, "state_hash"]:
            values[part] = group[part][()]
        part = "states"
        states = group["states"][()] if "states" in group else None
        part = "initial"
        initial = _read_tree(group["initial"]) if "initial" in group else {}
        part = "observations"
        observations = _read_tree(group["observations"]) if "observations" in group else None
        part = "attributes"
        attributes = {k: group.attrs[k] for k in ("seed", "index", "instruction", "health", "length")}
        options = json.loads(group.attrs["options"])
    except (OSError, KeyError, RuntimeError, ValueError) as error:
        raise DataError(f"{path} is damaged: {name}, {part}: {error}") from None
    optional = {} if states is None else {"states": states}
    optional |= {f"observations/{k}": v for k, v in (observations or {}).items()}
    _check_lengths(values | optional, int(attributes["length"]), f"{path} is damaged: {name}")
    return Episode(
        number=number,
        seed=int(attributes["seed"]),
        index=int(attributes["index"]),
        options=options,
        instruction=str(attributes["instruction"]),
        health=int(attributes["health"]),
        initial=initial,
        states=states,
        observations=observations,
        **values,
    )


def _check_lengths(values: Mapping[str, np.ndarray], length: int, what: str) -> None:
    for name, value in values.items():
        expected = length if name in PER_STEP else length + 1
        if value.ndim == 0 or len(value) != expected:
            raise DataError(f"{what}: {name} has shape {value.shape}, expected {expected} rows")


def _read_tree(group: Any) -> dict[str, np.ndarray]:
    leaves: dict[str, np.ndarray] = {}

    def visit(name: str, item: Any) -> None:
        if hasattr(item, "shape"):
            leaves[name] = item[()]

    group.visititems(visit)
    return leaves
