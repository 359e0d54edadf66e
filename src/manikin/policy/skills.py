"""A policy for tasks that are sequences of skills: another one for each skill, said in a file.

    [skills]
    navigate = "expert"
    pick = "runs/pick"
    place = "expert"

Which skill a row needs now is the first word of what it is asked to do. A skill that the file does not name is the
expert's.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from manikin.env.interface import BatchEnv
from manikin.errors import ConfigError, DataError, UnknownNameError
from manikin.policy.api import Observation, Policy
from manikin.policy.chunk import ChunkPolicy

__all__ = ["SkillsPolicy", "read_skills"]


def read_skills(file: str | Path) -> dict[str, str]:
    """Words of policies by skill, from a file.

    Raises:
        DataError: it cannot be read, or it is not a table ``[skills]`` of words.
    """
    try:
        found = tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"the skills {file} cannot be read: {error}") from None
    skills = found.get("skills")
    if set(found) != {"skills"} or not isinstance(skills, dict) or not all(isinstance(v, str) for v in skills.values()):
        raise DataError(f'{file} has one table [skills] with lines such as pick = "expert"')
    return skills


class SkillsPolicy:
    """Acts in each row as the policy of the skill that the row needs now, which begins anew when the skill does.

    Args:
        policies: by skill.
        env: whose episodes are played; its task says in ``skills`` which there are, and on which task each is learned.

    Raises:
        ConfigError: the task is no sequence of skills.
        UnknownNameError: the task has no such skill; lists those that it has.
    """

    def __init__(self, policies: Mapping[str, Policy], env: BatchEnv) -> None:
        skills = getattr(env.task, "skills", ())
        if not skills:
            raise ConfigError(f"{env.task.id} is no sequence of skills, as TidyHouse-v1 is; choose one policy for all")
        for skill in policies:
            if skill not in skills:
                raise UnknownNameError(f"skill of {env.task.id}", skill, skills)
        n, columns = env.num_envs, env.single_action_space.shape[0]
        each: dict[int, ChunkPolicy] = {}  # one policy may have several skills
        self._of = {skill: each.setdefault(id(one), ChunkPolicy(one, n, columns)) for skill, one in policies.items()}
        self._asked: list[str] = [""] * n
        self.name = "skills: " + ", ".join(f"{skill} {one.name}" for skill, one in self._of.items())

    def reset(self, rows: Tensor) -> None:
        """Episodes begin in these rows."""
        for policy in {id(one): one for one in self._of.values()}.values():
            policy.reset(rows)
        for row in rows.tolist():
            self._asked[row] = ""

    def act(self, observation: Observation, instruction: Sequence[str]) -> Tensor:
        """(N, 1, A)."""
        action: Tensor | None = None
        words = [sentence.partition(" ")[0] for sentence in instruction]
        fresh = [row for row, asked in enumerate(instruction) if self._asked[row] not in ("", asked)]
        self._asked = list(instruction)
        for policy in {id(one): one for one in self._of.values()}.values():
            mine = torch.tensor([self._of.get(word) is policy for word in words])
            if policy.name != "expert" and (begun := [row for row in fresh if mine[row]]):
                policy.reset(torch.tensor(begun))
            given = policy.act(observation, instruction)[:, 0]
            action = given if action is None else torch.where(mine[:, None].to(given.device), given, action)
        assert action is not None
        return action[:, None]
