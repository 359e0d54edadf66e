"""Sources: the named parts of an observation::

    @dataclass(frozen=True, kw_only=True)
    class Height(Source):
        name: str = "height"

        def observe(self, sight):
            return sight.robots[0].tcp_pos[:, 2:]

    env = manikin.make("PickCube-v2", observe=["policy", Height()])

To add one, write a small frozen dataclass like this one.
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
    """The data that a source can read. The first dimension of every tensor is the row in view, n.

    Attributes:
        h: the task's handles.
        robots: of the scene.
        control_hz: control steps per second [1/s].
        declared: what the source's own ``declare`` returned.
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
        """The pictures of each camera after the stages of :class:`manikin.env.observe.Vision`, with ``K`` and ``T``."""
        if self._pictures is None:
            self._pictures = self._make_pictures()
        return self._pictures

    @property
    def episode(self) -> EpisodeRng:
        """Random numbers of the episode: the same in each step. Each access returns fresh streams."""
        return self._rng(False)

    @property
    def step(self) -> EpisodeRng:
        """Random numbers of this control step. They depend only on the episode and the step."""
        return self._rng(True)


@dataclass(frozen=True, kw_only=True)
class Source:
    """One named part of an observation. Derive a frozen dataclass from it. The fields are the settings.

    Attributes:
        name: the key in the observation.
        needs: the camera outputs that it reads (``rgb``, ``depth``, ...). manikin then draws them.
        owned: whether ``observe`` returns new tensors each time. manikin then does not copy them.
    """

    name: str
    needs: ClassVar[tuple[str, ...]] = ()
    owned: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or "/" in self.name:
            raise ConfigError(f"the name of a source must be text without '/', not {self.name!r}")

    def declare(self, b: SceneBuilder) -> Any:
        """Add sensors to the scene, after the task's ``scene`` method. The return value is ``sight.declared`` later."""
        return None

    def observe(self, sight: Sight) -> Tensor | Mapping[str, Tensor]:
        """The observation of the rows in view: one tensor (n, ...), or several by name. It may be borrowed."""
        raise NotImplementedError(f"{type(self).__name__}.observe")

    def imperfections(self) -> Mapping[str, Sequence[Imperfection]]:
        """Noise, delay and loss for each of its tensors, by name; "" for a single tensor without a name."""
        return {}

    def describe(self) -> dict[str, Any]:
        """Plain values for JSON: ``kind`` and the settings; see :mod:`manikin.sense.kinds`."""
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
