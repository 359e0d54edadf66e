"""`manikin home-episodes`: make episodes of rearrangement."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from manikin.cli.common.terminal import INTERRUPTED, OK, bar, console, counted

__all__ = ["HomeEpisodesOptions", "main", "run"]


@dataclass(frozen=True, kw_only=True)
class HomeEpisodesOptions:
    """Options of `manikin home-episodes`."""

    task: tyro.conf.Positional[str]
    """tidy_house, prepare_groceries or set_table."""
    out: Path = Path("runs/home-episodes")
    """The folder; it may have several tasks and splits."""
    episodes: int = 100
    """How many episodes."""
    split: str = "train"
    """train or val: in which apartments."""
    scenes: str = "apartments"
    """apartments (built in), or replicacad (MANIKIN_DATA/replicacad)."""
    seed: int = 0
    """Of the data set. Episode k is the same however many are made."""
    rows: int = 8
    """How many are made side by side; does not change what is made."""
    resume: bool = False
    """Continue a folder that was interrupted, or make more."""


def main(options: Annotated[HomeEpisodesOptions, tyro.conf.arg(name="")]) -> int:
    """Draw objects, receptacles and goals in apartments, let all settle, and write what holds: episodes as Habitat has
    them, and plans of subtasks as MS-HAB has them."""
    return run(options)


def run(options: HomeEpisodesOptions) -> int:
    """Make the episodes; 0 done, 130 interrupted (what is finished is kept)."""
    from collections import Counter

    from manikin.data.formats.homes import EpisodeFolder
    from manikin.errors import ConfigError
    from manikin.eval.runner import interruptible

    if options.rows < 1:
        raise ConfigError(f"--rows is at least 1, not {options.rows}")
    out = console()
    folder = EpisodeFolder(
        path=options.out,
        task=options.task,
        split=options.split,
        collection=options.scenes,
        seed=options.seed,
        count=options.episodes,
    )
    folder.open(resume=options.resume)
    missing, rejected = len(folder.missing), Counter[str]()
    made = 0
    with interruptible() as stop, bar(out, f"making {options.task}", missing) as advance:
        for _ in folder.make(rows=options.rows, rejections=rejected):
            advance()
            made += 1
            if stop.requested and made < missing:
                break
    why = ", ".join(f"{word} ({count})" for word, count in rejected.most_common())
    out.print(
        f"{counted(made, 'episode')} made, {counted(rejected.total(), 'attempt')} rejected"
        f"{f': {why}' if why else ''}; {options.out / options.split / options.task} has "
        f"{options.episodes - len(folder.missing):,} of {options.episodes:,}",
        soft_wrap=True,
    )
    if folder.missing:
        out.print("interrupted; repeat the command with --resume")
        return INTERRUPTED
    return OK
