"""Recorded episodes in another action space: the new controller follows, in simulation, what the old one did.

The episodes are played as recorded, beside a second environment with the new controller. Between two position
controllers the commanded joint positions are handed over, so that what the new one can express comes out the same.
Where one of the two commands torques there is no common command; then the recorded motion is followed a few steps
ahead, by the inverse of the new controller's response (``Controller.towards``). Either way the loop is closed: each
action starts from where the arm is. Where the new controller cannot keep up, the recorded motion waits for it, and a
recorded step becomes several.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from manikin.data.format import Episode, to_numpy
from manikin.data.play import Follow, Moved, batches, play, stepped
from manikin.data.read import EpisodeFile
from manikin.data.record import Recorder
from manikin.data.replay import make_env, source_of
from manikin.errors import ConfigError, DataError
from manikin.math import quat_angle
from manikin.spec.control import Control, Whole, parse_control

__all__ = ["ConversionReport", "EpisodeConversion", "RESIDUALS", "retarget"]

RESIDUALS = {"joints": "rad or m", "tool": "m", "turn": "rad"}
"""What is reported after every step, and stored as ``flags/residual_...``: the largest difference of a joint, and by
how much the tool is elsewhere and turned, from where the source was after the step that this one stands for."""

_HASTE = 4  # how often it gets less time because something is in the way, down to one step
_NEAR, _TURNED = 0.005, 0.05  # [m], [rad] the recorded motion goes on while the tool is as near as this
_PATIENCE = 8  # steps to wait without coming nearer
_TAIL = 20  # steps after the last recorded one in which to succeed


@dataclass(frozen=True, kw_only=True, eq=False)
class EpisodeConversion:
    """How one episode came out.

    Attributes:
        number: of the episode.
        steps: control steps, recorded and now.
        success: whether it succeeded at any time, recorded and now.
        residual: name of :data:`RESIDUALS` -> (T,) after each new step.
    """

    number: int
    steps: tuple[int, int]
    success: tuple[bool, bool]
    residual: Mapping[str, np.ndarray]


@dataclass(frozen=True, kw_only=True, eq=False)
class ConversionReport:
    """How a recording came out with another controller.

    Attributes:
        path: the new recording.
        control: words of the old and of the new controller.
        commands: whether commands were handed over; else the motion was followed.
        episodes: one entry each.
    """

    path: Path
    control: tuple[str, str]
    commands: bool
    episodes: tuple[EpisodeConversion, ...]

    @property
    def success(self) -> tuple[int, int]:
        """How many episodes succeeded when recorded, and how many of these do now."""
        then = [e for e in self.episodes if e.success[0]]
        return len(then), sum(e.success[1] for e in then)

    @property
    def steps(self) -> float:
        """New control steps per recorded one."""
        then, now = (sum(e.steps[k] for e in self.episodes) for k in (0, 1))
        return now / max(then, 1)

    def quantiles(self, name: str) -> np.ndarray:
        """(3,) median, 95 % quantile and largest of a residual, over all steps of all episodes."""
        values = [e.residual[name] for e in self.episodes]
        return np.quantile(np.concatenate(values), (0.5, 0.95, 1.0)) if values else np.full(3, np.nan)

    def summary(self) -> str:
        """A few lines for people."""
        then, now = self.success
        how = "commands handed over" if self.commands else "motion followed"
        lines = [
            f"{self.control[0]} -> {self.control[1]}: {how}; {now} of {then} successful episodes still succeed, "
            f"{self.steps:.2f} steps for one",
            "residual after a step: median, 95 %, largest",
        ]
        for name, unit in RESIDUALS.items():
            lines.append(f"  {name:6} ({unit}):  " + "  ".join(f"{value:.2g}" for value in self.quantiles(name)))
        return "\n".join(lines)


def retarget(
    path: str | Path,
    out: str | Path,
    *,
    control: str | Control | Whole,
    numbers: Iterable[int] | None = None,
    num_envs: int = 16,
    stretch: float = 4.0,
    observations: bool | None = None,
    resume: bool = False,
    on_episode: Callable[[EpisodeConversion], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    **overrides: Any,
) -> ConversionReport:
    """Write a recording of the same episodes with another controller; numbers and seeds stay.

    Args:
        path: the recording.
        out: the new recording. Its steps hold the residuals as ``flags/residual_...`` and as ``flags/source_step``
            which recorded step each stands for.
        control: the new controller.
        numbers: which episodes; None for all.
        num_envs: rows side by side. Never changes the result.
        stretch: the new episodes may take so many times the horizon.
        observations: keep observations; None: where ``observe`` is given.
        resume: go on with an interrupted conversion.
        on_episode: called after each episode.
        stop: asked once per control step; True leaves what is finished, to be resumed.
        **overrides: options of ``manikin.make`` for the new recording (observe, reward, physics_hz, ...).

    Raises:
        DataError: nothing to convert, ``out`` exists, or the episodes cannot be played.
        UnknownNameError: no such controller, or not on this robot.
        ConfigError: ``stretch`` below 1.
    """
    if stretch < 1:
        raise ConfigError(f"stretch must be at least 1, got {stretch}")
    with EpisodeFile(path) as file:
        if file.header is None:
            raise DataError(f"{path} has no finished episode")
        fingerprint = file.header.fingerprint
        wanted = list(file.numbers if numbers is None else numbers)
        rows = max(1, min(num_envs, len(wanted)))
        options = {"control": parse_control(control), "horizon": math.ceil(stretch * fingerprint["horizon"])}
        env = make_env(fingerprint, rows, **{**options, **overrides})
        try:
            source = make_env(fingerprint, rows, observe="policy", reward="none")
        except BaseException:
            env.close()
            raise
        try:
            both = (source.controller, env.controller)
            about = source_of(path, file.header, how="control", control=source.controller.name)
            keep = "observe" in overrides if observations is None else observations
            policy = file.header.policy
            recorder = Recorder(env, out, policy=policy, observations=keep, resume=resume, source=about)
            done: list[EpisodeConversion] = []
            try:
                left = [number for number in wanted if number not in recorder.finished]
                commands = not any(one.every_substep for one in both)
                ways = _ways(commands)
                for batch in batches(file, left, rows):
                    trace = _Trace(source)
                    if not play(source, batch, Follow(), [trace], stop).all():
                        break
                    for k, way in enumerate(ways):
                        tally = _Tally(batch, recorder, on_episode, last=k == len(ways) - 1)
                        mover = _Track(source, trace, way)
                        play(env, batch, mover, [tally], stop)
                        done += tally.done
                        if stop() or not tally.again:
                            break
                        batch, trace = [batch[i] for i in tally.again], trace.only(tally.again)
                    if stop():
                        break
            finally:
                recorder.close()
        finally:
            env.close()
            source.close()
    words = (source.controller.name, env.controller.name)
    return ConversionReport(path=Path(out), control=words, commands=commands, episodes=tuple(done))


@dataclass(frozen=True, kw_only=True)
class _Way:
    """How an episode is tried.

    Attributes:
        commands: they are handed over, else the motion is followed.
        ahead: steps, by which the motion is followed.
        pace: new steps that a recorded one takes at least.
        near: how near the tool has to be for the motion to go on, as a share of the usual.
    """

    commands: bool
    ahead: int
    pace: int = 1
    near: float = 1.0


def _ways(commands: bool) -> list[_Way]:
    """One after the other until it succeeds."""
    slow = [_Way(commands=False, ahead=steps, pace=steps, near=0.4) for steps in (3, 2)]
    return [_Way(commands=commands, ahead=3), _Way(commands=False, ahead=2), _Way(commands=False, ahead=4), *slow]


class _Trace:
    """An observer: what the arm was commanded and did."""

    def __init__(self, env: Any) -> None:
        self._env = env
        self.commands: list[list[np.ndarray]] = []
        self.joints: list[list[np.ndarray]] = []
        self.tools: list[list[np.ndarray]] = []

    def only(self, rows: Sequence[int]) -> _Trace:
        """That of some rows."""
        some = _Trace(self._env)
        for kept, mine in ((some.commands, self.commands), (some.joints, self.joints), (some.tools, self.tools)):
            kept[:] = [mine[row] for row in rows]
        return some

    def start(self, rows: np.ndarray, numbers: np.ndarray, observation: Any, options: Mapping[str, Any]) -> None:
        for kept in (self.commands, self.joints, self.tools):
            kept[:] = [[] for _ in rows]
        self._look(rows)

    def step(self, rows: np.ndarray, actions: Any, observation: Any, outcome: Mapping[str, Any]) -> None:
        commands = to_numpy(self._env.arm_command)
        for row in rows.tolist():
            self.commands[row].append(commands[row].copy())
        self._look(rows)

    def finish(self, rows: np.ndarray, health: np.ndarray) -> None:
        """Nothing."""

    def _look(self, rows: np.ndarray) -> None:
        joints, tools = to_numpy(self._env.arm_qpos), to_numpy(self._env.tcp_poses)
        for row in rows.tolist():
            self.joints[row].append(joints[row].copy())
            self.tools[row].append(tools[row].copy())


class _Track:
    """A mover: the new controller follows what was traced, each row on its own clock."""

    def __init__(self, source: Any, trace: _Trace, way: _Way) -> None:
        self._trace, self._way = trace, way
        self._from = list(source.controller.card.grippers)
        self._torques = source.controller.every_substep

    def begin(self, env: Any, batch: Sequence[Episode], observation: Any) -> Any:
        """Raises :class:`ConfigError` where the two controllers do not move the same grippers."""
        card, n = env.controller.card, env.num_envs
        self._to = list(card.grippers)
        if len(self._to) != len(self._from):
            raise ConfigError(f"{card.controller} moves {len(self._to)} grippers, the recording {len(self._from)}")
        self._env, self._batch, self._turns = env, batch, card.turns
        self._withins = np.linspace(self._way.ahead, 1, _HASTE + 1) / env.control_hz  # [s] by haste
        self._haste = np.zeros(n, np.int64)
        self._last = np.array([len(e) - 1 for e in batch])
        self._at = np.zeros(n, np.int64)  # the recorded step that comes next
        self._begun = np.zeros(n, np.int64)  # new steps that it has taken so far, up to the pace
        self._nearest = np.full(n, np.inf)
        self._waited, self._tail = np.zeros(n, np.int64), np.zeros(n, np.int64)
        return observation

    def move(self, active: np.ndarray) -> Moved:
        env, rows = self._env, np.flatnonzero(active)
        at = np.minimum(self._at[rows], self._last[rows])
        moved = stepped(env, self._action(rows, at), active)
        off = self._residual(rows, at + 1)
        outcome = {**moved.outcome, "flags/source_step": np.zeros(env.num_envs, np.float32)}
        outcome["flags/source_step"][rows] = at
        for name, value in off.items():
            outcome[f"flags/residual_{name}"] = value
        self._advance(rows, at, off)
        over = moved.over.copy()
        for row in rows[self._at[rows] > self._last[rows]].tolist():
            enough = not self._batch[row].success_once or outcome["success"][row]
            over[row] |= enough or self._tail[row] >= _TAIL
            self._tail[row] += 1
        return moved._replace(outcome=outcome, over=over)

    def _action(self, rows: np.ndarray, at: np.ndarray) -> torch.Tensor:
        """(N, A) actions of the rows; the others stand still."""
        env, trace = self._env, self._trace
        now = to_numpy(env.arm_qpos).copy()
        ahead, handed = now.copy(), now
        for row, t in zip(rows.tolist(), at.tolist(), strict=True):
            path, told = trace.joints[row], trace.commands[row]
            # beyond its end the motion would have gone on to what was commanded last; the longer it takes, the farther
            lead = 0.0 if self._torques else 1.0 + 0.1 * self._tail[row]
            end = path[-1] + lead * (told[-1] - path[-1])
            part, whole = math.modf(t + (self._begun[row] + self._way.ahead) / self._way.pace)
            k = int(whole)
            after = path[min(k + 1, len(path) - 1)]
            ahead[row] = path[k] + part * (after - path[k]) if k < len(path) else end
            handed[row] = told[t]
        follow = np.full(env.num_envs, not self._way.commands)
        haste = np.where(follow, self._haste, -1)[rows]
        ways = [(haste == k, ahead, within) for k, within in enumerate(self._withins)] + [(haste < 0, handed, None)]
        actions = torch.zeros(env.num_envs, env.single_action_space.shape[0])
        for those, want, within in ways:
            if those.any():
                asked = env.towards(torch.from_numpy(want).to(env.device), within=within).cpu()
                actions[rows[those]] = asked[rows[those]]
        for row, t in zip(rows.tolist(), at.tolist(), strict=True):
            actions[row, self._to] = torch.from_numpy(self._batch[row].actions[t, self._from])
        return actions.to(env.device)

    def _residual(self, rows: np.ndarray, at: np.ndarray) -> dict[str, np.ndarray]:
        """How far the rows are from the recorded instants ``at``, by the names of :data:`RESIDUALS`, (N,) float32."""
        env, trace = self._env, self._trace
        at = np.minimum(at, self._last[rows] + 1)
        joints, tools = to_numpy(env.arm_qpos)[rows], to_numpy(env.tcp_poses)[rows].astype(np.float64)
        places = list(zip(rows.tolist(), at.tolist(), strict=True))
        then = np.stack([trace.tools[row][t] for row, t in places]).astype(np.float64)
        turned = quat_angle(torch.from_numpy(tools[..., 3:]), torch.from_numpy(then[..., 3:])).numpy()
        found = {
            "joints": np.abs(joints - np.stack([trace.joints[row][t] for row, t in places])).max(1),
            "tool": np.linalg.norm(tools[..., :3] - then[..., :3], axis=2).max(1),
            "turn": turned.max(1),
        }
        off = {name: np.zeros(env.num_envs, np.float32) for name in RESIDUALS}
        for name, value in found.items():
            off[name][rows] = value
        return off

    def _distance(self, rows: np.ndarray, off: Mapping[str, np.ndarray]) -> np.ndarray:
        """(n,) of the rows' tools; up to 1 is near."""
        far: np.ndarray = off["tool"][rows] / _NEAR
        return (np.maximum(far, off["turn"][rows] / _TURNED) if self._turns else far) / self._way.near

    def _advance(self, rows: np.ndarray, at: np.ndarray, off: Mapping[str, np.ndarray]) -> None:
        """Let the recorded motion go on where the tool is near or ahead, or where waiting brings it no nearer."""
        far = self._distance(rows, off)
        ahead = self._distance(rows, self._residual(rows, at + 2)) < 0.9 * far
        better = far < 0.98 * self._nearest[rows]
        self._nearest[rows] = np.where(better, far, self._nearest[rows])
        self._waited[rows] = np.where(better, 0, self._waited[rows] + 1)
        near, stuck = far <= 1, ~ahead & ~better & ((far > 1) | (self._tail[rows] > 0))
        self._haste[rows] = np.clip(self._haste[rows] + stuck - (near & ~stuck), 0, _HASTE)
        done = self._begun[rows] + 1 >= self._way.pace
        self._begun[rows] += ~done
        on = done & (near | ahead | (self._waited[rows] >= _PATIENCE))
        self._begun[rows[on]] = 0
        self._at[rows] += on
        self._nearest[rows[on]], self._waited[rows[on]] = np.inf, 0


class _Tally:
    """An observer: what the report says of each episode; hands to the recorder what need not be tried again.

    Attributes:
        done: of the episodes that are recorded.
        again: places in the batch of those that have lost their success.
    """

    def __init__(
        self,
        batch: Sequence[Episode],
        recorder: Recorder,
        on_episode: Callable[[EpisodeConversion], None] | None,
        *,
        last: bool,
    ) -> None:
        self._batch, self._recorder, self._on_episode, self._last = batch, recorder, on_episode, last
        self._success = [False] * len(batch)
        self._residual: list[dict[str, list[float]]] = [{name: [] for name in RESIDUALS} for _ in batch]
        self.done: list[EpisodeConversion] = []
        self.again: list[int] = []

    def start(self, rows: np.ndarray, numbers: np.ndarray, observation: Any, options: Mapping[str, Any]) -> None:
        self._recorder.start(rows, numbers, observation, options)

    def step(self, rows: np.ndarray, actions: Any, observation: Any, outcome: Mapping[str, np.ndarray]) -> None:
        self._recorder.step(rows, actions, observation, outcome)
        for row in rows.tolist():
            self._success[row] |= bool(outcome["success"][row])
            for name, values in self._residual[row].items():
                values.append(float(outcome[f"flags/residual_{name}"][row]))

    def finish(self, rows: np.ndarray, health: np.ndarray) -> None:
        lost = np.array([self._batch[row].success_once and not self._success[row] for row in rows.tolist()])
        if not self._last:
            self.again += rows[lost].tolist()
            rows, health = rows[~lost], health[~lost]
        if len(rows):
            self._recorder.finish(rows, health)
        for row in rows.tolist():
            episode, residual = self._batch[row], self._residual[row]
            one = EpisodeConversion(
                number=episode.number,
                steps=(len(episode), len(residual["tool"])),
                success=(episode.success_once, self._success[row]),
                residual={name: np.array(values) for name, values in residual.items()},
            )
            self.done.append(one)
            if self._on_episode is not None:
                self._on_episode(one)
