"""Private parts of Warp and MuJoCo Warp: the native library, and where something of manikin's has to come between."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["after_constraints", "fill_empty_sorts", "peak_bytes", "trim_graph_memory"]


def native_library() -> Any:
    import warp

    return warp._src.context.runtime.core


def trim_graph_memory(ordinal: int) -> None:
    """Give back what GPU number ``ordinal`` reserves for recorded graphs that are gone."""
    native_library().wp_cuda_device_graph_mem_trim(ordinal)


def peak_bytes() -> int:
    """The most bytes that Warp had allocated at once, inside a ``warp.ScopedMemoryTracker`` since its ``clear()``."""
    return int(native_library().wp_alloc_tracker_get_peak_bytes())


def fill_empty_sorts(*, contacts: Callable[[Any, Any], None], constraints: Callable[[Any, Any], None]) -> None:
    """Put functions of MuJoCo Warp's model and data where it is to sort contacts and rows of constraints, if its own
    are empty, as in 4.0."""
    from mujoco_warp._src import collision_driver, constraint

    for module, name, sort in (
        (collision_driver, "_sort_contacts", contacts),
        (constraint, "_sort_constraints", constraints),
    ):
        if not getattr(module, name).__code__.co_names:  # it calls nothing
            setattr(module, name, sort)


def after_constraints(function: Callable[[Any, Any], None]) -> None:
    """Have a function of MuJoCo Warp's model and data called whenever its rows of constraints have been made."""
    from mujoco_warp._src import constraint

    make = constraint.make_constraint

    @functools.wraps(make)
    def made(m: Any, d: Any) -> None:
        make(m, d)
        function(m, d)

    constraint.make_constraint = made
