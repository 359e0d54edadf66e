"""What commands are given: a task by word, the cameras of observations, how a Warp device simulates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from manikin.errors import ConfigError, ManikinError

if TYPE_CHECKING:
    from manikin.env.observe import Vision
    from manikin.env.task import Task

__all__ = ["On", "PictureOptions", "WarpOptions", "chosen_task"]

On = Annotated[bool, tyro.conf.arg(help_behavior_hint="")]
"""A flag that is on unless ``--no-NAME`` is given. Its help says what that does; "default: True" would say the opposite
of the option that it stands beside."""


@dataclass(frozen=True, kw_only=True)
class PictureOptions:
    """Options of the commands that observe through cameras."""

    camera: tuple[str, ...] = ()
    """Cameras of the observations, by name (see manikin info); by default those recorded, else base_camera."""
    size: tuple[int, int] | None = None
    """Width and height of the pictures [pixels]."""
    renderer: Literal["auto", "gl", "rays"] | None = None
    """Makes the pictures: OpenGL (gl), casting rays with MuJoCo anywhere (rays), or OpenGL where it works (auto)."""

    def vision(self) -> Vision | None:
        """What was chosen; None for nothing."""
        from manikin.env.observe import Vision

        if not self.camera and self.size is None and self.renderer is None:
            return None
        return Vision(cameras=self.camera or None, size=self.size, renderer=self.renderer or "auto")


@dataclass(frozen=True, kw_only=True)
class WarpOptions:
    """Options of the commands that may simulate on a Warp device (cuda, cuda:1, warp:cpu); the CPU needs neither."""

    budget: str | None = None
    """On a Warp device, room for contacts and constraints: nconmax=48,njmax=192; by default what is found for the task
    (and what a recording had)."""
    deterministic: bool = False
    """On a Warp device, the same bits in every run, at a price; always for a recording that was made with it."""

    def warp(self) -> dict[str, Any]:
        """What was chosen, as options of ``manikin.make``.

        Raises:
            ConfigError: the budget is none.
        """
        from manikin.spec.budget import read_budget

        chosen: dict[str, Any] = {} if self.budget is None else {"budget": read_budget(self.budget)}
        return chosen | ({"deterministic": True} if self.deterministic else {})


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
