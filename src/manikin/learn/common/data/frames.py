"""Labelled frames, the newest of which are kept: observations of any shape, pictures as bytes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from manikin.errors import ConfigError
from manikin.learn.common.data.replay import free_memory
from manikin.learn.common.tree import mapped, row_bytes, rows_of

__all__ = ["Frames"]

_RESERVE = 0.9  # of the free memory, the share that frames may take


class Frames:
    """The newest ``size`` frames that were added, each a row of a tree of tensors.

    Memory is taken at the first frame.

    Args:
        size: most frames that are kept.
        device: where they are.

    Raises:
        ConfigError: ``size`` below 1; and from :meth:`add`: there is too little memory. Says how many frames fit.
    """

    def __init__(self, size: int, device: torch.device | str = "cpu") -> None:
        if size < 1:
            raise ConfigError(f"at least one frame must be kept, got {size}")
        self.size, self.device = size, torch.device(device)
        self.added = 0
        self._kept: Any = None

    def __len__(self) -> int:
        return min(self.added, self.size)

    def add(self, rows: Any) -> None:
        """Add rows (n, ...) of the same tree each time; n is at most ``size``."""
        if self._kept is None:
            self._make(rows)
        count = rows_of(rows)
        at = (self.added + torch.arange(count, device=self.device)) % self.size

        def write(kept: Tensor, value: Tensor) -> Tensor:
            kept[at] = value.to(self.device)
            return kept

        mapped(write, self._kept, rows)
        self.added += count

    def sample(self, count: int, generator: torch.Generator) -> Any:
        """``count`` frames drawn with equal chance, with replacement."""
        if not self.added:
            raise ConfigError("nothing can be drawn where no frame was added")
        drawn = torch.randint(len(self), (count,), generator=generator, device=self.device)
        return mapped(lambda kept: kept[drawn], self._kept)

    def _make(self, rows: Any) -> None:
        needed, free = self.size * row_bytes(rows), free_memory(self.device)
        if needed > _RESERVE * free:
            raise ConfigError(
                f"{self.size:,} frames need {needed / 1e9:.2f} GB, and {free / 1e9:.2f} GB are free on {self.device}: "
                f"keep at most {int(_RESERVE * free / row_bytes(rows)):,} frames"
            )
        self._kept = mapped(
            lambda value: torch.empty((self.size, *value.shape[1:]), dtype=value.dtype, device=self.device), rows
        )

    def state_dict(self) -> dict[str, Any]:
        """What was added and is still there."""
        return {"added": self.added, "kept": mapped(lambda kept: kept[: len(self)], self._kept) if self.added else {}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where :meth:`state_dict` was taken."""
        self.added = int(state["added"])
        if self.added:
            self._make(state["kept"])
            for_all = slice(None, len(self))

            def write(kept: Tensor, value: Tensor) -> Tensor:
                kept[for_all] = value.to(self.device)
                return kept

            mapped(write, self._kept, state["kept"])
