"""Workers that are processes of this machine."""

from __future__ import annotations

import json
import math
import os
import platform
import selectors
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from manikin.sim.device import CORES_VARIABLE
from manikin.spread.crew import Word
from manikin.spread.shards import Shard

__all__ = ["Processes", "child_environment", "worker_environment"]


def worker_environment(cpus: float) -> dict[str, str]:
    """Environment variables that give a worker so many cores; torch and the physics take no more."""
    cores = str(max(1, math.floor(cpus)))
    return {CORES_VARIABLE: cores, "OMP_NUM_THREADS": cores, "GOMP_SPINCOUNT": "0"}


def child_environment(cpus: float) -> dict[str, str]:
    """All environment variables of a worker that is a process of this machine: it imports from where this one does."""
    return {**os.environ, **worker_environment(cpus), "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}


class Processes:
    """Starts workers as processes. They end when this one does, also when it is killed.

    Args:
        folder: of the run.
        cpus: cores of a worker.
    """

    def __init__(self, folder: Path, *, cpus: float = 1.0) -> None:
        self._folder, self._cpus = folder, cpus
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._halves: dict[int, bytes] = {}  # of lines that are not whole yet
        self._selector = selectors.DefaultSelector()
        self._started = 0

    @property
    def pids(self) -> dict[int, int]:
        """Worker -> number of its process."""
        return {worker: process.pid for worker, process in self._processes.items()}

    def start(self) -> int:
        worker = self._started
        self._started += 1
        with self._log(worker).open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "manikin.spread.worker", str(self._folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=child_environment(self._cpus),
                start_new_session=True,  # Ctrl-C is for the process that hands out
            )
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        self._processes[worker], self._halves[worker] = process, b""
        self._selector.register(process.stdout, selectors.EVENT_READ, worker)
        return worker

    def waits(self, worker: int) -> bool:
        return False

    def give(self, worker: int, shard: Shard) -> None:
        pipe = self._processes[worker].stdin
        assert pipe is not None
        with suppress(BrokenPipeError):  # it has ended, which is heard next
            pipe.write(f"{shard.index}\n".encode())
            pipe.flush()

    def listen(self, seconds: float) -> Sequence[Word]:
        words: list[Word] = []
        for key, _ in self._selector.select(seconds):
            words += self._read(key.data)
        return words

    def _read(self, worker: int) -> list[Word]:
        pipe = self._processes[worker].stdout
        assert pipe is not None
        content = pipe.read()
        *lines, self._halves[worker] = (self._halves[worker] + (content or b"")).split(b"\n")
        words = [Word(worker, **json.loads(line)) for line in lines]
        if content == b"":
            why = self._why(worker)
            self.end(worker)
            words.append(Word(worker, "ended", why))
        return words

    def _log(self, worker: int) -> Path:
        return self._folder / "log" / f"{platform.node()}-{os.getpid()}-{worker}.txt"

    def _why(self, worker: int) -> str:
        """How a process ended, and the last line that it wrote."""
        with suppress(subprocess.TimeoutExpired):
            self._processes[worker].wait(5)
        log = self._log(worker)
        lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
        return f"status {self._processes[worker].returncode}" + (f", {lines[-1]}" if lines else "")

    def end(self, worker: int) -> None:
        process = self._processes.pop(worker, None)
        if process is None:  # it has ended on its own
            return
        assert process.stdin is not None and process.stdout is not None
        self._selector.unregister(process.stdout)
        process.kill()
        process.wait()
        process.stdout.close()
        with suppress(BrokenPipeError):
            process.stdin.close()

    def close(self) -> None:
        for worker in list(self._processes):
            self.end(worker)
        self._selector.close()
