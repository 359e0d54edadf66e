"""PrepareGroceries-v1."""

from __future__ import annotations

from dataclasses import dataclass

from manikin.homes.objects import FROM_FRONT, OBJECT_SETS
from manikin.tasks.home.long.sequence import LongTask
from manikin.tasks.home.long.steps import Errand

__all__ = ["PrepareGroceries"]


class PrepareGroceries(LongTask):
    """Bring two objects from the open fridge to the kitchen counter, and then one from the counter into the fridge.

    Randomization: which of the built-in apartments (by the episode's seed, see ``layouts``); which object each of the
    three is; where on the fridge's middle shelf and on the counter they start and go to, and how they are turned, a
    little off straight; where before the fridge the robot starts, and its heading; its arm's joints, a little noise
    about rest.
    Success: all twelve subtasks have been done in their order, each within its own horizon and limit of force, and
    every object that was placed has stayed at its goal.

    After MS-HAB's PrepareGroceries: Navigate, Pick, Navigate, Place for each object. Their conditions and numbers are
    in ``manikin.tasks.home.rules``; a row goes on in the first step in which those of its subtask hold. The fridge is
    open by 1.5 rad at the start. Under its shelves the gripper takes things from the front; can 002 and the bowl, which
    are too wide for that, are left out.
    """

    id = "PrepareGroceries-v1"
    sequence = "prepare_groceries"
    errands = (Errand("fridge", "counter"), Errand("fridge", "counter"), Errand("counter", "fridge"))
    opened = "fridge"
    horizon_s = 210.0  # 4200 control steps, all horizons together
    instruction = "bring two objects from the fridge to the counter and one from the counter into the fridge"

    @dataclass(frozen=True)
    class Config(LongTask.Config):
        objects: tuple[str, ...] = tuple(  # names of manikin.homes.objects
            name for name in OBJECT_SETS["prepare_groceries"].targets if name in FROM_FRONT
        )
