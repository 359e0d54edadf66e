"""A run that is spread over processes: what comes out, whatever happens to them. The work needs no simulator."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from faults import ITEMS, POISON, WITHOUT_ROOM, drawn, run_of
from manikin.errors import ConfigError, DataError
from manikin.spread.drive import Driven, drive
from manikin.spread.ledger import Ledger
from manikin.spread.processes import Processes
from manikin.spread.shards import runs_of, split
from toy_work import begun, outcome


def wanted(items: int, without: tuple[int, ...] = ()) -> list[list[int]]:
    return [[n, n * n] for n in range(items) if n not in without]


def driven(ledger: Ledger, workers: int = 2, deadline: float = 60.0, **more: Any) -> Driven:
    return drive(ledger, Processes(ledger.folder), workers=workers, deadline=deadline, **more)


def test_shards_have_every_number_once_and_begin_at_the_edges() -> None:
    shards = split(range(10), 4, edges=[0, 3])
    assert [shard.numbers for shard in shards] == [(0, 1, 2), (3, 4, 5, 6), (7, 8, 9)]
    assert runs_of([0, 1, 2, 5, 7, 8]) == [[0, 2], [5, 5], [7, 8]]
    with pytest.raises(ConfigError, match="at least 1"):
        split(range(3), 0)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_same_comes_out_of_any_number_of_workers(tmp_path: Path, workers: int) -> None:
    steps: list[None] = []
    ledger = begun(tmp_path / "run", 7, 2)
    told = driven(ledger, workers, advance=lambda: steps.append(None))
    assert outcome(ledger) == (wanted(7), list(range(7)))
    assert len(steps) == 7 and not ledger.left() and not told.words
    assert {m.facts["content"] for m in ledger.manifests()} == {
        m.facts["content"] for m in ledger.manifests() if m.began == 1
    }


def test_items_that_raise_are_named_once_and_the_rest_is_done(tmp_path: Path) -> None:
    ledger = begun(tmp_path / "run", 8, 4, raises=[2, 5])
    driven(ledger)
    assert outcome(ledger)[0] == wanted(8, without=(2, 5))
    assert [(f["number"], f["what"]) for f in ledger.failed] == [
        (2, "item 2 (seed 1002)"),
        (5, "item 5 (seed 1005)"),
    ]
    assert "item 2 cannot be done" in ledger.failed[0]["error"]


def test_failed_items_are_tried_again_when_the_run_goes_on(tmp_path: Path) -> None:
    driven(begun(tmp_path / "run", 4, 4, raises=[2]))
    plan = tmp_path / "run" / "plan.json"
    plan.write_text(plan.read_text().replace('"raises": [2]', '"raises": []'))  # the cause was removed
    ledger = begun(tmp_path / "run", 4, 4, resume=True)
    ledger.retry()
    driven(ledger, 1)
    items, tried = outcome(ledger)
    assert items == wanted(4) and tried == [0, 1, 3, 2] and not ledger.failed  # what went well ran once


def test_an_item_that_ends_the_process_is_found(tmp_path: Path) -> None:
    ledger = begun(tmp_path / "run", 4, 4, ends=[1])
    told = driven(ledger, 1)
    items, tried = outcome(ledger)
    assert items == wanted(4, without=(1,)) and sorted(tried) == [0, 2, 3]
    assert [f["number"] for f in ledger.failed] == [1] and "3 attempts" in ledger.failed[0]["error"]
    assert told.ended == 6 and "6 workers ended" in told.words


class Leaping:
    """A clock that leaps a minute ahead whenever one more item hangs: nobody has to wait, and a busy machine is not
    taken for one that hangs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.stuck = folder, set[int]()

    def __call__(self) -> float:
        with suppress(FileNotFoundError):  # a folder got another name meanwhile: next time
            self.stuck |= {path.stat().st_mtime_ns for path in self.folder.rglob("*.stuck")}
        return time.monotonic() + 61.0 * len(self.stuck)


def test_an_item_that_hangs_is_found_by_its_deadline(tmp_path: Path) -> None:
    ledger = begun(tmp_path / "run", 3, 3, hangs=[1])
    told = driven(ledger, 1, deadline=60.0, clock=Leaping(ledger.folder))
    assert outcome(ledger)[0] == wanted(3, without=(1,))
    assert [f["number"] for f in ledger.failed] == [1] and told.late == 6


def test_thirty_random_faults_lose_nothing_and_do_nothing_twice(tmp_path: Path) -> None:
    if not Path("/dev/full").is_char_device():
        pytest.skip("/dev/full is missing, or a file with room: rm -f /dev/full; mknod -m 666 /dev/full c 1 7")
    command = [sys.executable, "-m", "faults", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ends = list[int]()
    while 0 not in ends:  # the process that hands out is killed, or gives up where all disks are full
        driver = subprocess.run(command, env=environment, capture_output=True, text=True)
        ends.append(driver.returncode)
        assert driver.returncode in (0, -signal.SIGKILL, WITHOUT_ROOM), driver.stderr
        if driver.returncode == WITHOUT_ROOM:
            assert "no worker is left that can go on" in driver.stdout and "No space left on device" in driver.stdout
    ledger, happened = run_of(tmp_path), (tmp_path / "happened.txt").read_text().split()
    assert happened == [fault for fault, _ in drawn()] and len(happened) == 30
    assert all(happened.count(fault) >= 3 for fault in ("kill", "hang", "driver", "full"))
    assert ends.count(-signal.SIGKILL) == happened.count("driver")
    items, tried = outcome(ledger)
    assert items == wanted(ITEMS, without=(POISON,))
    assert [item["what"] for item in ledger.failed] == [f"item {POISON} (seed {1000 + POISON})"]
    assert len(tried) == len(set(tried)), "a finished item was done again"


def test_what_a_killed_worker_wrote_by_half_is_no_file_of_the_shard(tmp_path: Path) -> None:
    ledger = begun(tmp_path / "run", 2, 2)
    attempt = ledger.claim(ledger.intent.shards[0])
    for name in ("manifest.tmp", "attempts.tmp"):
        (attempt / name).write_bytes(b"{")
    assert not driven(ledger, 1).unable
    assert outcome(ledger)[0] == wanted(2)
    assert not any(name.endswith(".tmp") for name in ledger.manifests()[0].files)


def test_a_killed_driver_takes_its_workers_along_and_the_run_goes_on(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from toy_work import begun; from manikin.spread.drive import drive\n"
        "from manikin.spread.processes import Processes\n"
        f"ledger = begun(Path({str(tmp_path / 'run')!r}), 12, 3, seconds=0.3)\n"
        "crew = Processes(ledger.folder)\n"
        "drive(ledger, crew, workers=2, deadline=60,\n"
        "      advance=lambda: print(*crew.pids.values(), flush=True))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    pids = [int(word) for word in process.stdout.readline().split()]
    process.kill()
    process.wait()
    process.stdout.close()
    until = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < until:
        time.sleep(0.05)
    assert pids and not any(Path(f"/proc/{pid}").exists() for pid in pids)
    with pytest.raises(DataError, match="--resume"):
        begun(tmp_path / "run", 12, 3)
    with pytest.raises(DataError, match="items: 12 there, 13 here"):
        begun(tmp_path / "run", 13, 3, resume=True)
    ledger = begun(tmp_path / "run", 12, 3, resume=True)
    driven(ledger)
    items, tried = outcome(ledger)
    assert items == wanted(12) and len(tried) == len(set(tried))


def test_a_worker_that_cannot_write_is_left_out_and_another_does_its_shard(tmp_path: Path) -> None:
    ledger = begun(tmp_path / "run", 12, 3, seconds=0.1)
    crew = Processes(ledger.folder)
    start = crew.start

    def limited() -> int:
        worker = start()
        if worker == 0:
            resource.prlimit(crew.pids[worker], resource.RLIMIT_FSIZE, (3, 3))
        return worker

    crew.start = limited  # type: ignore[method-assign]
    told = drive(ledger, crew, workers=2, deadline=60)
    assert outcome(ledger)[0] == wanted(12) and not ledger.failed
    assert len(told.unable) == 1 and "cannot write" in told.unable[0]


def test_where_no_worker_can_go_on_that_is_said(tmp_path: Path) -> None:
    ledger = begun(tmp_path / "run", 4, 2)
    plan = tmp_path / "run" / "plan.json"
    plan.write_text(plan.read_text().replace('"processor": "', '"processor": "other '))
    with pytest.raises(DataError, match="of another kind than the run"):
        driven(Ledger(ledger.folder))
    assert outcome(ledger) == ([], [])


def test_workers_that_end_before_they_begin_end_the_run(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="3 workers in a row ended before they were ready: status 3"):
        driven(begun(tmp_path / "run", 4, 2, closed=True), 1)


def test_a_worker_whose_shard_was_taken_over_writes_nothing_more(tmp_path: Path) -> None:
    ledger = begun(tmp_path / "run", 4, 4)
    (shard,) = ledger.intent.shards
    first = ledger.claim(shard)
    (first / "0.item").write_text("0")
    second = ledger.claim(shard)
    assert not first.exists() and (second / "0.item").exists()


def test_a_result_that_was_changed_is_refused_and_done_again(tmp_path: Path) -> None:
    ledger = begun(tmp_path / "run", 4, 2)
    driven(ledger, 1)
    (ledger.folder / "done" / "000001" / "3.item").write_text("8")
    with pytest.raises(DataError, match="changed or damaged"):
        outcome(ledger)
    assert [shard.index for shard in ledger.left()] == [1]
    driven(ledger, 1)
    assert outcome(ledger)[0] == wanted(4)
