"""What makes a step cheap and leaves a task's formulas as they are: values that are computed once per step."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Generic, TypeVar, overload
from weakref import WeakMethod, ref

import torch
from torch import Tensor

__all__ = ["ONE", "ZERO", "constant", "per_step"]

T = TypeVar("T")
ZERO, ONE = torch.tensor(0.0), torch.tensor(1.0)  # a Python number in torch.where costs a call of its own


@lru_cache(maxsize=256)
def constant(value: float) -> Tensor:
    """The number as a tensor, made once: in arithmetic it costs half of what a Python number does, on any device."""
    return torch.tensor(value, device="cpu")


class per_step(Generic[T]):
    """A method of a task that ``evaluate``, ``observe`` and ``reward`` share, computed once per step::

        @per_step
        def tcp_to_cube(self, h: Handles) -> Tensor:
            return h.cube.pos - h.robot.tcp_pos

    It may use the state of the world and variables that only ``start`` sets. In ``start`` it is computed on every call.
    """

    def __init__(self, function: Callable[..., T]) -> None:
        # a task that keeps this of its own method can be freed as soon as nobody needs it
        self._find = WeakMethod(function) if inspect.ismethod(function) else lambda: function
        self.__doc__ = function.__doc__

    @overload
    def __get__(self, task: None, owner: type) -> per_step[T]: ...
    @overload
    def __get__(self, task: Any, owner: type) -> Callable[[Any], T]: ...
    def __get__(self, task: Any, owner: type) -> Any:
        return self if task is None else partial(self._value, task)

    def __call__(self, h: Any) -> T:
        """The value, of a function of the handles alone."""
        return self._value(None, h)

    def _value(self, task: Any, h: Any) -> T:
        scope = h.robot.scope
        world = scope.world
        if scope.rows is not None or scope.mask is not None:  # rows are being started, or a few are looked at
            return self._compute(task, h)
        key = (self, id(h))  # a scene may have several drawers with handles of their own
        found = scope.memo.get(key)
        if found is None or found[0] is not world or found[1] != world.version or found[2]() is not h:
            # the version of before: computing may not change the state
            found = scope.memo[key] = world, world.version, ref(h), self._compute(task, h)
        value: T = found[3]
        return value

    def _compute(self, task: Any, h: Any) -> T:
        function: Any = self._find()
        assert function is not None
        value: T = function(h) if task is None else function(task, h)
        return value


OncePerStep = per_step  # its name in 0.1, for moved.py
