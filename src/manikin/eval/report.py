"""What an evaluation leaves behind: ``report.json`` for machines, with LeRobot's eval_info names where they fit.

    {"schema": "manikin-eval", "schema_version": 1, "created", "policy", "command", "healthy", "interrupted", "error",
     "inference_ms", "policy_seed", "policy_sha256" of a policy in a file or null,
     "device", "protocol": {"name", "hash", "shift", "toml", "own": [{"id", "code", "config"}]}, "versions", "machine",
     "overall": {"avg_sum_reward", "avg_max_reward", "pc_success", "n_episodes", "eval_s", "eval_ep_s"},
     "per_task": [{"task", "named", "fingerprint", "made_of": {thing: where its shapes come from},
                   "control_hz", "held_steps", "unhealthy", "advice", "sequential",
                   "answer": {"episodes", "words"} or null,
                   "success": {"rule", "once": RATE, "at_end": RATE, "held": RATE},
                   "aggregated": {... as overall ...}, "modes": {how it succeeded or failed: episodes},
                   "forces": {"total" or link: {"peak": SPREAD, "sum": SPREAD}},
                   "per_episode": [{"episode_ix", "seed", "episode_index", "success", "success_once", ...,
                                    "film": its file beside the report, where there is one}]}],
     "variants": {"set", "per_task": [{"task", "base", "mean", "variants", "delta_success": {shift: number},
                  "interval": {shift: [low, high]}}]} with `--variants` only,
     "comparison": [...] or null}

SPREAD is {"mean", "p95", "worst", "seed"} over episodes [N]: of the largest contact force of an episode, and of that
added up over its control steps; ``seed`` is of the worst episode. ``total`` leaves out the robots' fingers.
RATE is {"successes", "episodes", "rate", "low", "high", "confidence"}; ``pc_success`` is in per cent, under the
protocol's rule. ``task`` is the task's id, and ``named`` the protocol's word for it; ``own`` are the tasks that are not
manikin's, with the SHA-256 of their code. Reports are comparable when their protocol hashes are equal. ``device``
is the word of where it was simulated; physics differs between devices in its rounding, so a comparison names both.
``advice`` is which budget to raise to what, where contacts or constraints found no room. A ``sequential`` task was to
end with its ``answer``; its intervals hold at every number of episodes. ``error`` says what ended the
evaluation before its end.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manikin.data.recording.durable import replace_file
from manikin.data.recording.outside import read_json, reading
from manikin.errors import ConfigError, DataError
from manikin.eval.evaluation import Evaluation, TaskResult
from manikin.eval.protocol import SUCCESS_RULES, Protocol, setting_of
from manikin.eval.runner import EpisodeResult
from manikin.eval.stats import compare_paired
from manikin.sim.health import describe

__all__ = [
    "SCHEMA",
    "SCHEMA_VERSION",
    "about_protocol",
    "as_dict",
    "compare",
    "outcomes",
    "read_report",
    "refuse_another",
    "title",
    "write_report",
]

SCHEMA = "manikin-eval"
SCHEMA_VERSION = 1


def as_dict(
    evaluation: Evaluation,
    *,
    command: str = "",
    policy_sha256: str | None = None,
    films: Mapping[tuple[str, int], str] | None = None,
) -> dict[str, Any]:
    """The report as plain values.

    Args:
        evaluation: to be reported.
        command: the line that makes it again.
        policy_sha256: of the policy's file.
        films: the protocol's word for a task and the number of an episode -> its film, from the report's folder.
    """
    tasks = [_task(t, evaluation.protocol.success) for t in evaluation.tasks]
    for task in tasks:
        for one in task["per_episode"]:
            if film := (films or {}).get((task["named"], one["episode_ix"])):
                one["film"] = film
    first = evaluation.tasks[0].fingerprint if evaluation.tasks else {}
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "created": evaluation.created,
        "policy": evaluation.policy,
        "command": command,
        "healthy": evaluation.healthy,
        "interrupted": evaluation.interrupted,
        "error": evaluation.error,
        "inference_ms": evaluation.inference_ms,
        "policy_seed": evaluation.policy_seed,
        "policy_sha256": policy_sha256 or evaluation.policy_sha256,
        "protocol": about_protocol(evaluation.protocol),
        "device": evaluation.tasks[0].device if evaluation.tasks else "",
        "versions": first.get("versions", {}),
        "machine": first.get("machine", {}),
        "overall": _aggregated([(r, t) for t in evaluation.tasks for r in t.results], evaluation.protocol.success),
        "per_task": tasks,
        "comparison": None,
    }


def about_protocol(protocol: Protocol) -> dict[str, Any]:
    """What a report says of the protocol."""
    return {
        "name": protocol.name,
        "hash": protocol.hash,
        "episodes_per_task": max(len(protocol.seeds_of(task)) for task in protocol.tasks),
        "shift": protocol.shift,
        "toml": protocol.to_toml(),
        "own": [dict(own) for own in protocol.own_tasks.values()],
    }


def refuse_another(protocol: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    """Refuse to compare results under a protocol, as :func:`about_protocol` tells it, with those of a report.

    Raises:
        ConfigError: the report was made under another protocol; says which own tasks have other code.
    """
    a, b = protocol["hash"], other["protocol"]["hash"]
    if a == b:
        return
    mine, theirs = ({own["id"]: own for own in one.get("own", ())} for one in (protocol, other["protocol"]))
    changed = [
        f"{name} has other {' and '.join(what)}"
        for name in sorted(mine.keys() & theirs.keys())
        if (what := [key for key in ("code", "config") if mine[name][key] != theirs[name][key]])
    ]
    why = f": {'; '.join(changed)}" if changed else ""
    raise ConfigError(f"reports made under different protocols cannot be compared ({a[:12]} and {b[:12]}){why}")


def _task(task: TaskResult, rule: str) -> dict[str, Any]:
    rates = {}
    for name in SUCCESS_RULES:
        interval = task.rate(name)
        rates[name] = {
            "successes": sum(r.success(name, task.held_steps) for r in task.results),
            "episodes": len(task.results),
            "rate": interval.estimate,
            "low": interval.low,
            "high": interval.high,
            "confidence": interval.confidence,
        }
    return {
        "task": task.id,
        "named": task.task,
        "fingerprint": dict(task.fingerprint),
        "made_of": dict(task.made_of),
        "control_hz": task.fingerprint.get("control_hz"),
        "held_steps": task.held_steps,
        "unhealthy": len(task.unhealthy),
        "advice": task.advice,
        "sequential": task.sequential,
        "answer": None if task.answer is None else dataclasses.asdict(task.answer),
        "success": {"rule": rule, **rates},
        "modes": dict(Counter(r.mode for r in task.results).most_common()),
        "forces": _forces(task.results),
        "aggregated": _aggregated([(r, task) for r in task.results], rule),
        "per_episode": [_episode(r, rule, task.held_steps) for r in task.results],
    }


def _forces(results: Sequence[EpisodeResult]) -> dict[str, Any]:
    """How hard the robots pressed on things, in all and with each link."""
    found: dict[str, Any] = {}
    for name in results[0].force_peak:
        found[name] = {}
        for what in ("peak", "sum"):
            values = [getattr(r, f"force_{what}")[name] for r in results]
            worst = int(np.argmax(values))
            found[name][what] = {
                "mean": float(np.mean(values)),
                "p95": float(np.percentile(values, 95)),
                "worst": values[worst],
                "seed": results[worst].seed,
            }
    return found


def _aggregated(results: list[tuple[EpisodeResult, TaskResult]], rule: str) -> dict[str, Any]:
    """LeRobot's names: averages over episodes, success in per cent, seconds in all and per episode."""
    n = max(1, len(results))
    seconds = sum({id(t): t.seconds for _, t in results}.values())
    return {
        "avg_sum_reward": sum(r.return_ for r, _ in results) / n,
        "avg_max_reward": sum(r.max_reward for r, _ in results) / n,
        "pc_success": 100.0 * sum(r.success(rule, t.held_steps) for r, t in results) / n,
        "n_episodes": len(results),
        "eval_s": seconds,
        "eval_ep_s": seconds / n,
    }


def _episode(r: EpisodeResult, rule: str, held_steps: int) -> dict[str, Any]:
    return {
        "episode_ix": r.number,
        "seed": r.seed,
        "episode_index": r.index,
        "sum_reward": r.return_,
        "max_reward": r.max_reward,
        "success": r.success(rule, held_steps),
        "success_once": r.success_once,
        "success_at_end": r.success_at_end,
        "success_held": r.success("held", held_steps),
        "first_success": r.first_success,
        "longest_success": r.longest_success,
        "length": r.length,
        "terminated": r.terminated,
        "truncated": r.truncated,
        "said_finished": r.said_finished,
        "fail": r.fail,
        "reached": dict(r.reached),
        "at_end": dict(r.at_end),
        "events": list(r.events),
        "mode": r.mode,
        "force_peak": {name: round(value, 3) for name, value in r.force_peak.items()},
        "force_sum": {name: round(value, 3) for name, value in r.force_sum.items()},
        "health": describe(r.health),
        "instruction": r.instruction,
    }


def write_report(report: Mapping[str, Any], path: str | Path) -> None:
    """Write ``report.json``, whole or not at all; JSON has no numbers that are not finite, and null stands for them.

    Raises OSError where it cannot be written.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    replace_file(Path(path), (json.dumps(_finite(report), indent=1, allow_nan=False) + "\n").encode())


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(part) for key, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, list | tuple) else value


def read_report(path: str | Path) -> dict[str, Any]:
    """Read a report written here.

    Raises:
        DataError: no such file, not a report, or of a newer version.
    """
    report = read_json(Path(path), f"{path} cannot be read, or is no evaluation report")
    if report.get("schema") != SCHEMA:
        raise DataError(f"{path} is no evaluation report: 'schema' is not {SCHEMA!r}")
    if report.get("schema_version") != SCHEMA_VERSION:
        raise DataError(
            f"{path} has schema version {report.get('schema_version')}, this manikin reads {SCHEMA_VERSION}"
        )
    with reading(f"the report {path} is damaged"):
        _check_report(report)
    return report


def _check_report(report: Mapping[str, Any]) -> None:
    """Raise KeyError or TypeError where a report lacks what comparing needs."""
    for value in (report["policy"], report["protocol"]["hash"], report.get("device", "cpu")):
        _check_kind(value, str)
    for own in report["protocol"].get("own", []):
        for name in ("id", "code"):
            _check_kind(own[name], str)
        _check_kind(own["config"], dict)
    for task in report["per_task"]:
        _check_kind(task["task"], str)
        _check_kind(task.get("named", ""), str)
        _check_kind(task["success"]["once"]["confidence"], float)
        for episode in task["per_episode"]:
            for value, kind in ((episode["seed"], int), (episode["episode_index"], int), (episode["success"], bool)):
                _check_kind(value, kind)


def _check_kind(value: Any, kind: type) -> None:
    if type(value) is not kind:
        raise TypeError(f"{value!r} stands where {kind.__name__} is expected")


def outcomes(report: Mapping[str, Any], named: str) -> dict[int, bool]:
    """Number of an episode in the protocol -> whether it succeeded, of the task that the protocol names so.

    Raises:
        ConfigError: the report has no such task.
    """
    for task in report["per_task"]:
        if task.get("named", task["task"]) == named:
            return {e["episode_ix"]: e["success"] for e in task["per_episode"]}
    raise ConfigError(f"the report of {report['policy']} has no episodes of {named}")


def title(task: Mapping[str, Any]) -> str:
    """What people call a task of a report: its id, and its setting where it has several."""
    setting = setting_of(task.get("named", ""))
    return f"{task['task']}, {setting}" if setting else str(task["task"])


def compare(report: Mapping[str, Any], other: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Paired comparison of two policies on the episodes that both reports have, per task.

    Raises:
        ConfigError: made under different protocols (see :func:`refuse_another`), or without a common episode.
    """
    refuse_another(report["protocol"], other)
    rows = []
    for task in report["per_task"]:
        match = next((t for t in other["per_task"] if title(t) == title(task)), None)
        if match is None:
            continue
        theirs = {(e["seed"], e["episode_index"]): e["success"] for e in match["per_episode"]}
        common = [e for e in task["per_episode"] if (e["seed"], e["episode_index"]) in theirs]
        if not common:
            continue
        confidence = task["success"]["once"]["confidence"]
        paired = compare_paired(
            [e["success"] for e in common],
            [theirs[e["seed"], e["episode_index"]] for e in common],
            confidence=confidence,
        )
        rows.append(
            {
                "task": title(task),
                "policies": [report["policy"], other["policy"]],
                "devices": [report.get("device", "cpu"), other.get("device", "cpu")],
                "episodes": paired.episodes,
                "both": paired.both,
                "only_first": paired.only_first,
                "only_second": paired.only_second,
                "neither": paired.neither,
                "difference": paired.difference.estimate,
                "low": paired.difference.low,
                "high": paired.difference.high,
                "resampled_low": paired.resampled.low,
                "resampled_high": paired.resampled.high,
                "confidence": confidence,
                "p_value": paired.p_value,
            }
        )
    if not rows:
        raise ConfigError("the reports have no episode in common")
    return rows
