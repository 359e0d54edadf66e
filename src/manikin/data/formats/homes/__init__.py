"""Episodes of rearrangement that are made here, as Habitat and MS-HAB have them."""

from manikin.data.formats.homes.check import check_episode
from manikin.data.formats.homes.files import EpisodeFolder
from manikin.data.formats.homes.read import home_episode, home_episodes
from manikin.data.formats.homes.words import habitat_episode, subtask_plans

__all__ = [
    "EpisodeFolder",
    "check_episode",
    "habitat_episode",
    "home_episode",
    "home_episodes",
    "subtask_plans",
]
