"""A shard: a few numbered items (episodes, runs) that one worker does in one go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from manikin.errors import ConfigError

__all__ = ["Shard", "runs_of", "split"]


@dataclass(frozen=True)
class Shard:
    """Items that one worker does in one go.

    Attributes:
        index: its place among the shards of a run.
        numbers: of its items, ascending. What an item comes to depends on its number alone.
    """

    index: int
    numbers: tuple[int, ...]

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{self.index:06d}"


def split(numbers: Sequence[int], size: int, edges: Sequence[int] = ()) -> list[Shard]:
    """Shards of ``size`` items, the last of them smaller.

    Args:
        numbers: of all items, ascending.
        size: items of a shard.
        edges: numbers at which a new shard begins, for example the first episode of each task.

    Raises:
        ConfigError: the size is not positive.
    """
    if size < 1:
        raise ConfigError(f"a shard has at least 1 item, got {size}")
    begins, pieces = set(edges), list[list[int]]()
    for number in numbers:
        if not pieces or len(pieces[-1]) == size or number in begins:
            pieces.append([])
        pieces[-1].append(number)
    return [Shard(index, tuple(piece)) for index, piece in enumerate(pieces)]


def runs_of(numbers: Sequence[int]) -> list[list[int]]:
    """First and last of each run of neighbours, ``[[0, 7], [9, 9]]``: how a file says many numbers."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found
