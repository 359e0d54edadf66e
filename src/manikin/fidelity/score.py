"""Scores of simulations: folders of twenty repeats per task, compared with recordings."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from manikin.errors import ConfigError, DataError
from manikin.fidelity.metrics.modes import Mode, fidelity_metrics, subgroup_scores
from manikin.fidelity.metrics.pairs import check_pair, left_out, pair_defects
from manikin.fidelity.protocol import HZ, SUBGROUPS, benchmark_task
from manikin.fidelity.recordings.defects import MASKED, MASKED_OWN, Defect, check_usable, find_defects, masked
from manikin.fidelity.recordings.own import is_own, read_tasks
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
        left_out: of a task of your own: metric that does not apply -> why.
    """

    values: Mapping[str, float]
    notes: tuple[str, ...]
    real: Recording
    sim: Recording
    real_defects: tuple[Defect, ...]
    sim_defects: tuple[Defect, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class Score:
    """A simulation, over tasks.

    Attributes:
        name: what its row is called.
        mode: ``paper`` or ``released``.
        tasks: by number, your own by name.
        masked: kinds of defects that were masked in the recordings.
        about: what its submission.json says; empty without one.
    """

    name: str
    mode: Mode
    tasks: Mapping[int | str, TaskScore]
    masked: tuple[str, ...] = ()
    about: Mapping[str, Any]

    @property
    def synthetic(self) -> bool:
        """Whether the recordings or the simulation's files say that they are synthetic."""
        return any(one.real.synthetic or one.sim.synthetic for one in self.tasks.values())

    @property
    def own(self) -> bool:
        """Whether it is of tasks of your own, which no published simulator did."""
        return any(one.real.own for one in self.tasks.values())

    @property
    def subgroups(self) -> dict[int, dict[str, float]]:
        """Subgroup -> error -> mean over tasks; only subgroups of which every task is there."""
        return subgroup_scores({task: one.values for task, one in self.tasks.items() if isinstance(task, int)})

    def lacking(self, subgroup: int) -> tuple[int, ...]:
        """Tasks of a subgroup that are not there."""
        return tuple(task for task in SUBGROUPS[subgroup] if task not in self.tasks)


def score_folder(
    folder: str | Path,
    reality: str | Path,
    *,
    mode: Mode = "paper",
    tasks: Sequence[int | str] | None = None,
    mask: Sequence[str] | None = None,
    hz: float = HZ,
    reality_hz: float = HZ,
    resample: float | None = None,
) -> Score:
    """Score a folder of simulated repeats.

    Args:
        folder: ``taskTT_01.csv`` to ``taskTT_20.csv`` for each task; or recordings of tasks of your own, see
            :mod:`manikin.fidelity.recordings.layout`.
        reality: folder of the recordings: ``TaskTT_mean10Hz.csv``, also compressed, or repeats; or your own.
        mode: see :mod:`manikin.fidelity.metrics.modes`.
        tasks: by default those that the folder holds.
        mask: kinds of defects of the recordings to mask. By default what
            :data:`manikin.fidelity.recordings.defects.MASKED` names in the mode ``paper``, and none in ``released``,
            whose script has a way of its own; of your own tasks ``MASKED_OWN``.
        hz: rate of the folder's files, a multiple of 10: every so many rows are taken.
        reality_hz: rate of the recordings, for raw repeats at 100 Hz.
        resample: rate that recordings of your own, both sides, are interpolated to.

    Raises:
        DataError: files are missing or malformed, have a wrong unit or rate, or the folder lacks a task.
        ConfigError: masks in the mode ``released``, which is also not for tasks of your own; an option of the
            benchmark's files for your own, or the other way round.
    """
    if is_own(folder) or is_own(reality):
        if hz != HZ or reality_hz != HZ:
            raise ConfigError("the header of a recording of your own says its rate; --hz is of the benchmark's files")
        return _score_own(folder, reality, mode=mode, tasks=tasks, mask=mask, resample=resample)
    if resample is not None:
        raise ConfigError("--resample is for recordings of your own; the benchmark's rows are taken, see --hz")
    there = tasks_in(folder)
    chosen = sorted({benchmark_task(task).number for task in (there if tasks is None else tasks)})
    for task in chosen:
        if task not in there:
            raise DataError(f"{folder} has no task {task}; it has {', '.join(map(str, there))}")
    found: dict[int | str, TaskScore] = {}
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


def _score_own(
    folder: str | Path,
    reality: str | Path,
    *,
    mode: Mode,
    tasks: Sequence[int | str] | None,
    mask: Sequence[str] | None,
    resample: float | None,
) -> Score:
    """As :func:`score_folder`, of tasks of your own: those that the simulation has."""
    sims, reals = (read_tasks(one, resample=resample) for one in (folder, reality))
    chosen = sims if tasks is None else [str(task) for task in tasks]
    for name in chosen:
        for place, there in ((folder, sims), (reality, reals)):
            if name not in there:
                has = ", ".join(map(repr, there))
                raise DataError(f"{place} has no task {name!r}; it has {has}. The headers of both sides name it alike")
    found: dict[int | str, TaskScore] = {}
    for name in chosen:
        found[name] = score_task(reals[name], sims[name], mode=mode, mask=mask)
    sources = {str(sims[name].header.get("source", "")) for name in chosen}
    name = sources.pop() if len(sources) == 1 else ""
    kinds = MASKED_OWN if mask is None else tuple(mask)
    path = Path(folder)
    return Score(
        name=name or (path.name if path.is_dir() else path.stem), mode=mode, tasks=found, masked=kinds, about={}
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
    notes: list[str] = []
    if real.own and sim.own:
        kinds = MASKED_OWN if mask is None else kinds
        check_pair(real, sim)
        end = min(*real.lengths, *sim.lengths)
        if end < 3:
            raise DataError(f"{real.source} or {sim.source}: a repeat has values in {end} rows only; a score needs 3")
        if end < max(real.rows, sim.rows):
            notes.append(f"only the first {end} rows are compared, which all repeats of both sides have")
        real, sim = real.cut(end), sim.cut(end)
        defects = [(*one, *more) for one, more in zip(defects, pair_defects(real, sim), strict=True)]
    if kinds:
        real = masked(real, defects[0], kinds)
    values, said = fidelity_metrics(real, sim, mode)
    return TaskScore(
        values=values,
        notes=(*notes, *said),
        real=real,
        sim=sim,
        real_defects=defects[0],
        sim_defects=defects[1],
        left_out=left_out(real, sim) if real.own else {},
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
                **({"left_out": dict(each.left_out)} if each.real.own else {}),
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
    if not synthetic and not any(one.own for one in scores):
        found["published"] = {str(group): rows for group, rows in published().items()}
    return found


def _finite(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: value if math.isfinite(value) else None for name, value in values.items()}
