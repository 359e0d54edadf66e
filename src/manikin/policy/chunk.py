"""Executing chunks: a policy is asked once for several control steps, each row on its own clock."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from manikin.errors import ActionError, ConfigError
from manikin.policy.api import Observation, Policy, check_actions

__all__ = ["ChunkPolicy", "Execution", "ask", "says_finished", "select_rows"]


def select_rows(tree: Any, rows: Tensor) -> Any:
    """Rows of a tensor or of nested dicts of tensors."""
    if isinstance(tree, Mapping):
        return {key: select_rows(value, rows) for key, value in tree.items()}
    return tree[rows]


@dataclass(frozen=True)
class Execution:
    """How chunks are executed.

    Attributes:
        execute: actions of each chunk to execute before the policy is asked again. None executes the whole chunk, or
            one action where there is an ``ensemble``.
        ensemble: None executes the newest chunk alone. A number m averages all chunks that hold an action for the
            present step, the i-th oldest of them, counted from 0, with weight ``exp(-m * i)``. With m > 0 the oldest
            weighs most, with 0 all weigh the same. This is temporal ensembling (Zhao et al., 2023, arXiv:2304.13705),
            which asks in every step.

    Raises:
        ConfigError: ``execute`` below 1, or ``ensemble`` is not finite.
    """

    execute: int | None = None
    ensemble: float | None = None

    def __post_init__(self) -> None:
        if self.execute is not None and self.execute < 1:
            raise ConfigError(f"execute must be at least 1 action of each chunk, got {self.execute}")
        if self.ensemble is not None and not math.isfinite(self.ensemble):
            raise ConfigError(f"ensemble must be a finite number, got {self.ensemble}")

    @classmethod
    def of(cls, about: Mapping[str, Any]) -> Execution:
        """From what a checkpoint or a policy server says of itself (its entry ``execution``); the whole chunk where it
        says nothing.

        Raises:
            ConfigError: the entry has other keys than ``execute`` and ``ensemble``, or values of another kind.
        """
        said = about.get("execution", {})
        kinds = {"execute": int, "ensemble": int | float}
        if not isinstance(said, Mapping) or any(
            name not in kinds or isinstance(value, bool) or not isinstance(value, kinds[name] | None)
            for name, value in said.items()
        ):
            raise ConfigError(
                f"the policy's execution must have execute (a whole number) and ensemble (a number), got {said!r:.80}"
            )
        return cls(**said)

    @property
    def plain(self) -> dict[str, Any]:
        """As JSON has it: what :meth:`of` reads."""
        return asdict(self)


def ask(
    policy: Policy, need: Tensor, rows: int, dimensions: int, observation: Observation, instruction: Sequence[str]
) -> Tensor:
    """Chunks (n, H, A) for the rows ``need`` (n,) of all N. A policy that keeps memory is asked for all of them.

    Raises:
        ActionError: the policy's answer has the wrong shape.
    """
    if getattr(policy, "stateless", False) and len(need) < rows:
        words = [instruction[i] for i in need.tolist()]
        return check_actions(policy.act(select_rows(observation, need), words), len(need), dimensions)
    return check_actions(policy.act(observation, instruction), rows, dimensions)[need]


def says_finished(policy: Policy, need: Tensor, rows: int) -> Tensor | None:
    """(rows,) bool in which of the rows ``need`` (n,) that it was just asked for a policy says that it has finished;
    None where it never says.

    Raises:
        ActionError: its attribute ``finished`` has another shape.
    """
    said = getattr(policy, "finished", None)
    if said is None:
        return None
    asked = len(need) if getattr(policy, "stateless", False) else rows
    if not isinstance(said, Tensor) or said.dtype != torch.bool or said.shape != (asked,):
        found = f"{said.dtype} {tuple(said.shape)}" if isinstance(said, Tensor) else type(said).__name__
        raise ActionError(f"the policy's attribute finished must be a bool tensor ({asked},), got {found}")
    out = torch.zeros(rows, dtype=torch.bool)
    out[need] = said.cpu() if asked < rows else said.cpu()[need]
    return out


class ChunkPolicy:
    """Asks ``policy`` for a chunk, executes its first actions one control step at a time, then asks again.

    A row asks when its own chunk is used up or its episode begins, never because of another row, so the actions of an
    episode do not depend on its neighbours. A policy that keeps memory is asked for all rows whenever any row needs a
    chunk; it should then keep its memory by episode step and not by call. A ``stateless`` one is asked only for the
    rows that need it.

    Args:
        policy: what to ask.
        num_envs: rows N.
        dimensions: numbers A per action.
        execution: how its chunks are executed; None for the policy's own choice, its attribute ``execution``, and the
            whole chunk where it has none. A chunk shorter than ``execute`` is executed whole.

    Attributes:
        finished: (N,) bool of the last ``act``, where the policy has this attribute; a row says so in the step in which
            it was asked. None where it has not.

    Raises:
        ActionError: the policy's answer has the wrong shape.
    """

    finished: Tensor | None = None

    def __init__(self, policy: Policy, num_envs: int, dimensions: int, *, execution: Execution | None = None) -> None:
        self.policy = policy
        own: Execution = getattr(policy, "execution", Execution())
        self.execution = own if execution is None else execution
        self.name = str(getattr(policy, "name", type(policy).__name__))
        self._n, self._a = num_envs, dimensions
        self._left = torch.zeros(num_envs, dtype=torch.int64)
        self._chunk = torch.zeros(num_envs, 0, dimensions)
        self._count = torch.zeros(num_envs, 0, dtype=torch.int64)  # chunks in the average of each future step
        self._shares = torch.ones(1)

    def reset(self, rows: Tensor) -> None:
        """The rows begin a new episode: what is left of their chunks is dropped."""
        rows = rows.cpu()
        self._left[rows] = 0
        self._count[rows.to(self._count.device)] = 0
        self.policy.reset(rows)

    @property
    def asks(self) -> Tensor:
        """(N,) bool: rows for whose next action the policy is asked, which looks at what they observe then."""
        if not getattr(self.policy, "stateless", False):
            return torch.ones(self._n, dtype=torch.bool)
        return self._left == 0

    def act(self, observation: Observation, instruction: Sequence[str]) -> Tensor:
        """The next action of each row, (N, 1, A)."""
        need = (self._left == 0).nonzero()[:, 0]
        self.finished = None
        if len(need):
            self._ask(need, observation, instruction)
        action = self._chunk[:, 0]
        # the chunk moves forward, so that the next action of every row is always first
        self._chunk = torch.cat([self._chunk[:, 1:], self._chunk[:, -1:]], dim=1)
        self._count = torch.nn.functional.pad(self._count[:, 1:], (0, 1))
        self._left = (self._left - 1).clamp(min=0)
        return action[:, None].clone()

    def _ask(self, need: Tensor, observation: Observation, instruction: Sequence[str]) -> None:
        answer = ask(self.policy, need, self._n, self._a, observation, instruction)
        self.finished = says_finished(self.policy, need, self._n)
        length, ensemble = answer.shape[1], self.execution.ensemble
        self._make_room(length, answer)
        rows = need.to(answer.device)
        if ensemble is None:
            self._count[rows] = 0
        count = self._count[rows, :length]
        # a running mean: share of the newest in it; the first chunk is taken as it is
        share = self._shares[count.clamp(max=len(self._shares) - 1)].unsqueeze(2)
        mean = torch.lerp(self._chunk[rows, :length], answer, share)
        self._chunk[rows, :length] = torch.where(count.unsqueeze(2) == 0, answer, mean)
        self._count[rows, :length] = count + 1
        execute = self.execution.execute or (length if ensemble is None else 1)
        self._left[need] = min(execute, length)

    def _make_room(self, length: int, answer: Tensor) -> None:
        """For chunks so long, with the answer's kind of numbers and on its device."""
        missing = max(0, length - self._chunk.shape[1])
        pad = torch.nn.functional.pad
        self._chunk = pad(self._chunk, (0, 0, 0, missing)).to(answer)
        self._count = pad(self._count, (0, missing)).to(answer.device)
        if len(self._shares) <= length:
            logarithm = -(self.execution.ensemble or 0.0) * torch.arange(length + 1, dtype=torch.float64)
            self._shares = (logarithm - torch.logcumsumexp(logarithm, 0)).exp().to(answer)
