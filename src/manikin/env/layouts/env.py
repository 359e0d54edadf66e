"""Rows with different joints: an environment for each layout that rows have, behind one interface.

An episode's layout is its seed modulo the number of layouts, so a seed is the same scene in any row and batch, and
seeds that follow one another spread over the layouts evenly. Rows that go on without a new seed keep their layout.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Unpack

import numpy as np
import torch
from torch import Tensor

from manikin.env import arguments
from manikin.env.assemble import compose
from manikin.env.env import Env
from manikin.env.interface import BatchEnv, LayoutRows, SceneEnv
from manikin.env.layouts.padding import Padding
from manikin.env.layouts.pool import Pool
from manikin.env.loop.device import DeviceLoop, step_together
from manikin.env.observe import STATE_WORDS, Observation, column_names, flatten, space_of
from manikin.env.options import EnvKeywords, EnvOptions
from manikin.env.state.layouts import LayoutSnapshot
from manikin.env.state.saving import size_of
from manikin.env.task import Task, checked_task
from manikin.errors import ActionError, ConfigError, DataError
from manikin.rng import episode_seed_from_entropy
from manikin.sim.world import row_numbers
from manikin.spec.budget import Budget, advice, largest

__all__ = ["LayoutEnv", "batched"]

_OF_ONE_LAYOUT = ("h", "world", "scene", "driven", "substeps", "segmentation_table")


def batched(
    task: type[Task] | Task,
    *,
    options: EnvOptions | None = None,
    num_envs: int | None = None,
    **given: Unpack[EnvKeywords],
) -> BatchEnv:
    """The environment for a task: one scene for all rows, or one for each layout that the task declares."""
    task = checked_task(task)
    if isinstance(task, type) and task.layouts:
        return LayoutEnv(task, options=options, num_envs=num_envs, **given)
    return Env(task, options=options, num_envs=num_envs, **given)


class LayoutEnv(BatchEnv):
    """N rows of a task whose rows may have different joints. ``manikin.make`` returns it for a task with ``layouts``.

    ``info["layout"]`` says which of ``task.layouts`` each row has. A layout is compiled when a row first needs it.
    Layouts that no row has are kept while all together take no more memory than the option ``layout_memory``.

    An observation that the task declares with ``Quantity(..., padded_to=shape)`` is padded with zeros and has
    ``<name>_mask`` beside it, 1 where it is real.

    Args:
        task: a Task class with ``layouts``.
        options: as for :class:`manikin.Env`.
        num_envs: rows, as in the options.
        **given: as for :class:`manikin.Env`.
    """

    def __init__(
        self,
        task: type[Task],
        *,
        options: EnvOptions | None = None,
        num_envs: int | None = None,
        **given: Unpack[EnvKeywords],
    ) -> None:
        if not task.layouts:
            raise ConfigError(f"{task.id} declares no layouts; use manikin.Env")
        rows = {} if num_envs is None else {"num_envs": num_envs}
        options = EnvOptions.of(options, {**rows, **given})
        word, chosen = arguments.robots(task, options.robot)
        self._kind, self._arm = task, ",".join(one.arm.name for one in chosen)
        observation = Observation.of(options.observe)
        self._inner = replace(options, robot=word, observe=observation.named())
        self._known: dict[int, tuple[str, int]] = {}  # of a layout: hash of its model, size of its states
        self._padding: Padding | None = None
        least = -(-options.num_envs // len(task.layouts))
        self._pool = Pool(self._new, rows=options.num_envs, least=least, memory=options.layout_memory)
        first = self._pool.first.env
        super().__init__(options, first._made)
        self._entropy: int | None = None
        with torch.no_grad(), first.on_device():
            sample = self._pool.sample().joined({0: first._observer()})
        self.observation_names = self._names(sample) if observation.flat else []
        self.single_observation_space = space_of(self._finish(sample, self._pool.sample().layout))

    @property
    def compiled(self) -> dict[int, int]:
        """The layouts that are compiled now, and the memory of each [bytes]."""
        return {one.layout: one.memory for one in self._pool.everyone}

    def _new(self, layout: int, slots: int) -> Env:
        """An environment of a layout. Raises :class:`ConfigError` where its observations do not fit to the others'."""
        env = Env(self._task(layout), options=replace(self._inner, num_envs=slots))
        try:
            if self._padding is None:
                self._padding = Padding(env.task, env.single_observation_space, env.device)
            self._padding.add(layout, env.single_observation_space)
        except BaseException:
            env.close()
            raise
        self._note(layout, env.scene.hash, env.state_size)
        return env

    def _task(self, layout: int) -> Task:
        return self._kind(self._inner.config, arm=self._arm, layout=self._kind.layouts[layout])

    def __getattr__(self, name: str) -> Any:
        """There are no handles, no world and no scene of all rows.

        Raises:
            AttributeError: every layout has its own; says where.
        """
        if name in _OF_ONE_LAYOUT:
            raise AttributeError(
                f"{self._kind.id} has several layouts, and each has its own {name}: use env.part(row)[0].{name} for "
                "one row, or loop over env.parts()"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # ---- Gymnasium -------------------------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        self._check_open()
        options = arguments.options(options)
        rows = np.flatnonzero(arguments.mask(options.pop("reset_mask", None), self.num_envs)).astype(np.int32)
        index = options.pop("episode_index", None)
        numbers = None if index is None else arguments.indices(index, rows, self.num_envs)
        given = dict(zip(rows.tolist(), arguments.seeds(seed, rows, self.num_envs), strict=True))
        for row, value in given.items():
            if value is None and not self._pool.has_layout(row):
                if self._entropy is None:
                    self._entropy = episode_seed_from_entropy()
                given[row] = self._entropy + row
        self._pool.place({row: s % len(self._kind.layouts) for row, s in given.items() if s is not None})
        seen, infos = {}, {}
        for k, one in self._pool.used.items():
            mine = one.rows.tolist()
            mask = np.array([row in given for row in mine])
            more = dict(options)
            if numbers is not None:
                at = dict(zip(rows.tolist(), numbers.tolist(), strict=True))
                wanted = mask if one.started else np.ones(len(mask), bool)
                more["episode_index"] = [at.get(row, 0) for row, w in zip(mine, wanted, strict=True) if w]
            seen[k], infos[k] = one.start([given.get(row) for row in mine], mask, more)
        return self._observed(seen), self._informed(infos)

    def _seen(self, moved: np.ndarray | None) -> tuple[Any, dict[str, Any]]:
        seen, infos = {}, {}
        for k, one in self._pool.used.items():
            mine = None if moved is None else np.flatnonzero(np.isin(one.rows, moved))
            seen[k], infos[k] = one.env._seen(mine)
        return self._observed(seen), self._informed(infos)

    def step(
        self, actions: Tensor | np.ndarray | Mapping[str, Any], *, active: Tensor | np.ndarray | None = None
    ) -> tuple[Any, Tensor, Tensor, Tensor, dict[str, Any]]:
        self._check_open()
        self._pool.check_started()
        given = self._flat(actions)
        check = (self.num_envs, self.controller.card)
        refuse = self.options.out_of_range == "refuse"
        later = self.device_word != "cpu" and isinstance(given, Tensor)  # on the device, without waiting for it
        if later:
            arguments.action_shape(given, *check)
        else:
            arguments.actions(given, *check, refuse)
        action = torch.as_tensor(given, dtype=torch.float32, device=self.device).detach()
        going = None if active is None else arguments.mask_on(active, self.num_envs, "active", self.device)
        used = self._pool.used
        loops = [one.env._loop for one in used.values()]
        if any(isinstance(loop, DeviceLoop) for loop in loops):
            moves = [None if going is None else one.slotwise(going) for one in used.values()]
            try:
                with torch.no_grad(), self._on:
                    steps = step_together(
                        [loop for loop in loops if isinstance(loop, DeviceLoop)],
                        [one.slotwise(action) for one in used.values()],
                        moves,
                    )
            except ActionError:
                arguments.actions(given, *check, refuse)  # which names rows, and not slots
                raise
        else:
            steps = [one.env.step(one.slotwise(action), active=one.moving(going)) for one in used.values()]
        seen, rewards, *ends, infos = (dict(zip(used, each, strict=True)) for each in zip(*steps, strict=True))
        terminated, truncated = map(self._pool.places.joined, ends)
        return self._observed(seen), self._pool.places.joined(rewards), terminated, truncated, self._informed(infos)

    # ---- parts -----------------------------------------------------------------------------------------------------

    @property
    def layout(self) -> Tensor:
        """(N,) int64 which of ``task.layouts`` each row has; -1 before the first reset."""
        return self._pool.places.layout.clone()

    @property
    def instruction(self) -> list[str]:
        said = {id(one): one.env.instruction for one in self._pool.everyone}
        places = [self._pool.of(row) for row in range(self.num_envs)]
        return [said[id(one)][own] for one, own in places]

    @property
    def budget(self) -> Budget | None:  # type: ignore[override]
        """Room that is enough for every layout compiled so far: of each number the largest; None on the CPU."""
        given = [one.env.budget for one in self._pool.everyone if one.env.budget is not None]
        return largest(given) if given else None

    def parts(self, rows: Any = None) -> list[LayoutRows]:
        self._check_open()
        index = row_numbers(rows, self.num_envs)
        return [LayoutRows(one.env, slots, which) for one, slots, which in self._pool.split(index)]

    def part(self, row: int) -> tuple[SceneEnv, int]:
        self._check_open()
        one, slot = self._pool.of(arguments.row_number(row, self.num_envs))
        return one.env, slot

    def env_for(self, seed: int) -> SceneEnv:
        self._check_open()
        return self._pool.compiled(seed % len(self._kind.layouts)).env

    def gather(self, function: Callable[..., Tensor], *values: Tensor) -> Tensor:
        self._check_open()
        self._pool.check_started()
        found = {k: function(one.env, *map(one.slotwise, values)) for k, one in self._pool.used.items()}
        joined: Tensor = self._pool.places.joined(found)
        return joined

    # ---- state -----------------------------------------------------------------------------------------------------

    def save(self, rows: Any = None) -> LayoutSnapshot:
        self._check_open()
        index = row_numbers(rows, self.num_envs)
        parts = self._pool.split(index)
        pieces = [(which, one.env.save(slots)) for one, slots, which in parts]
        return LayoutSnapshot(len(index), pieces, [one.layout for one, _, _ in parts])

    def load(self, snapshot: LayoutSnapshot, rows: Any = None) -> tuple[Any, dict[str, Any]]:
        self._check_open()
        index = row_numbers(rows, self.num_envs, once=True)
        if not isinstance(snapshot, LayoutSnapshot):
            raise DataError(f"load() takes a snapshot that save() returned, not a {type(snapshot).__name__}")
        if len(snapshot) not in (1, len(index)):
            raise DataError(f"a snapshot of {len(snapshot)} rows cannot be loaded into {len(index)}")
        pieces = list(zip(snapshot.pieces, snapshot.layouts, strict=True))
        for (_, piece), layout in pieces:
            env = self._pool.compiled(layout).env
            piece.index_for(len(piece), env.scene.physics_hash, env.world.kind)  # refused before any row has moved
        targets = [index if len(snapshot) == 1 else index[which] for (which, _), _ in pieces]
        self._pool.place({row: layout for (_, layout), at in zip(pieces, targets, strict=True) for row in at.tolist()})
        for ((_, piece), _), at in zip(pieces, targets, strict=True):
            for one, slots, which in self._pool.split(at):
                one.ready()
                one.env.load(piece if len(piece) == 1 else piece.rows(which), slots)
        return self.look()

    def fingerprint(self) -> dict[str, Any]:
        """As :meth:`manikin.Env.fingerprint`, with the hash of every layout's model. Scenes of layouts that no row has
        had are compiled for it, one at a time."""
        names = self._kind.layouts
        hashes = {name: self._about(k)[0] for k, name in enumerate(names)}
        whole = hashlib.sha256("".join(hashes.values()).encode()).hexdigest()[:16]
        first = self._pool.first.env.fingerprint()
        budget = None if self.budget is None else asdict(self.budget)
        return {**first, "observe": self.observe, "model_hash": whole, "layouts": hashes, "budget": budget}

    @property
    def state_size(self) -> int:
        """Of the largest layout; see :meth:`fingerprint` for what is compiled."""
        return max(self._about(k)[1] for k in range(len(self._kind.layouts)))

    def budget_advice(self) -> str:
        return "" if self.device_word == "cpu" else advice(self._pool.shortages())

    # ---- inside ------------------------------------------------------------------------------------------------------

    def _close_parts(self) -> None:
        self._pool.close()

    def _note(self, layout: int, scene_hash: str, state_size: int) -> None:
        self._known[layout] = scene_hash, state_size

    def _about(self, layout: int) -> tuple[str, int]:
        """Hash of a layout's model, and size of its states."""
        if layout not in self._known:
            scene = compose(self._task(layout), self._inner).scene
            self._note(layout, scene.hash, size_of(scene.model))
        return self._known[layout]

    def _observed(self, found: Mapping[int, Any]) -> Any:
        return self._finish(self._pool.places.joined(found), self._pool.places.layout)

    def _finish(self, named: dict[str, Any], layout: Tensor) -> Any:
        """Padded and with masks; flat where the observation word is."""
        assert self._padding is not None
        named = self._padding.apply(named, layout)
        if not self.observation.flat:
            return named
        columns = [v for g in STATE_WORDS[self.observation.word] for v in named[g].values()]
        return flatten(columns, stacked=bool(self.observation.stacks))

    def _names(self, sample: dict[str, Any]) -> list[str]:
        assert self._padding is not None
        named = self._padding.apply(dict(sample), self._pool.sample().layout)
        first = (0, 0) if self.observation.stacks else 0
        return [
            column
            for group in STATE_WORDS[self.observation.word]
            for name, value in named[group].items()
            for column in column_names(f"{group}/{name}", value[first].numel())
        ]

    def _informed(self, infos: Mapping[int, dict[str, Any]]) -> dict[str, Any]:
        for info in infos.values():
            info.pop("entropy", None)
        joined: dict[str, Any] = self._pool.places.joined(infos)
        joined["layout"] = self.layout
        if "final_obs" in joined:
            joined["final_obs"] = self._finish(joined["final_obs"], self._pool.places.layout)
            joined["final_info"]["layout"] = self.layout
        if self._entropy is not None:
            joined["entropy"] = self._entropy
        return joined
