"""What other packages offer: tasks, robots, grippers and policies, which they name as entry points.

A package says so in its ``pyproject.toml``, and manikin finds it where it is installed::

    [project.entry-points."manikin.tasks"]
    "StackBowls-v1" = "my_package.stack_bowls:StackBowls"

Nothing of a package is imported before one of its names is used.
"""

from __future__ import annotations

import functools
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from manikin.errors import ConfigError

__all__ = ["GROUPS", "forget", "load", "offered"]

GROUPS = {"task": "manikin.tasks", "robot": "manikin.robots", "gripper": "manikin.grippers"} | {
    "policy": "manikin.policies"
}
"""Kind of thing -> the group of entry points in which packages name it."""


@functools.cache
def _found(kind: str) -> dict[str, list[EntryPoint]]:
    found: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=GROUPS[kind]):
        if all(point.value != other.value for other in found.get(point.name, ())):  # one package, met twice on the path
            found.setdefault(point.name, []).append(point)
    return found


def offered(kind: str) -> tuple[str, ...]:
    """Names of what installed packages offer of a kind (a key of :data:`GROUPS`), sorted."""
    return tuple(sorted(_found(kind)))


def forget() -> None:
    """Look anew which packages are installed, as a new process does."""
    _found.cache_clear()


def load(kind: str, name: str) -> Any:
    """What a package offers by a name that :func:`offered` lists.

    Raises:
        ConfigError: two packages offer it, or it cannot be imported; names the package.
    """
    points = _found(kind)[name]
    if len(points) > 1:
        both = " and ".join(sorted(_package(point) for point in points))
        raise ConfigError(f"the {kind} {name!r} is offered by {both}: uninstall one of them")
    try:
        return points[0].load()
    except Exception as error:  # a package of somebody else's may fail in any way
        raise ConfigError(
            f"the {kind} {name!r} of the package {_package(points[0])} cannot be loaded: "
            f"{type(error).__name__}: {error}"
        ) from error


def _package(point: EntryPoint) -> str:
    return "of an unknown name" if point.dist is None else f"{point.dist.name} {point.dist.version}"
