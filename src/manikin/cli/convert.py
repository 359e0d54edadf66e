"""`manikin convert`: a recording in a format that trainers load."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from manikin.cli.collecting.spread import FILE, merge_recordings, run_folder
from manikin.cli.common.options import PictureOptions
from manikin.cli.common.terminal import INTERRUPTED, OK, bar, console, counted
from manikin.cli.spread.options import SpreadOptions, plain_options, same_options
from manikin.cli.spread.run import PER_ROW, made_before, merged, spread

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["DATASET", "ConvertOptions", "chosen", "main", "run"]

DATASET = "dataset"
"""Folder of what a worker converts."""


@dataclass(frozen=True, kw_only=True)
class ConvertOptions(PictureOptions, SpreadOptions):
    """Options of `manikin convert`. Options for pictures need --observe."""

    file: tyro.conf.Positional[Path]
    """The recording."""
    out: tyro.conf.Positional[Path]
    """Where to write: a folder for LeRobot, a file for robomimic, NAME.h5 for ManiSkill and MS-HAB, a folder NAME-v0
    for Minari."""
    to: Literal["lerobot", "robomimic", "maniskill", "minari", "mshab"] = "lerobot"
    """lerobot: LeRobotDataset v3.0, parquet and mp4. robomimic: HDF5. maniskill, minari, mshab: HDF5 and JSON."""
    observe: str | None = None
    """Play the episodes again with this observation: state_dict, rgb, ...; by default the recorded observations."""
    way: Annotated[Literal["actions", "states"], tyro.conf.arg(name="from")] = "actions"
    """With --observe. actions: simulate the recorded actions; they must lead to the recorded states. states: set the
    recorded states."""
    episodes: tuple[int, ...] = ()
    """Numbers of the episodes; by default all."""
    keep: str = "all"
    """all, success (at any time), failure, or label:MODE,MODE with modes of the task (see manikin info)."""
    num_envs: int = 16
    """How many episodes to play in parallel; does not change the result."""
    resume: bool = False
    """Continue an interrupted conversion (lerobot, or on workers)."""
    valid: float = 0.0
    """Fraction of the episodes for validation, marked by a mask (robomimic)."""
    task: str | None = None
    """File of your own task: file.py, file.py:Class or module:Class. Loading it runs its code."""
    trust: bool = False
    """Allow the recording to run its task's file, which must be in this folder or below."""


def main(options: Annotated[ConvertOptions, tyro.conf.arg(name="")]) -> int:
    """Write a recording in a format that trainers load."""
    return run(options)


def run(options: ConvertOptions) -> int:
    """Convert; 0 done, 1 episodes failed on workers, 130 interrupted (what is finished is kept)."""
    from manikin.data.formats.convert import to_lerobot, to_maniskill, to_minari, to_mshab, to_robomimic
    from manikin.errors import ConfigError
    from manikin.eval.runner import interruptible

    options.check_spread()
    lerobot = options.to == "lerobot"
    if options.on is not None and not lerobot and options.observe is None:
        raise ConfigError(
            f"--on has nothing to share out: without --observe, --to {options.to} copies what was recorded. Leave --on "
            "out, or play the episodes again with --observe"
        )
    if options.resume and not lerobot and options.on is None:
        raise ConfigError(
            f"--resume works only with --to lerobot or --on: a {options.to} file is written in one piece. Leave "
            "--resume out and convert again"
        )
    if options.valid and options.to != "robomimic":
        raise ConfigError(
            f"--valid works only with --to robomimic, not with --to {options.to}; leave it out and split the dataset "
            "in the trainer"
        )
    out, numbers = console(), _numbers(options)
    if options.on is not None:
        return _on_workers(options, numbers, out)
    with interruptible() as stop, bar(out, f"converting {options.file.name}", len(numbers)) as advance:
        shared = {**chosen(options), "numbers": numbers, "on_episode": advance, "stop": stop}
        if lerobot:
            to_lerobot(options.file, options.out, resume=options.resume, **shared)
        elif options.to == "maniskill":
            to_maniskill(options.file, options.out, **shared)
        elif options.to == "mshab":
            to_mshab(options.file, options.out, **shared)
        elif options.to == "minari":
            to_minari(options.file, options.out, **shared)
        else:
            to_robomimic(options.file, options.out, valid=options.valid, **shared)
    if stop.requested:
        out.print("interrupted; repeat the command with --resume" if lerobot else "interrupted; no file was written")
        return INTERRUPTED
    out.print(f"{counted(len(numbers), 'episode')} in {options.out}", soft_wrap=True)
    if lerobot:
        out.print(f'load: LeRobotDataset("{options.out.name}", root="{options.out}")', soft_wrap=True)
    return OK


def _numbers(options: ConvertOptions) -> list[int]:
    """Numbers of the episodes that are asked for."""
    from manikin.data.recording.read import read_episodes
    from manikin.data.replay.environment import keep_recorded
    from manikin.errors import DataError

    with read_episodes(options.file) as file:
        numbers = list(dict.fromkeys(options.episodes or file.numbers))
        told = {n: file.attributes(n) for n in dict.fromkeys([*file.numbers, *numbers])}
        keep = keep_recorded(options.keep, (about["mode"] for about in told.values()), [file.header])
        numbers = [n for n in numbers if keep(told[n]["success_once"], told[n]["mode"])]
    if not numbers and told:
        raise DataError(
            f"no episode of {options.file} matches --keep {options.keep}; valid: all, success, failure, label:MODE"
        )
    return numbers


def chosen(options: ConvertOptions) -> dict[str, Any]:
    """What the functions that convert are told of how episodes are played again."""
    told = {"vision": options.vision(), "task": options.task, "trust": options.trust or None}
    shared = {"observe": options.observe, "way": options.way, "num_envs": options.num_envs}
    return shared | {name: value for name, value in told.items() if value is not None}


def _on_workers(options: ConvertOptions, numbers: list[int], out: Console) -> int:
    """Write a LeRobot dataset whose episodes workers make, or a file of what they observe."""
    from manikin.data.formats.lerobot import LeRobotWriter
    from manikin.errors import DataError

    target, lerobot = options.out.absolute(), options.to == "lerobot"
    folder, whole = run_folder(target), target / "meta" / "info.json" if lerobot else target  # written last
    if made_before(out, options, whole, folder):
        return OK
    if target.exists() and not folder.exists():
        raise DataError(f"{target} exists; choose another name")
    asked = dataclasses.replace(options, file=options.file.absolute(), out=target, episodes=(), resume=False)
    ledger, complete = spread(
        out,
        options,
        folder=folder,
        work=f"manikin.cli.workers.converting:{'ConvertWork' if lerobot else 'ObserveWork'}",
        settings=plain_options(asked),
        same={**same_options(asked), "numbers": numbers},
        numbers=sorted(numbers),
        size=PER_ROW * options.num_envs,
        resume=options.resume,
        words="converting",
        files=[options.task],
    )

    def join() -> int:
        places = [place for _, place in ledger.results()]
        if not lerobot and not whole.exists():
            played = ledger.folder / "played" / FILE  # a folder of its own: that of the run is locked here
            merge_recordings(played, [place / FILE for place in places])
            return run(dataclasses.replace(_unspread(options), file=played, episodes=tuple(numbers)))
        if not whole.exists():  # else the process was killed just before its end
            LeRobotWriter.gathered(target, [place / DATASET for place in places if (place / DATASET).exists()]).close()
        out.print(f"{counted(len(numbers), 'episode')} in {options.out}", soft_wrap=True)
        return OK

    status = merged(options, ledger, complete, join)
    if ledger.folder.exists() and ledger.failed:
        out.print("no dataset was written: --resume tries the failed episodes again, --episodes leaves them out")
    return status


def _unspread(options: ConvertOptions) -> ConvertOptions:
    """The same for a recording that holds what shall be observed, in this process."""
    kinds = (SpreadOptions, PictureOptions)
    plain: dict[str, Any] = {field.name: field.default for kind in kinds for field in dataclasses.fields(kind)}
    return dataclasses.replace(options, **plain, observe=None, way="actions", keep="all", resume=False)
