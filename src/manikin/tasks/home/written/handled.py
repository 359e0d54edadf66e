"""Pick and Place of the objects of written episodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from manikin import Episode, SceneBuilder
from manikin.errors import ConfigError
from manikin.tasks.home.handling import HandlingHandles, HandlingTask
from manikin.tasks.home.objects_at import ObjectPlaces
from manikin.tasks.home.pick import HomePick
from manikin.tasks.home.place import HomePlace
from manikin.tasks.home.written.places import Place, goals_of, handled_places, opening, starts_of
from manikin.tasks.home.written.told import Clutter, Part, Told

__all__ = ["WrittenHandling", "WrittenPick", "WrittenPlace"]


class WrittenHandling(HandlingTask):
    """A subtask about one object of each written episode after the other."""

    written: ClassVar[Mapping[str, tuple[Part, ...]]]  # by layout

    def each(self) -> list[Place]:
        """Where the parts have the object, or its goal."""
        raise NotImplementedError

    def scene(self, b: SceneBuilder) -> Any:
        parts = self.written[self.layout]
        self._told = Told(parts, len(self.layouts))
        things = super().scene(b)
        things["clutter"], things["episode"] = Clutter(b, [part.others for part in parts]), b.variable("episode")
        return things

    def find_places(self, opened: str) -> ObjectPlaces:
        return handled_places(self.layout, opened, self.each())

    def place_number(self, h: HandlingHandles, ep: Episode) -> Tensor:
        number = self._told.number(ep)
        h["episode"].set(number.float())
        h.thing.set_choice(self._told.choice[number, 0])
        h["clutter"].lay(number)
        return number

    def names(self) -> tuple[str, ...]:
        if self.config.objects:
            raise ConfigError(f"the objects of {self.id} are those of its episodes; leave out the option objects")
        if self.config.where != type(self.config)().where:
            raise ConfigError(f"where the objects of {self.id} are is for in_episodes(..., where=) to say")
        return self._told.names[0]


class WrittenPick(WrittenHandling, HomePick):
    """Pick in written episodes."""

    def scene(self, b: SceneBuilder) -> Any:
        pulled = opening(self.layout) if self.config.where == "drawer" else np.zeros(3)
        self._pulled = torch.tensor(pulled).float()  # how far a drawer is out
        return super().scene(b)

    def each(self) -> list[Place]:
        return [place for part in self._told.parts for place in starts_of(self.layout, part)]

    def start(self, h: HandlingHandles, ep: Episode) -> None:
        super().start(h, ep)
        pose = self._told.pose[h["episode"].value.long(), 0]
        h.thing.set_pose(pose[:, :3] + self._pulled, pose[:, 3:])


class WrittenPlace(WrittenHandling, HomePlace):
    """Place in written episodes."""

    def each(self) -> list[Place]:
        return [place for part in self._told.parts for place in goals_of(self.layout, part)]
