"""Rates, and which of two policies is better, of what is in a store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from manikin.errors import ConfigError
from manikin.eval.stats import Interval, Paired, compare_paired, wilson
from manikin.results.store import Store, Tables

__all__ = ["RunRate", "TaskComparison", "compare_runs", "find_run", "rates"]


@dataclass(frozen=True)
class RunRate:
    """How often a run succeeded in a task.

    Attributes:
        run: its row of ``runs``.
        task: the protocol's word for it.
        successes, episodes: numbers.
        interval: Wilson's, 95 %.
        failures: how episodes failed -> how many.
    """

    run: dict[str, Any]
    task: str
    successes: int
    episodes: int
    interval: Interval
    failures: dict[str, int]


@dataclass(frozen=True)
class TaskComparison:
    """Two runs in one task, on the episodes that both played.

    Attributes:
        task: the protocol's word for it.
        paired: the counts, the difference and its test.
        alone: how many episodes only one of them played.
    """

    task: str
    paired: Paired
    alone: int


def rates(store: Store | Tables) -> list[RunRate]:
    """Of every evaluation in the store by task, the highest first within a protocol and task."""
    runs = {run["run"]: run for run in store.runs()}
    counted = store.query(
        "SELECT run, named, mode, count(*) AS n, count(*) FILTER (success) AS wins FROM episodes "
        "GROUP BY run, named, mode ORDER BY run, named, n DESC, mode"
    )
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in counted:
        found.setdefault((row["run"], row["named"]), []).append(row)
    out = []
    for (run, task), rows in found.items():
        successes, episodes = sum(row["wins"] for row in rows), sum(row["n"] for row in rows)
        failures = {row["mode"]: row["n"] - row["wins"] for row in rows if row["n"] > row["wins"]}
        out.append(RunRate(runs[run], task, successes, episodes, wilson(successes, episodes), failures))
    return sorted(out, key=_order)


def _order(rate: RunRate) -> tuple[Any, ...]:
    return rate.run["name"], rate.run["protocol_hash"], rate.task, -rate.interval.estimate, rate.run["run"]


def find_run(store: Store | Tables, word: str) -> dict[str, Any]:
    """The run that a word names: the beginning of its id, or its policy, of which the newest is taken.

    Raises:
        ConfigError: none, or several ids begin so.
    """
    runs = store.runs()
    by_id = [run for run in runs if len(word) >= 4 and run["run"].startswith(word)]
    if len(by_id) > 1:
        raise ConfigError(f"{len(by_id)} results begin with {word!r}; give more of the id")
    by_policy = [run for run in runs if run["policy"] == word and run["kind"] == "evaluation"]
    found = by_id or by_policy[:1]
    if not found:
        known = dict.fromkeys(f"{run['run'][:8]} ({run['policy'] or run['name']})" for run in runs[:12])
        raise ConfigError(f"no result {word!r}; there are {', '.join(known) or 'none'}")
    return found[0]


def compare_runs(store: Store, first: str, second: str) -> list[TaskComparison]:
    """Two evaluations of one protocol, task by task, on the episodes that both played.

    Args:
        store: of both.
        first: a word as of :func:`find_run`.
        second: likewise.

    Raises:
        ConfigError: no such result, two protocols, or no episode in common.
    """
    tables = store.read()
    a, b = find_run(tables, first), find_run(tables, second)
    if a["protocol_hash"] != b["protocol_hash"] or not a["protocol_hash"]:
        said = [f"{run['name']} ({(run['protocol_hash'] or 'no protocol')[:12]})" for run in (a, b)]
        raise ConfigError(f"results of different protocols cannot be compared: {said[0]} and {said[1]}")
    rows = tables.query(
        "SELECT named, x.success AS first, y.success AS second FROM "
        "(SELECT * FROM episodes WHERE run = ?) x FULL JOIN (SELECT * FROM episodes WHERE run = ?) y "
        "USING (named, seed, episode_index) ORDER BY named, seed, episode_index",
        (a["run"], b["run"]),
    )
    of: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        of.setdefault(row["named"], []).append(row)
    out = []
    for task, found in of.items():
        both = [row for row in found if row["first"] is not None and row["second"] is not None]
        if both:
            paired = compare_paired([row["first"] for row in both], [row["second"] for row in both])
            out.append(TaskComparison(task, paired, len(found) - len(both)))
    if not out:
        raise ConfigError("the two results have no episode in common")
    return out
