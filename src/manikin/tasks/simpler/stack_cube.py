"""WidowXStackCube-v2."""

from __future__ import annotations

from manikin.tasks.simpler.put_on import PutOnTask, corners

__all__ = ["WidowXStackCube"]


class WidowXStackCube(PutOnTask):
    """Stack the green cube on the yellow one: SIMPLER's StackGreenCubeOnYellowCubeBakedTexInScene.

    Randomization: one of 24 trials: the cubes at two of four corners of a square of 0.1 m (the first 12) or 0.2 m. With
    ``trials="grid"`` the seed is the number of the trial.
    Success: the green cube's centre of mass is over the yellow cube, within its box, and the green cube touches nothing
    but the yellow one and the robot. It counts at the end of the episode.

    Numbers: Li et al. 2024 (arXiv 2405.05941) and its released code; see docs/simpler.md for what differs.
    """

    id = "WidowXStackCube-v2"
    instruction = "stack the green block on the yellow block"
    source_name, source_model = "green", "baked_green_cube_3cm"
    target_name, target_model = "yellow", "baked_yellow_cube_3cm"
    drawn = ("robot", "green", "yellow")
    places = (*corners((-0.21, -0.11), (-0.05, 0.05)), *corners((-0.26, -0.06), (-0.1, 0.1)))
    grips = 4
    lift = 0.032
