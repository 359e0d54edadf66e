"""Pick and Place of the objects of written episodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from manikin import Episode, SceneBuilder
from manikin.errors import ConfigError
from manikin.tasks.home.doors.inside import drawn_out
from manikin.tasks.home.handling import HandlingHandles, HandlingTask
from manikin.tasks.home.objects_at import ObjectPlaces
from manikin.tasks.home.pick import HomePick
from manikin.tasks.home.place import HomePlace
from manikin.tasks.home.written.places import Place, goals_of, handled_places, starts_of
from manikin.tasks.home.written.told import Part, Told

__all__ = ["WrittenHandling", "WrittenPick", "WrittenPlace"]


class WrittenHandling(HandlingTask):
    """A subtask about one object of each written episode after the other."""

    written: ClassVar[Mapping[str, tuple[Part, ...]]]  # by layout

    def each(self) -> list[Place]:
        """Where the parts have the object, or its goal."""
        raise NotImplementedError

    def scene(self, b: SceneBuilder) -> Any:
        self._told = Told(self.written[self.layout], len(self.layouts))
        things = super().scene(b)
        self._told.declare(b, things)
        return things

    def find_places(self, opened: str) -> ObjectPlaces:
        return handled_places(self.layout, opened, self.each())

    def place_number(self, h: HandlingHandles, ep: Episode) -> Tensor:
        number = self._told.begin(h, ep)
        h.thing.set_choice(self._told.choice[number, 0])
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
        self._out = drawn_out(self.layout) if self.config.where == "drawer" else torch.zeros(3)
        return super().scene(b)

    def each(self) -> list[Place]:
        return [place for part in self._told.parts for place in starts_of(self.layout, part)]

    def start(self, h: HandlingHandles, ep: Episode) -> None:
        super().start(h, ep)
        pose = self._told.pose[h["episode"].value.long(), 0]
        h.thing.set_pose(pose[:, :3] + self._out, pose[:, 3:])


class WrittenPlace(WrittenHandling, HomePlace):
    """Place in written episodes."""

    def each(self) -> list[Place]:
        return [place for part in self._told.parts for place in goals_of(self.layout, part)]
