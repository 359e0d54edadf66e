"""One policy for each skill: who acts when, and what a wrong file is told."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from manikin.errors import ConfigError, DataError, UnknownNameError
from manikin.policy.choices import policy_maker
from manikin.policy.skills import SkillsPolicy, read_skills


class Constant:
    """Answers one number, and remembers which rows it was told to begin."""

    def __init__(self, name: str, value: float) -> None:
        self.name, self.value, self.begun = name, value, []

    def reset(self, rows: torch.Tensor) -> None:
        self.begun += rows.tolist()

    def act(self, observation: Any, instruction: Any) -> torch.Tensor:
        return torch.full((len(instruction), 1, 2), self.value)


def an_env(skills: tuple[str, ...] = ("pick", "place")) -> Any:
    task = SimpleNamespace(id="Chain-v1", skills=skills)
    return SimpleNamespace(task=task, num_envs=3, single_action_space=SimpleNamespace(shape=(2,)))


def test_each_row_acts_by_the_policy_of_its_skill() -> None:
    policy = SkillsPolicy({"pick": Constant("a", 0.25), "place": Constant("b", -0.5)}, an_env())
    policy.reset(torch.arange(3))
    given = policy.act(None, ["pick 0", "place 0", "pick 1"])
    assert given[:, 0, 0].tolist() == [0.25, -0.5, 0.25]
    assert policy.name == "skills: pick a, place b"


def test_a_policy_begins_anew_with_its_skill_and_in_no_other_row() -> None:
    pick, place = Constant("a", 0.0), Constant("b", 0.0)
    policy = SkillsPolicy({"pick": pick, "place": place}, an_env())
    policy.reset(torch.arange(3))
    pick.begun, place.begun = [], []
    policy.act(None, ["pick 0", "pick 0", "place 0"])
    assert pick.begun == [] and place.begun == []
    policy.act(None, ["place 0", "pick 0", "pick 1"])
    assert pick.begun == [2] and place.begun == [0]


def test_errors_name_what_is_valid(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="place"):
        SkillsPolicy({"fly": Constant("a", 0.0)}, an_env())
    with pytest.raises(ConfigError, match="TidyHouse-v1"):
        SkillsPolicy({"pick": Constant("a", 0.0)}, an_env(()))
    file = tmp_path / "skills.toml"
    file.write_text('[skills]\npick = "nobody"\n')
    with pytest.raises(UnknownNameError, match="expert"):
        policy_maker(str(file))
    with pytest.raises(DataError, match="cannot be read"):
        read_skills(tmp_path / "none.toml")
    for text in ("pick = 1", "[skills]\npick = 1", "[skills]\n[other]\n", "["):
        file.write_text(text)
        with pytest.raises(DataError, match="skills"):
            read_skills(file)
    file.write_text('[skills]\npick = "expert"\n')
    assert read_skills(file) == {"pick": "expert"}
    with pytest.raises(ConfigError, match="seed"):
        policy_maker(str(file), seed=1)
