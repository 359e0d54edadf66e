"""How sure a success rate is: intervals for one rate, for a difference of two, and a test on common episodes.

No SciPy at run time. Sources:
    Wilson, J. Am. Stat. Assoc. 22 (1927) 209-212; Newcombe, Statist. Med. 17 (1998) 857-872 (one proportion),
    873-890 (difference, independent; his method 10), 2635-2650 (difference, paired; his method 10);
    Clopper and Pearson, Biometrika 26 (1934) 404-413;
    McNemar, Psychometrika 12 (1947) 153-157, in its exact conditional form;
    Efron, Ann. Statist. 7 (1979) 1-26 (bootstrap), percentile intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import comb, lgamma, sqrt
from statistics import NormalDist

import numpy as np

from manikin.errors import ConfigError, UnknownNameError

__all__ = [
    "Interval",
    "Paired",
    "bisect",
    "bootstrap",
    "clopper_pearson",
    "compare_paired",
    "completion_rates",
    "count_pairs",
    "mcnemar_exact",
    "newcombe",
    "newcombe_paired",
    "optimistic_bound",
    "wilson",
]


@dataclass(frozen=True)
class Interval:
    """An estimate with a two-sided interval at ``confidence``."""

    estimate: float
    low: float
    high: float
    confidence: float = 0.95

    def __str__(self) -> str:
        return f"{self.estimate:.1%} [{self.low:.1%}, {self.high:.1%}]"


@dataclass(frozen=True)
class Paired:
    """Two policies on the same episodes.

    Attributes:
        both, only_first, only_second, neither: numbers of episodes by who succeeded.
        difference: rate of the first minus rate of the second, with Newcombe's paired interval.
        resampled: the same difference with its bootstrap interval, episodes drawn in pairs.
        p_value: of McNemar's exact test that both rates are equal, two-sided.
    """

    both: int
    only_first: int
    only_second: int
    neither: int
    difference: Interval
    resampled: Interval
    p_value: float

    @property
    def episodes(self) -> int:
        return self.both + self.only_first + self.only_second + self.neither


def _check(successes: int, trials: int, confidence: float) -> float:
    """The normal quantile of a two-sided interval; refuses what cannot be counts or a confidence level."""
    if trials <= 0 or not 0 <= successes <= trials:
        raise ConfigError(f"{successes} successes of {trials} trials: need trials >= 1 and 0 <= successes <= trials")
    if not 0 < confidence < 1:
        raise ConfigError(f"confidence {confidence} must lie between 0 and 1, for example 0.95")
    return NormalDist().inv_cdf(0.5 + confidence / 2)


def wilson(successes: int, trials: int, *, confidence: float = 0.95) -> Interval:
    """Wilson's score interval for a success rate. Never leaves [0, 1] and never has zero width.

    Raises:
        ConfigError: impossible counts or confidence.
    """
    z = _check(successes, trials, confidence)
    rate = successes / trials
    centre = (successes + z * z / 2) / (trials + z * z)
    half = z / (trials + z * z) * sqrt(trials * rate * (1 - rate) + z * z / 4)
    # the ends are exact where no episode (or every one) succeeded; rounding would give 1e-17
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == trials else min(1.0, centre + half)
    return Interval(rate, low, high, confidence)


def clopper_pearson(successes: int, trials: int, *, confidence: float = 0.95) -> Interval:
    """The exact interval for a success rate: it covers the true rate at least as often as ``confidence`` says.

    It is wider than Wilson's, which covers it so often on average over rates.

    Raises:
        ConfigError: impossible counts or confidence.
    """
    _check(successes, trials, confidence)
    tail = (1 - confidence) / 2
    counts = np.arange(trials + 1)
    ways = np.array([lgamma(trials + 1) - lgamma(k + 1) - lgamma(trials - k + 1) for k in counts])

    def at_least(count: int, rate: float) -> float:
        """Chance of ``count`` or more successes."""
        chances = np.exp(ways + counts * np.log(rate) + (trials - counts) * np.log1p(-rate))
        return float(chances[count:].sum())

    low = 0.0 if successes == 0 else bisect(lambda rate: at_least(successes, rate) - tail)
    high = 1.0 if successes == trials else bisect(lambda rate: at_least(successes + 1, rate) - (1 - tail))
    return Interval(successes / trials, low, high, confidence)


def completion_rates(done: Sequence[int], subtasks: int, *, confidence: float = 0.95) -> list[Interval]:
    """Progressive completion of a sequence, with Wilson's intervals: of each k from 1 to ``subtasks`` the share of
    episodes that did the first k. ``done`` says how many each episode did before one failed.

    Raises:
        ConfigError: there is no episode, or one did more than all.
    """
    if not done or max(done) > subtasks:
        raise ConfigError(
            f"episodes of {subtasks} subtasks did {list(done)} of them; there is none, or one did too many"
        )
    return [wilson(sum(one >= k for one in done), len(done), confidence=confidence) for k in range(1, subtasks + 1)]


def optimistic_bound(kinds: Sequence[str], rates: Mapping[str, float]) -> list[float]:
    """Products of the rates that subtasks of these kinds, one after the other, have on their own. A sequence would be
    completed so often if no subtask made it harder for those after it.

    Raises:
        UnknownNameError: a kind has no rate.
    """
    out, product = [], 1.0
    for kind in kinds:
        if kind not in rates:
            raise UnknownNameError("kind of subtask with a rate", kind, tuple(rates))
        product *= rates[kind]
        out.append(product)
    return out


def bisect(rising: Callable[[float], float], low: float = 0.0, high: float = 1.0) -> float:
    """Where a function that rises between ``low`` and ``high`` passes 0, to the last bits of a float."""
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if rising(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def bootstrap(
    values: Sequence[float],
    *,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Interval:
    """Mean of ``values`` with its percentile bootstrap interval: of outcomes, or of differences on common episodes.

    Args:
        values: one per episode, for example 1.0 for a success.
        clusters: which episodes belong together, one word per episode, and are drawn together: several runs of one
            scene, or all episodes of one policy seed. None where every episode stands alone.
        confidence: of the interval.
        resamples: how often clusters are drawn with replacement.
        seed: of the draws.

    Raises:
        ConfigError: no values, another number of clusters, only one cluster, or an impossible confidence.
    """
    data = np.asarray(values, np.float64)
    if not len(data) or resamples < 1 or not 0 < confidence < 1:
        raise ConfigError("a bootstrap needs values, at least one resample, and a confidence between 0 and 1")
    words = range(len(data)) if clusters is None else clusters
    places = {word: place for place, word in enumerate(dict.fromkeys(words))}
    if clusters is not None and (len(clusters) != len(data) or len(places) < 2):
        raise ConfigError(f"clusters: one word for each of {len(data)} values, of two or more clusters")
    member = np.array([places[word] for word in words])
    sizes, sums = np.bincount(member), np.bincount(member, data)
    rng = np.random.default_rng(seed)  # house: random, a stream of its own
    means = []
    for count in [1000] * (resamples // 1000) + [resamples % 1000]:  # a table of all would be large
        drawn = rng.integers(len(sizes), size=(count, len(sizes)))
        means.append(sums[drawn].sum(1) / sizes[drawn].sum(1))
    low, high = np.quantile(np.concatenate(means), [(1 - confidence) / 2, (1 + confidence) / 2]).tolist()
    return Interval(float(data.mean()), low, high, confidence)


def newcombe(first: int, first_of: int, second: int, second_of: int, *, confidence: float = 0.95) -> Interval:
    """First rate minus second rate, for episodes that are *not* shared. Newcombe's method 10 (from Wilson's limits).

    Raises:
        ConfigError: impossible counts or confidence.
    """
    a = wilson(first, first_of, confidence=confidence)
    b = wilson(second, second_of, confidence=confidence)
    return _combine(a, b, 0.0)


def newcombe_paired(
    both: int, only_first: int, only_second: int, neither: int, *, confidence: float = 0.95
) -> Interval:
    """First rate minus second rate on common episodes, their correlation taken into account (paired method 10).

    Raises:
        ConfigError: impossible counts or confidence.
    """
    if min(both, only_first, only_second, neither) < 0:
        raise ConfigError("counts of episodes cannot be negative")
    n = both + only_first + only_second + neither
    first, second = both + only_first, both + only_second
    a, b = wilson(first, n, confidence=confidence), wilson(second, n, confidence=confidence)
    product = first * (n - first) * second * (n - second)
    correlation = 0.0
    if product:
        excess = float(both * neither - only_first * only_second)
        # Newcombe's continuity correction: half an episode of positive association is not counted
        excess = max(excess - n / 2, 0.0) if excess > 0 else excess
        correlation = excess / sqrt(product)
    return _combine(a, b, correlation)


def _combine(a: Interval, b: Interval, correlation: float) -> Interval:
    """Square-and-add the distances from the estimates to Wilson's limits, less the covariance term."""
    below_a, above_a = a.estimate - a.low, a.high - a.estimate
    below_b, above_b = b.estimate - b.low, b.high - b.estimate
    difference = a.estimate - b.estimate
    down = sqrt(max(0.0, below_a**2 - 2 * correlation * below_a * above_b + above_b**2))
    up = sqrt(max(0.0, above_a**2 - 2 * correlation * above_a * below_b + below_b**2))
    return Interval(difference, max(-1.0, difference - down), min(1.0, difference + up), a.confidence)


def mcnemar_exact(only_first: int, only_second: int) -> float:
    """Two-sided p value that two policies are equally good, from the episodes on which they disagree.

    Under equality each disagreement falls either way with probability 1/2 (exact conditional test).

    Raises:
        ConfigError: negative counts.
    """
    if min(only_first, only_second) < 0:
        raise ConfigError(f"counts of disagreements cannot be negative, got {only_first} and {only_second}")
    n, k = only_first + only_second, min(only_first, only_second)
    return min(1.0, 2 * sum(comb(n, i) for i in range(k + 1)) / 2**n)


def count_pairs(first: Sequence[bool], second: Sequence[bool]) -> tuple[int, int, int, int]:
    """On how many episodes both succeeded, only the first, only the second, and neither.

    Raises:
        ConfigError: different numbers of episodes, or none.
    """
    if len(first) != len(second) or not len(first):
        raise ConfigError(
            f"a paired comparison needs the same episodes on both sides, got {len(first)} and {len(second)}"
        )
    pairs = [(bool(a), bool(b)) for a, b in zip(first, second, strict=True)]
    both, only_first, only_second, neither = (
        pairs.count(kind) for kind in ((True, True), (True, False), (False, True), (False, False))
    )
    return both, only_first, only_second, neither


def compare_paired(first: Sequence[bool], second: Sequence[bool], *, confidence: float = 0.95) -> Paired:
    """Compare two policies by their successes on the same episodes, in the same order.

    Args:
        first: one flag per episode.
        second: the same episodes.
        confidence: of the interval of the difference.

    Raises:
        ConfigError: different numbers of episodes, or none.
    """
    both, only_first, only_second, neither = count_pairs(first, second)
    return Paired(
        both,
        only_first,
        only_second,
        neither,
        difference=newcombe_paired(both, only_first, only_second, neither, confidence=confidence),
        resampled=bootstrap([float(a) - float(b) for a, b in zip(first, second, strict=True)], confidence=confidence),
        p_value=mcnemar_exact(only_first, only_second),
    )
