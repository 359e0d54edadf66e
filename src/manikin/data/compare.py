"""How episodes that are played again compare with what was recorded: to the bit, and how far they part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from manikin.data.format import PER_STEP, Episode
from manikin.data.record import initial_state
from manikin.env.arrays import to_numpy
from manikin.spec.scene import COSMETIC

__all__ = ["Comparison", "EpisodeReplay"]


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
        success: whether it succeeded at any time, recorded and now.
        health: bits of :class:`manikin.sim.health.Health`, recorded and now; 0 is healthy.
        positions: (T + 1,) largest difference of a joint's or an object's coordinate [rad or m] at each instant
            that was played; None if states were not recorded.
        tcp: (T + 1,) [m] how far the tool centre point was from where it was recorded; of several, the farthest.
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
    success: tuple[bool, bool]
    health: tuple[int, int] = (0, 0)
    positions: np.ndarray | None = None
    tcp: np.ndarray | None = None

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


# Which outputs are served depends on who has read them; they follow from the state. Cameras and lights may be others.
_MAY_LACK = ("served/", *(f"model/{field}" for field in COSMETIC))


class Comparison:
    """An observer of a replay that compares the episodes of a batch, one in each row from the first.

    Args:
        env: where they are played.
        batch: the recorded episodes.
        check: compare; False only counts steps and successes.
        rewards: rewards are meant to be the recorded ones.
        sensors: so are the sensors; others remember other things.
    """

    def __init__(self, env: Any, batch: Sequence[Episode], *, check: bool, rewards: bool, sensors: bool = True) -> None:
        self._env, self._check = env, check
        self._may_lack = _MAY_LACK if sensors else (*_MAY_LACK, "extra/sensors/")
        self._names = [name for name in PER_STEP if name != "actions" and (rewards or name != "rewards")]
        self._rows = [_Row(e, env) for e in batch]

    def start(self, rows: np.ndarray, numbers: np.ndarray, observation: Any, options: Mapping[str, Any]) -> None:
        if self._check:
            for row, initial in zip(self._rows, initial_state(self._env.save(rows)), strict=True):
                row.compare_start(initial, self._may_lack)
            self._compare_states(rows)

    def step(self, rows: np.ndarray, actions: Any, observation: Any, outcome: Mapping[str, np.ndarray]) -> None:
        for i in rows.tolist():
            row = self._rows[i]
            row.failed |= bool(outcome["fail"][i])
            row.success |= bool(outcome["success"][i]) and not row.failed
            if self._check:
                row.compare_outcome(row.played, {name: outcome[name][i] for name in self._names})
            row.played += 1
        if self._check:
            self._compare_states(rows)

    def finish(self, rows: np.ndarray, health: np.ndarray) -> None:
        for i, bits in zip(rows.tolist(), health.tolist(), strict=True):
            self._rows[i].health = int(bits)

    def reports(self, finished: np.ndarray) -> list[EpisodeReplay]:
        """Of the episodes (n,) bool that were played to the end."""
        return [row.report() for row, over in zip(self._rows, finished, strict=True) if over]

    def _compare_states(self, which: np.ndarray) -> None:
        digests = to_numpy(self._env.state_hash(which))
        for i, digest in zip(which.tolist(), digests.tolist(), strict=True):
            self._rows[i].compare_state(int(digest), lambda i=i: self._env.physics_states([i])[0], i)


class _Row:
    """The comparison of one episode while it plays."""

    def __init__(self, episode: Episode, env: Any) -> None:
        self.episode, self._env = episode, env
        self.start: dict[str, float] = {}
        self.first: int | None = None
        self.difference: float | None = None
        self.last: float | None = None
        self.outcome: list[str] = []
        self.played, self.success, self.failed, self.health = 0, False, False, 0
        self._layout: _Layout | None = None
        self._now: list[np.ndarray] = []  # states from the first that differs

    def compare_start(self, now: Mapping[str, np.ndarray], may_lack: tuple[str, ...]) -> None:
        then = self.episode.initial
        for name in sorted(now.keys() | then.keys()):
            alike = name in now and name in then and now[name].shape == then[name].shape
            if name.startswith(may_lack) and not alike:
                continue
            if not alike:
                self.start[name] = float("nan")
            elif not np.array_equal(now[name], then[name], equal_nan=now[name].dtype.kind == "f"):
                self.start[name] = _largest(now[name], then[name])

    def compare_state(self, digest: int, state: Callable[[], np.ndarray], row: int) -> None:
        instant = self.played
        if digest != int(self.episode.state_hash[instant]) and self.first is None:
            self.first = instant
        if self.first is not None and self.episode.states is not None:
            then, now = self.episode.states[instant], state()
            self._layout = self._layout or _Layout.of(self._env, row)
            self._now.append(now)
            if now.shape == then.shape:
                self.last = _largest(now, then)
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
        positions, tcp = self._divergence()
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
            success=(e.success_once, self.success),
            health=(e.health, self.health),
            positions=positions,
            tcp=tcp,
        )

    def _divergence(self) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Of positions and of the tool at each instant; before the first difference there is none."""
        if self.episode.states is None or (self.first is not None and self._layout is None):
            return None, None
        positions, tcp = np.zeros(self.played + 1), np.zeros(self.played + 1)
        if self.first is not None and self._layout is not None:
            then, now = self.episode.states[self.first : self.played + 1], np.stack(self._now)
            positions[self.first :], tcp[self.first :] = self._layout.apart(then, now)
        return positions, tcp


class _Layout:
    """Where positions and joints of arms are in a physics state: MuJoCo's order, time first."""

    def __init__(self, nq: int, arms: Sequence[tuple[Any, list[int]]]) -> None:
        self._nq, self._arms = nq, arms

    @classmethod
    def of(cls, env: Any, row: int) -> _Layout | None:
        """Of the environment's row; None where states are not MuJoCo's."""
        if not hasattr(env, "buckets"):
            return None
        layouts = env.buckets
        one = layouts[next(iter(env.slots([row])))] if len(layouts) > 1 else layouts[0]
        model = one.scene.model
        arms = [
            (robot.solver.chain, [1 + int(model.joint(robot.prefix + name).qposadr[0]) for name in robot.arm.joints])
            for robot in one.robots
        ]
        return cls(int(model.nq), arms)

    def apart(self, then: np.ndarray, now: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Largest difference of a position, and distance of the tool [m], each (T,), of states (T, k)."""
        q = slice(1, 1 + self._nq)
        positions = np.array([_largest(a, b) for a, b in zip(then[:, q], now[:, q], strict=True)])
        farthest = np.zeros(len(then))
        for chain, columns in self._arms:
            places = [
                to_numpy(chain.fk(torch.from_numpy(states[:, columns]).to(chain.device))[0]) for states in (then, now)
            ]
            farthest = np.maximum(farthest, np.linalg.norm(places[0] - places[1], axis=1))
        return positions, farthest


def _largest(a: np.ndarray, b: np.ndarray) -> float:
    """Largest absolute difference; infinite where one is not a number and the other is."""
    with np.errstate(invalid="ignore"):
        difference = np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64))
    difference = np.where(np.isnan(difference) & ~(np.isnan(a) & np.isnan(b)), np.inf, np.nan_to_num(difference))
    return float(difference.max(initial=0.0))
