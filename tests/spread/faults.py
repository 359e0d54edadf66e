"""``python -m faults FOLDER``: hand out a run of toy work while faults happen that are drawn from a seed.

One of them ends this process; started again, it goes on with the run, and with the faults that are left.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from pathlib import Path

from manikin.errors import DataError
from manikin.spread.drive import drive
from manikin.spread.ledger import Ledger
from manikin.spread.processes import Processes
from toy_work import begun

__all__ = ["ITEMS", "POISON", "WITHOUT_ROOM", "drawn", "run_of"]

FAULTS, ITEMS, POISON = 30, 240, 100
WITHOUT_ROOM = 3
"""Exit status where no worker is left that can write."""
_DEADLINE = 6.0  # [s] many times what a shard takes, and more than a worker needs to become ready
_STEPS = 6  # items at most that are finished between two faults: all of them happen before the items are


def drawn() -> list[tuple[str, int]]:
    """The faults: what happens, and after how many more items."""
    chance = random.Random(97)
    kinds = ("kill", "kill", "hang", "driver", "full")
    return [(chance.choice(kinds), chance.randint(1, _STEPS)) for _ in range(FAULTS)]


def run_of(place: Path) -> Ledger:
    """The run, begun or to be gone on with."""
    run, full = place / "run", place / "full"
    full.mkdir(exist_ok=True)
    return begun(run, ITEMS, 4, resume=run.exists(), seconds=0.05, raises=[POISON], full=str(full))


def main(place: Path) -> None:
    ledger, happened = run_of(place), place / "happened.txt"
    crew, stopped = Processes(ledger.folder), set[int]()
    chance = random.Random(os.getpid())  # who is hit is left to chance: who is there is, too
    steps = 0

    def advance() -> None:
        nonlocal steps
        steps += 1

    def disturb() -> bool:
        nonlocal steps
        already = len(happened.read_text().split()) if happened.exists() else 0
        there = sorted(set(crew.pids.values()) - stopped)
        if already == FAULTS or not there or steps < drawn()[already][1]:
            return False
        fault, steps = drawn()[already][0], 0
        with happened.open("a") as file:
            file.write(f"{fault}\n")
        pid = chance.choice(there)
        if fault == "kill":
            os.kill(pid, signal.SIGKILL)
        elif fault == "hang":
            os.kill(pid, signal.SIGSTOP)
            stopped.add(pid)
        elif fault == "full":
            (place / "full" / str(pid)).touch()
        else:
            for pid in stopped & set(crew.pids.values()):  # it wakes up when all have forgotten it
                os.kill(pid, signal.SIGCONT)
            os.kill(os.getpid(), signal.SIGKILL)
        return False

    try:
        drive(ledger, crew, workers=2, deadline=_DEADLINE, advance=advance, stop=disturb, stillborn=FAULTS)
    except DataError as error:
        print(error)
        sys.exit(WITHOUT_ROOM)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
