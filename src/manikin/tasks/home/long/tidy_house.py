"""TidyHouse-v1."""

from __future__ import annotations

from manikin.tasks.home.long.sequence import LongTask
from manikin.tasks.home.long.steps import Errand

__all__ = ["TidyHouse"]


class TidyHouse(LongTask):
    """Bring five objects from tables, counters and sofas to other such places, one after the other.

    Randomization: which of the built-in apartments (by the episode's seed, see ``layouts``); which object each of the
    five is; which ten places they start from and go to, and how they are turned; where the robot starts, and its
    heading; its arm's joints, a little noise about rest.
    Success: all twenty subtasks have been done in their order, each within its own horizon and limit of force, and
    every object that was placed has stayed at its goal.

    After MS-HAB's TidyHouse: Navigate, Pick, Navigate, Place for each object. Their conditions and numbers are in
    ``manikin.tasks.home.rules``; a row goes on in the first step in which those of its subtask hold. The
    published evaluation leaves the arm out of Navigate, as ``arm_counts=False`` does here.
    """

    id = "TidyHouse-v1"
    sequence = "tidy_house"
    errands = (Errand(),) * 5
    horizon_s = 350.0  # 7000 control steps, all horizons together
    instruction = "bring the five objects to their goals"
