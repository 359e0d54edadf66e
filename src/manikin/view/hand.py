"""A session that a person drives: what the page shows and asks for, around the loop of ``teleop``."""

from __future__ import annotations

import math
import time
from typing import Any, ClassVar

import numpy as np

from manikin.errors import ConfigError
from manikin.teleop.keyboard import KEYS, Keyboard
from manikin.teleop.loop import BEHIND, ROW, Begun, Loop
from manikin.view.hold import HoldPolicy
from manikin.view.session import Session, Wishes

__all__ = ["HandSession"]

EVERYWHERE = (("enter", "keep the episode"), ("backspace", "discard, begin again"), ("H", "show or hide this"))


def _keys(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > len(KEYS) or not all(isinstance(v, str) for v in value):
        raise ConfigError(f"{name} must be a list of keys; got {value!r}")
    return tuple(value)


def _number(name: str, value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise ConfigError(f"{name} must be a number; got {value!r}")
    return float(value)


def _vector(name: str, value: Any) -> tuple[float, float, float]:
    if not isinstance(value, list) or len(value) != 3:
        raise ConfigError(f"{name} must be three numbers; got {value!r}")
    x, y, z = (_number(name, v) for v in value)
    return x, y, z


class HandSession(Session):
    """Shows a :class:`~manikin.teleop.loop.Loop` as a session does its episodes.

    It takes other wishes: ``keys`` (``held``: those that are down, ``order``: grows from message to message) and
    ``drag`` (``by``: steps at full speed along x, y, z) go to the keyboard at once; ``save`` keeps the episode, and
    ``reset`` discards it.

    Args:
        loop: with a device that has been started.
    """

    wishes: ClassVar[Wishes] = {
        "keys": {"held": _keys, "order": _number},
        "drag": {"by": _vector},
        "save": {},
        "reset": {},
    }

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        super().__init__(loop.env, HoldPolicy)  # which never acts: the loop does

    @property
    def actor(self) -> str:
        """Name of the device."""
        return self.loop.device.name

    def advance(self) -> float:
        """Do what was asked for and what is due; returns seconds until there is more to do."""
        news = self._obey()
        now = time.monotonic()
        if now >= self._due:
            news |= self._tick()
            self._due = max(self._due + 1 / self.env.control_hz, now - BEHIND)
        if news:
            self._publish()
        return max(0.0, min(0.02, self._due - time.monotonic()))

    # ---- inside ----------------------------------------------------------------------------------------------------

    def _take(self, wish: str, checked: dict[str, Any]) -> None:
        device = self.loop.device
        if wish not in ("keys", "drag"):
            super()._take(wish, checked)
        elif not isinstance(device, Keyboard):
            raise ConfigError(f"the {device.name} moves the arm; for keys and mouse use --device keyboard")
        elif wish == "keys":
            device.hold(checked["held"], checked["order"])
        else:
            device.drag(checked["by"])

    def _obey(self) -> bool:
        news = False
        while not self._wishes.empty():
            wish, _ = self._wishes.get()
            begun = self.loop.keep() if wish == "save" else self.loop.discard()
            if begun is not None:
                self._begun(ROW, *begun)
            news = True
        return news

    def _tick(self) -> bool:
        """One control step of the loop; whether there is something to publish."""
        before = self._hand()
        made = self.loop.tick()
        if isinstance(made, Begun):
            self._begun(ROW, *made)
        elif made is not None:
            self._stepped(np.ones(1, bool), *made)  # publishes
            return False
        return self._hand() != before

    def _reset(self, mask: np.ndarray, seeds: list[int] | None) -> None:
        self._begun(ROW, *self.loop.begin())

    def _hand(self) -> dict[str, Any]:
        loop = self.loop
        return {
            "device": loop.device.name,
            "phase": loop.phase,
            "number": loop.number,
            "saved": loop.saved,
            "discarded": loop.discarded,
            "said": loop.said,
            "speed": loop.pilot.speed,
            "closed": loop.pilot.closed,
            "limb": loop.pilot.limb,
            "clutch": "clutch" in loop.motion.buttons,
            "latency": loop.latency.mean,
            "latency_p95": loop.latency.p95,
            "out": None if loop.recorder is None else str(loop.recorder.writer.path),
        }

    def _extra(self) -> dict[str, Any]:
        keyboard = isinstance(self.loop.device, Keyboard)
        help_ = [*self.loop.device.help, *EVERYWHERE]
        return {"hand": {**self._hand(), "keys": list(KEYS) if keyboard else [], "mouse": keyboard, "help": help_}}
