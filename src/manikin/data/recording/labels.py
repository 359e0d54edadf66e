"""Labelling runs: live, many rows at a time, and afterwards from a recording's flags, by the same rule; and choosing
episodes by their labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from manikin.data.recording.format import RecordedEpisode
from manikin.errors import UnknownNameError
from manikin.spec.labels import Labels, Story

__all__ = ["Keep", "Tracker", "story_of"]


class Keep:
    """Which episodes are kept, in words: ``all``, ``success`` (at any time), ``failure``, ``label:MODE,MODE``.

    Args:
        words: the choice.
        modes: that there are.

    Raises:
        UnknownNameError: no such choice, or no such mode.
    """

    def __init__(self, words: str, modes: Iterable[str]) -> None:
        words = str(words)  # of an array, "in" would ask each element
        kind, _, names = words.partition(":")
        self._kind, self._names = kind, names.split(",")
        if words not in ("all", "success", "failure") and (kind != "label" or not names):
            raise UnknownNameError("choice of episodes", words, ("all", "success", "failure", "label:MODE,MODE"))
        known = sorted(set(modes))
        for name in self._names if kind == "label" else ():
            if name not in known:
                raise UnknownNameError("mode", name, known)

    def __call__(self, success_once: bool, mode: str) -> bool:
        """Whether an episode is kept that succeeded at some time, or not, and went so."""
        if self._kind == "label":
            return mode in self._names
        return self._kind == "all" or success_once == (self._kind == "success")


class Tracker:
    """Follows the flags of N rows and keeps each row's story.

    Failure is final: after ``fail``, success does not count.

    Args:
        labels: which events there are.
        n: rows.

    Attributes:
        failed: (N,) bool, which rows have.
    """

    def __init__(self, labels: Labels, n: int) -> None:
        self.labels = labels
        self.failed = np.zeros(n, bool)
        self._up = np.zeros((len(labels.events), n), bool)
        self._events: list[list[str]] = [[] for _ in range(n)]
        self._began: list[frozenset[str] | None] = [None] * n

    def reset(self, rows: Iterable[int]) -> None:
        """New episodes begin in these rows; before their first step every flag is down."""
        for row in rows:
            self._up[:, row], self._events[row], self._began[row] = False, [], None
            self.failed[row] = False

    def step(self, rows: np.ndarray, flags: Mapping[str, np.ndarray]) -> None:
        """One step of ``rows``; ``flags`` are (N,) values of every row, ``success`` and ``fail`` among them.

        Raises:
            UnknownNameError: a flag that an event speaks of is missing.
        """
        self.failed[rows] |= flags["fail"][rows]
        flags = {**flags, "success": flags["success"] & ~self.failed}
        for row in rows.tolist():
            if self._began[row] is None:
                self._began[row] = frozenset(name for name, value in flags.items() if value[row])
        for i, event in enumerate(self.labels.events):
            if event.flag not in flags:
                raise UnknownNameError(f"flag of event {event.name!r}", event.flag, flags)
            value = flags[event.flag][rows]
            now = value.astype(bool) if event.at_least is None else value >= event.at_least
            before = self._up[i, rows]
            fired = now & ~before if event.edge == "rise" else before & ~now
            self._up[i, rows] = now
            for row in rows[fired].tolist():
                story = self._events[row]
                if story[-1:] != [event.name]:
                    story.append(event.name)

    def story(self, row: int) -> Story:
        """What has happened in the row so far."""
        return Story(tuple(self._events[row]), self._began[row] or frozenset())


def story_of(episode: RecordedEpisode, labels: Labels) -> Story:
    """The story of a recorded episode.

    Raises:
        UnknownNameError: the recording lacks a flag that an event speaks of.
    """
    tracker, row = Tracker(labels, 1), np.zeros(1, np.int64)
    flags = {**episode.flags, "success": episode.success, "fail": episode.fail}
    for t in range(len(episode)):
        tracker.step(row, {name: values[t : t + 1] for name, values in flags.items()})
    return tracker.story(0)
