"""`manikin new task NAME`: a file that already runs, to start from; `new package NAME`: a package of one's own; `new
envhub TASK`: a folder with which LeRobot runs a task."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from manikin.cli.common.terminal import OK, console
from manikin.moved import old_names

__all__ = ["NewOptions", "main", "run"]


@dataclass(frozen=True, kw_only=True)
class NewOptions:
    """Options of `manikin new`."""

    kind: tyro.conf.Positional[Literal["task", "package", "envhub"]]
    """What to make: a file with a task; a package with a task, a robot, a policy, tests and CI; a folder for LeRobot's
    EnvHub with an existing task."""
    name: tyro.conf.Positional[str]
    """Its name, for example StackBowls, stack_bowls or StackBowls-v2; of envhub the id of a task."""
    dir: Path = Path()
    """Folder to write into; made when it is not there."""
    observe: Literal["state_dict", "rgb+state"] = "state_dict"
    """envhub: what policies are shown."""


def main(options: Annotated[NewOptions, tyro.conf.arg(name="")]) -> int:
    """Write a small task that already runs, and a test of it; a package of one's own; or a task for LeRobot."""
    return run(options)


def run(options: NewOptions) -> int:
    """Write the files; 0 done."""
    out = console()
    if options.kind == "task":
        from manikin.author.scaffold import write_task

        task, test = write_task(options.name, options.dir)
        out.print(f"wrote {task}\n      {test}\n", soft_wrap=True)
        out.print(f"try it:   manikin check {task}\nlook:     manikin info {task} --picture start.png", soft_wrap=True)
        return OK
    from manikin.author.package import write_envhub, write_package

    if options.kind == "package":
        root = write_package(options.name, options.dir)
        next_steps = f'install:  pip install -e "{root}[test]"\ntry it:   pytest {root}\nlook:     manikin list'
    else:
        root = write_envhub(options.name, options.dir, observe=options.observe)
        next_steps = f"in LeRobot's environment:  pip install {root}\nthen as its README.md says"
    out.print(f"wrote {root}\n", soft_wrap=True)
    out.print(next_steps, soft_wrap=True, markup=False)
    return OK


__getattr__ = old_names(__name__)
