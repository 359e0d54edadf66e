"""What a recording is: episodes, what they have in common, and the HDF5 layout they are kept in (docs/data.md).

Root attributes
    format = "manikin-episodes", format_version = 3
    task, robot, control, observe (str), physics_hz, control_hz (float), horizon (int, control steps), model_hash,
    processor (str), config, versions (JSON), fingerprint (JSON: everything needed to build the environment again),
    policy (str: who acted), created (str: UTC, ISO 8601), recorded (JSON: which episodes, and what of each),
    source (JSON, of a replay: which recording, and how)
Root dataset ``dropped`` (K,) int64: numbers of episodes that were run and not kept.
Group ``block_0`` (one for each shape of data, nearly always the only one), with E episodes of T_k steps, S in all
    episodes/number, seed, index, length, health (E,) int64; success_once, success_at_end (E,) bool;
        return, force_sum, force_peak (E,) float64; options (E,) JSON, instruction (E,) str, mode (E,) str: how it
        succeeded or failed
    steps/actions (S, A) float32, rewards (S,) float32, terminated, truncated, success, fail (S,) bool;
        success is what the task says of the step, also after a fail, where it does not count for success_once;
        flags/... (S,) bool, integer or float: what else the task says of a step;
        forces (S, 1 + links) float32 [N]: contact force of the robots, in all and on each link;
        reward_terms (S, terms) float32
    instants/state_hash (S+E,) int64, states (S+E, D) float64 (optional), observations/... (S+E, ...) (optional),
        joints (S+E, joints) float32 [rad or m]: before the first action of an episode and after each
    initial/... (E, ...): the complete snapshot of the start, float64 physics state included

Of ``forces``, ``reward_terms`` and ``joints`` the attribute ``columns`` (JSON) names the columns. ``force_sum`` and
``force_peak`` are of the total. Recordings of before these were kept lack them.

Episodes lie one after another: episode k has the steps from ``sum(length[:k])``, T_k of them, and the instants from
``sum(length[:k]) + k``, T_k + 1 of them. A whole recording is a few large arrays, which is what makes it quick to write
and to read. Datasets carry Fletcher-32 checksums, text of a fixed length among them, and the file is in HDF5's format
1.10, whose names, shapes and attributes have checksums too: a flipped bit is an error and not another number or word.
Format version 2 had neither; it reads alike.

Why episodes are written as they are: HDF5 keeps its tables in memory and a process killed while a file is open for
writing can leave the whole file unreadable. So an open HDF5 file never holds anything that was not safe before. The
episodes that finish in one control step become a complete small file of this same layout, made in memory, written
under a temporary name, synced, and renamed into ``NAME.h5.parts/``. Closing merges the parts into ``NAME.h5`` in the
same way (temporary name, sync, rename) and only then removes them. At every instant each finished episode is in at
least one complete file, and the reader takes both places.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from manikin.data.recording.outside import reading
from manikin.data.recording.text import attribute, put_attribute
from manikin.errors import DataError
from manikin.moved import old_names

__all__ = [
    "FORMAT",
    "FORMAT_VERSION",
    "PER_STEP",
    "RESIDUALS",
    "TABLES",
    "RecordedEpisode",
    "Header",
    "check_lengths",
    "checked_fingerprint",
    "differences",
    "flatten",
    "is_per_step",
    "parts_folder",
    "read_dropped",
    "read_header",
    "write_header",
]

FORMAT = "manikin-episodes"
FORMAT_VERSION = 3
_READABLE = (2, 3)  # text of 2 has no checksum

# name -> dtype of what every episode has, (T, ...) or (T + 1, ...)
PER_STEP: dict[str, type] = {
    "actions": np.float32,
    "rewards": np.float32,
    "terminated": np.bool_,
    "truncated": np.bool_,
    "success": np.bool_,
    "fail": np.bool_,
}

# what a fingerprint may say -> its kinds; lists are of words, or of what describes an observation's sources
_FINGERPRINT: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("task", "task_class", "control", "device", "reward", "model_hash"), (str,)),
    **dict.fromkeys(("config", "vision", "sensors", "looks", "budget", "props", "versions", "machine"), (dict,)),
    **dict.fromkeys(("deterministic", "terminate"), (bool,)),
    **dict.fromkeys(("control_hz", "physics_hz"), (int, float)),
    "horizon": (int,),
    "robot": (str, list),
    "observe": (str, list),
    "action_names": (list,),
}
_NEVER_NULL = {"task", "machine", "versions"}

# name -> where it lies; arrays whose columns have names, in memory name -> column
TABLES = {"forces": "steps", "reward_terms": "steps", "joints": "instants"}

RESIDUALS = {"joints": "rad or m", "tool": "m", "turn": "rad", "part": "m"}
"""What a conversion reports after every step, stored as ``flags/residual_...``: the largest difference of a joint, by
how much the tool is elsewhere and turned, and by how much a part that fingers touch is elsewhere, from where the source
was after the step that this one stands for."""


@dataclass(frozen=True, kw_only=True)
class Header:
    """What is common to all episodes of a file. ``fingerprint`` is ``Env.fingerprint()``: plain JSON values.

    ``recorded`` says which episodes and what of each: ``first_seed`` (episode k has the seed first_seed + k), ``keep``,
    ``states``, ``observations``, where these were said. ``source`` is empty, or says of which recording the episodes
    were made by replaying it, and how; an episode has the number that it has there. Those that ``multiply`` made have
    numbers of their own.
    """

    fingerprint: Mapping[str, Any]
    policy: str = ""
    created: str = ""
    recorded: Mapping[str, Any] = field(default_factory=dict)
    source: Mapping[str, Any] = field(default_factory=dict)

    @property
    def task(self) -> str:
        """Id with version, for example ``PickCube-v2``."""
        return str(self.fingerprint.get("task", ""))

    @property
    def processor(self) -> str:
        """Kind of processor that recorded; the same bits are promised on the same kind only."""
        return str(self.fingerprint.get("machine", {}).get("processor", ""))


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordedEpisode:
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
    flags: Mapping[str, np.ndarray] = field(default_factory=dict)
    forces: Mapping[str, np.ndarray] = field(default_factory=dict)
    reward_terms: Mapping[str, np.ndarray] = field(default_factory=dict)
    joints: Mapping[str, np.ndarray] = field(default_factory=dict)
    initial: Mapping[str, np.ndarray] = field(default_factory=dict)
    states: np.ndarray | None = None
    observations: Mapping[str, np.ndarray] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    instruction: str = ""
    health: int = 0
    mode: str = ""

    def __len__(self) -> int:
        return len(self.actions)

    @property
    def succeeded(self) -> np.ndarray:
        """(T,) bool: success that counts. Failure is final: what the task calls a success after it is none."""
        return self.success & ~np.logical_or.accumulate(self.fail)

    @property
    def success_once(self) -> bool:
        return bool(self.succeeded.any())

    @property
    def success_at_end(self) -> bool:
        return bool(len(self) and self.succeeded[-1])

    @property
    def return_(self) -> float:
        """Sum of rewards, added in float64 and in order, so that it does not depend on how many are kept."""
        return float(np.add.accumulate(self.rewards, dtype=np.float64)[-1]) if len(self) else 0.0

    @property
    def force_sum(self) -> dict[str, float]:
        """Contact force in all and of each link, added up over the control steps [N]."""
        return {name: float(np.asarray(values, np.float64).sum()) for name, values in self.forces.items()}

    @property
    def force_peak(self) -> dict[str, float]:
        """The largest contact force in all and of each link [N]."""
        return {name: float(np.max(values, initial=0.0)) for name, values in self.forces.items()}

    @property
    def summary(self) -> dict[str, Any]:
        """Which episode it is and how it went, in plain values, for the tables of other formats; forces in all [N]."""
        names = ("number", "seed", "index", "instruction", "health", "mode", "success_once", "success_at_end")
        told = {**{name: getattr(self, name) for name in names}, "return": self.return_}
        if "total" in self.forces:
            told |= {"force_sum": self.force_sum["total"], "force_peak": self.force_peak["total"]}
        return told


def parts_folder(path: Path) -> Path:
    """Where finished episodes of an open recording lie."""
    return path.with_name(path.name + ".parts")


def flatten(tree: Any, prefix: str = "") -> dict[str, Any]:
    """Leaves of nested mappings by path: ``{"a": {"b": x}}`` -> ``{"a/b": x}``; a bare leaf is ``{"value": x}``."""
    if not isinstance(tree, Mapping):
        return {prefix or "value": tree}
    leaves: dict[str, Any] = {}
    for key, value in tree.items():
        leaves |= flatten(value, f"{prefix}/{key}" if prefix else str(key))
    return leaves


def parted(observations: Mapping[str, np.ndarray], columns: Callable[[], Sequence[str]], task: str) -> dict[str, Any]:
    """Observations (T, ...) by name; a flat one is taken apart, for what a policy may know is not to be mixed with the
    rest.

    Args:
        observations: as recorded.
        columns: gives the name of each number of a flat one, ``policy/qpos[0]``; asked only where there is one.
        task: whose names these are.

    Raises:
        DataError: a flat observation has another size.
    """
    if "value" not in observations:
        return dict(observations)
    flat, names = observations["value"], columns()
    if len(names) != flat.shape[1]:
        raise DataError(
            f"the recorded observations have {flat.shape[1]} numbers, but {task} here has {len(names)}; convert with "
            "--observe state_dict"
        )
    at: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        at.setdefault(name.split("[")[0], []).append(i)
    return {name: flat[:, columns] for name, columns in at.items()}


def write_header(file: Any, header: Header) -> None:
    """Root attributes of an open h5py file."""
    file.attrs["format"] = FORMAT
    file.attrs["format_version"] = FORMAT_VERSION
    fingerprint = json.dumps(dict(header.fingerprint), sort_keys=True)
    told: dict[str, Any] = {"fingerprint": fingerprint, "policy": header.policy, "created": header.created}
    for key in ("recorded", "source"):
        if about := getattr(header, key):
            told[key] = json.dumps(dict(about), sort_keys=True)
    for key, value in {**_spelled(header), **told}.items():
        if isinstance(value, str):
            put_attribute(file, key, value)
        else:
            file.attrs[key] = value


def _spelled(header: Header) -> dict[str, str | int | float]:
    """What the fingerprint says, one attribute for each: for people who look into a file."""
    plain = {
        key: value if isinstance(value, str | int | float) else json.dumps(value, sort_keys=True)
        for key, value in header.fingerprint.items()
    }
    return {**plain, "processor": header.processor}


def read_header(file: Any, path: Path) -> Header:
    """Check that an open h5py file is a recording that can be read here.

    Raises:
        DataError: another program's file, a newer format, or a header that is damaged or contradicts itself.
    """
    with reading(f"{path} is damaged: its header cannot be read"):
        found = file.attrs.get("format")
        if not isinstance(found, str) or found != FORMAT:
            inside = ", ".join(sorted(file)[:4]) or "nothing"
            raise DataError(
                f"{path} is HDF5 but not a manikin recording: attribute 'format' is {found!r} instead of {FORMAT!r} "
                f"(it holds: {inside})"
            )
        version = int(file.attrs.get("format_version", 0))
        if version not in _READABLE:
            newer = version > FORMAT_VERSION
            whose = "a newer manikin: update to read it" if newer else "an older one: record it again"
            valid = " and ".join(map(str, _READABLE))
            raise DataError(
                f"{path} has format version {version}; this manikin reads {valid}. It was written by {whose}."
            )
        header = Header(
            fingerprint=checked_fingerprint(_object(file, "fingerprint")),
            policy=_word(file, "policy"),
            created=_word(file, "created"),
            recorded=_object(file, "recorded", "{}"),
            source=_object(file, "source", "{}"),
        )
        for key, value in _spelled(header).items():
            if (said := attribute(file, key)) != value:
                raise ValueError(f"{key} is {said!r}, and {value!r} in the fingerprint")
        return header


def read_dropped(file: Any, path: Path) -> set[int]:
    """Numbers of the episodes that were run and not kept, of an open h5py file.

    Raises:
        DataError: they cannot be read.
    """
    with reading(f"{path} is damaged: which episodes were not kept cannot be read"):
        return {int(number) for number in file["dropped"][()]} if "dropped" in file else set()


def checked_fingerprint(fingerprint: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same, whose values are of the kinds that ``Env.fingerprint()`` gives.

    Raises:
        TypeError: one is of another kind.
        ValueError: a number that is not finite and positive.
    """
    for name, kinds in _FINGERPRINT.items():
        value = fingerprint.get(name)
        if name not in fingerprint or (value is None and name not in _NEVER_NULL):
            continue
        items, valid_items = value if isinstance(value, list) else [], (str, dict) if name == "observe" else str
        if type(value) not in kinds or not all(isinstance(item, valid_items) for item in items):
            valid = " or ".join(kind.__name__ for kind in kinds)
            raise TypeError(f"{name} of the fingerprint is {value!r}, not {valid}")
        if value is not None and int in kinds and not 0 < value < math.inf:
            raise ValueError(f"{name} of the fingerprint is {value!r}, not a positive number")
    return fingerprint


def _word(file: Any, name: str) -> str:
    """Text in a root attribute."""
    found = attribute(file, name)
    if not isinstance(found, str):
        raise TypeError(f"{name} is {found!r}, not text")
    return found


def _object(file: Any, name: str, default: str | None = None) -> dict[str, Any]:
    """A JSON object in a root attribute."""
    found = json.loads(file.attrs[name] if default is None else file.attrs.get(name, default))
    if not isinstance(found, dict):
        raise TypeError(f"{name} is {type(found).__name__}, not an object")
    return found


def is_per_step(name: str) -> bool:
    """Whether an array of an episode has one row per step, and not one more."""
    first = name.split("/", 1)[0]
    return first in PER_STEP or first == "flags" or TABLES.get(first) == "steps"


def differences(then: Header, now: Header) -> list[str]:
    """In what two recordings differ that makes their episodes no kin: task and version, robot, model, seeds, ...

    Of what is recorded only that counts which both say: older recordings say nothing of it. Where the file of a task
    lies does not count, nor how much room a Warp device was given: one that was too small is raised.
    """
    a = flatten(then.fingerprint) | {"policy": then.policy, "source": dict(then.source)}
    b = flatten(now.fingerprint) | {"policy": now.policy, "source": dict(now.source)}
    for said in then.recorded.keys() & now.recorded.keys():
        a[said], b[said] = then.recorded[said], now.recorded[said]
    keys = sorted(k for k in a | b if k != "task_class" and k.split("/")[0] != "budget")
    return [f"{k}: {a.get(k)!r} there, {b.get(k)!r} here" for k in keys if a.get(k) != b.get(k)]


def check_lengths(values: Mapping[str, np.ndarray], length: int, what: str) -> None:
    """Raise :class:`DataError` unless per-step values have ``length`` rows and the others one more."""
    for name, value in values.items():
        expected = length if is_per_step(name) else length + 1
        if value.ndim == 0 or len(value) != expected:
            raise DataError(f"{what}: {name} has shape {value.shape}, expected {expected} rows")


__getattr__ = old_names(__name__)
