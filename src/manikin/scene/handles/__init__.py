"""Typed handles: what a task reads and writes. Made by :class:`~manikin.scene.builder.SceneBuilder`, bound to a World.

Every value has a leading row dimension ``h.n``: all rows during a step, only the rows being started inside
``Task.start``. Values read are borrowed (valid until the next step); clone to keep.
"""

from __future__ import annotations

from manikin.moved import old_names
from manikin.scene.handles.base import Handle, Scope, Variable
from manikin.scene.handles.part import Marker, Part
from manikin.scene.handles.robot import Robot

__all__ = ["Handle", "Marker", "Part", "Robot", "Scope", "Variable"]

__getattr__ = old_names(__name__)  # of View
