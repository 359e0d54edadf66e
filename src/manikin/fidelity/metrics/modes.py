"""The 23 metrics of the benchmark, 15 of them without an object, in two modes.

``paper`` is what the paper defines, see :mod:`manikin.fidelity.metrics.paper`. ``released`` is what the script of the
authors computes, error for error, see :mod:`manikin.fidelity.metrics.released`. Only the latter compares with Tables II
and III.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from manikin.errors import ConfigError, DataError, UnknownNameError
from manikin.fidelity.metrics.pairs import check_pair, left_out
from manikin.fidelity.metrics.paper import paper
from manikin.fidelity.metrics.released import as_read, released
from manikin.fidelity.protocol import HZ, SUBGROUPS, benchmark_task
from manikin.fidelity.recordings.recording import Recording

__all__ = [
    "COLUMNS",
    "METRICS",
    "VALUES",
    "FidelityMetric",
    "Mode",
    "fidelity_metrics",
    "recorded_values",
    "subgroup_scores",
]

Mode = Literal["paper", "released"]


@dataclass(frozen=True)
class FidelityMetric:
    """One of the 23.

    Attributes:
        title: in words.
        unit: in SI units; "" without one.
        tells: what its number says.
        released_unit: that of the mode ``released``, where it is another.
    """

    title: str
    unit: str
    tells: str
    released_unit: str = ""


METRICS: dict[str, FidelityMetric] = {
    "euclidean": FidelityMetric("Euclidean error", "m", "how far the wrist is from where it was"),
    "rotation": FidelityMetric("rotation error", "rad", "half the angle between the orientations of the wrist"),
    "pose": FidelityMetric("pose error", "rad", "position and orientation in one number", "rad^2"),
    "max_velocity": FidelityMetric("max velocity", "m/s", "fastest speed of the simulated wrist"),
    "velocity": FidelityMetric("velocity error", "m/s", "difference of the wrist's speeds"),
    "max_acceleration": FidelityMetric("max acceleration", "m/s^2", "how hard the simulated wrist speeds up"),
    "max_deceleration": FidelityMetric("max deceleration", "m/s^2", "how hard the simulated wrist brakes"),
    "acceleration": FidelityMetric("acceleration error", "m/s^2", "difference of the changes of speed"),
    "min_torque": FidelityMetric("min torque", "N m", "least sum of the simulated joint torques"),
    "max_torque": FidelityMetric("max torque", "N m", "largest sum of the simulated joint torques"),
    "torque": FidelityMetric("torque error", "N m", "difference of the sums of joint torques"),
    "max_force": FidelityMetric("max contact force", "N", "largest simulated force at the wrist"),
    "force": FidelityMetric("contact force error", "N", "difference of the forces at the wrist"),
    "max_moment": FidelityMetric("max contact moment", "N m", "largest simulated moment at the wrist"),
    "moment": FidelityMetric("contact moment error", "N m", "difference of the moments at the wrist"),
    "object_max_velocity": FidelityMetric("max object velocity", "m/s", "fastest speed of the simulated object"),
    "object_mean_velocity": FidelityMetric("average object velocity", "m/s", "its mean speed while it moves"),
    "object_max_acceleration": FidelityMetric("max object acceleration", "m/s^2", "how hard the push is"),
    "object_max_deceleration": FidelityMetric("max object deceleration", "m/s^2", "how hard friction brakes it"),
    "object_mean_acceleration": FidelityMetric("average object acceleration", "m/s^2", "mean change of its speed"),
    "object_moving_time": FidelityMetric("object moving time", "s", "how long it moves: rolling resistance"),
    "object_translation": FidelityMetric("object translation error", "", "where it ends, in spreads of the recordings"),
    "object_rotation": FidelityMetric("object rotation error", "", "how it lies in the end, in such spreads"),
}
"""Name -> metric, in the order of the paper; the first 15 need no object."""
COLUMNS: dict[int, tuple[str, ...]] = {
    1: ("euclidean", "rotation", "pose", "velocity", "acceleration", "torque", "force", "moment"),
    2: (
        *("euclidean", "rotation", "pose", "velocity", "acceleration", "torque", "force", "moment"),
        *("object_translation", "object_rotation"),
    ),
}
"""Subgroup -> errors that Tables II and III have."""
VALUES = tuple(name for name in METRICS if name not in COLUMNS[2])
"""Metrics that are no error: they describe the simulation alone, and :func:`recorded_values` has the recording's."""


def fidelity_metrics(real: Recording, sim: Recording, mode: Mode = "paper") -> tuple[dict[str, float], list[str]]:
    """All metrics of a simulation against the recordings of one task.

    Args:
        real: the recordings: their mean arm and each repeat's object.
        sim: the simulation's repeats.
        mode: ``paper`` or ``released``.

    Returns:
        Name -> value, 23 or, of a simulation without object, 15; and notes for the reader. Of tasks of your own those
        that :func:`manikin.fidelity.metrics.pairs.left_out` does not leave out.

    Raises:
        DataError: other tasks, or not at 10 Hz, or for your own tasks not at one rate; see also the modes.
        ConfigError: your own tasks in the mode ``released``. UnknownNameError: no mode.
    """
    if mode not in get_args(Mode):
        raise UnknownNameError("mode", mode, get_args(Mode))
    if real.task != sim.task:
        raise DataError(f"the recording is of task {real.task}, the simulation of task {sim.task}")
    if real.own:
        if mode != "paper":
            raise ConfigError("the mode released is the script of the benchmark's ten tasks; yours have the mode paper")
        check_pair(real, sim)
        return paper(real, sim, left_out(real, sim))
    for word, one in (("recording", real), ("simulation", sim)):
        if not math.isclose(one.hz, HZ):
            raise DataError(f"the {word} {one.source} is at {one.hz:g} Hz; the metrics are of {HZ:g} Hz")
    return paper(real, sim) if mode == "paper" else released(real, sim)


def recorded_values(real: Recording, mode: Mode = "paper") -> dict[str, float]:
    """What a recording itself has of :data:`VALUES`, by the same formulas, up to the task's nominal end.

    Of ``released`` the rows of zeros at the end are replaced as the script does it.

    Raises:
        DataError: as :func:`fidelity_metrics`.
    """
    whole = real.cut(benchmark_task(real.task).rows)
    itself = as_read(whole) if mode == "released" else whole
    found, _ = fidelity_metrics(whole, itself, mode)
    return {name: found[name] for name in VALUES if name in found}


def subgroup_scores(tasks: Mapping[int, Mapping[str, float]]) -> dict[int, dict[str, float]]:
    """Subgroup -> error -> mean over its tasks; a subgroup that lacks a task is left out.

    A column that a task lacks (it was simulated without its object) is left out.

    Args:
        tasks: task's number -> metrics.
    """
    found: dict[int, dict[str, float]] = {}
    for group, members in SUBGROUPS.items():
        if all(task in tasks for task in members):
            columns = [name for name in COLUMNS[group] if all(name in tasks[task] for task in members)]
            found[group] = {name: _mean([tasks[task][name] for task in members]) for name in columns}
    return found


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
