"""What a person holds: anything that says where to move and which buttons are down."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from manikin.errors import ConfigError, UnknownNameError

__all__ = ["BUTTONS", "SIDES", "STILL", "Device", "Hand", "HandOptions", "Motion", "ScriptedDevice", "square"]

BUTTONS = {
    "gripper": "close or open the gripper",
    "clutch": "while held, the arm stays where it is",
    "faster": "move faster",
    "slower": "move slower",
    "switch": "move the other arm, where there are several",
    "calibrate": "the hands are turned as the tools are, and the person looks forward",
    "save": "keep the episode and begin the next",
    "reset": "discard the episode and begin it again",
}
"""The buttons a device may have, and what they do."""

STILL = (0.0, 0.0, 0.0)


SIDES = ("left", "right")


@dataclass(frozen=True, kw_only=True, eq=False)
class Hand:
    """A person's hand, in axes that point forward, left and up.

    Attributes:
        pos: (3,) [m].
        quat: (4,) wxyz, how it is turned in these axes.
        held: whether it holds its tool, which then moves as it does.
        pinched: whether thumb and index finger of a hand that is seen touch.
        grip: how far the gripper is to be open, from -1 (closed) to 1.
        tips: (5, 3) [m] fingertips from the thumb on, from the wrist, in a frame whose z points out of the palm and
            whose x points along the fingers; None where they are not seen.
    """

    pos: np.ndarray
    quat: np.ndarray
    held: bool = False
    pinched: bool = False
    grip: float = 1.0
    tips: np.ndarray | None = None


@dataclass(frozen=True, kw_only=True)
class HandOptions:
    """How hands drive tools.

    Attributes:
        scale: how far a tool moves for each metre of its hand.
        turn: [rad] about the vertical, from the robot's forward to the person's.
        hand: which hand drives the tool of a robot that has one.
        masks: group of joints -> how freely they move, from 0 to 1, where not as they do by themselves.

    Raises:
        ConfigError: a number out of range.
        UnknownNameError: no such hand.
    """

    scale: float = 1.0
    turn: float = 0.0
    hand: str = "right"
    masks: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0.05 <= self.scale <= 5.0:
            raise ConfigError(f"scale of a hand's way must be from 0.05 to 5; got {self.scale}")
        if not math.isfinite(self.turn):
            raise ConfigError(f"turn must be a number; got {self.turn}")
        if self.hand not in SIDES:
            raise UnknownNameError("hand", self.hand, SIDES)
        for group, weight in self.masks.items():
            if not 0.0 <= weight <= 1.0:
                raise ConfigError(f"the mask of {group} must be from 0 to 1; got {weight}")


@dataclass(frozen=True, kw_only=True)
class Motion:
    """What a device says at one moment.

    Attributes:
        linear: (x, y, z) how fast the tool is to move, each from -1 to 1: forward, left and up for somebody who
            stands behind the robot, or along the axes of the controller's frame.
        angular: (x, y, z) how fast it is to turn about these axes, each from -1 to 1, mathematically positive.
        buttons: those that are down. What they do happens when they go down, save for the clutch.
        at: when this input arrived, in seconds of ``time.monotonic()``; None if it is not known.
        joints: [rad] where the robot's joints are to be, from a leader arm; None from others.
        grip: how far its gripper is open, from -1 (closed) to 1.
        hands: ``left`` and ``right``, those of a person that are seen.

    Raises:
        ConfigError: not three numbers from -1 to 1, or joints that are not finite.
        UnknownNameError: no such button.
    """

    linear: tuple[float, float, float] = STILL
    angular: tuple[float, float, float] = STILL
    buttons: Collection[str] = frozenset()
    at: float | None = None
    joints: tuple[float, ...] | None = None
    grip: float = 1.0
    hands: Mapping[str, Hand] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("linear", "angular"):
            value = getattr(self, name)
            if len(value) != 3 or not all(math.isfinite(v) and abs(v) <= 1 for v in value):
                raise ConfigError(f"{name} of a motion is three numbers from -1 to 1; got {value!r}")
        if not all(math.isfinite(v) for v in (*(self.joints or ()), self.grip)):
            raise ConfigError(f"joints and grip of a motion are finite; got {self.joints!r} and {self.grip!r}")
        for button in self.buttons:
            if button not in BUTTONS:
                raise UnknownNameError("button", button, BUTTONS)

    @property
    def moves(self) -> bool:
        """Whether it asks for anything at all."""
        held = any(hand.held or hand.pinched for hand in self.hands.values())
        return held or any(self.linear) or any(self.angular)


class Device(ABC):
    """An input device. Subclasses write :meth:`read`; a context manager.

    Attributes:
        name: how it is called.
        help: its keys and what they do, for people.
        over: whether nothing more will come; a script ends.
        joints: of how many joints it gives the places; 0 if it says how the tool is to move.
        hands: how hands drive tools, of a device that says where hands are.
    """

    name = "device"
    help: ClassVar[Iterable[tuple[str, str]]] = ()
    over = False
    joints = 0
    hands: HandOptions | None = None

    def start(self) -> None:  # noqa: B027  most devices need nothing
        """Open it. Called once, before the first :meth:`read`.

        Raises:
            ConfigError: it is not there, or a package that it needs.
        """

    @abstractmethod
    def read(self) -> Motion:
        """What it says now. Called once per control step; must not wait."""

    def close(self) -> None:  # noqa: B027
        """Let go of it. Idempotent."""

    def __enter__(self) -> Device:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ScriptedDevice(Device):
    """Plays motions from a list, or from a generator that looks at the environment, one per control step.

    Args:
        motions: what it says. After the last it says nothing, and is over.
    """

    name = "scripted"

    def __init__(self, motions: Iterable[Motion]) -> None:
        self._motions: Iterator[Motion] = iter(motions)

    def read(self) -> Motion:
        """The next motion; one without a time arrives now."""
        motion = next(self._motions, None)
        if motion is None:
            self.over = True
            return Motion()
        return motion if motion.at is not None else replace(motion, at=time.monotonic())


def square(side: int = 10, rounds: int = 1) -> Iterator[Motion]:
    """A script to try things with: squares of ``side`` steps, the gripper closed and opened, the episode saved."""
    for _ in range(rounds):
        for linear in ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.0, -1.0, 0.0), (0.0, 0.0, -1.0)):
            for step in range(side):
                yield Motion(linear=linear, buttons=("gripper",) if step == 0 else ())
        yield Motion(buttons=("save",))
        yield Motion()
