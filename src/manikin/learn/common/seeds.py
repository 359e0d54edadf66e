"""Which episodes train, which choose a checkpoint, and which give the final number. No two share a seed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from manikin.errors import ConfigError

__all__ = ["TEST", "VALIDATION", "check_unseen", "training_seeds"]

TEST = 1_000_000
"""First seed of the episodes that give the final number; a run plays them once, at its end."""
VALIDATION = 2_000_000
"""First seed of the episodes that choose among checkpoints."""
_HELD_OUT = 1_000_000  # seeds that each of the two may have
_TRAINING = 1_000_000_000
_ROWS = 1_000_000
_RUNS = 1_000_000


def training_seeds(seed: int, rows: int) -> list[int]:
    """Episode seeds of the rows of a run; a row goes on with the next episode index of its seed.

    Raises:
        ConfigError: the run's seed is not between 0 and 999,999, or there are more than a million rows.
    """
    if not 0 <= seed < _RUNS:
        raise ConfigError(f"seed must be between 0 and {_RUNS - 1}, got {seed}")
    if not 0 < rows <= _ROWS:
        raise ConfigError(f"rows must be between 1 and {_ROWS}, got {rows}")
    first = _TRAINING + seed * _ROWS
    return list(range(first, first + rows))


def check_unseen(path: str | Path, seeds: Iterable[int]) -> None:
    """Refuse to learn from recorded episodes that choose among checkpoints or give the final number.

    Args:
        path: of the recording, for the error.
        seeds: of its episodes.

    Raises:
        ConfigError: some are of those; says how many, and which seeds are free.
    """
    seen = list(seeds)
    for first, use in ((TEST, "test"), (VALIDATION, "validation")):
        if count := sum(first <= seed < first + _HELD_OUT for seed in seen):
            raise ConfigError(
                f"{count} of {len(seen)} episodes in {path} have seeds of the {use} episodes, {first} to "
                f"{first + _HELD_OUT - 1}, and nothing may learn from these: collect with other seeds, below {TEST}"
            )
