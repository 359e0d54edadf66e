"""The batched environment whose rows share one scene: a Task and a controller on N rows of a World."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

import numpy as np
import torch
from torch import Tensor

from manikin.control.base import Controller
from manikin.env import arguments
from manikin.env.assemble import assemble
from manikin.env.budget import task_budget
from manikin.env.interface import LayoutRows, SceneEnv
from manikin.env.loop.base import Loop
from manikin.env.loop.device import DeviceLoop
from manikin.env.loop.rows import RowLoop
from manikin.env.observe import space_of
from manikin.env.options import EnvKeywords, EnvOptions
from manikin.env.state import saving
from manikin.env.state.provenance import fingerprint
from manikin.env.task import Task
from manikin.errors import ConfigError
from manikin.sim.cpu import CpuWorld
from manikin.sim.snapshot import Snapshot
from manikin.sim.world import row_numbers
from manikin.spec.budget import Budget, advice
from manikin.spec.scene import CompiledScene

__all__ = ["Env"]


class Env(SceneEnv):
    """N rows of a task that share one scene. ``manikin.make`` returns it for a task without ``layouts``.

    Args:
        task: a Task class or instance; of a class with ``layouts`` the first layout.
        options: how it is played, by default as the task says.
        num_envs: rows, as in the options.
        **given: fields of :class:`EnvOptions` by name, which win over ``options``.
    """

    def __init__(
        self,
        task: type[Task] | Task,
        *,
        options: EnvOptions | None = None,
        num_envs: int | None = None,
        **given: Unpack[EnvKeywords],
    ) -> None:
        rows = {} if num_envs is None else {"num_envs": num_envs}
        made = assemble(task, EnvOptions.of(options, {**rows, **given}), find_budget=_find_budget)
        super().__init__(made.options, made)
        self._made, self.budget = made, made.budget
        self.h, self.scene, self.world = made.h, made.scene, made.world
        self.driven, self.substeps = made.driven, made.substeps
        self._builder, self._dresser = made.builder, made.dresser
        with torch.no_grad(), self._on:
            self._loop: Loop = RowLoop(made) if isinstance(made.world, CpuWorld) else DeviceLoop(made)
            self._observer = self._loop.observer
            self.observation_names = self._observer.names
            self.single_observation_space = space_of(self._observer())

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        self._check_open()
        options = arguments.options(options)
        mask = arguments.mask(options.pop("reset_mask", None), self.num_envs)
        index = options.pop("episode_index", None)
        with self._loop.no_grad(), self._on:
            return self._loop.reset(mask, seed, index, options)

    def step(
        self, actions: Tensor | np.ndarray | Mapping[str, Any], *, active: Tensor | np.ndarray | None = None
    ) -> tuple[Any, Tensor, Tensor, Tensor, dict[str, Any]]:
        self._check_open()
        with self._loop.no_grad(), self._on:
            return self._loop.step(self._flat(actions), active)

    def watch(self, rows: Tensor | None) -> None:
        self._check_open()
        if isinstance(self._loop, RowLoop):
            self._loop.watch(None if rows is None else arguments.mask(rows, self.num_envs, "rows"))

    def take_over(self, controller: Controller) -> None:
        """From now on let ``controller`` make commands of actions, in place of the one that the options name: for what
        drives the joints from outside, as the interface of a robot does. Rows must be reset afterwards.

        Raises:
            ConfigError: it takes actions of another size.
        """
        self._check_open()
        if controller.card.size != self._loop.controller.card.size:
            size = self._loop.controller.card.size
            raise ConfigError(f"the controller takes {controller.card.size} numbers, actions have {size}")
        self._loop.controller = controller

    def _seen(self, moved: np.ndarray | None) -> tuple[Any, dict[str, Any]]:
        with self._loop.no_grad(), self._on:
            return self._loop.look(moved)

    # ---- parts -----------------------------------------------------------------------------------------------------

    def parts(self, rows: Any = None) -> list[LayoutRows]:
        self._check_open()
        index = row_numbers(rows, self.num_envs)
        return [LayoutRows(self, index, np.arange(len(index)))]

    def part(self, row: int) -> tuple[Env, int]:
        self._check_open()
        return self, arguments.row_number(row, self.num_envs)

    def env_for(self, seed: int) -> Env:
        self._check_open()
        return self

    def gather(self, function: Callable[..., Tensor], *values: Tensor) -> Tensor:
        self._check_open()
        return function(self, *values)

    @property
    def state_size(self) -> int:
        return saving.size_of(self.scene.model)

    # ---- state -----------------------------------------------------------------------------------------------------

    def save(self, rows: Any = None) -> Snapshot:
        self._check_open()
        return saving.save(self._made, self._loop, row_numbers(rows, self.num_envs))

    def load(self, snapshot: Snapshot, rows: Any = None) -> tuple[Any, dict[str, Any]]:
        self._check_open()
        saving.load(self._made, self._loop, snapshot, row_numbers(rows, self.num_envs, once=True))
        return self.look()

    def fingerprint(self) -> dict[str, Any]:
        return fingerprint(self._made)

    def budget_advice(self) -> str:
        return "" if self.budget is None else advice([(self.budget, self.world.shortages(), range(self.num_envs))])

    def _close_parts(self) -> None:
        for part in (self._observer.rig, self._loop, self.world):
            if part is not None:
                part.close()


def _find_budget(task: Task, scene: CompiledScene, **options: Any) -> Budget:
    return task_budget(task, scene, Env, **options)
