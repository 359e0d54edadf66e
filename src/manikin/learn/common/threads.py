"""How many threads torch uses, so that its pool and that of the physics do not run at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from manikin.sim.device import processors

__all__ = ["CORES", "torch_threads"]

CORES = processors()
"""Threads that torch takes in an update."""


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Within this block torch computes with ``count`` threads.

    While the physics steps, all cores are its own: torch's small operations between take one thread. In an update
    torch takes all cores. Two pools whose threads wait in loops slow each other down: ``benchmarks/threads.py``.
    """
    before = torch.get_num_threads()
    if before != count:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        if before != count:
            torch.set_num_threads(before)
