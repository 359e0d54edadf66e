"""Servants that are asked: processes of this machine, or actors of a Ray cluster."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Protocol

from manikin.errors import ConfigError, DataError, ManikinError
from manikin.spread.cluster import Cluster
from manikin.spread.processes import child_environment
from manikin.spread.servant import ANSWER, REFUSED, Held, read_message, write_message

__all__ = ["LostServantError", "ServantActors", "ServantProcesses", "Servants"]


class LostServantError(ManikinError, RuntimeError):
    """A servant has ended on its own."""


class Servants(Protocol):
    """Servants of one kind, by number."""

    def start(self) -> int:
        """Start a servant; its number."""

    def ask(self, servant: int, request: bytes) -> None:
        """Send a request; :meth:`answer` is to be called before the next one."""

    def answer(self, servant: int) -> bytes:
        """Wait for the answer to the request.

        Raises:
            LostServantError: the servant has ended.
            ConfigError: it refused the request, or could not be opened.
            DataError: it failed, with what it said.
        """

    def seconds(self) -> float:
        """Processor time of the servants that are there, as of their last answers."""

    def close(self) -> None:
        """End all of them."""


class ServantProcesses:
    """Starts servants as processes. They end when this one does, also when it is killed.

    Args:
        word: ``module:Class`` of what each holds.
        settings: that it is made with, as plain values.
        cpus: cores of a servant.
        log: the file that they print into.
        deadline: seconds that an answer may take.
    """

    def __init__(
        self, word: str, settings: Mapping[str, Any], *, log: Path, cpus: float = 1.0, deadline: float = 3600.0
    ) -> None:
        self.deadline = deadline
        self._first = json.dumps({"word": word, "settings": settings}).encode()
        self._cpus = cpus
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._seconds: dict[int, float] = {}
        self._log = log

    @property
    def pids(self) -> dict[int, int]:
        """Servant -> number of its process."""
        return {servant: process.pid for servant, process in self._processes.items()}

    def start(self) -> int:
        servant = max(self._seconds, default=-1) + 1
        self._seconds[servant] = 0.0
        with self._log.open("ab") as log:
            self._processes[servant] = subprocess.Popen(
                [sys.executable, "-m", "manikin.spread.servant"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=child_environment(self._cpus),
                start_new_session=True,  # Ctrl-C is for the process that asks
            )
        self.ask(servant, self._first)
        return servant

    def ask(self, servant: int, request: bytes) -> None:
        with suppress(BrokenPipeError):  # it has ended, which is heard when it is to answer
            write_message(_open(self._processes[servant].stdin), request)

    def answer(self, servant: int) -> bytes:
        process = self._processes[servant]
        pipe = _open(process.stdout)
        try:
            if not select.select([pipe], [], [], self.deadline)[0]:
                raise EOFError
            reply = read_message(pipe)
        except EOFError:
            self._end(servant)
            raise LostServantError(f"servant {servant} ended, or was out of time ({process.returncode})") from None
        self._seconds[servant], said = _told(reply)
        return said

    def seconds(self) -> float:
        return sum(self._seconds[servant] for servant in list(self._processes))

    def _end(self, servant: int) -> None:
        process = self._processes.pop(servant)
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(BrokenPipeError):
                _open(pipe).close()

    def close(self) -> None:
        for servant in list(self._processes):
            self._end(servant)


class ServantActors:
    """Starts servants as actors of a Ray cluster. Requests and answers are blocks of bytes in its store.

    Args:
        cluster: it.
        word, settings: as of :class:`ServantProcesses`.
        cpus, gpus: that Ray sets aside for each.
        deadline: seconds that an answer may take.
    """

    def __init__(
        self,
        cluster: Cluster,
        word: str,
        settings: Mapping[str, Any],
        *,
        cpus: float = 1.0,
        gpus: float = 0.0,
        deadline: float = 3600.0,
    ) -> None:
        self._cluster, self._word, self._settings = cluster, word, dict(settings)
        self._cpus, self._gpus, self.deadline = cpus, gpus, deadline
        self._actors: dict[int, Any] = {}
        self._asked: dict[int, Any] = {}
        self._seconds: dict[int, float] = {}

    def start(self) -> int:
        import ray

        servant = max(self._seconds, default=-1) + 1
        kind = ray.remote(num_cpus=self._cpus, num_gpus=self._gpus, max_restarts=0)(Held)
        self._actors[servant], self._seconds[servant] = kind.remote(self._word, self._settings), 0.0
        return servant

    def ask(self, servant: int, request: bytes) -> None:
        actor = self._actors.get(servant)  # none where its cluster was lost
        self._asked[servant] = None if actor is None else actor.reply.remote(request)

    def answer(self, servant: int) -> bytes:
        import ray

        asked = self._asked.pop(servant)
        if asked is None:
            raise LostServantError("the cluster was lost")
        try:
            reply = ray.get(asked, timeout=self.deadline)
        except Exception as error:  # whatever Ray raises where an actor or a cluster is gone, or is out of time
            actor = self._actors.pop(servant, None)
            with suppress(Exception):
                ray.kill(actor, no_restart=True)
            if not self._cluster.alive():
                self._actors.clear()
                self._cluster.begin_again()
            raise LostServantError(str(error).strip().splitlines()[0]) from None
        self._seconds[servant], said = _told(reply)
        return said

    def seconds(self) -> float:
        return sum(self._seconds.values())

    def close(self) -> None:
        self._cluster.close(self._actors.values())


def _told(reply: bytes) -> tuple[float, bytes]:
    """Processor time of a servant [s], and its answer."""
    seconds, kind, said = int.from_bytes(reply[:8], "little") / 1000, reply[8:9], reply[9:]
    if kind == ANSWER:
        return seconds, said
    raise (ConfigError if kind == REFUSED else DataError)(said.decode())


def _open(pipe: IO[bytes] | None) -> Any:
    assert pipe is not None
    return pipe
