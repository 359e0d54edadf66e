"""Which policy is better, from the episodes that all of them played."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any

import numpy as np

from manikin.errors import ConfigError
from manikin.eval.agreement.trials import delta_success_interval
from manikin.eval.ranking.runs import Report, Runs, Setting, episodes_of, outcomes_of
from manikin.eval.stats import Interval, bootstrap, newcombe, newcombe_paired, wilson
from manikin.eval.variants import variants_in

__all__ = ["Delta", "Ranked", "Shift", "deltas_of", "rank", "rate_of", "shifts_of"]

RESAMPLES = 10_000


@dataclass(frozen=True)
class Ranked:
    """One policy among others.

    Attributes:
        policy: its name.
        rate: mean of the tasks' success rates, a task's being the mean over its settings; with its interval, which
            adds up those of the settings.
        first, last: between which ranks it lies with the confidence, 1 for the best.
        best: share of resamples in which it is the best.
        above_next: share of resamples in which it is better than the one after it, equal ones counted half; None for
            the last.
        seeds: policy seeds. lowest, highest: rates of the worst and the best of them.
    """

    policy: str
    rate: Interval
    first: int
    last: int
    best: float
    above_next: float | None
    seeds: int
    lowest: float
    highest: float


def rate_of(reports: Sequence[Report], setting: Setting, *, confidence: float) -> Interval:
    """Success rate of a policy in one setting: Wilson's interval; of several policy seeds the bootstrap that draws the
    runs of one episode together. Where all of these ended alike, it has no width: then Wilson's, an episode counting
    once."""
    outcomes, seeds = outcomes_of(reports, setting)
    if len(reports) == 1:
        return wilson(sum(outcomes), len(outcomes), confidence=confidence)
    episodes = len(set(seeds))
    if all(outcomes) or not any(outcomes) or episodes < 2:
        return wilson(round(episodes * sum(outcomes) / len(outcomes)), episodes, confidence=confidence)
    return bootstrap([float(won) for won in outcomes], clusters=seeds, confidence=confidence)


def rank(runs: Runs, *, confidence: float = 0.95, resamples: int = RESAMPLES, seed: int = 0) -> list[Ranked]:
    """All policies, the best first.

    Episodes are drawn anew, the same ones for all policies, and of each the runs of all policy seeds together.

    Raises:
        ConfigError: a setting without an episode that all policies played.
    """
    rng = np.random.default_rng(seed)  # house: random, a stream of its own
    names, settings = runs.policies, runs.settings
    measured: dict[str, list[np.ndarray]] = {}
    drawn: dict[str, list[np.ndarray]] = {}
    for setting in settings:
        table = _common_episodes([runs.base[name] for name in names], setting)
        counts = rng.multinomial(len(table), np.full(len(table), 1 / len(table)), resamples)
        measured.setdefault(setting.task, []).append(table.mean(0))
        drawn.setdefault(setting.task, []).append(counts @ table / len(table))
    rates = np.mean([np.mean(one, axis=0) for one in measured.values()], axis=0)
    samples = np.mean([np.mean(one, axis=0) for one in drawn.values()], axis=0)  # (resamples, policies)
    better = (samples[:, None] > samples[:, :, None] + 1e-12).sum(2)  # how many are better than each
    equal = (np.abs(samples[:, None] - samples[:, :, None]) <= 1e-12).sum(2)
    tail = (1 - confidence) / 2
    # equal ones share the places from the first to the last of them
    first, last = np.quantile(better + 1, tail, axis=0), np.quantile(better + equal, 1 - tail, axis=0)
    wins = (better == 0) / np.where(better == 0, equal, 1)  # several best ones share
    order = sorted(range(len(names)), key=lambda k: (-rates[k], names[k]))
    found = []
    for place, k in enumerate(order):
        after = order[place + 1] if place + 1 < len(order) else None
        above = None
        if after is not None:
            gap = samples[:, k] - samples[:, after]
            above = float((gap > 1e-12).mean() + (np.abs(gap) <= 1e-12).mean() / 2)
        own = [_overall([report], settings) for report in runs.base[names[k]]]
        rate = _mean_rate(runs.base[names[k]], settings, float(rates[k]), confidence)
        ends = int(np.floor(first[k])), int(np.ceil(last[k]))
        found.append(Ranked(names[k], rate, *ends, float(wins[:, k].mean()), above, len(own), min(own), max(own)))
    return found


def _common_episodes(policies: Sequence[Sequence[Report]], setting: Setting) -> np.ndarray:
    """(episodes, policies) successes of the episodes that all runs have, mean over policy seeds."""

    def successes(report: Report) -> dict[int, bool]:
        return {e["episode_ix"]: e["success"] for e in episodes_of(report, setting)}

    of = [[successes(report) for report in reports] for reports in policies]
    common = sorted(set.intersection(*(set(run) for runs in of for run in runs)))
    if not common:
        raise ConfigError(f"{setting.title}: there is no episode that all policies played")
    return np.array([[np.mean([run[place] for run in runs]) for runs in of] for place in common])


def _mean_rate(reports: Sequence[Report], settings: Sequence[Setting], rate: float, confidence: float) -> Interval:
    """The mean over tasks with an interval: distances to the ends of the settings' intervals, squared and added. Unlike
    a bootstrap it has a width where every episode ended alike. Zou and Donner, Statist. Med. 27 (2008) 1693-1702."""
    tasks = [setting.task for setting in settings]
    below = above = 0.0
    for setting in settings:
        share = 1 / (len(set(tasks)) * tasks.count(setting.task))
        one = rate_of(reports, setting, confidence=confidence)
        below += (share * (one.estimate - one.low)) ** 2
        above += (share * (one.high - one.estimate)) ** 2
    return Interval(rate, max(0.0, rate - sqrt(below)), min(1.0, rate + sqrt(above)), confidence)


def _overall(reports: Sequence[Report], settings: Sequence[Setting]) -> float:
    by_task: dict[str, list[float]] = {}
    for setting in settings:
        by_task.setdefault(setting.task, []).append(float(np.mean(outcomes_of(reports, setting)[0])))
    return float(np.mean([np.mean(rates) for rates in by_task.values()]))


@dataclass(frozen=True)
class Shift:
    """What one variant of the protocol does to one policy in one setting.

    Attributes:
        shift, variant: what is changed, and the variant's protocol or, of a set of variants, its name.
        change: its rate minus that of the base, with its interval.
        paired: on the same episodes.
    """

    shift: str
    variant: str
    policy: str
    setting: Setting
    change: Interval
    paired: bool

    @property
    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def shifts_of(runs: Runs, *, confidence: float = 0.95) -> list[Shift]:
    """Changes of success of every policy under every variant of the base protocol, and under the variants in it.

    Raises:
        ConfigError: a variant has a policy that the base has not, or no task of the base.
    """
    return [Shift(one.shift, one.variant, one.policy, one.before, *_change(one, confidence)) for one in _changed(runs)]


@dataclass(frozen=True)
class Delta:
    """How much all variants of one shift change one policy's success in one setting.

    Attributes:
        shift: what is changed. variants: in how many ways.
        delta: mean of the absolute changes, with its bootstrap interval.
        paired: on the same episodes.
    """

    shift: str
    policy: str
    setting: Setting
    variants: int
    delta: Interval
    paired: bool

    @property
    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def deltas_of(runs: Runs, *, confidence: float = 0.95) -> list[Delta]:
    """Delta success of every policy, shift and setting.

    Raises:
        ConfigError: as :func:`shifts_of`.
    """
    groups: dict[tuple[str, str, str], list[_Changed]] = {}
    for one in _changed(runs):
        groups.setdefault((one.shift, one.policy, one.before.title), []).append(one)
    found = []
    for (shift, policy, _), several in groups.items():
        base = _by_key(several[0].base, several[0].before)
        there = [_by_key(one.reports, one.setting) for one in several]
        paired = all(one.keys() == base.keys() for one in there)
        keys = [list(base) if paired else list(one) for one in (base, *there)]
        lists = [[one[key] for key in own] for one, own in zip((base, *there), keys, strict=True)]
        seeds = [seed for _, seed, _ in base] if paired else None
        metric = delta_success_interval(base=lists[0], shifts=lists[1:], clusters=seeds, confidence=confidence)
        assert metric.value is not None and metric.low is not None and metric.high is not None
        delta = Interval(metric.value, metric.low, metric.high, confidence)
        found.append(Delta(shift, policy, several[0].before, len(several), delta, paired))
    return found


@dataclass(frozen=True)
class _Changed:
    """A policy's reports in a setting under a variant, and those of the base that they are compared with."""

    shift: str
    variant: str
    policy: str
    reports: Sequence[Report]
    setting: Setting
    base: Sequence[Report]
    before: Setting


def _changed(runs: Runs) -> Iterator[_Changed]:
    for shift, variants in runs.shifts.items():
        for variant, by_policy in variants.items():
            if unknown := sorted(set(by_policy) - set(runs.base)):
                raise ConfigError(
                    f"the variant {variant} was run with {', '.join(unknown)}, the base protocol only with "
                    f"{', '.join(runs.base)}: run these policies under the base protocol, too"
                )
            for policy, reports in by_policy.items():
                common = [s for s in runs.settings if any(True for r in reports for _ in episodes_of(r, s))]
                if not common:
                    raise ConfigError(f"the variant {variant} has no task of the base protocol")
                yield from (_Changed(shift, variant, policy, reports, s, runs.base[policy], s) for s in common)
    # the variants that a protocol has as settings of its own (manikin eval --variants)
    settings = {setting.word: setting for setting in runs.settings}
    for policy, reports in runs.base.items():
        word = (reports[0].get("variants") or {}).get("set")
        for base, within in variants_in(word, settings).items() if word else ():
            for one, name in within:
                yield _Changed(one.shift, one.name, policy, reports, settings[name], reports, settings[base])


def _change(one: _Changed, confidence: float) -> tuple[Interval, bool]:
    there, before = _by_key(one.reports, one.setting), _by_key(one.base, one.before)
    if there.keys() == before.keys() and len(one.reports) > 1:
        gaps = [float(there[key]) - float(before[key]) for key in there]
        return bootstrap(gaps, clusters=[seed for _, seed, _ in there], confidence=confidence), True
    if there.keys() == before.keys():
        pairs = [(there[key], before[key]) for key in there]
        counts = [pairs.count(kind) for kind in ((True, True), (True, False), (False, True), (False, False))]
        return newcombe_paired(*counts, confidence=confidence), True
    new, old = list(there.values()), list(before.values())
    return newcombe(sum(new), len(new), sum(old), len(old), confidence=confidence), False


def _by_key(reports: Sequence[Report], setting: Setting) -> Mapping[tuple[Any, ...], bool]:
    return {
        (report.get("policy_seed"), e["seed"], e["episode_index"]): e["success"]
        for report in reports
        for e in episodes_of(report, setting)
    }
