"""Whether a package does here what its manifest says: demonstrations come out again, a policy succeeds as often."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from manikin.data.recording.read import read_episodes
from manikin.data.replay.verify import replay as replay_recording
from manikin.env.registry import task_versions
from manikin.errors import ConfigError, DataError
from manikin.eval.evaluation import evaluate
from manikin.eval.protocol import Protocol, task_of
from manikin.eval.stats import wilson
from manikin.policy.trained import trained_policy
from manikin.shelf.manifest import Package, check_files

__all__ = ["Verdict", "verify"]


@dataclass(frozen=True)
class Verdict:
    """``good``: as the manifest says. ``said``: what was compared, in words."""

    good: bool
    said: str


def verify(item: Package, folder: Path, *, episodes: int | None = None, num_envs: int = 16) -> Verdict:
    """Check a package's file, then do what its ``verify`` says.

    Demonstrations are played again and compared bit for bit. A policy is evaluated under its protocol; its rate agrees
    where the two intervals overlap.

    Args:
        item: from :func:`manikin.shelf.moves.get`.
        folder: with the file.
        episodes: at most so many, the first ones; by default all.
        num_envs: rows side by side; never changes the result.

    Raises:
        ConfigError: the package names no protocol.
        DataError: the file was changed, cannot be played here, or the protocol names a task that is not installed.
    """
    check_files(item, folder)
    path = folder / item.file
    if item.content == "demonstrations":
        with read_episodes(path) as recorded:
            numbers = list(recorded.numbers)[:episodes]
        report = replay_recording(path, numbers=numbers, num_envs=num_envs)
        return Verdict(report.ok, report.summary())
    if not item.verify:
        raise ConfigError(f"the package {item.name!r} names no protocol that verifies it")
    protocol = Protocol.from_toml(item.verify, source=item.name)
    code = [word for word in protocol.tasks if task_of(word) not in task_versions()]
    if code:  # a file or a module of whoever wrote the manifest would run
        raise DataError(f"the protocol of {item.name!r} names tasks that are not installed here: {', '.join(code)}")
    if episodes is not None:
        protocol = replace(protocol, seeds=protocol.seeds[:episodes])
    evaluation = evaluate(protocol, trained_policy(path), num_envs=num_envs)
    evaluation.raise_if_unhealthy()
    found, stated = evaluation.tasks[0].rate(protocol.success), wilson(item.successes, item.episodes)
    good = found.low <= stated.high and stated.low <= found.high
    return Verdict(good, f"{found} here, {stated} in the manifest: {'as stated' if good else 'not what is stated'}")
