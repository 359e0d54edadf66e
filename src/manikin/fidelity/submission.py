"""Submissions: the files of a simulation with what was tuned, what is immutable, how long it ran and where."""

from __future__ import annotations

import json
import os
import platform
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from manikin.assets.paths import file_hash
from manikin.data.recording.durable import write_file
from manikin.errors import ConfigError, DataError, UnknownNameError
from manikin.fidelity.arm import commands, wrist_pose
from manikin.fidelity.numerics import rotation_matrices
from manikin.fidelity.protocol import BASE_HEIGHT, GAIN, HZ, REPEATS, TASKS, BenchmarkTask, benchmark_task
from manikin.fidelity.recordings.defects import check_usable, find_defects
from manikin.fidelity.recordings.mistakes import home, lies
from manikin.fidelity.recordings.recording import ARM, Recording, read_repeats, tasks_in, write_repeats

__all__ = ["ABOUT", "check_immutable", "immutable", "pack", "read_about", "write_about"]

ABOUT = "about.toml"
"""What :func:`pack` reads beside the files of a simulation unless told otherwise."""
_ROUNDING = 0.005  # [kg] masses are published in hundredths
_ROWS, _START, _TURN, _END = 2, 0.01, 10.0, 0.03  # [rows], [m] and [degrees] of the object's start, [m] of the wrist
_CAPS = (np.array([10.0] * 3 + [20.0] * 3), *np.geomspace(8, 200, 30))  # [degrees/s] a submission may choose its own


def immutable() -> dict[str, Any]:
    """What a submission may not change: name -> value. Of a task ``task3/object_mass_kg`` and so on."""
    found: dict[str, Any] = {
        "gravity_m_s2": -9.81,
        "base_height_m": BASE_HEIGHT,
        "base_xy_m": [0.0, 0.0],
        "base_yaw_deg": 0.0,
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


def write_about(
    path: str | Path,
    *,
    simulator: str,
    run_time_s: float,
    tuned: Mapping[str, Any],
    used: Mapping[str, Any] | None = None,
    system: str | None = None,
) -> Path:
    """Write what :func:`read_about` reads. Returns the file.

    Args:
        path: the file.
        simulator: what its row is called.
        run_time_s: seconds of all tasks together.
        tuned: settings that the run chose.
        used: immutables with the values that the run used, by the names of :func:`immutable`; those that are left out
            are as published.
        system: what it ran on; by default this machine.

    Raises:
        UnknownNameError: no immutable of that name. OSError: it cannot be written.
    """
    fixed = immutable()
    for name in used or {}:
        if name not in fixed:
            raise UnknownNameError("immutable", name, fixed)
    system = system or f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}"
    lines = [f"simulator = {json.dumps(simulator)}", f"run_time_s = {max(run_time_s, 0.01):.4g}"]
    lines += [f"system = {json.dumps(system)}", "", "[immutable]"]
    lines += [f"{name.replace('/', '.')} = {json.dumps(value)}" for name, value in (used or {}).items()]
    lines += ["", "[tuned]", *(f"{name} = {json.dumps(value)}" for name, value in tuned.items())]
    write_file(Path(path), ("\n".join(lines) + "\n").encode())
    return Path(path)


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


def check_immutable(recording: Recording) -> None:
    """Compare with the data what a submission may not change: the duration, where the wrist begins and ends, and where
    the object begins.

    Raises:
        ConfigError: one is not as published; says which, the repeat and by how much.
    """
    task = benchmark_task(recording.task)
    for words in (*_arm_moved(task, recording), *_object_moved(task, recording)):
        raise ConfigError(f"{recording.source}: task {task.number}: {words}. It may not be submitted")


def _arm_moved(task: BenchmarkTask, recording: Recording) -> Iterator[str]:
    if abs(recording.rows - task.rows) > _ROWS:
        yield f"{recording.rows} rows; seconds is immutable: {task.seconds:g}, which is {task.rows} rows"
    pos = recording.arm[:, :, ARM["pos"]]
    k, far = _farthest(np.linalg.norm(pos[:, 0] - home()[0], axis=1))
    if far > _END:
        words = f"the wrist of repeat {k + 1} begins {1000 * far:.0f} mm from home"
        yield f"{words}; height and place of the base are immutable"
    ends = []  # a slow arm is not there yet when the task ends
    for cap in _CAPS:
        asked = commands(task.segments, recording.rows, cap)
        ends += [*wrist_pose(asked[-7:])[0]]
    away = np.linalg.norm(pos[:, -1, None] - np.array(ends), axis=2).min(1)
    k, far = _farthest(away)
    if far > _END:
        words = f"the wrist of repeat {k + 1} ends {1000 * far:.0f} mm from where the targets lead at any speed"
        yield f"{words}; targets_deg and the place of the base are immutable"


def _object_moved(task: BenchmarkTask, recording: Recording) -> Iterator[str]:
    if task.thing is None or not len(recording.objects):
        return
    (place, turn), first = lies(task), recording.objects[:, 0]
    k, far = _farthest(np.linalg.norm(first[:, :3] - place, axis=1))
    if far > _START:
        yield f"the object of repeat {k + 1} begins {1000 * far:.0f} mm elsewhere; object_start is immutable"
    found, expected = rotation_matrices(first[:, 3:]), rotation_matrices(turn)
    if task.thing.shape in ("cube", "cuboid"):  # any edge of a cube along x, the long one of a cuboid along z
        along = np.abs(np.swapaxes(expected, -1, -2) @ found)
        cosine = along[:, 2, 2] if task.thing.shape == "cuboid" else along.max(2).min(1)
    else:  # a turn about its own axis changes nothing; a cylinder has two equal ends
        cosine = (expected[:, :, 2] * found[:, :, 2]).sum(1)
        cosine = np.abs(cosine) if task.thing.shape == "cylinder" else cosine
    k, far = _farthest(np.degrees(np.arccos(np.clip(cosine, -1, 1))))
    if far > _TURN:
        yield f"the object of repeat {k + 1} begins turned by {far:.0f} degrees; object_start is immutable"


def _farthest(values: np.ndarray) -> tuple[int, float]:
    """The largest of (R,), and which; NaN is larger than any number."""
    k = int(np.argmax(np.where(np.isnan(values), np.inf, values)))
    return k, float(np.nan_to_num(values[k], nan=np.inf))


def pack(folder: str | Path, about: str | Path | None, out: str | Path) -> dict[str, Any]:
    """Write a submission: the repeats of all tasks that a folder holds, and ``submission.json``; returns its content.

    Args:
        folder: simulated repeats.
        about: file as :func:`read_about` takes it; None for :data:`ABOUT` in the folder.
        out: a folder that does not exist or is empty.

    Raises:
        DataError: files are missing, malformed or synthetic, or have a wrong unit, column or rate.
        ConfigError: as :func:`read_about` and :func:`check_immutable` say, or ``out`` is not empty.
    """
    said, out = read_about(Path(folder) / ABOUT if about is None else about), Path(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"{out} is not an empty folder; choose another --out")
    recordings = []
    for task in tasks_in(folder):
        one = read_repeats(folder, task)
        check_usable(one, find_defects(one))
        if one.synthetic:
            raise DataError(f"{folder}: task {task} is SYNTHETIC; nothing synthetic is submitted")
        check_immutable(one)
        recordings.append(one)
    files = [path for one in recordings for path in write_repeats(one, out)]
    said |= {"tasks": [one.task for one in recordings], "sha256": {path.name: file_hash(path) for path in files}}
    write_file(out / "submission.json", (json.dumps(said, indent=1) + "\n").encode())
    return said
