"""A part of a trainer recorded as a CUDA graph: its hundreds of calls become one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from manikin.learn.common.tree import mapped

__all__ = ["Recorded"]

_WARM_UP = 2  # calls that run as they are: optimizers make their state, kernels are loaded


class Recorded:
    """A function of tensors, which may also change tensors that stay where they are: weights, an optimizer's state.

    On a GPU with ``record`` its third call is recorded as a CUDA graph, one for each set of shapes, and replayed from
    then on. Elsewhere each call runs as it is.

    Args:
        function: of a tensor or dictionaries of them; gives such, too. It must not wait for the device.
        record: whether to record on a GPU.
        generators: that it draws from.
    """

    def __init__(
        self, function: Callable[[Any], Any], *, record: bool, generators: Iterable[torch.Generator] = ()
    ) -> None:
        self._function, self._record, self._generators = function, record, tuple(generators)
        self._calls: dict[Any, int] = {}
        self._graphs: dict[Any, tuple[torch.cuda.CUDAGraph, Any, Any]] = {}

    def __call__(self, given: Any) -> Any:
        if not self._record or device_of(given).type != "cuda":
            return self._function(given)
        key = _shapes(given)
        if key not in self._graphs:
            self._calls[key] = self._calls.get(key, 0) + 1
            if self._calls[key] <= _WARM_UP:
                return self._function(given)
            self._graphs[key] = self._recorded(given)
        graph, inputs, out = self._graphs[key]
        mapped(lambda mine, new: mine.copy_(new), inputs, given)
        graph.replay()
        return mapped(torch.clone, out)

    def _recorded(self, given: Any) -> tuple[torch.cuda.CUDAGraph, Any, Any]:
        graph, inputs = torch.cuda.CUDAGraph(), mapped(torch.clone, given)
        for generator in self._generators:
            graph.register_generator_state(generator)
        try:
            with torch.cuda.device(device_of(given)), torch.cuda.graph(graph, capture_error_mode="thread_local"):
                out = self._function(inputs)
        except Exception as error:
            error.add_note("while a CUDA graph was recorded; --set cuda_graphs=false runs the same call by call")
            raise
        return graph, inputs, out


def device_of(given: Any) -> torch.device:
    while isinstance(given, Mapping):
        given = next(iter(given.values()))
    found: torch.device = given.device
    return found


def _shapes(given: Any) -> Any:
    if isinstance(given, Mapping):
        return tuple((name, _shapes(value)) for name, value in given.items())
    assert isinstance(given, Tensor)
    return tuple(given.shape), given.dtype
