"""A Ray cluster: one that is started for this run, or one that is there."""

from __future__ import annotations

import importlib.util
import math
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from manikin.errors import AssetError, ConfigError
from manikin.spread.processes import worker_environment

__all__ = ["Cluster"]

_STORE = 128 * 2**20  # [bytes] of a cluster's store of objects: through it go words and steps, never datasets
_PAUSE = 1.0  # [s] before a cluster that was lost is asked again


class Cluster:
    """A connection to a cluster.

    Args:
        address: ``ray://HOST:PORT``, or another address that Ray knows; None starts a cluster on this machine, for this
            run, which asks for a token that nobody else has.
        most: workers at a time.
        cpus: of each.
        files: files and folders below the current one that the work needs: a task, a policy. They are sent along to a
            cluster that is there, with manikin itself.

    Raises:
        AssetError: Ray is not installed.
        ConfigError: nobody answers at the address.
    """

    def __init__(
        self, *, address: str | None = None, most: int = 1, cpus: float = 1.0, files: Sequence[str] = ()
    ) -> None:
        needed = ["ray", *(["grpc"] if (address or "").startswith("ray://") else [])]
        if any(importlib.util.find_spec(name) is None for name in needed):
            raise AssetError("--on ray needs Ray, which is not installed: pip install 'manikin[ray]'")
        self._address, self._most, self._cpus, self._files = address, most, cpus, files
        self._packed: str | None = None
        self._connect()

    def alive(self) -> bool:
        """Whether a machine of it answers."""
        import ray

        try:
            return any(node["Alive"] for node in ray.nodes())
        except Exception:
            return False

    def room(self, cpus: float, gpus: float = 0.0) -> int:
        """How many workers fit into the machines that it has now, whoever works there.

        Args:
            cpus: cores that Ray sets aside for each.
            gpus: GPUs likewise, in fractions too.
        """
        import ray

        wanted = {name: each for name, each in (("CPU", cpus), ("GPU", gpus)) if each > 0}
        machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        return sum(min(int(has.get(name, 0) / each + 1e-9) for name, each in wanted.items()) for has in machines)

    def begin_again(self) -> None:
        """Connect once more, after it was lost."""
        import ray

        with suppress(Exception):
            ray.shutdown()
        time.sleep(_PAUSE)
        self._connect()

    def close(self, actors: Iterable[Any] = ()) -> None:
        """End these actors and the connection; a cluster that was started for this run ends with it."""
        import ray

        for actor in list(actors):
            with suppress(Exception):
                ray.kill(actor, no_restart=True)
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
                num_cpus=max(1, math.ceil(self._most * self._cpus)),
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
            with suppress(Exception):
                ray.shutdown()  # else Ray stays a client, and starts no cluster of its own in this process
            raise ConfigError(f"no Ray cluster answers at {self._address}: {error}") from None

    def _along(self) -> dict[str, Any]:
        """A folder that the workers are to run in, with the files that are sent along."""
        here = Path.cwd().resolve()
        wanted = [path for word in self._files if (path := Path(word).resolve()).exists() and path.is_relative_to(here)]
        if self._packed is not None:  # of the connection before
            shutil.rmtree(self._packed, ignore_errors=True)
        self._packed = tempfile.mkdtemp(prefix="manikin-")
        for path in wanted:
            target = Path(self._packed) / path.relative_to(here)
            target.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                shutil.copytree(path, target, dirs_exist_ok=True)
            else:
                shutil.copyfile(path, target)
        return {"working_dir": self._packed}
