"""`manikin list`: what there is, a line each."""

from __future__ import annotations

from typing import Any

from manikin.cli.common.terminal import OK, console, show_table

__all__ = ["main"]


def main(*, family: str | None = None) -> int:
    """List the tasks by family, and the robots with their controllers.

    Args:
        family: list the tasks of this family alone.

    Returns:
        0.
    """
    from rich.markup import escape
    from rich.table import Table

    from manikin.assets.packages import offered
    from manikin.env.registry import broken_tasks, family_title, task_class, task_families, task_ids
    from manikin.errors import ConfigError
    from manikin.grippers import gripper, grippers
    from manikin.robots import arm
    from manikin.robots import robots as robot_names

    out = console()

    def listed(*headings: str) -> Any:
        made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", expand=True)
        for heading in headings:  # the last one gives way on a narrow screen
            made.add_column(heading, no_wrap=True, ratio=1 if heading == headings[-1] else None)
        return made

    def shown(table: Any) -> None:  # a pipe has no width that anything need fit into
        out.print(table) if out.is_terminal else show_table(out, table)

    tasks = listed("task", "robots", "what to do")  # one table, so that the columns of all families stand in line
    for name, members in (task_families() if family is None else {family: task_ids(family)}).items():
        if tasks.row_count:
            tasks.add_row()
        tasks.add_row(family_title(name), f"--family {name}", style="bold")
        for task_id in members:
            task = task_class(task_id)
            tasks.add_row(task_id, " ".join(task.robots), task.instruction)
    shown(tasks)
    for reason in broken_tasks().values():  # of packages
        out.print(f"[red]{escape(reason)}[/]", soft_wrap=True)
    if family is not None:
        return OK

    robots = listed("robot", "joints", "base", "groups", "gripper", "")
    sharing: dict[tuple[str, ...], list[str]] = {}  # controllers: the robots that have just these
    for name in robot_names():
        try:
            spec = arm(name)
        except ConfigError as error:  # of a package
            out.print(f"[red]{escape(str(error))}[/]", soft_wrap=True)
            continue
        sharing.setdefault(spec.controllers, []).append(name)
        groups = " ".join(spec.groups)
        robots.add_row(name, str(len(spec.joints)), spec.base.kind, groups, spec.gripper or "none", spec.title)
    out.print("")
    shown(robots)
    out.print("")
    for controllers, names in sorted(sharing.items(), key=lambda item: -len(item[1])):
        out.print(f"controllers of {', '.join(names)}: {' '.join(controllers)}")
    out.print(f"grippers:   {', '.join(f'{name} ({gripper(name).title})' for name in grippers())}")
    if policies := offered("policy"):
        out.print(f"policies of installed packages: {', '.join(policies)}")
    out.print("words:      panda, panda:menagerie (the maker's meshes), ur5e+panda_hand (another gripper),")
    out.print("            panda@planar, panda@differential (on a base that drives), panda+allegro (with a hand)")
    out.print("\nmore: manikin info PickCube-v2")
    return OK
