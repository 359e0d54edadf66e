"""Grippers by name, one file each. A file is imported when its gripper is first asked for."""

from __future__ import annotations

import importlib

from manikin.assets import packages
from manikin.errors import ConfigError, UnknownNameError
from manikin.spec.robot import GripperSpec

__all__ = ["gripper", "grippers", "register"]

_NAMES = (
    "eraser",
    "fetch_gripper",
    "fetch_gripper_mshab",
    "google_gripper",
    "google_gripper_rt1",
    "jaco_three_finger",
    "kinova_kg3",
    "koch_jaw",
    "panda_hand",
    "rethink",
    "robotiq_2f140",
    "robotiq_2f85",
    "robotiq_three_finger",
    "so100_jaw",
    "so101_jaw",
    "spot_jaw",
    "stick",
    "stretch_gripper",
    "tiago_gripper",
    "umi",
    "viperx_fingers",
    "widowx_bridge_fingers",
    "widowx_fingers",
    "xarm_gripper",
)
_own: dict[str, GripperSpec] = {}  # registered from outside


def grippers() -> tuple[str, ...]:
    """Names of all grippers; those of installed packages and the registered ones last."""
    return tuple(dict.fromkeys((*_NAMES, *packages.offered("gripper"), *_own)))


def register(spec: GripperSpec) -> GripperSpec:
    """Make a gripper of your own known by its name.

    Raises:
        ConfigError: for a name that is built in or cannot stand in a robot word.
        TypeError: for what is no gripper.
    """
    if not isinstance(spec, GripperSpec):
        raise TypeError(f"a gripper must be a GripperSpec, such as gripper_from_file(...) returns, not {spec!r:.80}")
    if spec.name in (*_NAMES, "none") or not spec.name.replace("_", "").isalnum():
        raise ConfigError(f"a gripper of your own cannot be called {spec.name!r}: letters, digits and _, not {_NAMES}")
    _own[spec.name] = spec
    return spec


def forget() -> None:
    """Forget the grippers that :func:`register` took, as in a new process."""
    _own.clear()


def gripper(name: str) -> GripperSpec:
    """The gripper called ``name``; a robot word may also say ``none``, for a bare flange.

    Raises :class:`UnknownNameError`, which lists the names, and :class:`ConfigError` where the package that offers it
    cannot be loaded.
    """
    if name in _own:
        return _own[name]
    if name not in _NAMES and name in packages.offered("gripper"):
        return _of_package(name)
    if name not in _NAMES:
        raise UnknownNameError("gripper", name, (*grippers(), "none"))
    return importlib.import_module(f"manikin.grippers.{name}").GRIPPER


def _of_package(name: str) -> GripperSpec:
    spec = packages.load("gripper", name)
    if not isinstance(spec, GripperSpec) or spec.name != name:
        raise ConfigError(f"a package offers the gripper {name!r}, but what it has there is {spec!r:.80}")
    return register(spec)
