"""Verified replay: simulate recorded actions again and compare the physics state after every step, bit for bit.

Exact on the kind of machine that recorded. Another kind of processor rounds differently, and contacts amplify that;
replay then reports where the two part, and does not call it an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from manikin.data.format import Episode, flatten, to_numpy
from manikin.data.read import EpisodeFile
from manikin.data.record import initial_state
from manikin.errors import DataError
from manikin.spec.scene import COSMETIC

__all__ = ["EpisodeReplay", "ReplayReport", "make_env", "replay"]


@dataclass(frozen=True, kw_only=True)
class EpisodeReplay:
    """How one replayed episode compares.

    Attributes:
        number, seed, index: which episode.
        steps: control steps recorded.
        start: names of the parts of the initial snapshot that differ, with the largest absolute difference.
        first_difference: the first instant whose state differs: 0 is the start, t is after t actions; None: none.
        difference: the largest absolute difference of the physics state there; None if states were not recorded.
        last_difference: the same at the last instant that was played.
        outcome: what else came out differently (rewards, success, length), in words.
    """

    number: int
    seed: int
    index: int
    steps: int
    start: Mapping[str, float]
    first_difference: int | None
    difference: float | None
    last_difference: float | None
    outcome: tuple[str, ...]

    @property
    def exact(self) -> bool:
        return not self.start and self.first_difference is None and not self.outcome

    def __str__(self) -> str:
        name = f"episode {self.number} (seed {self.seed}, index {self.index})"
        if self.exact:
            return f"{name}: {self.steps} steps, bit for bit"
        said = []
        if self.start:
            said.append("start differs in " + ", ".join(f"{k} by {v:.3g}" for k, v in self.start.items()))
        if self.first_difference is not None:
            how = "states were not recorded, so by how much is unknown"
            if self.difference is not None and self.last_difference is not None:
                how = f"by {self.difference:.3g} there and {self.last_difference:.3g} at the end"
            where = "at the start" if self.first_difference == 0 else f"after action {self.first_difference - 1}"
            said.append(f"state differs first {where} of {self.steps} ({how})")
        return f"{name}: " + "; ".join([*said, *self.outcome])


@dataclass(frozen=True, kw_only=True)
class ReplayReport:
    """The comparison of a whole recording.

    Attributes:
        path: the recording.
        episodes: one entry per episode.
        recorded_on, replayed_on: kinds of processor.
        changed: what is different between the recorded environment and this one (versions, model, ...), in words.
    """

    path: Path
    episodes: tuple[EpisodeReplay, ...]
    recorded_on: str
    replayed_on: str
    changed: tuple[str, ...]

    @property
    def exact(self) -> bool:
        return all(e.exact for e in self.episodes)

    @property
    def same_processor(self) -> bool:
        return self.recorded_on == self.replayed_on

    @property
    def ok(self) -> bool:
        """Exact, or different only where that is expected: on another kind of processor."""
        return self.exact or not self.same_processor

    def summary(self) -> str:
        """A few lines for people."""
        wrong = [e for e in self.episodes if not e.exact]
        lines = [f"{len(self.episodes) - len(wrong)} of {len(self.episodes)} episodes reproduced bit for bit"]
        lines += [f"  {e}" for e in wrong[:10]]
        if len(wrong) > 10:
            lines.append(f"  and {len(wrong) - 10} more")
        if wrong and not self.same_processor:
            lines.append(f"recorded on {self.recorded_on}, replayed on {self.replayed_on}: some divergence is expected")
        if wrong and self.changed:
            lines += ["changed since the recording:", *(f"  {c}" for c in self.changed)]
        return "\n".join(lines)


def make_env(fingerprint: Mapping[str, Any], num_envs: int, **overrides: Any) -> Any:
    """Build the environment of a recording again, with autoreset "disabled".

    Args:
        fingerprint: as ``Env.fingerprint()`` gave it.
        num_envs: rows.
        **overrides: options of ``manikin.make`` that win over the recorded ones.

    Raises:
        DataError: the fingerprint names no task.
        ManikinError: the task, robot or controller does not exist here.
    """
    from manikin.env.registry import make

    if not fingerprint.get("task"):
        raise DataError("the recording's fingerprint names no task, so its environment cannot be built again")
    options = {k: fingerprint[k] for k in _MAKE_OPTIONS if fingerprint.get(k) is not None}
    return make(fingerprint["task"], num_envs, **{**options, "autoreset": "disabled", **overrides})


_MAKE_OPTIONS = (
    *("robot", "control", "device", "observe", "reward", "looks"),
    *("physics_hz", "control_hz", "horizon", "config", "terminate"),
)


def replay(
    path: str | Path,
    env: Any = None,
    *,
    check: bool = True,
    num_envs: int = 16,
    numbers: Iterable[int] | None = None,
    observers: Sequence[Any] = (),
    on_episode: Callable[[EpisodeReplay], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> ReplayReport:
    """Play recorded actions again from the recorded seeds and compare.

    Args:
        path: the recording.
        env: where to replay (autoreset "disabled"); None builds it from the file.
        check: compare; False only plays (for pictures).
        num_envs: rows side by side when ``env`` is None. Never changes the result.
        numbers: which episodes; None for all.
        observers: see every step, as in the evaluation runner.
        on_episode: called after each episode.
        stop: asked once per control step; True returns what is finished.

    Raises:
        DataError: the file cannot be read, has no such episode, or its actions do not fit the environment.
    """
    with EpisodeFile(path) as file:
        if file.header is None:
            raise DataError(f"{path} has no finished episode")
        own = env is None
        wanted = list(file.numbers if numbers is None else numbers)
        env = make_env(file.header.fingerprint, max(1, min(num_envs, len(wanted)))) if own else env
        try:
            now = env.fingerprint()
            done: list[EpisodeReplay] = []
            for batch in _batches(file, wanted, env.num_envs):
                for result in _play(env, batch, observers, check, stop):
                    done.append(result)
                    if on_episode is not None:
                        on_episode(result)
                if stop():
                    break
        finally:
            if own:
                env.close()
        return ReplayReport(
            path=Path(path),
            episodes=tuple(done),
            recorded_on=file.header.processor,
            replayed_on=str(now.get("machine", {}).get("processor", "")),
            changed=_changes(file.header.fingerprint, now),
        )


def _batches(file: EpisodeFile, wanted: list[int], most: int) -> Iterator[list[Episode]]:
    """Up to ``most`` episodes at a time that were reset with the same options, loaded when needed."""
    batch: list[Episode] = []
    for number in wanted:
        episode = file[number]
        if batch and (len(batch) == most or dict(episode.options) != dict(batch[0].options)):
            yield batch
            batch = []
        batch.append(episode)
    if batch:
        yield batch


# Which outputs are served depends on who has read them; they follow from the state. Cameras and lights may be others.
_MAY_LACK = ("served/", *(f"model/{field}" for field in COSMETIC))


class _Row:
    """The comparison of one episode while it plays."""

    def __init__(self, episode: Episode) -> None:
        self.episode = episode
        self.start: dict[str, float] = {}
        self.first: int | None = None
        self.difference: float | None = None
        self.last: float | None = None
        self.outcome: list[str] = []
        self.played = 0

    def compare_start(self, now: Mapping[str, np.ndarray]) -> None:
        then = self.episode.initial
        for name in sorted(now.keys() | then.keys()):
            alike = name in now and name in then and now[name].shape == then[name].shape
            if name.startswith(_MAY_LACK) and not alike:
                continue
            if not alike:
                self.start[name] = float("nan")
            elif not np.array_equal(now[name], then[name], equal_nan=now[name].dtype.kind == "f"):
                self.start[name] = _largest(now[name], then[name])

    def compare_state(self, instant: int, digest: int, state: Callable[[], np.ndarray]) -> None:
        if digest != int(self.episode.state_hash[instant]) and self.first is None:
            self.first = instant
        if self.first is not None and self.episode.states is not None:
            self.last = _largest(state(), self.episode.states[instant])
            self.difference = self.last if self.difference is None else self.difference

    def compare_outcome(self, step: int, outcome: Mapping[str, Any]) -> None:
        for name, value in outcome.items():
            then = getattr(self.episode, name)[step]
            if value != then and not any(word.startswith(name) for word in self.outcome):
                self.outcome.append(f"{name} at step {step}: {then} recorded, {value} now")

    def report(self) -> EpisodeReplay:
        e = self.episode
        if self.played < len(e):
            self.outcome.append(f"ended after {self.played} steps instead of {len(e)}")
        return EpisodeReplay(
            number=e.number,
            seed=e.seed,
            index=e.index,
            steps=len(e),
            start=self.start,
            first_difference=self.first,
            difference=self.difference,
            last_difference=self.last,
            outcome=tuple(self.outcome),
        )


def _play(
    env: Any, batch: list[Episode], observers: Sequence[Any], check: bool, stop: Callable[[], bool]
) -> list[EpisodeReplay]:
    n, size = env.num_envs, env.single_action_space.shape[0]
    for episode in batch:
        if episode.actions.ndim != 2 or episode.actions.shape[1] != size:
            raise DataError(
                f"episode {episode.number} has actions of shape {episode.actions.shape}; this environment takes {size}"
            )
    padded = batch + batch[-1:] * (n - len(batch))  # spare rows start as copies and are frozen at once
    options = dict(batch[0].options)
    index = torch.tensor([e.index for e in padded], dtype=torch.int64)
    observation, _ = env.reset(seed=[e.seed for e in padded], options={**options, "episode_index": index})
    used = np.arange(len(batch))
    rows = [_Row(e) for e in batch]
    if check:
        for row, initial in zip(rows, initial_state(env.save(used)), strict=True):
            row.compare_start(initial)
        _compare_states(env, rows, used)
    for observer in observers:
        observer.start(used, np.array([e.number for e in batch]), observation, options)
    actions = np.zeros((n, size), np.float32)
    active = np.zeros(n, bool)
    active[used] = [len(e) > 0 for e in batch]
    while active.any() and not stop():
        now = np.flatnonzero(active)
        for i in now:
            actions[i] = rows[i].episode.actions[rows[i].played]
        sent = torch.from_numpy(actions.copy())
        observation, reward, terminated, truncated, info = env.step(sent, active=torch.from_numpy(active.copy()))
        outcome = {
            "rewards": to_numpy(reward),
            "terminated": to_numpy(terminated),
            "truncated": to_numpy(truncated),
            "success": to_numpy(info["success"]),
            "fail": to_numpy(info.get("fail", np.zeros(n, bool))),
        }
        for i in now:
            if check:
                rows[i].compare_outcome(rows[i].played, {k: v[i] for k, v in outcome.items()})
            rows[i].played += 1
        if check:
            _compare_states(env, rows, now)
        for observer in observers:
            observer.step(now, sent, observation, outcome)
        ended = outcome["terminated"] | outcome["truncated"]
        over = np.array([i for i in now if rows[i].played == len(rows[i].episode) or ended[i]], np.int64)
        active[over] = False
        for observer in observers if len(over) else ():
            observer.finish(over, to_numpy(info["health"])[over])
    finished = rows if not active.any() else [r for i, r in enumerate(rows) if not active[i]]
    return [row.report() for row in finished]


def _compare_states(env: Any, rows: list[_Row], which: np.ndarray) -> None:
    digests = to_numpy(env.state_hash(which))
    for i, digest in zip(which.tolist(), digests.tolist(), strict=True):
        rows[i].compare_state(rows[i].played, int(digest), lambda i=i: env.physics_states([i])[0])


def _largest(a: np.ndarray, b: np.ndarray) -> float:
    """Largest absolute difference; infinite where one is not a number and the other is."""
    with np.errstate(invalid="ignore"):
        difference = np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64))
    difference = np.where(np.isnan(difference) & ~(np.isnan(a) & np.isnan(b)), np.inf, np.nan_to_num(difference))
    return float(difference.max(initial=0.0))


def _changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, ...]:
    a, b = flatten(then), flatten(now)
    return tuple(f"{k}: {a.get(k)!r} recorded, {b.get(k)!r} here" for k in sorted(a | b) if a.get(k) != b.get(k))
