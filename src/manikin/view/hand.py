"""A session that a person drives: what the page shows and asks for, around the loop of ``teleop``."""

from __future__ import annotations

import copy
import math
import threading
import time
from typing import Any, ClassVar

import mujoco
import numpy as np

from manikin.errors import ConfigError
from manikin.teleop.keyboard import KEYS, Keyboard
from manikin.teleop.loop import BEHIND, ROW, Begun, TeleopLoop
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
    """Shows a :class:`~manikin.teleop.loop.TeleopLoop` as a session does its episodes.

    It takes other wishes: ``keys`` (``held``: those that are down, ``order``: grows from message to message) and
    ``drag`` (``by``: steps at full speed along x, y, z) go to the keyboard at once; ``save`` keeps the episode, and
    ``reset`` discards it.

    The loop runs in a thread of its own, from the first :meth:`advance` on, so that no action waits for a picture:
    whoever makes pictures is shown a copy of the state as it was published last.

    Args:
        loop: with a device that has been started.
    """

    wishes: ClassVar[Wishes] = {
        "keys": {"held": _keys, "order": _number},
        "drag": {"by": _vector},
        "save": {},
        "reset": {},
    }

    def __init__(self, loop: TeleopLoop) -> None:
        self.loop = loop
        self._thread = threading.Thread(target=self._drive, daemon=True)
        self._over = False
        self._error: BaseException | None = None
        self._shown: tuple[mujoco.MjModel, mujoco.MjData]
        super().__init__(loop.env, HoldPolicy)  # which never acts: the loop does

    @property
    def actor(self) -> str:
        """Name of the device."""
        return self.loop.device.name

    def advance(self) -> float:
        """See that the loop runs; returns seconds until it is worth asking again. Raises what the loop has raised."""
        if self._error is not None:
            raise self._error
        if self._thread.ident is None:
            self._thread.start()
        return 0.01

    def look(self, row: int | None = None) -> tuple[mujoco.MjModel, mujoco.MjData]:
        """Model and data as they were published last. From any thread."""
        return self._shown

    def close(self) -> None:
        """Stop the loop's thread; the loop itself stays open. Idempotent."""
        self._over = True
        if self._thread.ident is not None:
            self._thread.join()

    # ---- inside ----------------------------------------------------------------------------------------------------

    def _drive(self) -> None:
        try:
            while not (self._over or self.loop.device.over):
                news = self.obey()
                now = time.monotonic()
                if now >= self._due:
                    news |= self._tick()
                    self._due = max(self._due + 1 / self.env.control_hz, now - BEHIND)
                if news:
                    self.publish()
                time.sleep(max(0.0, min(0.01, self._due - time.monotonic())))
        except BaseException as error:  # told to whoever calls advance()
            self._error = error

    def publish(self) -> None:
        model, data = super().look()
        self.show(model, copy.copy(data))
        super().publish()

    def show(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """From now on this is what :meth:`look` gives. ``data`` is a copy."""
        self._shown = model, data

    def _take(self, wish: str, checked: dict[str, Any]) -> None:
        device = self.loop.device
        if wish not in ("keys", "drag"):
            super()._take(wish, checked)
        elif not isinstance(device, Keyboard):
            raise ConfigError(
                f"{device.name} drives the arm, so the page cannot; restart with --device keyboard to use keys and "
                "mouse"
            )
        elif wish == "keys":
            device.hold(checked["held"], checked["order"])
        else:
            device.drag(checked["by"])

    def obey(self) -> bool:
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
