"""Makes observations: asks the sources, and puts what remembers (stages, sensors, stacks) behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakMethod

import numpy as np
import torch
from torch import Tensor

from manikin.env.observe.flat import column_names, flatten, own_names
from manikin.env.observe.vision import Vision
from manikin.env.observe.words import STATE_WORDS, Observation
from manikin.env.task import Task
from manikin.errors import ConfigError
from manikin.moved import old_names
from manikin.render.rig import CameraRig
from manikin.rng import EpisodeRng
from manikin.scene.handles import Robot
from manikin.sense.imperfect import Carry, Imperfection, SensorSuite
from manikin.sense.source import Group, Sight, Source
from manikin.sense.stack import StackMemory
from manikin.sense.stages import PictureStages

__all__ = ["ObservationBuilder"]

_EVERY = np.zeros(0, bool)  # stands for all rows
_Tree = dict[str, Any]
_Streams = Callable[[bool], EpisodeRng]


@dataclass(frozen=True)
class _Memory:
    """A step between the truth and what is shown that remembers: stages of pictures, sensors, stacks.

    ``start`` gives the carry of episodes that begin, ``step`` what is shown in the rows of a mask and the next carry;
    both may ask for random streams, of the episode or (True) of its present step.
    """

    key: str
    start: Callable[[_Tree, _Streams], Carry]
    step: Callable[[Carry, _Tree, _Streams, Tensor], tuple[_Tree, Carry]]


@dataclass(frozen=True)
class _Moved:
    """Rows in view: which (None for all), which of them start or moved, (n,) bool; as tensors where rows are masks."""

    rows: np.ndarray | None
    fresh: Any
    active: Any


class ObservationBuilder:
    """Makes observations of the rows in view; what it returns is owned by the receiver.

    ``state`` and ``policy`` are one flat float32 tensor; ``state_dict`` keeps the names. With cameras or more sources
    the observation is a dict: ``policy`` (named; joint positions, velocities and what a real robot knows), ``cameras``
    (per camera the outputs asked for, with K and T), ``pointcloud``, ``voxel``, ``privileged`` only with ``state``, and
    each further source by its name.

    Args:
        rng: the random streams of rows (None for all), at their present step when asked; a method, of what keeps this.
        declared: what sources gave when the scene was built, by name.
        sensors: what each sensor does to the truth, one call of the suite per control step.
        masks: rows are chosen by masks, as on a device.
    """

    def __init__(
        self,
        observation: Observation,
        task: Task,
        h: Any,
        robots: Sequence[Robot],
        *,
        vision: Vision,
        rig: CameraRig | None,
        rng: Callable[[np.ndarray | None, bool], EpisodeRng],
        control_hz: float,
        declared: Mapping[str, Any] | None = None,
        sensors: SensorSuite | None = None,
        masks: bool = False,
    ) -> None:
        self.observation, self.rig, self.carry = observation, rig, dict[str, Tensor]()
        n, device = robots[0].scope.world.num_worlds, robots[0].scope.device
        self._fresh = np.ones(n, bool)  # rows whose sensors have seen nothing yet
        self._masks = masks
        self._masked_fresh = torch.ones(n, dtype=torch.bool, device=device)  # the same, where rows are chosen by masks
        self._before: dict[str, Tensor] = {}
        self._task, self._h, self._robots, self._control_hz = task, h, tuple(robots), control_hz
        self._find_rng = WeakMethod(rng)  # of the loop, which keeps this
        self._own = [(own_names(robot, robots), robot) for robot in robots]
        self._sources, self._declared = observation.every(vision), dict(declared or {})
        self._stacks = StackMemory(observation.stacks)
        self.flat = observation.flat
        self._stages_remember = False
        self._staging = self._stages(vision)
        self._after = [*self._sensors(sensors), *self._stacking()]

    def _stages(self, vision: Vision) -> _Memory | None:
        """What happens to pictures once they are drawn; None for nothing."""
        if self.rig is None or not vision.stages:
            return None
        stages = PictureStages(vision.stages, self.rig.cameras, self.rig.table, control_hz=self._control_hz, h=self._h)
        self._stages_remember = stages.remembers
        return _Memory(
            "stages|",
            lambda truth, rng: stages.start(truth, rng(False), rng(True)) if stages.remembers else {},
            lambda carry, truth, rng, active: stages(carry, truth, rng(False), rng(True), active),
        )

    def _sensors(self, sensors: SensorSuite | None) -> Iterator[_Memory]:
        """Imperfections that sources bring, and those that the user adds."""
        effects: dict[str, list[Imperfection]] = {}
        for source in self._sources:
            for name, some in source.imperfections().items():
                effects[f"{source.name}/{name}" if name else source.name] = list(some)
        for path, model in (sensors.models if sensors is not None else {}).items():
            effects.setdefault(path, []).extend(model.imperfections)
        if not effects:
            return
        suite = SensorSuite(effects, control_hz=self._control_hz)
        yield _Memory(
            "",
            lambda truth, rng: suite.start(truth, rng(False)),
            lambda carry, truth, rng, active: suite(carry, truth, rng(True), active),
        )

    def _stacking(self) -> Iterator[_Memory]:
        if self._stacks.stacks:
            yield _Memory(
                "stack|",
                lambda truth, rng: self._stacks.start(truth),
                lambda carry, truth, rng, active: self._stacks(carry, truth, active),
            )

    @property
    def names(self) -> list[str]:
        """The name of every column of a flat observation, ``group/name[i]``; empty for the others."""
        if not self.flat:
            return []
        out, groups = [], self.groups()
        for group in STATE_WORDS[self.observation.word]:
            for name, value in groups[group].items():
                out += column_names(f"{group}/{name}", value[0].numel())
        return out

    @property
    def skips(self) -> bool:
        """Whether leaving rows out for a while saves pictures and changes nothing that is observed later."""
        return self.rig is not None and not self._stages_remember and not self._after

    def _rng(self, rows: np.ndarray | None, present: bool) -> EpisodeRng:
        find = self._find_rng()
        assert find is not None
        return find(rows, present)

    def groups(self) -> dict[str, Mapping[str, Tensor]]:
        """Named tensors of the rows in view, borrowed: ``policy``, ``privileged`` and groups of the task's own."""
        seen = self._task.observe(self._h)
        policy: dict[str, Tensor] = {}
        privileged: dict[str, Tensor] = {}
        for (qpos, qvel), robot in self._own:
            policy[qpos] = robot.qpos
            (policy if self._task.measures_velocity else privileged)[qvel] = robot.qvel
        policy |= seen.get("policy", {})
        return {**seen, "policy": policy, "privileged": privileged | seen.get("privileged", {})}

    def begin(self, rows: np.ndarray | Tensor) -> None:
        """An episode starts in these rows, numbers or a mask: their sensors forget."""
        if isinstance(rows, Tensor):
            self._masked_fresh |= rows
        else:
            self._fresh[rows] = True

    def rewind(self) -> None:
        """Take back what the last call with a mask did to the sensors' memory."""
        for name, value in self._before.items():
            (self._masked_fresh if name == "" else self.carry[name]).copy_(value)

    def __call__(self, rows: np.ndarray | None = None, *, still: np.ndarray | Tensor | None = _EVERY) -> Any:
        """Observe the rows in view, which are ``rows`` (None for all).

        ``still`` (N,) bool are those that made no step since the last call, None for none of them; their sensors say
        again what they said. By default nothing moved. As a tensor it is a mask on the device, and nothing is waited
        for.
        """
        if self.flat and not self._after:
            groups = self.groups()
            return flatten([v for group in STATE_WORDS[self.observation.word] for v in groups[group].values()])
        moved = self._who_moved(rows, still) if self._after or self._staging is not None else None
        sight = Sight(
            self._h,
            self._robots,
            self._control_hz,
            groups=self.groups,
            pictures=lambda: self._draw(rows, moved),
            rng=lambda present: self._rng(rows, present),
        )
        seen = {source.name: self._ask(source, sight) for source in self._sources}
        if moved is not None:
            for memory in self._after:
                seen = self._remembered(memory, seen, moved)
            if self._masks:
                self._masked_fresh.zero_()
            else:
                self._fresh[slice(None) if rows is None else rows] = False
        if self.flat:
            columns = [v for group in STATE_WORDS[self.observation.word] for v in seen[group].values()]
            return flatten(columns, stacked=bool(self._stacks.stacks))
        return seen

    def _who_moved(self, rows: np.ndarray | None, still: np.ndarray | Tensor | None) -> _Moved:
        if self._masks:
            if isinstance(still, Tensor):
                return _Moved(None, self._masked_fresh, self._masked_fresh | ~still)
            return _Moved(None, self._masked_fresh, self._masked_fresh.clone())
        fresh = self._fresh if rows is None else self._fresh[rows]
        if still is _EVERY:
            return _Moved(rows, fresh, fresh)
        assert not isinstance(still, Tensor)
        moves = np.ones_like(fresh) if still is None else ~still
        return _Moved(rows, fresh, fresh | (moves if rows is None or still is None else moves[rows]))

    def _ask(self, source: Source, sight: Sight) -> Any:
        """What a source sees, owned."""
        sight.declared = self._declared.get(source.name)
        found = source.observe(sight)
        if source.owned:
            return found
        if isinstance(source, Group):
            return {name: value.float().clone() for name, value in found.items()}  # type: ignore[union-attr]
        n = self._h.n
        parts = found if isinstance(found, Mapping) else {"": found}
        for name, value in parts.items():
            if not isinstance(value, Tensor) or value.dim() < 1 or len(value) != n:
                got = tuple(value.shape) if isinstance(value, Tensor) else f"{value!r:.60}"
                raise ConfigError(
                    f"source {source.name!r} observes tensors of {n} rows, got {name or 'one'} of shape {got}"
                )
        copies = {k: v.float().clone() if v.is_floating_point() else v.clone() for k, v in parts.items()}
        return copies if isinstance(found, Mapping) else copies[""]

    def _draw(self, rows: np.ndarray | None, moved: _Moved | None) -> Any:
        assert self.rig is not None
        drawn = self.rig.render(rows)
        if self._staging is None or moved is None:
            return drawn
        return self._remembered(self._staging, drawn, moved)

    # ---- what is remembered -----------------------------------------------------------------------------------------

    def _remembered(self, memory: _Memory, truth: _Tree, moved: _Moved) -> _Tree:
        """The truth after something that remembers."""
        if self._masks:
            return self._remembered_by_mask(memory, truth, moved.fresh, moved.active)
        rows, n = moved.rows, len(self._fresh)
        fresh, at = moved.fresh, torch.from_numpy(np.arange(n) if rows is None else rows)
        carry = {k: v[at] for k, v in self._of(memory).items()}
        if not carry or fresh.any():
            made, new = memory.start(truth, self._streams(rows)), torch.from_numpy(fresh)
            if not carry:
                self._keep(memory, {k: v.new_zeros(n, *v.shape[1:]) for k, v in made.items()})
                carry = {k: torch.zeros_like(v) for k, v in made.items()}
            carry = {k: torch.where(new.view(-1, *[1] * (v.ndim - 1)), made[k], v) for k, v in carry.items()}
        seen, carry = memory.step(carry, truth, self._streams(rows), torch.from_numpy(moved.active))
        if moved.active.any():
            for k, v in carry.items():
                self.carry[memory.key + k][at] = v
        return seen

    def _remembered_by_mask(self, memory: _Memory, truth: _Tree, fresh: Tensor, active: Tensor) -> _Tree:
        """The same for all rows, by masks; nothing is waited for."""
        now = self._of(memory)
        waits = memory is self._staging  # pictures are made call by call, so the host may ask whether any row starts
        skip = waits and bool(now) and not bool(fresh.any())
        made = now if skip else memory.start(truth, self._streams(None))
        if not now:
            self._keep(memory, {k: torch.zeros_like(v) for k, v in made.items()})
        now = self._of(memory)
        for name, value in {"": fresh, **{memory.key + k: v for k, v in now.items()}}.items():
            if name not in self._before:
                self._before[name] = torch.zeros_like(value)
            self._before[name].copy_(value)
        carry = {k: torch.where(fresh.view(-1, *[1] * (v.ndim - 1)), made[k], v) for k, v in now.items()}
        seen, carry = memory.step(carry, truth, self._streams(None), active)
        for k, v in carry.items():
            now[k].copy_(v)
        return seen

    def _streams(self, rows: np.ndarray | None) -> _Streams:
        return lambda present: self._rng(rows, present)

    def _of(self, memory: _Memory) -> Carry:
        return {k.removeprefix(memory.key): v for k, v in self.carry.items() if self._owner(k) == memory.key}

    def _keep(self, memory: _Memory, carry: Carry) -> None:
        self.carry |= {memory.key + k: v for k, v in carry.items()}

    @staticmethod
    def _owner(name: str) -> str:
        """Whose memory it is: "" for sensors, whose names begin with a path."""
        return next((key for key in ("stack|", "stages|") if name.startswith(key)), "")


__getattr__ = old_names(__name__)
