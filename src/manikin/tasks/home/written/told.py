"""What the written episodes of one layout say, as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import Episode, Handles, SceneBuilder, VariantPart
from manikin.homes import Home
from manikin.homes.episodes import HomeEpisode, Lying
from manikin.homes.objects import home_objects
from manikin.scene.resting import AtRest, let_rest

__all__ = ["Clutter", "Part", "Told"]

_APART, _BELOW = 1.0, -5.0  # [m] where objects are before the first episode, clear of one another and of all else


@dataclass(frozen=True)
class Part:
    """What a task plays of an episode: some of its targets, by number."""

    episode: HomeEpisode
    targets: tuple[int, ...]

    def lying(self, k: int) -> Lying:
        """The object of the k-th of these targets."""
        return self.episode.objects[self.episode.targets[self.targets[k]].object]

    @property
    def others(self) -> list[Lying]:
        """All other objects, which are in the way."""
        mine = {self.episode.targets[k].object for k in self.targets}
        return [one for k, one in enumerate(self.episode.objects) if k not in mine]


class Told:
    """Tables of ``E`` parts of episodes that have ``T`` targets each.

    Args:
        parts: of one layout.
        layouts: how many the task has.

    Attributes:
        names: T tuples of names of objects, of which a target is one.
        choice: (E, T) int64 which of these it is.
        pose: (E, T, 7) where it lies; goal: (E, T, 3) [m].
    """

    def __init__(self, parts: Sequence[Part], layouts: int) -> None:
        self.parts, self._layouts = tuple(parts), layouts
        count = len(parts[0].targets)
        each = [[part.lying(k) for part in parts] for k in range(count)]
        self.names = [tuple(dict.fromkeys(one.name for one in some)) for some in each]
        numbers = [[names.index(one.name) for one in some] for names, some in zip(self.names, each, strict=True)]
        self.choice = torch.tensor(numbers).T
        self.pose = torch.tensor([[one.pose for one in some] for some in each]).transpose(0, 1).contiguous()
        goals = [[part.episode.targets[k].goal[:3] for k in part.targets] for part in parts]
        self.goal = torch.tensor(goals)

    def number(self, ep: Episode) -> Tensor:
        """(n,) int64 which part the rows play: seeds go through the layouts, and then through the parts of each; an
        episode without a seed of its own has the next one."""
        assert ep.seed is not None
        return (torch.div(ep.seed, self._layouts, rounding_mode="floor") + ep.index) % len(self.parts)

    def declare(self, b: SceneBuilder, things: Handles, in_the_way: Sequence[Sequence[Lying]] | None = None) -> None:
        """Add to a scene what is in the way, of each part: by default all but its targets; and which part a row plays,
        by number."""
        each = [part.others for part in self.parts] if in_the_way is None else in_the_way
        things["clutter"], things["episode"] = Clutter(b, each), b.variable("episode")

    def begin(self, h: Handles, ep: Episode) -> Tensor:
        """Put down what is in the way; :meth:`number`."""
        number = self.number(ep)
        h["episode"].set(number.float())
        h["clutter"].lay(number)
        return number

    def joints(self, home: Home) -> dict[str, Tensor]:
        """(E, joints) [m or rad] of each piece of furniture that some part has open at the start."""
        found = {}
        for name in dict.fromkeys(name for part in self.parts for name in part.episode.joints):
            piece = home.mechanism(name)
            found[name] = torch.stack([piece.vector(part.episode.joints.get(name, {})) for part in self.parts])
        return found


class Clutter:
    """The objects that are only in the way, at rest until something touches them.

    Args:
        b: the scene.
        each: of each part of one layout, what is in the way.

    Attributes:
        things: as many as there are in the fullest of them.
    """

    def __init__(self, b: SceneBuilder, each: Sequence[Sequence[Lying]]) -> None:
        most, names = max(map(len, each)), list(dict.fromkeys(one.name for some in each for one in some))
        props = [one.prop for one in home_objects(tuple(names))]
        self.things: list[VariantPart] = [
            b.mesh(f"clutter{k}", choice=props, pos=(k * _APART, 0.0, _BELOW)) for k in range(most)
        ]
        self._resting: AtRest | None = let_rest(b, self.things) if most else None
        away = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
        filled = [[*some, *[None] * (most - len(some))] for some in each]
        self._present = torch.tensor([[one is not None for one in some] for some in filled])
        self._choice = torch.tensor([[names.index(one.name) if one else 0 for one in some] for some in filled])
        self._pose = torch.tensor([[one.pose if one else away for one in some] for some in filled])

    def lay(self, number: Tensor) -> None:
        """Put down those of the parts ``number`` (n,), and let them rest."""
        for k, thing in enumerate(self.things):
            pose = self._pose[number, k]
            thing.set_choice(self._choice[number, k], self._present[number, k])
            thing.set_pose(pose[:, :3], pose[:, 3:])
        if self._resting is not None:
            self._resting.begin()
