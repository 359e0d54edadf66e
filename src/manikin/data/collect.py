"""What happens in the rows of an environment, as episodes: for a recorder to write, and for a check to compare with
what was recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from manikin.data.recording.format import PER_STEP, RecordedEpisode, flatten
from manikin.data.recording.labels import Tracker
from manikin.env.arrays import to_numpy
from manikin.spec.labels import PLAIN

if TYPE_CHECKING:
    from manikin.env.interface import BatchEnv

__all__ = ["Collector", "initial_state", "outcome_of"]


def initial_state(snapshot: Any) -> list[dict[str, np.ndarray]]:
    """One row after the other of a snapshot as named arrays, ready for a file.

    Args:
        snapshot: what ``Env.save`` gave.

    Returns:
        per row: name -> array without the row dimension. Values that are not per row are left out.
    """
    found: dict[int, dict[str, np.ndarray]] = {}
    for which, piece in snapshot.pieces:
        tree = {name: getattr(piece, name) for name in ("state", "model", "served", "health", "extra")}
        leaves = {}
        for name, leaf in flatten(tree).items():
            array = to_numpy(leaf)
            if array.ndim and len(array) == len(piece) and array.dtype.kind in "biuf":
                leaves[name] = array
        found |= {row: {name: array[i] for name, array in leaves.items()} for i, row in enumerate(which.tolist())}
    return [found[i] for i in range(len(snapshot))]


def outcome_of(reward: Any, terminated: Any, truncated: Any, info: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """What observers are told of a control step, from what ``Env.step`` gave: rewards, terminated, truncated, success
    and fail, each (N,), as ``flags/NAME`` each boolean or number per row that the task says, and as
    ``reward_terms/NAME`` what the reward is made of.
    """
    outcome = {
        "rewards": to_numpy(reward),
        "terminated": to_numpy(terminated),
        "truncated": to_numpy(truncated),
        "success": to_numpy(info["success"]),
        "fail": to_numpy(info["fail"]) if "fail" in info else np.zeros(len(reward), bool),
    }
    flags = {name: value for name, value in info.items() if name not in ("success", "fail") and _is_flag(value)}
    outcome |= {f"flags/{name}": to_numpy(value) for name, value in flags.items()}
    return outcome | {f"reward_terms/{k}": to_numpy(v) for k, v in info.get("reward_terms", {}).items()}


def _is_flag(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.ndim == 1 and not value.dtype.is_complex


class Collector:
    """Collects what happens in every row until its episode has ended. An observer of the runner but for ``finish``,
    which gives the episodes.

    Args:
        env: the environment whose episodes they are (autoreset "disabled").
        observations: also keep what the policy was shown.
        states: also keep the float64 physics state of every instant.

    Attributes:
        tracker: follows what happens in every row.
    """

    def __init__(self, env: BatchEnv, *, observations: bool, states: bool) -> None:
        self.env = env
        self.tracker = Tracker(getattr(getattr(env, "task", None), "labels", PLAIN), env.num_envs)
        self._observations, self._keeps_states = observations, states
        self._number = np.full(env.num_envs, -1)
        self._step = np.zeros(env.num_envs, np.int64)
        self._buffers: dict[str, np.ndarray] = {}
        self._start: dict[int, dict[str, Any]] = {}
        self._states: dict[int, list[np.ndarray]] = {}  # of rows whose layouts differ, these differ in length

    def start(self, rows: np.ndarray, numbers: np.ndarray, observation: Any, options: Mapping[str, Any]) -> None:
        """Episodes ``numbers`` begin in ``rows`` with these reset options; ``observation`` is that of all rows."""
        snapshot = self.env.save(rows)
        instructions = self.env.instruction
        for i, (row, initial) in enumerate(zip(rows.tolist(), initial_state(snapshot), strict=True)):
            self._number[row], self._step[row] = numbers[i], 0
            self.tracker.reset([row])
            self._states[row] = []
            self._start[row] = {
                "seed": int(initial["extra/seed"]),
                "index": int(initial["extra/index"]),
                "options": dict(options),
                "initial": initial,
                "instruction": instructions[row],
            }
        self._store_instant(rows, observation)

    def step(self, rows: np.ndarray, actions: Any, observation: Any, outcome: Mapping[str, Any]) -> None:
        """One control step of ``rows``; ``outcome`` as the runner gives it."""
        at = self._step[rows]
        self._put("actions", self.env.horizon, rows, at, to_numpy(actions)[rows].astype(np.float32))
        prefix = "flags/"
        flags = {k.removeprefix(prefix): v for k, v in outcome.items() if k.startswith(prefix)}
        self.tracker.step(rows, {**flags, "success": outcome["success"], "fail": outcome["fail"]})
        for name, value in outcome.items():
            self._put(name, self.env.horizon, rows, at, to_numpy(value)[rows])
        self._put("forces", self.env.horizon, rows, at, to_numpy(self.env.forces)[rows])
        self._step[rows] += 1
        self._store_instant(rows, observation)

    def finish(self, rows: np.ndarray, health: np.ndarray) -> list[RecordedEpisode]:
        """The episodes in ``rows``, which have ended with these bits of health (n,). They are views: the rows' next
        episodes overwrite them."""
        made = [self._episode(row, int(bits)) for row, bits in zip(rows.tolist(), health, strict=True)]
        self._number[rows] = -1
        return made

    def _episode(self, row: int, health: int) -> RecordedEpisode:
        length, b = int(self._step[row]), self._buffers

        def under(prefix: str, count: int) -> dict[str, np.ndarray]:
            return {k.removeprefix(prefix): v[row, :count] for k, v in b.items() if k.startswith(prefix)}

        steps: dict[str, Any] = {k: b[k][row, :length] for k in PER_STEP}
        story, states = self.tracker.story(row), self._states.pop(row)
        return RecordedEpisode(
            number=int(self._number[row]),
            **self._start.pop(row),
            **steps,
            state_hash=b["state_hash"][row, : length + 1],
            states=np.stack(states) if states else None,
            observations=under("observations/", length + 1) or None,
            flags=under("flags/", length),
            forces=dict(zip(self.env.force_names, b["forces"][row, :length].T, strict=True)),
            reward_terms=under("reward_terms/", length),
            joints=dict(zip(self.env.joint_names, b["joints"][row, : length + 1].T, strict=True)),
            health=health,
            mode=self.tracker.labels.label(story),
        )

    def _store_instant(self, rows: np.ndarray, observation: Any) -> None:
        at, most = self._step[rows], self.env.horizon + 1
        self._put("state_hash", most, rows, at, to_numpy(self.env.state_hash(rows)))
        self._put("joints", most, rows, at, to_numpy(self.env.joints)[rows])
        if self._keeps_states:
            for row, state in zip(rows.tolist(), self.env.physics_states(rows), strict=True):
                self._states[row].append(state)
        if self._observations:
            for name, value in flatten(observation).items():
                self._put(f"observations/{name}", most, rows, at, to_numpy(value)[rows])

    def _put(self, name: str, length: int, rows: np.ndarray, at: np.ndarray, value: np.ndarray) -> None:
        buffer = self._buffers.get(name)
        if buffer is None:
            buffer = np.zeros((self.env.num_envs, length, *value.shape[1:]), value.dtype)
            self._buffers[name] = buffer
        buffer[rows, at] = value
