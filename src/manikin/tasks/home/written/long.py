"""Long tasks in written episodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from manikin import Episode, SceneBuilder
from manikin.errors import ConfigError
from manikin.tasks.home.long.places import LongPlaces
from manikin.tasks.home.long.sequence import LongHandles, LongTask
from manikin.tasks.home.written.places import goals_of, long_written, starts_of
from manikin.tasks.home.written.told import Part, Told

__all__ = ["WrittenLong"]


class WrittenLong(LongTask):
    """A long task whose objects, places and goals are those of written episodes."""

    written: ClassVar[Mapping[str, tuple[Part, ...]]]  # by layout

    def scene(self, b: SceneBuilder) -> LongHandles:
        if self.config.objects != type(self.config)().objects:
            raise ConfigError(f"the objects of {self.id} are those of its episodes; leave out the option objects")
        wanted = self.config.targets or len(self.errands)
        parts = [Part(one.episode, one.targets[:wanted]) for one in self.written[self.layout]]
        self._told = Told(parts, len(self.layouts))
        things = super().scene(b)
        self._joints = self._told.joints(things.home)
        self._told.declare(b, things)
        return things

    def objects_of(self, target: int) -> tuple[str, ...]:
        return self._told.names[target]

    def find_places(self, states: tuple[str, ...], kinds: tuple[str, ...]) -> LongPlaces:
        each = [[*starts_of(self.layout, one), *goals_of(self.layout, one)] for one in self._told.parts]
        return long_written(self.layout, states, [place for some in each for place in some])

    def lay(self, h: LongHandles, ep: Episode) -> Tensor:
        number, told, count = self._told.begin(h, ep), self._told, len(h.things)
        h.goal.set(told.goal[number])
        for k, thing in enumerate(h.things):
            pose = told.pose[number, k]
            thing.set_choice(told.choice[number, k])
            thing.set_pose(pose[:, :3], pose[:, 3:])
        return number[:, None] * (2 * count) + torch.arange(2 * count)

    def open_up(self, h: LongHandles) -> None:
        for name, qpos in self._joints.items():
            h.home.mechanism(name).set_qpos(qpos[h["episode"].value.long()])
