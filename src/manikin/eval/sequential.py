"""Stop an evaluation as soon as its answer is known, without more wrong answers than announced.

Looking at an ordinary interval after every episode, and stopping once it says what one hopes for, is wrong far more
often than in 5 % of experiments. The interval and the test here hold at all numbers of episodes at once. For k
successes among n episodes the evidence against a rate p is the ratio of two likelihoods: of all rates, weighted by
Jeffreys' prior Beta(1/2, 1/2), and of p. If p is the true rate, the chance that the ratio ever exceeds 1 / alpha is at
most alpha.

Sources: Ville, Étude critique de la notion de collectif, 1939; Robbins, Ann. Math. Statist. 41 (1970) 1397-1409;
Ramdas et al., Statist. Sci. 38 (2023) 576-601.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import exp, lgamma, log, log1p

from manikin.errors import ConfigError
from manikin.eval.stats import Interval, bisect

__all__ = ["Answer", "Sequential", "anytime_interval", "anytime_p"]


def anytime_interval(successes: int, trials: int, *, confidence: float = 0.95) -> Interval:
    """Interval for a success rate that holds at all numbers of trials at once.

    Raises:
        ConfigError: impossible counts or confidence.
    """
    if trials <= 0 or not 0 <= successes <= trials or not 0 < confidence < 1:
        raise ConfigError(f"{successes} successes of {trials} trials at confidence {confidence}: impossible")
    limit, rate = -log(1 - confidence), successes / trials
    low = 0.0 if not successes else bisect(lambda p: limit - _evidence(successes, trials, p), 0.0, rate)
    high = 1.0 if successes == trials else bisect(lambda p: _evidence(successes, trials, p) - limit, rate, 1.0)
    return Interval(rate, low, high, confidence)


def anytime_p(successes: int, trials: int, rate: float = 0.5) -> float:
    """P value that a success rate is ``rate``, two-sided, which holds at all numbers of trials at once.

    On common episodes of two policies: ``successes`` is how often the first alone succeeded, ``trials`` how often one
    alone did, and ``rate`` is 1/2.

    Raises:
        ConfigError: impossible counts, or a rate that is not strictly between 0 and 1.
    """
    if trials < 0 or not 0 <= successes <= trials or not 0 < rate < 1:
        raise ConfigError(f"{successes} successes of {trials} trials at rate {rate}: impossible")
    return min(1.0, exp(-_evidence(successes, trials, rate)))


def _evidence(k: int, n: int, rate: float) -> float:
    """Logarithm of the ratio of likelihoods against ``rate``."""
    weighted = lgamma(k + 0.5) + lgamma(n - k + 0.5) - lgamma(n + 1) - 2 * lgamma(0.5)
    return weighted - k * log(rate) - (n - k) * log1p(-rate)


@dataclass(frozen=True)
class Answer:
    """What was known, and after how many episodes.

    Attributes:
        episodes: the number after which it was known: the first ones of the protocol's order.
        words: the answer as a sentence.
    """

    episodes: int
    words: str


@dataclass
class Sequential:
    """Watches the episodes of one task, and knows when its question is answered.

    The question is whether the success rate is above or below ``threshold``, or, with ``against``, which of two
    policies is better. Episodes count in the order of the protocol, not in that in which they finish: short episodes
    finish early, and these are mostly successes.

    Attributes:
        threshold: a rate strictly between 0 and 1.
        against: number of an episode -> whether the other policy succeeded in it.
        confidence: 1 - the chance of a wrong answer.
        answer: None until it is known.
    """

    threshold: float | None = None
    against: Mapping[int, bool] | None = None
    confidence: float = 0.95
    answer: Answer | None = None
    _waiting: dict[int, bool] = field(default_factory=dict, repr=False)
    _next: int = field(default=0, repr=False)
    _wins: int = field(default=0, repr=False)
    _counts: tuple[int, int] = field(default=(0, 0), repr=False)  # only this policy, only the other

    def __post_init__(self) -> None:
        if (self.threshold is None) == (self.against is None):
            raise ConfigError("a sequential test needs a threshold, or the results of another policy: one of the two")
        if self.threshold is not None and not 0 < self.threshold < 1:
            raise ConfigError(f"threshold {self.threshold} must be a rate between 0 and 1, both excluded")

    def add(self, number: int, success: bool) -> None:
        """An episode has finished."""
        self._waiting[number] = success
        while self.answer is None and self._next in self._waiting:
            self._count(self._next, self._waiting.pop(self._next))
            self._next += 1
            self.answer = self._decide()

    def _count(self, number: int, success: bool) -> None:
        self._wins += success
        if self.against is not None:
            if number not in self.against:
                raise ConfigError(f"the other policy's results lack episode {number}")
            other, (ours, theirs) = self.against[number], self._counts
            self._counts = ours + (success and not other), theirs + (other and not success)

    def _decide(self) -> Answer | None:
        n = self._next
        if self.threshold is not None:
            if anytime_p(self._wins, n, self.threshold) > 1 - self.confidence:
                return None
            side = "above" if self._wins / n > self.threshold else "below"
            interval = anytime_interval(self._wins, n, confidence=self.confidence)
            return Answer(n, f"after {n} episodes the success rate is {side} {self.threshold:.1%}: {interval}")
        ours, theirs = self._counts
        p = anytime_p(ours, ours + theirs)
        if p > 1 - self.confidence:
            return None
        side = "better" if ours > theirs else "worse"
        return Answer(
            n, f"after {n} episodes this policy is {side}: {ours} episodes to {theirs} that one alone won, p = {p:.2g}"
        )
