"""Who gets shards, and when a run is given up, with workers that only do what a test says and a clock that it moves."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from manikin.cli.spread.options import SpreadOptions
from manikin.cli.spread.run import members, servants
from manikin.errors import ConfigError, DataError
from manikin.spread.cluster import Cluster
from manikin.spread.crew import Word
from manikin.spread.drive import Driven, drive
from manikin.spread.ledger import Ledger
from manikin.spread.shards import Shard
from manikin.spread.worker import Worker
from toy_work import begun, outcome


class Cast:
    """Workers in this process, each with a role by its number.

    ``works``: ready at once, and does its shards. ``waits``: never finds room. ``hangs``: has begun, and is never
    ready. ``dies``: ends before it is ready. ``leaves``: does one shard, and ends with the next.
    """

    def __init__(self, ledger: Ledger, role: Callable[[int], str]) -> None:
        self._worker, self._role = Worker(str(ledger.folder)), role
        self._words: deque[Word] = deque()
        self.started = 0
        self.given = Counter[int]()
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def start(self) -> int:
        worker, self.started = self.started, self.started + 1
        first = {"works": "ready", "leaves": "ready", "dies": "ended"}.get(self._role(worker))
        if first is not None:
            self._words.append(Word(worker, first, "status 3" if first == "ended" else ""))  # type: ignore[arg-type]
        return worker

    def waits(self, worker: int) -> bool:
        return self._role(worker) == "waits"

    def give(self, worker: int, shard: Shard) -> None:
        self.given[worker] += 1
        if self._role(worker) == "leaves" and self.given[worker] > 1:
            self._words.append(Word(worker, "ended"))
        else:
            self._words.append(Word(worker, *self._worker.do(shard.index, lambda: None)))  # type: ignore[arg-type]

    def listen(self, seconds: float) -> Sequence[Word]:
        self.now += 0.4
        return [self._words.popleft()] if self._words else []

    def end(self, worker: int) -> None:
        self._words = deque(word for word in self._words if word.worker != worker)

    def close(self) -> None:
        pass


def driven(ledger: Ledger, role: Callable[[int], str], workers: int) -> tuple[Driven, Cast]:
    cast = Cast(ledger, role)
    return drive(ledger, cast, workers=workers, deadline=1.0, clock=cast.clock), cast


def test_who_waits_for_room_is_no_fault_while_another_one_works(tmp_path: Path) -> None:
    ledger = begun(tmp_path / "run", 12, 1)  # twelve times 0.4 s, and the deadline is 1 s
    told, cast = driven(ledger, lambda worker: "waits" if worker else "works", 8)
    assert outcome(ledger)[0] == [[n, n * n] for n in range(12)]
    assert (told.late, told.ended, told.words, cast.started) == (0, 0, "", 8)


def test_where_nobody_finds_room_it_is_said_why(tmp_path: Path) -> None:
    said = "no worker has found room in the cluster within 1 s: .* --worker-cpus and --worker-gpus"
    with pytest.raises(DataError, match=said):
        driven(begun(tmp_path / "run", 4, 1), lambda worker: "waits", 2)


def test_the_time_to_find_room_begins_when_the_last_one_that_worked_has_ended(tmp_path: Path) -> None:
    ledger = begun(tmp_path / "run", 4, 1)
    with pytest.raises(DataError, match=r"no worker has found room .* --resume goes on"):
        driven(ledger, lambda worker: "waits" if worker else "leaves", 2)
    assert outcome(ledger)[0] == [[0, 0]]


def test_workers_that_begin_and_are_never_ready_end_the_run_where_nobody_works(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="3 workers in a row were not ready after 1 s"):
        driven(begun(tmp_path / "run", 4, 1), lambda worker: "hangs", 2)
    with pytest.raises(DataError, match="3 workers in a row ended before they were ready: status 3"):
        driven(begun(tmp_path / "dies", 4, 1), lambda worker: "dies", 2)
    with pytest.raises(DataError, match="3 workers in a row ended"):  # also beside one that waits for room
        driven(begun(tmp_path / "waits", 4, 1), lambda worker: "dies" if worker else "waits", 2)


@pytest.mark.parametrize("role", ["hangs", "dies"])
def test_others_go_on_without_workers_that_are_never_ready(tmp_path: Path, role: str) -> None:
    ledger = begun(tmp_path / "run", 12, 1)
    told, _ = driven(ledger, lambda worker: role if worker else "works", 8)
    assert outcome(ledger)[0] == [[n, n * n] for n in range(12)]
    assert (told.late if role == "hangs" else told.ended) >= 7


class Ray:
    """Of Ray what says which machines there are."""

    def nodes(self) -> list[dict[str, Any]]:
        big, small = {"CPU": 8.0, "GPU": 1.0, "memory": 1e9}, {"CPU": 3.0}
        return [
            {"Alive": True, "Resources": big},
            {"Alive": True, "Resources": small},
            {"Alive": False, "Resources": big},
        ]


def test_the_room_in_a_cluster_is_that_of_its_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", Ray())
    cluster = object.__new__(Cluster)
    assert [cluster.room(cpus) for cpus in (1.0, 2.0, 0.5, 9.0)] == [11, 5, 22, 0]
    assert [cluster.room(1.0, gpus) for gpus in (0.25, 0.1, 2.0)] == [4, 8, 0]


def test_who_shares_a_search_on_a_cluster_that_is_there_says_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MANIKIN_CORES", "1")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert members(SpreadOptions(on="ray")) == members(SpreadOptions(on="local")) == 1
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    with pytest.raises(ConfigError, match="say with --workers"):
        members(SpreadOptions(on="ray"))
    assert members(SpreadOptions(on="ray", workers=2)) == 2 and members(SpreadOptions(on="local")) == 1


def test_a_gpu_that_this_machine_lacks_is_refused_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[tuple[float, float]] = []

    class Bare:
        def __init__(self, **given: Any) -> None:
            assert given["address"] is None

        def room(self, cpus: float, gpus: float) -> int:
            asked.append((cpus, gpus))
            return 0

        def close(self) -> None:
            asked.append((0.0, 0.0))

    monkeypatch.setattr("manikin.spread.cluster.Cluster", Bare)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    options = SpreadOptions(on="ray", workers=2, worker_gpus=0.25)
    with pytest.raises(ConfigError, match=r"a worker takes 0\.25 of a GPU, and Ray finds too few on this machine"):
        servants(options, "toy_work:Squares", {}, log=tmp_path / "log.txt")
    assert asked == [(1.0, 0.25), (0.0, 0.0)]
