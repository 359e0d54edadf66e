"""Protocols of several tasks with their own episodes and settings, and sentences in other words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from manikin.errors import ConfigError
from manikin.eval.evaluation import evaluate
from manikin.eval.journal import Journal
from manikin.eval.protocol import Protocol
from manikin.eval.report import as_dict, compare
from manikin.eval.runner import run_episodes
from manikin.policy.random_policy import RandomPolicy
from toy_env import Chase, ToyEnv

TEXT = """
format = 1
name = "suite"
tasks = ["PickCube-v2#near", "PickCube-v2#far", "PushCube-v2"]
horizon = 3
[episodes]
first_seed = 100
count = 4
[episodes."PushCube-v2"]
count = 2
[episodes."PickCube-v2#far"]
seeds = [7]
[config."PickCube-v2#near"]
spawn_half_size = 0.02
[config."PickCube-v2#far"]
spawn_half_size = 0.1
"""


def test_each_task_has_its_own_episodes_and_settings(tmp_path: Path) -> None:
    protocol = Protocol.from_toml(TEXT)
    push = protocol.tasks[2]
    assert [protocol.seeds_of(task) for task in protocol.tasks] == [(100, 101, 102, 103), (7,), (100, 101)]
    assert Protocol.from_toml(protocol.to_toml()) == protocol and protocol.trials == 7

    class Stops(RandomPolicy):
        """Fails in the second step of the third task, once."""

        failed = False

        def act(self, observation: Any, instruction: Any) -> torch.Tensor:
            if self.env.task.id == push and self.env.elapsed.any() and not Stops.failed:
                Stops.failed = True
                raise ConfigError("the policy fails")
            return super().act(observation, instruction)

    journal = Journal(tmp_path / "episodes.jsonl", {})
    with pytest.raises(ConfigError, match="the policy fails"):
        evaluate(protocol, Stops, num_envs=3, journal=journal)
    journal.close()
    asked: list[str] = []
    journal = Journal(tmp_path / "episodes.jsonl", {}, resume=True)
    whole = evaluate(protocol, Stops, num_envs=3, journal=journal, on_result=lambda task, result: asked.append(task))
    journal.close()
    assert asked == [push, push] and not whole.interrupted
    played = [[r.seed for r in task.results] for task in whole.tasks]
    assert played == [[100, 101, 102, 103], [7], [100, 101]]
    assert [task.title for task in whole.tasks] == ["PickCube-v2, near", "PickCube-v2, far", "PushCube-v2"]
    made_of = [task.fingerprint["config"]["spawn_half_size"] for task in whole.tasks[:2]]
    assert made_of == [0.02, 0.1]
    report = as_dict(whole)
    assert [row["task"] for row in compare(report, report)] == [task.title for task in whole.tasks]
    assert [row["episodes"] for row in compare(report, report)] == [4, 1, 2]


def test_equal_episodes_have_one_hash_however_they_are_written() -> None:
    plain = Protocol(name="p", tasks=("PickCube-v2", "PushCube-v2"), seeds=(0, 1))
    each = Protocol(name="p", tasks=plain.tasks, seeds=(), episodes=dict.fromkeys(plain.tasks, (0, 1)))
    assert plain.hash == each.hash
    other = Protocol(name="p", tasks=plain.tasks, seeds=(0, 1), episodes={"PushCube-v2": (0, 1, 2)})
    swapped = Protocol(name="p", tasks=plain.tasks, seeds=(0, 1), episodes={"PickCube-v2": (0, 1, 2)})
    words = Protocol(name="p", tasks=plain.tasks, seeds=(0, 1), paraphrases={"push it": ("shove it",)})
    assert len({plain.hash, other.hash, swapped.hash, words.hash}) == 4
    shifted = Protocol(name="p", tasks=plain.tasks, seeds=(0, 1), shift="lighting")
    assert shifted.hash == plain.hash and Protocol.from_toml(shifted.to_toml()).shift == "lighting"
    assert Protocol.from_toml(words.to_toml()) == words and Protocol.from_toml(each.to_toml()) == each


@pytest.mark.parametrize(
    "change, message",
    [
        (("seeds = [7]", "seeds = [7, 3, 7]"), r"seed 7 of PickCube-v2#far is listed twice"),
        (("seeds = [7]", "count = 2\nseeds = [7]"), r'\[episodes."PickCube-v2#far"\] has either first_seed and count'),
        (("count = 2", "cuont = 2"), r'\[episodes."PushCube-v2"\]: unknown key|unknown key .cuont.'),
        (('[episodes."PushCube-v2"]', '[episodes."PushCube-v9"]'), "names PushCube-v9, not among its tasks"),
        (("spawn_half_size = 0.1", "spawn_half_size = 0.02"), None),
        (("spawn_half_size = 0.1", "spawn_half_size = 0.02", "seeds = [7]", "seeds = [102]"), "seed 102 is listed for"),
        (("#far", "#near"), "none twice|not valid TOML"),
    ],
)
def test_what_would_count_twice_is_named(change: tuple[str, ...], message: str | None) -> None:
    text = TEXT
    for before, after in zip(change[::2], change[1::2], strict=True):
        assert before in text
        text = text.replace(before, after)
    if message is None:  # one setting under two names, with other episodes
        assert Protocol.from_toml(text).trials == 7
        return
    with pytest.raises(ConfigError, match=message):
        Protocol.from_toml(text)


def test_paraphrases_go_round_by_seed() -> None:
    heard: dict[str, set[str]] = {}

    class Listens(Chase):
        def act(self, observation: torch.Tensor, instruction: list[str]) -> torch.Tensor:
            for row, said in enumerate(instruction):
                if not env.done[row]:
                    heard.setdefault(str(env.seed[row]), set()).add(said)
            return super().act(observation, instruction)

    env = ToyEnv(2)
    others = ("shove the point", "move the point to the goal", "go")
    run = run_episodes(env, Listens(), list(range(6)), paraphrases={"push the point to the goal": others, "x": ("y",)})
    assert [r.instruction for r in run.results] == [others[k % 3] for k in range(6)]
    assert heard == {str(k): {others[k % 3]} for k in range(6)}
    plain = run_episodes(ToyEnv(2), Chase(), [1], paraphrases={"something else": ("y",)})
    assert plain.results[0].instruction == "push the point to the goal"
    with pytest.raises(ConfigError, match="no paraphrase of 'x'"):
        Protocol(name="p", tasks=("PickCube-v2",), seeds=(1,), paraphrases={"x": ()})
