"""`manikin collect --on`: each worker records episodes into files of its own, which become one recording."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.markup import escape

from manikin.cli.collecting.episodes import Collecting, CollectOptions, recording_path, tell_how_to_verify
from manikin.cli.common.options import file_name
from manikin.cli.common.terminal import INTERRUPTED, NOT_GOOD, OK, console, counted
from manikin.cli.spread.options import plain_options, restored, same_options
from manikin.cli.spread.run import PER_ROW, spread
from manikin.errors import ConfigError

__all__ = ["CollectWork", "merge_recordings", "recording_facts", "recording_numbers", "run_folder", "run_spread"]

FILE = "recording.h5"
_RESULTS = "results.json"


class CollectWork:
    """Records episodes. A :class:`~manikin.spread.work.Work`; ``settings`` are the command's options."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._collecting = Collecting(restored(CollectOptions, settings))

    def run(self, numbers: Sequence[int], folder: Path, advance: Callable[[], None]) -> None:
        recorder = self._collecting.recorder(folder / FILE, resume=True)
        self._collecting.record(recorder, numbers, on_result=lambda result: advance())

    def finished(self, folder: Path) -> set[int]:
        return recording_numbers(folder / FILE)

    def facts(self, folder: Path) -> dict[str, Any]:
        return recording_facts(folder / FILE)

    def called(self, number: int) -> str:
        return f"episode {number} (seed {self._collecting.seeds[number]})"

    def close(self) -> None:
        self._collecting.env.close()


def recording_numbers(path: Path) -> set[int]:
    """Numbers of the episodes that need not run again, of a recording that may be unfinished, or not there."""
    from manikin.data.recording.format import parts_folder
    from manikin.data.recording.read import EpisodeFile

    if not path.exists() and not parts_folder(path).is_dir():
        return set()
    with EpisodeFile(path) as file:
        return set(file.numbers) | file.dropped


def recording_facts(path: Path) -> dict[str, Any]:
    """Complete the recording of a shard, and what its manifest says of it."""
    from manikin.data.recording.read import EpisodeFile
    from manikin.data.recording.write import join_parts

    if not join_parts(path):
        return {"content": "", "kept": [], "dropped": [], "successes": 0, "steps": 0, "unhealthy": []}
    with EpisodeFile(path) as file:
        told = [file.attributes(number) for number in file.numbers]
        content = file.content_hash() if file.numbers else ""
        dropped = sorted(file.dropped)
    return {
        "content": hashlib.sha256(json.dumps([content, dropped]).encode()).hexdigest(),
        "kept": [int(about["number"]) for about in told],
        "dropped": dropped,
        "successes": sum(bool(about["success_once"]) for about in told),
        "steps": sum(int(about["length"]) for about in told),
        "unhealthy": [[int(about["seed"]), int(about["health"])] for about in told if about["health"]],
    }


def run_folder(path: Path) -> Path:
    """The folder of a run that makes a recording."""
    return path.with_name(path.name + ".spread")


def run_spread(options: CollectOptions) -> int:
    """Collect on workers; 0 done, 1 with unhealthy or failed episodes, 130 interrupted."""
    from manikin.data.recording.read import EpisodeFile
    from manikin.data.replay.health import unhealthy_words
    from manikin.errors import DataError

    if options.shard is not None:
        raise ConfigError("--shard is for processes that are started by hand; leave it out with --on")
    out = console()
    path = recording_path(options, file_name(options.policy.rpartition("/")[2])).absolute()
    done: set[int] = set()
    again = options.resume or options.on == "slurm-array"
    if path.exists() and not run_folder(path).exists():
        if not again:
            raise DataError(f"{path} exists; choose another name, or resume it")
        with EpisodeFile(path) as file:
            done = set(file.numbers) | file.dropped
    ledger, complete = spread(
        out,
        options,
        folder=run_folder(path),
        work="manikin.cli.collecting.spread:CollectWork",
        settings=plain_options(replace(options, out=None, resume=False)),
        same=same_options(options, "check_disk"),
        numbers=[n for n in range(options.episodes) if n not in done],
        size=PER_ROW * min(options.num_envs, options.episodes),
        resume=options.resume,
        words=f"collecting {options.task}",
        device=options.device or "cpu",
        files=[options.task, options.policy, options.robot],
    )
    if not complete:
        return INTERRUPTED if options.on != "slurm-array" else OK
    with ledger.merging() as mine:
        if not mine:
            out.print(f"{path}: merged by another process", soft_wrap=True)
            return OK
        manifests = ledger.manifests()
        merge_recordings(path, [folder / FILE for _, folder in ledger.results()])
        failed = ledger.failed
    wins, kept = (sum(m.facts["successes"] for m in manifests), sum(len(m.facts["kept"]) for m in manifests))
    dropped = sum(len(m.facts["dropped"]) for m in manifests)
    there = 0
    if path.exists():
        with EpisodeFile(path) as file:
            there = len(file.numbers)
    size = f"{path.stat().st_size / 1e6:.1f} MB" if path.exists() else "nothing"
    out.print(
        f"{counted(kept + dropped, 'episode')}, {wins} of those kept successful; {path} contains "
        f"{counted(there, 'episode')} ({size})",
        soft_wrap=True,
    )
    unhealthy = [tuple(pair) for m in manifests for pair in m.facts["unhealthy"]]
    if unhealthy:
        out.print(f"[red]{escape(unhealthy_words(unhealthy, ''))}[/]", soft_wrap=True)
    if failed:
        out.print(
            f"[red]{counted(len(failed), 'episode')} failed and {'is' if len(failed) == 1 else 'are'} not in it[/]; "
            "--resume tries again",
            soft_wrap=True,
        )
    if unhealthy or failed:
        return NOT_GOOD
    if kept:
        tell_how_to_verify(out, options, path)
    return OK


def merge_recordings(path: Path, files: Sequence[Path]) -> None:
    """One recording of the recordings of shards, which stay as they are. Each becomes a part of it, as if an
    interrupted recording had left it; then the parts are merged.

    Raises:
        DataError: they were recorded differently, or there is no room.
    """
    from manikin.data.recording.format import parts_folder
    from manikin.data.recording.write import join_parts

    files = [file for file in files if file.exists()]
    if not files:
        return
    parts = parts_folder(path)
    parts.mkdir(parents=True, exist_ok=True)
    for file in files:
        part = parts / f"{file.parent.name}.h5"
        part.unlink(missing_ok=True)
        try:
            os.link(file, part)
        except OSError:  # no hard links here
            shutil.copyfile(file, part.with_suffix(".tmp"))
            os.replace(part.with_suffix(".tmp"), part)
    join_parts(path)
