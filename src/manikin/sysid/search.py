"""The search: from recorded trajectories to the parameters with which the simulator follows them."""

from __future__ import annotations

import dataclasses
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import torch

from manikin._version import __version__
from manikin.data.recording.lines import CheckedLines
from manikin.errors import ConfigError, DivergedError, UnknownNameError
from manikin.spread.blackboard import Blackboard
from manikin.sysid.identifiable import Identifiability, identifiability
from manikin.sysid.loss import chosen_loss
from manikin.sysid.methods import Anneal, Cma, Method, Squares, Stream, differences, follow
from manikin.sysid.objective import Objective
from manikin.sysid.parameters import Parameter, parse_parameter
from manikin.sysid.rollout import Rollout, Tracks
from manikin.sysid.trajectories import Trajectories

__all__ = ["METHODS", "Identified", "Overlay", "identify"]

METHODS: dict[str, type[Method]] = {kind.name: kind for kind in (Anneal, Cma, Squares)}
JOURNAL = "candidates.jsonl"


@dataclass(frozen=True)
class Overlay:
    """One trajectory as recorded, before and after, for plots; (T, ...) arrays of what was recorded, by name."""

    name: str
    recorded: dict[str, np.ndarray]
    before: dict[str, np.ndarray]
    after: dict[str, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Identified:
    """What a search found.

    Attributes:
        robot, control: words. control_hz, physics_hz: rates [Hz].
        names: of the P parameters. kinds: of each.
        low, high, before, after: (P,) range, what the robot had, what was found; SI units.
        outside: names of those that the robot had outside their range; ``before`` is the nearer end.
        loss: which one. loss_before, loss_after: means over trajectories. each_before, each_after: of each trajectory.
        start_error: (E, 2) by how much the starts miss the recorded ones [m], [rad].
        stages: (method, candidates, loss) after each method.
        identifiability: what the recordings determine.
        joints: joint -> kind -> value, for every joint that has one. delay: [s].
        provenance: of what and how: digest, source, seed, methods, versions, seconds.
        overlays: of each trajectory.
    """

    robot: str
    control: str
    control_hz: float
    physics_hz: float
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]
    outside: tuple[str, ...]
    loss: str
    loss_before: float
    loss_after: float
    each_before: tuple[float, ...]
    each_after: tuple[float, ...]
    start_error: tuple[tuple[float, float], ...]
    stages: tuple[tuple[str, int, float], ...]
    identifiability: Identifiability
    joints: dict[str, dict[str, float]]
    delay: float
    provenance: dict[str, Any]
    overlays: tuple[Overlay, ...] = field(repr=False)

    def summary(self) -> str:
        """A few lines for people."""
        unit = {"pose": "m + rad/2", "position": "m", "joints": "rad"}[self.loss]
        times = self.loss_before / max(self.loss_after, 1e-300)
        lines = [f"{self.loss} loss {self.loss_before:.4g} -> {self.loss_after:.4g} {unit} ({times:.1f} times less)"]
        rows = zip(self.names, self.before, self.after, self.low, self.high, strict=True)
        for k, (name, before, after, low, high) in enumerate(rows):
            width = self.identifiability.deviations[k]
            lines.append(f"  {name}: {before:.4g} -> {after:.4g} (range {low:g} to {high:g}, +-{width:.0%} of it)")
        said = [direction.words for direction in self.identifiability.open]
        lines += [f"  not determined: {words}" for words in said]
        return "\n".join(lines)


def identify(
    recorded: Trajectories,
    parameters: Sequence[Parameter | str],
    *,
    robot: str | None = None,
    control: str | None = None,
    control_hz: float | None = None,
    physics_hz: float = 500.0,
    loss: str | None = None,
    methods: Sequence[Method | str] = ("anneal", "squares"),
    seed: int = 0,
    batch: int | None = None,
    device: str = "cpu",
    threads: int = 0,
    folder: str | Path | None = None,
    resume: bool = False,
    board: Blackboard | None = None,
    on_candidates: Callable[[int], None] | None = None,
) -> Identified:
    """Find the parameters with which the simulator follows recorded trajectories.

    Args:
        recorded: the trajectories.
        parameters: what may change, as :class:`Parameter` or a word like ``kp=600:1400``.
        robot: a robot word; default the recordings'.
        control: a controller's word; default the recordings'.
        control_hz: what the recordings' rate has to be; None for any.
        physics_hz: physics steps per second of the simulator that is to follow.
        loss: ``pose``, ``position`` or ``joints``; default the first for which everything is recorded.
        methods: one after the other, each from the best so far: ``anneal``, ``cma``, ``squares``, or with settings.
        seed: of the random numbers; the same seed gives the same result.
        batch: candidates at a time; changes no result.
        device: ``cpu``, ``warp:cpu`` or ``cuda``.
        threads: of the physics, 0 for all cores; changes no result.
        folder: where the journal of candidates lies; None for no journal.
        resume: go on with the journal of a search that was interrupted.
        board: shared with other processes that make the same search; in place of a journal.
        on_candidates: told how many candidates are done.

    Raises:
        ConfigError: options that do not go together. DataError: recordings of another robot or rate, or a journal of
            another search. UnknownNameError: no such robot, controller, joint, parameter, loss or method.
        DivergedError: the simulation breaks down with the robot's own parameters.
    """
    chosen = [one if isinstance(one, Parameter) else parse_parameter(one) for one in parameters]
    ways = [_method(one) for one in methods]
    if not ways:
        raise ConfigError(f"name at least one method: {', '.join(METHODS)}")
    if control_hz is not None and abs(control_hz - recorded.control_hz) > 1e-9 * recorded.control_hz:
        raise ConfigError(f"the trajectories were recorded at {recorded.control_hz:g} Hz, not at {control_hz:g} Hz")
    kind = chosen_loss(loss, recorded)
    started = time.perf_counter()
    rollout = Rollout(
        recorded,
        chosen,
        robot=robot,
        control=control,
        physics_hz=physics_hz,
        batch=batch,
        device=device,
        threads=threads,
    )
    settings = {
        "trajectories": recorded.digest,
        "robot": rollout.robot_word,
        "model": rollout.model_hash,
        "control": rollout.control.word,
        "physics_hz": rollout.physics_hz,
        "device": device,
        "parameters": [one.word for one in chosen],
        "loss": kind,
        "methods": [{"method": way.name, **dataclasses.asdict(way)} for way in ways],
        "seed": int(seed),
    }
    journal = None
    if folder is not None:
        journal = CheckedLines(Path(folder) / JOURNAL, "search", "candidates", settings, resume=resume)
    try:
        if board is not None:
            board.begin(settings)
        objective = Objective(rollout, kind, journal=journal, board=board, on_candidates=on_candidates)
        space = rollout.space
        present = space.unit(space.present)
        before = float(objective.losses(present[None])[0])
        if not np.isfinite(before):
            raise DivergedError(
                f"the simulation of {rollout.robot_word} breaks down with its own parameters; raise physics_hz"
            )
        stages = []
        for number, way in enumerate(ways):
            rng = np.random.default_rng([int(seed), number])  # house: random, a stream of its own
            _run(way, objective, rng)
            stages.append((way.name, objective.count, objective.least))
        best = objective.best.copy()
        after = objective.least
        slope = differences(best, objective.residuals)
        said = identifiability(slope, objective.residuals(best[None])[0], space.names)
        values = space.values(best)
        tracks = rollout(np.stack([space.present, values]))
        _, each = objective.measure(tracks)
        of_joints = _of_joints(rollout, values)
        delay = space.delay(values)
        return Identified(
            robot=rollout.robot_word,
            control=rollout.control.word,
            control_hz=recorded.control_hz,
            physics_hz=rollout.physics_hz,
            names=space.names,
            kinds=space.kinds,
            low=_numbers(space.low),
            high=_numbers(space.high),
            before=_numbers(space.present),
            after=_numbers(values),
            outside=space.outside,
            loss=kind,
            loss_before=before,
            loss_after=after,
            each_before=_numbers(each[0]),
            each_after=_numbers(each[1]),
            start_error=tuple((float(a), float(b)) for a, b in rollout.start_error),
            stages=tuple(stages),
            identifiability=said,
            joints=of_joints,
            delay=0.0 if delay is None else float(delay),
            provenance={
                **settings,
                "source": recorded.source,
                "notes": dict(recorded.notes),
                "names": [one.name for one in recorded.items],
                "candidates": objective.count,
                "seconds": round(time.perf_counter() - started, 1),
                "versions": {"manikin": __version__, "mujoco": mujoco.__version__, "torch": torch.__version__},
                "machine": platform.machine(),
            },
            overlays=_overlays(rollout, tracks),
        )
    finally:
        if journal is not None:
            journal.close()
        rollout.close()


def _method(one: Method | str) -> Method:
    if not isinstance(one, str):
        return one
    if one not in METHODS:
        raise UnknownNameError("method", one, METHODS)
    return METHODS[one]()


def _run(way: Method, objective: Objective, rng: Stream) -> None:
    """One method, from the best point so far."""
    if isinstance(way, Squares):
        objective.losses(way.solve(objective.best, objective.residuals)[None])
        return
    follow(way, objective.best, objective.least, objective.losses, rng)


def _of_joints(rollout: Rollout, values: np.ndarray) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for kind, (joints, each) in rollout.space.of_joints(values).items():
        for j, value in zip(joints, each, strict=True):
            found.setdefault(rollout.spec.joints[j], {})[kind] = float(value)
    return {name: found[name] for name in rollout.spec.joints if name in found}


def _overlays(rollout: Rollout, tracks: Tracks) -> tuple[Overlay, ...]:
    out = []
    for e, one in enumerate(rollout.recorded.items):
        recorded = {key: getattr(one, key) for key in rollout.recorded.tracks}
        both = [{key: getattr(tracks, key)[k, e, : len(one)].numpy() for key in recorded} for k in (0, 1)]
        out.append(Overlay(one.name, recorded, *both))
    return tuple(out)


def _numbers(values: np.ndarray) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
