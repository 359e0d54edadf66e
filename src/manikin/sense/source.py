"""What an observation is made of: named sources. A user writes one as a small frozen dataclass.

@dataclass(frozen=True, kw_only=True)
class Height(Source):
name: str = "height"

def observe(self, sight):
return sight.robots[0].tcp_pos[:, 2:]

env = manikin.make("PickCube-v2", observe=["policy", Height()])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from manikin.errors import ConfigError
from manikin.rng import EpisodeRng
from manikin.scene.builder import SceneBuilder
from manikin.scene.handles import Robot
from manikin.sense.imperfect import Imperfection
from manikin.sense.kinds import built_in, describe

__all__ = ["Group", "Sight", "Source"]


class Sight:
    """What a source may look at while it observes. Tensors have one entry per row in view, n.

    Attributes:
        h: the task's handles.
        robots: of the scene.
        control_hz: control steps per second [1/s].
        declared: what the source's own ``declare`` gave.
    """

    def __init__(
        self,
        h: Any,
        robots: Sequence[Robot],
        control_hz: float,
        *,
        groups: Callable[[], Mapping[str, Mapping[str, Tensor]]],
        pictures: Callable[[], Mapping[str, Mapping[str, Tensor]]],
        rng: Callable[[bool], EpisodeRng],
    ) -> None:
        self.h, self.robots, self.control_hz = h, tuple(robots), control_hz
        self.declared: Any = None
        self._make_groups, self._make_pictures, self._rng = groups, pictures, rng
        self._groups: Mapping[str, Mapping[str, Tensor]] | None = None
        self._pictures: Mapping[str, Mapping[str, Tensor]] | None = None

    @property
    def groups(self) -> Mapping[str, Mapping[str, Tensor]]:
        """Named tensors of the task: ``policy`` (with the joints), ``privileged``, and groups of its own."""
        if self._groups is None:
            self._groups = self._make_groups()
        return self._groups

    @property
    def pictures(self) -> Mapping[str, Mapping[str, Tensor]]:
        """Per camera what was drawn, after the stages of :class:`manikin.env.observe.Vision`, with ``K`` and ``T``."""
        if self._pictures is None:
            self._pictures = self._make_pictures()
        return self._pictures

    @property
    def episode(self) -> EpisodeRng:
        """Random numbers that last an episode: the same at each step. Every use of this gives fresh streams."""
        return self._rng(False)

    @property
    def step(self) -> EpisodeRng:
        """Random numbers of this control step, functions of episode and step alone."""
        return self._rng(True)


@dataclass(frozen=True, kw_only=True)
class Source:
    """One named part of an observation. Derive a frozen dataclass from it, whose fields are its settings.

    Attributes:
        name: under which the observation has it.
        needs: which outputs of cameras it looks at (``rgb``, ``depth``, ...); these are then drawn.
        owned: whether ``observe`` gives new tensors each time, which are then not copied.
    """

    name: str
    needs: ClassVar[tuple[str, ...]] = ()
    owned: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or "/" in self.name:
            raise ConfigError(f"the name of a source must be text without '/', not {self.name!r}")

    def declare(self, b: SceneBuilder) -> Any:
        """Add to the scene what it needs there, such as sensors, after the task has; what it gives is
        ``sight.declared``."""
        return None

    def observe(self, sight: Sight) -> Tensor | Mapping[str, Tensor]:
        """(n, ...) what is seen of the rows in view, or named tensors of that shape. May be borrowed."""
        raise NotImplementedError(f"{type(self).__name__}.observe")

    def imperfections(self) -> Mapping[str, Sequence[Imperfection]]:
        """Noise, delay and loss by the names of its tensors, "" where there is one without a name."""
        return {}

    def describe(self) -> dict[str, Any]:
        """Plain values for JSON: ``kind`` and the fields that differ from their defaults."""
        return describe(self)


@built_in
@dataclass(frozen=True, kw_only=True)
class Group(Source):
    """Named tensors of the task: ``policy``, ``privileged``, or a group of its own that ``Task.observe`` returns.

    Raises:
        ConfigError: at the first observation, where the task has no such group; lists what it has.
    """

    def observe(self, sight: Sight) -> Mapping[str, Tensor]:
        if self.name not in sight.groups:
            raise ConfigError(f"the task observes {', '.join(sight.groups)}, no group {self.name!r}")
        return sight.groups[self.name]
