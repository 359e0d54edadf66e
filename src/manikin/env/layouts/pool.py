"""The environments of a task's layouts: compiled when a row first needs one, dropped when unused and memory is short.

A World never has two layouts, so each environment is of one; its rows are called slots here. Where rows ask for more
slots of a layout than there are, it gets another environment; rows that run stay where they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from weakref import WeakMethod

import numpy as np

from manikin.env.env import Env
from manikin.env.layouts.slots import Places, Slots
from manikin.errors import ClosedError
from manikin.spec.budget import Budget, Shortage

__all__ = ["Pool"]

Shortages = tuple[Budget | None, Mapping[str, Shortage], list[int]]


class Pool:
    """Which row is in which slot of which environment.

    Args:
        make: an environment of a layout, by its number, with so many slots; a method, of what keeps this.
        rows: how many there are.
        least: slots that an environment has at least.
        memory: [bytes] up to which environments are kept that no row is in. The one used longest ago is dropped first.

    Attributes:
        first: the environment of the first layout, which is always kept: it says what all have in common.
    """

    def __init__(self, make: Callable[[int, int], Env], *, rows: int, least: int, memory: float) -> None:
        self._maker = WeakMethod(make)  # of the environment, which keeps this
        self._rows, self._least, self._memory = rows, least, memory
        self.first = Slots(self._make(0, least), 0)
        self._several: dict[int, Slots] = {0: self.first}  # those used last come last
        self._made = 1
        self._number, self._slot = np.full(rows, -1), np.full(rows, -1)
        self._places: Places | None = None
        self._used: dict[int, Slots] | None = None
        self._past: list[Shortages] = []  # of what was dropped

    @property
    def everyone(self) -> list[Slots]:
        """All that are compiled."""
        return list(self._several.values())

    @property
    def used(self) -> dict[int, Slots]:
        """Those that rows are in, by number; found anew when a row has moved."""
        if self._used is None:
            self._used = {k: self._several[k] for k in np.unique(self._number).tolist() if k >= 0}
        return self._used

    def check_started(self) -> None:
        """Raise :class:`ClosedError` where a row has no layout yet."""
        if not self.places.everywhere:
            raise ClosedError("call reset() before the first step: rows have no layout yet")

    @property
    def places(self) -> Places:
        """Where every row is; made anew when a row has moved."""
        if self._places is None:
            self._places = Places(self.used, self._number, self._slot, self.first.env.device)
        return self._places

    def sample(self) -> Places:
        """As if every row were in the first slot of the first environment, for shapes."""
        none = np.zeros(self._rows, np.int64)
        return Places({0: self.first}, none, none, self.first.env.device)

    def has_layout(self, row: int) -> bool:
        """Whether the row has been given a slot."""
        return bool(self._number[row] >= 0)

    def split(self, index: np.ndarray) -> list[tuple[Slots, np.ndarray, np.ndarray]]:
        """The environments that the rows of ``index`` are in, with their slots and their places in ``index``.

        Raises:
            ClosedError: rows have no layout yet.
        """
        numbers = self._number[index]
        if (numbers < 0).any():
            raise ClosedError("call reset() first: rows have no layout yet")
        found = ((self._several[k], np.flatnonzero(numbers == k)) for k in np.unique(numbers).tolist())
        return [(one, self._slot[index[which]], which) for one, which in found]

    def of(self, row: int) -> tuple[Slots, int]:
        """Where a row is; a row without a layout counts as the first slot of the first layout."""
        if not self.has_layout(row):
            return self.first, 0
        return self._several[int(self._number[row])], int(self._slot[row])

    def compiled(self, layout: int) -> Slots:
        """An environment of a layout, compiled if there is none."""
        for one in self._several.values():
            if one.layout == layout:
                return one
        made = self._add(self._make(layout, self._least), layout)
        self.trim(keep=made)
        return made

    def place(self, wanted: Mapping[int, int]) -> None:
        """Give rows slots of layouts (row -> number of the layout). What is missing is compiled first, so that no row
        has moved where that fails."""
        moving = {row: layout for row, layout in wanted.items() if self._layout(row) != layout}
        if not moving:
            return
        left = Counter(self._layout(row) for row in moving)
        made: list[tuple[Env, int]] = []
        try:
            for layout, needed in Counter(moving.values()).items():
                free = sum(int((~one.used).sum()) for one in self._several.values() if one.layout == layout)
                if (short := needed - free - left[layout]) > 0:
                    made.append((self._make(layout, max(short, self._least)), layout))
        except BaseException:
            for env, _ in made:
                env.close()
            raise
        for env, layout in made:
            self._add(env, layout)
        for row in moving:
            if self.has_layout(row):
                self._several[int(self._number[row])].put(self._slot[row], -1)
        for row, layout in moving.items():
            k = next(k for k, one in self._several.items() if one.layout == layout and not one.used.all())
            slot = int(np.flatnonzero(~self._several[k].used)[0])
            self._several[k].put(slot, row)
            self._number[row], self._slot[row] = k, slot
        self._places = self._used = None
        for k in np.unique(self._number[list(moving)]).tolist():
            self._several[k] = self._several.pop(k)  # the last to be dropped
        self.trim()

    def trim(self, *, keep: Slots | None = None) -> None:
        """Drop environments that no row is in, those used longest ago first, while all together take too much."""
        total = sum(one.memory for one in self._several.values())
        for k, one in list(self._several.items()):
            if total <= self._memory:
                return
            if one is not self.first and one is not keep and not one.used.any():
                total -= one.memory
                if short := one.env.world.shortages():
                    self._past.append((one.env.budget, short, one.rows.tolist()))
                del self._several[k]
                one.env.close()

    def shortages(self) -> Iterable[Shortages]:
        """Of every environment, also of those that were dropped: its budget, shortages and the rows in its slots."""
        yield from self._past
        for one in self._several.values():
            yield one.env.budget, one.env.world.shortages(), one.rows.tolist()

    def close(self) -> None:
        """Free the simulations."""
        for one in self._several.values():
            one.env.close()

    def _make(self, layout: int, slots: int) -> Env:
        make = self._maker()
        assert make is not None
        return make(layout, slots)

    def _layout(self, row: int) -> int:
        return self._several[int(self._number[row])].layout if self.has_layout(row) else -1

    def _add(self, env: Env, layout: int) -> Slots:
        made = self._several[self._made] = Slots(env, layout)
        self._made += 1
        return made
