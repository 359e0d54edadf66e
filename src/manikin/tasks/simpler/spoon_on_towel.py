"""WidowXSpoonOnTowel-v2."""

from __future__ import annotations

import math

from manikin.tasks.simpler.put_on import PutOnTask, corners

__all__ = ["WidowXSpoonOnTowel"]


class WidowXSpoonOnTowel(PutOnTask):
    """Put the spoon on the towel: SIMPLER's PutSpoonOnTableClothInScene.

    Randomization: one of 24 trials: spoon and towel at two of four corners of a square of 0.15 m, the spoon turned by 0
    or 90 degrees. With ``trials="grid"`` the seed is the number of the trial.
    Success: the spoon's centre of mass is over the towel, within its box; it may also touch the table. It counts at the
    end of the episode.

    The towel is rigid. Numbers: Li et al. 2024 (arXiv 2405.05941) and its released code; see docs/simpler.md for what
    differs.
    """

    id = "WidowXSpoonOnTowel-v2"
    instruction = "put the spoon on the towel"
    source_name, source_model = "spoon", "bridge_spoon_generated_modified"
    target_name, target_model = "towel", "table_cloth_generated_shorter"
    drawn = ("robot", "spoon", "towel")
    places = corners((-0.235, -0.085), (-0.075, 0.075))
    turns = (0.0, math.pi / 2)
    alone = False
    lift = 0.024
