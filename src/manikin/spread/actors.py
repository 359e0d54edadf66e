"""Workers that are actors of a Ray cluster: one that is started for this run, or one that is there."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from manikin.spread.cluster import Cluster
from manikin.spread.crew import Word
from manikin.spread.shards import Shard
from manikin.spread.worker import Worker, open_worker

__all__ = ["Actors"]


class _Member:
    """A worker in an actor's process."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._worker: Worker | None = None

    def begin(self) -> None:
        """Answered as soon as there is room for the actor."""

    def open(self) -> tuple[str, str]:
        self._worker, kind, text = open_worker(self._folder)
        return kind, text

    def do(self, index: int) -> tuple[str, str]:
        assert self._worker is not None
        return self._worker.do(index, lambda: None)

    def where(self) -> tuple[str, int]:
        return os.uname().nodename, os.getpid()


class Actors:
    """Starts workers as actors. Only words go through Ray: the number of a shard, and whether it is finished.

    Args:
        folder: of the run, on storage that all machines see.
        cluster: where they are.
        cpus, gpus: that Ray sets aside for each; fractions of a GPU are fine.
    """

    def __init__(self, folder: Path, cluster: Cluster, *, cpus: float = 1.0, gpus: float = 0.0) -> None:
        self._folder, self._cluster, self._cpus, self._gpus = folder, cluster, cpus, gpus
        self._actors: dict[int, Any] = {}
        self._asked: dict[Any, int] = {}  # reference to an answer -> the worker that gives it
        self._waiting: dict[int, Any] = {}  # worker that waits for room -> reference that is answered when it has begun
        self._started = 0
        self._heard = 0

    @property
    def bytes_heard(self) -> int:
        """How many bytes of answers the workers have sent so far."""
        return self._heard

    @property
    def pids(self) -> dict[int, int]:
        """Worker -> number of its process, where it answers at once."""
        import ray

        return {worker: ray.get(actor.where.remote(), timeout=60)[1] for worker, actor in self._actors.items()}

    def start(self) -> int:
        import ray

        worker = self._started
        self._started += 1
        kind = ray.remote(num_cpus=self._cpus, num_gpus=self._gpus, max_restarts=0)(_Member)
        actor = kind.remote(str(self._folder))
        self._actors[worker] = actor
        self._waiting[worker] = actor.begin.remote()
        self._asked |= {self._waiting[worker]: worker, actor.open.remote(): worker}
        return worker

    def waits(self, worker: int) -> bool:
        return worker in self._waiting

    def give(self, worker: int, shard: Shard) -> None:
        self._asked[self._actors[worker].do.remote(shard.index)] = worker

    def listen(self, seconds: float) -> Sequence[Word]:
        import ray

        if not self._asked:
            time.sleep(seconds)
            return []
        try:
            answered, _ = ray.wait(list(self._asked), num_returns=1, timeout=seconds)
        except Exception:  # whatever Ray raises where a cluster is gone
            return self._lost()
        words: list[Word] = []
        for reference in answered:
            worker = self._asked.pop(reference)
            try:
                answer = ray.get(reference)
            except Exception as error:
                self._forget(worker)
                words.append(Word(worker, "ended", str(error).strip().splitlines()[0]))
                continue
            if self._waiting.get(worker) == reference:
                del self._waiting[worker]
                continue
            kind, text = answer
            self._heard += len(kind) + len(text)
            words.append(Word(worker, kind, text))
        if any(word.kind == "ended" for word in words) and not self._cluster.alive():
            words += self._lost()
        return words

    def end(self, worker: int) -> None:
        import ray

        actor = self._forget(worker)
        if actor is not None:
            with suppress(Exception):
                ray.kill(actor, no_restart=True)

    def _forget(self, worker: int) -> Any:
        self._asked = {reference: who for reference, who in self._asked.items() if who != worker}
        self._waiting.pop(worker, None)
        return self._actors.pop(worker, None)

    def close(self) -> None:
        self._asked.clear()
        self._waiting.clear()
        self._cluster.close(self._actors.values())
        self._actors.clear()

    def _lost(self) -> list[Word]:
        """The cluster is gone: so are all workers. Begin again with another."""
        words = [Word(worker, "ended", "the cluster was lost") for worker in self._actors]
        self._actors.clear()
        self._asked.clear()
        self._waiting.clear()
        self._cluster.begin_again()
        return words
