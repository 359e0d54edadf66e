"""How much room a Warp world has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral

from manikin.errors import ConfigError

__all__ = ["Budget", "Shortage", "advice", "read_budget"]


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Room in a Warp world, per row.

    Attributes:
        nconmax: pairs of geoms near each other, and contacts; shared by all rows, so it is their mean that counts.
        njmax: rows of constraints, a hard limit of each row.
        nccdmax: penetrating pairs of one kind of convex shapes at once, shared by all rows; None for ``nconmax``.

    Raises:
        ConfigError: a number below 1.
    """

    nconmax: int = 64
    njmax: int = 256
    nccdmax: int | None = None

    def __post_init__(self) -> None:
        for name in ("nconmax", "njmax", "nccdmax"):
            value = getattr(self, name)
            if value is None and name == "nccdmax":
                continue
            if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
                raise ConfigError(f"{name} must be a whole number of at least 1, not {value!r}")
        if self.nccdmax is not None and self.nccdmax > self.nconmax:
            raise ConfigError(f"nccdmax ({self.nccdmax}) cannot be larger than nconmax ({self.nconmax})")


@dataclass(frozen=True, kw_only=True)
class Shortage:
    """A budget that was too small.

    Attributes:
        needed: what would have been enough so far.
        room: what there was.
        rows: that needed more; None where all rows share it.
    """

    needed: int
    room: int
    rows: tuple[int, ...] | None = None


def advice(found: Iterable[tuple[Budget | None, Mapping[str, Shortage], Sequence[int]]]) -> str:
    """Which budget to raise to what, for the error when rows overflow: words, and a budget to give.

    Args:
        found: of each world its budget, what was too little of it, and what its rows are called, those that nobody
            uses below 0. Several worlds, of an environment with rows of different joints, are given one budget with
            room for all.
    """
    room: dict[str, int] = {}
    whole: dict[str, list[Shortage]] = {}
    rows: set[int] = set()
    for given, shortages, names in found:
        budget = given or Budget()
        now = {"nconmax": budget.nconmax, "njmax": budget.njmax, "nccdmax": budget.nccdmax or budget.nconmax}
        for name, number in now.items():
            room[name] = max(room.get(name, 0), number)
        for name, short in shortages.items():
            room[name] = max(room[name], short.needed)
            whole.setdefault(name, []).append(short)
            rows |= {names[row] for row in short.rows or () if names[row] >= 0}
    words = []
    for name, shorts in whole.items():
        needed, now_at = max(s.needed for s in shorts), min(s.room for s in shorts)
        whose = "shared by all rows" if shorts[0].rows is None else f"rows {sorted(rows)[:10]}"
        words.append(f"{name} to at least {needed} (now {now_at}; {whose})")
    if not words:  # what is left are convex pairs, and how many there were is not known
        words = [f"nccdmax above {room['nccdmax']}"]
        room["nccdmax"] *= 2
        room["nconmax"] = max(room["nconmax"], room["nccdmax"])
    enough = ", ".join(f"{name}={number}" for name, number in room.items())
    return f"raise {' and '.join(words)}: budget=Budget({enough})"


def read_budget(word: str) -> Budget:
    """The budget that ``nconmax=48,njmax=192`` says; what is left out is as by default.

    Raises:
        ConfigError: another name, or no whole number.
    """
    known, given = [f.name for f in fields(Budget)], {}
    for part in word.split(","):
        name, _, number = part.strip().partition("=")
        if name not in known or not number.isdigit():
            raise ConfigError(f"budget {word!r}: {part.strip()!r} is not NAME=NUMBER with a name of {', '.join(known)}")
        given[name] = int(number)
    return Budget(**given)
