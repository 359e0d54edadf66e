"""`manikin import`: look at demonstrations of robosuite, robomimic or ManiSkill, and play them on manikin's tasks."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from manikin.cli.common.documented import documented
from manikin.cli.common.options import PictureOptions
from manikin.cli.common.terminal import NOT_GOOD, OK, bar, console, counted

__all__ = ["ImportOptions", "main", "run"]

_INSTANTS = (10, 50, 200)  # control steps at which divergence is told


@dataclass(frozen=True, kw_only=True)
class ImportOptions(PictureOptions):
    """Options of `manikin import`."""

    file: tyro.conf.Positional[Path]
    """HDF5 of robosuite, robomimic or ManiSkill (whose .json is beside it)."""
    play: Literal["nothing", "states", "actions"] = "nothing"
    """states: set every recorded state. actions: take the actions as well, and say how far they part."""
    out: Path | None = None
    """Write a file, or a LeRobotDataset, with what manikin observes in the states."""
    to: Literal["robomimic", "maniskill", "lerobot"] = "robomimic"
    """Layout of --out; ManiSkill's is NAME.h5 with NAME.json beside it, LeRobot's a folder."""
    observe: Annotated[str, documented("observe")] = "state_dict"
    demos: tuple[str, ...] = ()
    """Names of the demonstrations; by default all."""
    num_envs: int = 16
    """How many states are looked at side by side; does not change the result."""
    task: str | None = None
    """Where a task of your own is, of demonstrations recorded with it: file.py, file.py:Class or module:Class."""
    trust: bool = False
    """Run the file that such demonstrations name, which lies in this folder or below."""


def main(options: Annotated[ImportOptions, tyro.conf.arg(name="")]) -> int:
    """Look at demonstrations of robosuite, robomimic or ManiSkill. With --play: play them on manikin's task."""
    return run(options)


def run(options: ImportOptions) -> int:
    """Import; 0 listed or every state playback ended in success, 1 some did not."""
    from manikin.data.formats.demonstrations import read_demos
    from manikin.data.formats.playback import PlaybackResult, play_actions, play_states, write_seen

    out = console()
    demos = read_demos(options.file)
    out.print(
        " ".join(filter(None, (demos.env, demos.version))) + f", robots: {', '.join(demos.robots)}, {demos.controller}"
    )
    for name, length in demos.lengths.items():
        masks = ", ".join(mask for mask, names in demos.masks.items() if name in names)
        out.print(f"  {name}: {counted(length, 'step')}" + (f" ({masks})" if masks else ""))
    if options.play == "nothing" and options.out is None:
        return OK
    chosen = {"task": options.task, "trust": options.trust or None}
    whose: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    if (vision := options.vision()) is not None:
        whose["vision"] = vision
    names, kept = list(options.demos or demos.lengths), list[PlaybackResult]()
    for name in names:
        demos.check(name)

    def watched() -> Iterator[PlaybackResult]:
        """One demonstration after the other; what is kept of each is small."""
        for one in play_states(demos, names=names, observe=options.observe, num_envs=options.num_envs, **whose):
            yield one
            kept.append(replace(one, observations={}, states=one.states[:0]))
            advance()

    with bar(out, "setting states", len(names)) as advance:
        if options.out is not None:
            write_seen(demos, watched(), options.out, to=options.to, **whose)
        else:
            deque(watched(), maxlen=0)
    good = sum(one.success_at_end for one in kept)
    out.print(f"states: {good} of {len(kept)} end in success")
    if options.out is not None:
        out.print(f"written: {options.out}", soft_wrap=True)
    if options.play == "actions":
        for one in play_actions(demos, kept, **whose):
            at = [t for t in (*_INSTANTS, len(one.tcp) - 1) if t < len(one.tcp)]
            told = "; ".join(f"{t}: {1e3 * one.tcp[t]:.1f} and {1e3 * one.thing[t]:.1f}" for t in at)
            result = "success" if one.success[-1] else "no success"
            out.print(
                f"actions of {one.name}: {result}; mm of the tool and of the object after steps {told}", soft_wrap=True
            )
    return OK if good == len(kept) else NOT_GOOD
