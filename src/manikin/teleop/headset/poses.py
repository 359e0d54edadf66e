"""What a headset says of a person at one moment, checked: head, and hands that hold a controller or are seen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from manikin.errors import ConfigError, UnknownNameError

__all__ = ["BUTTONS_OF", "JOINTS", "TIPS", "SeenHand", "hand_said", "head_said"]

JOINTS = 25
"""Joints of a hand in the order of the WebXR Hand Input Module: wrist, thumb (4), then five of each other finger."""
TIPS = (4, 9, 14, 19, 24)
KNUCKLES = (6, 11, 16, 21)  # where index, middle, ring and little finger begin
FAR = 100.0  # [m] from where the headset began; what is further is a mistake

BUTTONS_OF = {
    "left": {"upper": "calibrate", "stick": "calibrate"},
    "right": {"lower": "save", "upper": "reset", "stick": "calibrate"},
}
"""What the buttons of a controller do: A and X are the lower ones, B and Y the upper. The page itself takes X."""

_PRESSED = ("lower", "upper", "stick")
_HOLD, _LET_GO = 0.6, 0.4  # share of the squeeze's way
_PINCH, _APART = 0.015, 0.03  # [m] between the tips of thumb and index finger
_OPEN = 0.08  # [m] between them where the gripper is open
_CURLED, _STRAIGHT = 1.0, 1.25  # fingertips' distance from the wrist, in the knuckles'


@dataclass(frozen=True, eq=False)
class SeenHand:
    """A hand, in the headset's axes: x right, y up, z backward.

    Attributes:
        pos: (3,) [m] of the grip, or of the wrist.
        quat: (4,) wxyz.
        trigger, squeeze: from 0 to 1, of a controller.
        pressed: its buttons that are down: ``lower``, ``upper``, ``stick``.
        joints: (25, 3) [m] of a hand that is seen; None with a controller.
    """

    pos: np.ndarray
    quat: np.ndarray
    trigger: float = 0.0
    squeeze: float = 0.0
    pressed: frozenset[str] = frozenset()
    joints: np.ndarray | None = None

    def holds(self, before: bool) -> bool:
        """Whether it holds its tool: the squeeze, or ring and little finger bent into the palm. What it did
        ``before`` goes on until it clearly does not."""
        if self.joints is None:
            return self.squeeze > (_LET_GO if before else _HOLD)
        away = np.linalg.norm(self.joints - self.joints[0], axis=1)
        bent = float((away[[TIPS[3], TIPS[4]]] / away[[KNUCKLES[2], KNUCKLES[3]]].clip(1e-3)).mean())
        return bent < (_STRAIGHT if before else _CURLED)

    def pinches(self, before: bool) -> bool:
        """Whether thumb and index finger of a hand that is seen touch."""
        return self.joints is not None and self.gap < (_APART if before else _PINCH)

    @property
    def gap(self) -> float:
        """[m] between the tips of thumb and index finger."""
        assert self.joints is not None
        return float(np.linalg.norm(self.joints[TIPS[0]] - self.joints[TIPS[1]]))

    @property
    def grip(self) -> float:
        """How far the gripper is to be open, from -1 to 1: by the trigger, or by thumb and index finger."""
        if self.joints is None:
            return 1.0 - 2.0 * self.trigger
        return 2.0 * min(1.0, max(0.0, (self.gap - _PINCH) / (_OPEN - _PINCH))) - 1.0


def _numbers(name: str, value: Any, count: int, most: float) -> np.ndarray:
    numbers = value if isinstance(value, list) and len(value) == count else (None,)
    if not all(
        isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v) and abs(v) <= most for v in numbers
    ):
        raise ConfigError(f"{name} must be {count} numbers of at most {most:g}; got {str(value)[:80]}")
    return np.array(numbers, float)


def _pose(name: str, value: Any) -> tuple[np.ndarray, np.ndarray]:
    numbers = _numbers(name, value, 7, FAR)
    size = float(np.linalg.norm(numbers[3:]))
    if not 0.5 < size < 2.0:
        raise ConfigError(f"{name} must end with a unit quaternion x, y, z, w; got {numbers[3:].tolist()}")
    return numbers[:3], numbers[[6, 3, 4, 5]] / size


def head_said(name: str, value: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Place (3,) and quaternion (4,) wxyz of a head, from ``[x, y, z, qx, qy, qz, qw]``; None where it is not known.

    Raises:
        ConfigError: it is none.
    """
    return None if value is None else _pose(name, value)


def hand_said(name: str, value: Any) -> SeenHand | None:
    """A hand, from ``pose`` as :func:`head_said` has it, with ``trigger``, ``squeeze`` and ``pressed`` of a controller
    or the ``joints`` (75 numbers) of a hand that is seen; None where it is not.

    Raises:
        ConfigError: it is none.
        UnknownNameError: no such button or entry.
    """
    if value is None:
        return None
    if not isinstance(value, dict):
        raise ConfigError(f"{name} must be an object with a pose; got {str(value)[:80]}")
    known = ("pose", "trigger", "squeeze", "pressed", "joints")
    for key in value:
        if key not in known:
            raise UnknownNameError(f"entry of a hand ({name})", key, known)
    pos, quat = _pose(f"{name}.pose", value.get("pose"))
    pressed = value.get("pressed", [])
    if not isinstance(pressed, list) or not all(isinstance(v, str) for v in pressed):
        raise ConfigError(f"{name}.pressed must be a list of buttons; got {str(pressed)[:80]}")
    for button in pressed:
        if button not in _PRESSED:
            raise UnknownNameError("button of a controller", button, _PRESSED)
    trigger, squeeze = (
        float(np.clip(_numbers(f"{name}.{what}", [value.get(what, 0.0)], 1, 10.0)[0], 0.0, 1.0))
        for what in ("trigger", "squeeze")
    )
    joints = value.get("joints")
    points = None if joints is None else _numbers(f"{name}.joints", joints, 3 * JOINTS, FAR).reshape(JOINTS, 3)
    return SeenHand(pos, quat, trigger, squeeze, frozenset(pressed), points)
