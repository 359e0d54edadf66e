"""The handles of a scene by name: what a task's methods get as ``h``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from manikin.errors import UnknownNameError
from manikin.scene.handles.base import Scope

__all__ = ["Handles"]


class Handles:
    """What ``Task.scene`` returns and the other methods get: derive a dataclass from it, so that editors complete and
    type checkers check the names::

        @dataclass
        class Things(Handles):
            robot: Robot
            cube: Part

    It can be read, extended and unpacked as a dictionary too, as a task derived from another does:
    ``{**super().scene(b), "lid": lid}``.
    """

    _scope: ClassVar[Scope]  # of an instance; set by the environment

    @property
    def n(self) -> int:
        """Rows in view: all during a step, those being started inside ``Task.start``."""
        return self._scope.n

    def keys(self) -> list[str]:
        """Names of the handles."""
        return [name for name in vars(self) if name != "_scope"]

    def __getitem__(self, name: str) -> Any:
        if name not in self.keys():
            raise UnknownNameError("handle of the scene", name, self.keys())
        return getattr(self, name)

    def __setitem__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @staticmethod
    def of(declared: Any, scope: Scope) -> Any:
        """What a task's ``scene`` returned, made to know its rows. A dictionary, or an object that is no ``Handles``
        and has no ``n``, becomes attributes."""
        if isinstance(declared, Handles):
            object.__setattr__(declared, "_scope", scope)  # a frozen dataclass does too
            return declared
        if hasattr(declared, "n"):
            return declared
        handles = Handles()
        handles.__dict__.update(declared if isinstance(declared, Mapping) else vars(declared), _scope=scope)
        return handles
