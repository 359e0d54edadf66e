"""How many threads torch uses, so that its pool and that of the physics do not run at the same time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from manikin.errors import ConfigError

__all__ = ["CORES", "CORES_VARIABLE", "torch_threads"]

CORES_VARIABLE = "MANIKIN_CORES"


def _cores() -> int:
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    asked = os.environ.get(CORES_VARIABLE, "")
    if asked and not (asked.isdecimal() and int(asked) >= 1):
        raise ConfigError(f"{CORES_VARIABLE} must be a whole number of cores, 1 or more; got {asked!r}")
    return min(here, int(asked)) if asked else here


CORES = _cores()
"""Threads that torch takes in an update: the cores that this process may use, or fewer by the environment variable
``MANIKIN_CORES``. Where other work runs beside it, one thread is several times faster than two that wait for each
other."""


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Within this block torch computes with ``count`` threads.

    While the physics steps, all cores are its own: torch's small operations between take one thread. In an update
    torch takes all cores. Two pools that wait for each other in spinning loops cost a factor of three to five.
    """
    before = torch.get_num_threads()
    if before != count:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        if before != count:
            torch.set_num_threads(before)
