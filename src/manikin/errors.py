"""Exceptions that name what is valid.

Every error a user can cause derives from :class:`ManikinError` and from the built-in type that fits, so that
both ``except ManikinError`` and ``except ValueError`` work.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "ActionError",
    "AssetError",
    "ClosedError",
    "ConfigError",
    "DataError",
    "DivergedError",
    "ManikinError",
    "RobotError",
    "SceneError",
    "UnknownNameError",
]


class ManikinError(Exception):
    """Base of all errors raised on purpose by manikin."""


class UnknownNameError(ManikinError, KeyError):
    """A name that is not in a closed set; the message lists the set and the nearest match."""

    def __init__(self, kind: str, name: object, valid: Iterable[str], hint: str = "") -> None:
        self.kind, self.name, self.valid = kind, name, sorted(valid)
        near = difflib.get_close_matches(str(name), self.valid, n=1)
        guess = f" Did you mean {near[0]!r}?" if near else ""
        valid_names = ", ".join(self.valid) or "(none)"
        super().__init__(f"unknown {kind} {name!r}.{guess} Valid: {valid_names}.{hint and ' ' + hint}")

    def __str__(self) -> str:  # KeyError would show the repr
        return str(self.args[0])


class ConfigError(ManikinError, ValueError):
    """An option has a value that cannot work."""


class ActionError(ManikinError, ValueError):
    """An action has the wrong shape or dtype, is not finite, or is out of range."""


class SceneError(ManikinError, ValueError):
    """A scene cannot be composed or compiled; names the part."""


class AssetError(ManikinError, FileNotFoundError):
    """A model, mesh or data folder is missing; says where it was looked for and how to get it."""


class DataError(ManikinError, ValueError):
    """A file is damaged, foreign, or of a version that cannot be read."""


class ClosedError(ManikinError, RuntimeError):
    """The environment (or a row of it) cannot be stepped any more."""


class DivergedError(ManikinError, RuntimeError):
    """The simulation left the finite numbers where that is not acceptable."""


class RobotError(ManikinError, RuntimeError):
    """A robot's answer cannot be used, or it does not answer in time; the run on it was stopped."""
