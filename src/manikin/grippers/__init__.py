"""Grippers by name, one file each. A file is imported when its gripper is first asked for."""

from __future__ import annotations

import importlib

from manikin.errors import UnknownNameError
from manikin.spec.robot import GripperSpec

__all__ = ["gripper", "grippers"]

_NAMES = ("panda_hand", "robotiq_2f85", "so101_jaw", "xarm_gripper")


def grippers() -> tuple[str, ...]:
    """Names of all grippers, sorted."""
    return _NAMES


def gripper(name: str) -> GripperSpec:
    """The gripper called ``name``. Raises :class:`UnknownNameError`, which lists the names."""
    if name not in _NAMES:
        raise UnknownNameError("gripper", name, _NAMES)
    return importlib.import_module(f"manikin.grippers.{name}").GRIPPER
