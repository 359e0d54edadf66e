"""manikin: robot manipulation from an idea to a number that can be trusted.

Importing manikin makes its tasks known to Gymnasium and loads neither torch nor MuJoCo; those come with the first
name that needs them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from manikin._version import __version__
from manikin.env.registry import register_gymnasium

if TYPE_CHECKING:
    from manikin.env.env import Env
    from manikin.env.registry import make, register
    from manikin.env.task import Task
    from manikin.errors import ManikinError
    from manikin.policy.api import Policy
    from manikin.spec.budget import Budget
    from manikin.spec.robot import ArmSpec, GripperSpec

__all__ = [
    "ArmSpec",
    "Budget",
    "Env",
    "GripperSpec",
    "ManikinError",
    "Policy",
    "Task",
    "__version__",
    "make",
    "register",
]

# name -> the module it lives in; keep in step with the imports above, which are for type checkers
_LAZY = {
    "ArmSpec": "manikin.spec.robot",
    "Budget": "manikin.spec.budget",
    "Env": "manikin.env.env",
    "GripperSpec": "manikin.spec.robot",
    "ManikinError": "manikin.errors",
    "Policy": "manikin.policy.api",
    "Task": "manikin.env.task",
    "make": "manikin.env.registry",
    "register": "manikin.env.registry",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(_LAZY[name]), name)
        globals()[name] = value  # looked up once
        return value
    raise AttributeError(f"module 'manikin' has no attribute {name!r}; it has: {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


register_gymnasium()
