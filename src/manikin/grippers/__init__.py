"""Grippers by name, one file each. A file is imported when its gripper is first asked for."""

from __future__ import annotations

import importlib

from manikin.errors import UnknownNameError
from manikin.spec.robot import GripperSpec

__all__ = ["gripper", "grippers"]

_NAMES = (
    "eraser",
    "fetch_gripper",
    "google_gripper",
    "jaco_three_finger",
    "koch_jaw",
    "panda_hand",
    "rethink",
    "robotiq_2f140",
    "robotiq_2f85",
    "robotiq_three_finger",
    "so101_jaw",
    "umi",
    "viperx_fingers",
    "widowx_fingers",
    "xarm_gripper",
)


def grippers() -> tuple[str, ...]:
    """Names of all grippers, sorted."""
    return _NAMES


def gripper(name: str) -> GripperSpec:
    """The gripper called ``name``; a robot word may also say ``none``, for a bare flange.

    Raises :class:`UnknownNameError`, which lists the names.
    """
    if name not in _NAMES:
        raise UnknownNameError("gripper", name, (*_NAMES, "none"))
    return importlib.import_module(f"manikin.grippers.{name}").GRIPPER
