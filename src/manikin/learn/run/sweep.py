"""The same training with one setting after another, to see what each of them does."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from manikin.errors import ConfigError
from manikin.learn.run.recipe import Recipe
from manikin.moved import old_names

__all__ = ["RecipeVariant", "variants"]


@dataclass(frozen=True)
class RecipeVariant:
    """One recipe of a comparison. ``name`` says what was set: ``env.num_envs=64,gamma=0.8``."""

    name: str
    recipe: Recipe

    @property
    def folder(self) -> str:
        """The name with what a folder's name can hold."""
        return re.sub(r"[^\w.=,+-]+", "_", self.name).strip("_") or "as-it-is"


def variants(
    recipe: Recipe, settings: Mapping[str, Sequence[Any]], env: Mapping[str, Sequence[Any]]
) -> list[RecipeVariant]:
    """Recipes with every combination of values.

    Args:
        recipe: what all have in common.
        settings: name -> values, of the algorithm.
        env: name -> values, of the environment.

    Raises:
        ConfigError: a name or value that the recipe does not take, a name without values, or a value twice.
    """
    named = {**{f"env.{name}": values for name, values in env.items()}, **settings}
    for name, values in named.items():
        if not isinstance(values, list | tuple) or not values:
            raise ConfigError(f"give values in brackets: {name}=[{values!r}, ...]")
        if len({repr(value) for value in values}) < len(values):
            raise ConfigError(f"{name} has a value twice: {list(values)}")
    found = []
    for chosen in itertools.product(*named.values()):
        given = dict(zip(named, chosen, strict=True))
        own = {name: value for name, value in given.items() if not name.startswith("env.")}
        around = {name.removeprefix("env."): value for name, value in given.items() if name.startswith("env.")}
        name = ",".join(f"{name}={value}" for name, value in given.items())
        found.append(RecipeVariant(name, recipe.replace(settings=own, env=around)))
    return found


__getattr__ = old_names(__name__)
