"""Options of the commands whose work can be spread, and options as plain values for the workers."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from manikin.errors import ConfigError

__all__ = ["SpreadOptions", "plain_options", "restored", "same_options"]

Options = TypeVar("Options")

ON = "local, ray, ray://HOST:PORT or slurm-array"
# of any command: what decides nothing about what comes out
_NEUTRAL = {"on", "workers", "per_shard", "deadline", "worker_cpus", "worker_gpus", "num_envs", "resume", "out"}


@dataclass(frozen=True, kw_only=True)
class SpreadOptions:
    """Options of the commands whose work can be spread. None of them changes what comes out."""

    on: str | None = None
    """Spread the work: local (processes of this machine), ray (a Ray cluster of this machine, or the one that
    RAY_ADDRESS names), ray://HOST:PORT (a Ray cluster), or slurm-array (this process is one of an array job). By
    default everything runs in this process. Does not change the result."""
    workers: int | None = None
    """With --on: how many at a time; by default one for each core, or what fits into the cluster."""
    per_shard: int | None = None
    """With --on: how many episodes a worker takes at a time; by default four for each row of --num-envs or
    fewer, so that each worker has two shards, and one run of a training."""
    deadline: float | None = None
    """With --on: seconds that a worker may need for a shard; by default 3600, and no limit for a training. Then it is
    ended, and another takes the shard."""
    worker_cpus: float = 1.0
    """With --on: cores of a worker."""
    worker_gpus: float = 0.0
    """With --on ray: the fraction of a GPU that a worker takes, 0.25 for four workers on one."""

    def check_spread(self) -> None:
        """Refuse what cannot be spread like this.

        Raises:
            ConfigError: says which word and what is valid.
        """
        if self.on is None:
            given = {f.name: f.default for f in dataclasses.fields(SpreadOptions) if f.name != "on"}
            for name, default in given.items():
                if getattr(self, name) != default:
                    raise ConfigError(f"--{name.replace('_', '-')} is only valid with --on: {ON}")
            return
        if self.on not in ("local", "ray", "slurm-array") and not re.fullmatch(r"ray://[^/:]+:\d+", self.on):
            raise ConfigError(f"--on takes {ON}; got {self.on!r}")
        for name in ("workers", "per_shard"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise ConfigError(f"--{name.replace('_', '-')} must be at least 1, got {value}")
        if (self.deadline is not None and self.deadline <= 0) or self.worker_cpus <= 0 or self.worker_gpus < 0:
            raise ConfigError("--deadline and --worker-cpus must be positive, and --worker-gpus not negative")
        if self.worker_gpus and not self.on.startswith("ray"):
            raise ConfigError("--worker-gpus is only valid with --on ray or ray://HOST:PORT")
        if self.workers is not None and self.on == "slurm-array":
            raise ConfigError("--workers is not valid with --on slurm-array: the job's --array says how many there are")


def plain_options(options: Any) -> dict[str, Any]:
    """Options of a command as values for JSON; a path is ``{"path": "..."}``."""
    return {field.name: _plain(getattr(options, field.name)) for field in dataclasses.fields(options)}


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return {"path": str(value)}
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def restored(kind: type[Options], plain: Mapping[str, Any]) -> Options:
    """The options that :func:`plain_options` wrote."""
    return kind(**{name: _restored(value) for name, value in plain.items()})


def _restored(value: Any) -> Any:
    if isinstance(value, dict):
        return Path(value["path"])
    return tuple(_restored(one) for one in value) if isinstance(value, list) else value


def same_options(options: Any, *more: str) -> dict[str, Any]:
    """Of the options those that decide what comes out; ``more`` names others that do not."""
    return {name: value for name, value in plain_options(options).items() if name not in {*_NEUTRAL, *more}}
