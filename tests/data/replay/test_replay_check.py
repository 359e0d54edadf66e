"""Whether recorded actions, played again from their seeds, give the recorded episode; and what is said where not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import h5py
import numpy as np
import pytest

from manikin.data.recorder import Recorder
from manikin.data.recording.read import read_episodes
from manikin.data.replay.verify import replay
from manikin.errors import DataError
from manikin.eval.runner import run_episodes
from toy_env import Chase, ToyEnv
from toy_episodes import first_step

HEALTH = "flags/health at step 0: 0 recorded, 1 now"


def record_toy(path: Path, **options: bool) -> None:
    env = ToyEnv(3)
    recorder = Recorder(env, path, **options)
    run_episodes(env, Chase(horizon=2), [(seed, seed % 2) for seed in range(50, 57)], observers=[recorder])
    recorder.close()


@pytest.mark.parametrize("num_envs", [1, 4, 16])
def test_replay_is_exact_at_any_batch_size(tmp_path: Path, num_envs: int) -> None:
    record_toy(tmp_path / "run.h5", observations=True)
    seen = []
    report = replay(tmp_path / "run.h5", ToyEnv(num_envs), on_episode=seen.append)
    assert report.exact and report.ok and report.same_processor and not report.changed
    assert [e.number for e in report.episodes] == list(range(7)) and list(report.episodes) == seen
    assert "7 of 7 episodes reproduced bit for bit" in report.summary()
    with read_episodes(tmp_path / "run.h5") as episodes:
        for episode in episodes:
            observed = episode.observations
            assert observed is not None and observed["value"].shape == (len(episode) + 1, 4)
            assert (observed["value"] == episode.states.astype(np.float32)).all()  # type: ignore[union-attr]


def test_a_tampered_action_is_found_at_its_step_with_its_size(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    record_toy(path)
    with h5py.File(path, "r+") as file:
        at = first_step(file, 3)
        file["block_0/steps/actions"][at + 2] -= np.float32(0.5)
    report = replay(path, ToyEnv(4))
    assert not report.exact and not report.ok
    assert [e.number for e in report.episodes if not e.exact] == [3]
    bad = report.episodes[3]
    assert bad.first_difference == 3  # the state after action 2
    assert bad.difference == pytest.approx(0.05, rel=1e-6)
    assert not bad.start and any("rewards at step 2" in word for word in bad.outcome)
    assert "state differs first after action 2" in report.summary() and "by 0.05 there" in report.summary()


def test_a_tampered_start_and_files_without_states_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    record_toy(path, states=False)
    with h5py.File(path, "r+") as file:
        numbers = file["block_0/episodes/number"][()].tolist()
        file["block_0/episodes/seed"][numbers.index(1)] = 99
        file["block_0/initial/state"][numbers.index(2), 1] += 1e-3
        file["block_0/steps/actions"][first_step(file, 4)] = 0
    report = replay(path, ToyEnv(2))
    assert [e.number for e in report.episodes if not e.exact] == [1, 2, 4]
    wrong_seed, wrong_start, wrong_action = (report.episodes[i] for i in (1, 2, 4))
    assert wrong_seed.first_difference == 0 and "state" in wrong_seed.start
    assert wrong_start.start == {"state": pytest.approx(1e-3)} and wrong_start.first_difference is None
    assert wrong_action.first_difference == 1 and wrong_action.difference is None
    assert "by how much is unknown" in str(wrong_action)


def test_divergence_on_another_kind_of_processor_is_reported_and_not_an_error(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    record_toy(path)

    class OtherRounding(ToyEnv):
        def step(self, action: Any, active: Any = None) -> tuple[Any, ...]:
            self.state[:, 0] = np.nextafter(self.state[:, 0], 2)
            return super().step(action, active)

    report = replay(path, OtherRounding(4, processor="other"))
    assert not report.exact and report.ok and not report.same_processor
    assert all(e.first_difference == 1 and e.difference is not None and e.difference < 1e-15 for e in report.episodes)
    assert "recorded on toy, replayed on other" in report.summary()
    assert "machine/processor: 'toy' recorded, 'other' here" in report.changed
    assert not replay(path, OtherRounding(4)).ok  # on the same kind it is an error


def test_replay_refuses_what_cannot_be_played(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    record_toy(path)
    with pytest.raises(DataError, match="no episode 40; it has 0-6"):
        replay(path, ToyEnv(2), numbers=[40])
    env = ToyEnv(2)
    env.single_action_space = gymnasium.spaces.Box(-1, 1, (7,))
    with pytest.raises(DataError, match=r"this environment takes \(steps, 7\)"):
        replay(path, env)
    for what, name in (("task", "Toy-v2"), ("robot", "ur5e")):

        class Other(ToyEnv):
            def fingerprint(self, what: str = what, name: str = name) -> dict[str, Any]:
                return {**super().fingerprint(), what: name}

        with pytest.raises(DataError, match=f"recorded with {what} .* cannot be played with '{name}'"):
            replay(path, Other(2))


def test_what_was_not_healthy_is_told_apart_from_what_differs(tmp_path: Path) -> None:
    class Tight(ToyEnv):
        def budget_advice(self) -> str:
            return "raise njmax"

    path = tmp_path / "run.h5"
    record_toy(path)
    report = replay(path, Tight(4, unhealthy=[51, 53]))
    assert not report.ok and [e.seed for e in report.unhealthy] == [51, 53]
    assert report.episodes[1].health == (0, 1) and report.advice == "raise njmax"
    assert [e.seed for e in report.episodes if not e.exact] == [51, 53]  # states and rewards are those recorded
    assert all(set(e.outcome) == {HEALTH, "health: 0 recorded, 1 now"} for e in report.episodes if not e.exact)
    assert report.summary().splitlines()[0] == "5 of 7 episodes reproduced bit for bit"
    assert report.summary().splitlines()[-1] == (
        "2 episodes were not healthy (0 of these when recorded): seed 51 (overflow), seed 53 (overflow); raise njmax"
    )
    again = tmp_path / "again.h5"
    recorder = Recorder(env := Tight(3, unhealthy=[51]), again)
    replay(path, env, observers=[recorder])
    recorder.close()
    with h5py.File(again, "r+") as file:
        file["block_0/steps/rewards"][:] = 0
    report = replay(again, Tight(2))
    assert not report.unhealthy and report.advice == "" and report.episodes[1].health == (1, 0)
    assert "of those that differ, 1 episode was not healthy when recorded: seed 51 (overflow)" in report.summary()


@pytest.mark.parametrize(("then", "now"), [(True, True), (False, True), (True, None)])
def test_a_gpu_promises_no_bits_in_another_batch(tmp_path: Path, then, now) -> None:
    """Nor with ``deterministic=True``. None: of an older recording, which does not say."""

    class Card(ToyEnv):
        deterministic: bool | None = then

        def fingerprint(self) -> dict[str, Any]:
            said = {} if self.deterministic is None else {"deterministic": self.deterministic}
            return {**super().fingerprint(), "device": "cuda", **said}

    path, env = tmp_path / "run.h5", Card(3)
    recorder = Recorder(env, path)
    run_episodes(env, Chase(horizon=2), list(range(3)), observers=[recorder])
    recorder.close()
    env.deterministic = now
    assert replay(path, env).ok  # whose bits are the same
    with h5py.File(path, "r+") as file:
        file["block_0/steps/actions"][0] -= np.float32(0.5)
    report = replay(path, env)
    assert not report.exact and report.same_processor and not report.promised and report.ok
    assert "in a batch of other rows: some divergence is expected" in report.summary()
    noted = ["deterministic: False recorded, True here"] if then is False else []
    assert [word for word in report.changed if "deterministic" in word] == noted
