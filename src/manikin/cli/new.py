"""`manikin new task NAME`: a file that already runs, to start from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from manikin.author import scaffold
from manikin.cli.common.terminal import OK, console
from manikin.moved import old_names

__all__ = ["NewOptions", "main", "run"]


@dataclass(frozen=True, kw_only=True)
class NewOptions:
    """Options of `manikin new`."""

    kind: tyro.conf.Positional[Literal["task"]]
    """What to make."""
    name: tyro.conf.Positional[str]
    """Its name, for example StackBowls, stack_bowls or StackBowls-v2."""
    dir: Path = Path()
    """Folder to write into; made when it is not there."""


def main(options: Annotated[NewOptions, tyro.conf.arg(name="")]) -> int:
    """Write a file with a small task that already runs, and a test of it, to start from."""
    return run(options)


def run(options: NewOptions) -> int:
    """Write the two files; 0 done."""
    task, test = scaffold.write_task(options.name, options.dir)
    out = console()
    out.print(f"wrote {task}\n      {test}\n", soft_wrap=True)
    out.print(f"try it:   manikin check {task}\nlook:     manikin info {task} --picture start.png", soft_wrap=True)
    return OK


__getattr__ = old_names(__name__)
