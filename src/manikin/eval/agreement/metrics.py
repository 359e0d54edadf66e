"""Does simulation rank policies as reality does? One number for two lists of success rates.

Sources:
    MMRV and the change of success under a shift: Li et al., SIMPLER, 2024, arXiv:2405.05941, equations 1, 2 and 6;
    Pearson, Proc. R. Soc. Lond. 58 (1895) 240-242; Spearman, Am. J. Psychol. 15 (1904) 72-101;
    Kruskal and Wallis, J. Am. Stat. Assoc. 47 (1952) 583-621.

Rates are fractions in [0, 1], one per policy, the same policies in the same order in ``real`` and ``sim``. Arguments
are given by name, because MMRV is not symmetric. A number that is not defined raises :class:`ConfigError` with the
reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import erfc, sqrt
from typing import Any

import numpy as np

from manikin.errors import ConfigError

__all__ = ["METRICS", "KruskalWallis", "delta_success", "kruskal_wallis", "mmrv", "pearson", "spearman"]

Rates = Sequence[float] | np.ndarray[Any, Any]


def mmrv(*, real: Rates, sim: Rates) -> float:
    """Mean maximum rank violation, 0 (ranks alike) to 1.

    A pair of policies that simulation puts in the other order than reality costs the difference of their real rates.
    Each policy counts its costliest pair; the result is the mean over policies. Equal simulated rates of two policies
    whose real rates differ cost the one with the lower real rate.
    """
    return _defined("mmrv", real, sim)


def pearson(*, real: Rates, sim: Rates) -> float:
    """Pearson's correlation of the rates, -1 to 1."""
    return _defined("pearson", real, sim)


def spearman(*, real: Rates, sim: Rates) -> float:
    """Spearman's correlation of the ranks, -1 to 1. Equal rates share the mean of their ranks."""
    return _defined("spearman", real, sim)


def delta_success(*, base: float, shifts: Rates) -> float:
    """Mean change of the success rate, up or down, over the variants of one distribution shift.

    SIMPLER's equation 6 has the signs, so that a gain hides a loss. Its tables have the mean of the absolute changes,
    as here.
    """
    values = _rates("base and shifts", [base, *shifts])
    if len(values) < 2:
        raise ConfigError("delta_success is undefined: there is no shift")
    return float(np.abs(values[1:] - values[0]).mean())


@dataclass(frozen=True)
class KruskalWallis:
    """Whether two sets of trials may come from one distribution.

    Attributes:
        statistic: H, with the correction for ties.
        p_value: from chi squared with one degree of freedom. Small: they differ.
    """

    statistic: float
    p_value: float


def kruskal_wallis(*, real: Sequence[bool], sim: Sequence[bool]) -> KruskalWallis:
    """The test of SIMPLER, for one policy's successes and failures in reality and in simulation.

    For outcomes of 0 and 1, H is (N - 1) r^2, N the number of all trials and r the correlation of outcome and group.
    Where every trial of both ended alike, nothing speaks for a difference: H is 0.
    """
    groups = [_outcomes("real", real), _outcomes("sim", sim)]
    outcome = np.concatenate(groups)
    if outcome.min() == outcome.max():
        return KruskalWallis(0.0, 1.0)
    group = np.repeat([0.0, 1.0], [len(one) for one in groups])
    statistic = (len(outcome) - 1) * float(np.corrcoef(group, outcome)[0, 1]) ** 2
    return KruskalWallis(statistic, erfc(sqrt(statistic / 2)))


# ---- many lists of rates at once, for the bootstrap: (..., policies) -> (...), NaN where it is not defined -----------


def _mmrv(real: np.ndarray, sim: np.ndarray) -> np.ndarray:
    def below(x: np.ndarray) -> np.ndarray:
        return np.asarray(x[..., :, None] < x[..., None, :])

    gap = np.abs(real[..., :, None] - real[..., None, :])
    return np.asarray((gap * (below(sim) != below(real))).max(-1).mean(-1))


def _pearson(real: np.ndarray, sim: np.ndarray) -> np.ndarray:
    x, y = (one - one.mean(-1, keepdims=True) for one in (real, sim))
    # constant rates leave rounding of the mean; it is no spread
    constant = (np.ptp(real, axis=-1) == 0) | (np.ptp(sim, axis=-1) == 0)
    size = np.where(constant, 1.0, np.sqrt((x * x).sum(-1) * (y * y).sum(-1)))
    return np.where(constant, np.nan, np.clip((x * y).sum(-1) / size, -1.0, 1.0))


def _ranks(x: np.ndarray) -> np.ndarray:
    left, right = x[..., :, None], x[..., None, :]
    return np.asarray((left > right).sum(-1) + ((left == right).sum(-1) + 1) / 2)


def _spearman(real: np.ndarray, sim: np.ndarray) -> np.ndarray:
    return _pearson(_ranks(real), _ranks(sim))


METRICS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "mmrv": _mmrv,
    "pearson": _pearson,
    "spearman": _spearman,
}
"""Name -> function of real and simulated rates (..., policies) that gives (...)."""


# ---- what is valid ---------------------------------------------------------------------------------------------------


def why_undefined(real: np.ndarray, sim: np.ndarray, name: str) -> str:
    """The reason why a metric of rates (policies,) is not defined; "" where it is."""
    if len(real) < 2:
        return f"it compares policies, and there are fewer than 2 ({len(real)})"
    if name == "mmrv":
        return ""
    for word, rates in (("real", real), ("simulated", sim)):
        if np.ptp(rates) == 0:
            return f"all {word} rates are equal ({rates[0]:.3g})"
    return ""


def _defined(name: str, real: Rates, sim: Rates) -> float:
    r, s = _rates("real", real), _rates("sim", sim)
    if len(r) != len(s):
        raise ConfigError(f"real and sim need one rate for each policy, in the same order; got {len(r)} and {len(s)}")
    if why := why_undefined(r, s, name):
        raise ConfigError(f"{name} is undefined: {why}")
    return float(METRICS[name](r, s))


def _rates(name: str, rates: Rates) -> np.ndarray:
    values = np.asarray(rates, np.float64)
    if values.ndim != 1 or not (np.isfinite(values) & (values >= 0) & (values <= 1)).all():
        raise ConfigError(f"{name}: success rates are fractions from 0 to 1, one per policy; got {rates}")
    return values


def _outcomes(name: str, outcomes: Sequence[bool]) -> np.ndarray:
    values = np.asarray(outcomes, np.float64)
    if values.ndim != 1 or not len(values) or not np.isin(values, (0.0, 1.0)).all():
        raise ConfigError(f"{name}: trials are a list of successes and failures (True and False), at least one")
    return values
