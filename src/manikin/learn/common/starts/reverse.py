"""Starts along demonstrations, further and further from their ends: a reverse curriculum.

Tao et al., 2024, arXiv:2405.03379. A policy that seldom meets a sparse reward begins where a demonstration is about to
succeed. Where it succeeds again and again, it begins earlier. Once all demonstrations are learned from their beginning,
the task's own starts are what is left.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manikin.data.formats.demonstrations import holds_demos
from manikin.data.recording.format import RecordedEpisode
from manikin.data.recording.read import EpisodeFile
from manikin.data.replay.play import batches
from manikin.env.interface import BatchEnv
from manikin.errors import ConfigError, DataError
from manikin.learn.common.starts.base import SavedStarts, saved
from manikin.sim.snapshot import Snapshot

__all__ = ["ReverseStarts"]

_CLOSE = 1e-3  # how far a played observation may be from the recorded one: the digits of another processor


class ReverseStarts(SavedStarts):
    """Puts rows that begin an episode into states of demonstrations.

    Args:
        env: where the policy learns, as the demonstrations were recorded; all rows in one scene. It is played through
            the demonstrations once.
        path: the recording, with flat observations.
        back: control steps by which a demonstration's start moves back.
        wins: so many successes in a row, from about that start, move it.
        patience: an episode that begins at step t of a demonstration of T steps is truncated after
            ``patience * (T - t)`` control steps and a few more.
        seed: of the choices.

    Attributes:
        at: (D,) the step at which each demonstration's episodes begin, 0 for its beginning.
        lengths: (D,) the demonstrations' lengths to their first success.

    Raises:
        ConfigError: rows have several scenes, settings are out of range, or the demonstrations are of another project.
        DataError: the demonstrations do not come out as they were recorded.
    """

    own_at_first = False

    def __init__(
        self, env: BatchEnv, path: str | Path, *, back: int = 4, wins: int = 3, patience: float = 3.0, seed: int = 0
    ) -> None:
        for name, value in (("back", back), ("wins", wins)):
            if value < 1:
                raise ConfigError(f"reverse starts need {name} of 1 or more, got {value}")
        if not patience >= 1:
            raise ConfigError(f"reverse starts need a patience of 1 or more, got {patience}")
        if holds_demos(path):
            raise ConfigError(
                f"{path} has demonstrations of another project, whose states are not those of this physics: learn from "
                "them without reverse, or collect demonstrations here"
            )
        super().__init__(env, seed)
        self.back, self.wins, self.patience = back, wins, patience
        with EpisodeFile(path) as file:
            played = [part for batch in batches(file, file.numbers, env.num_envs) for part in _played(env, batch)]
        if not played:
            raise DataError(f"{path} holds no episode that succeeded within {env.horizon} steps: nothing to begin from")
        self.lengths = np.array([len(one) for one in played])
        self._first = np.concatenate([[0], np.cumsum(self.lengths)[:-1]])
        self._states = Snapshot.joined(played)
        self.at = np.maximum(self.lengths - back, 0)
        self._run = np.zeros(len(played), np.int64)  # successes in a row
        self.demo_of = np.full(env.num_envs, -1)  # of each row's episode; -1 began as the task says

    @property
    def learned(self) -> bool:
        """Whether all demonstrations are learned from their beginning; then no more episodes begin along them."""
        return bool((self.at < 0).all())

    @property
    def summary(self) -> dict[str, float]:
        """How many control steps before the ends of the demonstrations episodes begin, on average."""
        return {"before_demo_end": float((self.lengths - np.maximum(self.at, 0)).mean())}

    def begin(self, rows: Tensor, success: Tensor) -> Any:
        index = np.flatnonzero(rows.cpu().numpy())
        self.note(self.demo_of[index], success.cpu().numpy()[index])
        self.demo_of[index] = -1
        open_ = np.flatnonzero(self.at >= 0)
        if not len(index) or not len(open_):
            return None
        draw = self._streams["starts"]
        demo = open_[torch.randint(len(open_), (len(index),), generator=draw).numpy()]
        # mostly the start itself, sometimes one nearer to the end: what was learned is not forgotten
        later = (torch.empty(len(index)).geometric_(0.5, generator=draw).numpy().astype(np.int64) - 1) * self.back
        start = np.minimum(self.at[demo] + later, self.lengths[demo] - 1)
        states = self._states.rows(self._first[demo] + start)
        left = (self.patience * (self.lengths[demo] - start)).astype(np.int64) + 2 * self.back
        self.demo_of[index] = np.where(later == 0, demo, -1)
        return self._put(index, states, np.maximum(self.env.horizon - left, 0))

    def visit(self, first: Tensor) -> None:
        """Changes nothing: what counts is how an episode ended."""

    def note(self, demos: np.ndarray, success: np.ndarray) -> None:
        for demo, won in zip(demos.tolist(), success.tolist(), strict=True):
            if demo < 0 or self.at[demo] < 0:
                continue
            self._run[demo] = self._run[demo] + 1 if won else 0
            if self._run[demo] >= self.wins:
                self.at[demo] = -1 if self.at[demo] == 0 else max(self.at[demo] - self.back, 0)
                self._run[demo] = 0

    def state_dict(self) -> dict[str, Any]:
        return {"at": self.at, "run": self._run, "demo": self.demo_of, "streams": self._streams.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.at, self._run, self.demo_of = (np.array(state[name]) for name in ("at", "run", "demo"))
        self._streams.load_state_dict(state["streams"])


def _played(env: BatchEnv, batch: list[RecordedEpisode]) -> list[Snapshot]:
    """The states before each step of the episodes that succeeded in time, up to their success."""
    ends = [int(np.argmax(one.succeeded)) + 1 if one.success_once else 0 for one in batch]
    ends = [end if end <= env.horizon else 0 for end in ends]
    padded = [*batch, *[batch[-1]] * (env.num_envs - len(batch))]
    index = torch.tensor([one.index for one in padded])
    seen, _ = env.reset(seed=[one.seed for one in padded], options={**batch[0].options, "episode_index": index})
    found: list[list[Snapshot]] = [[] for _ in batch]
    actions = torch.zeros((env.num_envs, env.single_action_space.shape[0]), device=env.device)
    for t in range(max(ends)):
        now = np.array([row for row, end in enumerate(ends) if t < end])
        states = saved(env, now, "a reverse curriculum")
        for place, row in enumerate(now.tolist()):
            recorded = (batch[row].observations or {})["value"][t]
            if np.abs(seen[row].cpu().numpy() - recorded).max() > _CLOSE:
                raise DataError(
                    f"episode {batch[row].number} does not come out as recorded (step {t}): collect the demonstrations "
                    "with this version, task, controller and kind of device"
                )
            found[row].append(states.rows(np.array([place])))
            actions[row] = torch.from_numpy(batch[row].actions[t])
        active = np.zeros(env.num_envs, bool)
        active[now] = True
        seen = env.step(actions, active=active)[0]
    return [Snapshot.joined(one) for one in found if one]
