"""Episodes of rearrangement, after Habitat's samplers: what lies where, and where it is to be brought."""

from manikin.homes.episodes.generate import Rejections, generate, scene_of
from manikin.homes.episodes.rules import LONG_TASKS, SPLITS, LongTask, home_of, scene_names
from manikin.homes.episodes.story import HomeEpisode, Lying, Target

__all__ = [
    "LONG_TASKS",
    "SPLITS",
    "HomeEpisode",
    "LongTask",
    "Lying",
    "Rejections",
    "Target",
    "generate",
    "home_of",
    "scene_names",
    "scene_of",
]
