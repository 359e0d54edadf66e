"""Rows of constraints that there is no room for are nobody's to read.

MuJoCo Warp 4.0 counts them, and some of its kernels go up to that count: regularization and the free bodies of the
discrete integrator read past the end of their arrays, which is a crash now and then. Here the count stops at the room,
and how many were wanted stands beside it.
"""

from __future__ import annotations

from typing import Any

import warp as wp

from manikin.compat.warp import after_constraints
from manikin.sim.warp.library import modules

__all__ = ["rows_wanted"]

modules()  # kernels are kept in manikin's folder
wp.set_module_options({"enable_backward": False})


@wp.kernel
def _keep_to_room(count: wp.array[int], wanted: wp.array[int], room: int) -> None:
    i = wp.tid()
    wanted[i] = count[i]
    count[i] = wp.min(count[i], room)


def rows_wanted(d: Any) -> Any:
    """An array (worlds,) of int32 in which it is counted from now on, and of which MuJoCo Warp's data ``d`` knows."""
    d.rows_wanted = wp.zeros(d.nworld, dtype=int)
    return d.rows_wanted


def _after(m: Any, d: Any) -> None:
    if hasattr(d, "rows_wanted"):  # a world of manikin's
        wp.launch(_keep_to_room, d.nworld, [d.nefc, d.rows_wanted, d.njmax])


after_constraints(_after)
