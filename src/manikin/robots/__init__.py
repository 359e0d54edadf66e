"""Robot arms by name, one file each, and the words that name a whole robot.

A robot word is ``arm``, ``arm+gripper``, ``arm+none``, or one of these with ``:menagerie`` for the maker's meshes:
``panda``, ``panda:menagerie``, ``ur5e``, ``panda+robotiq_2f85``, ``ur5e+panda_hand:menagerie``.
"""

from __future__ import annotations

import importlib
from typing import NamedTuple

from manikin.errors import UnknownNameError
from manikin.grippers import gripper
from manikin.spec.robot import ArmSpec, GripperSpec

__all__ = ["Robot", "arm", "arms", "robot"]

_NAMES = ("panda", "so101", "ur5e", "xarm7")
_MODELS = ("builtin", "menagerie")


class Robot(NamedTuple):
    """What a robot word means; the arguments of :func:`manikin.scene.robot.assemble`."""

    arm: ArmSpec
    gripper: GripperSpec | None
    menagerie: bool


def arms() -> tuple[str, ...]:
    """Names of all arms, sorted."""
    return _NAMES


def arm(name: str) -> ArmSpec:
    """The arm called ``name``. Raises :class:`UnknownNameError`, which lists the names."""
    if name not in _NAMES:
        raise UnknownNameError("robot", name, _NAMES)
    return importlib.import_module(f"manikin.robots.{name}").ARM


def robot(word: str) -> Robot:
    """Read a robot word. Without ``+gripper`` an arm has its default gripper; without ``:model`` it is built in.

    Raises :class:`UnknownNameError` for an unknown arm, gripper or model.
    """
    names, _, model = word.partition(":")
    if ":" in word and model not in _MODELS:
        raise UnknownNameError("robot model", model, _MODELS, hint=f"(in {word!r})")
    arm_name, plus, gripper_name = names.partition("+")
    spec = arm(arm_name)
    chosen = gripper_name if plus else spec.gripper
    return Robot(spec, None if chosen in (None, "none") else gripper(chosen), model == "menagerie")
