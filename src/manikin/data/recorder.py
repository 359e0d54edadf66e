"""Recording what happens in an environment: an observer of the runner that writes each episode when it ends."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from manikin.data.collect import Collector
from manikin.data.recording.format import Header
from manikin.data.recording.labels import Keep
from manikin.data.recording.write import EpisodeWriter

if TYPE_CHECKING:
    from manikin.env.interface import BatchEnv

__all__ = ["Recorder", "largest_episode"]


def largest_episode(env: BatchEnv, *, observations: bool = False, states: bool = True) -> int:
    """Bytes that an episode of an environment takes at most while it is being recorded: one that lasts to the horizon,
    not compressed.

    Args:
        env: the environment.
        observations: whether what the policy is shown is kept.
        states: whether the physics state is.
    """
    state = 8 * env.state_size
    seen = _space_bytes(env.single_observation_space) if observations else 0
    step = 4 * (env.single_action_space.shape[0] + len(env.force_names) + len(env.joint_names) + 32)
    return int((env.horizon + 1) * (step + (state if states else 0) + seen) + 4 * state + 4096)


def _space_bytes(space: Any) -> int:
    if isinstance(space, Mapping):  # gymnasium's Dict is one
        return sum(_space_bytes(inner) for inner in space.values())
    return int(np.prod(space.shape, dtype=np.int64)) * space.dtype.itemsize


class Recorder:
    """Collects what happens in every row and writes each episode when it ends. An observer of the runner.

    Args:
        env: the environment whose episodes are recorded (autoreset "disabled").
        path: the recording.
        policy: name of who acts.
        observations: also keep what the policy was shown.
        states: also keep the float64 physics state of every step (about 0.5 kB per step), which lets a failed
            verification say by how much it differs.
        keep: "all" episodes, only those with "success" at any time, "failure", or the modes named in "label:A,B".
        first_seed: episode k is to have the seed ``first_seed`` + k; a resumed recording must have the same.
        resume: continue a recording that exists; ``finished`` says which numbers it has.
        source: of which recording this one is a replay, see :class:`~manikin.data.recording.format.Header`.
        about: what else the header says of how it was recorded, as JSON has it.

    Attributes:
        tracker: follows what happens in every row.

    Raises:
        UnknownNameError: unknown ``keep``.
        DataError: as :class:`EpisodeWriter`.
    """

    def __init__(
        self,
        env: BatchEnv,
        path: str | Path,
        *,
        policy: str = "",
        observations: bool = False,
        states: bool = True,
        keep: str = "all",
        first_seed: int | None = None,
        resume: bool = False,
        source: Mapping[str, Any] | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        self.env = env
        self._collector = Collector(env, observations=observations, states=states)
        self.tracker = self._collector.tracker
        self._keep = Keep(keep, self.tracker.labels.modes)
        recorded: dict[str, Any] = {"observations": observations, "states": states, "keep": keep, **(about or {})}
        recorded |= {} if first_seed is None else {"first_seed": first_seed}
        header = Header(fingerprint=env.fingerprint(), policy=policy, recorded=recorded, source=source or {})
        self.writer = EpisodeWriter(path, header, resume=resume)

    @property
    def finished(self) -> set[int]:
        """Numbers of the episodes that need not run again: those on disk, and those run and not kept."""
        return self.writer.finished

    @property
    def kept(self) -> set[int]:
        """Numbers of the episodes on disk."""
        return self.writer.finished - self.writer.dropped

    def start(self, rows: np.ndarray, numbers: np.ndarray, observation: Any, options: Mapping[str, Any]) -> None:
        """Episodes ``numbers`` begin in ``rows`` with these reset options; ``observation`` is that of all rows."""
        self._collector.start(rows, numbers, observation, options)

    def step(self, rows: np.ndarray, actions: Any, observation: Any, outcome: Mapping[str, Any]) -> None:
        """One control step of ``rows``; ``outcome`` as the runner gives it."""
        self._collector.step(rows, actions, observation, outcome)

    def finish(self, rows: np.ndarray, health: np.ndarray) -> None:
        """The episodes in ``rows`` have ended: write them."""
        made = self._collector.finish(rows, health)
        kept = [e for e in made if self._keep(e.success_once, e.mode)]
        self.writer.write(*kept, dropped=[e.number for e in made if e not in kept])

    @property
    def lost(self) -> set[int]:
        """Numbers of the episodes that were finished and whose files somebody removed, known once it is closed."""
        return self.writer.lost

    def close(self, *, merge: bool = True) -> None:
        """Merge what is finished into one file; episodes in flight are dropped. Raises as :class:`EpisodeWriter`."""
        self.writer.close(merge=merge)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.writer.__exit__(kind, value, trace)
