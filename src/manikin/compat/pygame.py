"""A private part of pygame: its game controllers, which its public joysticks do not replace (no names of buttons)."""

from __future__ import annotations

from typing import Any

__all__ = ["load_controllers"]


def load_controllers() -> Any:
    """The module ``pygame._sdl2.controller``. Raises ImportError without pygame."""
    from pygame._sdl2 import controller

    return controller
