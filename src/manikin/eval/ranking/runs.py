"""Reports of several policies, policy seeds and variant protocols, sorted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from manikin.errors import ConfigError, DataError
from manikin.eval.protocol import task_of
from manikin.eval.report import read_report, refuse_another, title

__all__ = ["Runs", "Setting", "find_reports", "read_runs"]

Report = Mapping[str, Any]


@dataclass(frozen=True)
class Setting:
    """One task of a protocol in one setting.

    Attributes:
        word: the protocol's word for it.
        task: the task's id. title: what people call it.
    """

    word: str
    task: str
    title: str


@dataclass(frozen=True)
class Runs:
    """Reports of one base protocol and of its variants.

    Attributes:
        base: by policy, its reports under the base protocol, one per policy seed.
        shifts: by shift, then by protocol's name, then as ``base``.
        folders: by policy, where its reports under the base protocol lie.
    """

    base: Mapping[str, Sequence[Report]]
    shifts: Mapping[str, Mapping[str, Mapping[str, Sequence[Report]]]] = field(default_factory=dict)
    folders: Mapping[str, Sequence[Path]] = field(default_factory=dict)

    @property
    def policies(self) -> tuple[str, ...]:
        return tuple(self.base)

    @property
    def protocol(self) -> Mapping[str, Any]:
        """The base protocol, as a report tells it."""
        found: Mapping[str, Any] = next(iter(self.base.values()))[0]["protocol"]
        return found

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Those of which every policy has episodes, in the protocol's order."""
        return common_settings([report for reports in self.base.values() for report in reports])

    @property
    def healthy(self) -> bool:
        return all(report["healthy"] for reports in self.base.values() for report in reports)


def common_settings(reports: Sequence[Report]) -> tuple[Setting, ...]:
    """Settings that all reports have episodes of, in the order of the first one."""
    found = []
    for task in reports[0]["per_task"]:
        setting = Setting(task.get("named", task["task"]), task["task"], title(task))
        if all(any(True for _ in episodes_of(report, setting)) for report in reports):
            found.append(setting)
    return tuple(found)


def episodes_of(report: Report, setting: Setting) -> Iterator[Mapping[str, Any]]:
    """Its episodes of a setting."""
    for task in report["per_task"]:
        if title(task) == setting.title:
            yield from task["per_episode"]


def outcomes_of(reports: Sequence[Report], setting: Setting) -> tuple[list[bool], list[int]]:
    """Successes of all policy seeds, and beside them the episodes' seeds."""
    episodes = [episode for report in reports for episode in episodes_of(report, setting)]
    return [e["success"] for e in episodes], [e["seed"] for e in episodes]


def find_reports(places: Sequence[str | Path]) -> list[Path]:
    """Files of reports: a place is a report.json, or a folder with reports in it or in its folders.

    Raises:
        DataError: a place has none.
    """
    found: list[Path] = []
    for place in map(Path, places):
        files = [place] if place.is_file() else sorted(place.glob("**/report.json"))
        if not files:
            raise DataError(f"{place} is no report.json, and no folder with one")
        found += [file for file in files if file not in found]
    return found


def read_runs(places: Sequence[str | Path]) -> Runs:
    """Sort the reports of several runs.

    Raises:
        DataError: a place has no report, or one cannot be read.
        ConfigError: the reports are of several protocols and these do not say what they shift; of protocols that only
            shift; or two are of one policy, one policy seed and one protocol.
    """
    if not places:
        raise ConfigError("name folders of evaluations, or their report.json")
    files = find_reports(places)
    reports = [read_report(file) for file in files]
    first = next((r for r in reports if not r["protocol"].get("shift")), None)
    alone = len({r["protocol"]["hash"] for r in reports}) == 1  # a variant by itself is ranked as any protocol
    if first is None and not alone:
        raise ConfigError("all reports are of protocols with a shift; give those of the base protocol, too")
    for report in reports:
        if first is not None and not report["protocol"].get("shift"):
            refuse_another(first["protocol"], report)
    base: dict[str, list[Report]] = {}
    folders: dict[str, list[Path]] = {}
    shifts: dict[str, dict[str, dict[str, list[Report]]]] = {}
    seen: dict[tuple[Any, ...], Path] = {}
    for file, report in zip(files, reports, strict=True):
        protocol, policy = report["protocol"], report["policy"]
        shift = "" if alone else protocol.get("shift", "")
        key = (protocol["hash"], shift, policy, report.get("policy_seed"))
        if key in seen:
            raise ConfigError(
                f"{seen[key]} and {file} are both of the policy {policy} under one protocol and one policy seed. "
                "Evaluate with --policy NAME=POLICY to tell policies apart"
            )
        seen[key] = file
        if not report["per_task"]:
            raise ConfigError(f"{file} has no finished episode")
        if shift:
            shifts.setdefault(shift, {}).setdefault(protocol["name"], {}).setdefault(policy, []).append(report)
        else:
            base.setdefault(policy, []).append(report)
            folders.setdefault(policy, []).append(file.parent)
    runs = Runs(base, shifts, folders)
    if not runs.settings:
        raise ConfigError("there is no task of which every policy has a finished episode")
    return runs


def trials_by_task(runs: Runs) -> dict[str, dict[str, dict[str, list[bool]]]]:
    """Task's id -> policy -> setting -> outcomes."""
    found: dict[str, dict[str, dict[str, list[bool]]]] = {}
    for setting in runs.settings:
        for policy, reports in runs.base.items():
            by_setting = found.setdefault(task_of(setting.task), {}).setdefault(policy, {})
            by_setting[setting.word] = outcomes_of(reports, setting)[0]
    return found
