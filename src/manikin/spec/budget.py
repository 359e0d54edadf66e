"""How much room a Warp world has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from numbers import Integral

from manikin.errors import ConfigError

__all__ = ["FIXED", "Budget", "Shortage", "advice", "largest", "read_budget"]

FIXED = {
    "contact_match": "a contact sensor had more matches than MuJoCo Warp sorts",
    "epa_horizon": "two convex shapes touched in a way too involved for MuJoCo Warp",
    "hfield": "a shape touched more of a height field at once than MuJoCo Warp takes",
    "nvmax": "more joints moved at once than MuJoCo Warp takes",
    "tactile": "a tactile sensor was near more shapes than MuJoCo Warp takes",
}
"""Kinds of overflow that no budget changes, in words."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Room in a Warp world, per row.

    Attributes:
        nconmax: pairs of geoms near each other, and contacts; shared by all rows, so it is their mean that counts.
        njmax: rows of constraints, a hard limit of each row.
        nccdmax: touching pairs of one kind of shapes that only the general algorithm for convex ones can take (a
            cylinder and a box, two meshes), shared by all rows; None for ``nconmax``. Each takes 6 kB within a step.

    Raises:
        ConfigError: a number below 1, below 0 for ``nccdmax``.
    """

    nconmax: int = 64
    njmax: int = 256
    nccdmax: int | None = None

    def __post_init__(self) -> None:
        for name in ("nconmax", "njmax", "nccdmax"):
            value = getattr(self, name)
            if value is None and name == "nccdmax":
                continue
            least = 0 if name == "nccdmax" else 1
            if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
                raise ConfigError(f"{name} must be a whole number of at least {least}, not {value!r}")
        if self.nccdmax is not None and self.nccdmax > self.nconmax:
            raise ConfigError(f"nccdmax ({self.nccdmax}) cannot be larger than nconmax ({self.nconmax})")


@dataclass(frozen=True, kw_only=True)
class Shortage:
    """A budget that was too small.

    Attributes:
        needed: what would have been enough so far; None where Warp does not say it.
        room: what there was.
        rows: that needed more, or lost something; None where it is not known whose was lost.
    """

    needed: int | None
    room: int
    rows: tuple[int, ...] | None = None


def largest(budgets: Iterable[Budget]) -> Budget:
    """The largest of each number, so that there is room for what any of the budgets, at least one, has room for."""
    rooms = [(b.nconmax, b.njmax, b.nconmax if b.nccdmax is None else b.nccdmax) for b in budgets]
    nconmax, njmax, nccdmax = map(max, zip(*rooms, strict=True))
    return Budget(nconmax=nconmax, njmax=njmax, nccdmax=nccdmax)


def advice(found: Iterable[tuple[Budget | None, Mapping[str, Shortage], Sequence[int]]]) -> str:
    """Which budget to raise to what, for the error when rows overflow: words, and a budget to give; and what else was
    dropped.

    Args:
        found: of each world its budget, what was too little of it, and what its rows are called, those that nobody
            uses below 0. Several worlds, of an environment with rows of different joints, are given one budget with
            room for all.

    Returns:
        The words; "" where nothing was too little.
    """
    worlds = list(found)
    room = asdict(largest(given or Budget() for given, _, _ in worlds))
    whole: dict[str, list[Shortage]] = {}
    rows: dict[str, set[int]] = {}
    for _, shortages, names in worlds:
        for name, short in shortages.items():
            rows.setdefault(name, set()).update(names[row] for row in short.rows or () if names[row] >= 0)
            if name in FIXED:
                continue
            enough = max(2 * short.room, short.room + 8) if short.needed is None else short.needed
            room[name] = max(room[name], enough)
            whole.setdefault(name, []).append(short)
    besides = [
        f"{said} (rows {sorted(rows[name])[:10]}), which no budget changes"
        for name, said in FIXED.items()
        if rows.get(name)
    ]
    if not whole:
        return "; ".join(besides)
    room["nconmax"] = max(room["nconmax"], room["nccdmax"])
    words = []
    for name, shorts in whole.items():
        now_at = min(s.room for s in shorts)
        wanted = [s.needed for s in shorts if s.needed is not None]
        whose = "shared by all rows" if shorts[0].rows is None else f"rows {sorted(rows[name])[:10]}"
        words.append(f"{name} to at least {max(wanted, default=now_at + 1)} (now {now_at}; {whose})")
    enough_for_all = ", ".join(f"{name}={number}" for name, number in room.items())
    return "; ".join([f"raise {' and '.join(words)}: budget=Budget({enough_for_all})", *besides])


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
