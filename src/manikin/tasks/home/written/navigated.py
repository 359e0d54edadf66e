"""Navigate to what the subtasks of written episodes are about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from manikin import Episode, SceneBuilder
from manikin.errors import ConfigError
from manikin.homes.episodes import Lying
from manikin.homes.objects import HOME_OBJECTS
from manikin.tasks.home.doors.destinations import Destinations, destinations, room_with
from manikin.tasks.home.doors.fronts import behind
from manikin.tasks.home.doors.inside import drawn_out
from manikin.tasks.home.navigate import HomeNavigate, HomeNavigateHandles
from manikin.tasks.home.scene import Spots
from manikin.tasks.home.written.places import goals_of, handled_places, starts_of
from manikin.tasks.home.written.told import Part, Told

__all__ = ["WrittenNavigate"]


class WrittenNavigate(HomeNavigate):
    """A drive for one object of each written episode after the other: to where it lies, to its goal with it in hand, or
    to the drawer or the fridge that it is in. As in MS-HAB's plans what is in a drawer that is to be closed has been
    taken out."""

    written: ClassVar[Mapping[str, tuple[Part, ...]]]  # by layout

    def scene(self, b: SceneBuilder) -> HomeNavigateHandles:
        c, default = self.config, type(self.config)()
        if c.objects:
            raise ConfigError(f"the objects of {self.id} are those of its episodes; leave out the option objects")
        if (c.before, c.where) != (default.before, default.where):
            raise ConfigError(f"where {self.id} leads is for in_episodes(..., where=, before=) to say")
        parts = self.written[self.layout]
        self._told = Told(parts, len(self.layouts))
        things = super().scene(b)
        taken = self.carrying or (c.before, c.where) == ("close", "drawer")
        self._told.declare(b, things, [self._lying(part.others if taken else part.episode.objects) for part in parts])
        return things

    def _lying(self, objects: list[Lying] | tuple[Lying, ...]) -> list[Lying]:
        """What is in the way; what is in the drawer is farther out where that is open."""
        if self._opened != "drawer":
            return list(objects)
        out = drawn_out(self.layout).tolist()

        def moved(one: Lying) -> Lying:
            if behind(self.layout, one.receptacle) != "drawer":
                return one
            x, y, z = (at + more for at, more in zip(one.pose[:3], out, strict=True))
            return replace(one, pose=(x, y, z, *one.pose[3:]))

        return [moved(one) for one in objects]

    def find_goals(self) -> Spots | Destinations:
        if self.door:
            return destinations(self.layout, self.config.before, self.config.where)
        find = goals_of if self.carrying else starts_of
        each = [place for part in self._told.parts for place in find(self.layout, part)]
        found = handled_places(self.layout, self._opened, each)
        heights = [(0.0, 0.0, HOME_OBJECTS[part.lying(0).name].height) for part in self._told.parts]
        stands = [np.unique(some.astype(float), axis=0) for some in found.stands]
        return Destinations.of(room_with(self.layout, self._opened), found.points + np.array(heights), stands)

    def names(self) -> tuple[str, ...]:
        return self._told.names[0]

    def goal_number(self, h: HomeNavigateHandles, ep: Episode) -> Tensor:
        number = self._told.begin(h, ep)
        for thing in h.things:
            thing.set_choice(self._told.choice[number, 0])
        return torch.zeros_like(number) if self.door else number
