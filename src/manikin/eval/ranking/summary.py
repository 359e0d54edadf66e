"""What several runs say together: ``ranking.json``.

    {"schema": "manikin-ranking", "schema_version": 1, "protocol": {"name", "hash"}, "healthy", "confidence",
     "policies": [name], "ranking": [RANKED], "per_task": [{"task", "setting", "rates": {policy: RATE}, "modes":
     {policy: {mode: episodes}}}], "shifts": [SHIFT], "delta_success": [DELTA],
     "reality": null or {"file", "tasks": {task or "all tasks":
     {"policies", "real", "sim", "metrics": {name: {"value", "low", "high", "undefined", "why"}}, "kruskal",
     "untested": {policy: why it has no "kruskal"}}},
     "left_out": [task that was not simulated]}}

RANKED, SHIFT and DELTA are the fields of :class:`~manikin.eval.ranking.ranks.Ranked`,
:class:`~manikin.eval.ranking.ranks.Shift` and :class:`~manikin.eval.ranking.ranks.Delta`; RATE is {"successes",
"episodes", "rate", "low", "high"}.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from manikin.errors import ConfigError
from manikin.eval.agreement.real import chosen, read_real
from manikin.eval.agreement.trials import Trials, agreement
from manikin.eval.ranking.ranks import deltas_of, rank, rate_of, shifts_of
from manikin.eval.ranking.runs import Runs, episodes_of, outcomes_of, trials_by_task

__all__ = ["ALL", "summary"]

ALL = "all tasks"


def summary(
    runs: Runs, *, real: str | Path | None = None, names: Mapping[str, str] | None = None, confidence: float = 0.95
) -> dict[str, Any]:
    """Everything as plain values.

    Args:
        runs: the reports, see :func:`~manikin.eval.ranking.runs.read_runs`.
        real: a file of results on real robots, see :func:`~manikin.eval.agreement.real.read_real`.
        names: what that file calls a task or policy -> what it is called here.
        confidence: of the intervals.

    Raises:
        DataError, ConfigError: as :func:`read_real`, :func:`~manikin.eval.agreement.real.chosen` and
            :func:`~manikin.eval.ranking.ranks.shifts_of`; ``names`` without a file.
    """
    if names and real is None:
        raise ConfigError("--map maps names of real results: give these with --real")
    per_task = []
    for setting in runs.settings:
        rates, modes = {}, {}
        for policy, reports in runs.base.items():
            outcomes, _ = outcomes_of(reports, setting)
            rate = rate_of(reports, setting, confidence=confidence)
            rates[policy] = {"successes": sum(outcomes), "episodes": len(outcomes)} | {
                "rate": rate.estimate,
                "low": rate.low,
                "high": rate.high,
            }
            told = Counter(e["mode"] for report in reports for e in episodes_of(report, setting) if e.get("mode"))
            modes[policy] = dict(told.most_common())
        per_task.append({"task": setting.task, "setting": setting.title, "rates": rates, "modes": modes})
    return {
        "schema": "manikin-ranking",
        "schema_version": 1,
        "protocol": {key: runs.protocol[key] for key in ("name", "hash")},
        "healthy": runs.healthy,
        "confidence": confidence,
        "policies": list(runs.policies),
        "ranking": [asdict(one) for one in rank(runs, confidence=confidence)],
        "per_task": per_task,
        "shifts": [one.plain for one in shifts_of(runs, confidence=confidence)],
        "delta_success": [one.plain for one in deltas_of(runs, confidence=confidence)],
        "reality": None if real is None else _reality(runs, Path(real), names or {}, confidence),
    }


def _reality(runs: Runs, file: Path, names: Mapping[str, str], confidence: float) -> dict[str, Any]:
    simulated = trials_by_task(runs)
    measured = read_real(file, names)
    real = chosen(measured, simulated)
    pairs: dict[str, tuple[Mapping[str, Trials], Mapping[str, Trials]]] = {
        task: (policies, simulated[task]) for task, policies in real.items()
    }
    if len(real) > 1:
        pairs[ALL] = (_pooled(real, list(real), runs.policies), _pooled(simulated, list(real), runs.policies))
    found = {}
    for task, (there, here) in pairs.items():
        compared = agreement(real=there, sim=here, confidence=confidence)
        found[task] = {
            "policies": list(compared.policies),
            "real": list(compared.real),
            "sim": list(compared.sim),
            "real_trials": {policy: sum(len(one) for one in there[policy].values()) for policy in compared.policies},
            "metrics": {name: asdict(metric) for name, metric in compared.metrics.items()},
            "kruskal": {policy: asdict(test) for policy, test in compared.kruskal.items()},
            "untested": dict(compared.untested),
        }
    return {"file": file.name, "tasks": found, "left_out": sorted(set(measured) - set(real))}


def _pooled(
    table: Mapping[str, Mapping[str, Trials]], tasks: Sequence[str], policies: Sequence[str]
) -> dict[str, Trials]:
    """Policy -> task -> the outcomes of all settings of the task, so that each task counts once."""
    return {
        policy: {task: [one for outcomes in table[task][policy].values() for one in outcomes] for task in tasks}
        for policy in policies
    }
