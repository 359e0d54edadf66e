"""The runner, statistics, protocols and reports."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import torch

from manikin.data.recorder import Recorder
from manikin.data.recording.read import read_episodes
from manikin.errors import ActionError, ConfigError, DataError
from manikin.eval.protocol import Protocol, load_protocol, shipped_protocols
from manikin.eval.report import read_report
from manikin.eval.runner import interruptible, run_episodes
from manikin.eval.stats import compare_paired, mcnemar_exact, newcombe, newcombe_paired, wilson
from toy_env import Chase, ToyEnv

# ---- the runner ------------------------------------------------------------------------------------------------------

EPISODES = [(seed, seed % 3) for seed in range(100, 137)]


@pytest.mark.parametrize("stop_at_success", [True, False])
def test_every_episode_runs_once_and_the_batch_size_does_not_matter(stop_at_success: bool) -> None:
    runs = {}
    for n in (1, 4, 37, 64):
        env = ToyEnv(n, stop_at_success=stop_at_success)
        run = run_episodes(env, Chase(horizon=3), EPISODES)
        assert not run.interrupted and run.env_steps == sum(r.length for r in run.results)
        assert [(r.seed, r.index) for r in run.results] == EPISODES
        assert sorted(set(env.started)) == sorted(EPISODES)
        runs[n] = run.results
    assert runs[1] == runs[4] == runs[37] == runs[64]
    lengths = {r.length for r in runs[1]}
    assert len(lengths) > (3 if stop_at_success else 0)  # rows finish at different times


def test_success_once_at_end_and_held_differ_as_they_should() -> None:
    """A policy that reaches the goal, stays for a while and leaves again."""

    class InAndOut(Chase):
        def act(self, observation: torch.Tensor, instruction: list[str]) -> torch.Tensor:
            towards = super().act(observation, instruction)
            return towards if env.elapsed[0] < 15 else torch.ones_like(towards)

    env = ToyEnv(1, horizon=30, stop_at_success=False)
    (result,) = run_episodes(env, InAndOut(), [7]).results
    assert result.length == 30 and result.truncated and not result.terminated
    assert result.success_once and not result.success_at_end
    assert result.first_success is not None and result.longest_success < 30
    assert result.success("once") and not result.success("at_end")
    assert result.success("held", result.longest_success) and not result.success("held", result.longest_success + 1)
    with pytest.raises(ConfigError, match="once, at_end, held"):
        result.success("twice")


def test_return_is_the_float64_sum_of_rewards(tmp_path: Path) -> None:
    env = ToyEnv(3)
    recorder = Recorder(env, tmp_path / "run.h5")
    run = run_episodes(env, Chase(), EPISODES[:5], observers=[recorder])
    recorder.close()
    with read_episodes(tmp_path / "run.h5") as episodes:
        for result in run.results:
            episode = episodes[result.number]
            total = episode.rewards.astype(np.float64).sum()
            assert result.return_ == episode.return_ == pytest.approx(total, abs=1e-12)
            assert (result.length, result.success_once) == (len(episode), episode.success_once)


def test_unhealthy_rows_are_reported() -> None:
    run = run_episodes(ToyEnv(4, unhealthy=[105, 120]), Chase(), [s for s, _ in EPISODES])
    assert [r.seed for r in run.unhealthy] == [105, 120]


def test_a_wrong_environment_or_policy_is_refused() -> None:
    env = ToyEnv(2)
    with pytest.raises(ConfigError, match="episodes is empty; give at least one seed"):
        run_episodes(env, Chase(), [])
    with pytest.raises(ConfigError, match=r"numbers must be from 0 to 1, .*; got \[5\]"):
        run_episodes(env, Chase(), [1, 2], numbers=[5])
    env.metadata = {}
    with pytest.raises(ConfigError, match='autoreset="disabled"'):
        run_episodes(env, Chase(), [1])

    class Flat(Chase):
        def act(self, observation: torch.Tensor, instruction: list[str]) -> torch.Tensor:
            return super().act(observation, instruction)[:, 0]

    with pytest.raises(ActionError, match=r"\(2, 2\)"):
        run_episodes(ToyEnv(2), Flat(), [1])


def test_interrupt_keeps_what_is_finished_and_resume_runs_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    finished: list[int] = []

    def kill_after_five(result: object) -> None:
        finished.append(result.number)  # type: ignore[attr-defined]
        if len(finished) == 5:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    recorder = Recorder(env := ToyEnv(3), path)
    with interruptible() as stop:
        run = run_episodes(env, Chase(), EPISODES, observers=[recorder], on_result=kill_after_five, stop=stop)
    recorder.close()
    assert signal.getsignal(signal.SIGINT) == before
    assert run.interrupted and 5 <= len(run.results) < len(EPISODES)
    with read_episodes(path) as episodes:
        assert episodes.numbers == sorted(finished)

    recorder = Recorder(env := ToyEnv(3), path, resume=True)
    rest = [n for n in range(len(EPISODES)) if n not in recorder.finished]
    again = run_episodes(env, Chase(), EPISODES, numbers=rest, observers=[recorder])
    recorder.close()
    whole = run_episodes(ToyEnv(3), Chase(), EPISODES)
    assert sorted([*run.results, *again.results], key=lambda r: r.number) == list(whole.results)
    with read_episodes(path) as episodes:
        assert episodes.numbers == list(range(len(EPISODES)))


def test_a_second_interrupt_is_immediate_and_threads_are_left_alone() -> None:
    with interruptible() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    outcome = []

    def inside() -> None:
        with interruptible() as stop:
            outcome.append(stop())

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert outcome == [False]


# ---- statistics ------------------------------------------------------------------------------------------------------


def test_wilson_equals_the_published_table_and_scipy() -> None:
    """Newcombe, Statist. Med. 17 (1998) 857-872, table I, method 3."""
    table = ((81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718))
    for k, n, low, high in table:
        interval = wilson(k, n)
        assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)
    for n in (1, 2, 7, 64, 1000):
        for k in sorted({0, 1, n // 3, n - 1, n}):
            for confidence in (0.8, 0.95, 0.99):
                ours = wilson(k, n, confidence=confidence)
                theirs = scipy.stats.binomtest(k, n).proportion_ci(confidence, "wilson")
                assert ours.low == pytest.approx(theirs.low, abs=1e-12)
                assert ours.high == pytest.approx(theirs.high, abs=1e-12)
                assert ours.estimate == k / n
    assert wilson(0, 5).low == 0.0 and wilson(5, 5).high == 1.0


def test_newcombe_equals_the_published_examples() -> None:
    """Independent: Newcombe (1998) 873-890, table II, method 10. Paired: Altman et al., Statistics with Confidence
    (2000), table 6.2; Bentur et al. (2009) as worked in Fagerland et al., Statist. Med. 33 (2014) 2850-2875."""
    for counts, low, high in (((56, 70, 48, 80), 0.0524, 0.3339), ((9, 10, 3, 10), 0.1705, 0.8090)):
        interval = newcombe(*counts)
        assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)
    for counts, low, high in (((14, 5, 0, 22), 0.011, 0.226), ((1, 1, 7, 12), -0.507, -0.026)):
        interval = newcombe_paired(*counts)
        assert (round(interval.low, 3), round(interval.high, 3)) == (low, high)


def test_paired_interval_is_antisymmetric_and_narrower_when_policies_agree() -> None:
    a, b = newcombe_paired(40, 10, 4, 10), newcombe_paired(40, 4, 10, 10)
    assert (a.low, a.high) == (pytest.approx(-b.high), pytest.approx(-b.low))
    independent = newcombe(50, 64, 44, 64)
    assert a.high - a.low < independent.high - independent.low


def test_mcnemar_equals_the_exact_binomial_test() -> None:
    assert mcnemar_exact(1, 7) == pytest.approx(0.0703125)  # Fagerland et al. (2014): 0.0703
    for b in range(12):
        for c in range(12):
            reference = scipy.stats.binomtest(b, b + c, 0.5).pvalue if b + c else 1.0
            assert mcnemar_exact(b, c) == pytest.approx(reference, rel=1e-12)


def test_compare_paired_counts_and_refuses() -> None:
    first = [True] * 6 + [False] * 4
    second = [True] * 2 + [False] * 6 + [True] * 2
    paired = compare_paired(first, second)
    assert (paired.both, paired.only_first, paired.only_second, paired.neither) == (2, 4, 2, 2)
    assert paired.difference.estimate == pytest.approx(0.2) and paired.episodes == 10
    assert paired.p_value == pytest.approx(scipy.stats.binomtest(2, 6).pvalue)
    for wrong in (([True], [True, False]), ([], [])):
        with pytest.raises(ConfigError, match="same episodes"):
            compare_paired(*wrong)
    for wrong_counts in ((5, 4), (-1, 4), (0, 0)):
        with pytest.raises(ConfigError, match="trials"):
            wilson(*wrong_counts)
    with pytest.raises(ConfigError, match="confidence"):
        wilson(1, 2, confidence=95)


# ---- protocols -------------------------------------------------------------------------------------------------------

TEXT = """
format = 1
name = "mine"
tasks = ["PickCube-v1", "PushCube-v1"]
[episodes]
first_seed = 10
count = 3
[config."PickCube-v1"]
goal_radius = 0.025
"""


def test_the_hash_follows_the_content_and_nothing_else() -> None:
    base = Protocol.from_toml(TEXT)
    assert base.seeds == (10, 11, 12) and len(base.hash) == 64
    same = [
        TEXT.replace('"mine"', '"other name"').replace("format = 1", 'format = 1\ndescription = "text"'),
        TEXT.replace("first_seed = 10\ncount = 3", "seeds = [10, 11, 12]"),
        TEXT.replace("tasks =", "# a comment\n\ntasks   ="),
        TEXT.replace("tasks", 'success = "once"\ntasks'),
        base.to_toml(),
    ]
    assert {Protocol.from_toml(t).hash for t in same} == {base.hash}
    other = [
        TEXT.replace("count = 3", "count = 4"),
        TEXT.replace("0.025", "0.03"),
        TEXT.replace("tasks", "horizon = 80\ntasks"),
        TEXT.replace("tasks", 'success = "held"\ntasks'),
        TEXT.replace("tasks", 'cameras = ["front"]\ntasks'),
        TEXT.replace("tasks", 'robot = "xarm7"\ntasks'),
        TEXT.replace("PushCube-v1", "PushCube-v2"),
        TEXT.replace("tasks", "control_hz = 20\ntasks"),
        TEXT.replace("tasks", "terminate = true\ntasks"),
    ]
    assert len({Protocol.from_toml(t).hash for t in other} | {base.hash}) == len(other) + 1
    twenty = [Protocol.from_toml(TEXT.replace("tasks", f"control_hz = {hz}\ntasks")) for hz in ("20", "20.0")]
    assert twenty[0].hash == twenty[1].hash


def test_the_hash_is_pinned() -> None:
    """A result's hash must still be found in a year: this changes only together with the format number."""
    assert Protocol.from_toml(TEXT).hash == "4b53b74700f2384510d54e4b95a8f1aaa9ae38f4d9c69db0d67c6b363043523d"


def test_files_round_trip(tmp_path: Path) -> None:
    protocol = Protocol(
        name='quotes " and ü',
        tasks=("PickCube-v2",),
        seeds=(5, 3, 2**62),
        robot="panda",
        success="held",
        held_s=1.0,
        control_hz=25.0,
        cameras=("front", "wrist"),
        config={"PickCube-v2": {"flag": True, "name": "a\nb", "list": [1, 2.5], "table": {"k k": 1}}},
    )
    file = tmp_path / "p.toml"
    file.write_text(protocol.to_toml(), encoding="utf-8")
    assert load_protocol(file) == protocol
    assert protocol.held_steps(20.0) == 20 and protocol.held_steps(0.1) == 1


@pytest.mark.parametrize(
    "change, message",
    [
        (("tasks =", "horizn = 3\ntasks ="), r"key 'horizn'. Did you mean 'horizon'\? Valid: cameras, confidence"),
        (("count = 3", "cuont = 3"), r"\[episodes\]: unknown key 'cuont'. Did you mean 'count'\?"),
        (("count = 3", "count = 3\nseeds = [1]"), r"either first_seed and count, or seeds"),
        (("count = 3", "count = 0"), "count must be 1"),
        (("count = 3", "count = 3.5"), "whole numbers"),
        (("first_seed = 10\ncount = 3", "seeds = [4, 4]"), "listed twice"),
        (("first_seed = 10", "first_seed = -2"), "between 0"),
        (("[episodes]\nfirst_seed = 10\ncount = 3", ""), r"\[episodes\] is missing"),
        (("format = 1", "format = 2"), "format 2, this manikin reads format = 1"),
        (("format = 1", ""), "format None"),
        (('name = "mine"', ""), "name is missing"),
        (('"PickCube-v1", "PushCube-v1"', '"PickCube-v1", "PickCube-v1"'), "none twice"),
        (("tasks =", 'success = "always"\ntasks ='), "none of once, at_end, held"),
        (("tasks =", 'horizon = "long"\ntasks ='), "horizon must be a whole number"),
        (("tasks =", "horizon = -4\ntasks ="), "horizon must be positive"),
        (("tasks =", "confidence = 95\ntasks ="), "between 0 and 1"),
        (('[config."PickCube-v1"]', '[config."Pick-v1"]'), "not among its tasks"),
        (("0.025", "nan"), "JSON cannot"),
        (("count = 3", "count = "), "not valid TOML"),
        (("count = 3", "count = " + "9" * 5000), "not valid TOML: Exceeds the limit"),
        (("count = 3", "seeds = " + "[" * 3000), "not valid TOML: maximum recursion"),
        (("tasks =", "held_s = inf\ntasks ="), "held_s must be positive, got inf"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(change: tuple[str, str], message: str) -> None:
    text = TEXT.replace(*change)
    assert text != TEXT
    with pytest.raises(ConfigError, match=message):
        Protocol.from_toml(text)


def test_a_file_that_is_not_read_says_why(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_bytes(TEXT.replace("mine", "m\xfcller").encode("latin-1"))
    with pytest.raises(ConfigError, match=r"p\.toml: not UTF-8, as TOML must be: byte 21 is 0xfc"):
        load_protocol(file)
    for path in (tmp_path, "x" * 5000, "a\0b"):
        with pytest.raises(ConfigError, match="protocol file"):
            load_protocol(path)


def test_tasks_that_do_not_exist_name_those_that_do() -> None:
    valid = ["PickCube-v1", "PickCube-v2", "PushCube-v1"]
    Protocol.from_toml(TEXT).check_tasks(valid)
    with pytest.raises(ConfigError, match=r"PickCube-v9 does not exist; valid: PickCube-v1, PickCube-v2"):
        Protocol(name="p", tasks=("PickCube-v9",), seeds=(1,)).check_tasks(valid)
    with pytest.raises(ConfigError, match=r"unknown task 'PusCube-v2'. Did you mean 'PushCube-v1'\? Valid: PickCube"):
        Protocol(name="p", tasks=("PusCube-v2",), seeds=(1,)).check_tasks(valid)
    with pytest.raises(ConfigError, match=r"no protocol file 'nothing.toml'.*core, pick-cube"):
        load_protocol("nothing.toml")


def test_shipped_protocols_load_and_hold_seeds_out_of_collection() -> None:
    assert {"core", "pick-cube"} <= set(shipped_protocols())
    for name in shipped_protocols():
        protocol = load_protocol(name)
        grid = all(protocol.config.get(task, {}).get("trials") == "grid" for task in protocol.tasks)
        assert protocol.name == name and (grid or min(protocol.seeds) >= 1_000_000)


def test_a_report_whose_names_are_no_words_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    task = {"task": "Toy-v1", "success": {"once": {"confidence": 0.95}}, "per_episode": []}
    for named, good in (("Toy-v1#near", True), ([[]], False), (3, False)):
        about = {"schema": "manikin-eval", "schema_version": 1, "policy": "a", "protocol": {"hash": "1"}}
        path.write_text(json.dumps({**about, "per_task": [{**task, "named": named}]}))
        if good:
            assert read_report(path)["per_task"][0]["named"] == named
        else:
            with pytest.raises(DataError, match=r"report\.json is damaged: .* stands where str is expected"):
                read_report(path)
