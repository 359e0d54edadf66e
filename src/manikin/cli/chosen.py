"""The task that a command was given by word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manikin.errors import ConfigError, ManikinError

if TYPE_CHECKING:
    from manikin.env.task import Task

__all__ = ["chosen_task"]


def chosen_task(word: str) -> type[Task]:
    """The task class for an id, ``module:Class`` or ``file.py:Class``.

    Raises:
        UnknownNameError: no such task; lists what there is.
        AssetError: no such file.
        ConfigError: the file or module cannot be imported; says where it fails.
    """
    from manikin.env.registry import task_class

    try:
        return task_class(word)
    except ManikinError:
        raise
    except SyntaxError as error:
        raise ConfigError(f"{error.filename}, line {error.lineno}: {error.msg}") from error
    except Exception as error:  # importing a user's file may raise anything
        import traceback

        last = traceback.extract_tb(error.__traceback__)[-1]
        said = f"{type(error).__name__}: {error}"
        raise ConfigError(f"{word} cannot be imported: {said} ({last.filename}, line {last.lineno})") from error
