"""What a robot must be for the loop: the methods of LeRobot's ``Robot`` that it uses. Any object that has them will do.

Source: ``lerobot/robots/robot.py`` of LeRobot 0.4.4 and 0.6.1, whose names and meanings these are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

__all__ = ["RobotInterface"]


@runtime_checkable
class RobotInterface(Protocol):
    """A robot as LeRobot has it.

    ``observation_features`` has ``NAME.pos`` (float) for each motor and ``CAMERA`` ((height, width, 3)) for each
    camera; ``action_features`` has ``NAME.pos`` for each motor. Body motors are in degrees, or in percent of their
    calibrated range from -100 to 100; the gripper is in percent from 0 (closed) to 100.
    """

    @property
    def observation_features(self) -> Mapping[str, Any]:
        """What :meth:`get_observation` returns, by name."""

    @property
    def action_features(self) -> Mapping[str, Any]:
        """What :meth:`send_action` takes, by name."""

    @property
    def is_calibrated(self) -> bool:
        """Whether positions mean what they say."""

    def connect(self, calibrate: bool = True) -> None:
        """Open it and switch its motors on."""

    def get_observation(self) -> Mapping[str, Any]:
        """Where its joints are, and its newest pictures (height, width, 3) uint8."""

    def send_action(self, action: Mapping[str, Any]) -> Mapping[str, Any]:
        """Tell its motors where to go; returns what was sent."""

    def disconnect(self) -> None:
        """Close it. LeRobot's followers switch their motors off, unless their configuration says otherwise."""
