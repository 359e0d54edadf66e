"""Random streams of a run, by name: independent, and saved with it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

__all__ = ["Streams"]


class Streams:
    """Generators that follow from a seed and a name. One that is asked for first is made then.

    Args:
        seed: of the run.
        device: where ``streams[name]`` draws; :meth:`on_cpu` draws on the processor, for weights.
    """

    def __init__(self, seed: int, device: torch.device | str = "cpu") -> None:
        self.seed, self.device = seed, torch.device(device)
        self._made: dict[str, torch.Generator] = {}

    def _generator(self, name: str, device: torch.device) -> torch.Generator:
        if name not in self._made:
            digest = hashlib.sha256(f"{self.seed}/{name}".encode()).digest()
            self._made[name] = torch.Generator(device).manual_seed(int.from_bytes(digest[:8], "little") >> 1)
        return self._made[name]

    def __getitem__(self, name: str) -> torch.Generator:
        return self._generator(name, self.device)

    def on_cpu(self, name: str) -> torch.Generator:
        return self._generator(name, torch.device("cpu"))

    @contextmanager
    def globally(self, name: str) -> Iterator[None]:
        """Within this block torch's own generators follow from this stream; afterwards they are as before.

        For what takes no generator: the weights of ready layers, and dropout.
        """
        number = int(torch.randint(2**62, (), generator=self[name], device=self.device))
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(number)  # house: random, put back as it was
            yield

    def state_dict(self) -> dict[str, Tensor]:
        return {
            name: generator.get_state() for name, generator in self._made.items() if generator.device == self.device
        }

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        for name, value in state.items():
            self[name].set_state(value)
