"""`manikin collect`: run a policy and record its episodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import tyro

from manikin.cli.collecting.episodes import Collecting, CollectOptions, recording_path, tell_how_to_verify
from manikin.cli.common.terminal import INTERRUPTED, NOT_GOOD, OK, bar, console, counted
from manikin.errors import ConfigError

if TYPE_CHECKING:
    from manikin.data.recorder import Recorder

__all__ = ["CollectOptions", "main", "run"]


def main(options: Annotated[CollectOptions, tyro.conf.arg(name="")]) -> int:
    """Run a policy on a task and keep its episodes, each on disk as soon as it ends."""
    return run(options)


def run(options: CollectOptions) -> int:
    """Collect; 0 done, 1 with unhealthy, failed or lost episodes, 130 interrupted (what is finished is kept)."""
    options.check_spread()
    if not 1 <= options.episodes < 2**31:
        raise ConfigError(f"--episodes must be at least 1 and less than 2^31, got {options.episodes}")
    if options.on is not None:
        from manikin.cli.collecting.spread import run_spread

        return run_spread(options)
    return _run_here(options)


def _run_here(options: CollectOptions) -> int:
    """Collect in this process."""
    from rich.markup import escape

    from manikin.eval.runner import interruptible

    shard, shards = _shard(options.shard)
    out, collecting = console(), Collecting(options)
    try:
        path = recording_path(options, collecting.name)
        numbers = range(shard, options.episodes, shards)
        if options.check_disk:
            collecting.check_room(path, len(numbers))
        recorder = collecting.recorder(path, resume=options.resume or shards > 1)
        missing = sum(n not in recorder.finished for n in numbers)
        title = f"collecting {collecting.env.task.id}"
        with interruptible() as stop, bar(out, title, missing) as advance, recorder:
            done = collecting.record(recorder, numbers, on_result=lambda result: advance(), stop=stop)
            lost = _closed(recorder)
    finally:
        collecting.env.close()
    wins = sum(r.success_once for r in done.results)
    rate = done.env_steps / max(done.seconds, 1e-9)
    least = "at least " if shards > 1 else ""  # the other shards may have written more meanwhile
    size = f"{path.stat().st_size / 1e6:.1f} MB" if path.exists() else "nothing"
    out.print(
        f"{counted(len(done.results), 'episode')}, {wins} successful, {rate:,.0f} control steps/s; "
        f"{path} contains {least}{counted(len(recorder.kept), 'episode')} ({size})",
        soft_wrap=True,
    )
    if lost:
        out.print(f"[red]{escape(lost)}[/]", soft_wrap=True)
        return NOT_GOOD
    if done.interrupted:
        out.print("interrupted; repeat the command with --resume")
        return INTERRUPTED
    if done.unhealthy:
        out.print(f"[red]{escape(done.unhealthy_words())}[/]", soft_wrap=True)
        return NOT_GOOD
    if recorder.kept:
        tell_how_to_verify(out, options, path)
    return OK


def _closed(recorder: Recorder) -> str:
    """Complete the recording. Return a sentence about files that something has removed, or an empty string."""
    from manikin.errors import DataError

    try:
        recorder.close()
    except DataError as error:
        if not recorder.lost:
            raise
        return str(error)
    return ""


def _shard(word: str | None) -> tuple[int, int]:
    """(0, 4) for ``0/4``."""
    if word is None:
        return 0, 1
    first, _, count = word.partition("/")
    if not (first.isdigit() and count.isdigit() and int(first) < int(count)):
        raise ConfigError(f"--shard {word!r} is not I/K with I from 0 to K-1, for example 0/4")
    return int(first), int(count)
