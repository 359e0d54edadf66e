"""Gamepads with two sticks, through pygame, which knows the layouts of some hundred models."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Any

from manikin.compat.pygame import load_controllers
from manikin.errors import ConfigError
from manikin.teleop.device import Device, Motion

__all__ = ["AXES", "Gamepad", "gamepad_motion"]

AXES = ("leftx", "lefty", "rightx", "righty", "triggerleft", "triggerright")
PRESSED = {
    "a": "gripper",
    "b": "clutch",
    "x": "slower",
    "y": "faster",
    "start": "save",
    "back": "reset",
    "rightstick": "switch",
}
"""Button of the gamepad -> what it does."""

DEAD = 0.15  # share of a stick's way that counts as nothing
FULL = 32767  # what SDL gives at the end of an axis


def gamepad_motion(axes: Mapping[str, float], down: Collection[str], *, at: float | None = None) -> Motion:
    """What a gamepad asks for.

    Args:
        axes: names of :data:`AXES` -> sticks from -1 to 1 (right and towards the person are positive), triggers from
            0 to 1.
        down: the buttons that are pressed, by SDL's names.
        at: when.
    """
    a = {name: _live(axes.get(name, 0.0)) for name in AXES}
    roll = ("rightshoulder" in down) - ("leftshoulder" in down)
    return Motion(
        linear=(-a["lefty"] + 0.0, -a["leftx"] + 0.0, a["triggerright"] - a["triggerleft"]),
        angular=(float(roll), -a["righty"] + 0.0, -a["rightx"] + 0.0),
        buttons={PRESSED[name] for name in down if name in PRESSED},
        at=at,
    )


def _live(value: float) -> float:
    """Past the dead middle, again from zero to one."""
    size = min(1.0, max(0.0, (abs(value) - DEAD) / (1 - DEAD)))
    return size if value > 0 else -size


class Gamepad(Device):
    """The first gamepad that is plugged in. Needs pygame: ``pip install 'manikin[teleop]'``."""

    name = "gamepad"
    help = (
        ("left stick", "forward, back, left, right"),
        ("triggers", "right up, left down"),
        ("right stick", "pitch, yaw"),
        ("shoulders", "roll"),
        ("A", "gripper"),
        ("B", "clutch: hold still"),
        ("Y X", "faster, slower"),
        ("right stick pressed", "other arm"),
        ("start", "keep the episode"),
        ("back", "discard, and begin again"),
    )

    def __init__(self) -> None:
        self._pygame: Any = None
        self._pad: Any = None
        self._last: Motion | None = None

    def start(self) -> None:
        """Open it.

        Raises:
            ConfigError: pygame is not installed, or none is plugged in.
        """
        try:
            import pygame

            controller = load_controllers()
        except ImportError as error:
            raise ConfigError(
                f"a gamepad needs pygame ({error}): pip install 'manikin[teleop]', or use --device keyboard"
            ) from error
        pygame.init()
        controller.init()
        known = [i for i in range(controller.get_count()) if controller.is_controller(i)]
        if not known:
            raise ConfigError("no gamepad found; plug in one that SDL supports, or use --device keyboard")
        self._pygame, self._pad = pygame, controller.Controller(known[0])

    def read(self) -> Motion:
        """Where its sticks are now."""
        pygame, pad = self._pygame, self._pad
        pygame.event.pump()
        axes = {name: pad.get_axis(getattr(pygame, f"CONTROLLER_AXIS_{name.upper()}")) / FULL for name in AXES}
        names = (*PRESSED, "leftshoulder", "rightshoulder")
        down = {name for name in names if pad.get_button(getattr(pygame, f"CONTROLLER_BUTTON_{name.upper()}"))}
        motion = gamepad_motion(axes, down)
        if self._last is None or motion != self._last:
            self._last, self._at = motion, time.monotonic()
        return gamepad_motion(axes, down, at=self._at)

    def close(self) -> None:
        """Let go of it."""
        if self._pygame is not None:
            self._pad = None
            self._pygame.quit()
            self._pygame = None
