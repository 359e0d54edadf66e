"""Metrics of agreement with intervals, from the trials of each policy in reality and in simulation."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manikin.errors import ConfigError
from manikin.eval.agreement.metrics import METRICS, KruskalWallis, delta_success, kruskal_wallis, why_undefined

__all__ = ["Agreement", "Metric", "Trials", "agreement", "delta_success_interval", "resampled", "trials"]

Trials = Mapping[str, Sequence[bool]]
"""Outcomes of one policy's trials by setting: an orientation, a drawer, a variant. Its rate is the mean of the
settings' rates, each counted once, as SIMPLER averages."""


def trials(rate: float, count: int) -> list[bool]:
    """Outcomes that a published rate stands for: the nearest number of successes among ``count`` trials."""
    if not 0 <= rate <= 1 or count < 1:
        raise ConfigError(f"a rate of {rate} among {count} trials: need 0 <= rate <= 1 and at least one trial")
    wins = round(rate * count)
    return [True] * wins + [False] * (count - wins)


@dataclass(frozen=True)
class Metric:
    """A metric with its percentile bootstrap interval.

    Attributes:
        value: of the measured rates; None where it is not defined, and ``why`` says why.
        low, high: of the resamples in which it is defined; None where there are none.
        undefined: share of resamples in which it is not defined.
    """

    value: float | None
    low: float | None
    high: float | None
    undefined: float = 0.0
    why: str = ""

    def __str__(self) -> str:
        if self.value is None:
            return f"undefined: {self.why}"
        interval = f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"
        return interval + (f", undefined in {self.undefined:.0%} of resamples" if self.undefined else "")


@dataclass(frozen=True)
class Agreement:
    """How simulation and reality compare over policies.

    Attributes:
        policies: their names; all lists below have this order.
        real, sim: success rates.
        metrics: "mmrv", "pearson" and "spearman".
        kruskal: by policy, the test of all of its trials, those of several settings together.
        untested: policies without that test -> why: with settings of different sizes all trials together have another
            rate than the settings on average.
    """

    policies: tuple[str, ...]
    real: tuple[float, ...]
    sim: tuple[float, ...]
    metrics: Mapping[str, Metric]
    kruskal: Mapping[str, KruskalWallis]
    untested: Mapping[str, str]


def agreement(
    *,
    real: Mapping[str, Trials],
    sim: Mapping[str, Trials],
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Agreement:
    """All metrics of the policies, with intervals over trials.

    Args:
        real: name of a policy -> its trials by setting.
        sim: the same policies; settings and numbers of trials may differ.
        confidence: of the intervals.
        resamples: of the bootstrap, see :func:`resampled`.
        seed: of the bootstrap.

    Raises:
        ConfigError: other policies in ``sim`` than in ``real``, or a setting without trials.
    """
    if not 0 < confidence < 1:
        raise ConfigError(f"confidence {confidence} must lie between 0 and 1, for example 0.95")
    names = _same_policies(real, sim)
    rates = {"real": _all_rates(real, names), "sim": _all_rates(sim, names)}
    drawn = resampled(real=real, sim=sim, resamples=resamples, seed=seed)
    tail = (1 - confidence) / 2
    metrics = {}
    for name, compute in METRICS.items():
        why = why_undefined(rates["real"], rates["sim"], name)
        value = None if why else float(compute(rates["real"], rates["sim"]))
        found = drawn[name][~np.isnan(drawn[name])]
        low, high = np.quantile(found, [tail, 1 - tail]).tolist() if len(found) and not why else (None, None)
        metrics[name] = Metric(value, low, high, 1 - len(found) / resamples, why)
    untested = {name: why for name in names if (why := _uneven("real", real[name]) or _uneven("simulated", sim[name]))}
    return Agreement(
        policies=names,
        real=tuple(rates["real"].tolist()),
        sim=tuple(rates["sim"].tolist()),
        metrics=metrics,
        kruskal={
            name: kruskal_wallis(real=_together(real[name]), sim=_together(sim[name]))
            for name in names
            if name not in untested
        },
        untested=untested,
    )


def _uneven(word: str, settings: Trials) -> str:
    """Why all trials of a policy together are no sample of its rate; "" where they are."""
    sizes = sorted({len(one) for one in settings.values()})
    if len(sizes) < 2:
        return ""
    return (
        f"the {word} settings have different numbers of trials ({sizes[0]} to {sizes[-1]}), so all trials together "
        "have another rate"
    )


def _together(settings: Trials) -> list[bool]:
    return [won for one in settings.values() for won in one]


def delta_success_interval(
    *,
    base: Sequence[bool],
    shifts: Sequence[Sequence[bool]],
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Metric:
    """:func:`~manikin.eval.agreement.metrics.delta_success` of trials, with its percentile bootstrap interval.

    Noise adds changes, up or down, so resampled changes lie above the measured one more often than not.

    Args:
        base: outcomes of the scene as it is.
        shifts: outcomes under each variant of one distribution shift.
        clusters: where the k-th trial of all lists is the same episode, one word for each trial: trials with the same
            word are drawn together, in all lists alike. None where the lists are drawn on their own.
        confidence: of the interval.
        resamples: of the bootstrap.
        seed: of the draws.

    Raises:
        ConfigError: no shift, a list without trials, another number of clusters or trials, impossible numbers.
    """
    if not 0 < confidence < 1 or resamples < 1:
        raise ConfigError("an interval needs a confidence between 0 and 1, and at least one resample")
    lists = [np.asarray(one, np.float64) for one in (base, *shifts)]
    if not all(one.ndim == 1 and len(one) and np.isin(one, (0, 1)).all() for one in lists):
        raise ConfigError("base and shifts: trials are lists of True and False, at least one")
    value = delta_success(base=float(lists[0].mean()), shifts=[float(one.mean()) for one in lists[1:]])
    rng = np.random.default_rng(seed)  # house: random, a stream of its own
    if clusters is None:
        rates = np.stack([rng.binomial(len(one), one.mean(), resamples) / len(one) for one in lists])
    else:
        if any(len(one) != len(clusters) for one in lists):
            raise ConfigError(f"clusters: one word for each of {len(base)} trials, in the base and in every shift")
        places = {word: place for place, word in enumerate(dict.fromkeys(clusters))}
        member = np.array([places[word] for word in clusters])
        sizes, sums = np.bincount(member), np.stack([np.bincount(member, one) for one in lists])
        counts = rng.multinomial(len(sizes), np.full(len(sizes), 1 / len(sizes)), resamples)
        rates = (sums @ counts.T) / (counts @ sizes)
    drawn = np.abs(rates[1:] - rates[0]).mean(0)
    low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2]).tolist()
    return Metric(value, low, high)


def resampled(
    *, real: Mapping[str, Trials], sim: Mapping[str, Trials], resamples: int = 10_000, seed: int = 0
) -> dict[str, np.ndarray]:
    """Each metric in ``resamples`` experiments that might have been: name -> (resamples,), NaN where it is not defined.

    Every setting's trials are drawn anew with replacement, of each policy, in reality and in simulation. The real
    trials depend on ``seed`` alone: two calls with the same ``real`` and another ``sim`` share them, so that the
    difference of their results is that of a change in simulation.

    Noise adds violations of rank, so resampled MMRV lies above the measured one more often than not.
    """
    names = _same_policies(real, sim)
    if resamples < 1:
        raise ConfigError(f"resamples must be at least 1, got {resamples}")
    if len(names) < 2:
        return {name: np.full(resamples, np.nan) for name in METRICS}
    streams = np.random.default_rng(seed).spawn(2)  # house: random, a stream of its own
    rates = []
    for table, stream in zip((real, sim), streams, strict=True):
        own = zip(names, stream.spawn(len(names)), strict=True)
        rates.append(np.stack([_resampled_rate(table[name], rng, resamples) for name, rng in own], -1))
    return {name: compute(*rates) for name, compute in METRICS.items()}


def _resampled_rate(settings: Trials, rng: Any, resamples: int) -> np.ndarray:
    """(resamples,). The successes among n outcomes drawn with replacement are binomial."""
    drawn = [rng.binomial(len(one), float(np.mean(one)), resamples) / len(one) for one in settings.values()]
    return np.asarray(np.mean(drawn, axis=0))


def _same_policies(real: Mapping[str, Trials], sim: Mapping[str, Trials]) -> tuple[str, ...]:
    if real.keys() != sim.keys():
        lost, added = sorted(real.keys() - sim.keys()), sorted(sim.keys() - real.keys())
        said = [f"only in reality: {', '.join(lost)}"] if lost else []
        said += [f"only in simulation: {', '.join(added)}"] if added else []
        raise ConfigError(f"real and simulated results name different policies; {'; '.join(said)}")
    for word, table in (("real", real), ("simulated", sim)):
        for policy, settings in table.items():
            if not settings or not all(len(one) for one in settings.values()):
                raise ConfigError(f"{policy} has no {word} trials, or a setting without any")
            for setting, one in settings.items():
                if not np.isin(np.asarray(one), (0, 1)).all():
                    raise ConfigError(f"{policy}, {setting}: {word} trials are True or False")
    return tuple(real)


def _all_rates(table: Mapping[str, Trials], names: Sequence[str]) -> np.ndarray:
    return np.array([np.mean([np.mean(one) for one in table[name].values()]) for name in names])
