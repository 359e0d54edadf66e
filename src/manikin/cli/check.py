"""`manikin check`: does a task satisfy the rules that hold for every task?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro

from manikin.cli.common.documented import documented
from manikin.cli.common.options import On, TaskOptions, load_task
from manikin.cli.common.terminal import NOT_GOOD, OK, console

__all__ = ["CheckOptions", "main", "run"]


@dataclass(frozen=True, kw_only=True)
class CheckOptions(TaskOptions):
    """Options of `manikin check`."""

    task: tyro.conf.Positional[str]
    """Task id (PickCube-v2), module:Class or file.py:Class; the class may be left out when the file has one task."""
    control: Annotated[str | None, documented("control")] = None
    num_envs: int = 8
    """Batch size of most checks, at least 3."""
    episodes: int = 64
    """Seeds for the success rates. Random actions play all of them, the expert the first 20."""
    expert: On = True
    """Leave out the task's expert."""


def main(options: Annotated[CheckOptions, tyro.conf.arg(name="")]) -> int:
    """Check that a task satisfies every rule for tasks. A failed check says what to change."""
    return run(options)


def run(options: CheckOptions) -> int:
    """Run the checks. Returns 0 if all pass, else 1."""
    import torch
    from rich.markup import escape
    from rich.padding import Padding
    from rich.table import Table

    from manikin.author.checker import Check, check_task
    from manikin.plan.executor import WaypointExecutor

    torch.set_num_threads(1)  # small tensors: more threads only wait for each other
    out, task = console(), load_task(options.task)
    out.print(f"[bold]{getattr(task, 'id', task.__name__)}[/]")

    def show(check: Check) -> None:
        line = Table.grid(padding=(0, 2, 0, 0))
        line.add_column(width=6)
        line.add_column(width=19)
        line.add_column(overflow="fold")
        line.add_row("[green]ok[/]" if check.passed else "[red]FAILED[/]", check.name, escape(check.detail))
        out.print(Padding(line, (0, 0, 0, 1)))

    checks = check_task(
        task,
        control=options.control,
        num_envs=options.num_envs,
        **options.chosen(task),
        seeds=range(options.episodes),
        expert=(lambda env: WaypointExecutor(env).act) if options.expert else None,
        on_check=show,
    )
    failed = sum(not check.passed for check in checks)
    out.print(f"\n[red]{failed} of {len(checks)} failed[/]" if failed else f"\nall {len(checks)} checks passed")
    return NOT_GOOD if failed else OK
