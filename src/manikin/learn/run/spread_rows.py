"""An environment whose rows are in several workers: processes, or actors of a Ray cluster.

Rows come out as in one environment, bit for bit: each has its own seed, and none depends on its neighbours. Only
observations, rewards and actions travel. A worker that ends on its own is replaced: the new one begins from the last
state that was kept of the old one's rows, and is asked once more what the old one was asked since.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manikin.env.interface import BatchEnv, LayoutRows, SceneEnv
from manikin.env.make import make
from manikin.env.observe import Observation
from manikin.env.options import EnvOptions
from manikin.env.registry import task_class
from manikin.env.state.layouts import LayoutSnapshot
from manikin.env.state.packed import pack, unpack
from manikin.errors import ConfigError, DataError
from manikin.learn.common.tree import mapped
from manikin.learn.run.recipe import Recipe
from manikin.machine import different, exact_machine
from manikin.sim.snapshot import Snapshot
from manikin.spread.servants import LostServantError, Servants

__all__ = ["ServedRows", "SpreadRows", "Workers", "spread_rows", "training_options"]

_ALGORITHMS = ("ppo", "sac")
"""That take steps of rows wherever these are."""
_KEEP = 50
"""Requests after which a worker's rows are kept anew."""
_DEATHS = 3
"""Times in a row that a worker may end at one request."""


def training_options(recipe: Recipe, also: str = "", **more: Any) -> EnvOptions:
    """Options of the environment that a recipe trains in, which observes ``also`` besides."""
    options = recipe.env_options(autoreset="same_step", **more)
    if not also:
        return options
    shown = Observation.of(options.observe)
    return replace(options, observe=[*shown.parts, also, *shown.sources, *shown.stacks])


@dataclass(frozen=True)
class Workers:
    """Workers for the rows of a training run.

    Attributes:
        open: makes servants of a word and settings, as :class:`~manikin.spread.servants.ServantProcesses` takes them.
        count: how many work.
        task: word of the task, which runs its file where it is one's own.
    """

    open: Callable[[str, Mapping[str, Any]], Servants]
    count: int
    task: str


def spread_rows(recipe: Recipe, workers: Workers, *, device: str) -> SpreadRows:
    """The environment that a recipe trains in, with its rows in workers.

    Raises:
        ConfigError: the algorithm does not train so, there are fewer rows than workers, or these cannot make it.
    """
    if recipe.algorithm not in _ALGORITHMS:
        raise ConfigError(
            f"--on has the environments of {' and '.join(_ALGORITHMS)} in workers, not of {recipe.algorithm}"
        )
    options = training_options(recipe, device=device)
    rows, count = options.num_envs, workers.count
    if rows < count:
        raise ConfigError(
            f"{count} workers cannot share {rows} environments: give fewer --workers, or more env.num_envs"
        )
    settings = {"recipe": recipe.to_toml(), "device": device, "task": workers.task, "machine": exact_machine(device)}
    servants = workers.open(f"{ServedRows.__module__}:{ServedRows.__name__}", settings)
    shares = [rows // count + (k < rows % count) for k in range(count)]
    try:
        one = make(recipe.task, options=replace(options, num_envs=1))
        return SpreadRows(one, servants, shares)
    except BaseException:
        servants.close()
        raise


class ServedRows:
    """What a worker holds: some rows. A :class:`~manikin.spread.servant.Serving`; ``settings`` are the recipe as TOML,
    the device, the word of the task, and the kind of machine of who asks."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        task_class(settings["task"])  # runs the file of a task of one's own
        self._recipe, self._device = Recipe.from_toml(settings["recipe"]), settings["device"]
        self._different = different(settings["machine"], exact_machine(self._device))

    def answer(self, request: bytes) -> bytes:
        asked = unpack(request)
        with torch.no_grad():
            return pack(getattr(self, f"_{asked.pop('what')}")(**asked))

    def _begin(self, num_envs: int) -> Any:
        options = training_options(self._recipe, num_envs=num_envs, device=self._device)
        self._env = make(self._recipe.task, options=options)
        return self._different

    def _reset(self, seed: Any, options: Any) -> Any:
        observation, info = self._env.reset(seed=seed, options=options)
        return {"observation": observation, "info": _tensors(info)}

    def _step(self, actions: Tensor) -> Any:
        observation, reward, terminated, truncated, info = self._env.step(actions)
        told = {"reward": reward, "terminated": terminated, "truncated": truncated}
        return {"observation": observation, **told, "info": _tensors(info)}

    def _save(self) -> Any:
        return self._env.save()

    def _load(self, state: Any) -> Any:
        observation, info = self._env.load(state)
        return {"observation": observation, "info": _tensors(info)}


def _tensors(info: Mapping[str, Any]) -> dict[str, Any]:
    """Of an info what has a value for each row."""
    return {
        name: _tensors(value) if isinstance(value, Mapping) else value
        for name, value in info.items()
        if isinstance(value, Tensor | Mapping)
    }


class _Worker:
    """Rows of one worker, and all that it takes to have them again."""

    def __init__(self, servants: Servants, rows: int) -> None:
        self._servants, self._number = servants, servants.start()
        self._first = pack({"what": "begin", "num_envs": rows})
        self._state: Any = None
        self._since: list[bytes] = []  # requests since the state was kept
        servants.ask(self._number, self._first)

    def begun(self) -> None:
        """Wait until it has its rows."""
        _say(self._answered())

    def ask(self, what: str, **given: Any) -> None:
        self._since.append(pack({"what": what, **given}))
        self._servants.ask(self._number, self._since[-1])

    def answer(self) -> Any:
        found = self._answered()
        if len(self._since) > _KEEP:
            self.keep()
        return found

    def keep(self) -> Any:
        """The state of the rows, which have answered."""
        self.ask("save")
        self._state = self._answered()
        self._since = []
        return self._state

    def _answered(self) -> Any:
        for attempt in range(_DEATHS):
            try:
                if attempt:
                    self._begin_again()
                return unpack(self._servants.answer(self._number))
            except LostServantError as error:
                why = error
        raise DataError(f"{_DEATHS} workers in a row ended at the same request: {why}")

    def _begin_again(self) -> None:
        """Another worker, which has been asked all that this one was; the last answer is still to come."""
        self._number = self._servants.start()
        kept = [] if self._state is None else [pack({"what": "load", "state": self._state})]
        *before, last = [self._first, *kept, *self._since]
        for request in before:
            self._servants.ask(self._number, request)
            answer = self._servants.answer(self._number)
            if request is self._first:
                _say(unpack(answer))
        self._servants.ask(self._number, last)


def _say(different: str) -> None:
    """Of a worker in what its machine differs from this one."""
    if different:
        said = "a worker is of another kind than this process, so that the last bits of its rows could differ"
        warnings.warn(f"{said}: {different}", stacklevel=2)


class SpreadRows(BatchEnv):
    """Rows in workers, as a trainer takes them. It steps, saves and loads all rows together; handles, pictures and what
    else reads the simulation are the workers' own.

    Args:
        one: an environment of the same options with any number of rows, which says what the rows are; closed with this.
        servants: workers that hold :class:`ServedRows`.
        shares: rows of each.

    Raises:
        ConfigError: the workers cannot make the environment.
    """

    _told = (
        *("task", "options", "robot_word", "robots", "robot", "controller", "controllers", "device", "device_word"),
        *("horizon", "control_hz", "physics_hz", "terminates", "budget", "observation", "observe", "reward_mode"),
        *("render_mode", "autoreset", "metadata", "vision", "single_action_space", "observation_names"),
        *("single_observation_space", "_cameras", "_on"),
    )

    def __init__(self, one: BatchEnv, servants: Servants, shares: Sequence[int]) -> None:
        for name in self._told:
            setattr(self, name, getattr(one, name))
        self.num_envs, self._one, self._servants = sum(shares), one, servants
        self._edges = np.cumsum([0, *shares]).tolist()
        self._closed = False
        self._workers = [_Worker(servants, rows) for rows in shares]
        for worker in self._workers:
            worker.begun()

    @property
    def seconds(self) -> float:
        """Processor time of the workers that are there."""
        return self._servants.seconds()

    def _each(self) -> list[tuple[_Worker, slice]]:
        edges = zip(self._edges, self._edges[1:], strict=False)
        return [(worker, slice(*edge)) for worker, edge in zip(self._workers, edges, strict=True)]

    def _answers(self) -> dict[str, Any]:
        """Of all workers, joined."""
        found = [worker.answer() for worker in self._workers]
        if any("final_obs" in one["info"] for one in found):
            found = [one if "final_obs" in one["info"] else _without_end(one) for one in found]
        joined: dict[str, Any] = mapped(lambda *parts: torch.cat(parts).to(self.device), *found)
        return joined

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        given = {} if options is None else dict(options)
        if set(given) - {"reset_mask"} or not (seed is None or len(list(_listed(seed))) == self.num_envs):
            raise ConfigError("rows in workers are reset with a seed for each row, and reset_mask as the only option")
        for worker, rows in self._each():
            own = {name: torch.as_tensor(value)[rows] for name, value in given.items()}
            worker.ask("reset", seed=None if seed is None else list(_listed(seed))[rows], options=own or None)
        found = self._answers()
        return found["observation"], found["info"]

    def step(
        self, actions: Tensor | np.ndarray | Mapping[str, Any], *, active: Tensor | np.ndarray | None = None
    ) -> tuple[Any, Tensor, Tensor, Tensor, dict[str, Any]]:
        if active is not None or isinstance(actions, Mapping):
            raise ConfigError("rows in workers all step, with the actions of all robots in one tensor")
        given = torch.as_tensor(actions)
        for worker, rows in self._each():
            worker.ask("step", actions=given[rows])
        found = self._answers()
        return found["observation"], found["reward"], found["terminated"], found["truncated"], found["info"]

    def save(self, rows: Any = None) -> Snapshot | LayoutSnapshot:
        if rows is not None:
            raise ConfigError("rows in workers are saved all together")
        kept = [worker.keep() for worker in self._workers]
        joined: Snapshot | LayoutSnapshot = type(kept[0]).joined(kept)
        return joined

    def load(self, snapshot: Any, rows: Any = None) -> tuple[Any, dict[str, Any]]:
        if rows is not None or len(snapshot) != self.num_envs:
            raise ConfigError(f"rows in workers are loaded all together, and there are {self.num_envs}")
        for worker, some in self._each():
            worker.ask("load", state=snapshot.rows(np.arange(some.start, some.stop)))
        found = self._answers()
        return found["observation"], found["info"]

    def fingerprint(self) -> dict[str, Any]:
        return self._one.fingerprint()

    @property
    def state_size(self) -> int:
        return self._one.state_size

    def budget_advice(self) -> str:
        return ""

    # ---- what is the workers' own --------------------------------------------------------------------------------

    def parts(self, rows: Any = None) -> list[LayoutRows]:
        raise _elsewhere()

    def part(self, row: int) -> tuple[SceneEnv, int]:
        raise _elsewhere()

    def env_for(self, seed: int) -> SceneEnv:
        raise _elsewhere()

    def gather(self, function: Callable[..., Tensor], *values: Tensor) -> Tensor:
        raise _elsewhere()

    def _seen(self, moved: np.ndarray | None) -> tuple[Any, dict[str, Any]]:
        raise _elsewhere()

    def close_extras(self, **kwargs: Any) -> None:
        self._closed = True
        self._close_parts()

    def _close_parts(self) -> None:
        self._servants.close()
        self._one.close()


def _listed(seed: Any) -> Sequence[int | None]:
    return [] if isinstance(seed, int) else list(seed)


def _elsewhere() -> ConfigError:
    return ConfigError("these rows are in workers: only step, reset, save and load reach them. Leave --on out")


def _without_end(told: dict[str, Any]) -> dict[str, Any]:
    """An answer in which no row ended, as one in which some did: nobody reads what stands for the others."""
    info = told["info"]
    none = torch.zeros_like(told["terminated"])
    ends = {"final_obs": told["observation"], "_final_obs": none, "final_info": info, "_final_info": none}
    return {**told, "info": {**info, **ends}}
