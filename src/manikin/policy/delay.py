"""A policy that thinks while the world goes on."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from manikin.env.interface import BatchEnv, SceneEnv
from manikin.errors import ConfigError
from manikin.policy.api import Observation, Policy
from manikin.policy.chunk import Execution, ask, says_finished

__all__ = ["LatePolicy", "late_steps", "standing"]


def late_steps(inference_ms: float, control_hz: float) -> int:
    """Control steps that pass before an answer is there: the time of an inference, rounded up.

    Raises:
        ConfigError: a time that is negative or not finite.
    """
    if not math.isfinite(inference_ms) or inference_ms < 0:
        raise ConfigError(f"inference_ms must be 0 or more milliseconds, got {inference_ms}")
    return math.ceil(inference_ms * control_hz / 1000 - 1e-9)


def standing(env: BatchEnv, before: Tensor | None = None) -> Tensor:
    """(N, A) actions that ask for nothing new. A gripper keeps its command.

    Args:
        env: whose rows stand still.
        before: (N, A) their last actions. None at the start of an episode: a gripper keeps its opening.
    """
    action, card = env.hold(), env.controller.card
    absolute = [column for column in card.grippers if card.dims[column].reference == "absolute"]
    if absolute and before is None:
        openings = env.gather(_openings)
        dims = [card.dims[column] for column in card.grippers]
        commands = torch.stack([(openings[:, k] - dim.offset) / dim.scale for k, dim in enumerate(dims)], 1)
        before = torch.zeros_like(action)
        before[:, list(card.grippers)] = commands.clamp(-1.0, 1.0).to(action)
    if absolute and before is not None:
        action[:, absolute] = before[:, absolute].to(action)
    return action


def _openings(env: SceneEnv) -> Tensor:
    """(n, grippers) in the order of an action's numbers."""
    tools = [tool for robot in env.robots for tool in robot.tools.values() if tool.drivers]
    return torch.stack([tool.opening for tool in tools], 1)


class LatePolicy:
    """Executes chunks whose answers come late, each row on its own clock.

    An answer takes ``late`` control steps. A row asks as soon as its chunk has no more actions left than that, so that
    the next one arrives when they are used up; meanwhile it goes on with its chunk. Where it has none, at the start of
    an episode or after a short chunk, it stands still. The first action of a chunk is meant for the step in which the
    row asked: of a chunk longer than ``late`` steps, as many are over when it arrives and are left out. A chunk that is
    not longer is executed late, whole.

    Args:
        policy: what to ask. One that keeps memory is asked for all rows whenever any row asks.
        env: whose rows act.
        late: control steps that an answer takes, see :func:`late_steps`.
        execution: how chunks are executed; None for the policy's own choice.

    Raises:
        ConfigError: chunks are to be averaged, which needs an answer in every step.
    """

    def __init__(self, policy: Policy, env: BatchEnv, late: int, *, execution: Execution | None = None) -> None:
        own: Execution = getattr(policy, "execution", Execution())
        self.policy, self.env, self.late = policy, env, late
        self.execution = own if execution is None else execution
        if self.execution.ensemble is not None:
            raise ConfigError(
                "chunks cannot be averaged (ensemble) by a policy that thinks while the world goes on (inference_ms): "
                "it has no answer in every step"
            )
        self.name = str(getattr(policy, "name", type(policy).__name__))
        n, self._a = env.num_envs, env.single_action_space.shape[0]
        self._before = torch.zeros(n, self._a)
        self._clock = [0] * n
        self._chunks: list[Tensor | None] = [None] * n  # (actions left, A)
        self._coming: list[tuple[int, Tensor, bool] | None] = [None] * n  # when it arrives, (H, A), says it is finished
        self.finished: Tensor | None = None  # (N,) bool, with the first step of an answer

    def reset(self, rows: Tensor) -> None:
        """The rows begin a new episode: chunks and answers under way are dropped."""
        for row in rows.tolist():
            self._clock[row], self._chunks[row], self._coming[row] = 0, None, None
        self.policy.reset(rows.cpu())

    def act(self, observation: Observation, instruction: Sequence[str]) -> Tensor:
        """The next action of each row, (N, 1, A)."""
        self.finished = torch.zeros(self.env.num_envs, dtype=torch.bool)
        self._arrive()
        asks = [row for row, coming in enumerate(self._coming) if coming is None and self._left(row) <= self.late]
        if asks:
            need = torch.tensor(asks)
            answer = ask(self.policy, need, self.env.num_envs, self._a, observation, instruction)
            said = says_finished(self.policy, need, self.env.num_envs)
            for row, chunk in zip(asks, answer, strict=True):
                self._coming[row] = (self._clock[row] + self.late, chunk, said is not None and bool(said[row]))
            self._arrive()
        action = standing(self.env, self._before)
        if fresh := [row for row, clock in enumerate(self._clock) if clock == 0]:
            action[fresh] = standing(self.env)[fresh]
        for row, left in enumerate(self._chunks):
            if left is not None and len(left):
                action[row], self._chunks[row] = left[0].to(action), left[1:]
            self._clock[row] += 1
        self._before = action
        return action[:, None].clone()

    def _left(self, row: int) -> int:
        left = self._chunks[row]
        return 0 if left is None else len(left)

    def _arrive(self) -> None:
        for row, coming in enumerate(self._coming):
            if coming is not None and coming[0] <= self._clock[row]:
                assert self.finished is not None
                _, chunk, self.finished[row] = coming
                over = self.late if len(chunk) > self.late else 0
                self._chunks[row] = chunk[over:][: self.execution.execute]
                self._coming[row] = None
