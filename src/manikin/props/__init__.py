"""Things to manipulate, as shapes for ``b.part``; one file each. From files: ``prop_from_file`` for what ``manikin
object`` wrote, ``make_object`` for what it does, ``articulation_from_file`` for MJCF and URDF."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manikin.props.files.jointed import articulation_from_file
    from manikin.props.files.load import prop_from_file
    from manikin.props.files.make import make_object

__all__ = ["articulation_from_file", "make_object", "prop_from_file"]

# name -> the module it lives in; keep in step with the imports above, which are for type checkers
_LAZY = {"articulation_from_file": "jointed", "make_object": "make", "prop_from_file": "load"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(f"manikin.props.files.{_LAZY[name]}"), name)
        globals()[name] = value  # looked up once
        return value
    raise AttributeError(f"module 'manikin.props' has no attribute {name!r}; it has: {', '.join(__all__)}")
