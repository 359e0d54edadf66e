"""SetTable-v1."""

from __future__ import annotations

from dataclasses import dataclass

from manikin.errors import ConfigError
from manikin.homes.objects import OBJECT_SETS
from manikin.tasks.home.doors.mechanisms import MechanismTask
from manikin.tasks.home.long.sequence import SKILLS, LongTask
from manikin.tasks.home.long.steps import Errand, Step

__all__ = ["SetTable"]


class SetTable(LongTask):
    """Bring a bowl from a kitchen drawer and an apple from the fridge to the dining table; open both before and close
    them again.

    Randomization: which of the built-in apartments (by the episode's seed, see ``layouts``); where in the drawer and on
    the fridge's middle shelf the two lie, and how they are turned; their goals on the table; where the robot starts,
    and its heading; its arm's joints, a little noise about rest.
    Success: all sixteen subtasks have been done in their order, each within its own horizon and limit of force, and
    what was placed has stayed at its goal.

    After MS-HAB's SetTable: Open, Pick, Place, Close for each object, and Navigate before each. Their conditions and
    numbers are in ``manikin.tasks.home.rules``; a row goes on in the first step in which those of its subtask hold. In
    each apartment it is always the same drawer, as there: of the upper ones that with most room before it.
    """

    id = "SetTable-v1"
    sequence = "set_table"
    errands = (Errand("drawer", "table", "drawer"), Errand("fridge", "table", "fridge"))
    skills = SKILLS
    observations = {
        **LongTask.observations,
        **{name: MechanismTask.observations[name] for name in ("open_share", "opens_along")},
    }
    horizon_s = 280.0  # 5600 control steps, all horizons together
    instruction = "set the table with the bowl from the drawer and the apple from the fridge"

    @dataclass(frozen=True)
    class Config(LongTask.Config):
        objects: tuple[str, ...] = OBJECT_SETS["set_table"].targets  # names of manikin.homes.objects, of each target

    def steps(self) -> tuple[Step, ...]:
        if len(self.config.objects) != len(self.errands):
            raise ConfigError(
                f"{self.id} has {len(self.errands)} objects, the first in the drawer and the second in the fridge, not "
                f"{len(self.config.objects)}: {', '.join(self.config.objects) or 'none'}"
            )
        return super().steps()

    def objects_of(self, target: int) -> tuple[str, ...]:
        return self.handled(target, (self.config.objects[target],))
