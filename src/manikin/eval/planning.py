"""How many episodes a question needs, before any is run.

Sources: Fleiss, Levin and Paik, Statistical Methods for Rates and Proportions, 3rd ed. 2003, equation 4.14 (two rates,
other episodes); McNemar's exact test on common episodes, whose power is summed here over all outcomes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from statistics import NormalDist

import numpy as np

from manikin.errors import ConfigError
from manikin.eval.sequential import anytime_p
from manikin.eval.stats import wilson
from manikin.moved import old_names

__all__ = ["EpisodePlan", "episodes_for_width", "mcnemar_power", "plan"]

MOST = 20_000


@dataclass(frozen=True)
class EpisodePlan:
    """Episodes of each policy.

    Attributes:
        first, second: the rates that are to be told apart. power: the chance that the test sees the difference.
        common: both policies play the same episodes, McNemar's exact test; None where more than 20,000 are needed.
        other: each plays its own episodes.
        stopped: median of the episodes after which :class:`~manikin.eval.sequential.Sequential` knows which is better,
            at most four times ``common``; None where it knew in fewer than half of the simulated experiments.
    """

    first: float
    second: float
    power: float
    confidence: float
    correlation: float
    common: int | None
    other: int
    stopped: int | None


def plan(
    first: float,
    second: float,
    *,
    power: float = 0.8,
    confidence: float = 0.95,
    correlation: float = 0.0,
    seed: int = 0,
) -> EpisodePlan:
    """How many episodes tell two success rates apart.

    Args:
        first: a success rate, strictly between 0 and 1.
        second: another one.
        power: chance that the test finds the difference.
        confidence: 1 - the chance that it finds one where there is none.
        correlation: between the two policies' outcomes in the same episode: 0 where an episode that is hard for one is
            no harder for the other. More of it needs fewer common episodes.
        seed: of the simulation behind ``stopped``.

    Raises:
        ConfigError: rates that are equal or not rates, or a correlation that such rates cannot have.
    """
    if not 0 < first < 1 or not 0 < second < 1 or first == second:
        raise ConfigError(f"rates {first} and {second}: need two different ones, strictly between 0 and 1")
    if not 0 < power < 1 or not 0 < confidence < 1:
        raise ConfigError(f"power {power} and confidence {confidence} must lie between 0 and 1")
    only_first, only_second = _discordant(first, second, correlation)
    alpha = NormalDist().inv_cdf(0.5 + confidence / 2)
    beta = NormalDist().inv_cdf(power)
    mean = (first + second) / 2
    spread = alpha * sqrt(2 * mean * (1 - mean)) + beta * sqrt(first * (1 - first) + second * (1 - second))
    other = ceil(spread**2 / (first - second) ** 2)
    common = _common(only_first, only_second, power, confidence)
    stopped = _stopped(only_first, only_second, confidence, 4 * common, seed) if common else None
    return EpisodePlan(first, second, power, confidence, correlation, common, other, stopped)


def episodes_for_width(rate: float, half_width: float, *, confidence: float = 0.95) -> int:
    """Episodes after which Wilson's interval is at most twice ``half_width`` wide, near ``rate``.

    Raises:
        ConfigError: no rate, or a width that is not between 0 and 0.5.
    """
    if not 0 <= rate <= 1 or not 0 < half_width < 0.5:
        raise ConfigError(f"rate {rate} and half width {half_width}: need 0 <= rate <= 1 and 0 < half width < 0.5")
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    count = max(1, ceil(z * z * rate * (1 - rate) / half_width**2) // 2)
    while True:
        found = wilson(round(rate * count), count, confidence=confidence)
        if found.high - found.low <= 2 * half_width:
            return count
        count += 1


def mcnemar_power(episodes: int, only_first: float, only_second: float, *, confidence: float = 0.95) -> float:
    """Chance that McNemar's exact test finds a difference.

    Args:
        episodes: common ones.
        only_first: chance that the first policy alone succeeds in an episode.
        only_second: chance that the second does.
        confidence: 1 - the test's limit of the p value.
    """
    disagree = only_first + only_second
    chances = _binomial(episodes, disagree)
    seen = [n for n in range(1, episodes + 1) if chances[n] > 1e-12]
    return float(sum(chances[n] * _beyond(n, only_first / disagree, 1 - confidence) for n in seen))


def _beyond(n: int, share: float, alpha: float) -> float:
    """Chance that n disagreements, each the first's with chance ``share``, part so unequally that the test sees it."""
    fair = 2 * np.cumsum(_binomial(n, 0.5)[: n // 2 + 1])
    seen = int(np.searchsorted(fair, alpha * (1 + 1e-12), side="right"))  # so many counts of the rarer side, from 0
    chances = _binomial(n, share)
    return float(chances[:seen].sum() + chances[n + 1 - seen :].sum())


def _binomial(n: int, rate: float) -> np.ndarray:
    """(n + 1,) chances of 0 to n successes."""
    if rate in (0.0, 1.0):
        return np.eye(1, n + 1, n if rate else 0)[0]
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    k = np.arange(n + 1)
    return np.asarray(np.exp(logs[n] - logs - logs[::-1] + k * np.log(rate) + (n - k) * np.log1p(-rate)))


def _common(only_first: float, only_second: float, power: float, confidence: float) -> int | None:
    """The fewest common episodes with this power. An exact test's power falls a little now and then: it must last."""

    def enough(count: int) -> bool:
        return mcnemar_power(count, only_first, only_second, confidence=confidence) >= power

    high = 8
    while not enough(high):
        if high > MOST:
            return None
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    while not all(enough(high + more) for more in range(6)):
        high += 1
    return high


def _stopped(only_first: float, only_second: float, confidence: float, most: int, seed: int) -> int | None:
    """Median of the episodes after which a test that looks after every episode knows, over 1,000 experiments."""
    rng = np.random.default_rng(seed)  # house: random, a stream of its own
    drawn = rng.random((1000, most))
    first = np.cumsum(drawn < only_first, 1)
    disagree = np.cumsum(drawn < only_first + only_second, 1)
    # of n disagreements, so many have to be one policy's; the number never falls as n rises
    needed, wins = [], 0
    for n in range(most + 1):
        while wins <= n and (2 * wins < n or anytime_p(wins, n) > 1 - confidence):
            wins += 1
        needed.append(wins)
    known = np.maximum(first, disagree - first) >= np.array(needed)[disagree]
    after = np.where(known.any(1), known.argmax(1) + 1, most + 1)
    median = int(np.median(after))
    return median if median <= most else None


def _discordant(first: float, second: float, correlation: float) -> tuple[float, float]:
    """Chances that one policy alone succeeds."""
    both = first * second + correlation * sqrt(first * (1 - first) * second * (1 - second))
    only_first, only_second = first - both, second - both
    if not -1 <= correlation < 1 or min(only_first, only_second, both, 1 - first - second + both) < -1e-12:
        raise ConfigError(f"outcomes with rates {first} and {second} cannot have a correlation of {correlation}")
    return max(only_first, 0.0), max(only_second, 0.0)


__getattr__ = old_names(__name__)
