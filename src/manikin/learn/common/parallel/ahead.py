"""Steps that are collected while the networks learn from those before: then actions are one iteration behind them.

Without a lag the steps of an iteration are made with the networks as they are, and environments wait while these learn.
With a lag of one they are made in a thread, with copies of the networks from before the last update. That is worth it
where who learns has a processor of its own: a GPU, or cores beside those of the workers that have the environments.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor, nn

from manikin.errors import ConfigError

__all__ = ["Ahead"]


class Ahead:
    """Steps for one iteration after the other.

    Args:
        collect: makes the steps of an iteration with the networks that it is given.
        networks: that learn.
        lag: iterations by which actions may be behind them, 0 or 1.

    Attributes:
        behind: iterations by which those of the last steps were.

    Raises:
        ConfigError: another lag.
    """

    def __init__(self, collect: Callable[..., Any], networks: Sequence[nn.Module], lag: int) -> None:
        if lag not in (0, 1):
            raise ConfigError(f"lag must be 0 or 1, got {lag}")
        self._collect, self._networks, self._lag = collect, networks, lag
        self._copies = [copy.deepcopy(network) for network in networks] if lag else []
        self._thread = _one_thread() if lag else None
        self._coming: Future[Any] | None = None
        self.behind = 0

    @property
    def doing(self) -> str:
        """What :meth:`steps` spends its time on."""
        return "waiting" if self._lag else "policy"

    def steps(self) -> Any:
        """Of this iteration."""
        self.behind = int(self._coming is not None)
        if self._coming is None:
            return self._collect(*self._networks)
        coming, self._coming = self._coming, None
        return coming.result()

    def go_on(self) -> None:
        """The steps of the next iteration may begin: the networks are as they shall act in it, at the latest."""
        if self._thread is None:
            return
        for mine, network in zip(self._copies, self._networks, strict=True):
            mine.load_state_dict(network.state_dict())
        self._coming = self._thread.submit(self._collect, *self._copies)

    def state_dict(self) -> dict[str, Any]:
        """The steps that wait to be learned from. Afterwards nothing moves until :meth:`steps`."""
        return {"steps": None if self._coming is None else self._coming.result()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where :meth:`state_dict` was taken."""
        self._coming = None
        if state["steps"] is not None:
            self._coming = Future()
            device = next(self._networks[0].parameters()).device
            self._coming.set_result(_moved(state["steps"], device))

    def close(self) -> None:
        """Wait for what moves."""
        if self._thread is not None:
            self._thread.shutdown()


def _one_thread() -> ThreadPoolExecutor:
    """A thread in which torch computes with one thread, whatever the others do."""
    before = torch.get_num_threads()
    executor = ThreadPoolExecutor(1)
    executor.submit(torch.set_num_threads, 1).result()
    torch.set_num_threads(before)  # which was changed for threads to come, too
    return executor


def _moved(tree: Any, device: torch.device) -> Any:
    """A tree of tensors on a device."""
    if isinstance(tree, Tensor):
        return tree.to(device)
    if isinstance(tree, Mapping):
        return {name: _moved(value, device) for name, value in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(_moved(value, device) for value in tree)
    return tree
