"""`manikin bench`: how fast is it here?"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from manikin.cli.common.documented import documented
from manikin.cli.common.options import TaskOptions, load_task
from manikin.cli.common.terminal import OK, console, counted, show_table

if TYPE_CHECKING:
    from manikin.author.speed import Speed

__all__ = ["BenchOptions", "main", "run"]


@dataclass(frozen=True, kw_only=True)
class BenchOptions(TaskOptions):
    """Options of `manikin bench`."""

    task: tyro.conf.Positional[str] = "PickCube-v2"
    """Task id, module:Class or file.py:Class."""
    num_envs: tuple[int, ...] = (1, 16, 256)
    """Batch sizes to measure."""
    seconds: float = 2.0
    """Of stepping, per batch size."""
    control: Annotated[str | None, documented("control")] = None
    physics_hz: Annotated[float | None, documented("physics_hz")] = None
    device: Annotated[str, documented("device", "On Warp devices the price of deterministic=True is measured too.")] = (
        "cpu"
    )
    out: Path | None = None
    """Also write the numbers into this JSON file."""


def main(options: Annotated[BenchOptions, tyro.conf.arg(name="")]) -> int:
    """Measure control steps per second on this machine, beside physics alone on the same model."""
    return run(options)


def run(options: BenchOptions) -> int:
    """Measure; 0 done."""
    from rich.table import Table

    from manikin.author.speed import measure_speed
    from manikin.env.arguments import positive_int
    from manikin.env.state.provenance import versions
    from manikin.errors import ConfigError
    from manikin.machine import machine, processor
    from manikin.sim import torch_device

    if not options.seconds > 0:
        raise ConfigError(f"--seconds must be positive, not {options.seconds:g}")
    for n in options.num_envs:
        positive_int("num_envs", n)
    torch_device(options.device)
    out, task = console(), load_task(options.task)
    settings = options.env_options(task)
    here = machine()
    where = processor(options.device)
    out.print(f"{task.id} on {where}, random actions, state observations, full reward")
    exact: list[Speed] = []
    with out.status("measuring"):
        found = [measure_speed(task, n, seconds=options.seconds, options=settings) for n in options.num_envs]
        if options.device != "cpu":
            n = max(options.num_envs)
            exact = [measure_speed(task, n, seconds=options.seconds, options=settings, deterministic=True)]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in (
        "environments",
        "control\nsteps/s",
        "physics\nalone",
        "share",
        "create",
        "reset\none row",
        "memory\neach",
        "in a step",
    ):
        table.add_column(heading, justify="right", vertical="bottom", no_wrap=True)
    for speed in (*found, *exact):
        table.add_row(
            str(speed.num_envs) + (" exact" if speed in exact else ""),
            f"{speed.env:,.0f}",
            f"{speed.raw:,.0f}",
            f"{speed.share:.2f}",
            f"{speed.create_s:.2f} s",
            f"{speed.reset_one_row_ms:.2f} ms",
            f"{speed.bytes_per_env / 1e3:,.0f} kB",
            f"+ {speed.scratch_per_env / 1e3:,.0f} kB",
        )
    show_table(out, table)
    if exact:
        rows = counted(exact[0].num_envs, "environment")
        price = max(found, key=lambda speed: speed.num_envs).env / exact[0].env
        out.print(f"deterministic=True makes a control step {price:.2f} times as long at {rows}")
    if options.out is not None:
        report: dict[str, Any] = {"task": task.id, "device": options.device, "machine": {**here, "processor": where}}
        report |= {"versions": versions(), "speed": [asdict(s) for s in found]}
        report |= {"deterministic": [asdict(s) for s in exact]}
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
        out.print(f"wrote {options.out}", soft_wrap=True)
    return OK
