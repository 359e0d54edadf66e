"""The words for observations, and what a list of words, sources and stacks means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from manikin.env.observe.views import CAMERA_WORDS, Cloud, Pictures, Voxels
from manikin.errors import ConfigError, UnknownNameError
from manikin.sense.imu import Imu
from manikin.sense.kinds import made
from manikin.sense.rangefinder import RangeFinder
from manikin.sense.source import Group, Source
from manikin.sense.stack import Stack

if TYPE_CHECKING:
    from manikin.env.observe.vision import Vision

__all__ = ["CLOUD_WORDS", "SOURCES", "STATE_WORDS", "Observation", "holds", "parse"]

SOURCES = (Group, Pictures, Cloud, Voxels, Imu, RangeFinder)
"""The sources that come with manikin."""

STATE_WORDS = {"state": ("policy", "privileged"), "policy": ("policy",), "state_dict": ("policy", "privileged")}
CLOUD_WORDS = ("pointcloud", "voxel")
_WITH_SETTINGS = {  # what somebody may write as a word -> where it lies, and what to write
    "imu": ("manikin.sense.imu", "Imu(on='robot')"),
    "rangefinder": ("manikin.sense.rangefinder", "RangeFinder(on='robot', rays=16, far=4.0)"),
    "stack": ("manikin.sense.stack", "Stack(4)"),
}


def parse(word: str) -> tuple[str, ...]:
    """The parts of an observation word. Raises :class:`UnknownNameError` listing what there is."""
    joined = (*CAMERA_WORDS, *CLOUD_WORDS, "state")
    if not isinstance(word, str):
        raise UnknownNameError("observation", word, dict.fromkeys((*STATE_WORDS, *joined)))
    parts = tuple(word.split("+"))
    if len(parts) == 1 and word in STATE_WORDS:
        return parts
    for part in parts:
        if part not in joined:
            hint = "Join camera outputs, and state for privileged values beside them, with '+'."
            if part.lower() in _WITH_SETTINGS:
                module, call = _WITH_SETTINGS[part.lower()]
                hint = f"It has settings: from {module} import {call.split('(')[0]}, then observe=['state', {call}]."
            valid = joined if len(parts) > 1 else (*STATE_WORDS, *joined)
            raise UnknownNameError("observation", part, dict.fromkeys(valid), hint=hint)
    return parts


@dataclass(frozen=True)
class Observation:
    """What ``observe`` asks for: words, further sources in their order, and stacks.

    Attributes:
        word: words joined by ``+``; "" for none.
        sources: beside what the words mean.
        stacks: of what they all give.
    """

    word: str
    sources: tuple[Source, ...] = ()
    stacks: tuple[Stack, ...] = ()

    @classmethod
    def of(cls, given: Any) -> Observation:
        """What was given: words, or a list of words, sources and stacks; these also as :attr:`plain` describes them.

        Raises:
            UnknownNameError: no such word or kind; lists what there is.
            ConfigError: something else in the list, two sources of one name, or nothing.
        """
        if isinstance(given, Observation):
            return given
        if isinstance(given, str) or not isinstance(given, Sequence):
            parse(given)
            return cls(given)
        items = [made(one, object, "part of an observation") if isinstance(one, Mapping) else one for one in given]
        words = [part for one in items if isinstance(one, str) for part in one.split("+")]
        sources = tuple(one for one in items if isinstance(one, Source))
        stacks = tuple(one for one in items if isinstance(one, Stack))
        if wrong := [one for one in items if not isinstance(one, str | Source | Stack)]:
            raise ConfigError(
                f"observe takes words, sources and stacks, not {wrong[0]!r:.80}; for example observe=['state', "
                "Stack(4)]"
            )
        if len(words) > 1:  # what cameras give has the group policy beside it, and state_dict is state with names
            words = [{"state_dict": "state"}.get(word, word) for word in words if word != "policy"]
        word = "+".join(dict.fromkeys(words))
        if word:
            parse(word)
        names = [source.name for source in (*_sources(word), *sources)]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ConfigError(f"two sources of an observation are named {', '.join(sorted(twice))}")
        if not names:
            raise ConfigError("observe is empty; give a word such as 'state', or a source")
        if word in ("state", "policy") and not sources and (len(stacks) > 1 or any(stack.paths for stack in stacks)):
            raise ConfigError(
                f"{word!r} is one flat tensor, so one Stack takes all of it; to stack some paths, observe 'state_dict'"
            )
        return cls(word, sources, stacks)

    @property
    def parts(self) -> tuple[str, ...]:
        """The words apart."""
        return tuple(self.word.split("+")) if self.word else ()

    @property
    def plain(self) -> str | list[Any]:
        """The words, or where there is more a list of words and descriptions, for JSON; :meth:`of` reads both."""
        more = [one.describe() for some in (self.sources, self.stacks) for one in some]
        return [*([self.word] if self.word else []), *more] if more else self.word

    @property
    def flat(self) -> bool:
        """Whether it is one tensor: the word ``state`` or ``policy`` without further sources."""
        return self.word in ("state", "policy") and not self.sources

    def every(self, vision: Vision | None = None) -> tuple[Source, ...]:
        """All sources in their order: those that the words mean, with a vision's cloud and grid, then the further
        ones."""
        return (*_sources(self.word, vision), *self.sources)

    @property
    def needs(self) -> tuple[str, ...]:
        """Outputs of cameras that the sources look at, in the order of ``CAMERA_WORDS``."""
        needed = {word for source in self.every() for word in source.needs}
        return tuple(word for word in CAMERA_WORDS if word in needed)

    def named(self) -> Observation:
        """The same with names where it is flat."""
        return Observation("state_dict", self.sources, self.stacks) if self.flat else self

    def has(self, path: str, vision: Vision) -> bool:
        """Whether an observation has such a place: ``policy/qpos``, ``cameras/X/rgb``. Of the tensors of a group or of
        a further source, the name is not looked at."""
        group, *inside = path.split("/")
        if group == "cameras":
            seen = {*self.parts} & {*CAMERA_WORDS}
            return bool(seen) and inside[0] in vision.names and inside[-1] in {*seen, "K", "T"}
        return group in [source.name for source in self.every()]


def holds(observe: Any, path: str, vision: Vision) -> bool:
    """Whether what ``observe`` asks for has a place, named as for sensors; see :meth:`Observation.has`."""
    return Observation.of(observe).has(path, vision)


def _sources(word: str, vision: Vision | None = None) -> list[Source]:
    """What the words mean, in the order in which the observation has it."""
    parts = word.split("+") if word else []
    found: list[Source] = [Group(name="policy")] if parts else []
    if word in STATE_WORDS:
        return [Group(name=group) for group in STATE_WORDS[word]]
    if "state" in parts:
        found.append(Group(name="privileged"))
    if "pointcloud" in parts:
        found.append(Cloud() if vision is None else Cloud(spec=vision.pointcloud))
    if "voxel" in parts:
        found.append(Voxels() if vision is None else Voxels(spec=vision.voxel, cameras=vision.pointcloud.cameras))
    if outputs := tuple(one for one in CAMERA_WORDS if one in parts):
        found.append(Pictures(outputs=outputs))
    return found
