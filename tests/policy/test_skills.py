"""One policy for each skill: who acts when, and what a wrong file is told."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from manikin import make
from manikin.errors import ConfigError, DataError, UnknownNameError
from manikin.homes.objects import home_objects
from manikin.policy.choices import policy_maker
from manikin.policy.networks import build
from manikin.policy.skills import SkillsPolicy, read_skills
from manikin.policy.trained import about_env, save_trained
from manikin.tasks.home.doors.inside import one_front


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


# ---- policies that were trained on the subtasks alone ----------------------------------------------------------------


def a_trained(path: Path, task: str, **options: Any) -> list[str]:
    """A policy for a task of homes whose action is its first columns; its columns' names."""
    env = make(task, num_envs=1, observe="state", **options)
    names, actions = list(env.observation_names), env.single_action_space.shape[0]
    network = {"kind": "gaussian", "options": {"observations": len(names), "actions": actions, "hidden": []}}
    module = build("gaussian", network["options"])
    save_trained(path, module, network=network, about={"algorithm": "ppo", **about_env(env)})
    env.close()
    return names


@pytest.fixture(scope="module")
def set_table() -> Any:
    env = make("SetTable-v1", num_envs=1, autoreset="disabled", config={"navigation": "teleported"})
    yield env
    env.close()


def test_a_policy_trained_on_a_subtask_is_a_skill_and_sees_what_it_saw_there(tmp_path: Path, set_table: Any) -> None:
    file, env = tmp_path / "skills.toml", set_table
    a_trained(tmp_path / "pick.safetensors", "HomePick-v1", config={"size_seen": True})
    a_trained(tmp_path / "open.safetensors", "HomeOpen-v1")
    trained = "".join(f'{skill} = "{tmp_path}/{skill}.safetensors"\n' for skill in ("open", "pick"))
    file.write_text(f'[skills]\n{trained}navigate = "random"\nplace = "random"\nclose = "random"\n')
    observation, _ = env.reset(seed=[0])
    policy = policy_maker(str(file))(env)
    policy.reset(torch.arange(1))
    assert env.instruction[0].startswith("open") and policy.name.startswith("skills: navigate random, open open, pick")
    action = policy.act(observation, env.instruction)[:, 0]
    assert action.shape == (1, 13) and action.isfinite().all()
    # what Open is told of the drawer is what the scene has
    seen = dict(zip((name.partition("/")[2] for name in env.observation_names), observation[0].tolist(), strict=True))
    part, row = env.part(0)
    turn = part.robot.root_pose[row, 3:]
    way = one_front(part.task.layout, "drawer").yaw - 2 * math.atan2(turn[3], turn[0])
    assert seen["open_share"] == pytest.approx(0.0, abs=1e-3)
    assert seen["opens_along[0]"] == pytest.approx(math.cos(way), abs=1e-4)
    assert seen["opens_along[1]"] == pytest.approx(math.sin(way), abs=1e-4)
    rest = part.robot.keyframe("rest").flatten()[part.robot.groups["torso"].start]
    assert seen["joints_from_rest[0]"] == pytest.approx(seen["joints[0]"] - float(rest), abs=1e-5)
    bowl = home_objects(env.task.config.objects[:1])[0]
    assert [seen[f"object_size[{k}]"] for k in range(3)] == pytest.approx(bowl.size, abs=1e-6)


def test_a_policy_of_another_subtask_or_that_sees_more_is_refused(tmp_path: Path, set_table: Any) -> None:
    for name, task in (("drives", "HomeNavigate-v1"), ("pushes", "PushCube-v2")):
        a_trained(tmp_path / f"{name}.safetensors", task)
    file = tmp_path / "skills.toml"
    for skill, name, said in (
        ("place", "drives", "was trained for task 'HomeNavigate-v1', and this skill is that of 'HomePlace-v1'"),
        ("pick", "pushes", "was trained for task 'PushCube-v2', and this skill is that of 'HomePick-v1'"),
        ("navigate", "drives", "was shown way in training, which SetTable-v1 does not show"),
    ):
        file.write_text(f'[skills]\n{skill} = "{tmp_path / name}.safetensors"\n')
        with pytest.raises(ConfigError, match=said):
            policy_maker(str(file))(set_table)
