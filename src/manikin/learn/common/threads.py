"""How many threads torch uses, so that its pool and that of the physics do not run at the same time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

__all__ = ["CORES", "torch_threads"]

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
"""Processor cores that this process may use."""


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
