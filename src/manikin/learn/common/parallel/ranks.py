"""Processes that train one network together, each with environments of its own, as ``torchrun`` starts them.

All hold the same weights: each computes gradients from its own steps, and their mean moves all. Alone there is one
process, and nothing of this changes a bit.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from manikin.errors import ConfigError, DataError

__all__ = ["Ranks"]

_WORD = 32  # [bytes] of what is said


class Ranks:
    """This process and the others.

    Attributes:
        rank: number of this process, from 0. size: how many there are. local: its number on this machine.
    """

    def __init__(self, rank: int = 0, size: int = 1, local: int = 0) -> None:
        self.rank, self.size, self.local = rank, size, local

    @classmethod
    def here(cls, device: str = "cpu") -> Ranks:
        """As ``torchrun`` says in the environment; alone without it. On ``cuda`` each process takes a GPU.

        Raises:
            ConfigError: one GPU is named for all processes.
        """
        rank, size, local = (int(os.environ.get(name, default)) for name, default in _VARIABLES.items())
        if size > 1 and device.startswith("cuda:"):
            raise ConfigError(f"torchrun gives each process a GPU of its own: --device cuda, not {device}")
        if size > 1 and device == "cuda":
            torch.cuda.set_device(local)
        if size > 1 and not dist.is_initialized():
            dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
        return cls(rank, size, local)

    def average(self, tensors: Sequence[Tensor]) -> None:
        """Make each of these tensors, in place, the mean of everybody's."""
        if self.size == 1:
            return
        flat = torch.cat([one.reshape(-1) for one in tensors])
        dist.all_reduce(flat)
        flat /= self.size
        at = 0
        for one in tensors:
            one.copy_(flat[at : at + one.numel()].view_as(one))
            at += one.numel()

    def joined(self, rows: Tensor) -> Tensor:
        """Everybody's rows (n, ...) one after the other, (size * n, ...)."""
        if self.size == 1:
            return rows
        found = [torch.empty_like(rows) for _ in range(self.size)]
        dist.all_gather(found, rows.contiguous())
        return torch.cat(found)

    def say(self, word: str) -> None:
        """Tell the others, who :meth:`hear` it; only the first process does."""
        if self.size > 1:
            content = torch.tensor([*word.encode().ljust(_WORD)], dtype=torch.uint8)
            dist.broadcast(content, 0)

    def hear(self) -> str:
        """What the first process says next.

        Raises:
            DataError: it has ended.
        """
        content = torch.zeros(_WORD, dtype=torch.uint8)
        try:
            dist.broadcast(content, 0)
        except RuntimeError as error:
            raise DataError(f"the first process of torchrun has ended: {error}") from None
        return bytes(content.tolist()).decode().strip()

    def gathered(self, content: bytes) -> list[bytes]:
        """Everybody's bytes, in order."""
        if self.size == 1:
            return [content]
        length = torch.tensor([len(content)])
        lengths = self.joined(length).tolist()
        padded = torch.frombuffer(bytearray(content.ljust(max(lengths), b"\0")), dtype=torch.uint8)
        rows = self.joined(padded[None])
        return [bytes(row[:n].numpy()) for row, n in zip(rows, lengths, strict=True)]

    def close(self) -> None:
        """Leave the others."""
        if self.size > 1 and dist.is_initialized():
            dist.destroy_process_group()


_VARIABLES = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}
