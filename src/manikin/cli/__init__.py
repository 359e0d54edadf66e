"""The command line: one command, ``manikin``. Each subcommand is a module of this folder, imported only when chosen.

A command module has one function ``main`` with annotated keyword arguments (tyro makes the options from them and the
help from its docstring) that returns the exit status: 0 for done, 1 for a result that is not good, 2 for bad usage.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

__all__ = ["COMMANDS", "main"]

# subcommand -> (module in this folder, what `manikin --help` says about it)
COMMANDS: dict[str, tuple[str, str]] = {
    "list": ("listing", "List the tasks by family, and the robots with their controllers."),
    "info": ("info", "Show a task: what is observed, what an action means, how it is rewarded."),
    "demo": ("demo", "Collect, replay, evaluate and film a task; ends with a page of report."),
    "collect": ("collect", "Run a policy on a task and keep its episodes."),
    "replay": ("replay", "Play recorded episodes again; --check verifies them bit for bit."),
    "home-episodes": ("home_episodes", "Make episodes of rearrangement in apartments, as Habitat's generator does."),
    "multiply": ("multiply", "Make many episodes of a few demonstrations."),
    "convert": ("convert", "Write a recording in a format that trainers load (LeRobot, robomimic)."),
    "import": ("importing", "Look at demonstrations of robosuite, robomimic or ManiSkill, and play them here."),
    "train": ("train", "Train a policy for a task, and evaluate it on episodes it never saw."),
    "eval": ("evaluate", "Evaluate a policy under a protocol: success rate, interval, report."),
    "report": ("report", "Rank the policies of several evaluations, and compare with real robots."),
    "results": ("results", "Keep what was measured, ask for it, compare it, and show it as a leaderboard."),
    "demos": ("demos", "Get, push and list demonstrations and trained policies that others made."),
    "policies": ("policies", "List the trained policies that come with manikin, or evaluate them anew."),
    "export": ("export", "Write a trained policy as an ONNX file, for programs without Python."),
    "serve": ("serve", "Serve a trained policy over a websocket, for robots and other programs."),
    "deploy": ("deploy", "Run a trained policy on a robot: simulated with delays, or a real one through LeRobot."),
    "new": ("new", "Write a task, a package or an environment for LeRobot, to start from."),
    "check": ("check", "Try on a task every promise that tasks make."),
    "object": ("object", "Make an object of a mesh or a scan: units, convex pieces, mass, rest poses, checks."),
    "robot-check": ("robot_check", "Say what is wrong with a robot of your own; film what it can do."),
    "align": ("align", "Lay a task's camera on a photograph: by hand on a page, or by a mask."),
    "view": ("view", "Watch and steer a task in the browser, or film it."),
    "teleop": ("teleop", "Drive a robot by hand in the browser and keep the episodes."),
    "bench": ("bench", "Measure control steps per second on this machine."),
    "warmup": ("warmup", "Compile ahead of time what tasks need on a GPU."),
    "sysid": ("sysid", "Find the gains, friction and delay with which the simulator follows recordings."),
    "fidelity": ("fidelity", "Score simulations on recordings of a real arm, beside published simulators."),
    "doctor": ("doctor", "Say what works on this machine and how to get the rest."),
}


RENAMED = {"--first-seed": "--seed", "--first_seed": "--seed"}


def _function(command: str) -> Callable[..., int]:
    function: Callable[..., int] = importlib.import_module(f"manikin.cli.{COMMANDS[command][0]}").main
    return function


def _stand_in(command: str) -> Callable[..., int]:
    """What only carries the command's help."""

    def stand_in() -> int:
        raise AssertionError(command)

    stand_in.__doc__ = COMMANDS[command][1]
    return stand_in


def _at_home(argument: str) -> str:
    """``--out=~/a.h5`` is not expanded by shells, and would make a folder named ~."""
    return re.sub(r"^(--[\w-]+=)~(?=/|$)", lambda flag: f"{flag[1]}{Path.home()}", argument)


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``manikin`` with the given arguments (default: the process's own) and return the exit status."""
    args = list(sys.argv[1:] if argv is None else argv)
    if args[:1] == ["--version"]:
        from manikin._version import __version__

        print(f"manikin {__version__}")
        return 0

    import tyro

    from manikin.errors import ManikinError

    chosen = args[0] if args else None
    for argument in args:
        if (old := argument.partition("=")[0]) in RENAMED:
            print(f"manikin {chosen}: {old} is called {RENAMED[old]}", file=sys.stderr)
            return 2
    words, config = [_at_home(a) for a in args], (tyro.conf.FlagCreatePairsOff,)
    try:
        if chosen in COMMANDS:  # by itself, so that errors name its help and not that of all commands
            status = tyro.cli(_function(chosen), prog=f"manikin {chosen}", args=words[1:], config=config)
        else:
            status = tyro.extras.subcommand_cli_from_dict(
                {command: _stand_in(command) for command in COMMANDS},
                prog="manikin",
                description="Robot manipulation from an idea to a number that can be trusted.",
                args=words or ["--help"],
                config=config,
            )
    except ManikinError as error:
        notes = getattr(error, "__notes__", [])  # what went wrong on the way out
        print("; ".join([f"manikin {chosen}: {error}", *notes]), file=sys.stderr)
        return 2
    except OSError as error:
        if error.filename is None:
            raise
        print(f"manikin {chosen}: {error}", file=sys.stderr)  # a file that was named: not there, or not writable
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    return int(status or 0)
