"""Who does the work: a few workers that are started, given shards, listened to, and ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from manikin.spread.shards import Shard

__all__ = ["Crew", "Word"]

Kind = Literal["ready", "step", "done", "again", "unable", "broken", "ended"]


@dataclass(frozen=True)
class Word:
    """What a worker says.

    Attributes:
        worker: who.
        kind: ``ready``: it takes shards. ``step``: it has finished an item. ``done``: its shard is finished.
            ``again``: its shard is not, and it takes another. ``unable``: it takes no more, and another in its place
            would not either. ``broken``: nobody can do this work. ``ended``: it is not there any more.
        text: why.
    """

    worker: int
    kind: Kind
    text: str = ""


class Crew(Protocol):
    """Workers of one kind: processes, actors of a cluster."""

    def start(self) -> int:
        """Start a worker; its number."""

    def waits(self, worker: int) -> bool:
        """Whether a worker that is not ready yet waits for room in a cluster: it has not begun."""

    def give(self, worker: int, shard: Shard) -> None:
        """Give a shard to a worker that is ready."""

    def listen(self, seconds: float) -> Sequence[Word]:
        """What the workers have said, as soon as one says something, but for so many seconds at most."""

    def end(self, worker: int) -> None:
        """End a worker at once, whatever it is at. Nothing is heard of it any more."""

    def close(self) -> None:
        """End all of them."""
