"""Scores of simulations: folders of twenty repeats per task, compared with recordings."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from manikin.errors import ConfigError, DataError
from manikin.fidelity.metrics.modes import Mode, fidelity_metrics, subgroup_scores
from manikin.fidelity.protocol import HZ, SUBGROUPS, benchmark_task
from manikin.fidelity.recordings.defects import MASKED, Defect, check_usable, find_defects, masked
from manikin.fidelity.recordings.recording import Recording, read_reality, read_repeats, tasks_in

__all__ = ["Score", "TaskScore", "as_values", "kinds_masked", "published", "score_folder", "score_task"]


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskScore:
    """One task.

    Attributes:
        values: metrics by name.
        notes: what the metrics say to the reader.
        real, sim: the recordings that were compared, after masking.
        real_defects, sim_defects: what was found in them before.
    """

    values: Mapping[str, float]
    notes: tuple[str, ...]
    real: Recording
    sim: Recording
    real_defects: tuple[Defect, ...]
    sim_defects: tuple[Defect, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Score:
    """A simulation, over tasks.

    Attributes:
        name: what its row is called.
        mode: ``paper`` or ``released``.
        tasks: by number.
        masked: kinds of defects that were masked in the recordings.
        about: what its submission.json says; empty without one.
    """

    name: str
    mode: Mode
    tasks: Mapping[int, TaskScore]
    masked: tuple[str, ...] = ()
    about: Mapping[str, Any]

    @property
    def synthetic(self) -> bool:
        """Whether the recordings or the simulation's files say that they are synthetic."""
        return any(one.real.synthetic or one.sim.synthetic for one in self.tasks.values())

    @property
    def subgroups(self) -> dict[int, dict[str, float]]:
        """Subgroup -> error -> mean over tasks; only subgroups of which every task is there."""
        return subgroup_scores({task: one.values for task, one in self.tasks.items()})

    def lacking(self, subgroup: int) -> tuple[int, ...]:
        """Tasks of a subgroup that are not there."""
        return tuple(task for task in SUBGROUPS[subgroup] if task not in self.tasks)


def score_folder(
    folder: str | Path,
    reality: str | Path,
    *,
    mode: Mode = "paper",
    tasks: Sequence[int] | None = None,
    mask: Sequence[str] | None = None,
    hz: float = HZ,
    reality_hz: float = HZ,
) -> Score:
    """Score a folder of simulated repeats.

    Args:
        folder: ``taskTT_01.csv`` to ``taskTT_20.csv`` for each task.
        reality: folder of the recordings: ``TaskTT_mean10Hz.csv``, also compressed, or repeats.
        mode: see :mod:`manikin.fidelity.metrics.modes`.
        tasks: by default those that the folder holds.
        mask: kinds of defects of the recordings to mask. By default what
            :data:`manikin.fidelity.recordings.defects.MASKED` names in the mode ``paper``, and none in ``released``,
            whose script has a way of its own.
        hz: rate of the folder's files, a multiple of 10: every so many rows are taken.
        reality_hz: rate of the recordings, for raw repeats at 100 Hz.

    Raises:
        DataError: files are missing or malformed, have a wrong unit or rate, or the folder lacks a task.
        ConfigError: masks in the mode ``released``.
    """
    there = tasks_in(folder)
    chosen = tuple(sorted(set(there if tasks is None else tasks)))
    for task in chosen:
        benchmark_task(task)
        if task not in there:
            raise DataError(f"{folder} has no task {task}; it has {', '.join(map(str, there))}")
    found = {}
    for task in chosen:
        sim, real = read_repeats(folder, task), read_reality(reality, task)
        sim = sim if hz == HZ else sim.at_benchmark_rate(hz)
        real = real if reality_hz == HZ else real.at_benchmark_rate(reality_hz)
        found[task] = score_task(real, sim, mode=mode, mask=mask)
    about = _about(Path(folder))
    return Score(
        name=str(about.get("simulator", Path(folder).name)),
        mode=mode,
        tasks=found,
        masked=kinds_masked(mode, mask),
        about=about,
    )


def score_task(
    real: Recording, sim: Recording, *, mode: Mode = "paper", mask: Sequence[str] | None = None
) -> TaskScore:
    """One task; arguments and errors as in :func:`score_folder`."""
    kinds = kinds_masked(mode, mask)
    defects = [tuple(find_defects(one)) for one in (real, sim)]
    defects[1] = tuple(one for one in defects[1] if one.kind != "label_swap")  # a simulator has no markers: fast pushes
    for one, told in zip((real, sim), defects, strict=True):
        check_usable(one, told)
    if kinds:
        real = masked(real, defects[0], kinds)
    values, notes = fidelity_metrics(real, sim, mode)
    return TaskScore(
        values=values, notes=tuple(notes), real=real, sim=sim, real_defects=defects[0], sim_defects=defects[1]
    )


def kinds_masked(mode: Mode, mask: Sequence[str] | None) -> tuple[str, ...]:
    """Kinds of defects that are masked in the recordings; ``mask`` and errors as in :func:`score_folder`."""
    if mode == "paper":
        return MASKED if mask is None else tuple(mask)
    if mask:
        raise ConfigError("the mode released computes what the authors' script does, which masks nothing")
    return ()


def _about(folder: Path) -> dict[str, Any]:
    path = folder / "submission.json"
    if not path.is_file():
        return {}
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}") from None
    if not isinstance(read, dict):
        raise DataError(f"{path} is not what manikin fidelity pack writes")
    return read


def published() -> dict[int, dict[str, dict[str, float]]]:
    """Subgroup -> simulator -> error -> value: Tables II and III of the paper."""
    text = (resources.files("manikin.fidelity") / "published.json").read_text(encoding="utf-8")
    return {int(group): rows for group, rows in json.loads(text)["subgroups"].items()}


def as_values(scores: Sequence[Score]) -> dict[str, Any]:
    """Plain values of scores, for a JSON file; None is for what is not a number. Published rows are with them unless
    something is synthetic."""
    synthetic = any(one.synthetic for one in scores)
    found: dict[str, Any] = {"synthetic": synthetic, "mode": scores[0].mode, "simulations": []}
    for one in scores:
        tasks = {
            str(task): {
                "values": _finite(each.values),
                "notes": list(each.notes),
                "recording": each.real.source,
                "recording_defects": [str(defect) for defect in each.real_defects],
                "simulation_defects": [str(defect) for defect in each.sim_defects],
            }
            for task, each in one.tasks.items()
        }
        groups = {str(group): _finite(values) for group, values in one.subgroups.items()}
        found["simulations"].append(
            {"name": one.name, "masked": list(one.masked), "tasks": tasks, "subgroups": groups, "about": one.about}
        )
    if not synthetic:
        found["published"] = {str(group): rows for group, rows in published().items()}
    return found


def _finite(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: value if math.isfinite(value) else None for name, value in values.items()}
