"""Open and Close of the drawers and fridges in which written episodes have their objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from manikin import Episode, SceneBuilder
from manikin.errors import ConfigError
from manikin.tasks.home.doors.close import HomeClose
from manikin.tasks.home.doors.mechanisms import MechanismHandles, MechanismTask
from manikin.tasks.home.doors.open import HomeOpen
from manikin.tasks.home.written.told import Part, Told
from manikin.toolkit import chosen

__all__ = ["WrittenClose", "WrittenMechanism", "WrittenOpen"]


class WrittenMechanism(MechanismTask):
    """A subtask about what one object of each written episode is in. As in MS-HAB's plans the object is there, but not
    in a drawer that is to be closed: it has been taken out."""

    written: ClassVar[Mapping[str, tuple[Part, ...]]]  # by layout

    def scene(self, b: SceneBuilder) -> Any:
        if self.config.mechanism != type(self.config)().mechanism:
            raise ConfigError(f"what {self.id} is about is for in_episodes(..., where=) to say")
        parts = self.written[self.layout]
        self._told = Told(parts, len(self.layouts))
        things = super().scene(b)
        self._out = self.subtask == "close" and self.config.mechanism == "drawer"
        self._told.declare(b, things, None if self._out else [part.episode.objects for part in parts])
        self._which = torch.tensor([part.episode.targets[part.targets[0]].object for part in parts])
        return things

    def thing(self, h: MechanismHandles) -> Tensor | None:
        if self._out:
            return None
        return chosen([one.pose for one in h["clutter"].things], self._which[h["episode"].value.long()])

    def start(self, h: MechanismHandles, ep: Episode) -> None:
        super().start(h, ep)
        self._told.begin(h, ep)


class WrittenOpen(WrittenMechanism, HomeOpen):
    """Open in written episodes."""


class WrittenClose(WrittenMechanism, HomeClose):
    """Close in written episodes."""
