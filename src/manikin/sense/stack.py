"""Frame stacks: the last few values of an observation together, oldest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from manikin.errors import ConfigError, UnknownNameError
from manikin.sense.imperfect import Carry, leaves, replaced
from manikin.sense.kinds import built_in, describe

__all__ = ["Stack", "StackMemory"]


@built_in
@dataclass(frozen=True)
class Stack:
    """The last ``frames`` values together, oldest first: (n, ...) becomes (n, frames, ...).

    Before there are as many, the first value of the episode stands for the missing ones.

    Attributes:
        frames: how many control steps, at least 1.
        paths: what is stacked, as paths in the observation: ``"policy/qpos"`` one value, ``"cameras"`` all below it. By
            default everything.

    Raises:
        ConfigError: no whole number of frames, or paths that are no words.
    """

    frames: int
    paths: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.frames, bool) or not isinstance(self.frames, int) or not 1 <= self.frames <= 1024:
            raise ConfigError(f"a Stack takes 1 to 1024 frames, a whole number, not {self.frames!r}")
        paths = (self.paths,) if isinstance(self.paths, str) else self.paths
        if not isinstance(paths, Sequence) or not all(isinstance(path, str) for path in paths):
            raise ConfigError(f"Stack: paths must be words like 'policy/qpos' or 'cameras', not {self.paths!r:.80}")
        object.__setattr__(self, "paths", tuple(paths))

    def describe(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return describe(self)


class StackMemory:
    """The stacks of a whole observation, a nested dict of tensors (n, ...). ``carry`` is as that of a SensorSuite.

    Args:
        stacks: a later one takes precedence over an earlier one where both name a path.
    """

    def __init__(self, stacks: Sequence[Stack]) -> None:
        self.stacks = tuple(stacks)

    def frames_at(self, path: str) -> int:
        """How many frames a value has there; 0 where it is not stacked."""
        for stack in reversed(self.stacks):
            if not stack.paths or any(path == own or path.startswith(f"{own}/") for own in stack.paths):
                return stack.frames
        return 0

    def start(self, observation: Mapping[str, Any]) -> Carry:
        """The stacks at the start of episodes, full of the first values.

        Raises:
            UnknownNameError: a path is not in the observation; lists what there is.
        """
        values = dict(leaves(observation))
        for path in (path for stack in self.stacks for path in stack.paths):
            if not any(name == path or name.startswith(f"{path}/") for name in values):
                raise UnknownNameError("path of a Stack", path, values)
        return {
            path: value.unsqueeze(1).expand(-1, frames, *value.shape[1:]).clone()
            for path, value, frames in self._stacked(observation)
        }

    def __call__(
        self, carry: Mapping[str, Tensor], observation: Mapping[str, Any], active: Tensor
    ) -> tuple[dict[str, Any], Carry]:
        """One control step of the rows of ``active`` (n,) bool: the observation with its stacks, and the next carry.
        The others keep theirs."""
        out: Carry = {}
        for path, value, _ in self._stacked(observation):
            now = torch.cat([carry[path][:, 1:], value.unsqueeze(1)], 1)
            out[path] = torch.where(active.view(-1, *[1] * (now.dim() - 1)), now, carry[path])
        return replaced(observation, {path: value.clone() for path, value in out.items()}), out

    def _stacked(self, observation: Mapping[str, Any]) -> Iterator[tuple[str, Tensor, int]]:
        for path, value in leaves(observation):
            if frames := self.frames_at(path):
                yield path, value, frames
