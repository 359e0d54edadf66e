"""Playing recorded episodes again, side by side in the rows of one environment.

A mover says what happens in a control step: :class:`Follow` takes the recorded actions, :class:`Show` sets the recorded
states, ``retarget.Track`` has another controller follow the motion. Observers see every step, as in the evaluation
runner: verification, the recorder, films and exports all watch the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import torch

from manikin.data.collect import outcome_of
from manikin.data.recording.format import PER_STEP, RecordedEpisode, flatten
from manikin.data.recording.read import EpisodeFile
from manikin.env.arrays import to_numpy
from manikin.errors import DataError
from manikin.moved import old_names

if TYPE_CHECKING:
    from manikin.env.interface import BatchEnv

__all__ = ["Completed", "Follow", "Mover", "ControlStep", "Show", "batches", "play"]


class ControlStep(NamedTuple):
    """One control step of N rows: actions (N, A), the observation, the outcome that observers are told, health (N,),
    and which rows are at the end of their episode."""

    actions: torch.Tensor
    observation: Any
    outcome: Mapping[str, np.ndarray]
    health: np.ndarray
    over: np.ndarray


class Mover(Protocol):
    """What happens to the rows."""

    def begin(self, env: BatchEnv, batch: Sequence[RecordedEpisode], observation: Any) -> Any:
        """The first rows have been reset to the starts of ``batch``; gives the observation of that instant."""

    def move(self, active: np.ndarray) -> ControlStep:
        """One control step of the rows of ``active`` (N,) bool."""


def batches(file: EpisodeFile, numbers: Sequence[int], most: int) -> Iterator[list[RecordedEpisode]]:
    """Up to ``most`` episodes at a time that were reset with the same options, loaded when needed."""
    batch: list[RecordedEpisode] = []
    for number in numbers:
        episode = file[number]
        if batch and (len(batch) == most or dict(episode.options) != dict(batch[0].options)):
            yield batch
            batch = []
        batch.append(episode)
    if batch:
        yield batch


def play(
    env: BatchEnv, batch: Sequence[RecordedEpisode], mover: Mover, observers: Sequence[Any], stop: Callable[[], bool]
) -> np.ndarray:
    """Reset rows to the starts of the episodes and move them to their ends; which of the episodes (n,) got there."""
    n = env.num_envs
    padded = [*batch, *[batch[-1]] * (n - len(batch))]  # spare rows start as copies and are frozen at once
    options = dict(batch[0].options)
    index = torch.tensor([e.index for e in padded], dtype=torch.int64)
    observation, _ = env.reset(seed=[e.seed for e in padded], options={**options, "episode_index": index})
    used = np.arange(len(batch))
    observation = mover.begin(env, batch, observation)
    for observer in observers:
        observer.start(used, np.array([e.number for e in batch]), observation, options)
    active = np.zeros(n, bool)
    active[used] = [len(e) > 0 for e in batch]
    while active.any() and not stop():
        now = np.flatnonzero(active)
        moved = mover.move(active.copy())
        for observer in observers:
            observer.step(now, moved.actions, moved.observation, moved.outcome)
        over = now[moved.over[now]]
        active[over] = False
        for observer in observers if len(over) else ():
            observer.finish(over, moved.health[over])
    return ~active[used]


def stepped(env: BatchEnv, actions: torch.Tensor, active: np.ndarray) -> ControlStep:
    """Step the environment; a row is over where its episode has ended."""
    observation, reward, terminated, truncated, info = env.step(actions, active=torch.from_numpy(active))
    outcome = outcome_of(reward, terminated, truncated, info)
    over = outcome["terminated"] | outcome["truncated"]
    return ControlStep(actions, observation, outcome, to_numpy(info["health"]), over)


class Follow:
    """The recorded actions, simulated."""

    def begin(self, env: BatchEnv, batch: Sequence[RecordedEpisode], observation: Any) -> Any:
        """Raises :class:`DataError` when the environment takes actions of another size."""
        size = env.single_action_space.shape[0]
        for episode in batch:
            if episode.actions.ndim != 2 or episode.actions.shape[1] != size:
                raise DataError(
                    f"episode {episode.number} has actions of shape {episode.actions.shape}; this environment takes "
                    f"(steps, {size}). Give the recorded controller: control="
                )
        self._env, self._batch = env, batch
        self._at = np.zeros(env.num_envs, np.int64)
        self._actions = np.zeros((env.num_envs, size), np.float32)
        return observation

    def move(self, active: np.ndarray) -> ControlStep:
        rows = np.flatnonzero(active)
        for i in rows.tolist():
            self._actions[i] = self._batch[i].actions[self._at[i]]
        moved = stepped(self._env, torch.from_numpy(self._actions.copy()), active)
        self._at[rows] += 1
        over = moved.over.copy()
        for i in rows.tolist():
            over[i] |= self._at[i] == len(self._batch[i])
        return moved._replace(over=over)


class Show:
    """The recorded states, one after the other; nothing is simulated. What a step led to is what was recorded.

    Args:
        rewards: compute rewards anew, in the recorded states.
    """

    def __init__(self, *, rewards: bool = False) -> None:
        self._rewards = rewards

    def begin(self, env: BatchEnv, batch: Sequence[RecordedEpisode], observation: Any) -> Any:
        """Raises :class:`DataError` for an episode without states."""
        for episode in batch:
            if episode.states is None:
                raise DataError(
                    f"episode {episode.number} has no recorded states; play its actions: --from actions (way='actions')"
                )
        self._env, self._batch, self._at = env, batch, np.zeros(env.num_envs, np.int64)
        self._health = np.array([e.health for e in batch] + [0] * (env.num_envs - len(batch)))
        return observation

    def move(self, active: np.ndarray) -> ControlStep:
        env, rows = self._env, np.flatnonzero(active)
        at, n = self._at, env.num_envs
        self._at[rows] += 1
        episodes = [(i, self._batch[i]) for i in rows.tolist()]
        observation, _ = env.put([e.states[at[i]] for i, e in episodes if e.states is not None], rows)
        actions = np.zeros((n, *self._batch[0].actions.shape[1:]), np.float32)
        outcome: dict[str, np.ndarray] = {
            name: np.zeros(n, dtype) for name, dtype in PER_STEP.items() if name != "actions"
        }
        outcome |= {f"flags/{name}": np.zeros(n, value.dtype) for name, value in self._batch[0].flags.items()}
        over = np.zeros(n, bool)
        for i, episode in episodes:
            step = at[i] - 1
            actions[i], over[i] = episode.actions[step], at[i] == len(episode)
            for name, value in outcome.items():
                flag = name.startswith("flags/")
                recorded = episode.flags[name.removeprefix("flags/")] if flag else getattr(episode, name)
                value[i] = recorded[step]
        sent = torch.from_numpy(actions)
        if self._rewards:
            outcome["rewards"] = to_numpy(env.reward_of(sent))
        return ControlStep(sent, observation, outcome, self._health, over)


class Completed:
    """An observer: hands on each recorded episode, completed with what is observed now.

    Args:
        episodes: the recording.
        write: takes the finished ones.
        env: where their actions are simulated, to compare states and success with what was recorded; None where
            the recorded states are set.
        rewards: take the rewards given now as well.

    Raises:
        DataError: while playing, where an episode parts from the recording or ends earlier; what would be observed
            from there on does not belong to what is recorded.
    """

    def __init__(
        self,
        episodes: EpisodeFile,
        write: Callable[[RecordedEpisode], None],
        *,
        env: BatchEnv | None = None,
        rewards: bool = False,
    ) -> None:
        self._episodes, self._write, self._env, self._rewards = episodes, write, env, rewards
        self._seen: dict[int, tuple[RecordedEpisode, list[dict[str, np.ndarray]], list[float]]] = {}

    def start(self, rows: np.ndarray, numbers: np.ndarray, observation: Any, options: Mapping[str, Any]) -> None:
        for row, number in zip(rows.tolist(), numbers.tolist(), strict=True):
            self._seen[row] = (self._episodes.episode(number, observations=False), [], [])
        self._compare(rows, {})
        self._look(rows, observation)

    def step(self, rows: np.ndarray, actions: Any, observation: Any, outcome: Mapping[str, Any]) -> None:
        self._compare(rows, outcome)
        for row in rows.tolist():
            self._seen[row][2].append(outcome["rewards"][row])
        self._look(rows, observation)

    def finish(self, rows: np.ndarray, health: np.ndarray) -> None:
        for row in rows.tolist():
            episode, instants, rewards = self._seen.pop(row)
            if len(instants) != len(episode) + 1:
                raise DataError(
                    f"episode {episode.number} ended after {len(instants) - 1} of {len(episode)} steps when its "
                    "actions were played again; see where it deviates: manikin replay FILE --check"
                )
            new: dict[str, Any] = {"observations": {k: np.stack([one[k] for one in instants]) for k in instants[0]}}
            if self._rewards:
                new["rewards"] = np.array(rewards, np.float32)
            self._write(RecordedEpisode(**{**vars(episode), **new}))

    def _compare(self, rows: np.ndarray, outcome: Mapping[str, Any]) -> None:
        if self._env is None:
            return
        for row, digest in zip(rows.tolist(), to_numpy(self._env.state_hash(rows)).tolist(), strict=True):
            episode, instants, _ = self._seen[row]
            at = len(instants)  # instants so far; this one is not among them yet
            words = [] if int(digest) == int(episode.state_hash[at]) else ["the state"]
            for name in ("success", "fail") if at else ():
                words += [name] if bool(outcome[name][row]) != bool(getattr(episode, name)[at - 1]) else []
            if words:
                where = f"after action {at - 1} of {len(episode)}" if at else "at the start"
                raise DataError(
                    f"episode {episode.number} deviates from the recording {where} ({' and '.join(words)}), so later "
                    "observations would be of other states. Play the recorded states instead: --from states "
                    "(way='states'). Or leave the episode out. How far it deviates: manikin replay FILE --check"
                )

    def _look(self, rows: np.ndarray, observation: Any) -> None:
        leaves = {name: to_numpy(value) for name, value in flatten(observation).items()}
        for row in rows.tolist():
            self._seen[row][1].append({name: value[row].copy() for name, value in leaves.items()})


__getattr__ = old_names(__name__)
