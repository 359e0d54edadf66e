"""WidowXCarrotOnPlate-v2."""

from __future__ import annotations

import math

from manikin.tasks.simpler.put_on import PutOnTask, corners

__all__ = ["WidowXCarrotOnPlate"]


class WidowXCarrotOnPlate(PutOnTask):
    """Put the carrot on the plate: SIMPLER's PutCarrotOnPlateInScene.

    Randomization: one of 24 trials: carrot and plate at two of four corners of a square of 0.15 m, the carrot turned by
    180 or -90 degrees. With ``trials="grid"`` the seed is the number of the trial.
    Success: the carrot's centre of mass is over the plate, within its box, and the carrot touches nothing but plate and
    robot. It counts at the end of the episode.

    Numbers: Li et al. 2024 (arXiv 2405.05941) and its released code; see docs/simpler.md for what differs.
    """

    id = "WidowXCarrotOnPlate-v2"
    instruction = "put carrot on plate"
    source_name, source_model = "carrot", "bridge_carrot_generated_modified"
    target_name, target_model = "plate", "bridge_plate_objaverse_larger"
    drawn = ("robot", "carrot", "plate")
    places = corners((-0.235, -0.085), (-0.075, 0.075))
    turns = (math.pi, -math.pi / 2)
    lift = 0.022
