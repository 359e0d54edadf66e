"""MMRV, correlations, Kruskal-Wallis and their intervals, against SIMPLER's published tables and SciPy."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

from manikin.errors import ConfigError
from manikin.eval.agreement.metrics import METRICS, delta_success, kruskal_wallis, mmrv, pearson, spearman
from manikin.eval.agreement.trials import agreement, delta_success_interval, resampled, trials

SIMPLER = json.loads((Path(__file__).parents[2] / "published" / "simpler.json").read_text())
PUBLISHED, SHIFTS = SIMPLER["columns"], [one for one in SIMPLER["shifts"] if "base" in one]
"""Tables IV to VII and XIV of SIMPLER (arXiv:2405.05941) as printed. Real rates are rounded to three digits, and the
printed metrics were computed from unrounded simulated rates: hence the tolerance below."""

# What is printed does not follow from the rates beside it; docs/rank-policies.md says why. Column -> what does follow.
OTHER_PEARSON = {
    ("visual_matching", "drawer/close"): 0.771,
    ("visual_matching", "eggplant_in_basket/grasp"): 0.972,
    ("visual_matching", "eggplant_in_basket/success"): 0.970,
}
OTHER_KRUSKAL = {"pick_coke_can/average": 4, "drawer/average": 3, "eggplant_in_basket/grasp": 0}


def _key(column: dict[str, Any]) -> tuple[str, str]:
    return column["kind"], column["column"]


@pytest.mark.parametrize("column", PUBLISHED, ids=lambda c: "-".join(_key(c)))
def test_published_values_come_out(column: dict[str, Any]) -> None:
    real, sim = column["real"], column["sim"]
    assert mmrv(real=real, sim=sim) == pytest.approx(column["mmrv"], abs=0.0015)
    expected = OTHER_PEARSON.get(_key(column), column["pearson"])
    assert pearson(real=real, sim=sim) == pytest.approx(expected, abs=0.0045)


@pytest.mark.parametrize("key", list(OTHER_PEARSON), ids="-".join)
def test_what_does_not_follow_from_the_printed_rates_is_known(key: tuple[str, str]) -> None:
    (column,) = [c for c in PUBLISHED if _key(c) == key]
    assert abs(column["pearson"] - pearson(real=column["real"], sim=column["sim"])) > 0.0025


def test_kruskal_wallis_counts_the_published_policies() -> None:
    """Table XIV: policies whose trials in simulation differ from the real ones, trials rebuilt from the rates."""
    for column in PUBLISHED:
        if "kruskal" in column:
            rates, count = zip(column["real"], column["sim"], strict=True), column["trials"]
            found = [kruskal_wallis(real=trials(r, count), sim=trials(s, count)).p_value for r, s in rates]
            expected = OTHER_KRUSKAL.get(column["column"], column["kruskal"])
            assert sum(p < 0.05 for p in found) == expected, column["column"]


# Table XI: the printed Pearson of the averages does not follow from the rates beside it. Column -> what does follow.
OTHER_FURTHER = {("XI", "pick_coke_can/average"): 0.976, ("XI", "move_near/average"): 0.868}


@pytest.mark.parametrize("column", SIMPLER["further"], ids=lambda one: f"{one['table']}-{one['column']}")
def test_tables_of_isaac_sim_and_of_a_single_task_come_out(column: dict[str, Any]) -> None:
    """Tables XI and XIII."""
    real, sim, key = column["real"], column["sim"], (column["table"], column["column"])
    assert mmrv(real=real, sim=sim) == pytest.approx(column["mmrv"], abs=0.0015)
    found = pearson(real=real, sim=sim)
    assert found == pytest.approx(OTHER_FURTHER.get(key, column["pearson"]), abs=0.0015)
    assert (abs(found - column["pearson"]) > 0.0015) == (key in OTHER_FURTHER)


@pytest.mark.parametrize("row", SIMPLER["visual_gaps"], ids=lambda r: f"{r['background']}-{r['drawer']}-{r['robot']}")
def test_tables_of_the_visual_gap_come_out(row: dict[str, Any]) -> None:
    """Table IX from its rates, and Table III as the means over both tasks, of the printed values of Table IX."""
    for task in ("open", "close"):
        found, printed = mmrv(real=row[task]["real"], sim=row[task]["sim"]), row[task]["mmrv"]
        if printed == 0.111:  # two simulated rates are equal; the largest violation is printed, not the mean
            assert found == pytest.approx(0.111 / 3, abs=0.0015)
        else:
            assert found == pytest.approx(printed, abs=0.0015)
    both = [row[task]["mmrv"] for task in ("open", "close")]
    assert np.mean(both) == pytest.approx(row["table_III"]["mmrv"], abs=1e-3)
    gaps = [abs(r - s) for t in ("open", "close") for r, s in zip(row[t]["real"], row[t]["sim"], strict=True)]
    assert np.mean(gaps) == pytest.approx(row["table_III"]["gap"], abs=1e-3)


@pytest.mark.parametrize("printed", SIMPLER["averages"], ids=lambda one: one["kind"])
def test_table_i_is_the_mean_of_table_iv(printed: dict[str, Any]) -> None:
    """'Drawer' is the mean of the drawers' and the apple's value, 'average' that of the three columns."""
    for name in ("mmrv", "pearson"):
        of = {one["column"]: one[name] for one in PUBLISHED if one["kind"] == printed["kind"]}
        drawer = (of["drawer/average"] + of["place_apple_in_top_drawer/average"]) / 2
        found = {"pick_coke_can": of["pick_coke_can/average"], "move_near": of["move_near/average"], "drawer": drawer}
        assert printed[name] == pytest.approx({**found, "average": np.mean(list(found.values()))}, abs=0.0015)


def test_mmrv_by_hand() -> None:
    # three policies; simulation swaps the first two, whose real rates differ by 0.3
    assert mmrv(real=[0.2, 0.5, 0.9], sim=[0.6, 0.4, 0.8]) == pytest.approx((0.3 + 0.3 + 0.0) / 3)
    # a tie in simulation is charged to the policy with the lower real rate: 0.9 for the first, 0.6 for the second
    assert mmrv(real=[0.0, 0.3, 0.9], sim=[0.4, 0.4, 0.4]) == pytest.approx((0.9 + 0.6 + 0.0) / 3)
    assert mmrv(real=[0.2, 0.8], sim=[0.5, 0.5]) == pytest.approx(0.3)
    assert mmrv(real=[0.1, 0.5, 0.9], sim=[0.3, 0.3, 0.8]) == pytest.approx(0.4 / 3)
    assert mmrv(real=[0.5, 0.5], sim=[0.1, 0.9]) == 0.0  # a real tie costs nothing
    # not symmetric: the weight is always the real difference
    assert mmrv(real=[0.1, 0.9], sim=[0.6, 0.5]) == pytest.approx(0.8)
    assert mmrv(real=[0.6, 0.5], sim=[0.1, 0.9]) == pytest.approx(0.1)


def test_correlations_are_scipys() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        real, sim = rng.integers(0, 11, (2, 7)) / 10  # with ties
        assert pearson(real=real, sim=sim) == pytest.approx(scipy.stats.pearsonr(real, sim).statistic)
        assert spearman(real=real, sim=sim) == pytest.approx(scipy.stats.spearmanr(real, sim).statistic)


def test_many_rates_at_once_are_those_of_each() -> None:
    real, sim = np.random.default_rng(1).integers(0, 6, (2, 40, 4)) / 5
    together = {name: compute(real, sim) for name, compute in METRICS.items()}
    for i, (r, s) in enumerate(zip(real, sim, strict=True)):
        for name, alone in (("mmrv", mmrv), ("pearson", pearson), ("spearman", spearman)):
            if math.isnan(together[name][i]):
                assert np.ptp(r) == 0 or np.ptp(s) == 0
            else:
                assert together[name][i] == pytest.approx(alone(real=r, sim=s))


@pytest.mark.parametrize("metric", [pearson, spearman])
def test_what_is_not_defined_is_named(metric: object) -> None:
    with pytest.raises(ConfigError, match=r"undefined: all simulated rates are equal \(0.4\)"):
        metric(real=[0.1, 0.5], sim=[0.4, 0.4])  # type: ignore[operator]
    with pytest.raises(ConfigError, match="all real rates are equal"):
        metric(real=[0.1, 0.1], sim=[0.4, 0.5])  # type: ignore[operator]
    with pytest.raises(ConfigError, match=r"fewer than 2 \(1\)"):
        metric(real=[0.1], sim=[0.4])  # type: ignore[operator]


def test_bad_rates_are_refused() -> None:
    with pytest.raises(ConfigError, match="fractions from 0 to 1"):
        mmrv(real=[85.3, 92.0], sim=[0.8, 0.7])
    with pytest.raises(ConfigError, match="fractions from 0 to 1"):
        mmrv(real=[0.8, math.nan], sim=[0.8, 0.7])
    with pytest.raises(ConfigError, match="got 2 and 3"):
        mmrv(real=[0.8, 0.1], sim=[0.8, 0.7, 0.1])
    with pytest.raises(TypeError):
        mmrv([0.1, 0.2], [0.1, 0.2])  # type: ignore[misc]


def test_kruskal_wallis_is_scipys() -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        real, sim = rng.random(25) < rng.random(), rng.random(40) < 0.5
        expected = scipy.stats.kruskal(real, sim)
        found = kruskal_wallis(real=real.tolist(), sim=sim.tolist())
        assert found.statistic == pytest.approx(expected.statistic)
        assert found.p_value == pytest.approx(expected.pvalue)
    same = kruskal_wallis(real=[True] * 5, sim=[True] * 9)
    assert (same.statistic, same.p_value) == (0.0, 1.0)
    with pytest.raises(ConfigError, match="at least one"):
        kruskal_wallis(real=[], sim=[True])


def test_delta_success_is_that_of_table_vi() -> None:
    # Table VII, RT-1 without augmentation, pick coke can, background: base .92, variants .933 and .907; printed .013
    assert delta_success(base=0.92, shifts=[0.933, 0.907]) == pytest.approx(0.013, abs=5e-4)
    assert delta_success(base=0.92, shifts=[0.053, 0.28]) == pytest.approx(0.753, abs=6e-4)
    with pytest.raises(ConfigError, match="no shift"):
        delta_success(base=0.5, shifts=[])


def test_the_interval_of_delta_success_is_that_of_trials_drawn_anew() -> None:
    """Reference: lists of trials drawn with replacement, one list after another, from random numbers of its own."""
    base, shifts = trials(0.7, 40), [trials(0.5, 40), trials(0.9, 40)]
    rng = np.random.default_rng(7)

    def change(*lists: np.ndarray) -> float:
        return float(np.mean([abs(one.mean() - lists[0].mean()) for one in lists[1:]]))

    table = np.array([base, *shifts], float)
    alone = [change(*(rng.choice(one, 40) for one in table)) for _ in range(4000)]
    together = [change(*table[:, rng.integers(40, size=40)]) for _ in range(4000)]
    step = 1 / 40 + 1e-9  # what rates of 40 trials can differ by
    widths = []
    for drawn, episodes in ((alone, None), (together, range(40))):
        found = delta_success_interval(base=base, shifts=shifts, clusters=episodes)
        assert found.value == delta_success(base=0.7, shifts=[0.5, 0.9]) == pytest.approx(0.2)
        assert (found.low, found.high) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])), abs=step)
        widths.append(found.high - found.low)
    assert widths[0] > widths[1]  # an episode that succeeds in one list does in the next: they share noise
    # two runs of each of 20 episodes are drawn together
    pairs = delta_success_interval(base=base, shifts=shifts, clusters=[k // 2 for k in range(40)])
    drawn = [change(*table[:, (2 * rng.integers(20, size=20)[:, None] + [0, 1]).ravel()]) for _ in range(4000)]
    assert (pairs.low, pairs.high) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])), abs=step)
    with pytest.raises(ConfigError, match="no shift"):
        delta_success_interval(base=base, shifts=[])
    with pytest.raises(ConfigError, match="one word for each of 40 trials, in the base and in every shift"):
        delta_success_interval(base=base, shifts=[base, base[:39]], clusters=range(40))
    with pytest.raises(ConfigError, match="at least one"):
        delta_success_interval(base=base, shifts=[[]])


OTHER_SHIFTS = {("rt-1_without_aug", "pick_coke_can", "distractors")}  # a rate of Table VII, 0.901, should be 0.907


@pytest.mark.parametrize("shift", SHIFTS, ids=lambda one: f"{one['policy']}-{one['task']}")
def test_table_vi_follows_from_table_vii(shift: dict[str, Any]) -> None:
    found = {kind: delta_success(base=shift["base"], shifts=rates) for kind, rates in shift["rates"].items()}
    off = {kind for kind in found if abs(found[kind] - shift["delta"][kind]) > 0.0015}
    assert {(shift["policy"], shift["task"], kind) for kind in off} <= OTHER_SHIFTS
    real, sim = ([shift[side][kind] for kind in found] for side in ("real_delta", "delta"))
    assert pearson(real=real, sim=sim) == pytest.approx(shift["pearson"], abs=0.0045)
    # the column called MMRV has the largest violation of all, not the mean over kinds of shift
    order = list(zip(real, sim, strict=True))
    worst = [max(abs(r - other) * ((s < more) != (r < other)) for other, more in order) for r, s in order]
    assert mmrv(real=real, sim=sim) == pytest.approx(np.mean(worst))
    assert max(worst) == pytest.approx(shift["mmrv"], abs=0.0015) or shift["mmrv"] == 0  # one is printed as 0.000


@pytest.mark.parametrize("average", [one for one in SIMPLER["shifts"] if "base" not in one], ids=lambda a: a["policy"])
def test_the_averages_of_table_vi_are_means_of_both_tasks(average: dict[str, Any]) -> None:
    tasks = [one for one in SHIFTS if one["policy"] == average["policy"]]
    for kind, printed in average["delta"].items():
        assert np.mean([one["delta"][kind] for one in tasks]) == pytest.approx(printed, abs=0.0015)
    real, sim = ([average[side][kind] for kind in average["delta"]] for side in ("real_delta", "delta"))
    assert pearson(real=real, sim=sim) == pytest.approx(average["pearson"], abs=0.0015)
    order = list(zip(real, sim, strict=True))
    worst = max(abs(r - other) * ((s < more) != (r < other)) for r, s in order for other, more in order)
    assert worst == pytest.approx(average["mmrv"], abs=0.0015)  # the largest violation is printed


# ---- trials ----------------------------------------------------------------------------------------------------------


def _table(rates: dict[str, float], count: int) -> dict[str, dict[str, list[bool]]]:
    return {name: {"all": trials(rate, count)} for name, rate in rates.items()}


REAL = _table({"a": 0.2, "b": 0.5, "c": 0.9}, 30)
SIM = _table({"a": 0.3, "b": 0.45, "c": 0.8}, 200)


def test_agreement_has_the_measured_values_and_intervals() -> None:
    found = agreement(real=REAL, sim=SIM, resamples=4000, seed=3)
    assert found.policies == ("a", "b", "c") and found.real == pytest.approx((0.2, 0.5, 0.9))
    assert found.metrics["mmrv"].value == 0.0 == found.metrics["mmrv"].low
    assert found.metrics["pearson"].value == pytest.approx(scipy.stats.pearsonr(found.real, found.sim).statistic)
    for metric in found.metrics.values():
        assert metric.low is not None and metric.high is not None and metric.low <= metric.value <= metric.high
    assert found.kruskal["c"] == kruskal_wallis(real=REAL["c"]["all"], sim=SIM["c"]["all"])
    again = agreement(real=REAL, sim=SIM, resamples=4000, seed=3)
    assert again == found
    assert agreement(real=REAL, sim=SIM, resamples=4000, seed=4) != found


def test_resampled_rates_spread_as_binomials() -> None:
    """With two policies whose order is certain, Pearson is 1 and MMRV 0; a draw that swaps them costs the real gap."""
    real, sim = _table({"a": 0.4, "b": 0.6}, 50), _table({"a": 0.1, "b": 0.9}, 400)
    drawn = resampled(real=real, sim=sim, resamples=20_000, seed=5)
    # simulation never swaps; reality does where b's 50 trials have fewer successes than a's
    a, b = scipy.stats.binom(50, 0.4), scipy.stats.binom(50, 0.6)
    swapped = sum(a.pmf(k) * b.cdf(k - 1) for k in range(51))
    assert (drawn["mmrv"] > 0).mean() == pytest.approx(swapped, abs=4 * math.sqrt(swapped / 20_000))


def test_settings_count_once_each() -> None:
    """Three orientations with 100, 100 and 10 trials: the rate is the mean of the three, not of 210 trials."""
    settings = {"lying": trials(0.9, 100), "standing": trials(0.5, 100), "upright": trials(0.1, 10)}
    found = agreement(real={"a": settings, "b": {"all": trials(0.2, 20)}}, sim=_table({"a": 0.6, "b": 0.1}, 20))
    assert found.real[0] == pytest.approx(0.5)
    assert list(found.kruskal) == ["b"]
    why = "the real settings have different numbers of trials (10 to 100), so all trials together have another rate"
    assert found.untested == {"a": why}


def test_settings_of_one_size_are_tested_together() -> None:
    """As in simpler_google_matched: three orientations on the robot, each in four colours in simulation."""
    real = {"lying": trials(0.9, 25), "standing": trials(0.5, 25), "upright": trials(0.1, 25)}
    colours = {f"{name}-{k}": trials(rate, 25) for name, rate in (("l", 0.8), ("s", 0.2), ("u", 0.0)) for k in range(4)}
    found = agreement(real={"a": real, "b": REAL["b"]}, sim={"a": colours, "b": SIM["b"]}, resamples=100)
    expected = scipy.stats.kruskal(np.concatenate(list(real.values())), np.concatenate(list(colours.values())))
    assert found.kruskal["a"].statistic == pytest.approx(expected.statistic)
    assert found.kruskal["a"].p_value == pytest.approx(expected.pvalue) and not found.untested
    colours["u-0"] = [True] * 24
    found = agreement(real={"a": real, "b": REAL["b"]}, sim={"a": colours, "b": SIM["b"]}, resamples=100)
    assert list(found.kruskal) == ["b"] and "the simulated settings" in found.untested["a"]


def test_one_real_draw_for_two_simulations() -> None:
    """The change between two simulations is not blurred by the real trials: they are the same draws."""
    better = resampled(real=REAL, sim=SIM, resamples=500, seed=6)
    same = resampled(real=REAL, sim=SIM, resamples=500, seed=6)
    assert all(np.array_equal(better[name], same[name]) for name in better)


def test_undefined_metrics_say_why() -> None:
    found = agreement(real=REAL, sim=_table({"a": 0.5, "b": 0.5, "c": 0.5}, 10), resamples=200)
    assert found.metrics["pearson"].value is None and "all simulated rates are equal" in str(found.metrics["pearson"])
    assert found.metrics["mmrv"].value is not None
    one = agreement(real={"a": REAL["a"]}, sim={"a": SIM["a"]}, resamples=200)
    assert all(metric.value is None and "fewer than 2" in metric.why for metric in one.metrics.values())
    # sometimes constant in a resample: the share is told, and the interval is of the others
    few = agreement(real=_table({"a": 0.5, "b": 0.75}, 4), sim=_table({"a": 0.25, "b": 0.5}, 4), resamples=2000)
    assert 0 < few.metrics["pearson"].undefined < 1 and "undefined in" in str(few.metrics["pearson"])


def test_other_policies_or_missing_trials_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"only in reality: c; only in simulation: d"):
        agreement(real=REAL, sim={**{k: SIM[k] for k in "ab"}, "d": SIM["c"]})
    with pytest.raises(ConfigError, match="a has no simulated trials"):
        agreement(real=REAL, sim={**SIM, "a": {"all": []}})
    with pytest.raises(ConfigError, match="True or False"):
        agreement(real=REAL, sim={**SIM, "a": {"all": [0.5]}})  # type: ignore[list-item]
    with pytest.raises(ConfigError, match="at least one trial"):
        trials(0.5, 0)


def test_trials_are_the_nearest_count() -> None:
    assert trials(0.853, 75).count(True) == 64 and len(trials(0.853, 75)) == 75
