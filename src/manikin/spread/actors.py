"""Workers that are actors of a Ray cluster: one that is started for this run, or one that is there."""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from manikin.errors import AssetError, ConfigError
from manikin.spread.crew import Word
from manikin.spread.processes import worker_environment
from manikin.spread.shards import Shard
from manikin.spread.worker import Worker, open_worker

__all__ = ["Actors"]

_STORE = 128 * 2**20  # [bytes] of a cluster's store of objects: through it go words, never data
_PAUSE = 1.0  # [s] before a cluster that was lost is asked again


class _Member:
    """A worker in an actor's process."""

    def __init__(self, folder: str) -> None:
        self._worker: Worker | None
        self._worker, self._kind, self._text = open_worker(folder)

    def opened(self) -> tuple[str, str]:
        return self._kind, self._text

    def do(self, index: int) -> tuple[str, str]:
        assert self._worker is not None
        return self._worker.do(index, lambda: None)

    def where(self) -> tuple[str, int]:
        return os.uname().nodename, os.getpid()


class Actors:
    """Starts workers as actors. Only words go through Ray: the number of a shard, and whether it is finished.

    Args:
        folder: of the run, on storage that all machines see.
        address: ``ray://HOST:PORT``, or another address that Ray knows; None starts a cluster on this machine, for this
            run, which asks for a token that nobody else has.
        most: workers at a time.
        cpus, gpus: that Ray sets aside for each; fractions of a GPU are fine.
        files: files and folders below the current one that the work needs: a task, a policy. They are sent along to a
            cluster that is there, with manikin itself.

    Raises:
        AssetError: Ray is not installed.
        ConfigError: nobody answers at the address.
    """

    def __init__(
        self,
        folder: Path,
        *,
        address: str | None = None,
        most: int = 1,
        cpus: float = 1.0,
        gpus: float = 0.0,
        files: Sequence[str] = (),
    ) -> None:
        needed = ["ray", *(["grpc"] if (address or "").startswith("ray://") else [])]
        if any(importlib.util.find_spec(name) is None for name in needed):
            raise AssetError("--on ray needs Ray, which is not installed: pip install 'manikin[ray]'")
        self._folder, self._address, self._most = folder, address, most
        self._cpus, self._gpus, self._files = cpus, gpus, files
        self._actors: dict[int, Any] = {}
        self._asked: dict[Any, int] = {}  # reference to an answer -> the worker that gives it
        self._started = 0
        self._heard = 0
        self._packed: str | None = None
        self._connect()

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
        self._asked[actor.opened.remote()] = worker
        return worker

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
                kind, text = ray.get(reference)
            except Exception as error:
                self._actors.pop(worker, None)
                words.append(Word(worker, "ended", str(error).strip().splitlines()[0]))
                continue
            self._heard += len(kind) + len(text)
            words.append(Word(worker, kind, text))
        if any(word.kind == "ended" for word in words) and not self._alive():
            words += self._lost()
        return words

    def end(self, worker: int) -> None:
        import ray

        actor = self._actors.pop(worker, None)
        self._asked = {reference: who for reference, who in self._asked.items() if who != worker}
        if actor is not None:
            with suppress(Exception):
                ray.kill(actor, no_restart=True)

    def close(self) -> None:
        import ray

        for worker in list(self._actors):
            self.end(worker)
        with suppress(Exception):
            ray.shutdown()
        if self._packed is not None:
            shutil.rmtree(self._packed, ignore_errors=True)

    def _connect(self) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_worker_niceness", "0")  # else its workers stand back behind everything else
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        variables = worker_environment(self._cpus)
        if self._address is None:
            if "ray" not in sys.modules:  # which reads them when it is imported
                os.environ.setdefault("RAY_AUTH_MODE", "token")
                os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
            import ray

            ray.init(
                address="local",
                num_cpus=max(1, round(self._most * self._cpus)),
                include_dashboard=False,
                object_store_memory=_STORE,
                runtime_env={"env_vars": {**variables, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}},
                **quiet,
            )
            return
        import ray

        runtime = {"env_vars": variables, "py_modules": [str(Path(__file__).parents[1])], **self._along()}
        try:
            ray.init(address=self._address, runtime_env=runtime, **quiet)
        except Exception as error:
            raise ConfigError(f"no Ray cluster answers at {self._address}: {error}") from None

    def _along(self) -> dict[str, Any]:
        """A folder that the workers are to run in, with the files that are sent along."""
        here = Path.cwd().resolve()
        wanted = [path for word in self._files if (path := Path(word).resolve()).exists() and path.is_relative_to(here)]
        self._packed = tempfile.mkdtemp(prefix="manikin-")
        for path in wanted:
            target = Path(self._packed) / path.relative_to(here)
            target.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                shutil.copytree(path, target, dirs_exist_ok=True)
            else:
                shutil.copyfile(path, target)
        return {"working_dir": self._packed}

    def _alive(self) -> bool:
        import ray

        try:
            return any(node["Alive"] for node in ray.nodes())
        except Exception:
            return False

    def _lost(self) -> list[Word]:
        """The cluster is gone: so are all workers. Begin again with another."""
        import ray

        words = [Word(worker, "ended", "the cluster was lost") for worker in self._actors]
        self._actors.clear()
        self._asked.clear()
        with suppress(Exception):
            ray.shutdown()
        time.sleep(_PAUSE)
        self._connect()
        return words
