"""`manikin warmup`: compile now what would be compiled later."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import tyro

from manikin.cli.common.documented import documented
from manikin.cli.common.options import TaskOptions, WarpOptions, load_task
from manikin.cli.common.terminal import NOT_GOOD, OK, console, show_table

__all__ = ["WarmupOptions", "main", "run"]

# In a process of its own, as a user's program will be: nothing is warm but what is on disk.
_CREATE = """
import json, sys, time
import torch
import manikin
from manikin.author.speed import bytes_per_env
from manikin.cli.common.options import load_robot
task, num_envs, options = json.loads(sys.argv[1])
if "robot" in options:
    options["robot"] = load_robot(options["robot"])
if "budget" in options:
    options["budget"] = manikin.Budget(**options["budget"])
begin = time.perf_counter()
env = manikin.make(task, num_envs, **options)
env.reset(seed=0)
env.step(torch.zeros(env.action_space.shape, device=env.device))
if env.device.type == "cuda":
    torch.cuda.synchronize(env.device)
print(time.perf_counter() - begin, bytes_per_env(env))
"""


@dataclass(frozen=True, kw_only=True)
class WarmupOptions(TaskOptions, WarpOptions):
    """Options of `manikin warmup`."""

    tasks: tyro.conf.Positional[tuple[str, ...]] = ()
    """Task ids, module:Class or file.py:Class; default every task."""
    device: Annotated[str, documented("device")] = "cuda"
    num_envs: int = 1024
    """Rows: some kernels are made for a size."""
    control: Annotated[str | None, documented("control")] = None
    observe: Annotated[str, documented("observe", "Pictures have kernels of their own.")] = "state"


def main(options: Annotated[WarmupOptions, tyro.conf.arg(name="")]) -> int:
    """Compile ahead of time the kernels that tasks need on a GPU, and find their room for contacts."""
    return run(options)


def run(options: WarmupOptions) -> int:
    """Make each task twice, each time in a new process; 0 done, 1 when a task could not be made."""
    from rich.table import Table

    from manikin.env.arguments import positive_int
    from manikin.env.observe import parse
    from manikin.env.registry import task_ids
    from manikin.errors import ConfigError
    from manikin.sim import torch_device

    positive_int("num_envs", options.num_envs)
    if options.device == "cpu":
        raise ConfigError("--device cpu: nothing is compiled for the CPU; warm up cuda, cuda:1 or warp:cpu")
    torch_device(options.device)
    parse(options.observe.replace(",", "+"))
    options.warp()
    out, failed = console(), 0
    tasks = options.tasks or tuple(task_ids())
    for task in tasks:
        options.chosen(load_task(task))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("task", "first creation", "second creation", "memory each"):
        table.add_column(heading, justify="left" if heading == "task" else "right", no_wrap=True)
    for task in tasks:
        times = []
        for words in ("compiling", "once more"):
            with out.status(f"{task}: {words}"):
                done = created(task, options)
            if isinstance(done, str):
                failed += 1
                out.print(f"[red]{task}[/]: {done}", soft_wrap=True)
                break
            times.append(done)
        if len(times) == 2:
            size = f"{times[1][1] / 1e6:.2f} MB"
            table.add_row(task, f"{times[0][0]:.1f} s", f"{times[1][0]:.1f} s", size)
    if table.rows:
        show_table(out, table)
    return NOT_GOOD if failed else OK


def _options(task: str, options: WarmupOptions) -> dict[str, Any]:
    """For ``manikin.make`` in a process that has not yet read the robot's file."""
    chosen = options.chosen(load_task(task)) | {
        "robot": options.robot,
        "control": options.control,
        "device": options.device,
    }
    chosen["observe"] = options.observe.replace(",", "+")
    return {k: v for k, v in chosen.items() if v is not None} | options.warp()


def created(task: str, options: WarmupOptions) -> tuple[float, float] | str:
    """(time to make it and take a step [s], bytes per row); or the last words of a process that could not."""
    what = json.dumps([task, options.num_envs, _options(task, options)], default=asdict)
    command = [sys.executable, "-c", _CREATE, what]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        return lines[-1] if lines else f"exit status {done.returncode}"
    spent, size = map(float, done.stdout.split()[-2:])
    return spent, size
