"""Which tasks exist, and how Gymnasium learns of them. Light: nothing heavy is imported until a task is used."""

from __future__ import annotations

import functools
import importlib
import re
from types import ModuleType
from typing import TYPE_CHECKING

import gymnasium

from manikin.assets import packages
from manikin.assets.python_file import run_file
from manikin.errors import ConfigError, UnknownNameError
from manikin.moved import old_names

if TYPE_CHECKING:
    from manikin.env.task import Task

__all__ = [
    "broken_tasks",
    "family_title",
    "is_own",
    "register",
    "register_gymnasium",
    "task_class",
    "task_families",
    "task_family",
    "task_ids",
    "task_versions",
]

_CLASSIC = "manikin.tasks.classic"
_BIMANUAL = "manikin.tasks.bimanual"
_TABLETOP = "manikin.tasks.tabletop"
_DRAWING = "manikin.tasks.drawing"
_HANDS = "manikin.tasks.hands"
_HUMANOIDS = "manikin.tasks.humanoids"
_INSERTION = "manikin.tasks.insertion"
_KITCHEN = "manikin.tasks.kitchen"
_LOCOMOTION = "manikin.tasks.locomotion"
_PUSHING = "manikin.tasks.pushing"
_ROBOSUITE = "manikin.tasks.robosuite"
_SIMPLER = "manikin.tasks.simpler"
_SOFT = "manikin.tasks.soft"
_BUILTIN = {
    "AntRun-v1": f"{_CLASSIC}.ant:AntRun",
    "AntWalk-v1": f"{_CLASSIC}.ant:AntWalk",
    "AssemblingKits-v1": f"{_INSERTION}.assembling_kits:AssemblingKits",
    "CartpoleBalance-v1": f"{_CLASSIC}.cartpole_balance:CartpoleBalance",
    "CartpoleSwingUp-v1": f"{_CLASSIC}.cartpole_swing_up:CartpoleSwingUp",
    "CarryBox-v1": f"{_HUMANOIDS}.carry_box:CarryBox",
    "CleanSurface-v1": f"{_DRAWING}.clean_surface:CleanSurface",
    "Door-v2": f"{_ROBOSUITE}.door:Door",
    "DrawSVG-v1": f"{_DRAWING}.draw_svg:DrawSVG",
    "DrawTriangle-v1": f"{_DRAWING}.draw_triangle:DrawTriangle",
    "Excavate-v1": f"{_SOFT}.excavate:Excavate",
    "Fill-v1": f"{_SOFT}.fill:Fill",
    "FoldCloth-v1": f"{_SOFT}.fold_cloth:FoldCloth",
    "FreeDraw-v1": f"{_DRAWING}.free_draw:FreeDraw",
    "GoogleCloseDrawer-v1": f"{_SIMPLER}.google_drawers:GoogleCloseDrawer",
    "GoogleMoveNear-v1": f"{_SIMPLER}.google_move_near:GoogleMoveNear",
    "GoogleOpenDrawer-v1": f"{_SIMPLER}.google_drawers:GoogleOpenDrawer",
    "GooglePickCokeCan-v1": f"{_SIMPLER}.google_pick_coke_can:GooglePickCokeCan",
    "GooglePickObject-v1": f"{_SIMPLER}.google_pick_coke_can:GooglePickObject",
    "GooglePlaceAppleInDrawer-v1": f"{_SIMPLER}.google_place_apple:GooglePlaceAppleInDrawer",
    "GraspCube-v1": f"{_TABLETOP}.grasp_cube:GraspCube",
    "Hang-v1": f"{_SOFT}.hang:Hang",
    "HopperHop-v1": f"{_CLASSIC}.hopper:HopperHop",
    "HopperStand-v1": f"{_CLASSIC}.hopper:HopperStand",
    "HumanoidRun-v1": f"{_CLASSIC}.humanoid:HumanoidRun",
    "HumanoidStand-v1": f"{_CLASSIC}.humanoid:HumanoidStand",
    "HumanoidWalk-v1": f"{_CLASSIC}.humanoid:HumanoidWalk",
    "InsertFlower-v1": f"{_HANDS}.insert_flower:InsertFlower",
    "InsertNISTPeg-v1": f"{_INSERTION}.insert_nist_peg:InsertNISTPeg",
    "LeggedStand-v1": f"{_LOCOMOTION}.legged_stand:LeggedStand",
    "Lift-v2": f"{_ROBOSUITE}.lift:Lift",
    "LiftPegUpright-v2": f"{_TABLETOP}.lift_peg_upright:LiftPegUpright",
    "NutAssembly-v4": f"{_ROBOSUITE}.nut_assembly:NutAssembly",
    "NutAssemblyRound-v4": f"{_ROBOSUITE}.nut_assembly:NutAssemblyRound",
    "NutAssemblySquare-v4": f"{_ROBOSUITE}.nut_assembly:NutAssemblySquare",
    "OpenCabinetDoor-v1": "manikin.tasks.cabinets.open_cabinet_door:OpenCabinetDoor",
    "OpenCabinetDrawer-v2": "manikin.tasks.cabinets.open_cabinet_drawer:OpenCabinetDrawer",
    "PegInsertionSide-v2": f"{_TABLETOP}.peg_insertion_side:PegInsertionSide",
    "PickClutterYCB-v2": f"{_TABLETOP}.pick_clutter_ycb:PickClutterYCB",
    "PickCube-v2": f"{_TABLETOP}.pick_cube:PickCube",
    "PickPlace-v2": f"{_ROBOSUITE}.pick_place:PickPlace",
    "PickPlaceBread-v2": f"{_ROBOSUITE}.pick_place:PickPlaceBread",
    "PickPlaceCan-v2": f"{_ROBOSUITE}.pick_place:PickPlaceCan",
    "PickPlaceCereal-v2": f"{_ROBOSUITE}.pick_place:PickPlaceCereal",
    "PickPlaceMilk-v2": f"{_ROBOSUITE}.pick_place:PickPlaceMilk",
    "PickSingleYCB-v2": f"{_TABLETOP}.pick_single_ycb:PickSingleYCB",
    "PlaceAppleInBowl-v1": f"{_HUMANOIDS}.place_apple_in_bowl:PlaceAppleInBowl",
    "Pinch-v1": f"{_SOFT}.pinch:Pinch",
    "PlaceSphere-v2": f"{_TABLETOP}.place_sphere:PlaceSphere",
    "PlugCharger-v1": f"{_INSERTION}.plug_charger:PlugCharger",
    "PokeCube-v1": f"{_PUSHING}.poke_cube:PokeCube",
    "Pour-v1": f"{_SOFT}.pour:Pour",
    "PrepareGroceries-v1": "manikin.tasks.home.long.prepare_groceries:PrepareGroceries",
    "PullCube-v2": f"{_TABLETOP}.pull_cube:PullCube",
    "PullCubeTool-v1": f"{_PUSHING}.pull_cube_tool:PullCubeTool",
    "PushCube-v2": f"{_TABLETOP}.push_cube:PushCube",
    "PushT-v1": f"{_PUSHING}.push_t:PushT",
    "QuadrupedReach-v1": f"{_LOCOMOTION}.quadruped:QuadrupedReach",
    "QuadrupedSpin-v1": f"{_LOCOMOTION}.quadruped:QuadrupedSpin",
    "ReorientCube-v1": f"{_HANDS}.reorient_cube:ReorientCube",
    "RollBall-v1": f"{_PUSHING}.roll_ball:RollBall",
    "RotateInHand-v1": f"{_HANDS}.rotate_in_hand:RotateInHand",
    "RotateValve-v1": f"{_HANDS}.rotate_valve:RotateValve",
    "RouteCable-v1": f"{_SOFT}.route_cable:RouteCable",
    "SetTable-v1": "manikin.tasks.home.long.set_table:SetTable",
    "Stack-v2": f"{_ROBOSUITE}.stack:RobosuiteStack",
    "StackCube-v2": f"{_TABLETOP}.stack_cube:StackCube",
    "StackPyramid-v1": f"{_TABLETOP}.stack_pyramid:StackPyramid",
    "TactileLock-v1": f"{_INSERTION}.tactile_insert:TactileLock",
    "TactilePeg-v1": f"{_INSERTION}.tactile_insert:TactilePeg",
    "TidyHouse-v1": "manikin.tasks.home.long.tidy_house:TidyHouse",
    "TrackMotion-v1": f"{_LOCOMOTION}.track_motion:TrackMotion",
    "TrackVelocity-v1": f"{_LOCOMOTION}.track_velocity:TrackVelocity",
    "TrackVelocityRough-v1": f"{_LOCOMOTION}.track_velocity_rough:TrackVelocityRough",
    "TriFingerRotateCube-v1": f"{_HANDS}.trifinger_rotate_cube:TriFingerRotateCube",
    "HomeClose-v1": "manikin.tasks.home.doors.close:HomeClose",
    "HomeNavigate-v1": "manikin.tasks.home.navigate:HomeNavigate",
    "HomePick-v1": "manikin.tasks.home.pick:HomePick",
    "HomePlace-v1": "manikin.tasks.home.place:HomePlace",
    "HomeOpen-v1": "manikin.tasks.home.doors.open:HomeOpen",
    "KitchenCloseDrawer-v1": f"{_KITCHEN}.close_drawer:KitchenCloseDrawer",
    "KitchenCloseMicrowave-v1": f"{_KITCHEN}.close_microwave:KitchenCloseMicrowave",
    "KitchenOpenCabinet-v1": f"{_KITCHEN}.open_cabinet:KitchenOpenCabinet",
    "KitchenTurnOnMicrowave-v1": f"{_KITCHEN}.turn_on_microwave:KitchenTurnOnMicrowave",
    "KitchenTurnOnSinkFaucet-v1": f"{_KITCHEN}.turn_on_sink_faucet:KitchenTurnOnSinkFaucet",
    "KitchenTurnOnStove-v1": f"{_KITCHEN}.turn_on_stove:KitchenTurnOnStove",
    "TransportBox-v1": f"{_HUMANOIDS}.transport_box:TransportBox",
    "TurnFaucet-v1": "manikin.tasks.cabinets.turn_faucet:TurnFaucet",
    "TwoArmHandover-v2": f"{_ROBOSUITE}.two_arm_handover:TwoArmHandover",
    "TwoArmLift-v3": f"{_ROBOSUITE}.two_arm_lift:TwoArmLift",
    "TwoArmPegInHole-v2": f"{_ROBOSUITE}.two_arm_peg_in_hole:TwoArmPegInHole",
    "TwoRobotPickCube-v2": f"{_BIMANUAL}.two_robot_pick_cube:TwoRobotPickCube",
    "TwoRobotStackCube-v2": f"{_BIMANUAL}.two_robot_stack_cube:TwoRobotStackCube",
    "WidowXCarrotOnPlate-v2": f"{_SIMPLER}.carrot_on_plate:WidowXCarrotOnPlate",
    "WidowXEggplantInBasket-v2": f"{_SIMPLER}.eggplant_in_basket:WidowXEggplantInBasket",
    "WidowXSpoonOnTowel-v2": f"{_SIMPLER}.spoon_on_towel:WidowXSpoonOnTowel",
    "WidowXStackCube-v2": f"{_SIMPLER}.stack_cube:WidowXStackCube",
    "Wipe-v2": f"{_ROBOSUITE}.wipe:Wipe",
    "Write-v1": f"{_SOFT}.write:Write",
}
_registered: dict[str, type[Task]] = {}


def task_ids(family: str | None = None) -> list[str]:
    """Ids of all tasks, built in, registered and of installed packages, or of those of one family, sorted; of each the
    newest version.

    Raises:
        UnknownNameError: no task is of that family; lists those that there are.
    """
    if family is None:
        return sorted({*_BUILTIN, *_registered, *packages.offered("task")})
    families = task_families()
    if family not in families:
        raise UnknownNameError("family of tasks", family, families)
    return families[family]


def task_families() -> dict[str, list[str]]:
    """Ids of the tasks of every family that has any: built-in families in the order of lists, then others, sorted.
    Tasks of packages that cannot be loaded are left out, see :func:`broken_tasks`."""
    found: dict[str, list[str]] = {}
    broken = broken_tasks()
    for task_id in task_ids():
        if task_id not in broken:
            found.setdefault(task_family(task_id), []).append(task_id)
    known = _families().FAMILIES
    return {name: found[name] for name in (*known, *sorted(found.keys() - known)) if name in found}


def broken_tasks() -> dict[str, str]:
    """Ids of the tasks of installed packages that cannot be loaded, and why."""
    broken: dict[str, str] = {}
    for task_id in packages.offered("task"):
        try:
            task_class(task_id)
        except ConfigError as error:
            broken[task_id] = str(error)
    return broken


def task_family(word: str | type[Task]) -> str:
    """The family of a task: what its class says, or else that of the folder of manikin.tasks that it is from, or else
    ``own``. Raises as :func:`task_class`."""
    task, families = task_class(word), _families()
    within = [base.__module__.split(".") for base in task.__mro__]  # a task that derives from a built-in one is like it
    folders = [place[2] for place in within if place[:2] == ["manikin", "tasks"]]
    return task.family or next((families.FOLDERS[name] for name in folders if name in families.FOLDERS), families.OWN)


def family_title(family: str) -> str:
    """What lists call a family; of one that is not built in, its name."""
    title: str = _families().FAMILIES.get(family, family)
    return title


def task_versions() -> list[str]:
    """Ids of all tasks with the former versions that can still be played, sorted."""
    return sorted({*task_ids(), *importlib.import_module("manikin.tasks.former").FORMER})


def is_own(word: str) -> bool:
    """Whether a word names a task of one's own that may exist: a file, a module's class, a registered one, or one of an
    installed package."""
    name = word.removeprefix("manikin/")
    return name in _registered or name in packages.offered("task") or word.endswith(".py") or ":" in word


def _families() -> ModuleType:
    """Their names; found by name as the tasks themselves are, which lie above this room."""
    return importlib.import_module("manikin.tasks.families")


def register(task: type[Task]) -> type[Task]:
    """Class decorator: make a task known by its id, here and to Gymnasium as ``manikin/<id>``.

    Raises:
        ConfigError: it is no task, its id is taken, or its family is no word.
    """
    from manikin.env.task import checked_task

    known = _registered.get(checked_task(task).id)
    if not isinstance(task.family, str) or not re.fullmatch("[a-z0-9-]*", task.family):
        built_in = ", ".join(_families().FAMILIES)
        raise ConfigError(
            f"the family of {task.id} must be a word of lower-case letters, digits and hyphens, not {task.family!r}; "
            f"built in: {built_in}"
        )
    if task.id in _BUILTIN or (known is not None and known.__qualname__ != task.__qualname__):
        raise ConfigError(f"a task {task.id!r} is already registered; choose another name or a higher version")
    _registered[task.id] = task
    _tell_gymnasium(task.id)
    return task


def task_class(word: str | type[Task]) -> type[Task]:
    """The task class for an id (``PickCube-v2``), ``module:Class``, or ``file.py:Class``. An id may be that of an
    installed package (:mod:`manikin.assets.packages`); a built-in one wins.

    The class may be left out when the file has one task.

    Raises:
        UnknownNameError: no such id or class; lists what there is.
        AssetError: no such file.
        ConfigError: the package that offers it cannot be loaded, or has no such task; a file without a class's name has
            no task, or several.
    """
    if not isinstance(word, str):
        return word
    name = word.removeprefix("manikin/")
    if name in _registered:
        return _registered[name]
    if name in _BUILTIN:
        return _load(*_BUILTIN[name].split(":"))
    if (former := _former(name)) is not None:
        return former
    if name in packages.offered("task"):
        return _of_package(name)
    if word.endswith(".py"):
        return _load(word, "")
    if ":" in word:
        module, _, attribute = word.rpartition(":")
        return _load(module, attribute)
    raise UnknownNameError("task", word, task_ids())


def _of_package(name: str) -> type[Task]:
    from manikin.env.task import Task

    task = packages.load("task", name)
    if not (isinstance(task, type) and issubclass(task, Task) and task.id == name):
        raise ConfigError(
            f"a package offers the task {name!r}, but what it has there is no task of this id: {task!r:.80}"
        )
    return task


def _load(module: str, attribute: str) -> type[Task]:
    from manikin.env.task import Task

    if module.endswith(".py"):
        loaded = run_file(module)
    else:
        if not all(part.isidentifier() for part in module.split(".")):
            raise UnknownNameError("module with a task", module, ())
        try:
            loaded = importlib.import_module(module)
        except ImportError as error:
            if error.name is None or not f"{module}.".startswith(f"{error.name}."):
                raise  # of something that the module needs
            raise UnknownNameError("module with a task", module, ()) from None
    tasks = {
        n: v
        for n, v in vars(loaded).items()
        if isinstance(v, type) and issubclass(v, Task) and v is not Task and v.__module__ == loaded.__name__
    }
    if attribute in tasks:
        return tasks[attribute]
    # the only one, or the only one of this name where the file calls it otherwise: Mine = in_apartments(HomePick, ...)
    found = {task for task in tasks.values() if attribute in ("", task.__qualname__)}
    if len(found) == 1:
        return found.pop()
    if not attribute:
        if not tasks:
            raise ConfigError(f"{module} has no task class: write one that derives from manikin.Task")
        raise ConfigError(f"{module} has several task classes: name one, {' or '.join(f'{module}:{n}' for n in tasks)}")
    raise UnknownNameError(f"task class in {module}", attribute, tasks)


@functools.cache
def _former(task_id: str) -> type[Task] | None:
    """A version that a newer one replaced, see :mod:`manikin.tasks.former`."""
    newest = {name.rpartition("-v")[0]: name for name in _BUILTIN}
    replaced_by = newest.get(task_id.rpartition("-v")[0])
    if replaced_by is None:
        return None
    differs = importlib.import_module("manikin.tasks.former").FORMER.get(task_id)
    if differs is None:
        return None
    base = task_class(replaced_by)
    return type(
        base.__name__, (base,), {"id": task_id, "__doc__": base.__doc__, "__module__": base.__module__, **differs}
    )


def _tell_gymnasium(task_id: str) -> None:
    name = f"manikin/{task_id}"
    if name not in gymnasium.registry:
        gymnasium.register(
            name,
            entry_point="manikin.env.make:make_single",
            vector_entry_point="manikin.env.make:make_vector",
            kwargs={"task_id": task_id},
        )


def register_gymnasium() -> None:
    """Make every task, built in or of an installed package, known to Gymnasium as ``manikin/<id>``, former versions
    too; no task is loaded."""
    for task_id in task_versions():
        _tell_gymnasium(task_id)


__getattr__ = old_names(__name__)
