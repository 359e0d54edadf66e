"""Submissions: the files of a simulation with what was tuned, what is immutable, how long it ran and where."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manikin.assets.paths import file_hash
from manikin.data.recording.durable import write_file
from manikin.errors import ConfigError, DataError, UnknownNameError
from manikin.fidelity.protocol import BASE_HEIGHT, GAIN, HZ, REPEATS, TASKS
from manikin.fidelity.recordings.defects import check_usable, find_defects
from manikin.fidelity.recordings.recording import read_repeats, tasks_in, write_repeats

__all__ = ["immutable", "pack", "read_about"]

_ROUNDING = 0.005  # [kg] masses are published in hundredths


def immutable() -> dict[str, Any]:
    """What a submission may not change: name -> value. Of a task ``task3/object_mass_kg`` and so on."""
    found: dict[str, Any] = {
        "gravity_m_s2": -9.81,
        "base_height_m": BASE_HEIGHT,
        "control_hz": HZ,
        "controller_gain": GAIN,
        "repeats": REPEATS,
    }
    for number, task in TASKS.items():
        found[f"task{number}/seconds"] = task.seconds
        found[f"task{number}/targets_deg"] = [[end, list(target)] for end, target in task.segments]
        if task.thing is not None:
            found[f"task{number}/object_size_m"] = list(task.thing.size)
            found[f"task{number}/object_mass_kg"] = task.thing.mass
            found[f"task{number}/object_start"] = list(task.thing.start)
    return found


def read_about(path: str | Path) -> dict[str, Any]:
    """What a TOML file says about a simulation, compared with what is immutable.

        simulator = "MyEngine 2.1"
        run_time_s = 412
        system = "8 cores of an x86 processor, Linux"

        [immutable]               # what the run used; what is not named is taken to be as published
        gravity_m_s2 = -9.81
        task3.object_mass_kg = 0.07

        [tuned]
        table_friction = 0.4

    Raises:
        DataError: it cannot be read.
        ConfigError: a part is missing or of another kind, or something immutable was changed or tuned; says what.
        UnknownNameError: no immutable of that name.
    """
    path = Path(path)
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}") from None
    if unknown := set(said) - {"simulator", "run_time_s", "system", "immutable", "tuned"}:
        valid = ("simulator", "run_time_s", "system", "immutable", "tuned")
        raise UnknownNameError(f"part of {path}", sorted(unknown)[0], valid)
    for name in ("simulator", "system"):
        if not isinstance(said.get(name), str) or not said[name].strip():
            raise ConfigError(f'{path} needs {name} = "..."')
    seconds = said.get("run_time_s")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        raise ConfigError(f"{path} needs run_time_s = seconds of all tasks together, above 0")
    fixed, used, tuned = immutable(), _flat(path, said, "immutable"), _flat(path, said, "tuned")
    for name, value in used.items():
        if name not in fixed:
            raise UnknownNameError("immutable", name, fixed)
        if not _same(value, fixed[name], _ROUNDING if name.endswith("mass_kg") else 0.0):
            raise ConfigError(f"{path}: {name} is immutable: {fixed[name]}, not {value}. It may not be submitted")
    for name in tuned:
        if name in fixed:
            raise ConfigError(f"{path}: {name} is immutable: {fixed[name]}. It may not be tuned")
    return {
        "simulator": said["simulator"],
        "system": said["system"],
        "run_time_s": float(seconds),
        "tuned": tuned,
        "immutable": fixed,
    }


def _flat(path: Path, said: Mapping[str, Any], part: str) -> dict[str, Any]:
    """``{"task3": {"mass": 1}}`` as ``{"task3/mass": 1}``."""
    table = said.get(part, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: {part} is a table: begin it with the line [{part}]")
    found: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            found |= {f"{name}/{k}": v for k, v in _flat(path, table, name).items()}
        else:
            found[name] = value
    return found


def _same(value: Any, other: Any, within: float) -> bool:
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(_same(a, b, within) for a, b in zip(value, other, strict=True))
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (value, other))
    return bool(abs(value - other) <= within + 1e-9) if numbers else bool(value == other)


def pack(folder: str | Path, about: str | Path, out: str | Path) -> dict[str, Any]:
    """Write a submission: the repeats of all tasks that a folder holds, and ``submission.json``; returns its content.

    Args:
        folder: simulated repeats.
        about: file as :func:`read_about` takes it.
        out: a folder that does not exist or is empty.

    Raises:
        DataError: files are missing, malformed or synthetic, or have a wrong unit or rate.
        ConfigError: as :func:`read_about` says, or ``out`` is not empty.
    """
    said, out = read_about(about), Path(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"{out} is not an empty folder; choose another --out")
    recordings = []
    for task in tasks_in(folder):
        one = read_repeats(folder, task)
        check_usable(one, find_defects(one))
        if one.synthetic:
            raise DataError(f"{folder}: task {task} is SYNTHETIC; nothing synthetic is submitted")
        recordings.append(one)
    files = [path for one in recordings for path in write_repeats(one, out)]
    said |= {"tasks": [one.task for one in recordings], "sha256": {path.name: file_hash(path) for path in files}}
    write_file(out / "submission.json", (json.dumps(said, indent=1) + "\n").encode())
    return said
