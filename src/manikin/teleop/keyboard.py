"""Keys and mouse, as the browser's page reports them."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection
from typing import Any

from manikin.errors import ConfigError, UnknownNameError
from manikin.teleop.device import STILL, Device, Motion

__all__ = ["KEYS", "Keyboard"]

# the browser's code of a key (its place on the keyboard, whatever is printed on it) -> what it does
KEYS: dict[str, tuple[str, int, float] | str] = {
    "KeyW": ("linear", 0, 1.0),
    "KeyS": ("linear", 0, -1.0),
    "KeyA": ("linear", 1, 1.0),
    "KeyD": ("linear", 1, -1.0),
    "KeyR": ("linear", 2, 1.0),
    "KeyF": ("linear", 2, -1.0),
    "KeyZ": ("angular", 0, 1.0),
    "KeyX": ("angular", 0, -1.0),
    "KeyT": ("angular", 1, 1.0),
    "KeyG": ("angular", 1, -1.0),
    "KeyC": ("angular", 2, 1.0),
    "KeyV": ("angular", 2, -1.0),
    "Space": "gripper",
    "ShiftLeft": "clutch",
    "ShiftRight": "clutch",
    "Equal": "faster",
    "Minus": "slower",
    "KeyN": "switch",
}

LEASE = 0.5  # without word from the page for this long, no key is down [s]
STORED = 3.0  # steps of movement by mouse that are kept at most


class Keyboard(Device):
    """Told by the page which keys are down. A key that is tapped between two control steps counts for one.

    Args:
        clock: gives the time [s].
    """

    name = "keyboard"
    help = (
        ("W S", "forward, back"),
        ("A D", "left, right"),
        ("R F", "up, down"),
        ("Z X", "roll"),
        ("T G", "pitch"),
        ("C V", "yaw"),
        ("space", "gripper"),
        ("shift", "clutch: hold still"),
        ("+ -", "faster, slower"),
        ("N", "other arm"),
        ("right drag", "move level; with shift up and down"),
    )

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._held: frozenset[str] = frozenset()
        self._tapped: frozenset[str] = frozenset()
        self._pulled = STILL
        self._order, self._heard = -math.inf, -math.inf
        self._at: float | None = None

    def hold(self, keys: Collection[str], order: float) -> None:
        """These keys are down now. From any thread.

        Args:
            keys: their codes.
            order: grows from message to message; older ones that come late are left out.

        Raises:
            UnknownNameError: a key that does nothing.
            ConfigError: ``order`` is not a number.
        """
        for key in keys:
            if key not in KEYS:
                raise UnknownNameError("key", key, KEYS)
        if not math.isfinite(order):
            raise ConfigError(f"order must be a number; got {order!r}")
        with self._lock:
            if order < self._order:
                return
            held, self._order, self._heard = frozenset(keys), order, self._clock()
            if held != self._held:
                self._at = self._heard
            self._tapped |= held - self._held
            self._held = held

    def drag(self, linear: tuple[float, float, float]) -> None:
        """The mouse has moved by this much: 1 is a whole control step at full speed. From any thread."""
        with self._lock:
            x, y, z = (min(STORED, max(-STORED, p + v)) for p, v in zip(self._pulled, linear, strict=True))
            self._pulled, self._at = (x, y, z), self._clock()

    def read(self) -> Motion:
        """What the keys and the mouse say together."""
        with self._lock:
            if self._clock() - self._heard > LEASE:
                self._held = frozenset()
            down, self._tapped = self._held | self._tapped, frozenset()
            ways: dict[str, list[float]] = {"linear": [0.0] * 3, "angular": [0.0] * 3}
            buttons = set()
            for key in down:
                does = KEYS[key]
                if isinstance(does, str):
                    buttons.add(does)
                else:
                    ways[does[0]][does[1]] += does[2]
            taken = _unit(self._pulled)
            self._pulled = _difference(self._pulled, taken)
            at = self._at
        linear = _unit([a + b for a, b in zip(ways["linear"], taken, strict=True)])
        return Motion(linear=linear, angular=_unit(ways["angular"]), buttons=frozenset(buttons), at=at)


def _unit(values: Any) -> tuple[float, float, float]:
    x, y, z = (min(1.0, max(-1.0, float(v))) for v in values)
    return x, y, z


def _difference(a: tuple[float, float, float], b: tuple[float, float, float]) -> tuple[float, float, float]:
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]
