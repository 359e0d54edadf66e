"""`manikin robot-check`: lints of a robot, how far it reaches, and a film of every joint."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from manikin.cli.common.documented import documented
from manikin.cli.common.options import ROBOT_FILES, On, RendererWord, robot_in_file
from manikin.cli.common.terminal import NOT_GOOD, OK, console, counted

if TYPE_CHECKING:
    from manikin.robots import RobotSelection

__all__ = ["RobotCheckOptions", "chosen_robots", "main", "run"]


@dataclass(frozen=True, kw_only=True)
class RobotCheckOptions:
    """Options of `manikin robot-check`."""

    robot: tyro.conf.Positional[str]
    """A robot word (ur5e+rethink), one for several robots (aloha), which are all checked, a Python file that declares
    ARM or ROBOT, an MJCF or a URDF."""
    gripper: str | None = None
    """Gripper on the flange of a file's arm; ``none`` for a bare one."""
    film: Path | None = None
    """Where the film goes (.mp4), of several robots FILM_1.mp4 and so on; by default none is made."""
    renderer: Annotated[RendererWord, documented("renderer")] = "auto"
    reach: On = True
    """Do not measure how much of the space around where the arm stands inverse kinematics reaches."""


def main(options: Annotated[RobotCheckOptions, tyro.conf.arg(name="")]) -> int:
    """Say what is wrong with a robot and which line to change; film its joints and what it reaches."""
    return run(options)


def chosen_robots(word: str, gripper: str | None = None) -> list[RobotSelection]:
    """The robots that a word or a file names: one, or the members of a word for several.

    A Python file is run; its ``ARM`` is taken, with ``GRIPPER`` when it declares one.
    """
    from manikin.grippers import gripper as gripper_named
    from manikin.robots import RobotSelection, members, robot, with_grippers
    from manikin.spec.robot import GripperSpec

    if not word.lower().endswith(ROBOT_FILES):
        found = members(word)
        return [robot(one if gripper is None else f"{one.partition(':')[0]}+{gripper}") for one in found]
    arm, hand = robot_in_file(word)
    arm = with_grippers(arm, gripper)
    if gripper is None and hand is None and arm.tool is not None and isinstance(arm.tool.gripper, GripperSpec):
        return [RobotSelection(arm, arm.tool.gripper, False)]
    name = gripper or (hand.name if hand is not None else arm.gripper) or "none"
    if hand is not None and name == hand.name:
        return [RobotSelection(arm, hand, False)]
    return [RobotSelection(arm, None if name == "none" else gripper_named(name), False)]


def run(options: RobotCheckOptions) -> int:
    """Check; 0 when nothing is an error, else 1."""
    import torch
    from rich.markup import escape

    from manikin.author.robot.check import check_robot

    torch.set_num_threads(1)
    out, bad = console(), 0
    robots = chosen_robots(options.robot, options.gripper)
    for number, robot in enumerate(robots, 1):
        hand = robot.gripper.title if robot.gripper is not None else "no gripper"
        kind = "" if robot.arm.base.kind == "fixed" else f", {robot.arm.base.kind} base"
        joints = counted(len(robot.arm.joints), "joint")
        out.print(f"[bold]{escape(robot.arm.title)}[/], {joints}{kind}, {escape(hand)}\n")
        findings = check_robot(robot)
        for finding in findings:
            sign = "[red]error[/]  " if finding.error else "[yellow]warning[/]"
            out.print(f"{sign}  [bold]{finding.lint}[/]  {escape(finding.what)}", soft_wrap=True)
            where = f"{finding.where}: " if finding.where else ""
            out.print(f"         {escape(where + finding.fix)}", soft_wrap=True)
        errors = sum(f.error for f in findings)
        if not errors:
            film = options.film
            if film is not None and len(robots) > 1:
                film = film.with_stem(f"{film.stem}_{number}")
            _show(options, robot, film, felt=not any(f.lint == "touch" for f in findings))
        warned = len(findings) - errors
        count = f"{counted(errors, 'error')}, {counted(warned, 'warning')}" if findings else "nothing to fix"
        out.print(f"\n[red]{count}[/]" if errors else f"\n{count}")
        if number < len(robots):
            out.print()
        bad += errors
    return NOT_GOOD if bad else OK


def _show(options: RobotCheckOptions, robot: RobotSelection, film: Path | None, *, felt: bool) -> None:
    """Say how a robot without errors stands, what it feels and reaches; make its film."""
    from manikin.author.robot.check import reach
    from manikin.author.robot.film import film_robot
    from manikin.author.robot.tried import standing
    from manikin.spec.control import JOINT_CONTROLLERS

    out, reached = console(), None
    if robot.arm.base.loose:
        stood = standing(robot)
        how = f"the base moves by {stood.moved * 1e3:.0f} mm in 3 s"
        if stood.fell is not None:
            how = f"it falls within {stood.fell:.1f} s, and takes a controller that balances it"
        out.print(f"on its feet by its servos alone: {how}")
    if robot.arm.touch and felt:
        out.print(f"touch: each of {len(robot.arm.touch)} bodies reads a force when a ball is pressed on it")
    if options.reach and not set(robot.arm.controllers) <= {*JOINT_CONTROLLERS, "base_vel"}:
        reached = reach(robot.arm, robot.gripper)
        out.print(
            f"reach: {reached.anyhow.mean():.0%} of {len(reached.points)} points around where the arm stands, "
            f"{reached.down.mean():.0%} with the gripper turned as at rest"
        )
    if film is not None:
        out.print(f"film: {film_robot(film, robot, reached, renderer=options.renderer)}")
