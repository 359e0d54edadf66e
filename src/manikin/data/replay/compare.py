"""How episodes that are played again compare with what was recorded: to the bit, and how far they part.

The replay is collected as the recording was. Then every field of the two episodes is compared, so that nothing that is
recorded can be left out: a new field is compared too, or named as not compared.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from manikin.data.collect import Collector
from manikin.data.recording.block import table_of
from manikin.data.recording.format import RecordedEpisode
from manikin.env.arrays import to_numpy
from manikin.sim.variation import compiled
from manikin.spec.scene import COSMETIC

if TYPE_CHECKING:
    from manikin.env.interface import BatchEnv

__all__ = ["GIVEN", "Comparison", "EpisodeReplay"]

GIVEN = {"actions": "they are what is played", "options": "the start is made with them"}
"""What a replay is made from, and why it is not compared."""

_MOST = 6  # differences told of an episode


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
        outcome: what else came out differently (rewards, flags, forces, observations, length, ...), in words.
        contradictions: what the recording's table of episodes says otherwise than its arrays, in words. No kind of
            processor explains that.
        success: whether it succeeded at any time, recorded and now.
        health: bits of :class:`manikin.sim.health.Health`, recorded and now; 0 is healthy.
        positions: (T + 1,) largest difference of a joint's or an object's coordinate [rad or m] at each instant
            that was played; None if states were not recorded.
        tcp: (T + 1,) [m] how far the tool centre point was from where it was recorded; of several, the farthest.
        compared: which parts of the episode were computed again and compared.
        left_out: part that was not -> why.
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
    contradictions: tuple[str, ...] = ()
    health: tuple[int, int] = (0, 0)
    positions: np.ndarray | None = None
    tcp: np.ndarray | None = None
    compared: tuple[str, ...] = ()
    left_out: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def exact(self) -> bool:
        return not self.start and self.first_difference is None and not self.outcome and not self.contradictions

    def __str__(self) -> str:
        name = f"episode {self.number} (seed {self.seed}, index {self.index})"
        if self.exact:
            return f"{name}: {self.steps} steps, bit for bit"
        said = list(self.contradictions)
        if self.start:
            said.append("start differs in " + ", ".join(f"{k} by {v:.3g}" for k, v in self.start.items()))
        if self.first_difference is not None:
            how = "states were not recorded, so by how much is unknown"
            if self.difference is not None and self.last_difference is not None:
                how = f"by {self.difference:.3g} there and {self.last_difference:.3g} at the end"
            where = "at the start" if self.first_difference == 0 else f"after action {self.first_difference - 1}"
            said.append(f"state differs first {where} of {self.steps} ({how})")
        more = len(self.outcome) - _MOST
        return f"{name}: " + "; ".join([*said, *self.outcome[:_MOST], *([f"and {more} more"] if more > 0 else [])])


class Comparison:
    """An observer of a replay that compares the episodes of a batch, one in each row from the first.

    Args:
        env: where they are played.
        batch: the recorded episodes.
        tables: of each, its row of the table of episodes.
        check: compare; False only counts steps and successes.
        left_out: part of an episode (``rewards``, ``flags/NAME``, ``initial/extra/sensors``) -> why it is not compared.
    """

    def __init__(
        self,
        env: BatchEnv,
        batch: Sequence[RecordedEpisode],
        tables: Sequence[Mapping[str, Any]],
        *,
        check: bool,
        left_out: Mapping[str, str],
    ) -> None:
        self._env, self._batch, self._tables, self._check, self._left_out = env, batch, tables, check, left_out
        seen = "observations" not in left_out and any(e.observations is not None for e in batch)
        states = any(e.states is not None for e in batch)
        self._collector = Collector(env, observations=check and seen, states=check and states)
        self._scenes: list[Any] = []
        self._done: dict[int, EpisodeReplay] = {}

    def start(self, rows: np.ndarray, numbers: np.ndarray, observation: Any, options: Mapping[str, Any]) -> None:
        self._collector.start(rows, numbers, observation, options)
        self._scenes = [_scene(self._env, row) for row in rows.tolist()]

    def step(self, rows: np.ndarray, actions: Any, observation: Any, outcome: Mapping[str, np.ndarray]) -> None:
        self._collector.step(rows, actions, observation, outcome)

    def finish(self, rows: np.ndarray, health: np.ndarray) -> None:
        for row, now in zip(rows.tolist(), self._collector.finish(rows, health), strict=True):
            one = _Pair(self._batch[row], now, self._scenes[row])
            if self._check:
                one.compare(self._left_out)
                one.compare_table(self._tables[row])
            self._done[row] = one.report()

    def reports(self) -> list[EpisodeReplay]:
        """Of the episodes that were played to the end."""
        return [self._done[row] for row in sorted(self._done)]


class _Pair:
    """An episode as it was recorded and as it is now."""

    def __init__(self, then: RecordedEpisode, now: RecordedEpisode, scene: Any) -> None:
        self._then, self._now, self._scene = then, now, scene
        self._played = min(len(then), len(now))
        self._start: dict[str, float] = {}
        self._first: int | None = None
        self._outcome: list[str] = []
        self._contradictions: list[str] = []
        self._compared: dict[str, None] = {}
        self._left_out: dict[str, str] = {}

    def compare(self, left_out: Mapping[str, str]) -> None:
        """Field by field."""
        if self._played < len(self._then):
            self._outcome.append(f"ended after {self._played} steps instead of {len(self._then)}")
        then, now = dict(_parts(self._then)), dict(_parts(self._now))
        for name in [*then, *(name for name in now if name not in then)]:
            part = name.split("/")[0]
            if why := _reason(name, left_out):
                if name in then:
                    self._left_out[why[0]] = why[1]
            elif name not in then and part != "initial":
                self._left_out[part if not any(k.split("/")[0] == part for k in then) else name] = "not recorded"
            elif part == "initial":
                self._compare_start(name.removeprefix("initial/"), then.get(name), now.get(name))
            elif name not in now:
                self._outcome.append(f"{name}: recorded, and nothing computes it now")
            else:
                self._compare_part(name, then[name], now[name])
            self._compared |= {} if part in self._left_out or name in self._left_out else {part: None}
        for name, value in vars(self._then).items():
            if value is None:
                self._left_out.setdefault(name, "not recorded")

    def _compare_start(self, name: str, then: np.ndarray | None, now: np.ndarray | None) -> None:
        """A part of the first snapshot. A model field that one of them lacks is the compiled one there."""
        alike = then is not None and now is not None and then.shape == now.shape
        if not alike and name.startswith("served/"):
            self._left_out[f"initial/{name}"] = "served to whoever reads it; follows from the state"
            return
        a, b = self._compiled(name, then, now), self._compiled(name, now, then)
        same = a is not None and b is not None and a.shape == b.shape and _differ(a[None], b[None]) is None
        if same:
            return
        if not alike and name.startswith(tuple(f"model/{field}" for field in COSMETIC)):
            self._left_out[f"initial/{name}"] = "cameras, lights or looks are others now"
            return
        self._start[name] = float("nan") if a is None or b is None or a.shape != b.shape else _largest(b, a)

    def _compiled(self, name: str, one: np.ndarray | None, other: np.ndarray | None) -> np.ndarray | None:
        if one is not None or other is None or self._scene is None or not name.startswith("model/"):
            return one
        value = compiled(self._scene.scene.model, name.removeprefix("model/")).reshape(-1)
        return value[: other.size].astype(other.dtype).reshape(other.shape) if value.size >= other.size else None

    def _compare_part(self, name: str, then: np.ndarray, now: np.ndarray) -> None:
        if not then.ndim:
            if then.item() != now.item():
                self._outcome.append(f"{name}: {then.item()!r} recorded, {now.item()!r} now")
            return
        if then.dtype != now.dtype or then.shape[1:] != now.shape[1:]:
            self._outcome.append(f"{name}: {then.dtype} {then.shape} recorded, {now.dtype} {now.shape} now")
            return
        size = self._played + (len(then) == len(self._then) + 1)
        at = _differ(then[:size], now[:size])
        if at is None:
            return
        if name in ("state_hash", "states"):
            self._first = at if self._first is None else min(at, self._first)
        elif then[at].ndim:
            self._outcome.append(f"{name} at instant {at}: differs by {_largest(then[at], now[at]):.3g}")
        else:
            where = "step" if len(then) == len(self._then) else "instant"
            self._outcome.append(f"{name} at {where} {at}: {then[at]} recorded, {now[at]} now")

    def compare_table(self, table: Mapping[str, Any]) -> None:
        """The recording's table against its own arrays."""
        computed = {name: values[0] for name, values in table_of([self._then]).items()}
        for name, value in table.items():
            if name not in computed:
                self._contradictions.append(f"{name} is {value} in the table, and nothing is known of it")
            elif np.asarray(value).tobytes() != np.asarray(computed[name]).tobytes():
                self._contradictions.append(f"{name} is {value} in the table and {computed[name]} by what was recorded")
        self._compared["episodes"] = None

    def report(self) -> EpisodeReplay:
        then, now = self._then, self._now
        layout = None if self._first is None or then.states is None else _Layout.of(self._scene)
        apart: list[float | None] = [None, None]
        if self._first is not None and then.states is not None and now.states is not None:
            apart = [_largest(now.states[at], then.states[at]) for at in (self._first, self._played)]
        positions, tcp = self._divergence(layout)
        return EpisodeReplay(
            number=then.number,
            seed=then.seed,
            index=then.index,
            steps=len(then),
            start=self._start,
            first_difference=self._first,
            difference=apart[0],
            last_difference=apart[1],
            outcome=tuple(self._outcome),
            contradictions=tuple(self._contradictions),
            success=(then.success_once, now.success_once),
            health=(then.health, now.health),
            positions=positions,
            tcp=tcp,
            compared=tuple(self._compared),
            left_out=self._left_out,
        )

    def _divergence(self, layout: _Layout | None) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Of positions and of the tool at each instant; before the first difference there is none."""
        then, now, size = self._then.states, self._now.states, self._played + 1
        if then is None or now is None or (self._first is not None and layout is None):
            return None, None
        positions, tcp = np.zeros(size), np.zeros(size)
        if self._first is not None and layout is not None:
            first = self._first
            positions[first:], tcp[first:] = layout.apart(then[first:size], now[first:size])
        return positions, tcp


def _parts(episode: RecordedEpisode) -> Iterator[tuple[str, np.ndarray]]:
    """Everything of an episode by name: an array, one of several, or a single value."""
    for field in dataclasses.fields(episode):
        value = getattr(episode, field.name)
        if field.name in GIVEN or value is None:
            continue
        if isinstance(value, Mapping):
            yield from ((f"{field.name}/{name}", np.asarray(one)) for name, one in value.items())
        else:
            yield field.name, np.asarray(value)


def _reason(name: str, left_out: Mapping[str, str]) -> tuple[str, str] | None:
    """Which part that is left out the name belongs to, and why."""
    return next((item for item in left_out.items() if name == item[0] or name.startswith(f"{item[0]}/")), None)


def _differ(then: np.ndarray, now: np.ndarray) -> int | None:
    """The first row that differs in a bit; None: none does."""
    if then.tobytes() == now.tobytes():
        return None
    return next(at for at in range(len(then)) if then[at].tobytes() != now[at].tobytes())


def _scene(env: BatchEnv, row: int) -> Any:
    """The environment of one layout in which the row is; None where states are not MuJoCo's."""
    return env.part(row)[0] if hasattr(env, "part") else None


class _Layout:
    """Where positions and joints of arms are in a physics state: MuJoCo's order, time first."""

    def __init__(self, nq: int, arms: Sequence[tuple[Any, list[int]]]) -> None:
        self._nq, self._arms = nq, arms

    @classmethod
    def of(cls, one: Any) -> _Layout | None:
        """Of the environment of one layout; None where states are not MuJoCo's."""
        if one is None:
            return None
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
