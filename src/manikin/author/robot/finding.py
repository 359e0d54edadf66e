"""A finding of ``manikin robot-check``: what is wrong, and in which line."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from manikin.robots import module_of
from manikin.spec.robot import GripperSpec, RobotFile, RobotSpec

__all__ = ["Finding", "place"]


@dataclass(frozen=True)
class Finding:
    """What is wrong, where, and what to write.

    Attributes:
        lint: inertia, limits, pose, actuators, collision, tcp, keyframe, gains, feet, base, coupling, touch; model when
            it cannot be built.
        error: False is a warning: it works, and may still be meant otherwise.
        what: what is wrong, in words, with figures.
        fix: what to write.
        where: file and line, as ``arm.urdf:12``; empty when unknown.
    """

    lint: str
    error: bool
    what: str
    fix: str
    where: str = ""


def place(arm: RobotSpec | GripperSpec, needle: str) -> str:
    """``file:line`` of the first line of the spec's source that has ``needle`` in quotes, or as it is."""
    if isinstance(arm.menagerie, RobotFile):
        path = Path(arm.menagerie.folder) / arm.menagerie.file
    else:
        module = module_of(arm.name) if isinstance(arm, RobotSpec) else f"manikin.grippers.{arm.name}"
        if not module or not find_spec(module):  # a spec made elsewhere
            return ""
        path = Path(inspect.getfile(import_module(module)))
    lines = path.read_text().splitlines()
    for pattern in (rf"[\"']{re.escape(needle)}[\"']", re.escape(needle)):
        for number, line in enumerate(lines, 1):
            if re.search(pattern, line):
                return f"{path.name}:{number}"
    return path.name
