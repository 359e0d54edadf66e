"""What is in the files that a recipe's settings name: a run is the same run wherever they lie."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from manikin.assets.paths import file_hash
from manikin.data.formats.demonstrations import holds_demos
from manikin.data.recording.read import EpisodeFile
from manikin.errors import ConfigError
from manikin.learn.run.recipe import FILES, Recipe
from manikin.policy.choices import POLICIES
from manikin.policy.shipped import shipped_policies
from manikin.policy.trained import policy_hash

__all__ = ["demonstrations_hash", "with_contents"]


def demonstrations_hash(path: str | Path) -> str:
    """SHA-256 of demonstrations: of what a recording holds, or of the bytes of a file of another project.

    Raises:
        DataError: no such file, or it is damaged.
    """
    if holds_demos(path):
        return file_hash(Path(path))
    with EpisodeFile(path) as file:
        return file.content_hash()


def with_contents(recipe: Recipe) -> Recipe:
    """The recipe with the SHA-256 of the files that its settings name. A policy that a word names, such as the expert
    or one that comes with manikin, counts by that word.

    Raises:
        ConfigError: a file holds something else than the recipe says.
        AssetError, DataError: there is no such file, or it is damaged.
    """
    found = {}
    for setting in FILES:
        word = str(recipe.settings.get(setting, ""))
        if not word or (setting not in recipe.sha256 and setting != "demos" and not _is_place(word)):
            continue
        found[setting] = demonstrations_hash(word) if setting == "demos" else _policy(word)
        if (said := recipe.sha256.get(setting, found[setting])) != found[setting]:
            raise ConfigError(
                f"{setting}: {word} is not what the recipe names. The SHA-256 of its content is {found[setting][:12]}, "
                f"the recipe says {said[:12]}. Put it back as it was, or take {setting} out of the recipe's [sha256]"
            )
    return dataclasses.replace(recipe, sha256=found)


def _is_place(word: str) -> bool:
    """Whether a policy's word names a file or a run's folder."""
    return word not in (*POLICIES, *shipped_policies()) and Path(word).exists()


def _policy(word: str) -> str:
    return file_hash(Path(word)) if word.endswith(".pt2") else policy_hash(word)
