"""A function recorded as a CUDA graph: hundreds of calls become one."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from manikin.sim.warp.world import WarpWorld

__all__ = ["Graph", "owned"]


def owned(tree: Any) -> Any:
    """Copies of the tensors in nested dicts and tuples."""
    if isinstance(tree, Mapping):
        return {k: owned(v) for k, v in tree.items()}
    if isinstance(tree, tuple):
        return tuple(owned(v) for v in tree)
    return tree.clone() if isinstance(tree, Tensor) else tree


class Graph:
    """A function without arguments that reads and writes tensors which stay where they are.

    On a GPU the first call runs as it is, so that kernels are loaded and constants uploaded; the second is recorded,
    with torch and Warp on one stream, and replayed from then on. It is recorded anew when the world replaces one of its
    arrays. Elsewhere, or with ``record=False``, every call runs as it is.

    Args:
        function: must not wait for the device. What it returns is owned by the caller.
        world: whose arrays it uses.
        record: whether to record on a GPU.
    """

    def __init__(self, function: Callable[[], Any], world: WarpWorld, *, record: bool) -> None:
        self._function, self._world = function, world
        self._record = record and world.device.type == "cuda"
        self._layout = world.layout
        self.forget()

    def forget(self) -> None:
        """Record anew: what the function depends on besides tensors has changed."""
        self._graph: torch.cuda.CUDAGraph | None = None
        self._held: list[Any] = []  # what Warp needs for it
        self._out: Any = None
        self._calls = 0

    def __call__(self) -> Any:
        if not self._record:
            return self._function()
        world = self._world
        if self._graph is not None and self._layout != world.layout:
            self.forget()
        with torch.cuda.device(world.device):
            if self._calls == 0:
                self._calls, self._layout = 1, world.layout
                out = self._function()
                if self._layout != world.layout:  # it was this call that replaced arrays
                    self._calls = 0
                return out
            if self._graph is None:
                self._capture()
            assert self._graph is not None
            self._graph.replay()
        world.version += 1  # what handles remember was made by the function, not by the replay
        return owned(self._out)

    def _capture(self) -> None:
        world, graph = self._world, torch.cuda.CUDAGraph()
        stream = torch.cuda.Stream(world.device)
        world.version += 1  # everything is read within the graph
        before = torch.cuda.stream(torch.cuda.current_stream(world.device))  # torch stays on a stream where this fails
        try:
            with (
                _nothing_collected(),
                before,
                torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"),
                world.joined_capture() as held,
            ):
                self._out = self._function()
        except Exception as error:
            error.add_note("while a CUDA graph was recorded; graphs=False runs the same call by call")
            raise
        self._graph, self._held, self._layout = graph, held, world.layout


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Garbage has to wait: freed in a recording, what an environment of before had on the GPU would end it."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
