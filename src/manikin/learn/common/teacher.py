"""A trained policy that says what it would do: the teacher of another one that sees less."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from manikin.data.recording.format import flatten
from manikin.env.interface import BatchEnv
from manikin.env.observe import column_names
from manikin.errors import ConfigError
from manikin.policy.choices import find_trained
from manikin.policy.shipped import shipped_policies
from manikin.policy.trained import load_trained, weights_hash

__all__ = ["Teacher", "differences"]

_SAME = ("task", "robot", "control", "control_hz")
_GROUPS = ("policy", "privileged")


def differences(names: Sequence[str], about: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """Of the entries ``names`` those in which what a policy was trained for differs from an environment's fingerprint:
    ``control 'joint_pos', here 'joint_vel'; ...``, empty where none does."""

    def differs(name: str) -> bool:
        ours, theirs = here[name], about.get(name)
        if isinstance(ours, float) and isinstance(theirs, int | float):
            return not math.isclose(ours, theirs)
        return bool(ours != theirs)

    return "; ".join(f"{name} {about.get(name)!r}, here {here[name]!r}" for name in names if differs(name))


class Teacher:
    """Actions (N, A) in [-1, 1] of a policy with flat observations, from an observation with names.

    Args:
        word: a training run's folder, its ``policy.safetensors``, or the name of a policy that comes with manikin.
        env: where it teaches; observes ``policy`` and ``privileged`` with names, as ``observe="rgb+state"`` does.

    Attributes:
        about: what its file says of it. digest: SHA-256 of its weights.

    Raises:
        AssetError, UnknownNameError, DataError: as :func:`~manikin.policy.choices.find_trained`, and as
            :func:`~manikin.policy.trained.load_trained`.
        ConfigError: no word, a policy of another task, robot or controller, one that does not observe flat state, or a
            value that it observes is not available.
    """

    def __init__(self, word: str, env: BatchEnv) -> None:
        if not word:
            known = ", ".join(shipped_policies())
            raise ConfigError(
                "distill needs a teacher, a policy trained by state: --set teacher=RUN, the folder of a run (manikin "
                f"train ppo TASK), or one that comes with manikin: {known}"
            )
        module, self.about = load_trained(find_trained(word))
        self.module = module.to(env.device).requires_grad_(False)
        if other := differences(_SAME, self.about, env.fingerprint()):
            raise ConfigError(f"the teacher {word} was trained for {other}. Choose a teacher of this task")
        wanted = self.about.get("observation")
        if not wanted or self.about.get("observe") not in ("state", "policy"):
            raise ConfigError(
                f"the teacher {word} observes {self.about.get('observe')!r}; a teacher observes 'state' or 'policy'"
            )
        spaces = flatten(env.single_observation_space)
        self._paths = [path for path in spaces if path.partition("/")[0] in _GROUPS]
        self._stacked = bool(env.observation.stacks)
        columns = [math.prod(spaces[path].shape[1:] if self._stacked else spaces[path].shape) for path in self._paths]
        names = [name for path, count in zip(self._paths, columns, strict=True) for name in column_names(path, count)]
        if missing := [name for name in wanted if name not in names]:
            raise ConfigError(
                f"the teacher {word} observes {missing[0]}, which is not available here: this environment has "
                f"{', '.join(self._paths)}"
            )
        self._order = torch.tensor([names.index(name) for name in wanted], device=env.device)
        self.digest = weights_hash(self.module)

    @torch.no_grad()
    def __call__(self, observation: Any) -> Tensor:
        """(N, A) for the present observation of every row; the first of a chunk, where it acts in chunks."""
        leaves = flatten(observation)
        values = [leaves[path][:, -1] if self._stacked else leaves[path] for path in self._paths]
        flat = torch.cat([value.float().flatten(1) if value.ndim > 1 else value[:, None] for value in values], 1)
        actions: Tensor = self.module(flat[:, self._order])
        return (actions if actions.ndim == 2 else actions[:, 0]).clamp(-1.0, 1.0)
