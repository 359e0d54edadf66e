"""Sequential tests: how often they are wrong, and how an evaluation ends with them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import scipy.special
import scipy.stats

from manikin.errors import ConfigError
from manikin.eval.evaluation import evaluate
from manikin.eval.journal import Journal
from manikin.eval.pages.report import render_html
from manikin.eval.planning import episodes_for_width, mcnemar_power, plan
from manikin.eval.protocol import Protocol
from manikin.eval.report import as_dict, outcomes
from manikin.eval.sequential import Sequential, anytime_interval, anytime_p
from manikin.eval.stats import bootstrap, clopper_pearson, wilson
from manikin.policy.expert import ExpertPolicy

EXPERIMENTS, EPISODES = 10_000, 400


def _p(wins: np.ndarray, trials: np.ndarray, rate: float) -> np.ndarray:
    """The same p value by SciPy's beta function."""
    log_ratio = scipy.special.betaln(wins + 0.5, trials - wins + 0.5) - scipy.special.betaln(0.5, 0.5)
    return np.minimum(1.0, np.exp(-(log_ratio - wins * np.log(rate) - (trials - wins) * np.log1p(-rate))))


def test_p_value_is_the_ratio_of_likelihoods() -> None:
    for k, n, rate in ((0, 0, 0.5), (3, 10, 0.5), (90, 100, 0.8), (0, 40, 0.1)):
        expected = _p(np.array(k), np.array(n), rate)
        assert anytime_p(k, n, rate) == pytest.approx(float(expected), rel=1e-9)


@pytest.mark.parametrize("rate", [0.05, 0.5, 0.9])
def test_error_rate_is_kept_over_10_000_experiments(rate: float) -> None:
    """Looking after every one of 400 episodes, the true rate is rejected in at most 5 % of the experiments. Looking at
    Wilson's interval in the same way rejects it several times as often, which is why it must not be used so."""
    drawn = np.random.default_rng(7).random((EXPERIMENTS, EPISODES)) < rate
    wins, trials = drawn.cumsum(1), np.arange(1, EPISODES + 1)
    wrong = (_p(wins, trials[None], rate) <= 0.05).any(1).mean()
    assert wrong <= 0.05
    z = scipy.stats.norm.ppf(0.975)
    outside = np.abs(wins / trials - rate) > z * math.sqrt(rate * (1 - rate)) / np.sqrt(trials)  # Wilson's test
    assert outside[:, 9:].any(1).mean() > 0.15


def test_error_rate_of_a_comparison_is_kept_over_10_000_experiments() -> None:
    """Two equally good policies that differ on 30 % of the episodes: 'better' or 'worse' in at most 5 %."""
    drawn = np.random.default_rng(8).random((EXPERIMENTS, EPISODES))
    first, disagree = (drawn < 0.15).cumsum(1), (drawn < 0.3).cumsum(1)
    assert (_p(first, disagree, 0.5) <= 0.05).any(1).mean() <= 0.05


def test_anytime_interval_holds_what_its_test_does_not_reject() -> None:
    for k, n in ((0, 5), (5, 5), (7, 20), (90, 100)):
        interval = anytime_interval(k, n)
        for end in (interval.low, interval.high):
            if 0 < end < 1:
                assert anytime_p(k, n, end) == pytest.approx(0.05, rel=1e-6)
        narrow = wilson(k, n)
        assert interval.low <= narrow.low + 1e-12 and interval.high >= narrow.high - 1e-12
    with pytest.raises(ConfigError, match="impossible"):
        anytime_interval(3, 2)


def test_episodes_count_in_the_protocols_order() -> None:
    """Successes finish first. A test that counted them as they come would answer at once, and wrongly."""
    outcomes = [n % 2 == 0 for n in range(200)]
    test = Sequential(threshold=0.5)
    for n in sorted(range(200), key=lambda n: not outcomes[n]):
        test.add(n, outcomes[n])
    assert test.answer is None  # 100 of 200
    sure = Sequential(threshold=0.5)
    for n in reversed(range(30)):
        sure.add(n, True)
    assert sure.answer is not None and sure.answer.episodes < 30
    least = next(n for n in range(1, 30) if _p(np.array(n), np.array(n), 0.5) <= 0.05)
    assert sure.answer.episodes == least and "above 50.0%" in sure.answer.words


def test_a_comparison_names_the_better_policy() -> None:
    other = {n: n % 3 == 0 for n in range(100)}
    test = Sequential(against=other)
    for n in range(100):
        test.add(n, True)
    assert test.answer is not None and "this policy is better" in test.answer.words
    worse = Sequential(against=dict.fromkeys(range(100), True))
    for n in range(100):
        worse.add(n, n % 3 == 0)
    assert worse.answer is not None and "worse" in worse.answer.words
    with pytest.raises(ConfigError, match="lack episode 0"):
        Sequential(against={1: True}).add(0, True)
    with pytest.raises(ConfigError, match="one of the two"):
        Sequential()
    with pytest.raises(ConfigError, match="both excluded"):
        Sequential(threshold=1.0)


# ---- an evaluation that ends once it knows ---------------------------------------------------------------------------

SEEDS = tuple(range(1000, 1040))


@pytest.mark.parametrize("rows", [1, 16])
def test_an_evaluation_ends_once_it_knows_and_counts_the_first_episodes(rows: int, tmp_path: Path) -> None:
    """The expert of PickCube succeeds in these episodes. Neither the rows nor an interruption change what counts."""
    protocol = Protocol(name="known", tasks=("PickCube-v2",), seeds=SEEDS)

    def question(task: str) -> Sequential:
        assert task == "PickCube-v2"
        return Sequential(threshold=0.5)

    (task,) = evaluate(protocol, ExpertPolicy, num_envs=rows, until=question).tasks
    needed = next(n for n in range(1, 40) if _p(np.array(n), np.array(n), 0.5) <= 0.05)
    assert task.sequential and task.answer is not None and task.answer.episodes == needed
    assert [r.seed for r in task.results] == list(SEEDS[:needed])
    assert task.rate("once") == anytime_interval(needed, needed)
    if rows == 1:
        return
    journal = Journal(tmp_path / "episodes.jsonl", {"a": 1})
    finished: list[int] = []
    part = evaluate(
        protocol,
        ExpertPolicy,
        num_envs=4,
        until=question,
        journal=journal,
        on_result=lambda task, result: finished.append(result.number),
        stop=lambda: len(finished) >= 3,
    )
    assert part.interrupted and part.tasks[0].answer is None
    journal.close()
    journal = Journal(tmp_path / "episodes.jsonl", {"a": 1}, resume=True)
    resumed = evaluate(protocol, ExpertPolicy, num_envs=4, until=question, journal=journal)
    assert not resumed.interrupted and resumed.tasks[0].results == task.results
    # all that it needs is in the journal now
    again = evaluate(protocol, ExpertPolicy, num_envs=4, until=question, journal=journal)
    assert again.tasks[0].results == task.results and again.tasks[0].answer == task.answer


def test_a_report_tells_how_it_ended() -> None:
    protocol = Protocol(name="known", tasks=("PickCube-v2",), seeds=SEEDS[:6], horizon=2)
    found = evaluate(protocol, ExpertPolicy, num_envs=6, until=lambda task: Sequential(threshold=0.9))
    (told,) = as_dict(found)["per_task"]
    assert told["sequential"] and told["answer"]["episodes"] == len(told["per_episode"]) < 6
    assert "below 90.0%" in told["answer"]["words"]
    assert "holds at every number of episodes" in render_html(as_dict(found))
    long = evaluate(protocol, ExpertPolicy, num_envs=6, until=lambda task: Sequential(threshold=0.01))
    assert "was not answered" in render_html(as_dict(long)) and as_dict(long)["per_task"][0]["answer"] is None
    assert outcomes(as_dict(long), "PickCube-v2") == dict.fromkeys(range(6), False)
    with pytest.raises(ConfigError, match="no episodes of Lift-v2"):
        outcomes(as_dict(long), "Lift-v2")


# ---- exact intervals, bootstrap --------------------------------------------------------------------------------------


def test_clopper_pearson_is_scipys() -> None:
    for k, n in ((0, 1), (1, 1), (0, 30), (7, 20), (512, 512), (498, 512), (1, 3000)):
        for confidence in (0.8, 0.95, 0.99):
            expected = scipy.stats.binomtest(k, n).proportion_ci(confidence, method="exact")
            found = clopper_pearson(k, n, confidence=confidence)
            assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_bootstrap_of_a_rate_spreads_as_its_binomial() -> None:
    found = bootstrap([1.0] * 30 + [0.0] * 70, resamples=20_000)
    expected = scipy.stats.binom(100, 0.3).ppf([0.025, 0.975]) / 100
    assert found.estimate == pytest.approx(0.3)
    assert (found.low, found.high) == pytest.approx(tuple(expected), abs=0.011)
    assert bootstrap([1.0] * 30 + [0.0] * 70, resamples=20_000) == found


def test_clusters_widen_the_interval() -> None:
    """Ten runs of each of 20 scenes that always end alike say no more than 20 episodes do."""
    scenes = [float(s % 2) for s in range(20)]
    values, words = [s for s in scenes for _ in range(10)], [n for n in range(20) for _ in range(10)]
    together, alone = bootstrap(values, clusters=words), bootstrap(scenes)
    assert together.high - together.low == pytest.approx(alone.high - alone.low, abs=0.02)
    assert bootstrap(values).high - bootstrap(values).low < 0.5 * (alone.high - alone.low)
    with pytest.raises(ConfigError, match="two or more clusters"):
        bootstrap(values, clusters=[1] * 200)
    with pytest.raises(ConfigError, match="needs values"):
        bootstrap([])


# ---- planning --------------------------------------------------------------------------------------------------------


def test_numbers_of_episodes_are_the_textbooks() -> None:
    """Equation 4.14 of Fleiss, Levin and Paik, by SciPy's quantiles; 356 and 294 stand in tables of sample sizes."""
    for first, second, power, known in ((0.6, 0.7, 0.8, 356), (0.7, 0.8, 0.8, 294), (0.5, 0.9, 0.9, None)):
        mean = (first + second) / 2
        spread = scipy.stats.norm.ppf(0.975) * math.sqrt(2 * mean * (1 - mean))
        spread += scipy.stats.norm.ppf(power) * math.sqrt(first * (1 - first) + second * (1 - second))
        expected = math.ceil((spread / (first - second)) ** 2)
        assert plan(first, second, power=power).other == expected
        assert known is None or known == expected


def test_power_of_mcnemars_test_by_experiment() -> None:
    only_first, only_second, n = 0.24, 0.14, 150
    rng = np.random.default_rng(9)
    drawn = rng.multinomial(n, [only_first, only_second, 1 - only_first - only_second], 20_000)
    wins = drawn[:, 0]
    p = scipy.stats.binom(drawn[:, :2].sum(1), 0.5)
    seen = np.minimum(1.0, 2 * np.minimum(p.cdf(wins), p.sf(wins - 1))) <= 0.05
    assert mcnemar_power(n, only_first, only_second) == pytest.approx(seen.mean(), abs=0.015)


def test_a_plan_reaches_its_power_and_correlation_saves_episodes() -> None:
    found = plan(0.7, 0.8)
    assert found.common is not None and found.stopped is not None
    chances = 0.7 * 0.2, 0.8 * 0.3
    assert mcnemar_power(found.common, *chances) >= 0.8 > mcnemar_power(found.common - 30, *chances)
    alike = plan(0.7, 0.8, correlation=0.5)
    assert alike.common is not None and alike.common < 0.7 * found.common
    assert plan(0.5, 0.5001).common is None
    with pytest.raises(ConfigError, match="two different ones"):
        plan(0.5, 0.5)
    with pytest.raises(ConfigError, match=r"cannot have a correlation of 0.9"):
        plan(0.1, 0.9, correlation=0.9)


def test_width() -> None:
    count = episodes_for_width(0.5, 0.05)
    found = wilson(count // 2, count)
    assert found.high - found.low == pytest.approx(0.1, abs=0.001)
    with pytest.raises(ConfigError, match="half width"):
        episodes_for_width(0.5, 0.0)
