"""Makes environments of tasks: ``manikin.make``, and what Gymnasium calls."""

from __future__ import annotations

from typing import Any, Literal, Unpack, overload

import gymnasium

from manikin.env.adapters.agents import AgentsEnv
from manikin.env.adapters.lerobot_env import LeRobotEnv
from manikin.env.adapters.numpy_view import NumpyEnv
from manikin.env.adapters.single import SingleEnv
from manikin.env.arguments import flag, one_of
from manikin.env.interface import BatchEnv
from manikin.env.layouts.env import batched
from manikin.env.options import EnvKeywords, EnvOptions
from manikin.env.registry import task_class
from manikin.env.task import Task
from manikin.errors import ConfigError

__all__ = ["lerobot_envs", "make", "make_single", "make_vector"]


@overload
def make(
    task: str | type[Task],
    num_envs: int | None = None,
    *,
    arrays: Literal["torch"] = "torch",
    agents: Literal[False] = False,
    options: EnvOptions | None = None,
    **given: Unpack[EnvKeywords],
) -> BatchEnv: ...
@overload
def make(
    task: str | type[Task],
    num_envs: int | None = None,
    *,
    arrays: Literal["numpy"],
    options: EnvOptions | None = None,
    **given: Unpack[EnvKeywords],
) -> NumpyEnv: ...
@overload
def make(
    task: str | type[Task],
    num_envs: int | None = None,
    *,
    agents: Literal[True],
    options: EnvOptions | None = None,
    **given: Unpack[EnvKeywords],
) -> AgentsEnv: ...
def make(
    task: str | type[Task],
    num_envs: int | None = None,
    *,
    arrays: str = "torch",
    agents: bool = False,
    options: EnvOptions | None = None,
    **given: Unpack[EnvKeywords],
) -> BatchEnv | NumpyEnv | AgentsEnv:
    """A batched environment of a task: ``make("PickCube-v2", num_envs=256, robot="panda", control="ee_delta_pose")``.

    A task with ``layouts`` gets a :class:`manikin.env.layouts.env.LayoutEnv`, the others a :class:`manikin.Env`; both
    are a :class:`manikin.env.interface.BatchEnv` and are used in the same way.

    Args:
        task: an id, ``module:Class``, ``file.py:Class`` or a class.
        num_envs: rows; default 1.
        arrays: ``torch`` for tensors; ``numpy`` for NumPy's arrays, which go into Gymnasium's vector wrappers: a
            :class:`manikin.env.adapters.numpy_view.NumpyEnv`.
        agents: actions and observations are dictionaries with an entry per robot: a
            :class:`manikin.env.adapters.agents.AgentsEnv`.
        options: how it is played, by default as the task says.
        **given: fields of :class:`manikin.env.options.EnvOptions` by name, which win over ``options``.
    """
    one_of("kind of arrays", arrays, ("torch", "numpy"))
    if flag("agents", agents) and arrays != "torch":
        raise ConfigError("agents=True always returns tensors; leave out arrays=")
    env = batched(task_class(task), options=options, num_envs=num_envs, **given)
    if agents:
        return AgentsEnv(env)
    return NumpyEnv(env) if arrays == "numpy" else env


def make_single(*, task_id: str, **options: Any) -> gymnasium.Env:
    """What ``gymnasium.make("manikin/<id>")`` gives."""
    return SingleEnv(task_class(task_id), **options)


def make_vector(*, task_id: str, num_envs: int = 1, **options: Any) -> gymnasium.vector.VectorEnv:
    """What ``gymnasium.make_vec("manikin/<id>")`` gives. With Gymnasium's own defaults: arrays, and a row that ended
    restarts in the next step."""
    return make(task_id, num_envs, **{"arrays": "numpy", "autoreset": "next_step", **options})


def lerobot_envs(task: str, n_envs: int = 1, **options: Any) -> dict[str, dict[int, LeRobotEnv]]:
    """What ``make_env`` of an EnvHub repository of LeRobot returns of a task: suite -> number of the task -> its rows.

    Args:
        task: as :func:`make`.
        n_envs: rows.
        **options: of :func:`make`; ``observe`` is ``state_dict`` where nothing is said.
    """
    given = {"observe": "state_dict", "render_mode": "rgb_array", **options, "autoreset": "next_step"}
    return {"manikin": {0: LeRobotEnv(batched(task_class(task), num_envs=n_envs, **given))}}
