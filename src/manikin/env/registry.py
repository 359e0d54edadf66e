"""Which tasks exist, and how Gymnasium learns of them. Light: nothing heavy is imported until a task is used."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium

from manikin.errors import AssetError, ConfigError, UnknownNameError

if TYPE_CHECKING:
    from manikin.env.env import Env
    from manikin.env.task import Task

__all__ = ["make", "register", "register_gymnasium", "task_class", "task_ids"]

_BIMANUAL = "manikin.tasks.bimanual"
_TABLETOP = "manikin.tasks.tabletop"
_ROBOSUITE = "manikin.tasks.robosuite"
_BUILTIN = {
    "CartpoleBalance-v1": "manikin.tasks.classic.cartpole_balance:CartpoleBalance",
    "Door-v1": f"{_ROBOSUITE}.door:Door",
    "Lift-v1": f"{_ROBOSUITE}.lift:Lift",
    "LiftPegUpright-v1": f"{_TABLETOP}.lift_peg_upright:LiftPegUpright",
    "NutAssembly-v1": f"{_ROBOSUITE}.nut_assembly:NutAssembly",
    "NutAssemblyRound-v1": f"{_ROBOSUITE}.nut_assembly:NutAssemblyRound",
    "NutAssemblySquare-v1": f"{_ROBOSUITE}.nut_assembly:NutAssemblySquare",
    "OpenCabinetDrawer-v1": f"{_TABLETOP}.open_cabinet_drawer:OpenCabinetDrawer",
    "PegInsertionSide-v1": f"{_TABLETOP}.peg_insertion_side:PegInsertionSide",
    "PickClutterYCB-v1": f"{_TABLETOP}.pick_clutter_ycb:PickClutterYCB",
    "PickCube-v1": f"{_TABLETOP}.pick_cube:PickCube",
    "PickPlace-v1": f"{_ROBOSUITE}.pick_place:PickPlace",
    "PickPlaceBread-v1": f"{_ROBOSUITE}.pick_place:PickPlaceBread",
    "PickPlaceCan-v1": f"{_ROBOSUITE}.pick_place:PickPlaceCan",
    "PickPlaceCereal-v1": f"{_ROBOSUITE}.pick_place:PickPlaceCereal",
    "PickPlaceMilk-v1": f"{_ROBOSUITE}.pick_place:PickPlaceMilk",
    "PickSingleYCB-v1": f"{_TABLETOP}.pick_single_ycb:PickSingleYCB",
    "PlaceSphere-v1": f"{_TABLETOP}.place_sphere:PlaceSphere",
    "PullCube-v1": f"{_TABLETOP}.pull_cube:PullCube",
    "PushCube-v1": f"{_TABLETOP}.push_cube:PushCube",
    "Stack-v1": f"{_ROBOSUITE}.stack:Stack",
    "StackCube-v1": f"{_TABLETOP}.stack_cube:StackCube",
    "TwoArmHandover-v1": f"{_ROBOSUITE}.two_arm_handover:TwoArmHandover",
    "TwoArmLift-v1": f"{_ROBOSUITE}.two_arm_lift:TwoArmLift",
    "TwoArmPegInHole-v1": f"{_ROBOSUITE}.two_arm_peg_in_hole:TwoArmPegInHole",
    "TwoRobotPickCube-v1": f"{_BIMANUAL}.two_robot_pick_cube:TwoRobotPickCube",
    "TwoRobotStackCube-v1": f"{_BIMANUAL}.two_robot_stack_cube:TwoRobotStackCube",
    "Wipe-v1": f"{_ROBOSUITE}.wipe:Wipe",
}
_registered: dict[str, type[Task]] = {}


def task_ids() -> list[str]:
    """Ids of all tasks, built in and registered, sorted."""
    return sorted({*_BUILTIN, *_registered})


def register(task: type[Task]) -> type[Task]:
    """Class decorator: make a task known by its id, here and to Gymnasium as ``manikin/<id>``."""
    known = _registered.get(task.id)
    if task.id in _BUILTIN or (known is not None and known.__qualname__ != task.__qualname__):
        raise ConfigError(f"there is a task {task.id!r} already; choose another name or raise the version")
    _registered[task.id] = task
    _tell_gymnasium(task.id)
    return task


def task_class(word: str | type[Task]) -> type[Task]:
    """The task class for an id (``PickCube-v1``), ``module:Class``, or ``file.py:Class``.

    The class may be left out when the file has one task.

    Raises:
        UnknownNameError: no such id or class; lists what there is.
        AssetError: no such file.
    """
    if not isinstance(word, str):
        return word
    name = word.removeprefix("manikin/")
    if name in _registered:
        return _registered[name]
    if name in _BUILTIN:
        return _load(*_BUILTIN[name].split(":"))
    if word.endswith(".py"):
        return _load(word, "")
    if ":" in word:
        module, _, attribute = word.rpartition(":")
        return _load(module, attribute)
    raise UnknownNameError("task", word, task_ids())


def _load(module: str, attribute: str) -> type[Task]:
    from manikin.env.task import Task

    if module.endswith(".py"):
        path = Path(module).resolve()
        if not path.is_file():
            raise AssetError(f"there is no file {module}")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = loaded
        spec.loader.exec_module(loaded)
    else:
        loaded = importlib.import_module(module)
    tasks = {
        n: v
        for n, v in vars(loaded).items()
        if isinstance(v, type) and issubclass(v, Task) and v is not Task and v.__module__ == loaded.__name__
    }
    if not attribute and len(tasks) == 1:
        return next(iter(tasks.values()))
    if attribute not in tasks:
        raise UnknownNameError(f"task class in {module}", attribute, tasks)
    return tasks[attribute]


def make(task: str | type[Task], num_envs: int = 1, **options: Any) -> Env:
    """A batched environment of a task; options as for :class:`manikin.Env`.

    A task with ``layouts`` gets a :class:`manikin.env.bucket.BucketEnv`, which is used in the same way.

    ``make("PickCube-v1", num_envs=256, robot="panda", control="ee_delta_pose", observe="state_dict")``
    """
    from manikin.env.bucket import batched

    return batched(task_class(task), num_envs=num_envs, **options)


def _make_single(*, task_id: str, **options: Any) -> gymnasium.Env:
    from manikin.env.single import SingleEnv

    return SingleEnv(task_class(task_id), **options)


def _make_vector(*, task_id: str, num_envs: int = 1, **options: Any) -> Env:
    return make(task_id, num_envs, **options)


def _tell_gymnasium(task_id: str) -> None:
    name = f"manikin/{task_id}"
    if name not in gymnasium.registry:
        gymnasium.register(
            name,
            entry_point="manikin.env.registry:_make_single",
            vector_entry_point="manikin.env.registry:_make_vector",
            kwargs={"task_id": task_id},
        )


def register_gymnasium() -> None:
    """Make every built-in task known to Gymnasium as ``manikin/<id>``; no task is loaded."""
    for task_id in _BUILTIN:
        _tell_gymnasium(task_id)
