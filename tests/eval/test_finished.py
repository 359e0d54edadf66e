"""A policy's word that it has finished: who hears it, in which step, and what a task makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import manikin
from manikin.env.observe import Vision
from manikin.errors import ActionError
from manikin.eval.runner import run_episodes
from manikin.policy.chunk import ChunkPolicy
from manikin.policy.conventions.conventional import CONVENTIONS, ConventionalPolicy


@pytest.fixture(scope="module")
def envs() -> Iterator[dict[int, manikin.Env]]:
    made = {n: manikin.make("PickCube-v2", n, autoreset="disabled", horizon=9) for n in (1, 3)}
    yield made
    for env in made.values():
        env.close()


class Finishes:
    """Stands still in chunks of ``length``, and says in the step of an episode that its seed names, from 1, that it has
    finished; seed 0 never."""

    def __init__(self, env: Any, *, length: int = 1) -> None:
        self.env, self._length = env, length

    def reset(self, rows: torch.Tensor) -> None:
        pass

    def act(self, observation: Any, instruction: list[str]) -> torch.Tensor:
        seeds = self.env.look()[1]["episode_seed"].cpu()
        self.finished = (seeds > 0) & (self.env.elapsed.cpu() + 1 == seeds)
        return torch.zeros(self.env.num_envs, self._length, self.env.controller.card.size)


@pytest.mark.parametrize("rows", [1, 3])
def test_an_episode_ends_with_the_step_in_which_the_policy_says_so(envs: dict[int, manikin.Env], rows: int) -> None:
    seeds = [4, 0, 1, 9, 6]
    env = envs[rows]
    run = run_episodes(env, Finishes(env), seeds, heed_finished=True)
    assert [r.length for r in run.results] == [4, 9, 1, 9, 6]
    assert [r.said_finished for r in run.results] == [True, False, True, True, True]
    assert [(r.terminated, r.truncated) for r in run.results] == [
        *((True, False), (False, True), (True, False), (True, True), (True, False))
    ]
    ignored = run_episodes(env, Finishes(env), seeds)  # as where a recording is made, which has no place for it
    assert [(r.length, r.said_finished, r.terminated) for r in ignored.results] == [(9, False, False)] * 5


def test_of_a_chunk_the_first_action_is_meant(envs: dict[int, manikin.Env]) -> None:
    """Asked in steps 1, 3, 5, ...: what is said in another step is not heard."""
    env = envs[3]
    run = run_episodes(env, Finishes(env, length=2), [3, 4, 5], heed_finished=True)
    assert [r.length for r in run.results] == [3, 9, 5]


def test_a_word_that_comes_late_counts_when_its_actions_come(envs: dict[int, manikin.Env]) -> None:
    """Two steps late, at 20 Hz: asked in step 1, executed in step 3, in which the policy is asked again."""
    env = envs[3]
    run = run_episodes(env, Finishes(env), [1, 3, 0], inference_ms=100.0, heed_finished=True)
    assert [r.length for r in run.results] == [3, 5, 9]


def test_what_a_stateless_policy_says_belongs_to_the_rows_it_was_asked_for() -> None:
    class Asked:
        stateless = True

        def reset(self, rows: torch.Tensor) -> None:
            pass

        def act(self, observation: Any, instruction: list[str]) -> torch.Tensor:
            self.finished = observation[:, 0] > 0
            return torch.zeros(len(observation), 3, 2)

    policy = ChunkPolicy(Asked(), 3, 2)
    policy.act(torch.tensor([[1.0], [0.0], [1.0]]), ["", "", ""])
    assert policy.finished is not None and policy.finished.tolist() == [True, False, True]
    policy.reset(torch.tensor([2]))
    policy.act(torch.ones(3, 1), ["", "", ""])  # only the third row is asked
    assert policy.finished.tolist() == [False, False, True]


@pytest.mark.parametrize("said", [torch.zeros(2, dtype=torch.bool), torch.zeros(3), [True] * 3])
def test_a_word_of_another_shape_is_refused(envs: dict[int, manikin.Env], said: Any) -> None:
    policy = Finishes(envs[3])
    act = policy.act

    def wrong(observation: Any, instruction: list[str]) -> torch.Tensor:
        actions = act(observation, instruction)
        policy.finished = said
        return actions

    policy.act = wrong  # type: ignore[method-assign]
    with pytest.raises(ActionError, match=r"finished must be a bool tensor \(3,\), got"):
        run_episodes(envs[3], policy, [1, 2, 3], heed_finished=True)


# ---- RT-1 and the apple ----------------------------------------------------------------------------------------------


class Rt1:
    """Answers with RT-1's ten numbers. The eighth is above 0 in the third step of every instruction."""

    def __init__(self, rows: int, *, numbers: int = 10) -> None:
        self._steps, self._numbers = torch.zeros(rows), numbers

    def reset(self, rows: torch.Tensor) -> None:
        self._steps[rows] = 0

    def act(self, observation: Any, instruction: list[str]) -> torch.Tensor:
        self._steps += 1
        answer = torch.zeros(len(self._steps), 1, 10)
        answer[:, 0, 7] = torch.where(self._steps == 3, 0.7, -0.2)
        return answer[..., : self._numbers]


def seen(task: str, rows: int, **options: Any) -> manikin.Env:
    vision = Vision(size=(20, 16), renderer="rays")
    env: Any = manikin.make(task, rows, autoreset="disabled", observe="rgb", vision=vision, **options)
    return env


def test_rt1_s_word_changes_the_apple_s_instruction_and_then_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The original: the first word advances to the second instruction and does not end the episode; the second does."""
    monkeypatch.delenv("MANIKIN_DATA", raising=False)
    env = seen("GooglePlaceAppleInDrawer-v1", 2, horizon=8, config={"trials": "grid"})
    policy = ConventionalPolicy(Rt1(2), env, CONVENTIONS["rt1-google"])
    observation, _ = env.reset(seed=[0, 13])
    policy.reset(torch.arange(2))
    told, parts = [], []
    for _ in range(6):
        told.append(list(env.instruction))
        action = policy.act(observation, env.instruction)[:, 0]
        assert policy.finished is not None
        said = policy.finished & torch.tensor([True, False])  # of the first row alone
        ends = env.finished(said)
        observation, *_, info = env.step(action)
        parts.append([info["subtask"].tolist(), ends.tolist()])
    first, second = "open top drawer", "place apple into top drawer"
    assert told == [[first, first]] * 3 + [[second, first]] * 3
    assert parts == [[[False, False], [False, False]]] * 2 + [
        [[True, False], [False, False]],  # with the step itself
        [[True, False], [False, False]],
        [[True, False], [False, False]],
        [[True, False], [True, False]],  # three steps after the instruction has changed, and the policy begun anew
    ]
    results = run_episodes(
        env, ConventionalPolicy(Rt1(2), env, CONVENTIONS["rt1-google"]), [0, 13], heed_finished=True
    ).results
    assert [(r.length, r.said_finished, r.instruction) for r in results] == [(6, True, second)] * 2
    env.close()


def test_rt1_s_word_ends_other_tasks_and_seven_numbers_never_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MANIKIN_DATA", raising=False)
    env = seen("WidowXStackCube-v2", 2, horizon=5, config={"trials": "grid"})
    for convention, numbers, length in (("rt1-bridge", 10, 3), ("rt1-bridge", 7, 5), ("octo-bridge", 10, 5)):
        policy = ConventionalPolicy(Rt1(2, numbers=numbers), env, CONVENTIONS[convention])
        results = run_episodes(env, policy, [0, 1], heed_finished=True).results
        assert [(r.length, r.said_finished) for r in results] == [(length, length == 3)] * 2
    env.close()
