"""Private parts of Warp and MuJoCo Warp: the native library, and what version 4.0 leaves empty or does wrong."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

__all__ = ["fill_empty_sorts", "peak_bytes", "regularize_rows_alone", "trim_graph_memory"]


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


def regularize_rows_alone() -> None:
    """Have the discrete integrator's regularization look at the rows of constraints that there is room for.

    Version 4.0 looks at the padding behind them, too, where more are needed than there is room for. Kinds and numbers
    have no padding, so it reads past their end: another environment's, or memory that is not its own.
    """
    from mujoco_warp._src import constraint

    whole = constraint.regularize_constraint

    @functools.wraps(whole)
    def alone(m: Any, d: Any) -> None:
        data = copy.copy(d)
        data.efc = copy.copy(d.efc)
        data.efc.D = d.efc.D[:, : d.efc.type.shape[1]]
        whole(m, data)

    constraint.regularize_constraint = alone
