"""A worker: opens the work of a run and does the shards that it is given.

``python -m manikin.spread.worker FOLDER`` is one as a process. It reads the indices of shards, a line each, from its
standard input, and writes what it says as lines of JSON. When its input ends, so does it: whoever started it is gone.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable

from manikin.errors import DataError, ManikinError
from manikin.machine import different, exact_machine
from manikin.spread.attempt import LostShardError, Opened, UnableError, attempt
from manikin.spread.ledger import Ledger

__all__ = ["Worker", "main"]


class Worker:
    """Does shards of a run.

    Args:
        folder: of the run.

    Raises:
        UnableError: this machine has another kind of processor than the run, or other versions; its bits would differ.
        ManikinError: the work cannot be opened.
    """

    def __init__(self, folder: str) -> None:
        self._ledger = Ledger(folder)
        then = self._ledger.intent.machine
        if said := different(then, exact_machine(then["device"])):
            raise UnableError(
                f"{os.uname().nodename} is of another kind than the run, so that its last bits could differ: {said}"
            )
        self._opened = Opened(self._ledger.intent.work, self._ledger.intent.settings)

    def do(self, index: int, advance: Callable[[], None]) -> tuple[str, str]:
        """Do a shard; what is to be said of it, as :class:`~manikin.spread.crew.Word` has it: kind and text."""
        shard = self._ledger.intent.shards[index]
        if self._ledger.manifest(shard) is not None:
            return "done", ""
        try:
            attempt(self._ledger, shard, self._opened, advance)
        except UnableError as error:
            return "unable", str(error)
        except LostShardError as error:
            return "again", str(error)
        return "done", ""

    def close(self) -> None:
        """Let go of everything."""
        self._opened.close()


def open_worker(folder: str) -> tuple[Worker | None, str, str]:
    """A worker, ``ready``; or None and what is to be said: kind and text."""
    try:
        return Worker(folder), "ready", ""
    except UnableError as error:
        return None, "unable", str(error)
    except ManikinError as error:
        return None, "broken", str(error)


def main() -> None:
    """Be a worker until the input ends."""
    said = os.fdopen(os.dup(1), "w")  # what a work prints goes into the log
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who hands out decides

    def say(kind: str, text: str = "") -> None:
        said.write(json.dumps({"kind": kind, "text": text}) + "\n")
        said.flush()

    shards: queue.SimpleQueue[int] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            shards.put(int(line))
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    worker, kind, text = open_worker(sys.argv[1])
    say(kind, text)
    while worker is not None:
        say(*worker.do(shards.get(), lambda: say("step")))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise DataError("usage: python -m manikin.spread.worker FOLDER")
    main()
