"""`manikin list`: what there is, on one screen."""

from __future__ import annotations

from typing import Any

from manikin.cli.terminal import OK, console

__all__ = ["main"]


def main() -> int:
    """List the tasks, and the robots with their controllers.

    Returns:
        0.
    """
    from rich.table import Table

    from manikin.env.registry import task_class, task_ids
    from manikin.grippers import gripper, grippers
    from manikin.robots import arm, arms

    out = console()

    def listed(*headings: str) -> Any:
        made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for k, heading in enumerate(headings):
            made.add_column(heading, no_wrap=k == 0, overflow="fold")
        return made

    tasks = listed("task", "what to do", "robots")
    for task_id in task_ids():
        task = task_class(task_id)
        tasks.add_row(task_id, task.instruction, " ".join(task.robots))
    out.print(tasks)

    robots = listed("robot", "", "joints", "gripper", "controllers")
    shared = set.intersection(*(set(arm(name).controllers) for name in arms()))
    for name in arms():
        spec = arm(name)
        own = [c for c in spec.controllers if c not in shared]
        robots.add_row(name, spec.title, str(len(spec.joints)), spec.gripper or "none", " ".join(own) or "no more")
    out.print("")
    out.print(robots)
    common = " ".join(c for c in arm(arms()[0]).controllers if c in shared)
    out.print(f"\nall robots: {common}; above, what a robot has besides")
    out.print(f"grippers:   {', '.join(f'{name} ({gripper(name).title})' for name in grippers())}")
    out.print("words:      panda, panda:menagerie (the maker's meshes), ur5e+panda_hand (another gripper)")
    out.print("\nmore: manikin info PickCube-v1")
    return OK
