"""What becomes of simulations in a forked process. Threads are not forked: whoever asks a batch of the parent's to step
there, or frees it, waits for threads that will never answer."""

from __future__ import annotations

import functools
import os
from typing import Any
from weakref import WeakSet

import torch

from manikin.compat.mujoco import leak

__all__ = ["abandon_when_forked"]

_worlds: WeakSet[Any] = WeakSet()


def abandon_when_forked(world: Any) -> None:
    """In a process forked from this one the world's batch ``_b`` is never used again, nor freed, and torch uses one
    thread, as OpenMP's are not there either."""
    _worlds.add(world)
    _register()


@functools.cache
def _register() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_in_child)


def _in_child() -> None:
    for world in list(_worlds):
        leak(world.__dict__.pop("_b"))
        world.close()
    _worlds.clear()
    torch.set_num_threads(1)
