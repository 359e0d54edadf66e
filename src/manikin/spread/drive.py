"""Hands shards to workers until all are finished, whatever happens to the workers."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from manikin.errors import ConfigError, DataError
from manikin.spread.crew import Crew, Word
from manikin.spread.ledger import Ledger
from manikin.spread.shards import Shard

__all__ = ["Driven", "drive"]


@dataclass
class Driven:
    """How it went.

    Attributes:
        interrupted: stopped before all was finished.
        ended: workers that ended on their own and were replaced. late: those that were ended because they were out of
            time. again: shards that were handed out once more.
        unable: what workers said that could not go on, and were not replaced.
    """

    interrupted: bool = False
    ended: int = 0
    late: int = 0
    again: int = 0
    unable: list[str] = field(default_factory=list)

    @property
    def words(self) -> str:
        """One line for people; empty where nothing happened."""
        said = [
            *([f"{self.ended} workers ended and were replaced"] if self.ended else []),
            *([f"{self.late} were out of time"] if self.late else []),
            *([f"{len(self.unable)} could not go on ({self.unable[0]})"] if self.unable else []),
            *([f"{self.again} shards were handed out again"] if self.again else []),
        ]
        return "; ".join(said)


def drive(
    ledger: Ledger,
    crew: Crew,
    *,
    workers: int,
    deadline: float,
    shards: Sequence[Shard] | None = None,
    advance: Callable[[], None] = lambda: None,
    stop: Callable[[], bool] = lambda: False,
    stillborn: int = 3,
    clock: Callable[[], float] = time.monotonic,
) -> Driven:
    """Let workers do what is left of a run, or a share of that.

    Args:
        ledger: the run.
        crew: starts workers.
        workers: at a time.
        deadline: seconds that a worker may be at a shard, or at becoming ready, before it is ended.
        shards: the share; by default all that is left.
        advance: called after each item.
        stop: asked again and again; True ends the workers. What is finished stays.
        stillborn: how often in a row workers may end before they are ready. Then the run ends where nobody works;
            where others do, such a worker is not replaced.
        clock: gives seconds.

    Raises:
        ConfigError: the work cannot be opened, with what the worker said.
        DataError: no worker is left that can do it, none has found room within the deadline, or what they finish is
            not seen here.
    """
    share = ledger.left() if shards is None else shards
    driver = _Driver(ledger, crew, share, workers, deadline, advance, stillborn, clock)
    try:
        while driver.waiting or driver.busy:
            if stop():
                driver.driven.interrupted = True
                break
            driver.staff()
            for word in crew.listen(0.2):
                driver.hear(word)
            driver.look_at_the_clock()
            driver.count_stillborn()
    finally:
        crew.close()
    return driver.driven


class _Driver:
    def __init__(
        self,
        ledger: Ledger,
        crew: Crew,
        shards: Sequence[Shard],
        workers: int,
        deadline: float,
        advance: Callable[[], None],
        stillborn: int,
        clock: Callable[[], float],
    ) -> None:
        self.ledger, self.crew, self.seats, self.deadline = ledger, crew, workers, deadline
        self.advance, self.clock = advance, clock
        self.waiting = deque(shards)
        self.driven = Driven()
        self.idle: list[int] = []
        self.steps: dict[int, int] = {}  # items that a worker has finished of its shard
        self.busy: dict[int, Shard] = {}
        self.since: dict[int, float] = {}  # when a worker began with its shard, or with becoming ready
        self.begun = -math.inf  # when last a worker was there that had found room
        self._most, self._stillborn, self._died = stillborn, 0, ""
        self._gone: set[int] = set()

    def staff(self) -> None:
        """As many workers as are of use, and a shard for each that has none."""
        while self.idle and self.waiting:
            worker, shard = self.idle.pop(), self.waiting.popleft()
            self.busy[worker], self.since[worker] = shard, self.clock()
            self.steps[worker] = 0
            self.crew.give(worker, shard)
        coming = len(self.since) - len(self.busy)
        for _ in range(min(self.seats - len(self.since) - len(self.idle), len(self.waiting) - coming)):
            self.since[self.crew.start()] = self.clock()

    def hear(self, word: Word) -> None:
        if word.worker in self._gone:
            return
        if word.kind == "step":
            self.advance()
            self.steps[word.worker] = self.steps.get(word.worker, 0) + 1
            return
        self.since.pop(word.worker, None)
        self.begun = self.clock()
        shard = self.busy.pop(word.worker, None)
        if word.kind == "broken":
            raise ConfigError(word.text)
        if word.kind in ("ready", "done", "again"):
            self._stillborn = 0
            self.idle.append(word.worker)
        if word.kind == "done" and shard is not None and self.ledger.manifest(shard) is None:
            raise DataError(
                f"a worker says that shard {shard.index} is finished, but {self.ledger.folder} does not show it: the "
                "folder must be on storage that all machines share"
            )
        if word.kind == "done" and shard is not None:
            for _ in range(len(shard.numbers) - self.steps.get(word.worker, 0)):  # that it did not speak of
                self.advance()
        if word.kind in ("again", "unable", "ended") and shard is not None:
            self._again(shard)
        if word.kind == "ended":
            self.driven.ended += 1
            self._gone.add(word.worker)
            if word.worker in self.idle:
                self.idle.remove(word.worker)
            elif shard is None:
                self._died = f"ended before they were ready: {word.text}"
        if word.kind == "unable":
            self.driven.unable.append(word.text)
            self._end(word.worker)
            self.seats -= 1
            if not self.seats:
                raise DataError(
                    f"no worker is left that can go on: {word.text}. What is finished is safe in {self.ledger.folder}; "
                    "--resume goes on"
                )

    def look_at_the_clock(self) -> None:
        """End workers that are out of time, and hand their shards to others. To wait for room is no fault while
        another one works."""
        now = self.clock()
        outside = {worker for worker in self.since if worker not in self.busy and self.crew.waits(worker)}
        if len(self.since) > len(outside):
            self.begun = now
        for worker, since in list(self.since.items()):
            if worker in outside:
                if now - max(since, self.begun) <= self.deadline:
                    continue
                raise DataError(
                    f"no worker has found room in the cluster within {self.deadline:g} s: it is full, or no machine of "
                    "it has what --worker-cpus and --worker-gpus ask for. What is finished is safe in "
                    f"{self.ledger.folder}; --resume goes on"
                )
            if now - since > self.deadline:
                self._end(worker)
                del self.since[worker]
                shard = self.busy.pop(worker, None)
                self.driven.late += 1
                if shard is not None:
                    self._again(shard)
                else:
                    self._died = f"were not ready after {self.deadline:g} s"

    def count_stillborn(self) -> None:
        """Of those that were gone at the same time, as where a cluster is lost, one counts."""
        if not self._died:
            return
        self._stillborn += 1
        said, self._died = f"{self._stillborn} workers in a row {self._died}", ""
        if self._stillborn >= self._most and not self.busy:
            raise DataError(said)
        if self._stillborn >= self._most:
            self.driven.unable.append(said)
            self.seats -= 1

    def _end(self, worker: int) -> None:
        self._gone.add(worker)
        self.crew.end(worker)

    def _again(self, shard: Shard) -> None:
        if self.ledger.manifest(shard) is None:
            self.waiting.appendleft(shard)
            self.driven.again += 1
